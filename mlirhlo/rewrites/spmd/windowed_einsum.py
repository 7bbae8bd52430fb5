"""Windowed einsum: a dot that overlaps with the all-gather before it or the reduce-scatter behind it.

Instead of all tiles of an operand at once, each device multiplies the one it has while it sends it on to the
device before it in a ring (and in the other direction to the one behind it); instead of a whole array of
partial sums, the tile that is being summed goes around. As many bytes are sent, and there is never more than
two tiles of what would have been the large array.
Source: reference of the passes, "SPMD partitioner"; XLA's `SpmdPartitionerOptions`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.ir import Attribute, Block, SSAValue

from mlirhlo.dialects.hlo import element_types as et
from mlirhlo.dialects.hlo.attributes.base import integer, symbol
from mlirhlo.dialects.hlo.build import close
from mlirhlo.dialects.hlo.ops import DotOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.dialects.hlo.table import Role, properties_of
from mlirhlo.rewrites.spmd.emit import Emitter, Value, array_of, dense, shape_of_value, sized
from mlirhlo.rewrites.spmd.grid import Axes, Placement
from mlirhlo.rewrites.spmd.part import Part, can_cut, can_join, mask, reshard, tile_of
from mlirhlo.rewrites.spmd.reducers import addition
from mlirhlo.rewrites.spmd.tiles.local import Leaf, Work

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Direction:
    """A way around a ring: in step i each device works on tile (its number + first + sign * i) of so many."""

    sign: int
    """1: what is sent goes to the device before; -1: to the one behind."""
    first: int


@dataclass(frozen=True, slots=True)
class Ring:
    """Devices that have the tiles of one dimension, in their order."""

    placement: Placement
    axes: Axes

    @property
    def count(self) -> int:
        """Devices in the ring."""
        return self.placement.grid.product(self.axes)

    def pairs(self, sign: int) -> list[tuple[int, int]]:
        """Each device with the one it sends to."""
        grid = self.placement.grid
        numbers, rest = grid.coordinates(self.axes), grid.coordinates(grid.rest(self.axes))
        places = {(rest[d], numbers[d]): d for d in range(grid.count)}
        return [(d, places[rest[d], (numbers[d] - sign) % self.count]) for d in range(grid.count)]

    def start(self, way: Direction, step: int | Value, size: int, emit: Emitter) -> Value:
        """Where the tile of a step begins in a dimension of tiles of `size`, s32[]."""
        numbers = self.placement.grid.coordinates(self.axes)
        if isinstance(step, int):
            ahead = way.first + way.sign * step
            return emit.table([size * ((n + ahead) % self.count) for n in numbers])
        # Never negative: steps back are fewer than `first`, or than devices.
        ahead = way.first if way.sign > 0 else way.first + self.count
        here = emit.table([n + ahead for n in numbers])
        number = emit.binary("add" if way.sign > 0 else "subtract", here, step)
        number = emit.binary("remainder", number, emit.constant(self.count, et.S32))
        return emit.binary("multiply", number, emit.constant(size, et.S32))


Values = tuple[Value, ...]
Step = Callable[[Values, "int | Value", Emitter], Values]
"""What one step makes of the values that go around and those that stay."""


@dataclass(frozen=True, slots=True)
class Window:
    """A collective that a dot may overlap with."""

    sent: int
    """Bytes that each device sends."""
    saved: int
    """Bytes of the large array that is not made, less those of the tiles instead."""
    size: int
    """Bytes of the large array."""
    make: Callable[[], list[Leaf]]


def windowed(work: Work) -> list[Leaf] | None:
    """The results of a dot with one collective of those around it taken apart; None where none is to be."""
    options, emit = work.windows, work.emit
    threshold = options.threshold_mib
    if threshold is None or not isinstance(emit, Emitter) or len(work.operands) != 2:
        return None
    found: list[Window] = []
    if options.for_all_gather:
        found += [w for index in (0, 1) for w in _gathers(work, index, emit)]
    if options.for_reduce_scatter:
        found += _scatters(work, emit)
    found = [w for w in found if w.size >= threshold * MIB]
    if not found:
        return None
    best = max(found, key=lambda w: (w.sent, w.saved) if options.faster else (w.saved, w.sent))
    return best.make()


def _bytes(shape: ArrayShape, sizes: Sequence[int]) -> int:
    return prod(sizes) * shape.element_type.byte_size


# ---------------------------------------------------------------- all-gather, then dot


def _gathers(work: Work, index: int, emit: Emitter) -> list[Window]:
    """All-gathers of one operand, each of one dimension."""
    part = work.operands[index]
    if not isinstance(part, Part) or part.partial or part.shape.is_dynamic:
        return []
    target = work.placement(work.factors.operands[index])
    here = part.placement
    if here.grid != target.grid or any(k.placement.dims == target.dims for k in part.known):
        return []
    if not work.windows.skip_users and _is_shared(work, index):
        return []
    found: list[Window] = []
    for dim, wanted in enumerate(target.dims):
        axes = here.dims[dim][len(wanted) :]
        if not axes or here.dims[dim] != (*wanted, *axes) or set(axes) & target.used:
            continue
        if not can_join(part, dim, len(wanted)):
            continue
        middle = replace(target, manual=here.manual).with_dim(dim, here.dims[dim])
        sizes = middle.local(part.shape.dimensions)
        whole, tile = (_bytes(part.shape, p.local(part.shape.dimensions)) for p in (target, middle))
        ring = Ring(middle, axes)
        make = _Gathered(work, emit, index, dim, ring, sizes[dim]).make
        found.append(Window((ring.count - 1) * tile, whole - 2 * tile, whole, make))
    return found


def _is_shared(work: Work, index: int) -> bool:
    """Whether another dot reads the operand, which may use what is gathered once."""
    value = work.op.inputs[index]
    readers = [use.operation for use in value.uses if isinstance(use.operation, DotOp)]
    return len(readers) > 1


@dataclass(frozen=True, slots=True)
class _Gathered:
    """A dot of the tiles of operand `index`, one after the other."""

    work: Work
    emit: Emitter
    index: int
    dim: int
    ring: Ring
    tile: int

    @property
    def factor(self) -> int:
        """What is cut."""
        return self.work.factors.operands[self.index][self.dim][0]

    def make(self) -> list[Leaf]:
        """The results of the dot."""
        work, emit, count = self.work, self.emit, self.ring.count
        window = reshard(self._operand(), self.ring.placement, emit)
        zero = emit.constant(0, window.shape.element_type)
        for dim, factors in enumerate(work.factors.operands[self.index]):
            if set(factors) & work.factors.reduced:
                window = mask(window, dim, zero, emit)
        other = work.cleared(1 - self.index) if work.partial else work.part(1 - self.index)
        fixed = _filled(other.value, self._dims(1 - self.index), self.tile * count, emit)
        wanted = work.local_result()
        assert isinstance(wanted, ArrayShape)
        sizes = list(wanted.dimensions)
        for dim in self._result_dims():
            sizes[dim] = self.tile * count
        empty = emit.constant(0, wanted.element_type)
        start = emit.broadcast(empty, dense(wanted.element_type, sizes))
        ways, steps = [Direction(1, 0)], count
        windows: Values = (window.value,)
        if work.windows.is_bidirectional and count % 2 == 0:
            ways, steps = [Direction(1, 0), Direction(-1, -1)], count // 2
            windows = (*windows, emit.permute(window.value, self.ring.pairs(-1)))

        def step(values: Values, number: int | Value, emit: Emitter, sends: bool = True) -> Values:
            *given, filled, beside = values
            onward = [
                emit.permute(v, self.ring.pairs(w.sign)) if sends else v
                for v, w in zip(given, ways, strict=True)
            ]
            for value, way in zip(given, ways, strict=True):
                begin = self.ring.start(way, number, self.tile, emit)
                filled = self._added(filled, value, beside, begin, emit)
            return (*onward, filled, beside)

        values = _around(work, (*windows, start, fixed), range(steps - 1), step, emit)
        *_, found, _ = step(values, steps - 1, emit, sends=False)
        for dim in self._result_dims():
            found = emit.slice(found, dim, 0, wanted.dimensions[dim])
        return work.parts(found, addition(work))

    def _operand(self) -> Part:
        part = self.work.operands[self.index]
        assert isinstance(part, Part)
        return part

    def _dims(self, index: int) -> list[int]:
        return [d for d, own in enumerate(self.work.factors.operands[index]) if self.factor in own]

    def _result_dims(self) -> list[int]:
        return [d for d, own in enumerate(self.work.factors.results[0]) if self.factor in own]

    def _added(
        self, filled: Value, window: Value, beside: Value, begin: Value, emit: Emitter
    ) -> Value:
        """The result with what one tile gives."""
        for dim in self._dims(1 - self.index):
            beside = emit.dynamic_slice(beside, dim, begin, self.tile)
        operands = (window, beside) if self.index == 0 else (beside, window)
        wanted = array_of(filled)
        dims = self._result_dims()
        sizes = [self.tile if d in dims else n for d, n in enumerate(wanted.dimensions)]
        made = _dot(self.work, operands, sizes, emit)
        if not dims:
            return emit.binary("add", filled, made)
        zero = emit.constant(0, et.S32)
        starts = [begin if d in dims else zero for d in range(wanted.rank)]
        return emit.make("dynamic-update-slice", (filled, made, *starts), wanted)


# ---------------------------------------------------------------- dot, then reduce-scatter


def _scatters(work: Work, emit: Emitter) -> list[Window]:
    """The reduce-scatter of the result towards where it is wanted, of one dimension."""
    target, shape = work.target, work.op.shape
    if target is None or not work.partial or not isinstance(shape, ArrayShape) or shape.is_dynamic:
        return []
    result = work.placement(work.factors.results[0])
    if target.grid != result.grid:
        return []
    part = Part(emit.constant(0, shape.element_type), shape, result)
    found: list[Window] = []
    for dim, wanted in enumerate(target.dims):
        here = result.dims[dim]
        more = wanted[len(here) :]
        axes = tuple(a for a in more if a in work.partial)
        if not axes or wanted != (*here, *axes) or set(axes) & result.used:
            continue
        if not can_cut(part, dim, axes):
            continue
        tile = tile_of(part, dim, wanted)
        ring = Ring(result.with_dim(dim, wanted), axes)
        size = _bytes(shape, result.local(shape.dimensions))
        one = _bytes(shape, ring.placement.local(shape.dimensions))
        make = _Scattered(work, emit, dim, ring, tile).make
        found.append(Window((ring.count - 1) * one, size - 2 * one, size, make))
    return found


@dataclass(frozen=True, slots=True)
class _Scattered:
    """A dot of one tile of the result after the other; sums go around."""

    work: Work
    emit: Emitter
    dim: int
    ring: Ring
    tile: int

    def make(self) -> list[Leaf]:
        """The results of the dot, at their tiles."""
        work, emit, count = self.work, self.emit, self.ring.count
        (factor,) = work.factors.results[0][self.dim]
        dims = [[d for d, own in enumerate(f) if factor in own] for f in work.factors.operands]
        given = tuple(
            _filled(work.cleared(k).value, dims[k], self.tile * count, emit) for k in range(2)
        )
        local = work.local_result()
        assert isinstance(local, ArrayShape)
        sizes = [self.tile if d == self.dim else n for d, n in enumerate(local.dimensions)]
        ways, steps = [Direction(1, 1)], count
        if work.windows.is_bidirectional and count % 2 == 0:
            ways, steps = [Direction(1, count // 2 + 1), Direction(-1, count // 2)], count // 2

        def part(way: Direction, values: Values, number: int | Value, emit: Emitter) -> Value:
            begin = self.ring.start(way, number, self.tile, emit)
            cut = list(values)
            for k in range(2):
                for dim in dims[k]:
                    cut[k] = emit.dynamic_slice(cut[k], dim, begin, self.tile)
            return _dot(work, cut, sizes, emit)

        def step(values: Values, number: int | Value, emit: Emitter) -> Values:
            *sums, lhs, rhs = values
            sums = [
                emit.binary(
                    "add",
                    emit.permute(v, self.ring.pairs(w.sign)),
                    part(w, (lhs, rhs), number, emit),
                )
                for v, w in zip(sums, ways, strict=True)
            ]
            return (*sums, lhs, rhs)

        first = tuple(part(way, given, 0, emit) for way in ways)
        values = _around(work, (*first, *given), range(1, steps), step, emit)
        found = values[0]
        if len(ways) > 1:
            found = emit.binary("add", found, emit.permute(values[1], self.ring.pairs(-1)))
        (leaf,) = work.parts(found, addition(work))
        assert isinstance(leaf, Part)
        left = tuple(a for a in leaf.partial if a not in self.ring.axes)
        return [replace(leaf, placement=self.ring.placement, partial=left)]


# ---------------------------------------------------------------- steps and loops


def _filled(value: Value, dims: Sequence[int], size: int, emit: Emitter) -> Value:
    """A value with zeros behind it in some dimensions, up to a size."""
    for dim in dims:
        value = emit.pad(value, dim, 0, size - array_of(value).dimensions[dim])
    return value


def _dot(work: Work, operands: Sequence[Value], sizes: Sequence[int], emit: Emitter) -> Value:
    shape = work.op.shape
    assert isinstance(shape, ArrayShape)
    own = {k: v for k, v in work.op.properties.items() if k not in _OF_THE_WHOLE}
    return emit.make(work.op.opcode.name, operands, sized(shape, sizes), own)


_OF_THE_WHOLE = {"sharding", *properties_of(Role.PROVENANCE, Role.ORDER)}


def _around(work: Work, values: Values, steps: range, step: Step, emit: Emitter) -> Values:
    """Steps done by a loop, those that are left when it is unrolled behind it."""
    unroll = 2 if work.windows.is_unrolled else 1
    trips = len(steps) // unroll
    if trips > 1:
        end = steps.start + trips * unroll
        values = _loop(values, steps.start, end, unroll, step, emit)
        steps = range(end, steps.stop)
    for number in steps:
        values = step(values, number, emit)
    return values


def _loop(values: Values, start: int, end: int, unroll: int, step: Step, emit: Emitter) -> Values:
    s32 = dense(et.S32, ())
    number = emit.constant(start, et.S32)
    state = TupleShape((*map(shape_of_value, values), s32))
    names: dict[str, Attribute] = {}
    for key in ("condition", "body"):
        inner = Emitter(emit.module, Block())
        inner.origin = emit.origin
        parameter = inner.make("parameter", (), state, {"parameter_number": integer(0)})
        if key == "condition":
            last = {"index": integer(len(values))}
            at = inner.make("get-tuple-element", (parameter,), s32, last)
            root = inner.compare(at, inner.constant(end, et.S32), "LT")
        else:
            *inside, at = inner.elements(parameter)
            now = tuple(inside)
            for _ in range(unroll):
                now = step(now, at, inner)
                at = inner.binary("add", at, inner.constant(1, et.S32))
            root = inner.make("tuple", (*now, at), state)
        assert isinstance(root, SSAValue)
        name = emit.module.names.unique(f"windowed_dot_general_{key.replace('condition', 'cond')}")
        emit.module.added.append(close(name, inner.block, root))
        names[key] = symbol(name)
    looped = emit.make("while", (emit.make("tuple", (*values, number), state),), state, names)
    return emit.elements(looped)[:-1]
