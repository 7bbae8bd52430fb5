"""`gather` and `scatter`, and the ops that are made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.stablehlo.elements import array_of
from mlirhlo.rewrites.stablehlo_to_hlo.attributes import (
    attribute,
    boolean,
    flag,
    integer,
    integers,
    number,
    numbers,
)
from mlirhlo.rewrites.stablehlo_to_hlo.core import (
    Body,
    calls,
    joined_shape,
    lowers,
    result_shape,
)
from mlirhlo.rewrites.stablehlo_to_hlo.ops.data_movement import array_shape
from mlirhlo.rewrites.stablehlo_to_hlo.problems import problem


def _hints(op: Operation) -> dict[str, Attribute]:
    keys = ("indices_are_sorted", "unique_indices")
    return {key: boolean(True) for key in keys if flag(op, key)}


def _nonempty(**lists: tuple[int, ...]) -> dict[str, Attribute]:
    return {key: integers(tuple(values)) for key, values in lists.items() if values}


def gather_properties(numbers_: Any, sizes: Sequence[int]) -> dict[str, Attribute]:
    """Dimension numbers of a gather as properties."""
    return {
        "offset_dims": integers(tuple(numbers_.offset_dims)),
        "collapsed_slice_dims": integers(tuple(numbers_.collapsed_slice_dims)),
        "start_index_map": integers(tuple(numbers_.start_index_map)),
        **_nonempty(
            operand_batching_dims=numbers_.operand_batching_dims,
            start_indices_batching_dims=numbers_.start_indices_batching_dims,
        ),
        "index_vector_dim": integer(numbers_.index_vector_dim),
        "slice_sizes": integers(tuple(sizes)),
    }


@lowers("stablehlo.gather")
def gather(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`gather`."""
    dims = cast(Any, attribute(op, "dimension_numbers")).data
    properties = gather_properties(dims, numbers(op, "slice_sizes"))
    if flag(op, "indices_are_sorted"):
        properties["indices_are_sorted"] = boolean(True)
    return (body.emit("gather", body.inputs(op), result_shape(op), properties),)


@lowers("stablehlo.dynamic_gather")
def dynamic_gather(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`gather`; the slice sizes must be a constant."""
    owner = op.operands[2].owner
    if not isinstance(owner, Operation) or owner.name != "stablehlo.constant":
        raise problem(
            "HLO0421",
            op,
            "the slice sizes are not constant",
            "refine the program's shapes first (stablehlo-refine-shapes)",
        )
    sizes = tuple(int(v) for v in array_of(cast(Attribute, attribute(owner, "value"))).reshape(-1))
    dims = cast(Any, attribute(op, "dimension_numbers")).data
    properties = gather_properties(dims, sizes)
    if flag(op, "indices_are_sorted"):
        properties["indices_are_sorted"] = boolean(True)
    return (body.emit("gather", body.inputs(op)[:2], result_shape(op), properties),)


@lowers("stablehlo.scatter")
def scatter(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`scatter`, of a tuple when there are several inputs."""
    region = body.exporter.region(op, op.regions[0])
    dims = cast(Any, attribute(op, "scatter_dimension_numbers")).data
    properties: dict[str, Attribute] = {
        "update_window_dims": integers(tuple(dims.update_window_dims)),
        "inserted_window_dims": integers(tuple(dims.inserted_window_dims)),
        "scatter_dims_to_operand_dims": integers(tuple(dims.scatter_dims_to_operand_dims)),
        **_nonempty(
            input_batching_dims=dims.input_batching_dims,
            scatter_indices_batching_dims=dims.scatter_indices_batching_dims,
        ),
        "index_vector_dim": integer(dims.index_vector_dim),
        **_hints(op),
        "to_apply": calls(region),
    }
    value = body.emit("scatter", body.inputs(op), joined_shape(op), properties)
    return (value,) if len(op.results) == 1 else body.split(value, len(op.results))


@lowers("stablehlo.torch_index_select")
def torch_index_select(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`gather` of whole slices along one dimension."""
    operand, index = body.inputs(op)
    dim, batch = number(op, "dim"), number(op, "batch_dims")
    given, indices = array_shape(operand), array_shape(index)
    if batch:
        return (_batched_select(op, body, dim, batch),)
    result = cast(ArrayShape, result_shape(op))
    offset = [*range(dim), *range(dim + indices.rank, result.rank)]
    sizes = [1 if d == dim else size for d, size in enumerate(given.dimensions)]
    properties: dict[str, Attribute] = {
        "offset_dims": integers(tuple(offset)),
        "collapsed_slice_dims": integers((dim,)),
        "start_index_map": integers((dim,)),
        "index_vector_dim": integer(indices.rank),
        "slice_sizes": integers(tuple(sizes)),
    }
    return (body.emit("gather", (operand, index), result, properties),)


def _batched_select(op: Operation, body: Body, dim: int, batch: int) -> SSAValue:
    """Leading dimensions of operand and index go together: batching dimensions of the gather."""
    operand, index = body.inputs(op)
    given, indices = array_shape(operand), array_shape(index)
    result = cast(ArrayShape, result_shape(op))
    free = indices.rank - batch
    batched = set(range(batch))
    offset = [d for d in range(result.rank) if d >= batch and not dim <= d < dim + free]
    sizes = [1 if d == dim or d in batched else size for d, size in enumerate(given.dimensions)]
    properties: dict[str, Attribute] = {
        "offset_dims": integers(tuple(offset)),
        "collapsed_slice_dims": integers((dim,)),
        "start_index_map": integers((dim,)),
        "operand_batching_dims": integers(tuple(range(batch))),
        "start_indices_batching_dims": integers(tuple(range(batch))),
        "index_vector_dim": integer(indices.rank),
        "slice_sizes": integers(tuple(sizes)),
    }
    return body.emit("gather", (operand, index), result, properties)
