"""Elementwise instructions, and constants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Attribute

from mlirhlo.dialects.hlo.attributes.base import int_of, str_of
from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.table import OPCODES
from mlirhlo.dialects.stablehlo.attributes import (
    ComparisonDirectionAttr,
    ComparisonTypeAttr,
    ResultAccuracy,
    ResultAccuracyAttr,
)
from mlirhlo.rewrites.hlo_to_stablehlo.core import HANDLERS, Scope, Tree, converts
from mlirhlo.rewrites.hlo_to_stablehlo.marks import MARK, marked

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.elementwise import CompareOp

SAME: Mapping[str, str] = {
    row.name: row.stablehlo
    for row in OPCODES.values()
    if row.stablehlo.startswith("stablehlo.") or row.name in ("erf", "mulhi")
}
"""Opcodes of one op with the same operands and no attribute but the accuracy, and back."""

EXPANDED: Mapping[str, str] = {
    row.name: row.stablehlo for row in OPCODES.values() if row.stablehlo and row.name not in SAME
}
"""Opcodes whose op of CHLO is not that instruction but an expansion: marked."""


def accuracy(op: Instruction) -> dict[str, Attribute]:
    """`result_accuracy` where the instruction says anything."""
    value = op.result_accuracy
    if value is None:
        return {}
    if value.tolerance is not None:
        atol, rtol, ulps = value.tolerance
        found = ResultAccuracy(atol, rtol, ulps, "TOLERANCE")
    else:
        found = ResultAccuracy(mode=value.mode.upper() or "DEFAULT")
    return {"result_accuracy": ResultAccuracyAttr(found)}


def same(op: Instruction, scope: Scope) -> Tree:
    """The op of the same meaning."""
    if op.opcode.expands_complex:
        shape = op.input_shapes[0]
        if isinstance(shape, ArrayShape) and shape.element_type.is_complex:
            scope.mark(marked(op), MARK)
    properties = accuracy(op) if "result_accuracy" in op.properties else None
    return scope.one(SAME[op.opcode.name], scope.inputs(op), op.shape, properties)


for _opcode in SAME:
    HANDLERS[_opcode] = same


@converts(*EXPANDED)
def expanded(op: Instruction, scope: Scope) -> Tree:
    """The op of CHLO, marked."""
    scope.mark(marked(op), MARK)
    return scope.one(EXPANDED[op.opcode.name], scope.inputs(op), op.shape)


@converts("compare")
def compare(op: Instruction, scope: Scope) -> Tree:
    """`compare`; the comparison type stands where it is not the element type's own."""
    compared = cast("CompareOp", op)
    properties: dict[str, Attribute] = {
        "comparison_direction": ComparisonDirectionAttr(compared.direction)
    }
    kind = str_of(op.properties.get("type"))
    if str_of(op.properties.get("order")) == "TOTAL":
        kind = "TOTALORDER"
    if kind:
        properties["compare_type"] = ComparisonTypeAttr(kind)
    return scope.one("stablehlo.compare", scope.inputs(op), op.shape, properties)


@converts("reduce-precision")
def reduce_precision(op: Instruction, scope: Scope) -> Tree:
    """`reduce_precision`."""
    properties: dict[str, Attribute] = {
        key: IntegerAttr(int_of(op.properties[key]), i32)
        for key in ("exponent_bits", "mantissa_bits")
    }
    return scope.one("stablehlo.reduce_precision", scope.inputs(op), op.shape, properties)


@converts("constant")
def constant(op: Instruction, scope: Scope) -> Tree:
    """`constant`; of a tuple one for each leaf; an elided one is a marked custom call."""
    literal = cast(LiteralAttr, op.properties["literal"]).data
    if literal.is_elided:
        return scope.importer.fallback(op, scope)
    return _literal(literal, scope)


def _literal(literal: Literal, scope: Scope) -> Tree:
    if not isinstance(literal.shape, ArrayShape):
        return tuple(_literal(element, scope) for element in literal.elements)
    return scope.constant(literal.array, literal.shape)
