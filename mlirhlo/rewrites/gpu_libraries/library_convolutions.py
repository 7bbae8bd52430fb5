"""Convolutions of cuDNN as instructions: forward, the two gradients, and what is fused behind them.

All three kinds carry the window and labels of the forward convolution. They are written with batch and
features first, and transposed to and from that order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from xdsl.ir import Attribute

from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.attributes.dimensions import (
    ConvolutionDimensionNumbers,
    ConvolutionDimensionNumbersAttr,
    Window,
    WindowAttr,
    WindowDimension,
)
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.ops import CustomCallOp
from mlirhlo.rewrites.gpu_libraries.gpu_calls import CONV_CONFIG, config_of
from mlirhlo.rewrites.gpu_libraries.library_results import finished, parts_of, sum_type
from mlirhlo.rewrites.legalize.expander import expand_in_place
from mlirhlo.rewrites.legalize.indexed_loops import plain
from mlirhlo.rewrites.linear_algebra.client import Graph, Value
from mlirhlo.rewrites.rules import Rewriter, rule

_FORWARD = ("__cudnn$convForward", "__cudnn$convBiasActivationForward")
_INPUT, _FILTER = "__cudnn$convBackwardInput", "__cudnn$convBackwardFilter"

_ACTIVATIONS: Mapping[str, Callable[[Value, float], Value]] = {
    "kNone": lambda x, alpha: x,
    "kIdentity": lambda x, alpha: x,
    "kRelu": lambda x, alpha: x.maximum(0),
    "kRelu6": lambda x, alpha: x.maximum(0).minimum(6),
    "kElu": lambda x, alpha: x.compare("GT", 0).select(x, x.elementwise("exponential-minus-one")),
    "kLeakyRelu": lambda x, alpha: x.compare("GT", 0).select(x, x * alpha),
    "kSigmoid": lambda x, alpha: x.elementwise("logistic"),
    "kTanh": lambda x, alpha: x.elementwise("tanh"),
}


@rule(CustomCallOp, contract="rounding")
def convolution_of_a_library(op: CustomCallOp, rewriter: Rewriter) -> None:
    """custom-call(x, w, bias, side), __cudnn$conv… => activation(scale * convolution(x, w) + side + bias)"""
    target, labels = op.custom_call_target, op.dim_labels
    parts = parts_of(op)
    if target not in (*_FORWARD, _INPUT, _FILTER) or labels is None or not parts:
        return
    config = config_of(op, CONV_CONFIG)
    activation = _ACTIVATIONS.get(str(config["activation_mode"]))
    spatial = len(labels.input_spatial_dimensions)
    window = op.window or Window((WindowDimension(),) * spatial)
    if activation is None or parts[0].rank != spatial + 2 or len(op.inputs) > 4:
        return
    if target not in _FORWARD and any(d.base_dilation != 1 for d in window.dimensions):
        return

    def build(graph: Graph, first: Value, second: Value, *rest: Value) -> Value:
        total = _Convolution(op, graph, labels, window.dimensions).of(first, second)
        scale = float(config["conv_result_scale"])
        if not total.type.is_float and (rest or scale != 1):
            total = total.convert(PRIMITIVE_TYPES["f32"])
        if scale != 1:
            total = total * scale
        if rest:
            bias = rest[0].convert(total.type).reshape(prod(rest[0].sizes))
            total = total + bias.broadcast_in_dim(total.sizes, (labels.output_feature_dimension,))
        if len(rest) > 1:
            total = total + rest[1].convert(total.type) * float(config["side_input_scale"])
        return finished(op, graph, [activation(total, float(config.get("leakyrelu_alpha", 0)))])

    expand_in_place(op, rewriter, build)


class _Convolution:
    """The sum itself, in the type it is summed in, before it is rounded."""

    def __init__(
        self,
        op: CustomCallOp,
        graph: Graph,
        labels: ConvolutionDimensionNumbers,
        window: Sequence[WindowDimension],
    ) -> None:
        self.op, self.graph, self.window = op, graph, window
        self.groups = op.feature_group_count
        self.result = parts_of(op)[0]
        self.x = (
            labels.input_batch_dimension,
            labels.input_feature_dimension,
            *labels.input_spatial_dimensions,
        )
        self.w = (
            labels.kernel_output_feature_dimension,
            labels.kernel_input_feature_dimension,
            *labels.kernel_spatial_dimensions,
        )
        self.y = (
            labels.output_batch_dimension,
            labels.output_feature_dimension,
            *labels.output_spatial_dimensions,
        )

    def of(self, first: Value, second: Value) -> Value:
        """The kind that the call's target names."""
        if self.op.custom_call_target == _INPUT:
            made, order = (
                self.input_gradient(first.transpose(*self.y), second.transpose(*self.w)),
                self.x,
            )
        elif self.op.custom_call_target == _FILTER:
            made, order = (
                self.filter_gradient(first.transpose(*self.x), second.transpose(*self.y)),
                self.w,
            )
        else:
            x, w = first.transpose(*self.x), second.transpose(*self.w)
            made, order = self.convolve(x, w, self.window, self.groups), self.y
        return made.transpose(*(order.index(d) for d in range(len(order))))

    def convolve(self, x: Value, w: Value, window: Sequence[WindowDimension], groups: int) -> Value:
        """[batch, in, …] and [out, in / groups, …] to [batch, out, …]."""
        rank = x.rank
        spatial = tuple(range(2, rank))
        labels = ConvolutionDimensionNumbers(0, 1, spatial, 1, 0, spatial, 0, 1, spatial)
        sizes = [x.sizes[0], w.sizes[0]]
        for d, size in zip(window, x.sizes[2:], strict=True):
            padded = (size - 1) * d.base_dilation + 1 + d.padding_low + d.padding_high
            reach = (d.size - 1) * d.window_dilation + 1
            sizes.append(max(0, padded - reach + d.stride) // d.stride)
        type_ = sum_type(x.type, w.type, self.result.element_type)
        properties: dict[str, Attribute] = {}
        if groups > 1:
            properties["feature_group_count"] = integer(groups)
        precision = self.op.properties.get("operand_precision")
        if precision is not None:
            properties["operand_precision"] = precision
        return self.graph.make(
            "convolution",
            x,
            w,
            shape=plain(type_, sizes),
            window=WindowAttr(Window(tuple(window))),
            dim_labels=ConvolutionDimensionNumbersAttr(labels),
            **properties,
        )

    def input_gradient(self, gradient: Value, filters: Value) -> Value:
        """[batch, out, …] and [out, in / groups, …] to the input's gradient [batch, in, …]."""
        outputs, depth, *spatial = filters.sizes
        groups = self.groups
        # Each group's filters change the roles of their features; a reversed window reads them backwards.
        turned = filters.reshape(groups, outputs // groups, depth, *spatial)
        turned = turned.transpose(0, 2, 1, *range(3, turned.rank))
        turned = turned.reshape(groups * depth, outputs // groups, *spatial)
        dimensions: list[WindowDimension] = []
        sizes = [self.result.dimensions[d] for d in self.x[2:]]
        for d, size, given in zip(self.window, sizes, gradient.sizes[2:], strict=True):
            reach = (d.size - 1) * d.window_dilation
            low = reach - d.padding_low
            high = size + reach - (given - 1) * d.stride - 1 - low
            dimensions.append(
                WindowDimension(
                    d.size, 1, low, high, d.window_dilation, d.stride, not d.window_reversal
                )
            )
        return self.convolve(gradient, turned, dimensions, groups)

    def filter_gradient(self, x: Value, gradient: Value) -> Value:
        """[batch, in, …] and [batch, out, …] to the filter's gradient [out, in / groups, …]."""
        batch, channels, *spatial = x.sizes
        groups = self.groups
        depth = channels // groups
        # Batch and features change roles; the features of a group are what its outputs meet.
        images = x.reshape(batch, groups, depth, *spatial)
        images = images.transpose(2, 1, 0, *range(3, images.rank))
        images = images.reshape(depth, groups * batch, *spatial)
        dimensions: list[WindowDimension] = []
        for d, size, given in zip(self.window, spatial, gradient.sizes[2:], strict=True):
            reach = (d.size - 1) * d.window_dilation + 1
            high = reach + (given - 1) * d.stride - size - d.padding_low
            dimensions.append(
                WindowDimension(given, d.window_dilation, d.padding_low, high, d.stride, 1)
            )
        swapped = gradient.transpose(1, 0, *range(2, gradient.rank))
        made = self.convolve(images, swapped, dimensions, groups)
        made = made.transpose(1, 0, *range(2, made.rank))
        flipped = [2 + k for k, d in enumerate(self.window) if d.window_reversal]
        return made.reverse(*flipped) if flipped else made
