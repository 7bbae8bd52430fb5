"""Rules of gather, scatter and the slices whose start is computed."""

from __future__ import annotations

from collections.abc import Sequence

from mlirhlo.analysis.shape_inference.base import fits
from mlirhlo.analysis.stablehlo.base import (
    Given,
    Results,
    check_range,
    check_sorted,
    check_unique,
    infers,
)
from mlirhlo.analysis.stablehlo.reducers import check_reducer, reduced_elements
from mlirhlo.analysis.stablehlo.tensors import DYNAMIC, Tensor, fits_element, fits_sizes
from mlirhlo.dialects.stablehlo.attributes import (
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
)

_GATHER = {
    "c1": "the operand has offset, collapsed and batching dimensions and no others",
    "c2": "index_vector_dim is a dimension of start_indices, or the one after its last",
    "c3": "start_index_map has an entry for each component of an index",
    "c4": "offset_dims are unique and sorted",
    "c5": "offset_dims are dimensions of the result",
    "c6": "collapsed_slice_dims and operand_batching_dims are unique together",
    "c7": "collapsed_slice_dims are sorted",
    "c8": "collapsed_slice_dims are dimensions of the operand",
    "c9": "slices have at most one element along collapsed_slice_dims",
    "c10": "operand_batching_dims are sorted",
    "c11": "operand_batching_dims are dimensions of the operand",
    "c12": "slices have at most one element along operand_batching_dims",
    "c13": "start_indices_batching_dims are unique",
    "c14": "start_indices_batching_dims are dimensions of start_indices",
    "c15": "index_vector_dim is none of start_indices_batching_dims",
    "c16": "operand and start_indices have as many batching dimensions",
    "c17": "batching dimensions of operand and start_indices have the same sizes",
    "c18": "start_index_map and operand_batching_dims are unique together",
    "c19": "start_index_map are dimensions of the operand",
    "c20": "slice_sizes has an entry for each dimension of the operand",
    "c21": "slices fit into the operand",
    "c22": "the result has the batch sizes of start_indices and, at offset_dims, those of the slice",
    "c23": "operand and result have one element type",
}


@infers("gather", result=(22, 23), **_GATHER)
def _gather(given: Given) -> Results:
    sizes = given.ints("slice_sizes")
    return (_gathered(given, len(sizes), sizes),)


@infers("dynamic_gather", result=(22, 23), **_GATHER)
def _dynamic_gather(given: Given) -> Results:
    sizes = given.constant(2)
    count = given.tensor(2).sizes
    length = count[0] if count else 0
    return (_gathered(given, length, sizes),)


def _gathered(given: Given, length: int, slice_sizes: Sequence[int] | None) -> Tensor:
    """The result; `slice_sizes` is None while they are not known."""
    operand, indices = given.tensor(0), given.tensor(1)
    numbers: GatherDimensionNumbers = given.data("dimension_numbers")
    vector = numbers.index_vector_dim
    offsets, collapsed = numbers.offset_dims, numbers.collapsed_slice_dims
    batching, index_batching = numbers.operand_batching_dims, numbers.start_indices_batching_dims
    key = "dimension_numbers"
    if operand.rank != len(offsets) + len(collapsed) + len(batching):  # c1
        raise given.error(
            1,
            f"{len(offsets)} offset, {len(collapsed)} collapsed and {len(batching)} batching"
            f" dimensions do not make the operand's rank {operand.rank}",
            attribute=key,
        )
    check_range(given, [vector], indices.rank + 1, 2, "index_vector_dim", "places")  # c2
    components = 1 if vector == indices.rank else indices.sizes[vector]
    if components not in (DYNAMIC, len(numbers.start_index_map)):  # c3
        raise given.error(
            3,
            f"start_index_map has {len(numbers.start_index_map)} entries for indices of"
            f" {components} components",
            attribute=key,
        )
    check_sorted(given, offsets, 4, "offset_dims")  # c4
    check_unique(given, offsets, 4, "offset_dims")
    check_unique(given, (*collapsed, *batching), 6, "collapsed_slice_dims with batching dims")
    check_sorted(given, collapsed, 7, "collapsed_slice_dims")
    check_range(given, collapsed, operand.rank, 8, "collapsed_slice_dims", "dimensions")
    check_sorted(given, batching, 10, "operand_batching_dims")
    check_range(given, batching, operand.rank, 11, "operand_batching_dims", "dimensions")
    check_unique(given, index_batching, 13, "start_indices_batching_dims")
    check_range(
        given, index_batching, indices.rank, 14, "start_indices_batching_dims", "dimensions"
    )
    if vector in index_batching:  # c15
        raise given.error(15, f"start_indices_batching_dims has index_vector_dim {vector}")
    _check_batching(
        given, (operand, indices), (batching, index_batching), (16, 17), "operand_batching_dims"
    )
    check_unique(given, (*numbers.start_index_map, *batching), 18, "start_index_map with batching")
    check_range(given, numbers.start_index_map, operand.rank, 19, "start_index_map", "dimensions")
    if length not in (DYNAMIC, operand.rank):  # c20
        raise given.error(20, f"slice_sizes has {length} entries for rank {operand.rank}")
    if slice_sizes is not None:
        _check_slice_sizes(given, operand, slice_sizes, collapsed, batching)
    rank = len(offsets) + indices.rank - (vector < indices.rank)
    check_range(given, offsets, rank, 5, "offset_dims", "dimensions of the result")  # c5
    kept = [
        DYNAMIC if slice_sizes is None else slice_sizes[dim]
        for dim in range(operand.rank)
        if dim not in collapsed and dim not in batching
    ]
    return operand.with_sizes(*_interleaved(rank, offsets, kept, indices, vector))


def _check_batching(
    given: Given,
    tensors: tuple[Tensor, Tensor],
    dims: tuple[Sequence[int], Sequence[int]],
    numbers: tuple[int, int],
    key: str,
) -> None:
    if len(dims[0]) != len(dims[1]):
        raise given.error(
            numbers[0], f"{len(dims[0])} and {len(dims[1])} batching dimensions", attribute=key
        )
    for mine, yours in zip(*dims, strict=True):
        a, b = tensors[0].sizes[mine], tensors[1].sizes[yours]
        if not fits(a, b):
            raise given.error(
                numbers[1], f"batching dimensions {mine} and {yours} have {a} and {b} elements"
            )


def _check_slice_sizes(
    given: Given,
    operand: Tensor,
    sizes: Sequence[int],
    collapsed: Sequence[int],
    batching: Sequence[int],
) -> None:
    for dims, number, name in ((collapsed, 9, "collapsed"), (batching, 12, "batching")):
        for dim in dims:  # c9, c12
            if sizes[dim] > 1:
                raise given.error(
                    number,
                    f"a slice has {sizes[dim]} elements along {name} dimension {dim}",
                    attribute="slice_sizes",
                )
    for dim, (size, most) in enumerate(zip(sizes, operand.sizes, strict=True)):  # c21
        if size < 0 or (most != DYNAMIC and size > most):
            raise given.error(
                21,
                f"a slice of {size} elements does not fit the {most} of dimension {dim}",
                attribute="slice_sizes",
            )


def _interleaved(
    rank: int, offsets: Sequence[int], kept: Sequence[int], indices: Tensor, vector: int
) -> tuple[list[int], list[int]]:
    """Sizes and bounds of a gather's result: those of the slice at `offsets`, else of indices."""
    batch = iter([dim for dim in range(indices.rank) if dim != vector])
    slices = iter(kept)
    sizes: list[int] = []
    bounds: list[int] = []
    for dim in range(rank):
        if dim in offsets:
            sizes.append(next(slices))
            bounds.append(DYNAMIC)
            continue
        source = next(batch)
        sizes.append(indices.sizes[source])
        bounds.append(indices.bound(source))
    return sizes, bounds


@infers(
    "dynamic_slice",
    c1="operand and result have one element type",
    c2="start_indices and slice_sizes have an entry for each dimension",
    c3="start indices have one type",
    c4="slices fit into the operand",
    c5="the result has slice_sizes",
    result=(5, 1),
)
def _dynamic_slice(given: Given) -> Results:
    operand, starts = given.tensor(0), given.tensors(1)
    sizes = given.ints("slice_sizes")
    if not operand.rank == len(starts) == len(sizes):  # c2
        raise given.error(
            2, f"{len(starts)} start indices and {len(sizes)} slice sizes for rank {operand.rank}"
        )
    _check_one_type(given, starts, 1, 3)  # c3
    for dim, (size, most) in enumerate(zip(sizes, operand.sizes, strict=True)):  # c4
        if size < 0 or (most != DYNAMIC and size > most):
            raise given.error(
                4,
                f"a slice of {size} elements does not fit the {most} of dimension {dim}",
                attribute="slice_sizes",
            )
    return (operand.with_sizes(sizes),)


def _check_one_type(given: Given, starts: Sequence[Tensor], first: int, number: int) -> None:
    for index, start in enumerate(starts):
        if start.element != starts[0].element:
            raise given.error(
                number,
                f"start indices have different types: {starts[0]} and {start}",
                operand=first + index,
            )


@infers(
    "dynamic_update_slice",
    c1="operand and result have one type",
    c2="operand and update have one element type",
    c3="operand and update have one rank",
    c4="start_indices has an entry for each dimension",
    c5="start indices have one type",
    c6="the update fits into the operand",
)
def _dynamic_update_slice(given: Given) -> Results:
    operand, update, starts = given.tensor(0), given.tensor(1), given.tensors(2)
    if not fits_element(operand.element, update.element):  # c2
        raise given.error(
            2, f"element types differ: {operand.element} and {update.element}", operand=1
        )
    if update.rank != operand.rank:  # c3
        raise given.error(3, f"the update has rank {update.rank}, not {operand.rank}", operand=1)
    if len(starts) != operand.rank:  # c4
        raise given.error(4, f"{len(starts)} start indices for rank {operand.rank}")
    _check_one_type(given, starts, 2, 5)  # c5
    for dim, (size, most) in enumerate(zip(update.sizes, operand.sizes, strict=True)):  # c6
        if DYNAMIC not in (size, most) and size > most:
            raise given.error(
                6, f"{size} elements do not fit the {most} of dimension {dim}", operand=1
            )
    return (operand,)


@infers(
    "scatter",
    c1="all inputs have one shape",
    c2="the inputs have window, inserted and batching dimensions and no others",
    c3="all updates have one shape",
    c4="updates have the sizes of scatter_indices and, at update_window_dims, fit the inputs",
    c5="there are as many updates as inputs and results, and at least one",
    c6="updates have the element types of the inputs",
    c7="update_window_dims are unique and sorted",
    c8="update_window_dims are dimensions of the updates",
    c9="inserted_window_dims and input_batching_dims are unique together",
    c10="inserted_window_dims are sorted",
    c11="inserted_window_dims are dimensions of the inputs",
    c12="input_batching_dims are sorted",
    c13="input_batching_dims are dimensions of the inputs",
    c14="scatter_indices_batching_dims are unique",
    c15="scatter_indices_batching_dims are dimensions of scatter_indices",
    c16="index_vector_dim is none of scatter_indices_batching_dims",
    c17="inputs and scatter_indices have as many batching dimensions",
    c18="batching dimensions of inputs and scatter_indices have the same sizes",
    c19="scatter_dims_to_operand_dims has an entry for each component of an index",
    c20="scatter_dims_to_operand_dims and input_batching_dims are unique together",
    c21="scatter_dims_to_operand_dims are dimensions of the inputs",
    c22="index_vector_dim is a dimension of scatter_indices, or the one after its last",
    c23="update_computation takes and returns scalars that inputs and updates are promotable to",
    c24="inputs and results have one shape",
    c25="results have the element types that update_computation returns",
    result=(24, 25),
)
def _scatter(given: Given) -> Results:
    count = (len(given.operands) - 1) // 2
    if count < 1 or len(given.operands) != 2 * count + 1:  # c5
        raise given.error(5, f"{len(given.operands)} operands are not inputs, indices and updates")
    inputs = given.tensors(0, count)
    _check_scatter(given)
    elements = reduced_elements(given, 0, count, 23)
    return [t.with_element(element) for t, element in zip(inputs, elements, strict=True)]


def _check_scatter(given: Given) -> None:
    count = (len(given.operands) - 1) // 2
    inputs, indices = given.tensors(0, count), given.tensor(count)
    updates = given.tensors(count + 1)
    for tensors, first, number in ((inputs, 0, 1), (updates, count + 1, 3)):  # c1, c3
        for index, tensor in enumerate(tensors):
            if not fits_sizes(tensors[0].sizes, tensor.sizes):
                raise given.error(
                    number, f"shapes differ: {tensors[0]} and {tensor}", operand=first + index
                )
    if indices.kind not in ("S", "U"):
        raise given.error("i2", f"scatter_indices are integers, not {indices}", operand=count)
    numbers: ScatterDimensionNumbers = given.data("scatter_dimension_numbers")
    vector = numbers.index_vector_dim
    check_range(given, [vector], indices.rank + 1, 22, "index_vector_dim", "places")  # c22
    for index, (one, update) in enumerate(zip(inputs, updates, strict=True)):  # c6
        if not fits_element(one.element, update.element):
            raise given.error(
                6,
                f"element types differ: {one.element} and {update.element}",
                operand=count + 1 + index,
            )
    scalars = [update.with_sizes(()) for update in updates]
    check_reducer(given, 0, inputs, scalars, (), (23, 23))  # c23
    expanded = indices
    if vector == indices.rank:
        expanded = indices.with_sizes((*indices.sizes, 1))
    rank = expanded.rank - 1 + len(numbers.update_window_dims)
    for index, update in enumerate(updates):  # c4
        if update.rank != rank:
            raise given.error(
                4, f"updates have rank {update.rank}, not {rank}", operand=count + 1 + index
            )
    _check_scatter_numbers(given, inputs[0], expanded, updates[0], numbers)
    _check_update_sizes(given, inputs[0], expanded, updates[0], numbers)


def _check_scatter_numbers(
    given: Given, operand: Tensor, indices: Tensor, update: Tensor, numbers: ScatterDimensionNumbers
) -> None:
    windows, inserted = numbers.update_window_dims, numbers.inserted_window_dims
    batching = numbers.input_batching_dims
    index_batching = numbers.scatter_indices_batching_dims
    targets, vector = numbers.scatter_dims_to_operand_dims, numbers.index_vector_dim
    if operand.rank != len(windows) + len(inserted) + len(batching):  # c2
        raise given.error(
            2,
            f"{len(windows)} window, {len(inserted)} inserted and {len(batching)} batching"
            f" dimensions do not make the inputs' rank {operand.rank}",
            attribute="scatter_dimension_numbers",
        )
    check_sorted(given, windows, 7, "update_window_dims")  # c7
    check_unique(given, windows, 7, "update_window_dims")
    check_range(given, windows, update.rank, 8, "update_window_dims", "dimensions of updates")
    check_unique(given, (*inserted, *batching), 9, "inserted_window_dims with batching dims")
    check_sorted(given, inserted, 10, "inserted_window_dims")
    check_range(given, inserted, operand.rank, 11, "inserted_window_dims", "dimensions")
    check_sorted(given, batching, 12, "input_batching_dims")
    check_range(given, batching, operand.rank, 13, "input_batching_dims", "dimensions")
    check_unique(given, index_batching, 14, "scatter_indices_batching_dims")
    check_range(
        given, index_batching, indices.rank, 15, "scatter_indices_batching_dims", "dimensions"
    )
    if vector in index_batching:  # c16
        raise given.error(16, f"scatter_indices_batching_dims has index_vector_dim {vector}")
    _check_batching(
        given, (operand, indices), (batching, index_batching), (17, 18), "input_batching_dims"
    )
    if indices.sizes[vector] not in (DYNAMIC, len(targets)):  # c19
        raise given.error(
            19,
            f"scatter_dims_to_operand_dims has {len(targets)} entries for indices of"
            f" {indices.sizes[vector]} components",
            attribute="scatter_dimension_numbers",
        )
    check_unique(given, (*targets, *batching), 20, "scatter_dims_to_operand_dims with batching")
    check_range(given, targets, operand.rank, 21, "scatter_dims_to_operand_dims", "dimensions")


def _check_update_sizes(
    given: Given, operand: Tensor, indices: Tensor, update: Tensor, numbers: ScatterDimensionNumbers
) -> None:
    inserted = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
    most = [size for dim, size in enumerate(operand.sizes) if dim not in inserted]
    for dim, limit in zip(numbers.update_window_dims, most, strict=True):  # c4
        if DYNAMIC not in (update.sizes[dim], limit) and update.sizes[dim] > limit:
            raise given.error(
                4, f"a window of {update.sizes[dim]} elements does not fit the {limit} of the input"
            )
    places = iter([s for d, s in enumerate(indices.sizes) if d != numbers.index_vector_dim])
    for dim, size in enumerate(update.sizes):  # c4
        if dim in numbers.update_window_dims:
            continue
        expected = next(places)
        if not fits(size, expected):
            raise given.error(
                4, f"dimension {dim} of the updates has {size} elements, the indices {expected}"
            )
