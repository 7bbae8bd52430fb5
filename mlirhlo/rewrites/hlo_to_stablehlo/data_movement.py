"""Instructions that move elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects.hlo.attributes.base import bool_of, ints
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape, array
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.stablehlo.attributes import (
    GatherDimensionNumbers,
    GatherDimensionNumbersAttr,
    ScatterDimensionNumbers,
    ScatterDimensionNumbersAttr,
)
from mlirhlo.rewrites.hlo_to_stablehlo.attributes import boolean, integer, integers
from mlirhlo.rewrites.hlo_to_stablehlo.core import Scope, Tree, converts
from mlirhlo.rewrites.hlo_to_stablehlo.marks import MARK, marked

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.data_movement import GatherOp, PadOp, ScatterOp, SliceOp


@converts("broadcast")
def broadcast(op: Instruction, scope: Scope) -> Tree:
    """`broadcast_in_dim`."""
    properties = {"broadcast_dimensions": integers(ints(op.properties.get("dimensions")))}
    return scope.one("stablehlo.broadcast_in_dim", scope.inputs(op), op.shape, properties)


@converts("concatenate")
def concatenate(op: Instruction, scope: Scope) -> Tree:
    """`concatenate`."""
    properties: dict[str, Attribute] = {"dimension": integer(ints(op.properties["dimensions"])[0])}
    return scope.one("stablehlo.concatenate", scope.inputs(op), op.shape, properties)


@converts("copy")
def copy(op: Instruction, scope: Scope) -> Tree:
    """A `reshape` to the same sizes, marked: StableHLO has no op that only lays out anew."""
    scope.mark(marked(op), MARK)
    return copied(scope.trees[op.inputs[0]], op.shape, scope)


def copied(tree: Tree, shape: Shape, scope: Scope) -> Tree:
    """A copy of a value; tokens and arrays of dynamic sizes are handed on."""
    if isinstance(shape, TupleShape):
        return tuple(
            copied(scope.element(tree, index), element, scope)
            for index, element in enumerate(shape.elements)
        )
    if not isinstance(shape, ArrayShape) or shape.is_dynamic or tree is None:
        return tree
    return scope.one("stablehlo.reshape", (cast(SSAValue, tree),), shape)


@converts("dynamic-reshape")
def dynamic_reshape(op: Instruction, scope: Scope) -> Tree:
    """`dynamic_reshape` to the sizes, joined into one array."""
    operand, *sizes = scope.inputs(op)
    line = array("s32", (1,))
    parts = [scope.one("stablehlo.reshape", (size,), line) for size in sizes]
    whole = array("s32", (len(sizes),))
    joined = scope.one("stablehlo.concatenate", parts, whole, {"dimension": integer(0)})
    return scope.one("stablehlo.dynamic_reshape", (operand, joined), op.shape)


@converts("dynamic-slice")
def dynamic_slice(op: Instruction, scope: Scope) -> Tree:
    """`dynamic_slice`; start indices in one array are taken apart."""
    operands = _with_scalars(op, scope, 1)
    properties: dict[str, Attribute] = {"slice_sizes": op.properties["dynamic_slice_sizes"]}
    return scope.one("stablehlo.dynamic_slice", operands, op.shape, properties)


@converts("dynamic-update-slice")
def dynamic_update_slice(op: Instruction, scope: Scope) -> Tree:
    """`dynamic_update_slice`."""
    return scope.one("stablehlo.dynamic_update_slice", _with_scalars(op, scope, 2), op.shape)


def _with_scalars(op: Instruction, scope: Scope, first: int) -> list[SSAValue]:
    """Operands, with an array of start indices (the former form) as one scalar each."""
    operands = scope.inputs(op)
    shape = shape_of(op.inputs[first].type) if len(operands) == first + 1 else None
    if not isinstance(shape, ArrayShape) or shape.rank != 1:
        return operands
    indices = operands.pop()
    for dim in range(shape.dimensions[0]):
        bounds: dict[str, Attribute] = {
            "start_indices": integers((dim,)),
            "limit_indices": integers((dim + 1,)),
            "strides": integers((1,)),
        }
        part = scope.one("stablehlo.slice", (indices,), array(shape.element_type, (1,)), bounds)
        operands.append(scope.one("stablehlo.reshape", (part,), array(shape.element_type)))
    return operands


@converts("gather")
def gather(op: Instruction, scope: Scope) -> Tree:
    """`gather`."""
    given = cast("GatherOp", op)
    numbers = GatherDimensionNumbers(
        ints(op.properties.get("offset_dims")),
        ints(op.properties.get("collapsed_slice_dims")),
        ints(op.properties.get("operand_batching_dims")),
        ints(op.properties.get("start_indices_batching_dims")),
        ints(op.properties.get("start_index_map")),
        given.index_vector_dim,
    )
    properties: dict[str, Attribute] = {
        "dimension_numbers": GatherDimensionNumbersAttr(numbers),
        "slice_sizes": op.properties["slice_sizes"],
        "indices_are_sorted": boolean(bool_of(op.properties.get("indices_are_sorted"))),
    }
    return scope.one("stablehlo.gather", scope.inputs(op), op.shape, properties)


@converts("scatter")
def scatter(op: Instruction, scope: Scope) -> Tree:
    """`scatter`."""
    given = cast("ScatterOp", op)
    numbers = ScatterDimensionNumbers(
        ints(op.properties.get("update_window_dims")),
        ints(op.properties.get("inserted_window_dims")),
        ints(op.properties.get("input_batching_dims")),
        ints(op.properties.get("scatter_indices_batching_dims")),
        ints(op.properties.get("scatter_dims_to_operand_dims")),
        given.index_vector_dim,
    )
    properties: dict[str, Attribute] = {
        "scatter_dimension_numbers": ScatterDimensionNumbersAttr(numbers),
        "indices_are_sorted": boolean(bool_of(op.properties.get("indices_are_sorted"))),
        "unique_indices": boolean(bool_of(op.properties.get("unique_indices"))),
    }
    region = scope.importer.region(given.to_apply)
    return scope.many("stablehlo.scatter", scope.inputs(op), op.shape, properties, (region,))


@converts("get-dimension-size", "set-dimension-size")
def dimension_size(op: Instruction, scope: Scope) -> Tree:
    """`get_dimension_size` and `set_dimension_size`."""
    name = "stablehlo." + op.opcode.name.replace("-", "_")
    properties: dict[str, Attribute] = {"dimension": integer(ints(op.properties["dimensions"])[0])}
    return scope.one(name, scope.inputs(op), op.shape, properties)


@converts("iota")
def iota(op: Instruction, scope: Scope) -> Tree:
    """`iota`."""
    properties = {"iota_dimension": op.properties["iota_dimension"]}
    return scope.one("stablehlo.iota", (), op.shape, properties)


@converts("pad")
def pad(op: Instruction, scope: Scope) -> Tree:
    """`pad`."""
    found = cast("PadOp", op).padding
    dims = () if found is None else found.dimensions
    properties: dict[str, Attribute] = {
        "edge_padding_low": integers(tuple(d.low for d in dims)),
        "edge_padding_high": integers(tuple(d.high for d in dims)),
        "interior_padding": integers(tuple(d.interior for d in dims)),
    }
    return scope.one("stablehlo.pad", scope.inputs(op), op.shape, properties)


@converts("reverse")
def reverse(op: Instruction, scope: Scope) -> Tree:
    """`reverse`."""
    properties = {"dimensions": op.properties["dimensions"]}
    return scope.one("stablehlo.reverse", scope.inputs(op), op.shape, properties)


@converts("slice")
def slice_(op: Instruction, scope: Scope) -> Tree:
    """`slice`."""
    found = cast("SliceOp", op).slices
    dims = () if found is None else found.dimensions
    properties: dict[str, Attribute] = {
        "start_indices": integers(tuple(d.start for d in dims)),
        "limit_indices": integers(tuple(d.limit for d in dims)),
        "strides": integers(tuple(d.stride for d in dims)),
    }
    return scope.one("stablehlo.slice", scope.inputs(op), op.shape, properties)


@converts("transpose")
def transpose(op: Instruction, scope: Scope) -> Tree:
    """`transpose`."""
    properties: dict[str, Attribute] = {
        "permutation": integers(ints(op.properties.get("dimensions")))
    }
    return scope.one("stablehlo.transpose", scope.inputs(op), op.shape, properties)
