"""Shapes of gather and scatter, batching dimensions included."""

from __future__ import annotations

from collections.abc import Sequence

from mlirhlo.analysis.shape_inference.base import (
    Dimension,
    Given,
    checks,
    dimension,
    fits,
    infers,
    listed,
    plain,
)
from mlirhlo.analysis.shape_inference.reducers import check_reducer
from mlirhlo.dialects.hlo.shapes import UNBOUNDED, ArrayShape, Shape, TupleShape, array


def _has_repeat(values: Sequence[int]) -> bool:
    return len(set(values)) != len(values)


def _outside(values: Sequence[int], limit: int) -> int | None:
    return next((v for v in values if not 0 <= v < limit), None)


def _is_sorted(values: Sequence[int]) -> bool:
    return list(values) == sorted(values)


@infers(
    "gather",
    c1="operand and indices are arrays",
    c2="the indices are integers",
    c3="index_vector_dim is a dimension of the indices, or the one after the last",
    c4="offset_dims ascend without repeats",
    c5="offset_dims are dimensions of the result",
    c6="start_index_map has as many entries as the indices' index_vector_dim",
    c7="start_index_map names operand dimensions, each once",
    c8="collapsed_slice_dims are operand dimensions, ascending, each once",
    c9="operand_batching_dims are operand dimensions, ascending, each once",
    c10="there are as many start_indices_batching_dims as operand_batching_dims",
    c11="start_indices_batching_dims are dimensions of the indices, each once",
    c12="there is one slice size for each operand dimension",
    c13="each operand dimension is an offset dimension, collapsed or batched",
    c14="slice sizes are between 0 and the operand's sizes",
    c15="collapsed dimensions have slice size 0 or 1",
    c16="batched dimensions have slice size 0 or 1",
)
def gather(given: Given) -> Shape:
    """Batch dimensions of the indices, and kept slice dimensions at `offset_dims`."""
    x = given.array(0, "input tensor operand of gather op")
    indices = given.array(1, "gather indices operand of gather op")
    if not indices.element_type.is_integer:  # gather_c2
        raise given.error(
            2,
            f"Gather indices parameter must be an integral tensor; got {plain(indices)}.",
            operand=1,
        )
    vector = given.int("index_vector_dim")
    if not 0 <= vector <= indices.rank:  # gather_c3
        raise given.error(
            3,
            "Gather index leaf dimension must be within [0, rank(start_indices) + 1)."
            f" rank(start_indices) is {indices.rank} and gather index leaf dimension is {vector}.",
            attribute="index_vector_dim",
        )
    expanded = [dimension(indices, d) for d in range(indices.rank)]
    if vector == indices.rank:
        expanded.append((1, False))
    offsets = given.ints("offset_dims")
    rank = len(offsets) + len(expanded) - 1
    _check_gather_numbers(given, x, expanded, rank)
    sizes = given.ints("slice_sizes")
    collapsed, batching = given.ints("collapsed_slice_dims"), given.ints("operand_batching_dims")
    _check_slice_sizes(given, x, sizes, rank)
    batch = iter([d for d in range(len(expanded)) if d != vector])
    kept = iter([d for d in range(x.rank) if d not in collapsed and d not in batching])
    result: list[Dimension] = []
    for dim in range(rank):
        if dim in offsets:
            source = next(kept)
            whole = sizes[source] == x.dimensions[source]
            result.append((sizes[source], whole and x.is_dynamic_dimension(source)))
        else:
            result.append(expanded[next(batch)])
    return array(x.element_type, [d[0] for d in result], [d[1] for d in result])


def _check_gather_numbers(
    given: Given, x: ArrayShape, indices: Sequence[Dimension], rank: int
) -> None:
    offsets, starts = given.ints("offset_dims"), given.ints("start_index_map")
    collapsed = given.ints("collapsed_slice_dims")
    batching = given.ints("operand_batching_dims")
    indices_batching = given.ints("start_indices_batching_dims")
    vector = given.int("index_vector_dim")
    if not _is_sorted(offsets) or _has_repeat(offsets):  # gather_c4
        how = "not repeat" if _is_sorted(offsets) else "be ascending"
        raise given.error(
            4,
            f"Output window dimensions in gather op must {how}; got: {listed(offsets)}.",
            attribute="offset_dims",
        )
    for place, dim in enumerate(offsets):
        if not 0 <= dim < rank:  # gather_c5
            raise given.error(
                5,
                f"Offset dimension {place} in gather op is out of bounds; got {dim}, but should"
                f" have been in [0,{rank}).",
                attribute="offset_dims",
            )
    if not fits(len(starts), indices[vector][0]):  # gather_c6
        raise given.error(
            6,
            f"Gather op has {len(starts)} elements in start_index_map and the bound of dimension"
            f" index_vector_dim={vector} of start_indices is {indices[vector][0]}. These two"
            " numbers must be equal.",
            attribute="start_index_map",
        )
    bad = _outside(starts, x.rank)
    if bad is not None:  # gather_c7
        raise given.error(
            7,
            f"Invalid start_index_map; domain is [0, {x.rank}), got: {starts.index(bad)}->{bad}.",
            attribute="start_index_map",
        )
    if _has_repeat(starts):  # gather_c7
        raise given.error(
            7,
            f"Repeated dimensions are not allowed in start_index_map; got: {listed(starts)}.",
            attribute="start_index_map",
        )
    _check_dimension_set(given, "collapsed_slice_dims", collapsed, x.rank, 8)  # gather_c8
    _check_dimension_set(given, "operand_batching_dims", batching, x.rank, 9)  # gather_c9
    if len(batching) != len(indices_batching):  # gather_c10
        raise given.error(
            10,
            "operand_batching_dims and start_indices_batching_dims in gather op must be of the same"
            f" size; got: {len(batching)} and {len(indices_batching)}.",
            attribute="start_indices_batching_dims",
        )
    bad = _outside(indices_batching, len(indices))
    if bad is not None:  # gather_c11
        raise given.error(
            11,
            f"Invalid start_indices_batching_dims; domain is [0, {len(indices)}), got:"
            f" {indices_batching.index(bad)}->{bad}.",
            attribute="start_indices_batching_dims",
        )
    if _has_repeat(indices_batching):  # gather_c11
        raise given.error(
            11,
            "Repeated dimensions are not allowed in start_indices_batching_dims; got:"
            f" {listed(indices_batching)}.",
            attribute="start_indices_batching_dims",
        )


def _check_dimension_set(
    given: Given, key: str, values: Sequence[int], rank: int, number: int
) -> None:
    bad = _outside(values, rank)
    if bad is not None:
        message = f"Invalid {key} set in {given.opcode} op; valid range is [0, {rank}), got: {bad}."
    elif not _is_sorted(values):
        message = f"{key} in {given.opcode} op must be sorted; got: {listed(values)}"
    elif _has_repeat(values):
        message = (
            f"Repeated dimensions not allowed in {key} in {given.opcode} op; got: {listed(values)}."
        )
    else:
        return
    raise given.error(number, message, attribute=key)


def _check_slice_sizes(given: Given, x: ArrayShape, sizes: Sequence[int], rank: int) -> None:
    offsets, collapsed = given.ints("offset_dims"), given.ints("collapsed_slice_dims")
    batching = given.ints("operand_batching_dims")
    if len(sizes) != x.rank:  # gather_c12
        raise given.error(
            12,
            "Gather op must have one slice size for every input dimension; got:"
            f" len(slice_sizes)={len(sizes)}, input_shape.rank={x.rank}.",
            attribute="slice_sizes",
        )
    if len(sizes) != len(offsets) + len(collapsed) + len(batching):  # gather_c13
        raise given.error(
            13,
            "All components of the offset index in a gather op must either be a offset dimension or"
            f" explicitly collapsed or explicitly batched; got len(slice_sizes)={len(sizes)},"
            f" offset_dims={listed(offsets)}, collapsed_slice_dims={listed(collapsed)},"
            f" operand_batching_dims={listed(batching)}.",
            attribute="slice_sizes",
        )
    for dim, (size, whole) in enumerate(zip(sizes, x.dimensions, strict=True)):
        if size < 0 or (whole != UNBOUNDED and size > whole):  # gather_c14
            raise given.error(
                14,
                f"Slice size at index {dim} in gather op is out of range, must be within"
                f" [0, {whole + 1}), got {size}.",
                attribute="slice_sizes",
            )
    for place, dim in enumerate(collapsed):
        if sizes[dim] > 1:  # gather_c15
            raise given.error(
                15,
                f"Gather op can only collapse slice dims with bound 1 or 0, but bound is"
                f" {sizes[dim]} for index {dim} at position {place}.",
                attribute="slice_sizes",
            )
    for place, dim in enumerate(batching):
        if sizes[dim] > 1:  # gather_c16
            raise given.error(
                16,
                f"Gather op can only have operand_batching_dims with bound 1 or 0, but bound is"
                f" {sizes[dim]} for index {dim} at position {place}.",
                attribute="slice_sizes",
            )


@checks(
    "gather",
    c17="a dimension is collapsed or batched, not both; batched ones have no start index",
    c18="batched dimensions have equal sizes in operand and indices",
)
def check_gather(given: Given) -> None:
    """What inference lets pass: overlapping dimension numbers."""
    _check_batching(
        given,
        given.array(0, "gather"),
        given.array(1, "gather"),
        ("collapsed_slice_dims", "start_index_map"),
        ("operand_batching_dims", "start_indices_batching_dims"),
        17,
        18,
    )


def _check_batching(
    given: Given,
    x: ArrayShape,
    indices: ArrayShape,
    others: tuple[str, str],
    keys: tuple[str, str],
    overlap: int,
    sizes: int,
) -> None:
    batching, indices_batching = given.ints(keys[0]), given.ints(keys[1])
    for key in others:
        shared = set(given.ints(key)) & set(batching)
        if shared:
            raise given.error(
                overlap, f"dimension {min(shared)} is in {key} and in {keys[0]}", attribute=keys[0]
            )
    vector = given.int("index_vector_dim")
    for a, b in zip(batching, indices_batching, strict=True):
        if b == vector:
            raise given.error(
                overlap, f"dimension {b} is index_vector_dim and in {keys[1]}", attribute=keys[1]
            )
        if not fits(x.dimensions[a], indices.dimensions[b]):
            raise given.error(
                sizes,
                f"batched dimensions differ: {x.dimensions[a]} (dimension {a} of {plain(x)}) and"
                f" {indices.dimensions[b]} (dimension {b} of {plain(indices)})",
                attribute=keys[0],
            )


# ---------------------------------------------------------------- scatter


@infers(
    "scatter",
    c1="inputs, indices and updates are arrays",
    c2="the indices are integers",
    c3="index_vector_dim is a dimension of the indices, or the one after the last",
    c4="to_apply takes two scalars for each input and gives one for each",
    c5="the updates have as many dimensions as scatter and window dimensions together",
    c6="update_window_dims are dimensions of the updates, ascending, each once",
    c7="inserted_window_dims are dimensions of the input, ascending, each once",
    c8="input_batching_dims are dimensions of the input, ascending, each once",
    c9="there are as many scatter_indices_batching_dims as input_batching_dims",
    c10="scatter_indices_batching_dims are dimensions of the indices, each once",
    c11="each input dimension is a window dimension, inserted or batched",
    c12="scatter_dims_to_operand_dims has as many entries as the indices' index_vector_dim",
    c13="scatter_dims_to_operand_dims names input dimensions, each once",
    c14="window dimensions of the updates are not greater than the input's",
    c15="scatter dimensions of the updates have the indices' sizes",
)
def scatter(given: Given) -> Shape:
    """The inputs' shapes; a tuple for several."""
    count = (len(given.operands) - 1) // 2
    inputs = tuple(given.array(i, f"operand {i} of scatter op") for i in range(count))
    indices = given.array(count, "scatter indices of scatter op")
    updates = tuple(
        given.array(i, f"updates {i - count - 1} of scatter op")
        for i in range(count + 1, len(given.operands))
    )
    if not indices.element_type.is_integer:  # scatter_c2
        raise given.error(
            2,
            f"Scatter indices parameter must be an integral tensor; got {plain(indices)}.",
            operand=count,
        )
    vector = given.int("index_vector_dim")
    if not 0 <= vector <= indices.rank:  # scatter_c3
        raise given.error(
            3,
            "Scatter index leaf dimension must be within [0, rank(scatter_indices) + 1)."
            f" rank(scatter_indices) is {indices.rank} and scatter index leaf dimension is"
            f" {vector}.",
            attribute="index_vector_dim",
        )
    expanded = list(indices.dimensions) + ([1] if vector == indices.rank else [])
    window = given.ints("update_window_dims")
    wanted = len(expanded) - 1 + len(window)
    for index, update in enumerate(updates):
        if update.rank != wanted:  # scatter_c5
            raise given.error(
                5,
                f"Updates tensor must be of rank {wanted}; got {update.rank}.",
                operand=count + 1 + index,
            )
    for x, update in zip(inputs, updates, strict=True):
        _check_scatter_numbers(given, x, expanded, update)
    check_reducer(  # scatter_c4
        given,
        given.callee("to_apply"),
        [array(x.element_type) for x in inputs],
        [update.element_type for update in updates],
        4,
        "to_apply",
    )
    for index, (x, update) in enumerate(zip(inputs, updates, strict=True)):
        _check_updates(given, x, expanded, update, count + 1 + index)
    return inputs[0] if count == 1 else TupleShape(inputs)


def _check_scatter_numbers(
    given: Given, x: ArrayShape, indices: Sequence[int], update: ArrayShape
) -> None:
    vector = given.int("index_vector_dim")
    window = given.ints("update_window_dims")
    inserted, batching = given.ints("inserted_window_dims"), given.ints("input_batching_dims")
    indices_batching = given.ints("scatter_indices_batching_dims")
    to_operand = given.ints("scatter_dims_to_operand_dims")
    _check_dimension_set(given, "update_window_dims", window, update.rank, 6)  # scatter_c6
    _check_dimension_set(given, "inserted_window_dims", inserted, x.rank, 7)  # scatter_c7
    _check_dimension_set(given, "input_batching_dims", batching, x.rank, 8)  # scatter_c8
    if len(batching) != len(indices_batching):  # scatter_c9
        raise given.error(
            9,
            "input_batching_dims and scatter_indices_batching_dims in scatter op must be of the same"
            f" size; got: {len(batching)} and {len(indices_batching)}.",
            attribute="scatter_indices_batching_dims",
        )
    if _has_repeat(indices_batching) or _outside(indices_batching, len(indices)) is not None:
        raise given.error(  # scatter_c10
            10,
            "scatter_indices_batching_dims must name dimensions of the indices once each; got:"
            f" {listed(indices_batching)}.",
            attribute="scatter_indices_batching_dims",
        )
    size = len(window) + len(inserted) + len(batching)
    if size != x.rank:  # scatter_c11
        raise given.error(
            11,
            f"Scatter op has window of size {size}; doesn't match operand of rank {x.rank}.",
            attribute="update_window_dims",
        )
    if not fits(len(to_operand), indices[vector]):  # scatter_c12
        raise given.error(
            12,
            f"Scatter op has {len(to_operand)} elements in scatter_dims_to_operand_dims and the"
            f" bound of dimension index_vector_dim={vector} of scatter_indices is"
            f" {indices[vector]}. These two numbers must be equal.",
            attribute="scatter_dims_to_operand_dims",
        )
    bad = _outside(to_operand, x.rank)
    if bad is not None:  # scatter_c13
        raise given.error(
            13,
            f"Invalid scatter_dims_to_operand_dims mapping; domain is [0, {x.rank}), got:"
            f" {to_operand.index(bad)}->{bad}.",
            attribute="scatter_dims_to_operand_dims",
        )
    if _has_repeat(to_operand):  # scatter_c13
        raise given.error(
            13,
            "Repeated dimensions not allowed in scatter_dims_to_operand_dims; got:"
            f" {listed(to_operand)}.",
            attribute="scatter_dims_to_operand_dims",
        )


def _check_updates(
    given: Given, x: ArrayShape, indices: Sequence[int], update: ArrayShape, operand: int
) -> None:
    window = given.ints("update_window_dims")
    skipped = {*given.ints("inserted_window_dims"), *given.ints("input_batching_dims")}
    kept = [size for dim, size in enumerate(x.dimensions) if dim not in skipped]
    for dim, bound in zip(window, kept, strict=False):
        if update.dimensions[dim] > bound:  # scatter_c14
            raise given.error(
                14,
                "Bounds of the window dimensions of updates must not exceed the bounds of the"
                f" corresponding dimensions of operand. For dimension {dim}, updates bound is"
                f" {update.dimensions[dim]}, operand bound is {bound}.",
                operand=operand,
            )
    vector = given.int("index_vector_dim")
    batch = [size for dim, size in enumerate(indices) if dim != vector]
    scattered = [dim for dim in range(update.rank) if dim not in window]
    for dim, size in zip(scattered, batch, strict=True):
        if not fits(update.dimensions[dim], size):  # scatter_c15
            raise given.error(
                15,
                "Bounds of the scatter dimensions of updates must be same as the bounds of the"
                f" corresponding dimensions of scatter indices. For scatter dimension {dim},"
                f" updates bound is {update.dimensions[dim]}, scatter_indices bound is {size}.",
                operand=operand,
            )


@checks(
    "scatter",
    c16="a dimension is inserted or batched, not both; batched ones have no scatter index",
    c17="batched dimensions have equal sizes in input and indices",
    c18="all inputs have the same sizes",
)
def check_scatter(given: Given) -> None:
    """What inference lets pass: overlapping dimension numbers, inputs of different sizes."""
    count = (len(given.operands) - 1) // 2
    first = given.array(0, "scatter")
    for index in range(1, count):
        other = given.array(index, "scatter")
        if other.dimensions != first.dimensions:  # scatter_c18
            raise given.error(
                18, f"the inputs differ in size: {plain(first)} and {plain(other)}", operand=index
            )
    _check_batching(
        given,
        first,
        given.array(count, "scatter"),
        ("inserted_window_dims", "scatter_dims_to_operand_dims"),
        ("input_batching_dims", "scatter_indices_batching_dims"),
        16,
        17,
    )
