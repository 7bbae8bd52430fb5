"""Rules of convolution."""

from __future__ import annotations

import math
from dataclasses import replace

from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.attributes.dimensions import (
    ConvolutionDimensionNumbers,
    ConvolutionDimensionNumbersAttr,
    Window,
    WindowAttr,
    WindowDimension,
)
from mlirhlo.dialects.hlo.element_types import BF16, F32
from mlirhlo.dialects.hlo.ops import (
    AddOp,
    BitcastOp,
    BroadcastOp,
    ConvertOp,
    ConvolutionOp,
    DotOp,
    Instruction,
    MultiplyOp,
    PadOp,
    ReduceOp,
    ReverseOp,
)
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    element,
    has_one_user,
    is_all,
    is_constant,
    is_scalar_broadcast,
    made_by,
    sized,
    typed,
)
from mlirhlo.rewrites.algsimp.dot import swapped_precision
from mlirhlo.rewrites.algsimp.dot_operands import accumulator
from mlirhlo.rewrites.algsimp.movement.broadcast import LI
from mlirhlo.rewrites.algsimp.movement.physical import is_plain, order_of, same_memory
from mlirhlo.rewrites.computations import binary_computation
from mlirhlo.rewrites.rules import Rewriter, rule

_KEPT = ("dim_labels", "feature_group_count", "batch_group_count", "operand_precision")


def _parts(op: ConvolutionOp) -> tuple[tuple[WindowDimension, ...], ConvolutionDimensionNumbers]:
    """Window and labels of a convolution."""
    assert op.dim_labels is not None
    return (() if op.window is None else op.window.dimensions), op.dim_labels


def _is_static(op: ConvolutionOp) -> bool:
    """Whether all sizes are known, and nothing rare is asked for."""
    rare = ("sparsity_config", "block_scaling_config")
    if any(key in op.properties for key in rare) or op.convolution_kind != "unset":
        return False
    return len(op.inputs) == 2 and not any(array(v).is_dynamic for v in (op.output, *op.inputs))


def _numbers(op: ConvolutionOp, window: tuple[WindowDimension, ...]) -> dict[str, Attribute]:
    """Properties of the convolution with another window."""
    kept = {key: op.properties[key] for key in _KEPT if key in op.properties}
    return kept | ({"window": WindowAttr(Window(window))} if window else {})


def _has_own_reach(part: WindowDimension) -> bool:
    """Whether a window does anything but slide over every element of its operand."""
    return part != WindowDimension(size=part.size)


@rule(ConvolutionOp, contract="finite")
def convolution_of_empty(op: ConvolutionOp, rewriter: Rewriter) -> None:
    """conv(x, w) => bc(0), x or w empty"""
    if _is_static(op) and not all(array(v).element_count for v in op.inputs):
        b = Builder(op, rewriter)
        b.splat(array(op), 0)
        b.done()


@rule(ConvolutionOp, contract="finite", reads=(PadOp,))
def convolution_of_pad(op: ConvolutionOp, rewriter: Rewriter) -> None:
    """conv(pad(x, 0), w) => conv(x, w), the padding the window's; of spatial dimensions"""
    pad = made_by(op.inputs[0], PadOp)
    if pad is None or pad.padding is None or not _is_static(op) or not is_all(pad.padding_value, 0):
        return
    window, labels = _parts(op)
    edges = pad.padding.dimensions
    for dim in (labels.input_batch_dimension, labels.input_feature_dimension):
        if edges[dim].low or edges[dim].high or edges[dim].interior:
            return
    new: list[WindowDimension] = []
    for part, dim in zip(window, labels.input_spatial_dimensions, strict=True):
        edge = edges[dim]
        if part.base_dilation != 1:
            return
        if edge.interior and (part.padding_low or part.padding_high):
            return
        low, high = part.padding_low + edge.low, part.padding_high + edge.high
        spaced = replace(part, padding_low=low, padding_high=high)
        new.append(replace(spaced, base_dilation=edge.interior + 1))
    b = Builder(op, rewriter)
    b.like(ConvolutionOp, pad.operand, op.inputs[1], **_numbers(op, tuple(new)))
    b.done()


@rule(ConvolutionOp, contract="finite", reads=(PadOp,))
def convolution_with_padded_kernel(op: ConvolutionOp, rewriter: Rewriter) -> None:
    """conv(x, pad(w, 0)) => conv(x, w), interior padding of w the window's dilation"""
    pad = made_by(op.inputs[1], PadOp)
    if pad is None or pad.padding is None or not _is_static(op) or not is_all(pad.padding_value, 0):
        return
    window, labels = _parts(op)
    edges, sizes = pad.padding.dimensions, array(pad.operand).dimensions
    if any(edge.low or edge.high for edge in edges) or not array(pad.operand).element_count:
        return
    features = (labels.kernel_input_feature_dimension, labels.kernel_output_feature_dimension)
    if any(edges[d].interior for d in features):
        return
    new: list[WindowDimension] = []
    for part, dim in zip(window, labels.kernel_spatial_dimensions, strict=True):
        if edges[dim].interior and part.window_dilation != 1:
            return
        dilation = edges[dim].interior + 1 if edges[dim].interior else part.window_dilation
        new.append(replace(part, size=sizes[dim], window_dilation=dilation))
    b = Builder(op, rewriter)
    b.like(ConvolutionOp, op.inputs[0], pad.operand, **_numbers(op, tuple(new)))
    b.done()


@rule(ConvolutionOp, needs=("enable_conv_operand_swap", *LI), contract="rounding")
def convolution_with_larger_kernel(op: ConvolutionOp, rewriter: Rewriter) -> None:
    """conv(x, w) => conv(reverse(w), x), the window reversed; w larger than x"""
    window, labels = _parts(op)
    if not _is_static(op) or op.feature_group_count != 1 or op.batch_group_count != 1 or not window:
        return
    x, w = array(op.inputs[0]), array(op.inputs[1])
    inputs = [x.dimensions[d] for d in labels.input_spatial_dimensions]
    kernels = [w.dimensions[d] for d in labels.kernel_spatial_dimensions]
    outputs = [array(op).dimensions[d] for d in labels.output_spatial_dimensions]
    if math.prod(kernels) <= math.prod(inputs) or not array(op).element_count or 0 in inputs:
        return
    new: list[WindowDimension] = []
    for part, n, k, count in zip(window, inputs, kernels, outputs, strict=True):
        span, reach = (n - 1) * part.base_dilation + 1, (k - 1) * part.window_dilation + 1
        low = span + part.padding_low - reach
        high = (count - 1) * part.stride + span - reach - low
        new.append(
            WindowDimension(
                n, part.stride, low, high, part.base_dilation, part.window_dilation, True
            )
        )
    turned = [
        d
        for part, d in zip(window, labels.kernel_spatial_dimensions, strict=True)
        if not part.window_reversal
    ]
    swapped = ConvolutionDimensionNumbers(
        labels.kernel_output_feature_dimension,
        labels.kernel_input_feature_dimension,
        labels.kernel_spatial_dimensions,
        labels.input_feature_dimension,
        labels.input_batch_dimension,
        labels.input_spatial_dimensions,
        labels.output_feature_dimension,
        labels.output_batch_dimension,
        labels.output_spatial_dimensions,
    )
    properties = _numbers(op, tuple(new)) | {"dim_labels": ConvolutionDimensionNumbersAttr(swapped)}
    if "operand_precision" in properties:
        properties["operand_precision"] = swapped_precision(properties["operand_precision"])
    b = Builder(op, rewriter)
    base = op.inputs[1]
    if turned:
        base = b(ReverseOp, base, shape=w, dimensions=integers(tuple(turned))).output
    b.like(ConvolutionOp, base, op.inputs[0], **properties)
    b.done()


@rule(
    ConvolutionOp, needs=("enable_conv_simplification", "is_layout_sensitive"), contract="rounding"
)
def convolution_of_points(op: ConvolutionOp, rewriter: Rewriter) -> None:
    """conv(x, w) => bitcast(dot(bitcast(x), bitcast(w))), windows of one, features most minor"""
    window, labels = _parts(op)
    if not _is_static(op) or op.feature_group_count != 1 or op.batch_group_count != 1:
        return
    if any(part.size != 1 or _has_own_reach(replace(part, window_dilation=1)) for part in window):
        return
    shapes = (array(op.inputs[0]), array(op.inputs[1]), array(op))
    if not all(map(is_plain, shapes)) or not all(same_memory(shapes[0], s) for s in shapes):
        return
    x, w, result = shapes
    places_in = (
        labels.input_batch_dimension,
        *labels.input_spatial_dimensions,
        labels.input_feature_dimension,
    )
    places_out = (
        labels.output_batch_dimension,
        *labels.output_spatial_dimensions,
        labels.output_feature_dimension,
    )
    rows = [places_in.index(d) for d in order_of(x)]
    if rows != [places_out.index(d) for d in order_of(result)] or rows[-1] != len(rows) - 1:
        return
    into, out = labels.kernel_input_feature_dimension, labels.kernel_output_feature_dimension
    order = [d for d in order_of(w) if d in (into, out)]
    count = x.element_count // max(1, x.dimensions[labels.input_feature_dimension])
    sizes = [w.dimensions[d] for d in order]
    features = result.dimensions[labels.output_feature_dimension]
    b = Builder(op, rewriter)
    lhs = b(BitcastOp, op.inputs[0], shape=sized(x, (count, w.dimensions[into])))
    rhs = b(BitcastOp, op.inputs[1], shape=sized(w, sizes))
    properties: dict[str, Attribute] = {
        "lhs_contracting_dims": integers((1,)),
        "rhs_contracting_dims": integers((order.index(into),)),
    }
    if "operand_precision" in op.properties:
        properties["operand_precision"] = op.properties["operand_precision"]
    shape = sized(result, (count, features))
    b.like(BitcastOp, b(DotOp, lhs, rhs, shape=shape, **properties))
    b.done()


@rule(ConvolutionOp, needs=("enable_conv_simplification", *LI), contract="rounding")
def convolution_of_channels_apart(op: ConvolutionOp, rewriter: Rewriter) -> None:
    """conv(x, w) => reduce_add(x * bc(w)), each channel with its own weights, windows of one or whole"""
    window, labels = _parts(op)
    x, w = array(op.inputs[0]), array(op.inputs[1])
    channels = x.dimensions[labels.input_feature_dimension]
    if not _is_static(op) or op.feature_group_count != channels or op.batch_group_count != 1:
        return
    if w.dimensions[labels.kernel_output_feature_dimension] != channels or not x.element_count:
        return
    if any(map(_has_own_reach, window)) or element(op).is_complex or element(op).name == "pred":
        return
    place = {labels.kernel_output_feature_dimension: labels.input_feature_dimension}
    summed: list[int] = []
    pairs = zip(labels.input_spatial_dimensions, labels.kernel_spatial_dimensions, strict=True)
    for mine, theirs in pairs:
        if w.dimensions[theirs] == 1:
            continue
        if w.dimensions[theirs] != x.dimensions[mine]:
            return
        place[theirs] = mine
        summed.append(mine)
    type_ = accumulator(element(op))
    b = Builder(op, rewriter)

    def converted(value: SSAValue) -> SSAValue:
        if element(value) is type_:
            return value
        return b(ConvertOp, value, shape=typed(array(value), type_)).output

    kept = [d for d in range(w.rank) if d in place]
    small = b.reshape(
        converted(op.inputs[1]), typed(sized(w, [w.dimensions[d] for d in kept]), type_)
    )
    order = sorted(range(len(kept)), key=lambda k: place[kept[k]])
    shape = typed(sized(x, x.dimensions), type_)
    turned = small if order == sorted(order) else b.transpose(small, order)
    weights = b.broadcast(turned, sorted(place.values()), shape)
    result: Instruction = b(MultiplyOp, converted(op.inputs[0]), weights, shape=shape)
    if summed:
        left = sized(shape, [n for d, n in enumerate(x.dimensions) if d not in summed])
        dims, add = integers(tuple(sorted(summed))), binary_computation(op, "add", type_)
        result = b(ReduceOp, result, b.scalar(type_, 0), shape=left, dimensions=dims, to_apply=add)
    if type_ is not element(op):
        result = b(ConvertOp, result, shape=typed(array(result), element(op)))
    before = (
        labels.input_batch_dimension,
        labels.input_feature_dimension,
        *labels.input_spatial_dimensions,
    )
    after = (
        labels.output_batch_dimension,
        labels.output_feature_dimension,
        *labels.output_spatial_dimensions,
    )
    left_dims = [d for d in range(x.rank) if d not in summed]
    targets = [after[before.index(d)] for d in left_dims]
    places = sorted(range(len(targets)), key=targets.__getitem__)
    if places != sorted(places):
        result = b.transpose(result, places)
    if array(result).dimensions != array(op).dimensions:
        result = b.reshape(result, op.shape)
    b.done(result)


# ---------------------------------------------------------------- scalars


def _scaled(value: SSAValue) -> tuple[SSAValue, BroadcastOp] | None:
    """`x` and the broadcast of `x * bc(C)`, which one user reads; C a scalar constant."""
    product = made_by(value, MultiplyOp)
    if product is None or not has_one_user(value) or product.control_predecessors:
        return None
    for x, factor in ((product.lhs, product.rhs), (product.rhs, product.lhs)):
        spread = is_scalar_broadcast(factor)
        if spread is not None and is_constant(spread.operand):
            return x, spread
    return None


_SCALARS = ("enable_scalar_multiply_reduction", *LI)


@rule(ConvolutionOp, needs=_SCALARS, contract="rounding")
def convolution_of_scaled(op: ConvolutionOp, rewriter: Rewriter) -> None:
    """conv(x * C, w) => conv(x, w * C), or conv(x, w) * C, or of w; scaled where there is least"""
    if element(op) not in (F32, BF16) or not _is_static(op):
        return
    if any(element(v) is not element(op) for v in op.inputs):
        return
    counts = [array(v).element_count for v in (*op.inputs, op.output)]
    least = counts.index(min(counts))
    for side in (0, 1):
        scaled = _scaled(op.inputs[side])
        if scaled is None or counts[side] == counts[least]:
            continue
        value, spread = scaled
        operands = list(op.inputs)
        operands[side] = value
        b = Builder(op, rewriter)

        def times(
            v: SSAValue | Instruction, spread: BroadcastOp = spread, b: Builder = b
        ) -> Instruction:
            return b(MultiplyOp, v, b.spread(spread.operand, array(v)), shape=array(v))

        if least < 2:
            operands[least] = times(operands[least]).output
        product = b.like(ConvolutionOp, *operands, **_numbers(op, _parts(op)[0]))
        if least == 2:
            times(product)
        b.done()
        return


@rule(MultiplyOp, needs=_SCALARS, contract="rounding")
def scaled_convolution(op: MultiplyOp, rewriter: Rewriter) -> None:
    """conv(x, w) * C => conv(x, w * C), or of x; scaled where there is least"""
    for side, factor in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        product, spread = made_by(side, ConvolutionOp), is_scalar_broadcast(factor)
        if product is None or spread is None or not is_constant(spread.operand):
            continue
        if not has_one_user(side) or product.control_predecessors or not _is_static(product):
            continue
        if element(op) not in (F32, BF16) or any(
            element(v) is not element(op) for v in product.inputs
        ):
            continue
        counts = [array(v).element_count for v in product.inputs]
        least = counts.index(min(counts))
        if counts[least] >= array(op).element_count:
            continue
        b = Builder(op, rewriter)
        operands = list(product.inputs)
        small = array(operands[least])
        scale = b.spread(spread.operand, small)
        operands[least] = b(MultiplyOp, operands[least], scale, shape=small).output
        b.like(ConvolutionOp, *operands, **_numbers(product, _parts(product)[0]))
        b.done()
        return


@rule(MultiplyOp, needs=("enable_conv_add_multiply_reorder", *LI), contract="rounding")
def scaled_sum_of_convolution(op: MultiplyOp, rewriter: Rewriter) -> None:
    """(conv(x, C) + y) * bc(D) => conv(x, C * bc(D)) + y * bc(D), D along the output features"""
    for total, factor in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        spread, added = made_by(factor, BroadcastOp), made_by(total, AddOp)
        if spread is None or added is None or not is_constant(spread.operand):
            continue
        if not has_one_user(total):
            continue
        for value, bias in ((added.lhs, added.rhs), (added.rhs, added.lhs)):
            product = made_by(value, ConvolutionOp)
            if product is None or not _is_static(product) or not has_one_user(value):
                continue
            labels = _parts(product)[1]
            if spread.dimensions != (labels.output_feature_dimension,):
                continue
            kernel = product.inputs[1]
            if not is_constant(kernel) or element(kernel) is not element(op):
                continue
            b = Builder(op, rewriter)
            along = (labels.kernel_output_feature_dimension,)
            weights = b(
                MultiplyOp,
                kernel,
                b.broadcast(spread.operand, along, array(kernel)),
                shape=array(kernel),
            )
            numbers = _numbers(product, _parts(product)[0])
            scaled = b.like(ConvolutionOp, product.inputs[0], weights, **numbers)
            b.like(AddOp, scaled, b.like(MultiplyOp, bias, spread))
            b.done()
            return


def _is_of_onednn(op: ConvolutionOp) -> bool:
    """Whether oneDNN has a convolution like it, element types aside. Source: XLA:CPU's rewriter."""
    window, _ = _parts(op)
    shapes = [array(v) for v in (op.output, *op.inputs)]
    return (
        op.batch_group_count == 1
        and not op.control_predecessors
        and made_by(op.rhs, ReverseOp) is None
        and all(shape.element_count for shape in shapes)
        and len({shape.rank for shape in shapes}) == 1
        and 1 <= len(window) <= 3
        and all(min(w.padding_low, w.padding_high, w.stride) >= 0 for w in window)
    )


@rule(ConvolutionOp, needs=("enable_onednn_support", "executing_on_cpu"), contract="rounding")
def convolution_that_onednn_lacks(op: ConvolutionOp, rewriter: Rewriter) -> None:
    """convolution(x, w) => convert(convolution(convert(x), convert(w))), of bf16 and not in oneDNN"""
    if element(op) is not BF16 or not _is_static(op) or _is_of_onednn(op):
        return
    b = Builder(op, rewriter)
    wide = [
        b(ConvertOp, v, shape=typed(array(v), F32)) if element(v) is BF16 else v for v in op.inputs
    ]
    numbers = _numbers(op, _parts(op)[0])
    b(ConvolutionOp, *wide, shape=typed(array(op), F32), **numbers)
    b.like(ConvertOp, b.made[-1])
    b.done()


RULES = (
    convolution_of_empty,
    convolution_of_pad,
    convolution_with_padded_kernel,
    convolution_of_channels_apart,
    convolution_of_points,
    convolution_with_larger_kernel,
    convolution_of_scaled,
    scaled_convolution,
    scaled_sum_of_convolution,
    convolution_that_onednn_lacks,
)
