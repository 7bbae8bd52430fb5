"""Elementwise ops: one opcode each, the first operand's layout kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects.hlo import table
from mlirhlo.dialects.hlo.attributes.annotations import ResultAccuracy, ResultAccuracyAttr
from mlirhlo.dialects.hlo.attributes.base import integer, integers, string
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES, Kind
from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape, array
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.stablehlo.elements import array_of
from mlirhlo.rewrites.stablehlo_to_hlo.attributes import attribute, number, word
from mlirhlo.rewrites.stablehlo_to_hlo.core import (
    HANDLERS,
    Body,
    lowers,
    result_shape,
)
from mlirhlo.rewrites.stablehlo_to_hlo.problems import problem

if TYPE_CHECKING:
    from numpy.typing import NDArray

OPCODES: Mapping[str, str] = {
    row.stablehlo: row.name
    for row in table.OPCODES.values()
    if row.elementwise
    and row.arity in (1, 2)
    and row.stablehlo
    and (row.stablehlo.startswith("stablehlo.") or row.name in ("erf", "mulhi"))
    and row.name != "convert"
}
"""Ops that are one instruction of the same operands, with nothing but an accuracy."""


def laid_out(shape: Shape, like: SSAValue) -> Shape:
    """`shape` in the layout of another value of as many dimensions, which XLA carries along."""
    other = shape_of(like.type)
    if isinstance(shape, ArrayShape) and isinstance(other, ArrayShape):
        layout = other.layout
        if layout != shape.layout and layout is not None and other.rank == shape.rank:
            return shape.with_layout(layout)
    return shape


def accuracy(op: Operation) -> dict[str, Attribute]:
    """`result_accuracy` where it says anything."""
    found = attribute(op, "result_accuracy")
    if found is None:
        return {}
    value: Any = getattr(found, "data", found)
    mode = str(getattr(value, "mode", "DEFAULT"))
    mode = str(getattr(mode, "data", mode)).lower()
    if mode == "tolerance":
        tolerance = (float(value.atol), float(value.rtol), int(value.ulps))
        return {"result_accuracy": ResultAccuracyAttr(ResultAccuracy(tolerance=tolerance))}
    if mode == "highest":
        return {"result_accuracy": ResultAccuracyAttr(ResultAccuracy("highest"))}
    return {}


def _plain(op: Operation, body: Body) -> Sequence[SSAValue]:
    values = body.values
    operands = [values[v] for v in op.operands]
    shape = laid_out(result_shape(op), operands[0])
    properties = accuracy(op) if op.properties else None
    return (body.emit(OPCODES[op.name], operands, shape, properties),)


for _name in OPCODES:
    HANDLERS[_name] = _plain


_NO_DIMENSIONS = integers(())


def is_splat(values: NDArray[Any]) -> bool:
    """Whether all elements are the same, bit for bit."""
    if not any(values.strides):
        return True
    flat = values.reshape(-1)
    first = flat[:1].tobytes()
    if flat[-1:].tobytes() != first:
        return False
    return flat.tobytes() == first * flat.size


_DEFAULT_COMPARE: Mapping[Kind, str] = {
    Kind.PRED: "UNSIGNED",
    Kind.UNSIGNED: "UNSIGNED",
    Kind.SIGNED: "SIGNED",
    Kind.FLOAT: "FLOAT",
    Kind.COMPLEX: "FLOAT",
}


@lowers("stablehlo.compare")
def compare(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`compare`; the comparison type stays where it is not the element type's own."""
    operands = body.inputs(op)
    properties: dict[str, Attribute] = {
        "direction": string(word(attribute(op, "comparison_direction")))
    }
    kind = word(attribute(op, "compare_type"), "NOTYPE")
    operand = shape_of(operands[0].type)
    assert isinstance(operand, ArrayShape)
    if kind not in ("NOTYPE", _DEFAULT_COMPARE[operand.element_type.kind]):
        properties["type"] = string(kind)
    shape = laid_out(result_shape(op), operands[0])
    return (body.emit("compare", operands, shape, properties),)


@lowers("stablehlo.select", "stablehlo.clamp")
def select(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`select` and `clamp`: scalars are broadcast, the first operand gives the layout."""
    operands = body.inputs(op)
    opcode = op.name.removeprefix("stablehlo.")
    target = shape_of(operands[1].type)
    assert isinstance(target, ArrayShape)
    for index in (0, 2) if opcode == "clamp" else (0,):
        given = shape_of(operands[index].type)
        assert isinstance(given, ArrayShape)
        if given.is_scalar and not target.is_scalar:
            spread = array(given.element_type, target.dimensions, target.dynamic)
            operands[index] = body.emit(
                "broadcast", (operands[index],), spread, {"dimensions": _NO_DIMENSIONS}
            )
    return (body.emit(opcode, operands, laid_out(result_shape(op), operands[0])),)


@lowers("stablehlo.convert")
def convert(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`convert`; of complex numbers to others the real part."""
    (operand,) = body.inputs(op)
    shape = laid_out(result_shape(op), operand)
    given = shape_of(operand.type)
    assert isinstance(given, ArrayShape)
    assert isinstance(shape, ArrayShape)
    if given.element_type.kind is Kind.COMPLEX and shape.element_type.kind is not Kind.COMPLEX:
        part = "f32" if given.element_type.bits == 64 else "f64"
        operand = body.emit("real", (operand,), replace(shape, element_type=PRIMITIVE_TYPES[part]))
    return (body.emit("convert", (operand,), shape),)


@lowers("stablehlo.reduce_precision")
def reduce_precision(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`reduce-precision`."""
    operands = body.inputs(op)
    properties: dict[str, Attribute] = {
        key: integer(number(op, key)) for key in ("exponent_bits", "mantissa_bits")
    }
    shape = laid_out(result_shape(op), operands[0])
    return (body.emit("reduce-precision", operands, shape, properties),)


@lowers("stablehlo.constant", "mhlo.constant", "arith.constant")
def constant(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`constant`; equal elements become a scalar and a `broadcast`.

    Only the broadcast has the name and the metadata of the op's location.
    """
    shape = result_shape(op)
    if isinstance(shape, TupleShape):
        raise problem("HLO0420", op, "a constant of a tuple type has no HLO form")
    assert isinstance(shape, ArrayShape)
    value = attribute(op, "value")
    assert value is not None
    values = array_of(value)
    base, common = body.base, body.common
    spread = bool(shape.rank and shape.element_count > 1 and is_splat(values))
    if spread:
        values = values.reshape(-1)[:1].reshape(())
    own = array(shape.element_type) if spread else shape
    literal = LiteralAttr(Literal.from_array(own, values))
    body.base = None
    body.common = {k: v for k, v in common.items() if k != "metadata"} if not spread else {}
    found = body.emit("constant", (), own, {"literal": literal})
    body.base, body.common = base, common
    if spread:
        found = body.emit("broadcast", (found,), shape, {"dimensions": _NO_DIMENSIONS})
    return (found,)
