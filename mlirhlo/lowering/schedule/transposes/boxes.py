"""Boxes of results that are read across the order of memory: which lie together enough in both memories.

Dimensions of the results that lie beside each other in what is read too count as one. A box covers a run of neighbours
in what is read, and another one in the results: some dimensions whole, and a part of the next one.

    x[6,40,72] read as r[72,40,6]:  box (16, 40, 6)  reads runs of 16 elements, writes runs of 240
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd, prod

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap

from mlirhlo.dialects.structured import MapOp, sizes_of
from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.schedule.attributes import element_of
from mlirhlo.lowering.schedule.reads import linear_index, reads_of

SECTOR = 32
"""Bytes of memory that are moved together."""
_LEAST = 32
"""Fewer elements are not worth a box."""
_RUNS = (32, 64, 128, 256, 384, 512, 640, 1024)
"""Bytes of runs that are tried."""
_WORK = 4096
"""Bytes of a box that keep a block busy."""
_GOOD, _BAD = 1.03, 1.05
"""Traffic, of the least there is, that is no reason for a larger box, and that is one for boxes at all."""


@dataclass(frozen=True, slots=True)
class Run:
    """What of a box lies together in an array."""

    dims: tuple[int, ...]
    """From the innermost one; the last one may be covered in part."""
    length: int
    """Elements."""
    is_aligned: bool
    """Whether every run starts with a sector."""
    waste: float
    """Bytes of sectors beside the runs, for each box's runs of the whole array."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """An op that reads values across the order of memory, all of them by the same strides."""

    groups: tuple[tuple[int, ...], ...]
    """Dimensions of the op's space that count as one."""
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    """Of the groups in what is read; 0 where it does not depend on them."""
    reads: tuple[tuple[SSAValue, AffineMap, int], ...]
    """Values, maps to their indices, and the index in memory that they are read from on."""
    outputs: tuple[SSAValue, ...]

    @property
    def order(self) -> list[int]:
        """Groups from the innermost one of what is read."""
        return sorted((g for g, n in enumerate(self.strides) if n), key=self.strides.__getitem__)

    @property
    def steps(self) -> tuple[int, ...]:
        """Strides of the groups in the results."""
        return tuple(prod(self.sizes[g + 1 :]) for g in range(len(self.sizes)))

    def run_read(self, box: Sequence[int]) -> Run:
        """What a box reads together."""
        size = max(element_of(v).byte_size for v, _, _ in self.reads)
        starts = gcd(*(start for _, _, start in self.reads))
        return _run(box, self.sizes, self.strides, self.order, size, starts)

    def run_written(self, box: Sequence[int]) -> Run:
        """What a box writes together."""
        size = max(element_of(v).byte_size for v in self.outputs)
        inner_first = range(len(self.sizes) - 1, -1, -1)
        return _run(box, self.sizes, self.steps, inner_first, size, 0)

    def traffic(self, box: Sequence[int]) -> float:
        """Bytes of sectors that boxes move, to the bytes that have to be."""
        read = sum(element_of(v).byte_size for v, _, _ in self.reads)
        read *= prod(n for n, stride in zip(self.sizes, self.strides, strict=True) if stride)
        written = sum(element_of(v).byte_size for v in self.outputs) * prod(self.sizes)
        again = prod(
            -(-n // t)
            for n, t, stride in zip(self.sizes, box, self.strides, strict=True)
            if not stride
        )
        more = len(self.reads) * self.run_read(box).waste * again + read * (again - 1)
        more += len(self.outputs) * self.run_written(box).waste
        return 1 + more / (read + written)

    def is_apart(self, limit: float) -> bool:
        """Whether threads that compute neighbours of the results read so many more sectors than there are."""
        if self.strides[-1] not in (0, 1):
            return True
        together = [1] * len(self.sizes)
        together[-1] = self.sizes[-1]
        return self.strides[-1] == 1 and self.traffic(together) > limit

    def box_bytes(self, box: Sequence[int]) -> int:
        """Of a box of what is read."""
        count = prod(t for t, stride in zip(box, self.strides, strict=True) if stride)
        return count * sum(element_of(v).byte_size for v, _, _ in self.reads)


def _run(
    box: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int],
    order: Sequence[int],
    size: int,
    start: int,
) -> Run:
    dims: list[int] = []
    length = inner = 1
    for dim in order:
        if strides[dim] != inner:
            break
        dims.append(dim)
        length *= box[dim]
        inner *= sizes[dim]
        if box[dim] < sizes[dim]:
            break
    count = 1
    steps = [start * size]
    for dim in order:
        if dim not in dims:
            count *= sizes[dim]
            steps.append(strides[dim] * size)
        elif box[dim] < sizes[dim]:
            count *= -(-sizes[dim] // box[dim])
            steps.append(box[dim] * strides[dim] * size)
    is_aligned = gcd(SECTOR, *steps) == SECTOR
    if length * size % SECTOR or not is_aligned:
        waste = count * (SECTOR - gcd(SECTOR, length * size, *steps))
    else:
        waste = 0
    return Run(tuple(dims), length, is_aligned, waste)


def crossing_of(op: MapOp) -> Crossing | None:
    """What an op reads across the order of memory; None where it reads nothing so."""
    space = op.space
    dims = [d for d, n in enumerate(space) if n > 1]
    if not dims or prod(space) < _LEAST:
        return None
    found: dict[tuple[int, ...], list[tuple[SSAValue, AffineMap, int]]] = {}
    for value, map_ in reads_of(op, frozenset()):
        if map_ is None:
            continue
        linear = linear_index(map_, sizes_of(value), space)
        factors = [linear.factor(d) for d in range(len(space))]
        strides = tuple(n for n in factors if n is not None)
        if len(strides) == len(factors) and _is_nested(strides, space, dims):
            reads = found.setdefault(strides, [])
            if all(value is not v or map_ != m for v, m, _ in reads):
                reads.append((value, map_, linear.constant))
    crossings = [_crossing(op, dims, strides, reads) for strides, reads in found.items()]
    crossings = [one for one in crossings if one.is_apart(_BAD)]
    return max(crossings, key=lambda one: len(one.reads), default=None)


def _crossing(
    op: MapOp,
    dims: Sequence[int],
    strides: Sequence[int],
    reads: Sequence[tuple[SSAValue, AffineMap, int]],
) -> Crossing:
    space = op.space
    groups: list[list[int]] = []
    for dim in dims:
        if groups and strides[groups[-1][-1]] == strides[dim] * space[dim]:
            groups[-1].append(dim)
        else:
            groups.append([dim])
    return Crossing(
        tuple(map(tuple, groups)),
        tuple(prod(space[d] for d in group) for group in groups),
        tuple(strides[group[-1]] for group in groups),
        tuple(reads),
        tuple(op.outputs),
    )


def _is_nested(strides: Sequence[int], space: Sequence[int], dims: Sequence[int]) -> bool:
    """Whether an array is read as its dimensions lie, each element once, and neighbours of it too."""
    inner = 0
    for dim in sorted((d for d in dims if strides[d]), key=strides.__getitem__):
        if strides[dim] < inner or (inner == 0 and strides[dim] != 1):
            return False
        inner = strides[dim] * space[dim]
    return inner > 0


def boxes_of(crossing: Crossing, device: GpuDevice) -> list[tuple[int, ...]]:
    """Boxes of little traffic, or else of the least: those that keep a block busy first, of them the smallest."""
    inner_first = range(len(crossing.sizes) - 1, -1, -1)
    read, written = (
        list(_parts(crossing.sizes, order, max(element_of(v).byte_size for v in values)))
        for order, values in (
            (crossing.order, [v for v, _, _ in crossing.reads]),
            (list(inner_first), crossing.outputs),
        )
    )
    limit = device.shared_memory_per_block_optin - (_WORK << 1)
    boxes = {tuple(map(max, one, other)) for one in read for other in written}
    rated = [(crossing.traffic(b), b) for b in boxes if crossing.box_bytes(b) <= limit]
    enough = max(_GOOD, min((ratio for ratio, _ in rated), default=0) + 0.005)
    good = [box for ratio, box in rated if ratio <= enough]

    def key(box: tuple[int, ...]) -> tuple[bool, int, int, tuple[int, ...]]:
        size = crossing.box_bytes(box)
        return size < _WORK, size if size >= _WORK else -size, sum(box), box

    return sorted(good, key=key)


def _parts(sizes: Sequence[int], order: Sequence[int], size: int) -> Iterator[tuple[int, ...]]:
    """Boxes of one run: dimensions whole as far as they go, and parts of the next one."""
    box = [1] * len(sizes)
    inner = size
    for dim in order:
        multiple = SECTOR // gcd(SECTOR, inner)
        for length in _RUNS:
            part = -(-length // inner)
            part = min(sizes[dim], -(-part // multiple) * multiple)
            yield (*box[:dim], part, *box[dim + 1 :])
        box[dim] = sizes[dim]
        inner *= sizes[dim]
        yield tuple(box)
        if inner > _RUNS[-1] * SECTOR:
            return
