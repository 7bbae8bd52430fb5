"""Kernels of running sums, products, maxima: reduce-windows that reach back to the first element.

Along the last dimension a vector becomes its own running sum in as many steps as its lanes have bits, and
what went before is added to all of it; along another one, rows of vectors are added up. Every element is
read once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import cast

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops import ReduceWindowOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.lowering.builder import Index, Loop
from mlirhlo.lowering.hlo_to_loops.elemental import Elements
from mlirhlo.lowering.hlo_to_loops.elements import Value
from mlirhlo.lowering.hlo_to_loops.elementwise_convert import convert
from mlirhlo.lowering.hlo_to_loops.kernel_frame import Frame
from mlirhlo.lowering.hlo_to_loops.merging import sizes_of
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places, ranged
from mlirhlo.lowering.hlo_to_loops.reducers import Reducer, reducer_of

_VECTORS = 4
"""Vectors of neighbours that are summed up together, along other dimensions than the last."""


@dataclass(frozen=True, slots=True)
class Scan:
    """A reduce-window that is a scan."""

    op: ReduceWindowOp
    dimension: int
    is_reverse: bool
    reducer: Reducer


def scan_of(value: SSAValue) -> Scan | None:
    """The scan that computes a value, through reshapes that change ones alone."""
    op = cast(Instruction, value.owner)
    while op.opcode.name == "reshape":
        op = cast(Instruction, op.inputs[0].owner)
    if not isinstance(op, ReduceWindowOp) or not isinstance(shape_of(op.output.type), ArrayShape):
        return None
    sizes = sizes_of(op.inputs[0])
    window = op.window
    assert window is not None
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
    if found is None:
        return None
    reducer = reducer_of(op)
    if reducer is None or reducer.opcodes is None:
        return None
    return Scan(op, found, window.dimensions[found].padding_low == 0, reducer)


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
        (self.element,), (self.work,) = scan.reducer.elements, scan.reducer.work

    def build(self) -> None:
        """The loops."""
        b, d = self.b, self.scan.dimension
        outer, inner = prod(self.sizes[:d]), prod(self.sizes[d + 1 :])
        if inner == 1:
            with b.parallel(outer, work=self.frame.work) as number:
                self.along(self.place(number, 0))
            return
        width = self.lanes * _VECTORS
        tiles = -(-inner // width)
        last = self.sizes[-1]
        if last % self.lanes or last < self.lanes:
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

    def start(self, e: Elements) -> Value:
        """What everything is added to."""
        (value,) = self.scan.reducer.taken(self.b, [e.at(self.scan.op.inputs[1], ())])
        return value

    def combined(self, e: Elements, x: Value, y: Value) -> Value:
        """`x` before `y`, in the order of the scan."""
        (value,) = self.scan.reducer.combined(e, [x], [y])
        return value

    def taken(self, e: Elements, place: Sequence[Coordinate]) -> Value:
        """An element in the type that is folded in."""
        return convert(self.b, e.at(self.scan.op.inputs[0], place), self.element, self.work)

    def store(self, e: Elements, place: Sequence[Coordinate], value: Value) -> None:
        """A result."""
        done = convert(self.b, value, self.work, self.element)
        self.frame.store(0, [c.base for c in place], done, e.places)

    def down(self, place: Sequence[Coordinate], lanes: int, count: int) -> None:
        """Along a dimension that is not the last: `count` vectors of neighbours."""
        b, d = self.b, self.scan.dimension
        e = Elements(Places(b, lanes), self.frame.buffers)
        starts = [self.start(e)] * count
        with b.loop(0, self.length, 1, [p for v in starts for p in v]) as loop:
            inner = e.scope()
            carried = iter(loop.carried)
            index: Index = loop.index
            if self.scan.is_reverse:
                index = b.sub(self.length - 1, loop.index)
            following: list[SSAValue] = []
            for n, start in enumerate(starts):
                before = tuple(next(carried) for _ in start)
                last = place[-1]
                along = Coordinate(
                    b.add(last.base, n * lanes), 1 if lanes else 0, None, 1, last.within
                )
                here = [*place[:d], Coordinate(index), *place[d + 1 : -1], along]
                value = self.combined(inner, before, self.taken(inner, here))
                self.store(inner, here, value)
                following += value
            loop.carry(*following)

    def along(self, place: Sequence[Coordinate]) -> None:
        """Along the last dimension."""
        b, lanes = self.b, self.lanes
        e = Elements(Places(b, lanes), self.frame.buffers)
        whole = self.length - self.length % lanes
        carried = list(self.start(e))
        mask = b.mask(b.index(self.length - whole), lanes) if whole < self.length else None
        rest = e.scope(Places(b, lanes, mask))
        reverse = self.scan.is_reverse
        if reverse and mask is not None:
            carried = self.vector(rest, place, whole, carried)
        if whole:
            with b.loop(0, whole, lanes, carried) as loop:
                index: Index = loop.index
                if reverse:
                    index = b.sub(whole - lanes, loop.index)
                loop.carry(*self.vector(e.scope(), place, index, loop.carried))
            carried = list(cast(Loop, loop).results)
        if not reverse and mask is not None:
            self.vector(rest, place, whole, carried)

    def vector(
        self, e: Elements, place: Sequence[Coordinate], index: Index, carried: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """A vector of results; the last of them in every lane."""
        b, lanes, reverse = self.b, self.lanes, self.scan.is_reverse
        d = self.scan.dimension
        ones = place[d + 1 :]
        here = [*place[:d], Coordinate(index, 1, None, lanes, (0, self.length)), *ones]
        (nothing,) = self.scan.reducer.start(e, [])
        value = self.taken(e, here)
        if e.places.mask is not None:
            value = tuple(
                b.select(e.places.mask, p, q) for p, q in zip(value, nothing, strict=True)
            )
        distance = 1
        while distance < lanes:
            # Lanes as far before, or behind; where there are none, what changes nothing.
            shifted = [n + distance if reverse else n - distance for n in range(lanes)]
            picked = [n if 0 <= n < lanes else lanes for n in shifted]
            moved = tuple(b.shuffle(p, q, picked) for p, q in zip(value, nothing, strict=True))
            value = self.combined(e, moved, value)
            distance *= 2
        value = self.combined(e, tuple(carried), value)
        self.store(e, here, value)
        final = 0 if reverse else lanes - 1
        return [b.shuffle(p, p, [final] * lanes) for p in value]
