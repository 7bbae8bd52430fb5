"""Bodies of structured ops: blocks of HLO instructions on scalars.

A computation of scalars that an instruction applies (a reducer, a comparator, a function of elements) becomes a
body of its instructions; calls within it are entered by a stack, not by recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import TensorType, i32, i64
from xdsl.ir import Attribute, Block, SSAValue

from mlirhlo.diagnostics import HloError, error
from mlirhlo.dialects.hlo import build
from mlirhlo.dialects.hlo.attributes.base import string
from mlirhlo.dialects.hlo.element_types import BY_MLIR, PRED, PrimitiveType
from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr
from mlirhlo.dialects.hlo.ops import (
    OP_CLASSES,
    ComputationOp,
    ConstantOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
)
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.table import ANNOTATIONS, opcodes
from mlirhlo.dialects.hlo.types import shape_of, type_of
from mlirhlo.dialects.quick import create_op, new_block
from mlirhlo.dialects.structured import IndexOp, YieldOp

Scalars: TypeAlias = "tuple[SSAValue, ...]"


def scalar_type(element: PrimitiveType) -> Attribute:
    """The type of a scalar in a body."""
    return type_of(ArrayShape(element, ()))


def element_of(value: SSAValue) -> PrimitiveType:
    """Element type of a scalar."""
    return BY_MLIR[cast("TensorType[Attribute]", value.type).element_type]


class Body:
    """A body under construction."""

    def __init__(self, elements: Sequence[PrimitiveType]) -> None:
        self.block: Block = new_block([scalar_type(element) for element in elements])
        self.arguments: Scalars = tuple(self.block.args)
        self._indices: dict[int, SSAValue] = {}

    def emit(
        self,
        opcode: str,
        operands: Sequence[SSAValue],
        element: PrimitiveType,
        properties: Mapping[str, Attribute] | None = None,
    ) -> SSAValue:
        """An instruction on scalars; its result."""
        cls = OP_CLASSES[opcode]
        op = build.create(cls, operands, scalar_type(element), dict(properties or {}))
        build.append(self.block, op)
        return op.output

    def convert(self, value: SSAValue, element: PrimitiveType) -> SSAValue:
        """A scalar in another element type."""
        return value if element_of(value) is element else self.emit("convert", [value], element)

    def bits(self, value: SSAValue, element: PrimitiveType) -> SSAValue:
        """The bits of a scalar as another element type of its width; pred counts as a byte of 0 or 1."""
        own = element_of(value)
        if own is element:
            return value
        if PRED in (own, element):
            return self.convert(value, element)
        return self.emit("bitcast-convert", [value], element)

    def compare(self, direction: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """A pred."""
        return self.emit("compare", [lhs, rhs], PRED, {"direction": string(direction)})

    def constant(self, element: PrimitiveType, number: Any) -> SSAValue:
        """A number of an element type."""
        import numpy as np

        value = np.asarray(number).astype(element.dtype)
        shape = shape_of(scalar_type(element))
        return self.literal(Literal.from_array(shape, value))

    def literal(self, literal: Literal) -> SSAValue:
        """The scalar that a literal is."""
        type_ = type_of(literal.shape)
        op = build.create(ConstantOp, [], type_, {"literal": LiteralAttr(literal)})
        build.append(self.block, op)
        return op.output

    def index(self, dim: int, *, wide: bool) -> SSAValue:
        """The index along a dimension of the iteration space, of 64 bits or 32."""
        found = self._indices.get(dim)
        if found is None:
            op = IndexOp(dim, TensorType(i64 if wide else i32, []))
            build.append(self.block, op)
            found = self._indices[dim] = op.result
        return found

    def finish(self, results: Sequence[SSAValue]) -> Block:
        """The block, which yields `results`."""
        build.append(self.block, create_op(YieldOp, results))
        return self.block

    def inline(self, block: Block, arguments: Sequence[SSAValue]) -> Scalars:
        """What another body yields for such arguments: its instructions are copied."""
        values: dict[SSAValue, SSAValue] = dict(zip(block.args, arguments, strict=True))
        for op in block.ops:
            if isinstance(op, YieldOp):
                return tuple(values[v] for v in op.operands)
            if isinstance(op, IndexOp):
                wide = op.result.type == TensorType(i64, [])
                values[op.result] = self.index(op.dimension, wide=wide)
                continue
            new = build.create(
                cast("type[Instruction]", type(op)),
                [values[v] for v in op.operands],
                op.results[0].type,
                dict(op.properties),
            )
            build.append(self.block, new)
            values[op.results[0]] = new.output
        raise AssertionError("a body ends in structured.yield")

    # ------------------------------------------------------- computations

    def apply(
        self,
        computation: ComputationOp,
        arguments: Sequence[SSAValue],
        computations: Mapping[str, ComputationOp],
    ) -> Scalars:
        """The scalars of a computation's root. Raises `HloError` HLO0791 for one that is not of scalars."""
        values: dict[SSAValue, Scalars] = {}
        stack: list[tuple[Iterator[Instruction], ComputationOp, Instruction]] = []
        self._bind(computation, [(a,) for a in arguments], values)
        running, caller = iter(list(computation.instructions)), cast("Instruction | None", None)
        while True:
            op = next(running, None)
            if op is None:
                results = values[computation.root.output]
                if caller is None:
                    return results
                values[caller.output] = results
                running, computation, caller = cast(Any, stack.pop())
            elif op.opcode.name in ("call", "fusion", "map"):
                stack.append((running, computation, cast(Instruction, caller)))
                caller, computation = op, computations[op.called_computations[0]]
                self._bind(computation, [values[value] for value in op.inputs], values)
                running = iter(list(computation.instructions))
            elif not isinstance(op, ParameterOp):
                values[op.output] = self._scalar(op, values)

    def _bind(
        self,
        computation: ComputationOp,
        arguments: Sequence[Scalars],
        values: dict[SSAValue, Scalars],
    ) -> None:
        for parameter, scalars in zip(computation.parameters, arguments, strict=True):
            values[parameter.output] = tuple(
                self.convert(value, element)
                for value, element in zip(scalars, _elements_of(parameter), strict=True)
            )

    def _scalar(self, op: Instruction, values: Mapping[SSAValue, Scalars]) -> Scalars:
        operands = [values[value] for value in op.inputs]
        if isinstance(op, TupleOp):
            return tuple(scalar for part in operands for scalar in part)
        if isinstance(op, GetTupleElementOp):
            return (operands[0][op.index],)
        if op.opcode.name == "opt-barrier":
            return operands[0]
        (element,) = _elements_of(op)
        if isinstance(op, ConstantOp) and op.literal is not None:
            return (self.literal(op.literal),)
        if op.opcode.name in _IDENTITIES:
            return (self.convert(operands[0][0], element),)
        if op.opcode.name in ("bitcast", "bitcast-convert"):
            return (self.bits(operands[0][0], element),)
        if not op.opcode.elementwise:
            raise not_scalar(op)
        return (elementwise(self, op, [part[0] for part in operands]),)


_IDENTITIES = opcodes(lambda row: (row.is_index_map and row.moves) or row.name == "copy")
"""What moves elements leaves a scalar what it is."""


def _elements_of(op: Instruction) -> list[PrimitiveType]:
    from mlirhlo.lowering.structured.conversion import parts_of

    parts = parts_of(op.shape)
    if any(part.dimensions for part in parts):
        raise not_scalar(op)
    return [part.element_type for part in parts]


def not_scalar(op: Instruction) -> HloError:
    """The error for a computation that is applied to elements and is not of scalars."""
    name = cast(ComputationOp, op.parent_op()).computation_name
    return error(
        "HLO0791",
        f"%{name} is applied to single elements, but holds `{op.opcode.name}` of {op.shape}",
    )


def elementwise(body: Body, op: Instruction, operands: Sequence[SSAValue]) -> SSAValue:
    """An elementwise instruction on scalars, of its declared type.

    Operands of several types are converted to the widest first, as the interpreter's meaning has it.
    """
    declared = cast(ArrayShape, shape_of(op.output.type)).element_type
    opcode = op.opcode.name
    if opcode == "copy":
        return body.convert(operands[0], declared)
    properties = {k: v for k, v in op.properties.items() if k not in ANNOTATIONS}
    data = op.opcode.data_operands(len(operands))
    if opcode != "compare" and (not data or (op.opcode.gives_real and opcode != "abs")):
        return body.emit(opcode, operands, declared, properties)
    given = list(operands)
    first = data[0] if data else 0
    work = widest([element_of(value) for value in given[first:]])
    if opcode == "abs" and work.is_complex:
        return body.convert(body.emit(opcode, given, work.real, properties), declared)
    given[first:] = [body.convert(value, work) for value in given[first:]]
    if opcode == "compare":
        return body.convert(body.emit(opcode, given, PRED, properties), declared)
    return body.convert(body.emit(opcode, given, work, properties), declared)


def widest(types: Sequence[PrimitiveType]) -> PrimitiveType:
    """The type in which an instruction on operands of several types works."""
    if all(type_ is types[0] for type_ in types):
        return types[0]
    return max(
        types,
        key=lambda t: (not t.is_integer and t is not PRED, t is not PRED, t.bits),
    )


def passing_body(elements: Sequence[PrimitiveType]) -> Block:
    """A body that yields its arguments."""
    body = Body(elements)
    return body.finish(body.arguments)


def converting_body(element: PrimitiveType, target: PrimitiveType) -> Block:
    """A body that converts its argument."""
    body = Body([element])
    return body.finish([body.convert(body.arguments[0], target)])


def applied(
    computation: ComputationOp,
    elements: Sequence[PrimitiveType],
    computations: Mapping[str, ComputationOp],
    results: Sequence[PrimitiveType],
    order: Callable[[Scalars], Sequence[SSAValue]] = tuple,
) -> Block:
    """A body that yields what a computation of scalars gives, converted to the types of `results`.

    `order`: the computation's arguments by those of the body.
    """
    body = Body(elements)
    scalars = body.apply(computation, order(body.arguments), computations)
    return body.finish([body.convert(s, e) for s, e in zip(scalars, results, strict=True)])
