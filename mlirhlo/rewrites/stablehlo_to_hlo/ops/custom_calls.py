"""`stablehlo.custom_call`, with all that XLA's importer reads of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr, TupleType, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects.hlo.attributes.aliasing import (
    OutputOperandAlias,
    OutputOperandAliases,
    OutputOperandAliasesAttr,
)
from mlirhlo.dialects.hlo.attributes.dimensions import (
    ConvolutionDimensionNumbersAttr,
    Slice,
    SliceAttr,
    SliceDimension,
)
from mlirhlo.dialects.hlo.attributes.kinds import shape_attribute
from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr
from mlirhlo.dialects.hlo.names import legal_name
from mlirhlo.dialects.hlo.ops import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Layout, Shape, TupleShape, array
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.stablehlo.elements import array_of
from mlirhlo.rewrites.stablehlo_to_hlo.attributes import (
    attribute,
    boolean,
    flag,
    integer,
    integers,
    listed,
    number,
    numbers_of,
    precisions,
    string,
    symbol_name,
    text,
)
from mlirhlo.rewrites.stablehlo_to_hlo.core import Body, calls, lowers, result_shapes
from mlirhlo.rewrites.stablehlo_to_hlo.frontend_attributes import spell
from mlirhlo.rewrites.stablehlo_to_hlo.ops.linear_algebra import convolution_numbers
from mlirhlo.rewrites.stablehlo_to_hlo.problems import problem
from mlirhlo.rewrites.stablehlo_to_hlo.types import element_type_of

_API_VERSIONS: Mapping[int, str] = {
    0: "API_VERSION_UNSPECIFIED",
    2: "API_VERSION_STATUS_RETURNING",
    3: "API_VERSION_STATUS_RETURNING_UNIFIED",
    4: "API_VERSION_TYPED_FFI",
}
"""Names of the calling conventions, but for the original one (1), which is not spelled."""


@lowers("stablehlo.custom_call")
def custom_call(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`custom-call`; several results are parts of a tuple, none is an empty tuple."""
    operands = body.inputs(op)
    target = text(op, "call_target_name")
    if target == "ApproxTopK":
        return approx_top_k(op, body)
    properties: dict[str, Attribute] = {"custom_call_target": string(target)}
    shapes = _results(op)
    is_tuple = len(op.results) == 1 and isinstance(op.results[0].type, TupleType)
    shape = shapes[0] if len(shapes) == 1 and not is_tuple else TupleShape(tuple(shapes))
    layouts = attribute(op, "operand_layouts")
    if layouts is not None:
        properties["operand_layout_constraints"] = ArrayAttr(
            [
                shape_attribute(_laid_out(shape_of(v.type), entry, op))
                for v, entry in zip(operands, cast(Any, layouts).data, strict=True)
            ]
        )
    if flag(op, "has_side_effect"):
        properties["custom_call_has_side_effect"] = boolean(True)
    _aliases(op, properties)
    version = number(op, "api_version", 1)
    if version != 1:
        name = _API_VERSIONS.get(version)
        if name is None:
            raise problem(
                "HLO0426", op, f"there is no api_version {version}", "versions are 0 to 4"
            )
        properties["api_version"] = string(name)
    called = listed(op, "called_computations")
    if called:
        base, common = body.base, body.common
        found = [body.exporter.function(symbol_name(one), op) for one in called]
        body.base, body.common = base, common
        properties["called_computations"] = ArrayAttr([calls(one) for one in found])
    _backend_config(op, properties)
    _extended(op, properties)
    value = body.emit("custom-call", operands, shape, properties)
    kernel = attribute(op, "kernel_name")
    if isinstance(kernel, StringAttr) and kernel.data:
        # What XLA's TPU compiler calls the instruction.
        cast(Instruction, value.owner).instruction_name = legal_name(kernel.data)
    if len(op.results) == 1:
        return (value,)
    return body.split(value, len(op.results))


def _results(op: Operation) -> list[Shape]:
    """Result shapes in the layouts the op asks for; the parts of a lone tuple."""
    shapes = result_shapes(op)
    if len(shapes) == 1 and isinstance(shapes[0], TupleShape):
        shapes = list(shapes[0].elements)
    layouts = attribute(op, "result_layouts")
    if layouts is None:
        return shapes
    entries = cast(Any, layouts).data
    return [_laid_out(s, entry, op) for s, entry in zip(shapes, entries, strict=True)]


def _laid_out(shape: Shape, entry: Attribute, op: Operation) -> Shape:
    if not isinstance(shape, ArrayShape):
        return shape
    order = numbers_of(entry)
    if sorted(order) != list(range(shape.rank)):
        raise problem(
            "HLO0426",
            op,
            f"layout {list(order)} does not order the {shape.rank} dimensions of {shape}",
            "a layout lists every dimension once, the fastest first",
        )
    return shape.with_layout(Layout(order))


def _aliases(op: Operation, properties: dict[str, Attribute]) -> None:
    found = listed(op, "output_operand_aliases")
    if not found:
        return
    entries: list[OutputOperandAlias] = []
    for one in found:
        data = cast(Any, one).data
        entries.append(
            OutputOperandAlias(
                tuple(data.output_tuple_indices),
                int(data.operand_index),
                tuple(data.operand_tuple_indices),
            )
        )
    properties["output_to_operand_aliasing"] = OutputOperandAliasesAttr(
        OutputOperandAliases(tuple(entries))
    )


def _backend_config(op: Operation, properties: dict[str, Attribute]) -> None:
    """The text of the configuration; a dictionary belongs to the typed calling convention."""
    outer = op.attributes.get("mhlo.backend_config")
    config = attribute(op, "backend_config") if outer is None else outer
    if isinstance(config, StringAttr):
        if config.data:
            properties["backend_config"] = string(config.data)
    elif isinstance(config, DictionaryAttr):
        properties["backend_config"] = string(spell(config))
        properties["api_version"] = string(_API_VERSIONS[4])
    elif config is not None:
        raise problem(
            "HLO0426",
            op,
            f"backend_config {config} is neither a string nor a dictionary",
            "use a string, or with api_version 4 a dictionary",
        )


def approx_top_k(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`ApproxTopK` by a `sort` along its dimension: exact, so within every recall."""
    count = len(op.results)
    operands = body.inputs(op)[:count]
    config = op.attributes.get("mhlo.backend_config")
    found = config.data.get("reduction_dim") if isinstance(config, DictionaryAttr) else None
    called = listed(op, "called_computations")
    if not called or found is None:
        raise problem("HLO0426", op, "ApproxTopK needs a comparator and reduction_dim")
    base, common = body.base, body.common
    comparator = body.exporter.function(symbol_name(called[0]), op)
    body.base, body.common = base, common
    dim = int(cast(Any, found).value.data)
    properties: dict[str, Attribute] = {
        "dimensions": integers((dim,)),
        "to_apply": calls(comparator),
    }
    shapes = [shape_of(v.type) for v in operands]
    whole = shapes[0] if count == 1 else TupleShape(tuple(shapes))
    value = body.emit("sort", operands, whole, properties)
    parts: list[SSAValue] = []
    for index, shape in enumerate(result_shapes(op)):
        assert isinstance(shape, ArrayShape)
        part = value if count == 1 else body.element(value, index)
        cut = SliceAttr(Slice(tuple(SliceDimension(0, size) for size in shape.dimensions)))
        parts.append(body.emit("slice", (part,), shape, {"slice": cut}))
    return parts if count == 1 else body.split(body.tuple(parts), count)


def _extended(op: Operation, properties: dict[str, Attribute]) -> None:
    """Fields HLO's custom calls have beyond StableHLO's, as discardable attributes."""
    literal = op.attributes.get("mhlo.literal")
    if literal is not None:
        values = array_of(literal)
        element_type = element_type_of(cast(Any, literal).type, op)
        shape = array(element_type, values.shape)
        properties["literal"] = LiteralAttr(Literal.from_array(shape, values))
    numbers = op.attributes.get("mhlo.dimension_numbers") or op.attributes.get("dimension_numbers")
    if numbers is not None and numbers.name.endswith(".conv"):
        properties["dim_labels"] = ConvolutionDimensionNumbersAttr(
            convolution_numbers(cast(Any, numbers).data)
        )
    for key in ("feature_group_count", "batch_group_count"):
        if (count := number(op, key, 1)) != 1:
            properties[key] = integer(count)
    if (found := precisions(op)) is not None:
        properties["operand_precision"] = found
    schedule = op.attributes.get("mhlo.custom_call_schedule")
    if schedule is not None and not isinstance(schedule, UnitAttr):
        properties["schedule"] = string(f"SCHEDULE_{cast(Any, schedule).data}".upper())
