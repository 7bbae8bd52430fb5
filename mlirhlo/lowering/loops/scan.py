"""scan: a state carried along a dimension.

Kinds, in the schedule:
`along`    a vector of neighbours along the dimension becomes its own running fold in as many steps as its lanes
           have bits; then what went before is folded into all of it
`across`   vectors of neighbours along the last dimension carry a state each, `chunk` of them together
`elements` one element after the other

`along` needs a fold that may be cut in parts. `chunk` lines are a part of the parallel loop of the other kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from math import prod
from typing import cast

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.element_types import F32, PrimitiveType
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.structured import ScanOp
from mlirhlo.dialects.structured.base import yielded
from mlirhlo.importing import LATE
from mlirhlo.lowering.builder import Index, Loop
from mlirhlo.lowering.hlo_to_loops.array_kernel import bytes_of, in_chunks
from mlirhlo.lowering.hlo_to_loops.elemental import Elements
from mlirhlo.lowering.hlo_to_loops.elements import Value
from mlirhlo.lowering.hlo_to_loops.elementwise_convert import convert
from mlirhlo.lowering.hlo_to_loops.kernel_frame import vector_lanes
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places, ranged
from mlirhlo.lowering.hlo_to_loops.reducers import combined, has_meaning, nothing
from mlirhlo.lowering.hlo_to_loops.work import BYTES_PER_NS, ELEMENT_NS
from mlirhlo.lowering.loops.kernel import LoopKernel, array, inlined, is_minor
from mlirhlo.lowering.loops.lowering import OpLowering, lowers
from mlirhlo.lowering.loops.schedule import LoopSchedule

with LATE:
    from mlirhlo.lowering import reducer_samples


_VECTORS = 4
"""Vectors of neighbours that carry their states together."""


@lowers(ScanOp)
class Scan(OpLowering[ScanOp]):
    """Lines one by one, or vectors of lines."""

    kinds = ("along", "across", "elements")

    def kind(self, op: ScanOp) -> str:
        """Vectors where memory has them side by side."""
        if _is_along(op) and (opcodes_of(op) is not None or _is_associative(op)):
            return "along"
        return "across" if _is_across(op, self.lanes(op, "across")) else "elements"

    def lanes(self, op: ScanOp, kind: str) -> int:
        """As many as a register holds of the widest element."""
        return 0 if kind == "elements" else vector_lanes([*op.inputs, *op.outputs])

    def chunk(self, op: ScanOp, schedule: LoopSchedule) -> int:
        """A line, or a few vectors of lines."""
        del op
        return _VECTORS if schedule.kind == "across" else 1

    def reason_against(self, op: ScanOp, schedule: LoopSchedule) -> str:
        """Vectors need neighbours in memory."""
        kind, lanes = schedule.kind, schedule.lanes
        if schedule.chunk < 1 or (lanes < 2) != (kind == "elements"):
            return "`elements` has no lanes, the other kinds have some; a chunk is one line or more"
        if kind == "along" and not _is_along(op):
            return "it is not associative along the last dimension in memory"
        if kind == "across" and not _is_across(op, lanes):
            return "the last dimension in memory is scanned, or has no whole number of vectors"
        return ""

    def emit(self, k: LoopKernel, op: ScanOp, schedule: LoopSchedule) -> None:
        """The outputs, and the last states."""
        _Scan(k, op, schedule).build()


def opcodes_of(op: ScanOp) -> list[str] | None:
    """What the body does to each state when that is one common operation, whose identity is known."""
    count = len(op.inits)
    results = yielded(op.body)
    states, arguments = results[-count:], op.body.block.args
    if op.associative is None or results[:count] != states:
        return None
    opcodes: list[str] = []
    for number, (result, init) in enumerate(zip(states, op.inits, strict=True)):
        inner = result.owner
        if not isinstance(inner, Instruction) or inner.opcode.identity is None:
            return None
        if set(inner.inputs) != {arguments[number], arguments[number + count]}:
            return None
        if not has_meaning(inner.opcode.name, array(init).element_type):
            return None
        opcodes.append(inner.opcode.name)
    return opcodes


def _is_associative(op: ScanOp) -> bool:
    """Whether samples show that the body may be applied to parts, but for rounding."""
    step = reducer_samples.step_of(op.body)
    elements = [array(v).element_type for v in op.inits]
    return step is not None and reducer_samples.is_associative_on_samples(step, elements)


def _is_along(op: ScanOp) -> bool:
    is_last = all(is_minor(v, op.dim) for v in (*op.inputs, *op.outputs[: len(op.inputs)]))
    return op.associative is not None and is_last


def _is_across(op: ScanOp, lanes: int) -> bool:
    sizes = array(op.inputs[0]).dimensions
    last = len(sizes) - 1
    arrays = (*op.inputs, *op.outputs[: len(op.outputs) - len(op.inits)])
    if last == op.dim or sizes[last] % lanes or not sizes[last]:
        return False
    if any(array(v).element_type.is_complex for v in op.outputs):
        return False
    states = op.outputs[len(op.outputs) - len(op.inits) :]
    return all(is_minor(v, last) for v in arrays) and all(is_minor(v, last - 1) for v in states)


class _Scan:
    def __init__(self, k: LoopKernel, op: ScanOp, schedule: LoopSchedule) -> None:
        self.k, self.b, self.op, self.schedule = k, k.b, op, schedule
        self.sizes = array(op.inputs[0]).dimensions
        self.length, self.lanes = self.sizes[op.dim], schedule.lanes
        self.split = len(op.outputs) - len(op.inits)
        self.opcodes = opcodes_of(op)
        self.elements = [array(v).element_type for v in op.inits]
        self.work = [self.work_type(e) for e in self.elements]
        outer, inner = self.sizes[: op.dim], self.sizes[op.dim + 1 :]
        self.outer, self.inner = prod(outer), prod(inner)
        memory = sum(bytes_of(array(v)) for v in (*op.inputs, *op.outputs))
        steps = sum(array(v).element_count for v in op.inputs)
        self.ns = memory / BYTES_PER_NS + steps * ELEMENT_NS

    def work_type(self, element: PrimitiveType) -> PrimitiveType:
        """The type in which states are carried: common operations on narrow floats are done in f32."""
        is_narrow = element.is_float and element.bits < 32
        return F32 if is_narrow and self.opcodes is not None else element

    def build(self) -> None:
        """The loops."""
        b, kind = self.b, self.schedule.kind
        if kind == "along":
            with self.lines(self.outer * self.inner) as number:
                self.along(self.first(number, 0))
        elif kind == "elements":
            with self.lines(self.outer * self.inner) as number:
                self.down(self.first(b.div(number, self.inner), b.rem(number, self.inner)), 0, 1)
        else:
            self.across()

    @contextmanager
    def lines(self, count: int) -> Generator[Index]:
        """A loop over lines, `chunk` of them in a part of the parallel loop."""
        if self.schedule.chunk == 1:
            with self.b.parallel(count, work=self.ns) as number:
                yield number
            return
        with in_chunks(self.b, [count], [], self.schedule.chunk, self.ns) as ((number,), _):
            yield number.base

    def across(self) -> None:
        """Tiles of vectors of neighbours."""
        b, inner = self.b, self.inner
        width = self.lanes * self.schedule.chunk
        tiles = -(-inner // width)
        with b.parallel(self.outer * tiles, work=self.ns) as number:
            first = b.mul(b.rem(number, tiles), width)
            count = self.schedule.chunk if inner % width == 0 else 1
            with b.loop(first, b.minimum(b.add(first, width), inner), count * self.lanes) as c:
                self.down(self.first(b.div(number, tiles), c), self.lanes, count)

    def first(self, outer: Index, inner: Index) -> list[Coordinate]:
        """Where a line begins."""
        d, places = self.op.dim, Places(self.b, 0)
        before, after = self.sizes[:d], self.sizes[d + 1 :]
        return [
            *ranged(places.unlinear(Coordinate(outer), before), before),
            Coordinate(0),
            *ranged(places.unlinear(Coordinate(inner), after), after),
        ]

    def read(
        self, values: Sequence[SSAValue], at: Sequence[Coordinate], places: Places
    ) -> list[Value]:
        """Elements of arrays, in the types in which states are carried."""
        elements: list[Value] = []
        for number, value in enumerate(values):
            element = array(value).element_type
            work = self.work[number] if self.opcodes is not None else element
            elements.append(convert(self.b, self.k.read(value, at, places), element, work))
        return elements

    def write(
        self, number: int, at: Sequence[Coordinate], values: Sequence[Value], places: Places
    ) -> None:
        """Elements of results, from that of `number` on."""
        for n, value in enumerate(values):
            result = self.op.outputs[number + n]
            element = array(result).element_type
            work = self.work[n] if self.opcodes is not None else element
            done = convert(self.b, value, work, element)
            self.k.write(result, at, done, places.lanes, places.mask)

    def step(
        self, places: Places, x: Sequence[Value], state: Sequence[Value]
    ) -> tuple[Sequence[Value], Sequence[Value]]:
        """Outputs, and the next state."""
        if self.opcodes is not None:
            rows = zip(self.opcodes, self.work, state, x, strict=True)
            values = [combined(self.b, *row) for row in rows]
            return values, values
        values = inlined(places, self.op.body, [*x, *state])
        return values[: self.split], values[self.split :]

    def down(self, at: Sequence[Coordinate], lanes: int, count: int) -> None:
        """One element, or `count` vectors of neighbours, after the other."""
        b, d = self.b, self.op.dim
        places = Places(b, lanes)
        starts: list[list[Coordinate]] = []
        for n in range(count):
            start = list(at)
            if lanes:
                last = at[-1]
                start[-1] = Coordinate(b.add(last.base, n * lanes), 1, None, 1, last.within)
            starts.append(start)
        states = [self.read(self.op.inits, [*s[:d], *s[d + 1 :]], places) for s in starts]
        with b.loop(0, self.length, 1, _flat(states)) as loop:
            index: Index = loop.index
            if self.op.reverse is not None:
                index = b.sub(self.length - 1, loop.index)
            following: list[Sequence[Value]] = []
            for start, state in zip(starts, _like(states, loop.carried), strict=True):
                here = [*start[:d], Coordinate(index), *start[d + 1 :]]
                inputs = self.read(self.op.inputs, here, places)
                outputs, after = self.step(places, inputs, state)
                self.write(0, here, outputs, places)
                following.append(after)
            loop.carry(*_flat(following))
        for start, state in zip(starts, _like(states, cast(Loop, loop).results), strict=True):
            self.write(self.split, [*start[:d], *start[d + 1 :]], state, places)

    def along(self, at: Sequence[Coordinate]) -> None:
        """A line, in vectors; the rest of one is its last vector, or the first in reverse."""
        b, lanes, d = self.b, self.lanes, self.op.dim
        reverse = self.op.reverse is not None
        rest = self.length % lanes
        whole = self.length - rest
        line = [*at[:d], *at[d + 1 :]]
        carried: Sequence[Value] = self.read(self.op.inits, line, Places(b, lanes))
        if reverse and rest:
            carried = self.vector(at, whole, carried, rest)
        if whole:
            with b.loop(0, whole, lanes, _flat([carried])) as loop:
                index: Index = loop.index
                if reverse:
                    index = b.sub(whole - lanes, loop.index)
                (before,) = _like([carried], loop.carried)
                loop.carry(*_flat([self.vector(at, index, before, lanes)]))
            (carried,) = _like([carried], cast(Loop, loop).results)
        if not reverse and rest:
            carried = self.vector(at, whole, carried, rest)
        if any(v.first_use for v in self.op.outputs[self.split :]):
            last = [tuple(b.extract(part, 0) for part in value) for value in carried]
            self.write(self.split, line, last, Places(b, 0))

    def vector(
        self, at: Sequence[Coordinate], index: Index, carried: Sequence[Value], count: int
    ) -> list[Value]:
        """The first `count` elements of a vector of results; the last of them, in scan order, in every lane."""
        b, lanes, reverse, d = self.b, self.lanes, self.op.reverse is not None, self.op.dim
        mask = b.mask(b.index(count), lanes) if count < lanes else None
        places = Places(b, lanes, mask)
        here = list(at)
        here[d] = Coordinate(index, 1, None, lanes, (0, self.length))
        values = self.read(self.op.inputs, here, places)
        identity = self.identity(places)
        if identity is not None and mask is not None:
            values = _each(partial(b.select, mask), values, identity)
        distance = 1
        while distance < lanes:
            # Lanes as far before, or behind; where there are none, what changes nothing.
            sources = [n + distance if reverse else n - distance for n in range(lanes)]
            picked = [n if 0 <= n < lanes else lanes for n in sources]
            moved = _each(partial(b.shuffle, lanes=picked), values, identity or values)
            _, folded = self.step(places, values, moved)
            if identity is None:
                steps = b.steps(lanes)
                limit = b.constant(count - distance if reverse else distance, steps.type)
                has_source = b.cmpi("slt" if reverse else "sge", steps, limit)
                folded = _each(partial(b.select, has_source), folded, values)
            values, distance = list(folded), 2 * distance
        values = list(self.step(places, values, carried)[1])
        self.write(0, here, values, places)
        final = 0 if reverse else count - 1
        return _each(partial(b.shuffle, lanes=[final] * lanes), values, values)

    def identity(self, places: Places) -> list[Value] | None:
        """What changes no state; None where that is not known."""
        if self.opcodes is None:
            return None
        e = Elements(places, {})
        rows = zip(self.opcodes, self.work, self.op.inits, strict=True)
        return [nothing(e, *row) for row in rows]


def _each(
    function: Callable[[SSAValue, SSAValue], SSAValue], x: Sequence[Value], y: Sequence[Value]
) -> list[Value]:
    """A function of registers, applied to two states."""
    return [
        tuple(function(p, q) for p, q in zip(v, w, strict=True)) for v, w in zip(x, y, strict=True)
    ]


def _flat(states: Sequence[Sequence[Value]]) -> list[SSAValue]:
    """The registers of several states, as a loop carries them."""
    return [p for values in states for v in values for p in v]


def _like(states: Sequence[Sequence[Value]], registers: Sequence[SSAValue]) -> list[list[Value]]:
    """The other way round."""
    rest = iter(registers)
    return [[tuple(next(rest) for _ in v) for v in values] for values in states]
