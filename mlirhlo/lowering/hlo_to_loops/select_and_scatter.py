"""select-and-scatter: values of the source combined in where the selected element of each window lies.

The first element of a window stays selected until `select(selected, other)` is false.

    result = initial
    for each window:                 # vectors of them, where memory has them side by side and apart
      chosen = first of its positions
      for each other position:
        if not select(chosen, position): chosen = position
      result[chosen] = scatter(result[chosen], source[window])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from math import prod
from typing import Any

from xdsl.dialects.builtin import i1, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops.reduction import SelectAndScatterOp
from mlirhlo.lowering.builder import INDEX, FunctionBuilder, Index
from mlirhlo.lowering.hlo_to_loops.array_kernel import ArrayKernel, is_minor
from mlirhlo.lowering.hlo_to_loops.elemental import Elements
from mlirhlo.lowering.hlo_to_loops.elements import Value, physical_order
from mlirhlo.lowering.hlo_to_loops.folding import fold
from mlirhlo.lowering.hlo_to_loops.folds import callee
from mlirhlo.lowering.hlo_to_loops.kernels import builds
from mlirhlo.lowering.hlo_to_loops.loop_kernels import lanes_for
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places
from mlirhlo.lowering.hlo_to_loops.windows import WindowPlaces, inside

_FEWEST = 4
"""Fewer lanes are not worth vectors."""
_POSITION_NS = 2.0
"""Time that a vector takes for a position of the windows, about."""


@builds("select-and-scatter")
def select_and_scatter(name: str, op: Any) -> FuncOp:
    """The kernel of a select-and-scatter."""
    assert isinstance(op, SelectAndScatterOp)
    k = ArrayKernel(name, op)
    lanes = _lanes(k, op)
    return _by_vectors(k, op, lanes) if lanes else _by_elements(k, op)


def _by_elements(k: ArrayKernel, op: SelectAndScatterOp) -> FuncOp:
    b = k.b
    operand, source, _ = k.operands
    window = op.window
    places = Places(b, 0)
    initial = k.read(2, (), places)
    with k.nest(operand.dimensions) as place:
        k.write(3, place, initial)
    if 0 in operand.dimensions or 0 in source.dimensions:
        return k.finish()
    select, combine = callee(op, op.select), callee(op, op.scatter)
    rank = operand.rank

    def choose(
        e: Elements, position: Sequence[Coordinate], values: Sequence[Value]
    ) -> Sequence[Value]:
        """Goes on with the element at a position of the window, or with the one before."""
        ((chosen,), *where, value) = values
        found = inside(e, [w.at(e, p) for w, p in zip(windows, position, strict=True)])
        there = found.place
        other = k.read(0, there, places)
        (keeps,) = e.inline(select, [value, other])
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
        rows = zip(at, window.dimensions, operand.dimensions, strict=True)
        windows = [WindowPlaces.of(e, *row) for row in rows]
        found = fold(e, [w.positions for w in windows], start, choose)
        ((chosen,), *where, _) = found
        with b.if_(chosen):
            target = [Coordinate(w) for (w,) in where]
            values = [k.read(3, target, places), k.read(1, at, places)]
            k.write(3, target, Elements(places, {}).inline(combine, values)[0])
    return k.finish()


def _lanes(k: ArrayKernel, op: SelectAndScatterOp) -> int:
    """Lanes along the last dimension in memory; 0 where windows run along it, or few elements do."""
    operand, source, _ = k.operands
    window = op.window
    if not operand.rank or 0 in operand.dimensions or 0 in source.dimensions:
        return 0
    minor = physical_order(operand)[-1]
    shapes = (operand, source, *k.results)
    if any(s.element_type.is_complex or not is_minor(s, minor) for s in shapes):
        return 0
    if any(d.base_dilation > 1 for d in window.dimensions):
        return 0
    lanes = min(lanes_for(shapes), 1 << operand.dimensions[minor].bit_length() - 1)
    return lanes if lanes >= _FEWEST and _is_apart(window.dimensions[minor]) else 0


def _is_apart(d: Any) -> bool:
    """Whether each element along a dimension is a window of its own."""
    return bool(d.size == d.stride == 1 and d.padding_low == d.padding_high == 0)


def _by_vectors(k: ArrayKernel, op: SelectAndScatterOp, lanes: int) -> FuncOp:
    """Windows that lie beside each other take their positions together, each its own one."""
    b = k.b
    operand, source, _ = k.operands
    window = op.window
    order = physical_order(operand)
    select, combine = callee(op, op.select), callee(op, op.scatter)
    sizes = [d.size for d in window.dimensions]
    initial = k.read(2, (), Places(b, 0))
    splat = tuple(b.broadcast(x, lanes) for x in initial)

    def clear(place: Sequence[Coordinate], places: Places) -> None:
        k.write(3, place, splat, lanes, places.mask)

    def windows_at(at: Sequence[Coordinate], places: Places) -> None:
        e = Elements(places, {})
        rows = zip(at, window.dimensions, operand.dimensions, strict=True)
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
            other = k.read(0, there, places)
            (keeps,) = e.inline(select, [value, other])
            some = b.cmpi("sge", chosen, b.constant(0, chosen.type))
            stays = b.andi(some, keeps[0])
            best = tuple(b.select(stays, x, y) for x, y in zip(value, other, strict=True))
            return [(b.select(stays, chosen, number),), best]

        none = b.broadcast(b.constant(-1, i32), lanes)
        positions = [w.positions for w in found]
        (chosen,), _ = fold(e, positions, [(none,), splat], choose)
        taken = k.read(1, at, places)

        def put(e: Elements, position: Sequence[Coordinate], _: Sequence[Value]) -> Sequence[Value]:
            there, number = where(position)
            old = k.read(3, there, places)
            (new,) = e.inline(combine, [old, taken])
            here = b.cmpi("eq", chosen, number)
            value = tuple(b.select(here, x, y) for x, y in zip(new, old, strict=True))
            k.write(3, there, value, lanes, places.mask)
            return [(chosen,)]

        fold(e, positions, [(chosen,)], put)

    first = order[0] if len(order) > 1 and _is_apart(window.dimensions[order[0]]) else None
    count = 1 if first is None else operand.dimensions[first]
    work = _POSITION_NS * prod(sizes) * source.element_count / lanes
    with b.parallel(count, work=work) as number:
        fixed = {} if first is None else {first: Coordinate(number)}
        _vectors(b, order, operand.dimensions, fixed, lanes, clear)
        _vectors(b, order, source.dimensions, fixed, lanes, windows_at)
    return k.finish()


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
