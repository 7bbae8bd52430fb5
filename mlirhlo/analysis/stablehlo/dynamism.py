"""Rules of the ops whose shapes are operands."""

from __future__ import annotations

from collections.abc import Sequence

from mlirhlo.analysis.shape_inference.base import fits
from mlirhlo.analysis.stablehlo.base import (
    Given,
    Results,
    check_range,
    check_unique,
    checks,
    infers,
    listed,
)
from mlirhlo.analysis.stablehlo.data_movement import (
    check_quantized_broadcast,
    check_quantized_reshape,
)
from mlirhlo.analysis.stablehlo.quantization import check_same_scales
from mlirhlo.analysis.stablehlo.tensors import (
    DYNAMIC,
    Tensor,
    fits_element,
    is_quantized,
)
from mlirhlo.dialects.stablehlo.attributes import TypeExtensions, TypeExtensionsAttr


def _described(given: Given, index: int, element: Tensor | None = None) -> Tensor | None:
    """The tensor that shape operand `index` describes; None where even its rank is not known."""
    source = element or given.tensor(0)
    sizes = given.constant(index)
    if sizes is not None:
        return source.with_sizes(sizes)
    count = given.tensor(index).sizes
    if not count or count[0] == DYNAMIC:
        return None
    return source.with_sizes((DYNAMIC,) * count[0])


def _check_described(given: Given, index: int, result: Tensor, number: int) -> None:
    """The declared result fits shape operand `index`; raises constraint `number`."""
    count = given.tensor(index).sizes
    if count and not fits(count[0], result.rank):
        raise given.error(
            number, f"a shape of {count[0]} sizes does not describe {result}", operand=index
        )
    sizes = given.constant(index)
    if sizes is None:
        return
    for dim, (size, declared) in enumerate(zip(sizes, result.sizes, strict=True)):
        limit = result.bound(dim)
        if (size >= 0 and not fits(size, declared)) or (limit != DYNAMIC and size > limit):
            raise given.error(
                number, f"the shape {listed(sizes)} is not that of {result}", operand=index
            )


@infers(
    "dynamic_broadcast_in_dim",
    c1="operand and result have one element type",
    c2="broadcast_dimensions has an entry for each dimension of the operand",
    c3="broadcast_dimensions are dimensions of the result",
    c4="broadcast_dimensions are unique",
    c5="each dimension of the operand has size 1 or that of the result",
    c6="per-axis quantization follows the dimension it is along",
    c7="output_dimensions has an entry for each dimension of the result",
    c8="known_expanding_dimensions and known_nonexpanding_dimensions are unique together",
    c9="known_expanding_dimensions are dimensions of the operand",
    c10="known_nonexpanding_dimensions are dimensions of the operand",
    result=(7, 1),
)
def _dynamic_broadcast_in_dim(given: Given) -> Results | None:
    if given.declared is not None:
        _check_dynamic_broadcast_in_dim(given)
    found = _described(given, 1)
    if found is None:
        return None
    if given.declared is not None and is_quantized(found.element):
        found = found.with_element(given.result().element)
    operand, sizes = given.tensor(0), list(found.sizes)
    same = given.ints("known_nonexpanding_dimensions")
    for dim, target in enumerate(given.ints("broadcast_dimensions")[: operand.rank]):
        # A size other than 1 cannot grow.
        if 0 <= target < found.rank and sizes[target] == DYNAMIC:
            if operand.sizes[dim] != 1 or dim in same:
                sizes[target] = operand.sizes[dim]
    return (found.with_sizes(sizes),)


def _check_dynamic_broadcast_in_dim(given: Given) -> None:
    operand, result = given.tensor(0), given.result()
    dims = given.ints("broadcast_dimensions")
    if not fits_element(operand.element, result.element) and not is_quantized(operand.element):
        raise given.error(1, f"element types differ: {operand.element} and {result.element}")  # c1
    if len(dims) != operand.rank:  # c2
        raise given.error(
            2, f"{len(dims)} broadcast_dimensions for rank {operand.rank}",
            attribute="broadcast_dimensions",
        )  # fmt: skip
    check_unique(given, dims, 4, "broadcast_dimensions")  # c4
    check_range(given, dims, result.rank, 3, "broadcast_dimensions", "dimensions of the result")
    known = given.constant(1)
    for dim, target in enumerate(dims):  # c5
        size = operand.sizes[dim]
        wanted = [result.sizes[target]] + ([] if known is None else [known[target]])
        if size != 1 and any(not fits(size, other) for other in wanted):
            raise given.error(
                5, f"dimension {dim} has {size} elements, neither 1 nor {max(wanted)}", operand=0
            )
    _check_described(given, 1, result, 7)  # c7
    expanding = given.ints("known_expanding_dimensions")
    others = given.ints("known_nonexpanding_dimensions")
    check_unique(given, (*expanding, *others), 8, "known expanding and nonexpanding dimensions")
    check_range(given, expanding, operand.rank, 9, "known_expanding_dimensions", "dimensions")
    check_range(given, others, operand.rank, 10, "known_nonexpanding_dimensions", "dimensions")
    check_quantized_broadcast(given, operand, result, dims, 6)  # c6


@infers(
    "dynamic_iota",
    c1="iota_dimension is a dimension of the result",
    c2="output_shape has an entry for each dimension of the result",
    result=(2, 2),
)
def _dynamic_iota(given: Given) -> Results | None:
    if given.declared is None:
        return None
    found = _described(given, 0, given.result())
    return None if found is None else (found,)


@checks("dynamic_iota")
def _check_dynamic_iota(given: Given) -> None:
    result, dim = given.result(), given.int("iota_dimension")
    check_range(given, [dim], result.rank, 1, "iota_dimension", "dimensions")  # c1
    _check_described(given, 0, result, 2)  # c2


@infers(
    "dynamic_pad",
    c1="operand, padding_value and result have one element type",
    c2="edge_padding_low, edge_padding_high and interior_padding have an entry for each dimension"
    " and one type",
    c3="interior padding is not negative",
    c4="the result has the operand's elements and the padding",
    result=(4, 1),
)
def _dynamic_pad(given: Given) -> Results:
    operand, value = given.tensor(0), given.tensor(1)
    if not fits_element(operand.element, value.element):  # c1
        raise given.error(
            1, f"element types differ: {operand.element} and {value.element}", operand=1
        )
    _check_alike(given, (2, 3, 4), operand.rank, 2)  # c2
    lows, highs, interiors = (given.constant(index) for index in (2, 3, 4))
    if interiors is not None and any(interior < 0 for interior in interiors):  # c3
        raise given.error(3, f"interior padding is negative: {listed(interiors)}", operand=4)
    if lows is None or highs is None or interiors is None:
        return (operand.with_sizes([DYNAMIC] * operand.rank),)
    sizes = [
        DYNAMIC if size == DYNAMIC else size + low + high + max(size - 1, 0) * interior
        for size, low, high, interior in zip(operand.sizes, lows, highs, interiors, strict=True)
    ]
    if any(size != DYNAMIC and size < 0 for size in sizes):  # c4
        raise given.error(4, f"sizes would be {listed(sizes)}")
    return (operand.with_sizes(sizes),)


@infers(
    "dynamic_reshape",
    c1="operand and result have one element type",
    c2="operand and result have as many elements",
    c3="per-axis quantization stays along a dimension of the same size and place",
    c4="output_shape has an entry for each dimension of the result",
    result=(4, 1),
)
def _dynamic_reshape(given: Given) -> Results | None:
    found = _described(given, 1)
    if found is not None and given.declared is not None and is_quantized(found.element):
        found = found.with_element(given.result().element)
    return None if found is None else (found,)


@checks("dynamic_reshape")
def _check_dynamic_reshape(given: Given) -> None:
    operand, result = given.tensor(0), given.result()
    if is_quantized(operand.element) or is_quantized(result.element):
        check_same_scales(given, operand, result, 1)  # c1
    elif operand.element != result.element:  # c1
        raise given.error(1, f"element types differ: {operand.element} and {result.element}")
    sizes = given.constant(1)
    for shape in (result, None if sizes is None else result.with_sizes(sizes)):  # c2
        if shape is None or not operand.is_static or not shape.is_static:
            continue
        if operand.count != shape.count:
            raise given.error(
                2, f"{operand.count} elements cannot become {shape} ({shape.count} elements)"
            )
    _check_described(given, 1, result, 4)  # c4
    check_quantized_reshape(given, operand, result, 3)  # c3


@infers(
    "real_dynamic_slice",
    c1="start_indices, limit_indices and strides have an entry for each dimension and one type",
    c2="operand and result have one element type and one rank",
    result=(2, 2),
)
def _real_dynamic_slice(given: Given) -> Results:
    operand = given.tensor(0)
    _check_alike(given, (1, 2, 3), operand.rank, 1)  # c1
    starts, limits, strides = (given.constant(index) for index in (1, 2, 3))
    sizes = [DYNAMIC] * operand.rank
    if starts is not None and limits is not None and strides is not None and 0 not in strides:
        sizes = _sliced(starts, limits, strides)
    return (operand.with_sizes(sizes),)


def _check_alike(given: Given, indices: Sequence[int], rank: int, number: int) -> None:
    """Operands `indices` are vectors of one type, with an entry for each of `rank` dimensions."""
    first = given.tensor(indices[0])
    for index in indices:
        vector = given.tensor(index)
        if vector.element != first.element or not fits(vector.sizes[0], rank):
            raise given.error(
                number, f"{vector} has not {rank} entries of {first.element}", operand=index
            )


def _sliced(starts: Sequence[int], limits: Sequence[int], strides: Sequence[int]) -> list[int]:
    return [
        max(0, -((start - limit) // stride))
        for start, limit, stride in zip(starts, limits, strides, strict=True)
    ]


@infers(
    "set_dimension_size",
    c1="size is a scalar",
    c2="dimension is a dimension of the operand",
    c3="the result is the operand with one dimension bounded by its former size",
    result=(3, 3),
)
def _set_dimension_size(given: Given) -> Results:
    operand, size = given.tensor(0), given.tensor(1)
    dimension = given.int("dimension")
    if size.rank != 0:  # c1
        raise given.error(1, f"size is {size}, not a scalar", operand=1)
    check_range(given, [dimension], operand.rank, 2, "dimension", "dimensions")  # c2
    sizes, bounds = list(operand.sizes), [operand.bound(dim) for dim in range(operand.rank)]
    if sizes[dimension] != DYNAMIC:
        bounds[dimension] = sizes[dimension]
    sizes[dimension] = DYNAMIC
    known = given.constant(1)
    if known is not None and known[0] == bounds[dimension]:
        sizes[dimension], bounds[dimension] = known[0], DYNAMIC
    result = operand.with_sizes(sizes, bounds)
    if result.bounds and result.encoding is None:
        shown = tuple(None if bound == DYNAMIC else bound for bound in result.bounds)
        encoding = TypeExtensionsAttr(TypeExtensions(shown))
        result = Tensor(result.element, result.sizes, result.bounds, encoding)
    return (result,)
