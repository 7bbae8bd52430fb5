"""`cudnn-fused-convolution-rewriter`: scale, bias, side input and activation in the convolution's call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.base import integer, string
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.ops import (
    AddOp,
    BroadcastOp,
    ClampOp,
    CompareOp,
    CustomCallOp,
    ExponentialMinusOneOp,
    GetTupleElementOp,
    Instruction,
    MaximumOp,
    MultiplyOp,
    SelectOp,
)
from mlirhlo.interp.custom_calls.gpu_gemm import config_of
from mlirhlo.rewrites.algsimp.common import Builder, array, is_all, made_by, sized, splat_of
from mlirhlo.rewrites.conv_rewriter import FORWARD, FUSED
from mlirhlo.rewrites.cublas_calls import uses
from mlirhlo.rewrites.expander import ExpanderPass
from mlirhlo.rewrites.gpu_calls import CONV_CONFIG, number, with_config
from mlirhlo.rewrites.rules import Rewriter, Rule, rule


@dataclass(frozen=True, slots=True)
class _Convolution:
    """A call whose result is `value`."""

    call: CustomCallOp
    config: Any


def _convolution(value: SSAValue, readers: int = 1) -> _Convolution | None:
    """The forward convolution without activation of which so many instructions read the result."""
    part = made_by(value, GetTupleElementOp)
    call = None if part is None or part.index != 0 else made_by(part.operand, CustomCallOp)
    if call is None or call.custom_call_target not in (FORWARD, FUSED) or call.dim_labels is None:
        return None
    if uses(value) != readers or uses(call.output) != 1 or call.control_predecessors:
        return None
    config = config_of(call, CONV_CONFIG)
    return _Convolution(call, config) if config["activation_mode"] == "kNone" else None


def _fuse(
    op: Instruction,
    rewriter: Rewriter,
    found: _Convolution,
    *,
    bias: SSAValue | None = None,
    everywhere: SSAValue | None = None,
    side: SSAValue | None = None,
    **fields: object,
) -> None:
    """The call with more operands and other fields in its configuration, for `op`.

    `bias`: a number a feature; `everywhere`: one for all of them.
    """
    call = found.call
    labels = call.dim_labels
    assert labels is not None
    b = Builder(op, rewriter)
    operands = list(call.inputs)
    if len(operands) == 2:
        features = array(op).dimensions[labels.output_feature_dimension]
        vector = sized(array(op), (features,))
        if everywhere is not None:
            bias = b.broadcast(everywhere, (), vector).output
        operands.append(b.splat(vector, 0).output if bias is None else bias)
    elif bias is not None:
        operands[2] = bias
    if side is not None:
        operands.append(side)
    properties = with_config(call, CONV_CONFIG, **fields)
    properties["custom_call_target"] = string(FUSED)
    new = make("custom-call", operands, call.shape, properties)
    b.made.append(new)
    b.like(GetTupleElementOp, new, index=integer(0))
    b.done()


@rule(MultiplyOp, contract="rounding")
def constant_times_convolution(op: MultiplyOp, rewriter: Rewriter) -> None:
    """conv(x, w) * c => conv(x, w), conv_result_scale = c"""
    for value, factor in (op.inputs, op.inputs[::-1]):
        found, scale = _convolution(value), splat_of(factor)
        if found is None or scale is None or isinstance(scale, complex):
            continue
        if len(found.call.inputs) > 2 or found.config["conv_result_scale"] != 1:
            continue
        _fuse(op, rewriter, found, conv_result_scale=number(scale))
        return


@rule(AddOp, contract="rounding")
def convolution_plus_bias(op: AddOp, rewriter: Rewriter) -> None:
    """conv(x, w) + broadcast(b), a number a feature => conv(x, w, b)"""
    for value, other in (op.inputs, op.inputs[::-1]):
        found, spread = _convolution(value), made_by(other, BroadcastOp)
        if found is None or spread is None:
            continue
        operands = found.call.inputs
        if len(operands) > 2 and not is_all(operands[2], 0):
            continue
        labels = found.call.dim_labels
        assert labels is not None
        if spread.dimensions == (labels.output_feature_dimension,):
            _fuse(op, rewriter, found, bias=spread.operand)
            return
        if not spread.dimensions and splat_of(other) is not None and len(operands) == 2:
            _fuse(op, rewriter, found, everywhere=spread.operand)
            return


@rule(AddOp, contract="rounding")
def convolution_plus_side_input(op: AddOp, rewriter: Rewriter) -> None:
    """conv(x, w) + y => conv(x, w, b, y), side_input_scale = 1"""
    for value, other in (op.inputs, op.inputs[::-1]):
        found = _convolution(value)
        if found is None or made_by(other, BroadcastOp) is not None:
            continue
        if len(found.call.inputs) > 3:
            continue
        _fuse(op, rewriter, found, side=other, side_input_scale=1)
        return


@rule(GetTupleElementOp, contract="rounding")
def scaled_side_input(op: GetTupleElementOp, rewriter: Rewriter) -> None:
    """conv(x, w, b, y * c) => conv(x, w, b, y), side_input_scale = c"""
    found = _convolution(op.output, uses(op.output))
    if found is None or len(found.call.inputs) != 4 or found.config["side_input_scale"] != 1:
        return
    product = made_by(found.call.inputs[3], MultiplyOp)
    if product is None:
        return
    for value, factor in (product.inputs, product.inputs[::-1]):
        scale = splat_of(factor)
        if scale is None or made_by(factor, BroadcastOp) is None:
            continue
        properties = with_config(found.call, CONV_CONFIG, side_input_scale=number(scale))
        b = Builder(op, rewriter)
        new = make("custom-call", [*found.call.inputs[:3], value], found.call.shape, properties)
        b.made.append(new)
        b.like(GetTupleElementOp, new, index=integer(0))
        b.done()
        return


@rule(MaximumOp, contract="rounding")
def relu_of_convolution(op: MaximumOp, rewriter: Rewriter) -> None:
    """max(conv(x, w), 0) => conv(x, w), activation_mode = kRelu"""
    for value, zeros in (op.inputs, op.inputs[::-1]):
        found = _convolution(value)
        if found is not None and is_all(zeros, 0):
            _fuse(op, rewriter, found, activation_mode="kRelu")
            return


@rule(ClampOp, contract="rounding", needs=("runtime_fusion",))
def relu6_of_convolution(op: ClampOp, rewriter: Rewriter) -> None:
    """clamp(0, conv(x, w), 6) => conv(x, w), activation_mode = kRelu6"""
    low, value, high = op.inputs
    found = _convolution(value)
    if found is not None and is_all(low, 0) and is_all(high, 6):
        _fuse(op, rewriter, found, activation_mode="kRelu6")


@rule(SelectOp, contract="rounding", needs=("runtime_fusion",))
def elu_of_convolution(op: SelectOp, rewriter: Rewriter) -> None:
    """select(c > 0, c, expm1(c)), c = conv(x, w) => conv(x, w), activation_mode = kElu"""
    value = _positive_part(op)
    other = made_by(op.inputs[2], ExponentialMinusOneOp)
    if value is None or other is None or other.operand is not value:
        return
    found = _convolution(value, 3)
    if found is not None:
        _fuse(op, rewriter, found, activation_mode="kElu")


@rule(SelectOp, contract="rounding", needs=("runtime_fusion",))
def leaky_relu_of_convolution(op: SelectOp, rewriter: Rewriter) -> None:
    """select(c > 0, c, c * a), c = conv(x, w) => conv(x, w), activation_mode = kLeakyRelu"""
    value = _positive_part(op)
    product = made_by(op.inputs[2], MultiplyOp)
    if value is None or product is None or value not in product.inputs:
        return
    factor = product.inputs[0] if product.inputs[1] is value else product.inputs[1]
    found, alpha = _convolution(value, 3), splat_of(factor)
    if found is not None and isinstance(alpha, float):
        _fuse(op, rewriter, found, activation_mode="kLeakyRelu", leakyrelu_alpha=number(alpha))


def _positive_part(op: SelectOp) -> SSAValue | None:
    """The value that a select takes where it is above zero."""
    test, value, _ = op.inputs
    compare = made_by(test, CompareOp)
    if compare is None or compare.direction != "GT" or compare.inputs[0] is not value:
        return None
    return value if is_all(compare.inputs[1], 0) else None


@dataclass(frozen=True)
class CudnnFusedConvolutionRewriterPass(ExpanderPass):
    """Lets cuDNN scale a result, add to it and apply an activation, in one call.

    Before and after:

        %c = custom-call(%x, %w), custom_call_target="__cudnn$convForward"   maximum(add(%c, broadcast(%b)), 0)
          =>   %c = custom-call(%x, %w, %b), custom_call_target="__cudnn$convBiasActivationForward",
               backend_config={"cudnn_conv_backend_config":{"activation_mode":"kRelu", …}}

    In order: a constant scale, a bias a feature, a side input of the result's shape with a scale of its own,
    relu; with `runtime_fusion` also relu6, elu and leaky relu. The result of the convolution must be read by
    nothing else. Needs: conv-rewriter. Integer convolutions stay. Source: XLA:GPU's pass and its dumps.
    """

    name = "cudnn-fused-convolution-rewriter"
    exact: ClassVar[bool] = False
    rules: ClassVar[tuple[Rule, ...]] = (
        constant_times_convolution,
        convolution_plus_bias,
        convolution_plus_side_input,
        scaled_side_input,
        relu_of_convolution,
        relu6_of_convolution,
        elu_of_convolution,
        leaky_relu_of_convolution,
    )

    runtime_fusion: bool = False
    """Activations whose kernels cuDNN compiles at run time: relu6, elu, leaky relu."""
