"""Kernels of running folds: reduce-windows that reach back to the first element, or on to the last.

Along the last dimension a vector becomes its own running fold in as many steps as its lanes have bits, and
what went before is folded into all of it; along another one, rows of vectors are folded. Every element is
read once. A reducer that is no common operation may do so too where it shows on samples that it is
associative and that the initial values change nothing; else folds from the first element go one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, cast

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops import ConstantOp, GetTupleElementOp, ReduceWindowOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.lowering.builder import Index, Loop
from mlirhlo.lowering.hlo_to_loops.elemental import Elements
from mlirhlo.lowering.hlo_to_loops.elements import Value
from mlirhlo.lowering.hlo_to_loops.elementwise_convert import convert
from mlirhlo.lowering.hlo_to_loops.kernel_frame import Frame
from mlirhlo.lowering.hlo_to_loops.merging import sizes_of
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places, ranged
from mlirhlo.lowering.hlo_to_loops.reducers import Reducer, plain_reducer, reducer_of

_VECTORS = 4
"""Vectors of neighbours that are summed up together, along other dimensions than the last."""


@dataclass(frozen=True, slots=True)
class Scan:
    """A reduce-window that is a scan."""

    op: ReduceWindowOp
    outputs: Sequence[SSAValue]
    """The arrays a kernel is asked for, before reshapes."""
    parts: Sequence[int]
    """Their numbers among the results of `op`."""
    dimension: int
    is_reverse: bool
    reducer: Reducer
    in_order: bool
    """Whether elements are folded one by one."""


def scan_of(values: Sequence[SSAValue]) -> Scan | None:
    """The scan that computes all of the values, through reshapes that change ones alone."""
    arrays = [_unshaped(v) for v in values]
    (op, *others) = {_array_owner(v): None for v in arrays}
    if others or not isinstance(op, ReduceWindowOp):
        return None
    along = _dimension(op)
    if along is None:
        return None
    dimension, is_reverse = along
    reducer, in_order = reducer_of(op), False
    if reducer is None or reducer.opcodes is None:
        reducer = plain_reducer(op)
        from mlirhlo.lowering.hlo_to_loops.reducer_samples import is_associative_on_samples

        in_order = not is_associative_on_samples(
            reducer.computation, reducer.elements, _initial_values(op)
        )
        if in_order and is_reverse:
            return None
    parts = [v.owner.index if isinstance(v.owner, GetTupleElementOp) else 0 for v in arrays]
    return Scan(op, arrays, parts, dimension, is_reverse, reducer, in_order)


def _unshaped(value: SSAValue) -> SSAValue:
    while cast(Instruction, value.owner).opcode.name == "reshape":
        value = cast(Instruction, value.owner).inputs[0]
    return value


def _array_owner(value: SSAValue) -> Instruction:
    """What computes an array, alone or with others."""
    op = cast(Instruction, value.owner)
    return cast(Instruction, op.inputs[0].owner) if isinstance(op, GetTupleElementOp) else op


def _dimension(op: ReduceWindowOp) -> tuple[int, bool] | None:
    """The dimension that windows reach along, and whether they reach on to its end."""
    sizes = sizes_of(op.inputs[0])
    window = op.window
    found: int | None = None
    for d, (w, size) in enumerate(zip(window.dimensions, sizes, strict=True)):
        plain = w.stride == w.window_dilation == w.base_dilation == 1 and not w.window_reversal
        if not plain or (w.size == 1 and (w.padding_low or w.padding_high)):
            return None
        if w.size == 1:
            continue
        before = (w.padding_low, w.padding_high)
        if found is not None or w.size != size or before not in ((size - 1, 0), (0, size - 1)):
            return None
        found = d
    return None if found is None else (found, window.dimensions[found].padding_low == 0)


def _initial_values(op: ReduceWindowOp) -> list[Any] | None:
    """Numbers that folds start from; None where they are not known."""
    owners = [v.owner for v in op.inputs[len(op.inputs) // 2 :]]
    literals = [o.literal for o in owners if isinstance(o, ConstantOp)]
    if len(literals) < len(owners):
        return None
    return [literal.array.reshape(()) for literal in literals if literal is not None]


def scan_kernel(frame: Frame, scan: Scan) -> FuncOp:
    """The kernel of a scan."""
    _Scan(frame, scan).build()
    return frame.b.finish()


class _Scan:
    def __init__(self, frame: Frame, scan: Scan) -> None:
        self.frame, self.b, self.scan = frame, frame.b, scan
        self.sizes = sizes_of(scan.op.inputs[0])
        self.lanes = frame.lanes
        self.length = self.sizes[scan.dimension]
        self.elements, self.work = scan.reducer.elements, scan.reducer.work

    def build(self) -> None:
        """The loops."""
        b, d = self.b, self.scan.dimension
        outer, inner = prod(self.sizes[:d]), prod(self.sizes[d + 1 :])
        if inner == 1 and not self.scan.in_order:
            with b.parallel(outer, work=self.frame.work) as number:
                self.along(self.place(number, 0))
            return
        width = self.lanes * _VECTORS
        tiles = -(-inner // width)
        last = self.sizes[-1]
        if inner == 1 or last % self.lanes or last < self.lanes:
            # Vectors would not stay in one row: element by element.
            with b.parallel(outer * inner, work=self.frame.work) as number:
                self.down(self.place(b.div(number, inner), b.rem(number, inner)), 0, 1)
            return
        with b.parallel(outer * tiles, work=self.frame.work) as number:
            first = b.mul(b.rem(number, tiles), width)
            count = _VECTORS if inner % width == 0 else 1
            with b.loop(first, b.minimum(b.add(first, width), inner), count * self.lanes) as c:
                self.down(self.place(b.div(number, tiles), c), self.lanes, count)

    def place(self, outer: Index, inner: Index) -> list[Coordinate]:
        """Coordinates of the first of the elements that are added up."""
        d, places = self.scan.dimension, Places(self.b, 0)
        before = ranged(places.unlinear(Coordinate(outer), self.sizes[:d]), self.sizes[:d])
        after = self.sizes[d + 1 :]
        return [*before, Coordinate(0), *ranged(places.unlinear(Coordinate(inner), after), after)]

    def start(self, e: Elements) -> list[Value]:
        """What everything is folded into."""
        initial = self.scan.op.inputs[len(self.elements) :]
        return self.scan.reducer.taken(self.b, [e.at(v, ()) for v in initial])

    def combined(self, e: Elements, x: Sequence[Value], y: Sequence[Value]) -> list[Value]:
        """Two parts in one, `x` before `y` in the order of the scan."""
        if self.scan.is_reverse:
            x, y = y, x
        return self.scan.reducer.combined(e, x, y)

    def taken(self, e: Elements, place: Sequence[Coordinate]) -> list[Value]:
        """Elements in the types that are folded in."""
        operands = self.scan.op.inputs[: len(self.elements)]
        return self.scan.reducer.taken(self.b, [e.at(v, place) for v in operands])

    def store(self, e: Elements, place: Sequence[Coordinate], values: Sequence[Value]) -> None:
        """Results."""
        for number, part in enumerate(self.scan.parts):
            done = convert(self.b, values[part], self.work[part], self.elements[part])
            self.frame.store(number, [c.base for c in place], done, e.places)

    def down(self, place: Sequence[Coordinate], lanes: int, count: int) -> None:
        """One element, or `count` vectors of neighbours, after the other."""
        b, d = self.b, self.scan.dimension
        e = Elements(Places(b, lanes), self.frame.buffers)
        starts = [self.start(e)] * count
        with b.loop(0, self.length, 1, _flat(starts)) as loop:
            inner = e.scope()
            carried = _like(starts, loop.carried)
            index: Index = loop.index
            if self.scan.is_reverse:
                index = b.sub(self.length - 1, loop.index)
            following: list[Sequence[Value]] = []
            for n, before in enumerate(carried):
                here = [*place[:d], Coordinate(index), *place[d + 1 :]]
                if lanes:
                    last = place[-1]
                    first = b.add(last.base, n * lanes)
                    here[-1] = Coordinate(first, 1, None, 1, last.within)
                values = self.combined(inner, before, self.taken(inner, here))
                self.store(inner, here, values)
                following.append(values)
            loop.carry(*_flat(following))

    def along(self, place: Sequence[Coordinate]) -> None:
        """Along the last dimension."""
        b, lanes = self.b, self.lanes
        e = Elements(Places(b, lanes), self.frame.buffers)
        whole = self.length - self.length % lanes
        carried: Sequence[Value] = self.start(e)
        mask = b.mask(b.index(self.length - whole), lanes) if whole < self.length else None
        rest = e.scope(Places(b, lanes, mask))
        reverse = self.scan.is_reverse
        if reverse and mask is not None:
            carried = self.vector(rest, place, whole, carried)
        if whole:
            with b.loop(0, whole, lanes, _flat([carried])) as loop:
                index: Index = loop.index
                if reverse:
                    index = b.sub(whole - lanes, loop.index)
                (before,) = _like([carried], loop.carried)
                loop.carry(*_flat([self.vector(e.scope(), place, index, before)]))
            (carried,) = _like([carried], cast(Loop, loop).results)
        if not reverse and mask is not None:
            self.vector(rest, place, whole, carried)

    def vector(
        self, e: Elements, place: Sequence[Coordinate], index: Index, carried: Sequence[Value]
    ) -> list[Value]:
        """A vector of results; the last of them in every lane."""
        b, lanes, reverse = self.b, self.lanes, self.scan.is_reverse
        d = self.scan.dimension
        ones = place[d + 1 :]
        here = [*place[:d], Coordinate(index, 1, None, lanes, (0, self.length)), *ones]
        nothing = self.scan.reducer.start(e, self.scan.op.inputs[len(self.elements) :])
        values: Sequence[Value] = self.taken(e, here)
        if (mask := e.places.mask) is not None:
            values = self.each(lambda p, q: b.select(mask, p, q), values, nothing)
        distance = 1
        while distance < lanes:
            # Lanes as far before, or behind; where there are none, what changes nothing.
            shifted = [n + distance if reverse else n - distance for n in range(lanes)]
            picked = [n if 0 <= n < lanes else lanes for n in shifted]
            moved = self.each(partial(b.shuffle, lanes=picked), values, nothing)
            values = self.combined(e, moved, values)
            distance *= 2
        values = self.combined(e, carried, values)
        self.store(e, here, values)
        final = 0 if reverse else lanes - 1
        return self.each(partial(b.shuffle, lanes=[final] * lanes), values, values)

    def each(
        self,
        function: Callable[[SSAValue, SSAValue], SSAValue],
        x: Sequence[Value],
        y: Sequence[Value],
    ) -> list[Value]:
        """A function of registers, applied to two folds."""
        return [
            tuple(function(p, q) for p, q in zip(v, w, strict=True))
            for v, w in zip(x, y, strict=True)
        ]


def _flat(folds: Sequence[Sequence[Value]]) -> list[SSAValue]:
    """The registers of several folds, as a loop carries them."""
    return [p for values in folds for v in values for p in v]


def _like(folds: Sequence[Sequence[Value]], registers: Sequence[SSAValue]) -> list[list[Value]]:
    """The other way round."""
    rest = iter(registers)
    return [[tuple(next(rest) for _ in v) for v in values] for values in folds]
