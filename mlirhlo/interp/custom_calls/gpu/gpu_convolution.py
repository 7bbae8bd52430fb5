"""Convolutions that XLA:GPU hands to cuDNN.

Window, dimension labels and groups are those of the *forward* convolution in all three kinds; the
backward kinds compute its input from (output gradient, filter) and its filter from (input, output
gradient). `…BiasActivationForward` is activation(conv_result_scale * conv + side_input_scale * side
input + bias). `…ForwardGraph` goes on as its
`serialized_graph` says. Arrays of one dimension more than the labels have the features' last part there, as cuDNN's
vectors of 4 or 32; `…ReorderFilter` puts a filter into an order that only cuDNN's convolution sees: none here.
Source: XLA's conv-rewriter and cudnn-fused-convolution-rewriter as dumps show them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.dialects.hlo.attributes.dimensions import (
    ConvolutionDimensionNumbers,
    Window,
    WindowDimension,
)
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.interp.custom_calls import computes, unfit
from mlirhlo.interp.custom_calls.gpu.gpu_gemm import config_of, saturated
from mlirhlo.interp.numerics import work_dtype
from mlirhlo.interp.ops.async_ops import zeros
from mlirhlo.interp.ops.convolution import convolve
from mlirhlo.interp.ops.dot import accumulator
from mlirhlo.interp.registry import Array, Frame, Value

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.control_flow import CustomCallOp

ACTIVATIONS: Mapping[str, Callable[[Any, float], Any]] = {
    "kNone": lambda x, alpha: x,
    "kIdentity": lambda x, alpha: x,
    "kRelu": lambda x, alpha: np.maximum(x, 0),
    "kRelu6": lambda x, alpha: np.minimum(np.maximum(x, 0), 6),
    "kElu": lambda x, alpha: cast(Any, np.where(x > 0, x, np.expm1(x))),
    "kLeakyRelu": lambda x, alpha: cast(Any, np.where(x > 0, x, alpha * x)),
    "kSigmoid": lambda x, alpha: 1 / (1 + np.exp(-x)),
    "kTanh": lambda x, alpha: np.tanh(x),
}


def _orders(labels: ConvolutionDimensionNumbers) -> tuple[tuple[int, ...], ...]:
    """Orders that make input and output [batch, feature, spatial…], filter [out, in, spatial…]."""
    return (
        (
            labels.input_batch_dimension,
            labels.input_feature_dimension,
            *labels.input_spatial_dimensions,
        ),
        (
            labels.kernel_output_feature_dimension,
            labels.kernel_input_feature_dimension,
            *labels.kernel_spatial_dimensions,
        ),
        (
            labels.output_batch_dimension,
            labels.output_feature_dimension,
            *labels.output_spatial_dimensions,
        ),
    )


def _plain(op: CustomCallOp, window: Window) -> tuple[WindowDimension, ...]:
    if any(d.base_dilation != 1 for d in window.dimensions):
        raise unfit(op, "base dilation in a backward convolution")
    return window.dimensions


def input_gradient(
    gradient: Array,
    filters: Array,
    window: Sequence[WindowDimension],
    groups: int,
    sizes: Sequence[int],
    dtype: np.dtype[Any],
) -> Array:
    """Transposed convolution: [batch, out, …] and [out, in / groups, …] to [batch, in, *sizes]."""
    outputs, depth = filters.shape[:2]
    spatial = filters.shape[2:]
    # Each group's filters change the roles of their features and turn round.
    turned = filters.reshape(groups, outputs // groups, depth, *spatial).swapaxes(1, 2)
    turned = turned.reshape(groups * depth, outputs // groups, *spatial)
    turned = np.flip(turned, tuple(range(2, turned.ndim)))
    dimensions: list[WindowDimension] = []
    for d, size, given in zip(window, sizes, gradient.shape[2:], strict=True):
        reach = (d.size - 1) * d.window_dilation
        low = reach - d.padding_low
        spread = (given - 1) * d.stride + 1
        high = size + reach - spread - low
        dimensions.append(WindowDimension(d.size, 1, low, high, d.window_dilation, d.stride))
    return convolve(gradient, turned, Window(tuple(dimensions)), groups, dtype)


def filter_gradient(
    lhs: Array,
    gradient: Array,
    window: Sequence[WindowDimension],
    groups: int,
    dtype: np.dtype[Any],
) -> Array:
    """[batch, in, …] and [batch, out, …] to the filter's gradient [out, in / groups, …]."""
    batch, channels = lhs.shape[:2]
    depth = channels // groups
    # Batch and features change roles; the features of a group are what its outputs meet.
    images = lhs.reshape(batch, groups, depth, *lhs.shape[2:])
    images = np.moveaxis(images, 2, 0).swapaxes(1, 2).reshape(depth, groups * batch, *lhs.shape[2:])
    dimensions: list[WindowDimension] = []
    for d, size, given in zip(window, lhs.shape[2:], gradient.shape[2:], strict=True):
        wanted = (d.size - 1) * d.window_dilation + 1
        span = (given - 1) * d.stride + 1
        high = wanted + span - 1 - size - d.padding_low
        dimensions.append(
            WindowDimension(given, d.window_dilation, d.padding_low, high, d.stride, 1)
        )
    product = convolve(images, gradient.swapaxes(0, 1), Window(tuple(dimensions)), groups, dtype)
    return product.swapaxes(0, 1)


def _joined(x: Array, feature: int) -> Array:
    """Features in one dimension that stand in dimension `feature` and the last one."""
    near = np.moveaxis(x, -1, feature + 1)
    sizes = (*near.shape[:feature], -1, *near.shape[feature + 2 :])
    return near.reshape(sizes)


def _parted(x: Array, feature: int, vectors: int) -> Array:
    """The opposite: the last `vectors` features last."""
    sizes = (*x.shape[:feature], -1, vectors, *x.shape[feature + 1 :])
    return np.moveaxis(x.reshape(sizes), feature + 1, -1)


@computes("__cudnn$convReorderFilter", "__cudnn$convReorderFilterAndBias")
def reorder_filter(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """The filter, and the bias, as they are."""
    return tuple(inputs) if isinstance(op.shape, TupleShape) else inputs[0]


@computes(
    "__cudnn$convForward",
    "__cudnn$convBiasActivationForward",
    "__cudnn$convForwardGraph",
    "__cudnn$convBackwardInput",
    "__cudnn$convBackwardFilter",
)
def convolution(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """`(result[, greatest magnitude], scratch)`. Raises HLO0355."""
    parts = op.shape.elements if isinstance(op.shape, TupleShape) else (op.shape,)
    shape = cast(ArrayShape, parts[0])
    labels = op.dim_labels
    if labels is None:
        raise unfit(op, "it has no dim_labels")
    types = [cast(ArrayShape, s).element_type for s in op.input_shapes[:2]]
    spatial = len(labels.input_spatial_dimensions)
    window = op.window or Window((WindowDimension(),) * spatial)
    lhs_order, rhs_order, out_order = _orders(labels)
    groups, dtype = op.feature_group_count, accumulator(types[0], types[1], shape.element_type)
    if dtype.kind in "iu" and dtype.itemsize < 4:
        dtype = np.dtype(np.int32)  # what is too large for s8 is known at the end
    first, second = (
        inputs[k].astype(work_dtype(type_), copy=False) for k, type_ in enumerate(types)
    )
    rest = list(inputs[2:])
    vectors = shape.dimensions[-1] if shape.rank == spatial + 3 else 0
    if vectors:
        first = _joined(first, labels.input_feature_dimension)
        second = _joined(second, labels.kernel_input_feature_dimension)
        rest[1:2] = [_joined(side, labels.output_feature_dimension) for side in rest[1:2]]
    # cuDNN's mode is cross-correlation; a reversed window says convolution.
    flipped = tuple(2 + k for k, d in enumerate(window.dimensions) if d.window_reversal)
    total: Any
    match op.custom_call_target:
        case "__cudnn$convBackwardInput":
            order = lhs_order
            sizes = [shape.dimensions[dim] for dim in labels.input_spatial_dimensions]
            filters = np.flip(second.transpose(rhs_order), flipped)
            gradient = first.transpose(out_order)
            total = input_gradient(gradient, filters, _plain(op, window), groups, sizes, dtype)
        case "__cudnn$convBackwardFilter":
            order = rhs_order
            lhs, gradient = first.transpose(lhs_order), second.transpose(out_order)
            total = filter_gradient(lhs, gradient, _plain(op, window), groups, dtype)
            total = np.flip(total, flipped)
        case _:
            order = out_order
            filters = np.flip(second.transpose(rhs_order), flipped)
            total = convolve(first.transpose(lhs_order), filters, window, groups, dtype)
    total = total.transpose(tuple(order.index(dim) for dim in range(len(order))))
    if op.custom_call_target == "__cudnn$convForwardGraph":
        made = _graph(op, total, rest)
    else:
        made = [_finished(op, total, rest, labels.output_feature_dimension)]
    if vectors:
        made[0] = _parted(made[0], labels.output_feature_dimension, vectors)
    values = (
        *(
            saturated(v, cast(ArrayShape, part).element_type)
            for v, part in zip(made, parts, strict=False)
        ),
        *map(zeros, parts[len(made) :]),
    )
    return values if isinstance(op.shape, TupleShape) else values[0]


def _finished(op: CustomCallOp, total: Any, rest: Sequence[Any], feature: int) -> Any:
    """Scales, side input, bias and activation, in f32 at least."""
    config = config_of(op, "cudnn_conv_backend_config")
    scale = float(config.get("conv_result_scale", 1))
    mode = str(config.get("activation_mode", "kNone"))
    activation = ACTIVATIONS.get(mode)
    if activation is None:
        raise unfit(op, f"activation {mode!r} is not known")
    if total.dtype.kind in "iu" and (rest or scale != 1):
        total = total.astype(np.float32)
    if scale != 1:
        total = total * total.dtype.type(scale)
    if rest:
        shape = [1] * total.ndim
        shape[feature] = -1
        total = total + rest[0].astype(total.dtype).reshape(shape)
    if len(rest) > 1:
        side = total.dtype.type(config.get("side_input_scale", 1))
        total = total + side * rest[1].astype(total.dtype)
    return activation(total, total.dtype.type(config.get("leakyrelu_alpha", 0)))


_NODE = re.compile(r"(\d+):\[\w+\](\w+)\(([\d,]*)\);")


def _graph(op: CustomCallOp, total: Any, rest: Sequence[Any]) -> list[Any]:
    """The last value of the graph that begins with the convolution, then greatest magnitudes.

    `1:[f32]conv();2:[f32]scale(1);3:[f8e4m3fn]relu(2);4:[f32]amax(2);`: a node has a number, a type, and the
    numbers of nodes it reads; a scale or a summand that is no node is the next operand of the call.
    """
    text = str(config_of(op, "cudnn_conv_backend_config").get("serialized_graph", ""))
    nodes = _NODE.findall(text)
    if not nodes or nodes[0][1] != "conv" or _NODE.sub("", text):
        raise unfit(op, f"its graph is {text!r}, not a list of nodes after a convolution")
    given, values, greatest = list(rest), dict[str, Any](), list[Any]()
    last = total
    for number, name, reads in nodes:
        arguments = [values[key] for key in reads.split(",") if key]
        if name in ("scale", "invscale", "add") and len(arguments) == 1:
            if not given:
                raise unfit(op, f"no operand is left for {name!r} of its graph")
            arguments.append(np.asarray(given.pop(0)).astype(total.dtype))
        match name:
            case "conv":
                made = total
            case "scale":
                made = arguments[0] * arguments[1]
            case "invscale":
                made = arguments[0] / arguments[1]
            case "add":
                made = arguments[0] + arguments[1]
            case "relu":
                made = np.maximum(arguments[0], 0)
            case "amax":
                greatest.append(np.asarray(np.max(np.abs(arguments[0]), initial=0)))
                continue
            case _:
                raise unfit(op, f"{name!r} of its graph is not known")
        values[number] = last = made
    return [last, *greatest]
