"""Shape of convolution: any layout of dimensions, groups, dilation."""

from __future__ import annotations

from mlirhlo.analysis.shape_inference.base import Dimension, Given, checks, dimension, infers, plain
from mlirhlo.analysis.shape_inference.dot import element_type
from mlirhlo.analysis.shape_inference.windows import PADDING, WINDOW, check_window, window_sizes
from mlirhlo.dialects.hlo.attributes.dimensions import ConvolutionDimensionNumbers, Window
from mlirhlo.dialects.hlo.shapes import UNBOUNDED, ArrayShape, Shape, array


@infers(
    "convolution",
    c1="the operands are arrays",
    c2="feature_group_count and batch_group_count are positive, and not both greater than 1",
    c3="the window has one dimension for each spatial one",
    c4=WINDOW,
    c5="both operands have the rank that dim_labels give them",
    c6="dim_labels name dimensions of their arrays",
    c7="the input's batch is a multiple of batch_group_count",
    c8="the input's features are feature_group_count times the kernel's input features",
    c9="the kernel's output features are a multiple of both group counts",
    c10="the window has the kernel's spatial sizes",
    c11="the kernel's output features are not dynamic",
    c12=PADDING,
)
def convolution(given: Given) -> Shape:
    """Batch, output features, and how often the window fits each spatial dimension."""
    lhs = given.array(0, "lhs of convolution")
    rhs = given.array(1, "rhs of convolution")
    labels = given.value("dim_labels", ConvolutionDimensionNumbers)
    assert labels is not None
    window = given.value("window", Window) or Window(())
    features, batches = given.int("feature_group_count", 1), given.int("batch_group_count", 1)
    for key, count in (("batch_group_count", batches), ("feature_group_count", features)):
        if count <= 0:  # convolution_c2
            raise given.error(2, f"{key} must be a positive number, got {count}", attribute=key)
    if batches > 1 and features > 1:  # convolution_c2
        raise given.error(
            2,
            f"both batch_group_count {batches} and feature_group_count {features} cannot be greater"
            " than 1",
            attribute="feature_group_count",
        )
    spatial = len(labels.input_spatial_dimensions)
    if len(window.dimensions) != spatial:  # convolution_c3
        raise given.error(
            3,
            f"Window must have same number of dimensions as dimension numbers: {window} and {labels}",
            attribute="window",
        )
    check_window(given, window, 4)  # convolution_c4
    for index, (side, shape) in enumerate((("LHS", lhs), ("RHS", rhs))):
        if shape.rank != spatial + 2:  # convolution_c5
            raise given.error(
                5,
                f"The {side} argument to a convolution should have rank {spatial + 2};"
                f" {side.lower()}: {plain(shape)}.",
                operand=index,
            )
    _check_labels(given, labels, spatial + 2)
    _check_groups(given, lhs, rhs, labels)
    _check_kernel(given, rhs, labels, window)
    return _result(given, lhs, rhs, labels, window)


def _check_labels(given: Given, labels: ConvolutionDimensionNumbers, rank: int) -> None:
    for first, second, spatial in (
        (
            labels.input_batch_dimension,
            labels.input_feature_dimension,
            labels.input_spatial_dimensions,
        ),
        (
            labels.kernel_input_feature_dimension,
            labels.kernel_output_feature_dimension,
            labels.kernel_spatial_dimensions,
        ),
        (
            labels.output_batch_dimension,
            labels.output_feature_dimension,
            labels.output_spatial_dimensions,
        ),
    ):
        if sorted((first, second, *spatial)) != list(range(rank)):  # convolution_c6
            raise given.error(
                6,
                f"A dimension number is out of range in convolution: {labels} for rank {rank}",
                attribute="dim_labels",
            )


def _check_groups(
    given: Given, lhs: ArrayShape, rhs: ArrayShape, labels: ConvolutionDimensionNumbers
) -> None:
    features, batches = given.int("feature_group_count", 1), given.int("batch_group_count", 1)
    batch = lhs.dimensions[labels.input_batch_dimension]
    in_features = lhs.dimensions[labels.input_feature_dimension]
    kernel_in = rhs.dimensions[labels.kernel_input_feature_dimension]
    out = rhs.dimensions[labels.kernel_output_feature_dimension]
    shown = f"; got <conv>({plain(lhs)}, {plain(rhs)}), dim_labels={labels}"
    if batch % batches or (batches > 1 and batch == UNBOUNDED):  # convolution_c7
        raise given.error(
            7,
            f"Expected input batch dimension (value {batch}) to be divisible by batch_group_count"
            f" (value {batches}){shown}",
            attribute="batch_group_count",
        )
    is_sparse = "sparsity_config" in given.properties
    if not is_sparse and (in_features % features or in_features // features != kernel_in):
        raise given.error(  # convolution_c8
            8,
            f"Expected LHS feature dimension (value {in_features}) to be a multiple of"
            f" feature_group_count (value {features}), and LHS feature dimension /"
            f" feature_group_count = RHS feature dimension (value {kernel_in}){shown}",
            operand=1,
        )
    for key, count in (("feature_group_count", features), ("batch_group_count", batches)):
        if out % count:  # convolution_c9
            raise given.error(
                9,
                f"Expected output feature dimension (value {out}) to be divisible by {key} (value"
                f" {count}){shown}",
                attribute=key,
            )


def _check_kernel(
    given: Given, rhs: ArrayShape, labels: ConvolutionDimensionNumbers, window: Window
) -> None:
    for dim, size in zip(labels.kernel_spatial_dimensions, window.dimensions, strict=True):
        if rhs.dimensions[dim] != size.size:  # convolution_c10
            raise given.error(
                10,
                f"Window dimensions do not match RHS shape: {plain(rhs)} has"
                f" {rhs.dimensions[dim]} elements in dimension {dim}, the window {size.size}"
                f" ({window})",
                attribute="window",
            )
    if rhs.is_dynamic_dimension(labels.kernel_output_feature_dimension):  # convolution_c11
        raise given.error(
            11,
            "Dynamic output feature dim on convolution kernel is not supported: rhs shape is"
            f" {plain(rhs)}",
            operand=1,
        )


def _result(
    given: Given,
    lhs: ArrayShape,
    rhs: ArrayShape,
    labels: ConvolutionDimensionNumbers,
    window: Window,
) -> Shape:
    base: list[Dimension] = []
    for x, k in zip(labels.input_spatial_dimensions, labels.kernel_spatial_dimensions, strict=True):
        size, dynamic = dimension(lhs, x)
        base.append((size, dynamic or rhs.is_dynamic_dimension(k)))
    dims: list[Dimension] = [(0, False)] * lhs.rank
    size, dynamic = dimension(lhs, labels.input_batch_dimension)
    if size != UNBOUNDED:
        size //= given.int("batch_group_count", 1)
    dims[labels.output_batch_dimension] = (size, dynamic)
    dims[labels.output_feature_dimension] = dimension(rhs, labels.kernel_output_feature_dimension)
    found = window_sizes(given, base, window, 12)  # convolution_c12
    for dim, extent in zip(labels.output_spatial_dimensions, found, strict=True):
        dims[dim] = extent
    type_ = element_type(given, lhs, rhs)
    return array(type_, [d[0] for d in dims], [d[1] for d in dims])


@checks(
    "convolution",
    c13="there are two operands, and more only with block scaling or sparsity",
)
def check_convolution(given: Given) -> None:
    """The number of operands, which the table leaves open."""
    extra = "block_scaling_config" in given.properties or "sparsity_config" in given.properties
    if len(given.operands) > 2 and not extra:  # convolution_c13
        raise given.error(
            13, f"expects 2 operands, but has {len(given.operands)} operands", operand=2
        )
