"""Custom calls, and instructions that become marked custom calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr, TupleType, i32
from xdsl.ir import Attribute, SSAValue, TypeAttribute

from mlirhlo.dialects.hlo.attributes.base import bool_of, str_of, symbol
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.stablehlo.attributes import OutputOperandAlias, OutputOperandAliasAttr
from mlirhlo.dialects.stablehlo.elements import dense
from mlirhlo.rewrites.hlo_to_stablehlo.annotations import order_of
from mlirhlo.rewrites.hlo_to_stablehlo.attributes import boolean, precisions, string
from mlirhlo.rewrites.hlo_to_stablehlo.control_flow import read_dictionary
from mlirhlo.rewrites.hlo_to_stablehlo.core import Scope, Tree, converts
from mlirhlo.rewrites.hlo_to_stablehlo.linear_algebra import convolution_numbers
from mlirhlo.rewrites.hlo_to_stablehlo.marks import (
    MARK,
    SHAPE_ATTRIBUTE,
    TARGET_PREFIX,
    own_attributes,
    with_shapes,
)
from mlirhlo.rewrites.hlo_to_stablehlo.types import has_own_layout, type_of_leaf

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.control_flow import CustomCallOp

API_VERSIONS: Mapping[str, int] = {
    "API_VERSION_UNSPECIFIED": 0,
    "API_VERSION_ORIGINAL": 1,
    "API_VERSION_STATUS_RETURNING": 2,
    "API_VERSION_STATUS_RETURNING_UNIFIED": 3,
    "API_VERSION_TYPED_FFI": 4,
}
TYPED_FFI = 4

_SAID = frozenset(
    {
        *("custom_call_target", "custom_call_has_side_effect", "operand_layout_constraints"),
        *("api_version", "output_to_operand_aliasing", "backend_config", "called_computations"),
        *("literal", "dim_labels", "feature_group_count", "batch_group_count"),
        *("operand_precision", "schedule"),
    }
)
"""Attributes of `custom-call` that the op has, or that XLA's translator gives a name."""

_LITERAL = "literal"


@converts("custom-call")
def custom_call(op: Instruction, scope: Scope) -> Tree:
    """`custom_call`; operands and results that are tuples stay tuples."""
    call = cast("CustomCallOp", op)
    given = op.properties
    operands = [_whole(scope.trees[v], shape_of(v.type), scope) for v in op.inputs]
    version = API_VERSIONS[str_of(given.get("api_version"), "API_VERSION_ORIGINAL").upper()]
    properties: dict[str, Attribute] = {
        "call_target_name": string(call.custom_call_target),
        "api_version": IntegerAttr(version, i32),
        "has_side_effect": boolean(bool_of(given.get("custom_call_has_side_effect"))),
    }
    attributes: dict[str, Attribute] = {}
    config = str_of(given.get("backend_config"))
    parsed = _dictionary(config) if version == TYPED_FFI and config else None
    if parsed is not None:
        properties["backend_config"] = parsed
    elif version == TYPED_FFI and config:
        # Only dictionaries stand in calls of the typed interface; other text is kept beside.
        attributes["mhlo.backend_config"] = string(config)
    elif config:
        properties["backend_config"] = string(config)
    _layouts(op, properties)
    _aliases(op, properties)
    if called := op.called_computations:
        names = [symbol(scope.importer.function(name)) for name in called]
        properties["called_computations"] = ArrayAttr(names)
    _extended(op, attributes)
    for key, value in attributes.items():
        scope.mark(value, key)
    if rest := own_attributes(op, _SAID):
        scope.mark(DictionaryAttr(rest), MARK)
    shape = op.shape
    if isinstance(shape, TupleShape):
        scope.mark(string(str(shape)), SHAPE_ATTRIBUTE)
    type_ = _whole_type(shape)
    return scope.emit("stablehlo.custom_call", operands, (type_,), properties).results[0]


def _whole_type(shape: Shape) -> Attribute:
    if isinstance(shape, TupleShape):
        types = [cast(TypeAttribute, _whole_type(element)) for element in shape.elements]
        return TupleType(ArrayAttr(types))
    return type_of_leaf(shape)


def _whole(tree: Tree, shape: Shape, scope: Scope) -> SSAValue:
    """A value in one piece: a `tuple` of its parts where it is a tuple."""
    if isinstance(tree, tuple):
        elements = cast(TupleShape, shape).elements
        parts = [_whole(part, one, scope) for part, one in zip(tree, elements, strict=True)]
        op = scope.emit("stablehlo.tuple", parts, (_whole_type(shape),))
        return op.results[0]
    if tree is None:
        (leaf,) = scope.flatten(None, shape)
        return leaf
    return tree


def _dictionary(text: str) -> DictionaryAttr | None:
    return read_dictionary(text) if text.lstrip().startswith("{") else None


def _layouts(op: Instruction, properties: dict[str, Attribute]) -> None:
    """Layouts of operands and results, where the call constrains those of the operands."""
    constraints = op.properties.get("operand_layout_constraints")
    if not isinstance(constraints, ArrayAttr):
        return
    operands = [shape_of(t) for t in cast("ArrayAttr[Attribute]", constraints).data]
    shape = op.shape
    results = list(shape.elements) if isinstance(shape, TupleShape) else [shape]
    if any(isinstance(s, TupleShape) for s in (*operands, *results)):
        return
    properties["operand_layouts"] = ArrayAttr([_order(s) for s in operands])
    properties["result_layouts"] = ArrayAttr([_order(s) for s in results])


def _order(shape: Shape) -> Attribute:
    if isinstance(shape, ArrayShape):
        layout = shape.layout
        order = tuple(range(shape.rank - 1, -1, -1)) if layout is None else layout.minor_to_major
        return order_of(order)
    return order_of(())


def _aliases(op: Instruction, properties: dict[str, Attribute]) -> None:
    found = op.properties.get("output_to_operand_aliasing")
    if found is not None:
        properties["output_operand_aliases"] = ArrayAttr(
            [
                OutputOperandAliasAttr(
                    OutputOperandAlias(
                        tuple(one.output_index), one.operand_number, tuple(one.operand_index)
                    )
                )
                for one in cast(Any, found).data.entries
            ]
        )


def _extended(op: Instruction, attributes: dict[str, Attribute]) -> None:
    """What HLO's custom calls have beyond StableHLO's, under the names of XLA's translator."""
    given = op.properties
    if _LITERAL in given:
        literal = cast(Any, given[_LITERAL]).data
        if isinstance(literal.shape, ArrayShape) and not literal.is_elided:
            type_ = type_of_leaf(literal.shape)
            attributes["mhlo.literal"] = dense(literal.array, type_)
    if "dim_labels" in given:
        attributes["mhlo.dimension_numbers"] = convolution_numbers(
            cast(Any, given["dim_labels"]).data
        )
    for key in ("feature_group_count", "batch_group_count"):
        if key in given:
            attributes[key] = given[key]
    if "operand_precision" in given:
        attributes["precision_config"] = precisions(op, len(op.inputs))
    if "schedule" in given:
        word = str_of(given["schedule"]).removeprefix("SCHEDULE_")
        attributes["mhlo.custom_call_schedule"] = StringAttr(word)


def fallback(op: Instruction, scope: Scope) -> Tree:
    """A custom call `@mlirhlo.hlo.<opcode>` of the leaves, whose mark says all of the instruction."""
    shape = op.shape
    operands = scope.leaves(op)
    shapes = list(op.input_shapes)
    mark = DictionaryAttr(own_attributes(op, ()))
    if isinstance(shape, TupleShape) or any(
        isinstance(s, TupleShape) or has_own_layout(s) for s in (*shapes, shape)
    ):
        mark = with_shapes(mark.data, shapes, shape)
    properties: dict[str, Attribute] = {
        "call_target_name": string(TARGET_PREFIX + op.opcode.name),
        "api_version": IntegerAttr(TYPED_FFI, i32),
        "has_side_effect": boolean(op.opcode.side_effect or op.opcode.collective),
        "backend_config": mark,
    }
    if called := op.called_computations:
        names = [symbol(scope.importer.function(name)) for name in called]
        properties["called_computations"] = ArrayAttr(names)
    scope.attributes.pop(MARK, None)
    return scope.many("stablehlo.custom_call", operands, shape, properties)
