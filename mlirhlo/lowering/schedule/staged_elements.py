"""`gpu-stage-elements`: elementwise launches whose reads begin within sectors, or overlap, go through shared memory.

A block computes a box of elements: one index of outer dimensions, some of a dimension, all of those after it. What it
reads of an array lies in a range of memory, which it brings to shared memory in whole sectors: pads, concatenated rows,
rows backwards, windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap

from mlirhlo.dialects.hlo.ops import ConstantOp
from mlirhlo.dialects.structured import (
    AssembleOp,
    FoldOp,
    KernelOp,
    MapOp,
    identity_map,
    sizes_of,
)
from mlirhlo.dialects.structured.dense import DYNAMIC
from mlirhlo.lowering.gpu.affine import Sum, results_of
from mlirhlo.lowering.schedule.attributes import SCHEDULE, Schedule, element_of, schedule_of
from mlirhlo.lowering.schedule.transposes.boxes import SECTOR

_TILES = (1024, 2048, 4096, 8192)
"""Elements that a block computes, about."""
_SHARED_BYTES = 40 << 10
_THREADS = 256
_WARP = 32
_WORTH = 0.97
"""Of the sectors that are requested one by one, at most, where it pays to bring them together."""
_DENSE = 1.05
"""Of the sectors of an array, that boxes bring of it at most if others are brought."""
_NEAR = 1.01
_SAMPLES = 8
"""Warps whose requests are looked at."""
_GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True, slots=True)
class Interval:
    """Indices from `base + low` to `base + high`; `base` is of the first element of a box."""

    base: Sum
    low: int
    high: int

    def plus(self, other: Interval, factor: int = 1) -> Interval:
        """Sums of indices of both, the others times a factor."""
        ends = sorted((factor * other.low, factor * other.high))
        return Interval(self.base.plus(other.base, factor), self.low + ends[0], self.high + ends[1])

    def joined(self, other: Interval) -> Interval | None:
        """An interval around both; None where they are not at a known distance."""
        more = other.base.plus(self.base, -1)
        if more.terms:
            return None
        low, high = other.low + more.constant, other.high + more.constant
        return replace(self, low=min(self.low, low), high=max(self.high, high))


@dataclass(frozen=True, slots=True)
class StagedRange:
    """What a box reads of a value: intervals of its indices. Those outside of the value are not read."""

    value: SSAValue
    intervals: tuple[Interval, ...]
    steps: int
    """How often a thread reads it, for an element."""

    @property
    def count(self) -> int:
        """Elements from the first to the last one, at most, and those before it in its sector."""
        sizes = sizes_of(self.value)
        rows = zip(self.intervals, sizes, range(len(sizes)), strict=True)
        last = sum((min(i.high - i.low + 1, n) - 1) * prod(sizes[at + 1 :]) for i, n, at in rows)
        return min(last + SECTOR // element_of(self.value).byte_size, prod(sizes))

    @property
    def is_in_order(self) -> bool:
        """Whether dimensions of the result follow one another as those of the value do; others are transposed."""
        dims = [atom.number for interval in self.intervals for atom, _ in interval.base.terms]
        return dims == sorted(dims)

    @property
    def is_backwards(self) -> bool:
        """Whether some indices fall while those of the result rise."""
        return any(factor < 0 for interval in self.intervals for _, factor in interval.base.terms)

    @property
    def least(self) -> int:
        """Sectors of the whole value."""
        return -(-prod(sizes_of(self.value)) * element_of(self.value).byte_size // SECTOR)

    @property
    def sectors(self) -> int:
        """That are brought for it."""
        return -(-self.count * element_of(self.value).byte_size // SECTOR)


def staged_ranges(op: Operation, box: Sequence[int]) -> list[StagedRange]:
    """What boxes of an op's result read, of the values whose reads are known intervals."""
    sizes = sizes_of(op.results[0])
    own = results_of(identity_map(len(sizes)), sizes)
    start = tuple(
        Interval(index if n < whole else Sum(), 0, n - 1)
        for index, n, whole in zip(own, box, sizes, strict=True)
    )
    known: dict[SSAValue, StagedRange | None] = {}
    for value, intervals, steps in _reads(op, start):
        read = None if intervals is None else StagedRange(value, intervals, steps)
        known[value] = read if value not in known else _joined(known[value], read)
    return [range_ for range_ in known.values() if range_ is not None and range_.intervals]


def _joined(one: StagedRange | None, other: StagedRange | None) -> StagedRange | None:
    if one is None or other is None:
        return None
    both = [a.joined(b) for a, b in zip(one.intervals, other.intervals, strict=True)]
    joined = tuple(interval for interval in both if interval is not None)
    return (
        StagedRange(one.value, joined, one.steps + other.steps)
        if len(joined) == len(both)
        else None
    )


Read = tuple[SSAValue, "tuple[Interval, ...] | None", int]


def _reads(op: Operation, start: tuple[Interval, ...]) -> Iterator[Read]:
    """The values in memory that an op reads for a box, and the intervals of their indices; None for unknown ones."""
    stack: list[tuple[Operation, tuple[Interval, ...] | None, int]] = [(op, start, 1)]
    while stack:
        reader, at, steps = stack.pop()
        for value, intervals, more in _operands(reader, at):
            owner = value.owner
            if isinstance(owner, ConstantOp):
                continue
            if not isinstance(owner, Operation) or SCHEDULE in owner.attributes:
                yield value, intervals, steps * more
            else:
                stack.append((owner, intervals, steps * more))


def _operands(op: Operation, at: tuple[Interval, ...] | None) -> Iterator[Read]:
    if at is not None and isinstance(op, MapOp | FoldOp):
        folded = op.folded if isinstance(op, FoldOp) else ()
        space = (*at, *(Interval(Sum(), 0, n - 1) for n in folded))
        for value, map_ in zip(op.inputs, op.index_maps, strict=True):
            yield value, _mapped(map_, space, op.space), prod(folded)
        if isinstance(op, FoldOp):
            yield from ((value, (), 1) for value in op.inits)
    elif at is not None and isinstance(op, AssembleOp) and not op.indices:
        rows = zip(op.pieces, op.piece_offsets, op.piece_strides, strict=True)
        for piece, offsets, strides in rows:
            is_plain = DYNAMIC not in offsets and set(strides) <= {1}
            moved = tuple(
                replace(i, base=i.base.plus(Sum((), -offset)))
                for i, offset in zip(at, offsets, strict=True)
            )
            yield piece, moved if is_plain else None, 1
        if op.fill is not None:
            yield op.fill, (), 1
    else:
        yield from ((value, None, 1) for value in op.operands)


def _mapped(
    map_: AffineMap, space: Sequence[Interval], sizes: Sequence[int]
) -> tuple[Interval, ...] | None:
    known: list[Interval] = []
    for total in results_of(map_, sizes):
        interval = Interval(Sum((), total.constant), 0, 0)
        for atom, factor in total.terms:
            if atom.of is not None:
                return None
            interval = interval.plus(space[atom.number], factor)
        known.append(interval)
    return tuple(known)


def stage_elements(kernel: KernelOp) -> None:
    """Makes launches of one op that gain by it launches of boxes."""
    launched = {op: s for op in kernel.block.ops if (s := schedule_of(op)) is not None}
    for op, schedule in launched.items():
        is_alone = sum(s.launch == schedule.launch for s in launched.values()) == 1
        if not is_alone or not isinstance(op, MapOp | FoldOp | AssembleOp):
            continue
        if schedule.kind == "elements" or (
            schedule.kind in ("rows", "columns") and _has_windows(op)
        ):
            box = _box(op)
            if box:
                staged = Schedule(schedule.launch, "staged_elements", threads=_THREADS, tile=box)
                op.attributes[SCHEDULE] = staged.attribute()


def worth_staging(op: Operation, box: Sequence[int]) -> list[StagedRange]:
    """The ranges that boxes bring to shared memory."""
    requested = _requested(op)
    return [
        range_
        for range_ in staged_ranges(op, box)
        if not element_of(range_.value).is_complex
        and range_.sectors * _boxes(op, box)
        < max(_WORTH * requested.get(range_.value, 0), _DENSE * range_.least)
    ]


def _boxes(op: Operation, box: Sequence[int]) -> float:
    """How many there are; the last one may be a part."""
    return prod(whole / n for whole, n in zip(sizes_of(op.results[0]), box, strict=True))


def _box(op: Operation) -> tuple[int, ...]:
    """The sizes of boxes; none where none gain."""
    sizes = sizes_of(op.results[0])
    if not sizes or 0 in sizes or len(op.results) > 1:
        return ()
    requested, costs = _requested(op), dict[tuple[int, ...], float]()
    if not requested:
        return ()
    for elements in _TILES:
        box = _box_of(sizes, elements, element_of(op.results[0]).byte_size)
        staged = {r.value: r for r in worth_staging(op, box)}
        bytes_ = sum(r.count * element_of(value).byte_size for value, r in staged.items())
        if staged and bytes_ <= _SHARED_BYTES:
            rest = sum(n for value, n in requested.items() if value not in staged)
            costs[box] = rest + _boxes(op, box) * sum(r.sectors for r in staged.values())
    least = min(costs.values(), default=0)
    if least >= _WORTH * sum(requested.values()):
        return ()
    return next((box for box, cost in costs.items() if cost <= _NEAR * least), ())


def _box_of(sizes: Sequence[int], elements: int, bytes_: int) -> tuple[int, ...]:
    """A box of about so many elements, that is whole sectors of the result if it can be."""
    dim = next(d for d in range(len(sizes)) if prod(sizes[d + 1 :]) <= elements)
    inner = prod(sizes[dim + 1 :])
    rows = most = min(max(elements // inner, 1), sizes[dim])
    while rows > 1 and most < sizes[dim] and rows * inner * bytes_ % SECTOR:
        rows -= 1
    return (*(1 for _ in sizes[:dim]), rows if rows > 1 else most, *sizes[dim + 1 :])


def _requested(op: Operation) -> dict[SSAValue, float]:
    """Sectors of the requests of warps, each thread an element, about, of the values whose reads are known; nothing
    where all requests are of whole sectors, each read once, or across the order of memory."""
    sizes = sizes_of(op.results[0])
    known: dict[SSAValue, float] = {}
    is_fine = True
    # A slice alone goes through registers: gaps between its rows would be bank conflicts.
    is_plain = isinstance(op, MapOp) and not any(
        isinstance(value.owner, AssembleOp | FoldOp) for value in op.inputs
    )
    ranges = staged_ranges(op, [1] * len(sizes))
    if not all(range_.is_in_order for range_ in ranges):
        return {}
    if is_plain and not any(range_.is_backwards for range_ in ranges):
        return {}
    whole = {r.value for r in staged_ranges(op, sizes) if r.count == prod(sizes_of(r.value))}
    for range_ in ranges:
        is_window = any(interval.high > interval.low for interval in range_.intervals)
        touched, least = _touched(range_, sizes)
        requested = prod(sizes) / _WARP * range_.steps * touched
        is_fine &= not is_window and touched <= least
        if range_.value in whole:  # warps may share sectors
            requested = max(requested, range_.least)
            is_fine &= requested <= _DENSE * range_.least
        known[range_.value] = requested
    return {} if is_fine else known


def _touched(range_: StagedRange, sizes: Sequence[int]) -> tuple[float, float]:
    """Sectors of a request, and how many its elements fill, in the mean of some: of the first elements that threads
    read, and of the last."""
    count, arrays = prod(sizes), sizes_of(range_.value)
    bytes_ = element_of(range_.value).byte_size
    pitches = [prod(sizes[at + 1 :]) for at in range(len(sizes))]
    warps = max(count // _WARP, 1)
    # At no common distance, which might be whole rows or sectors.
    starts = [int(n * warps * _GOLDEN) % warps * _WARP for n in range(_SAMPLES)]
    total = least = 0
    for is_last in (False, True):
        for start in starts:
            elements: set[int] = set()
            for lane in range(start, min(start + _WARP, count)):
                linear = 0
                for interval, size in zip(range_.intervals, arrays, strict=True):
                    index = interval.base.constant + (interval.high if is_last else interval.low)
                    for atom, factor in interval.base.terms:
                        index += lane // pitches[atom.number] % sizes[atom.number] * factor
                    if not 0 <= index < size:
                        break
                    linear = linear * size + index
                else:
                    elements.add(linear)
            total += len({element * bytes_ // SECTOR for element in elements})
            least += -(-len(elements) * bytes_ // SECTOR)
    return total / (2 * _SAMPLES), least / (2 * _SAMPLES)


def _has_windows(op: Operation) -> bool:
    """Whether a fold's windows overlap, or are no whole sectors of neighbours."""
    if not isinstance(op, FoldOp):
        return False
    rank = len(op.space) - len(op.folded)
    for value, map_ in zip(op.inputs, op.index_maps, strict=True):
        is_disjoint, is_window = True, False
        for total in results_of(map_, op.space):
            numbers = {atom.number: factor for atom, factor in total.terms if atom.of is None}
            windows = [op.space[d] for d in numbers if d >= rank]
            if windows and len(numbers) > len(windows):
                is_window = True
                steps = [factor for d, factor in numbers.items() if d < rank]
                is_disjoint &= windows == steps and total.constant == 0
        minor = results_of(map_, op.space)[-1:]
        is_minor = any(atom.number >= rank for total in minor for atom, _ in total.terms)
        row = (sizes_of(value) or (1,))[-1] * element_of(value).byte_size
        if is_window and not (is_disjoint and is_minor and row % SECTOR == 0):
            return True
    return False
