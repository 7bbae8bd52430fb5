"""Rules of the ops that move, cut and join data."""

from __future__ import annotations

from xdsl.ir import Attribute

from mlirhlo.analysis.shape_inference.base import fits
from mlirhlo.analysis.stablehlo.base import (
    Given,
    Results,
    check_range,
    check_unique,
    checks,
    infers,
    listed,
    shown,
)
from mlirhlo.analysis.stablehlo.quantization import check_same_scales, per_axis, widths_before
from mlirhlo.analysis.stablehlo.tensors import (
    COMPLEX,
    DYNAMIC,
    Tensor,
    bits,
    fits_element,
    is_quantized,
    kind_of,
    scales,
    signless,
    tensor_of,
)


@infers("constant", c1="value and output have one type")
def _constant(given: Given) -> Results | None:
    kind: Attribute | None = getattr(given.properties.get("value"), "type", None)
    found = None if kind is None else tensor_of(kind)
    if found is None:
        return None
    declared = given.result() if given.declared else None
    if declared is not None and is_quantized(declared.element):
        return (found.with_element(declared.element),)
    return (found,)


@infers("iota", c1="iota_dimension is a dimension of the output")
def _iota(given: Given) -> Results | None:
    if given.declared is None:
        return None
    output = given.result()
    check_range(
        given, [given.int("iota_dimension")], output.rank, 1, "iota_dimension", "dimensions"
    )  # c1
    return (output,)


@infers(
    "bitcast_convert",
    c1="shapes are equal but for the last dimension of the smaller element type",
    c2="both element types are complex or neither is",
)
def _bitcast_convert(given: Given) -> Results | None:
    return None


@checks("bitcast_convert")
def _check_bitcast_convert(given: Given) -> None:
    operand, result = given.tensor(0), given.result()
    if (kind_of(operand.element) == COMPLEX) != (kind_of(result.element) == COMPLEX):  # c2
        raise given.error(2, f"real and complex types do not convert: {operand} and {result}")
    small, big = sorted((operand, result), key=lambda t: bits(t.element))
    narrow, wide = bits(small.element), bits(big.element)
    sizes = small.sizes
    if narrow != wide:  # c1
        if small.rank != big.rank + 1:
            raise given.error(
                1, f"{small} should have one dimension more than {big}, for {narrow}-bit elements"
            )
        if sizes[-1] != DYNAMIC and sizes[-1] * narrow != wide:
            raise given.error(
                1, f"{sizes[-1]} elements of {narrow} bits do not make one of {wide} bits"
            )
        sizes = sizes[:-1]
    if len(sizes) != big.rank or not all(map(fits, sizes, big.sizes)):  # c1
        raise given.error(1, f"shapes do not match: {operand} and {result}")


@infers("broadcast", c1="the result has broadcast_sizes before the operand's sizes")
def _broadcast(given: Given) -> Results:
    operand, sizes = given.tensor(0), given.ints("broadcast_sizes")
    if any(size < 0 for size in sizes):  # c1
        raise given.error(1, f"a size is negative: {listed(sizes)}", attribute="broadcast_sizes")
    return (operand.with_sizes((*sizes, *operand.sizes)),)


@infers(
    "broadcast_in_dim",
    c1="operand and result have one element type",
    c2="broadcast_dimensions names a dimension of the result for each of the operand's",
    c3="broadcast_dimensions are dimensions of the result",
    c4="broadcast_dimensions are unique",
    c5="each dimension of the operand has size 1 or that of the result",
    c6="per-axis quantization follows the dimension it is along",
)
def _broadcast_in_dim(given: Given) -> Results | None:
    return None


@checks("broadcast_in_dim")
def _check_broadcast_in_dim(given: Given) -> None:
    operand, result = given.tensor(0), given.result()
    dims = given.ints("broadcast_dimensions")
    check_same_scales(given, operand, result, 1)  # c1
    if not is_quantized(operand.element) and operand.element != result.element:  # c1
        raise given.error(1, f"element types differ: {operand.element} and {result.element}")
    if len(dims) != operand.rank:  # c2
        raise given.error(
            2,
            f"broadcast_dimensions has {len(dims)} entries for an operand of rank {operand.rank}",
            attribute="broadcast_dimensions",
        )
    check_unique(given, dims, 4, "broadcast_dimensions")  # c4
    check_range(given, dims, result.rank, 3, "broadcast_dimensions", "dimensions of the result")
    for dim, target in enumerate(dims):  # c5
        size = operand.sizes[dim]
        if size not in (DYNAMIC, 1, result.sizes[target]):
            raise given.error(
                5,
                f"dimension {dim} of the operand has {size} elements, neither 1 nor the"
                f" {shown([result.sizes[target]])} of dimension {target} of the result",
                operand=0,
            )
    check_quantized_broadcast(given, operand, result, dims, 6)  # c6


def check_quantized_broadcast(
    given: Given, operand: Tensor, result: Tensor, dims: tuple[int, ...], number: int
) -> None:
    """Per-axis quantization of a broadcast goes along; raises constraint `number`."""
    mine, yours = per_axis(operand), per_axis(result)
    if mine is None or yours is None:
        if yours is not None:
            raise given.error(number, "the result is quantized along an axis, the operand is not")
        return
    if yours != dims[mine]:
        raise given.error(number, f"the result is quantized along {yours}, not along {dims[mine]}")
    if operand.sizes[mine] == 1 and len(set(scales(result.element))) > 1:
        raise given.error(number, "a broadcast axis has the operand's one scale everywhere")


@infers(
    "concatenate",
    c1="all inputs have one element type",
    c2="all inputs have one shape but for the dimension they are joined along",
    c3="there is an input",
    c4="dimension is a dimension of the inputs",
    c5="the result has the element type of the inputs",
    c6="the result is as large along the dimension as all inputs together",
    result=(6, 5),
)
def _concatenate(given: Given) -> Results:
    if not given.operands:  # c3
        raise given.error(3, "there is no input")
    inputs, dimension = given.tensors(), given.int("dimension")
    first = inputs[0]
    if not 0 <= dimension < first.rank:  # c4
        raise given.error(
            4,
            f"dimension {dimension} is none of the {first.rank} dimensions",
            attribute="dimension",
        )
    sizes, bounds = list(first.sizes), [first.bound(dim) for dim in range(first.rank)]
    encoding = first.encoding
    for index, other in enumerate(inputs[1:], 1):
        if not fits_element(first.element, other.element):  # c1
            raise given.error(
                1, f"element types differ: {first.element} and {other.element}", operand=index
            )
        if other.rank != first.rank or any(
            not fits(a, b)
            for dim, (a, b) in enumerate(zip(first.sizes, other.sizes, strict=True))
            if dim != dimension
        ):  # c2
            raise given.error(2, f"shapes do not join: {first} and {other}", operand=index)
        encoding = encoding or other.encoding
        for dim in range(first.rank):
            mine, yours = (sizes[dim], bounds[dim]), (other.sizes[dim], other.bound(dim))
            merge = _joined if dim == dimension else _merged
            sizes[dim], bounds[dim] = merge(mine, yours)
    return (Tensor(first.element, (), (), encoding).with_sizes(sizes, bounds),)


def _joined(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    """Size and bound of one dimension after the other."""
    if DYNAMIC not in (a[0], b[0]):
        return a[0] + b[0], DYNAMIC
    limits = [bound if size == DYNAMIC else size for size, bound in (a, b)]
    return DYNAMIC, DYNAMIC if DYNAMIC in limits else sum(limits)


def _merged(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    """Size and bound of a dimension both describe."""
    known = [size for size, _ in (a, b) if size != DYNAMIC]
    limits = [bound for _, bound in (a, b) if bound != DYNAMIC]
    return (known[0], DYNAMIC) if known else (DYNAMIC, min(limits, default=DYNAMIC))


@infers(
    "reshape",
    c1="operand and result have one element type",
    c2="operand and result have as many elements",
    c3="per-axis quantization stays along a dimension of the same size and place",
)
def _reshape(given: Given) -> Results | None:
    return None


@checks("reshape")
def _check_reshape(given: Given) -> None:
    operand, result = given.tensor(0), given.result()
    check_same_scales(given, operand, result, 1)  # c1
    if not is_quantized(operand.element) and operand.element != result.element:  # c1
        raise given.error(1, f"element types differ: {operand.element} and {result.element}")
    if operand.is_static and operand.count != result.count:  # c2
        raise given.error(
            2,
            f"{operand.count} elements cannot become {result} ({result.count} elements)",
            help="make the products of the sizes equal",
        )
    check_quantized_reshape(given, operand, result, 3)  # c3


def check_quantized_reshape(given: Given, operand: Tensor, result: Tensor, number: int) -> None:
    """The dimension of per-axis quantization stays; raises constraint `number`."""
    mine, yours = per_axis(operand), per_axis(result)
    if mine is None or yours is None:
        return
    if not fits(operand.sizes[mine], result.sizes[yours]):
        raise given.error(
            number,
            f"the quantized dimension has {operand.sizes[mine]} elements, {result.sizes[yours]}"
            " in the result",
        )
    if operand.is_static and result.is_static:
        before, after = widths_before(operand, mine), widths_before(result, yours)
        if before != after:
            raise given.error(
                number, f"{before} elements stand before the quantized dimension, {after} after it"
            )


@infers(
    "reverse",
    c1="operand and result have one type",
    c2="dimensions are unique",
    c3="dimensions are dimensions of the operand",
)
def _reverse(given: Given) -> Results:
    operand, dims = given.tensor(0), given.ints("dimensions")
    check_unique(given, dims, 2, "dimensions")  # c2
    check_range(given, dims, operand.rank, 3, "dimensions", "dimensions")  # c3
    return (operand,)


@infers(
    "slice",
    c1="operand and result have one element type",
    c2="start_indices, limit_indices and strides have an entry for each dimension",
    c3="0 <= start_indices <= limit_indices <= the operand's sizes",
    c4="strides are positive",
    c5="the result has ceil((limit - start) / stride) elements along each dimension",
    result=(5, 1),
)
def _slice(given: Given) -> Results:
    operand = given.tensor(0)
    keys = ("start_indices", "limit_indices", "strides")
    starts, limits, strides = map(given.ints, keys)
    for key, values in zip(keys, (starts, limits, strides), strict=True):  # c2
        if len(values) != operand.rank:
            raise given.error(
                2, f"{key} has {len(values)} entries for rank {operand.rank}", attribute=key
            )
    sizes: list[int] = []
    for dim, (start, limit, stride) in enumerate(zip(starts, limits, strides, strict=True)):
        size = operand.sizes[dim] if operand.sizes[dim] != DYNAMIC else operand.bound(dim)
        if start < 0:  # c3
            raise given.error(
                3, f"dimension {dim} starts at {start}, before 0", attribute="start_indices"
            )
        if size != DYNAMIC and limit > size:  # c3
            raise given.error(
                3,
                f"dimension {dim} ends at {limit}, beyond its {size} elements",
                attribute="limit_indices",
                help=f"the largest limit is {size}",
            )
        if start > limit:  # c3
            raise given.error(
                3, f"dimension {dim} starts at {start}, beyond {limit}", attribute="start_indices"
            )
        if stride <= 0:  # c4
            raise given.error(4, f"dimension {dim} has stride {stride}", attribute="strides")
        sizes.append(-((start - limit) // stride))
    return (operand.with_sizes(sizes),)


@infers(
    "transpose",
    c1="operand and result have one element type",
    c2="permutation is a permutation of the operand's dimensions",
    c3="dimension i of the result is dimension permutation[i] of the operand",
    c4="per-axis quantization follows the dimension it is along",
    result=(3, 1),
)
def _transpose(given: Given) -> Results:
    operand, permutation = given.tensor(0), given.ints("permutation")
    if sorted(permutation) != list(range(operand.rank)):  # c2
        raise given.error(
            2,
            f"{listed(permutation)} is no permutation of the {operand.rank} dimensions",
            attribute="permutation",
        )
    bounds = [operand.bound(dim) for dim in permutation]
    return (operand.with_sizes([operand.sizes[dim] for dim in permutation], bounds),)


@checks("transpose")
def _check_transpose(given: Given) -> None:
    operand, result = given.tensor(0), given.result()
    check_same_scales(given, operand, result, 1)  # c1
    mine, yours = per_axis(operand), per_axis(result)
    if mine is not None and yours is not None and mine != given.ints("permutation")[yours]:  # c4
        raise given.error(4, f"quantized along dimension {yours}, which is not dimension {mine}")


@infers(
    "pad",
    c1="operand, padding_value and result have one element type",
    c2="edge_padding_low, edge_padding_high and interior_padding have an entry for each dimension",
    c3="interior padding is not negative",
    c4="the result has the operand's elements and the padding; it is not negative",
    result=(4, 1),
)
def _pad(given: Given) -> Results:
    operand, value = given.tensor(0), given.tensor(1)
    if not fits_element(operand.element, value.element):  # c1
        raise given.error(
            1, f"element types differ: {operand.element} and {value.element}", operand=1
        )
    keys = ("edge_padding_low", "edge_padding_high", "interior_padding")
    lows, highs, interiors = map(given.ints, keys)
    for key, values in zip(keys, (lows, highs, interiors), strict=True):  # c2
        if len(values) != operand.rank:
            raise given.error(
                2, f"{key} has {len(values)} entries for rank {operand.rank}", attribute=key
            )
    if any(interior < 0 for interior in interiors):  # c3
        raise given.error(
            3, f"interior padding is negative: {listed(interiors)}", attribute="interior_padding"
        )

    def padded(size: int, dim: int) -> int:
        if size == DYNAMIC:
            return DYNAMIC
        total = size + lows[dim] + highs[dim] + max(size - 1, 0) * interiors[dim]
        if total < 0:  # c4
            raise given.error(4, f"dimension {dim} would have {total} elements")
        return total

    sizes = [padded(size, dim) for dim, size in enumerate(operand.sizes)]
    bounds = [
        padded(operand.bound(dim), dim) if size == DYNAMIC else DYNAMIC
        for dim, size in enumerate(sizes)
    ]
    return (operand.with_sizes(sizes, bounds),)


@infers("get_dimension_size", c1="dimension is a dimension of the operand")
def _get_dimension_size(given: Given) -> Results:
    operand = given.tensor(0)
    check_range(given, [given.int("dimension")], operand.rank, 1, "dimension", "dimensions")  # c1
    return (Tensor(signless(32), ()),)


@infers(
    "torch_index_select",
    c1="dim and batch_dims are within the ranks of operand and index",
)
def _torch_index_select(given: Given) -> Results:
    operand, index = given.tensor(0), given.tensor(1)
    dim, batch = given.int("dim"), given.int("batch_dims")
    if not 0 <= batch <= index.rank or not batch <= dim < operand.rank:  # c1
        raise given.error(1, f"dim {dim} and batch_dims {batch} do not suit {operand} and {index}")
    sizes = (*operand.sizes[:dim], *index.sizes[batch:], *operand.sizes[dim + 1 :])
    return (operand.with_sizes(sizes),)
