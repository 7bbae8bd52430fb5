"""select_and_scatter: values of the source combined in where the selected element of each window lies.

The first element of a window stays selected until `select(selected, other)` is false.

    result = initial
    for each window:                 # vectors of them, where memory has them side by side and apart
      chosen = first of its positions
      for each other position:
        if not select(chosen, position): chosen = position
      result[chosen] = combiner(result[chosen], source[window])

Schedule: `lanes` windows in a vector.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from math import prod

from xdsl.dialects.builtin import i1, i32
from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.dimensions import WindowDimension
from mlirhlo.dialects.structured import SelectAndScatterOp
from mlirhlo.dialects.structured.base import ints_of
from mlirhlo.lowering.builder import INDEX, FunctionBuilder, Index
from mlirhlo.lowering.hlo_to_loops.elemental import Elements
from mlirhlo.lowering.hlo_to_loops.elements import Value
from mlirhlo.lowering.hlo_to_loops.folding import fold
from mlirhlo.lowering.hlo_to_loops.loop_kernels import lanes_for
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places
from mlirhlo.lowering.hlo_to_loops.windows import WindowPlaces, inside
from mlirhlo.lowering.loops.kernel import LoopKernel, array, inlined, is_minor, memory_order
from mlirhlo.lowering.loops.lowering import OpLowering, lowers
from mlirhlo.lowering.loops.schedule import LoopSchedule

_FEWEST = 4
"""Fewer lanes are not worth vectors."""
_POSITION_NS = 2.0
"""Time that a vector takes for a position of the windows, about."""


@lowers(SelectAndScatterOp)
class SelectAndScatter(OpLowering[SelectAndScatterOp]):
    """Window by window, or vectors of windows."""

    kinds = ("windows",)

    def lanes(self, op: SelectAndScatterOp, kind: str) -> int:
        """As many as the last dimension in memory has elements for; none where windows run along it."""
        del kind
        if not _are_beside(op):
            return 0
        width = _width(op)
        shapes = [array(v) for v in (op.operand, op.source, op.output)]
        lanes = min(lanes_for(shapes), 1 << width.bit_length() - 1)
        return lanes if lanes >= _FEWEST else 0

    def reason_against(self, op: SelectAndScatterOp, schedule: LoopSchedule) -> str:
        """Vectors need windows beside each other."""
        if schedule.lanes and not _are_beside(op):
            return "its windows do not lie beside each other in memory, each with an element of its own"
        return ""

    def emit(self, k: LoopKernel, op: SelectAndScatterOp, schedule: LoopSchedule) -> None:
        """The result."""
        if schedule.lanes:
            _by_vectors(k, op, schedule.lanes)
        else:
            _by_elements(k, op)


def _width(op: SelectAndScatterOp) -> int:
    """Elements of the operand along its last dimension in memory."""
    return array(op.operand).dimensions[memory_order(op.operand)[-1]]


def window_of(op: SelectAndScatterOp) -> list[WindowDimension]:
    """The windows, by dimension; padding behind is what they reach."""
    columns = (op.window_sizes, op.window_strides, op.window_dilations, op.base_dilations)
    rows = zip(*map(ints_of, (*columns, op.padding_low)), strict=True)
    sizes = zip(array(op.operand).dimensions, array(op.source).dimensions, strict=True)
    found: list[WindowDimension] = []
    for (size, stride, dilation, base, low), (own, count) in zip(rows, sizes, strict=True):
        reach = (count - 1) * stride + (size - 1) * dilation + 1
        high = reach - low - ((own - 1) * base + 1)
        found.append(
            WindowDimension(
                size,
                stride=stride,
                padding_low=low,
                padding_high=high,
                window_dilation=dilation,
                base_dilation=base,
            )
        )
    return found


def _are_beside(op: SelectAndScatterOp) -> bool:
    """Whether each element along the last dimension in memory is a window of its own."""
    operand, source = array(op.operand), array(op.source)
    if not operand.rank or 0 in operand.dimensions or 0 in source.dimensions:
        return False
    minor = memory_order(op.operand)[-1]
    arrays = (op.operand, op.source, op.output)
    if any(array(v).element_type.is_complex or not is_minor(v, minor) for v in arrays):
        return False
    window = window_of(op)
    return _is_apart(window[minor]) and all(d.base_dilation == 1 for d in window)


def _is_apart(d: WindowDimension) -> bool:
    """Whether each element along a dimension is a window of its own."""
    return d.size == d.stride == 1 and d.padding_low == d.padding_high == 0


def _by_elements(k: LoopKernel, op: SelectAndScatterOp) -> None:
    b = k.b
    operand, source = array(op.operand), array(op.source)
    places = Places(b, 0)
    initial = k.read(op.init, (), places)
    with k.nest(operand.dimensions) as place:
        k.write(op.output, place, initial)
    if 0 in operand.dimensions or 0 in source.dimensions:
        return
    rank = operand.rank

    def choose(
        e: Elements, position: Sequence[Coordinate], values: Sequence[Value]
    ) -> Sequence[Value]:
        """Goes on with the element at a position of the window, or with the one before."""
        ((chosen,), *where, value) = values
        found = inside(e, [w.at(e, p) for w, p in zip(windows, position, strict=True)])
        there = found.place
        other = k.read(op.operand, there, places)
        (keeps,) = inlined(places, op.select, [value, other])
        stays = b.andi(chosen, keeps[0])
        if found.mask is not None:
            stays = b.ori(stays, b.xori(found.mask, true))
        return [
            (b.select(stays, chosen, true),),
            *((b.select(stays, w, b.index(c.base)),) for (w,), c in zip(where, there, strict=True)),
            tuple(b.select(stays, x, y) for x, y in zip(value, other, strict=True)),
        ]

    true, false = b.constant(True, i1), b.constant(False, i1)
    with k.nest(source.dimensions) as at:
        start = [(false,), *[(b.constant(0, INDEX),)] * rank, initial]
        e = Elements(places, {})
        rows = zip(at, window_of(op), operand.dimensions, strict=True)
        windows = [WindowPlaces.of(e, *row) for row in rows]
        found = fold(e, [w.positions for w in windows], start, choose)
        ((chosen,), *where, _) = found
        with b.if_(chosen):
            target = [Coordinate(w) for (w,) in where]
            values = [k.written(op.output, target, places), k.read(op.source, at, places)]
            k.write(op.output, target, inlined(places, op.combiner, values)[0])


def _by_vectors(k: LoopKernel, op: SelectAndScatterOp, lanes: int) -> None:
    """Windows that lie beside each other take their positions together, each its own one."""
    b = k.b
    operand, source = array(op.operand), array(op.source)
    window, order = window_of(op), memory_order(op.operand)
    sizes = [d.size for d in window]
    initial = k.read(op.init, (), Places(b, 0))
    splat = tuple(b.broadcast(x, lanes) for x in initial)

    def clear(place: Sequence[Coordinate], places: Places) -> None:
        k.write(op.output, place, splat, lanes, places.mask)

    def windows_at(at: Sequence[Coordinate], places: Places) -> None:
        e = Elements(places, {})
        rows = zip(at, window, operand.dimensions, strict=True)
        found = [WindowPlaces.of(e, *row) for row in rows]

        def where(position: Sequence[Coordinate]) -> tuple[Sequence[Coordinate], SSAValue]:
            number: Index = 0
            for c, size in zip(position, sizes, strict=True):
                number = b.add(b.mul(number, size), c.base)
            lane = b.broadcast(b.cast_index(b.index(number), i32), lanes)
            return [w.at(e, p)[0] for w, p in zip(found, position, strict=True)], lane

        def choose(
            e: Elements, position: Sequence[Coordinate], values: Sequence[Value]
        ) -> Sequence[Value]:
            (chosen,), value = values
            there, number = where(position)
            other = k.read(op.operand, there, places)
            (keeps,) = inlined(places, op.select, [value, other])
            some = b.cmpi("sge", chosen, b.constant(0, chosen.type))
            stays = b.andi(some, keeps[0])
            best = tuple(b.select(stays, x, y) for x, y in zip(value, other, strict=True))
            return [(b.select(stays, chosen, number),), best]

        none = b.broadcast(b.constant(-1, i32), lanes)
        positions = [w.positions for w in found]
        (chosen,), _ = fold(e, positions, [(none,), splat], choose)
        taken = k.read(op.source, at, places)

        def put(e: Elements, position: Sequence[Coordinate], _: Sequence[Value]) -> Sequence[Value]:
            there, number = where(position)
            old = k.written(op.output, there, places)
            (new,) = inlined(places, op.combiner, [old, taken])
            here = b.cmpi("eq", chosen, number)
            value = tuple(b.select(here, x, y) for x, y in zip(new, old, strict=True))
            k.write(op.output, there, value, lanes, places.mask)
            return [(chosen,)]

        fold(e, positions, [(chosen,)], put)

    first = order[0] if len(order) > 1 and _is_apart(window[order[0]]) else None
    count = 1 if first is None else operand.dimensions[first]
    work = _POSITION_NS * prod(sizes) * source.element_count / lanes
    with b.parallel(count, work=work) as number:
        fixed = {} if first is None else {first: Coordinate(number)}
        _vectors(b, order, operand.dimensions, fixed, lanes, clear)
        _vectors(b, order, source.dimensions, fixed, lanes, windows_at)


def _vectors(
    b: FunctionBuilder,
    order: Sequence[int],
    dimensions: Sequence[int],
    fixed: Mapping[int, Coordinate],
    lanes: int,
    body: Callable[[Sequence[Coordinate], Places], None],
) -> None:
    """Loops over the dimensions that are not fixed, in the order of memory; vectors along the last one."""
    *outer, minor = order
    with ExitStack() as stack:
        at = dict(fixed)
        for d in outer:
            if d not in at:
                at[d] = Coordinate(stack.enter_context(b.loop(0, dimensions[d])))
        width = dimensions[minor]
        whole = width - width % lanes
        with b.loop(0, whole, lanes) as i:
            place = {**at, minor: Coordinate(i, 1)}
            body([place[d] for d in range(len(order))], Places(b, lanes))
        if whole < width:
            mask = b.mask(b.index(width - whole), lanes)
            place = {**at, minor: Coordinate(whole, 1)}
            body([place[d] for d in range(len(order))], Places(b, lanes, mask))
