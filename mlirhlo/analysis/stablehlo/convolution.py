"""Rules of convolution, with padding as an attribute or as an operand (dynamic_conv)."""

from __future__ import annotations

from collections.abc import Sequence

from mlirhlo.analysis.stablehlo.base import Given, Results, checks, infers, listed
from mlirhlo.analysis.stablehlo.linear_algebra import PRECISION, check_precision
from mlirhlo.analysis.stablehlo.quantization import check_product, per_axis
from mlirhlo.analysis.stablehlo.tensors import DYNAMIC, Tensor, fits_element, is_quantized
from mlirhlo.analysis.stablehlo.windows import Keys, read_windows
from mlirhlo.dialects.stablehlo.attributes import ConvDimensionNumbers

_SENTENCES = {
    "c1": "lhs and rhs have one rank",
    "c2": "window_strides has an entry for each spatial dimension",
    "c3": "window_strides are positive",
    "c4": "padding has a pair for each spatial dimension",
    "c5": "lhs_dilation has an entry for each spatial dimension",
    "c6": "lhs_dilation is positive",
    "c7": "rhs_dilation has an entry for each spatial dimension",
    "c8": "rhs_dilation is positive",
    "c9": "window_reversal has an entry for each spatial dimension",
    "c10": "the batch of lhs divides into batch_group_count groups",
    "c11": "the features of lhs divide into feature_group_count groups",
    "c12": "all dimensions of lhs but batch and feature are spatial",
    "c13": "the dimensions of lhs are unique and in range",
    "c14": "the kernel has as many input features as a group of lhs",
    "c15": "the output features of the kernel divide into batch_group_count groups",
    "c16": "the output features of the kernel divide into feature_group_count groups",
    "c17": "the kernel has as many spatial dimensions as lhs",
    "c18": "the dimensions of the kernel are unique and in range",
    "c19": "the result has as many spatial dimensions as lhs",
    "c20": "the dimensions of the result are unique and in range",
    "c21": "feature_group_count is positive",
    "c22": "batch_group_count is positive",
    "c23": "feature_group_count or batch_group_count is 1",
    "c24": PRECISION,
    "c25": "the result has a batch of a group, the kernel's features, and the windows that fit",
    "c26": "the result has the rank of lhs",
    "c27": "unless quantized, lhs and rhs have one element type",
    "c28": "rhs is quantized where anything is, and lhs just when the result is",
    "c29": "rhs is quantized along its output features",
    "c30": "the result is quantized along its features",
    "c31": "lhs and rhs have one storage type",
    "c32": "lhs, rhs and result have one expressed type",
    "c33": "the result is quantized as a whole where rhs is",
    "c34": "unquantized lhs and result have the element type that rhs expresses",
}

_KEYS = Keys(("window_strides", 2, 3), 4, ("lhs_dilation", 5, 6), ("rhs_dilation", 7, 8), "i2")


@infers("convolution", result=(25, 27), **_SENTENCES)
def _convolution(given: Given) -> Results:
    _check_numbers(given)
    return (_convolved(given, None),)


@infers("dynamic_conv", result=(25, 27), **_SENTENCES)
def _dynamic_conv(given: Given) -> Results:
    _check_numbers(given)
    spatial = given.tensor(0).rank - 2
    shape = given.tensor(2).sizes
    if len(shape) != 2 or shape[0] not in (DYNAMIC, spatial) or shape[1] not in (DYNAMIC, 2):  # c4
        raise given.error(4, f"padding has shape {list(shape)}, not [{spatial}, 2]", operand=2)
    padding = given.constant(2)
    found = _convolved(given, (0,) * (2 * spatial) if padding is None else padding)
    if padding is not None:
        return (found,)
    return (Tensor(found.element, tuple(_outer(given, [DYNAMIC] * spatial))),)


def _check_numbers(given: Given) -> None:
    lhs, rhs = given.tensor(0), given.tensor(1)
    if lhs.rank != rhs.rank:  # c1
        raise given.error(1, f"ranks differ: {lhs} and {rhs}", operand=1)
    if not (is_quantized(lhs.element) or is_quantized(rhs.element)):
        # XLA multiplies floats of two precisions, and JAX writes such convolutions.
        if not fits_element(lhs.element, rhs.element):  # c27
            raise given.error(
                27, f"element types differ: {lhs.element} and {rhs.element}", operand=1
            )
    numbers: ConvDimensionNumbers = given.data("dimension_numbers")
    spatial = len(numbers.input_spatial_dimensions)
    for number, dims, what in (
        (17, numbers.kernel_spatial_dimensions, "the kernel"),
        (19, numbers.output_spatial_dimensions, "the result"),
    ):  # c17, c19
        if len(dims) != spatial:
            raise given.error(
                number,
                f"{what} has {len(dims)} spatial dimensions, lhs {spatial}",
                attribute="dimension_numbers",
            )
    for number, dims in (
        (13, (numbers.input_batch_dimension, numbers.input_feature_dimension,
              *numbers.input_spatial_dimensions)),
        (18, (numbers.kernel_input_feature_dimension, numbers.kernel_output_feature_dimension,
              *numbers.kernel_spatial_dimensions)),
        (20, (numbers.output_batch_dimension, numbers.output_feature_dimension,
              *numbers.output_spatial_dimensions)),
    ):  # c13, c18, c20  # fmt: skip
        if len(set(dims)) != len(dims) or not all(0 <= dim < lhs.rank for dim in dims):
            raise given.error(
                number,
                f"dimensions {listed(dims)} are not unique dimensions of rank {lhs.rank}",
                attribute="dimension_numbers",
            )
    if lhs.rank != spatial + 2:  # c12
        raise given.error(12, f"{spatial} spatial dimensions for rank {lhs.rank}")
    _check_groups(given, lhs, rhs, numbers)
    check_precision(given, 24)


def _check_groups(given: Given, lhs: Tensor, rhs: Tensor, numbers: ConvDimensionNumbers) -> None:
    features, batches = given.int("feature_group_count", 1), given.int("batch_group_count", 1)
    for number, count, key in (
        (21, features, "feature_group_count"),
        (22, batches, "batch_group_count"),
    ):  # c21, c22
        if count < 1:
            raise given.error(number, f"{key} is {count}", attribute=key)
    if features > 1 and batches > 1:  # c23
        raise given.error(23, f"feature_group_count is {features}, batch_group_count {batches}")
    sizes = {
        "batch": lhs.sizes[numbers.input_batch_dimension],
        "features": lhs.sizes[numbers.input_feature_dimension],
        "output features": rhs.sizes[numbers.kernel_output_feature_dimension],
    }
    for number, what, count in (
        (10, "batch", batches),
        (11, "features", features),
        (15, "output features", batches),
        (16, "output features", features),
    ):  # c10, c11, c15, c16
        if sizes[what] != DYNAMIC and sizes[what] % count:
            raise given.error(number, f"{what} of {sizes[what]} do not divide into {count} groups")
    kernel = rhs.sizes[numbers.kernel_input_feature_dimension]
    if DYNAMIC not in (kernel, sizes["features"]) and sizes["features"] // features != kernel:
        raise given.error(  # c14
            14,
            f"the kernel takes {kernel} features, a group of lhs has {sizes['features'] // features}",
            operand=1,
        )


def _convolved(given: Given, padding: Sequence[int] | None) -> Tensor:
    lhs, rhs = given.tensor(0), given.tensor(1)
    numbers: ConvDimensionNumbers = given.data("dimension_numbers")
    kernel = [rhs.sizes[dim] for dim in numbers.kernel_spatial_dimensions]
    windows = read_windows(given, kernel, _KEYS, padding)
    reversal = given.ints("window_reversal")
    if reversal and len(reversal) != len(kernel):  # c9
        raise given.error(
            9,
            f"window_reversal has {len(reversal)} entries for {len(kernel)} spatial dimensions",
            attribute="window_reversal",
        )
    if given.declared and given.result().rank != lhs.rank:  # c26
        raise given.error(26, f"the result has rank {given.result().rank}, not {lhs.rank}")
    base = [lhs.sizes[dim] for dim in numbers.input_spatial_dimensions]
    element = given.result().element if given.declared else lhs.element
    return Tensor(element, tuple(_outer(given, windows.fit(base))))


def _outer(given: Given, spatial: Sequence[int]) -> list[int]:
    """Sizes of the result whose spatial dimensions have the sizes `spatial`."""
    lhs, rhs = given.tensor(0), given.tensor(1)
    numbers: ConvDimensionNumbers = given.data("dimension_numbers")
    sizes = [DYNAMIC] * lhs.rank
    for dim, size in zip(numbers.output_spatial_dimensions, spatial, strict=True):
        sizes[dim] = size
    batch = lhs.sizes[numbers.input_batch_dimension]
    groups = given.int("batch_group_count", 1)
    sizes[numbers.output_batch_dimension] = DYNAMIC if batch == DYNAMIC else batch // groups
    sizes[numbers.output_feature_dimension] = rhs.sizes[numbers.kernel_output_feature_dimension]
    return sizes


@checks("convolution", "dynamic_conv")
def _check_convolution(given: Given) -> None:
    lhs, rhs, result = given.tensor(0), given.tensor(1), given.result()
    if not any(is_quantized(tensor.element) for tensor in (lhs, rhs, result)):
        return
    numbers: ConvDimensionNumbers = given.data("dimension_numbers")
    axis = per_axis(rhs)
    if axis is not None and axis != numbers.kernel_output_feature_dimension:  # c29
        raise given.error(29, f"rhs is quantized along dimension {axis}", operand=1)
    axis = per_axis(result)
    if axis is not None and axis != numbers.output_feature_dimension:  # c30
        raise given.error(30, f"the result is quantized along dimension {axis}")
    check_product(given, lhs, rhs, result, (28, 31, 32, 33, 34))
