"""`conv-rewriter`: convolutions as calls of cuDNN, forward or one of the two gradients."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.dimensions import (
    ConvolutionDimensionNumbers,
    ConvolutionDimensionNumbersAttr,
    Window,
    WindowAttr,
    WindowDimension,
)
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.ops import ConstantOp, ConvertOp, ConvolutionOp, ReverseOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.rewrites.algsimp.common import array, element, made_by, sized
from mlirhlo.rewrites.gpu_libraries.gpu_calls import CONV_CONFIG, make_call, put
from mlirhlo.rewrites.gpu_libraries.gpu_calls import element as element_of
from mlirhlo.rewrites.legalize.expander import ExpanderPass
from mlirhlo.rewrites.rules import Rewriter, Rule, rule

FORWARD, FUSED = "__cudnn$convForward", "__cudnn$convBiasActivationForward"
_CONFIG: dict[str, Any] = {
    "activation_mode": "kNone",
    "conv_result_scale": 1,
    "side_input_scale": 0,
    "leakyrelu_alpha": 0,
}
_TYPES = ("f16", "bf16", "f32", "f64")


def _parts(
    op: ConvolutionOp, *, integers: bool = False
) -> tuple[Window, ConvolutionDimensionNumbers] | None:
    """Window and labels of a convolution that cuDNN may compute; of integers only where that is asked for."""
    labels = op.dim_labels
    if labels is None or op.control_predecessors or op.batch_group_count != 1:
        return None
    types = [element(v).name for v in (*op.inputs, op.output)]
    shapes = [array(v) for v in (*op.inputs, op.output)]
    if len(op.inputs) != 2:
        return None
    is_right = len(set(types)) == 1 and types[0] in _TYPES
    if not is_right and not (integers and types == ["s8", "s8", "s32"] and _is_read_as_f32(op)):
        return None
    count = len(labels.input_spatial_dimensions)
    if not 1 <= count <= 3 or any(s.is_dynamic or 0 in s.dimensions for s in shapes):
        return None
    window = op.window or Window((WindowDimension(),) * count)
    return window, labels


def _is_read_as_f32(op: ConvolutionOp) -> bool:
    """Whether all that reads the result converts it to f32, which the library then gives."""
    users = [use.operation for use in op.output.uses]
    return len(users) == 1 and isinstance(users[0], ConvertOp) and element(users[0]).name == "f32"


def _call(
    op: ConvolutionOp,
    rewriter: Rewriter,
    target: str,
    operands: Iterable[SSAValue],
    window: Window,
    labels: ConvolutionDimensionNumbers,
) -> None:
    properties = {
        k: v
        for k, v in op.properties.items()
        if k in ("feature_group_count", "operand_precision", "metadata")
    }
    properties["window"] = WindowAttr(window)
    properties["dim_labels"] = ConvolutionDimensionNumbersAttr(labels)
    scratch = sized(ArrayShape(PRIMITIVE_TYPES["u8"], ()), (0,))
    shape = TupleShape((op.shape, scratch))
    call = make_call(target, tuple(operands), shape, CONV_CONFIG, _CONFIG, properties)
    put(rewriter, op, call, element_of(call, 0, op.shape))


def _high_padding(low: int, least: int, stride: int) -> int:
    """The nearest to the low padding of those that leave the sizes as they are."""
    return min(max(low, least), least + stride - 1)


@rule(ConvolutionOp, contract="rounding")
def filter_gradient(op: ConvolutionOp, rewriter: Rewriter) -> None:
    """convolution(x, dy), the window as large as an image => custom-call, __cudnn$convBackwardFilter"""
    found = _parts(op)
    if found is None or op.feature_group_count != 1 or _looks_forward(op):
        return
    window, labels = found
    if any(
        d.stride != 1 or d.base_dilation != 1 or d.padding_low < 0 or d.window_reversal
        for d in window.dimensions
    ):
        return
    x, dy = op.inputs
    results = [array(op).dimensions[d] for d in labels.output_spatial_dimensions]
    small = sum(
        array(dy).dimensions[k] <= size
        for k, size in zip(labels.kernel_spatial_dimensions, results, strict=True)
    )
    if small and all(d.window_dilation == 1 for d in window.dimensions):
        return  # a filter as small as that belongs to a forward convolution
    dimensions: list[WindowDimension] = []
    for d, size, given in zip(
        window.dimensions,
        results,
        (array(x).dimensions[k] for k in labels.input_spatial_dimensions),
        strict=True,
    ):
        stride = d.window_dilation
        least = size + (d.size - 1) * stride - given - d.padding_low
        high = _high_padding(d.padding_low, least, stride)
        if high < 0:
            return
        dimensions.append(WindowDimension(size, stride, d.padding_low, high))
    turned = ConvolutionDimensionNumbers(
        labels.input_feature_dimension,
        labels.input_batch_dimension,
        labels.input_spatial_dimensions,
        labels.output_batch_dimension,
        labels.output_feature_dimension,
        labels.output_spatial_dimensions,
        labels.kernel_input_feature_dimension,
        labels.kernel_output_feature_dimension,
        labels.kernel_spatial_dimensions,
    )
    target = "__cudnn$convBackwardFilter"
    _call(op, rewriter, target, op.inputs, Window(tuple(dimensions)), turned)


def _looks_forward(op: ConvolutionOp) -> bool:
    """Batch, features and sizes are those that a forward convolution would have."""
    labels = op.dim_labels
    assert labels is not None
    x, w = (array(v).dimensions for v in op.inputs)
    y = array(op).dimensions
    spatial = zip(labels.kernel_spatial_dimensions, labels.output_spatial_dimensions, strict=True)
    return (
        x[labels.input_batch_dimension] == y[labels.output_batch_dimension]
        and w[labels.kernel_output_feature_dimension] == y[labels.output_feature_dimension]
        and all(w[k] <= y[o] for k, o in spatial)
    )


@rule(ConvolutionOp, contract="rounding")
def input_gradient(op: ConvolutionOp, rewriter: Rewriter) -> None:
    """convolution(dy, reverse(w)) => custom-call(dy, w), __cudnn$convBackwardInput"""
    found = _parts(op)
    if found is None or op.feature_group_count != 1:
        return
    window, labels = found
    if any(d.stride != 1 or d.window_dilation != 1 or d.window_reversal for d in window.dimensions):
        return
    dy, filters = op.inputs
    reverse = made_by(filters, ReverseOp)
    is_reversed = reverse is not None and sorted(reverse.dimensions) == sorted(
        labels.kernel_spatial_dimensions
    )
    is_pointwise = all(d.size == 1 for d in window.dimensions)
    if not is_reversed:
        # A filter of one element is its own reverse; without dilation it is a forward convolution.
        if all(d.base_dilation == 1 for d in window.dimensions) or not is_pointwise:
            return
        if isinstance(filters.owner, ConstantOp):
            return
    dimensions: list[WindowDimension] = []
    for d, size, given in zip(
        window.dimensions,
        (array(op).dimensions[k] for k in labels.output_spatial_dimensions),
        (array(dy).dimensions[k] for k in labels.input_spatial_dimensions),
        strict=True,
    ):
        low = d.size - 1 - d.padding_low
        least = d.size + d.base_dilation * (given - 1) - size - low
        high = _high_padding(low, least, d.base_dilation)
        if low < 0 or high < 0:
            return
        dimensions.append(
            replace(d, stride=d.base_dilation, base_dilation=1, padding_low=low, padding_high=high)
        )
    turned = ConvolutionDimensionNumbers(
        labels.output_batch_dimension,
        labels.output_feature_dimension,
        labels.output_spatial_dimensions,
        labels.kernel_output_feature_dimension,
        labels.kernel_input_feature_dimension,
        labels.kernel_spatial_dimensions,
        labels.input_batch_dimension,
        labels.input_feature_dimension,
        labels.input_spatial_dimensions,
    )
    plain = reverse.operand if is_reversed and reverse is not None else filters
    target = "__cudnn$convBackwardInput"
    _call(op, rewriter, target, (dy, plain), Window(tuple(dimensions)), turned)


@rule(ConvolutionOp, contract="rounding")
def forward_convolution(op: ConvolutionOp, rewriter: Rewriter) -> None:
    """convolution(x, w) => custom-call(x, w), __cudnn$convForward"""
    found = _parts(op, integers=True)
    if found is None:
        return
    window, labels = found
    reversals = {d.window_reversal for d in window.dimensions}
    # The library reverses all dimensions of an image, or none.
    if True in reversals and (len(reversals) > 1 or len(window.dimensions) != 2):
        return
    _call(op, rewriter, FORWARD, op.inputs, window, labels)


@dataclass(frozen=True)
class ConvRewriterPass(ExpanderPass):
    """Hands convolutions to cuDNN.

    Before and after:

        %c = f32[2,8,8,6] convolution(%x, %w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
          =>   %r = (f32[2,8,8,6], u8[0]) custom-call(%x, %w), custom_call_target="__cudnn$convForward", …

    Gradients are recognised by the forms they are written in, a reversed filter or a window as large as the
    image, and get the window and labels of the forward convolution. One, two or three spatial dimensions of
    f16, bf16, f32 or f64, or of s8 where the result, s32, is only read as f32: the library has no others of
    integers. Convolutions with batch groups stay. Source: XLA:GPU's pass and its dumps.
    """

    name = "conv-rewriter"
    exact: ClassVar[bool] = False
    rules: ClassVar[tuple[Rule, ...]] = (filter_gradient, input_gradient, forward_convolution)
