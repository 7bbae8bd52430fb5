"""Which reducers may fold in lanes and parts, and how two parts are put together.

A reducer that is one of the common operations on each of its results folds from its identity, narrow
floats in f32, as XLA:CPU and the interpreter do. Any other, like those of argmax, has to show on samples
that the order of its operands does not matter and that folding something twice is folding it once; then
every lane starts from the initial values. What shows neither folds in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.element_types import F32, Kind, PrimitiveType
from mlirhlo.dialects.hlo.identities import identity_element
from mlirhlo.dialects.hlo.ops import ConstantOp, ReduceOp, ReduceWindowOp, TupleOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.ops.control_flow import CallOp, ParameterOp
from mlirhlo.dialects.hlo.table import OPCODES
from mlirhlo.lowering.builder import FunctionBuilder, lanes_of
from mlirhlo.lowering.hlo_to_loops import extremes
from mlirhlo.lowering.hlo_to_loops.complex_elements import COMPLEX
from mlirhlo.lowering.hlo_to_loops.elemental import Elements
from mlirhlo.lowering.hlo_to_loops.elements import Value, register_type
from mlirhlo.lowering.hlo_to_loops.elementwise_convert import convert, element_type
from mlirhlo.lowering.hlo_to_loops.folds import callee


@dataclass(frozen=True, slots=True)
class Reducer:
    """A computation that folds in any order."""

    computation: ComputationOp
    elements: Sequence[PrimitiveType]
    """Of the results."""
    opcodes: Sequence[str] | None
    """What it does to each result; None for what shows its order on samples."""
    position: int | None = None
    """Without `opcodes`: the operand whose lesser value goes first, where the order matters."""

    @property
    def work(self) -> Sequence[PrimitiveType]:
        """Types in which it folds."""
        if self.opcodes is None:
            return self.elements
        return [F32 if e.is_float and e.bits < 32 else e for e in self.elements]

    def start(self, e: Elements, starts: Sequence[SSAValue]) -> list[Value]:
        """What every lane and part starts from."""
        if self.opcodes is None:
            return [e.at(v, ()) for v in starts]
        rows = zip(self.opcodes, self.work, starts, strict=True)
        return [nothing(e, opcode, element, start) for opcode, element, start in rows]

    def taken(self, b: FunctionBuilder, values: Sequence[Value]) -> list[Value]:
        """Elements in the types it folds in."""
        types = zip(values, self.elements, self.work, strict=True)
        return [convert(b, v, source, target) for v, source, target in types]

    def combined(self, e: Elements, x: Sequence[Value], y: Sequence[Value]) -> list[Value]:
        """Two parts in one, `x` before `y`."""
        if self.opcodes is None:
            return list(e.inline(self.computation, [*x, *y]))
        rows = zip(self.opcodes, self.work, x, y, strict=True)
        return [combined(e.b, opcode, element, p, q) for opcode, element, p, q in rows]

    def joined(self, e: Elements, x: Sequence[Value], y: Sequence[Value]) -> list[Value]:
        """Two parts in one that do not know which is before the other."""
        if self.opcodes is None and self.position is not None:
            b, signed = e.b, self.elements[self.position].is_signed
            (p,), (q,) = x[self.position], y[self.position]
            swapped = b.cmpi("sgt" if signed else "ugt", p, q)
            x, y = (
                [
                    tuple(b.select(swapped, *pair) for pair in zip(v, w, strict=True))
                    for v, w in zip(second, first, strict=True)
                ]
                for first, second in ((x, y), (y, x))
            )
        return self.combined(e, x, y)

    def finished(
        self, e: Elements, values: Sequence[Value], starts: Sequence[SSAValue]
    ) -> list[Value]:
        """Results out of all that was folded, in the types of the results."""
        if self.opcodes is None:
            return list(values)
        initial = self.taken(e.b, [e.at(v, ()) for v in starts])
        total = list(values)
        if initial != self.start(e, starts):  # which changes nothing
            total = self.combined(e, initial, values)
        types = zip(total, self.work, self.elements, strict=True)
        return [convert(e.b, v, source, target) for v, source, target in types]

    def vectors_joined(self, e: Elements, vectors: Sequence[Sequence[Value]]) -> Sequence[Value]:
        """Vectors that were worked on at once in one; with the first of extremes, where a NaN was met."""
        if (opcode := self.extreme_of(vectors[0])) is not None:
            ((_, nans),), *_ = vectors
            return [(extremes.of_vectors(e.b, opcode, [v[0][0] for v in vectors], nans),)]
        total, *more = vectors
        for values in more:
            total = self.joined(e, total, values)
        return total

    def vectors_everywhere(
        self, e: Elements, vectors: Sequence[Sequence[Value]]
    ) -> Sequence[Value]:
        """The same, and lanes in one, in every lane."""
        if (opcode := self.extreme_of(vectors[0])) is not None:
            ((_, nans),), *_ = vectors
            return [(extremes.of_lanes(e.b, opcode, [v[0][0] for v in vectors], nans),)]
        return self.lanes_everywhere(e, self.vectors_joined(e, vectors))

    def lanes_joined(self, e: Elements, values: Sequence[Value]) -> list[Value]:
        """Lanes of vectors in one: each with the one half a vector on, then a quarter on, and so forth."""
        return self.rows_joined(e, [values])[0]

    def lanes_everywhere(
        self, e: Elements, values: Sequence[Value], count: int | None = None
    ) -> Sequence[Value]:
        """The same, in every lane: for each `count` neighbours, all lanes unless it is said."""
        b, lanes = e.b, lanes_of(values[0][0].type)
        distance = (count or lanes) // 2
        if count is None and (opcode := self.extreme_of(values)) is not None:
            return [(extremes.of_lanes(b, opcode, [values[0][0]]),)]
        if count is None and self.is_sum:
            return [(b.broadcast(b.reduce("add", values[0][0]), lanes),)]
        inner = Elements(type(e.places)(b, lanes), e.buffers)
        while distance:
            turned = [at ^ distance for at in range(lanes)]
            values = self.joined(inner, values, _picked(b, values, values, turned))
            distance //= 2
        return values

    @property
    def is_sum(self) -> bool:
        """Whether it is one sum of floats, whose lanes one op adds: halves first, as `lanes_everywhere` does."""
        return self.opcodes == ["add"] and self.work[0].is_float

    @property
    def is_extreme(self) -> bool:
        """Whether it is the greater or the lesser of floats."""
        return self.opcodes in (["maximum"], ["minimum"]) and self.work[0].is_float

    def extreme_of(self, values: Sequence[Value]) -> str | None:
        """The one operation where that is the greater or lesser of floats by an instruction for it."""
        if not self.is_extreme or self.opcodes is None:
            return None
        ((value, *_),), (opcode,) = values, self.opcodes
        return opcode if extremes.has_range(value) else None

    def rows_joined(self, e: Elements, rows: Sequence[Sequence[Value]]) -> list[list[Value]]:
        """The same of several rows: two become one vector of halves, as long as there are two, which takes
        a join for both. The last row stands for those that are wanting to a power of two."""
        b = e.b
        lanes = lanes_of(rows[0][0][0].type)
        if len(rows) > lanes:
            return [self.lanes_joined(e, values) for values in rows]
        if len(rows) == 1 and self.is_sum:
            return [[(b.reduce("add", rows[0][0][0]),)]]
        if len(rows) == 1:
            everywhere = self.lanes_everywhere(e, rows[0])
            return [[tuple(b.extract(p, 0) for p in v) for v in everywhere]]
        inner = Elements(type(e.places)(b, lanes), e.buffers)
        count, distance = len(rows), lanes // 2
        most = 1 << (count - 1).bit_length()
        rows = [*rows, *[rows[-1]] * (most - count)]
        while len(rows) > 1:
            firsts = [at for at in range(2 * lanes) if not at & distance]
            lasts = [at + distance for at in firsts]
            rows = [
                self.joined(inner, *(_picked(b, one, other, places) for places in (firsts, lasts)))
                for one, other in zip(rows[::2], rows[1::2], strict=True)
            ]
            distance //= 2
        each = lanes // most
        values = self.lanes_everywhere(e, rows[0], each)
        return [
            [tuple(b.extract(p, row * each) for p in v) for v in values] for row in range(count)
        ]


def _picked(
    b: FunctionBuilder, x: Sequence[Value], y: Sequence[Value], lanes: Sequence[int]
) -> list[Value]:
    """Lanes of two vectors, counted on, in one."""
    return [
        tuple(b.shuffle(p, q, lanes) for p, q in zip(v, w, strict=True))
        for v, w in zip(x, y, strict=True)
    ]


def reducer_of(op: ReduceOp | ReduceWindowOp) -> Reducer | None:
    """The reducer of an instruction; None when it has to fold in order."""
    computation = callee(op, op.to_apply)
    elements = [element_type(v) for v in op.inputs[: len(op.inputs) // 2]]
    opcodes = _opcodes(computation, len(elements))
    if opcodes is not None:
        if all(has_meaning(o, e) for o, e in zip(opcodes, elements, strict=True)):
            return Reducer(computation, elements, opcodes)
        return None
    # The interpreter is for reducers that are no common operation.
    from mlirhlo.lowering.reducer_samples import order_on_samples

    found = order_on_samples(computation, elements)
    return None if found is None else Reducer(computation, elements, None, found.position)


def plain_reducer(op: ReduceOp | ReduceWindowOp) -> Reducer:
    """The same for what folds in order: it combines two parts as its computation says."""
    elements = [element_type(v) for v in op.inputs[: len(op.inputs) // 2]]
    return Reducer(callee(op, op.to_apply), elements, None)


def has_meaning(opcode: str, element: PrimitiveType) -> bool:
    """Whether a common operation folds elements of a type."""
    if element.is_complex:
        return opcode in ("add", "multiply")
    if element.is_float:
        return opcode in ("add", "multiply", "maximum", "minimum")
    return element.is_integer or (element.kind is Kind.PRED)


def _opcodes(computation: ComputationOp, count: int) -> list[str] | None:
    """The operation on each pair of parameters when that is all there is."""
    root: Instruction = computation.root
    if isinstance(root, CallOp):
        numbers = [o.parameter_number for v in root.inputs if isinstance(o := v.owner, ParameterOp)]
        if numbers != list(range(2 * count)):
            return None
        computation = callee(root, root.to_apply)
        root = computation.root
    if len(computation.parameters) != 2 * count:
        return None
    parts = root.inputs if isinstance(root, TupleOp) else (root.output,)
    opcodes: list[str] = []
    for number, part in enumerate(parts):
        op = cast(Instruction, _unconverted(part).owner)
        if op.opcode.identity is None:
            return None
        owners = [_unconverted(v).owner for v in op.inputs]
        read = {o.parameter_number for o in owners if isinstance(o, ParameterOp)}
        if read != {number, number + count}:
            return None
        opcodes.append(op.opcode.name)
    return opcodes if len(opcodes) == count else None


def _unconverted(value: SSAValue) -> SSAValue:
    """Through conversions between floats: a fold in f32 rounds once, at its end."""
    op = cast(Instruction, value.owner)
    while op.opcode.name == "convert" and element_type(op.inputs[0]).is_float:
        value = op.inputs[0]
        op = cast(Instruction, value.owner)
    return value


def nothing(e: Elements, opcode: str, element: PrimitiveType, initial: SSAValue) -> Value:
    """What changes no result that `initial` is part of."""
    type_ = register_type(element)
    if opcode == "add" and (element.is_float or element.is_complex):
        # -0 leaves -0 as it is; where +0 is part of the sum anyway, it may be so more than once.
        zero = e.constant(0.0 if _is_zero(initial) else -0.0, type_)
        return (zero, zero) if element.is_complex else (zero,)
    if element.is_complex:
        return (e.constant(1.0, type_), e.constant(0.0, type_))
    number = identity_element(OPCODES[opcode], element)
    return (e.constant(cast(float, number), type_),)


def _is_zero(value: SSAValue) -> bool:
    """Whether a value is the constant +0."""
    op = value.owner
    return isinstance(op, ConstantOp) and op.literal is not None and op.literal.is_all(0)


def combined(b: FunctionBuilder, opcode: str, element: PrimitiveType, x: Value, y: Value) -> Value:
    """A common operation on two elements."""
    if element.is_complex:
        return COMPLEX[opcode](b, [x, y])
    (p,), (q,) = x, y
    if element.is_float:
        float_ops = {
            "add": FunctionBuilder.addf,
            "multiply": FunctionBuilder.mulf,
            "maximum": extremes.maximum,
            "minimum": extremes.minimum,
        }
        return (float_ops[opcode](b, p, q),)
    if element.kind is Kind.PRED:
        word = {"add": "or", "maximum": "or", "multiply": "and", "minimum": "and"}
        opcode = word.get(opcode, opcode)
    if opcode in ("maximum", "minimum"):
        most, least = (
            (arith.MaxSIOp, arith.MinSIOp) if element.is_signed else (arith.MaxUIOp, arith.MinUIOp)
        )
        return (b.integer(most if opcode == "maximum" else least, p, q),)
    integer_ops = {"add": b.addi, "multiply": b.muli, "and": b.andi, "or": b.ori, "xor": b.xori}
    return (integer_ops[opcode](p, q),)
