"""`cudnn-fused-convolution-rewriter`: scale, bias, side input and activation in the convolution's call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.base import integer, string
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.element_types import F32 as _F32
from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.hlo.literal import Literal
from mlirhlo.dialects.hlo.ops import (
    AddOp,
    BroadcastOp,
    ClampOp,
    CompareOp,
    ConvertOp,
    CustomCallOp,
    ExponentialMinusOneOp,
    GetTupleElementOp,
    Instruction,
    MaximumOp,
    MultiplyOp,
    ReshapeOp,
    SelectOp,
    TransposeOp,
)
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    element,
    is_all,
    literal_of,
    made_by,
    own_properties,
    sized,
    splat_of,
    typed,
)
from mlirhlo.rewrites.gpu_libraries.conv_rewriter import FORWARD, FUSED
from mlirhlo.rewrites.gpu_libraries.cublas_calls import uses
from mlirhlo.rewrites.gpu_libraries.gpu_calls import CONV_CONFIG, config_of, number, with_config
from mlirhlo.rewrites.legalize.expander import ExpanderPass
from mlirhlo.rewrites.rules import Rewriter, Rule, rule


@dataclass(frozen=True, slots=True)
class _Convolution:
    """A call whose result is `value`."""

    call: CustomCallOp
    config: Any


def _convolution(
    value: SSAValue, readers: int = 1, *, activated: bool = False
) -> _Convolution | None:
    """The forward convolution, without activation if not `activated`, whose result so many instructions read."""
    part = made_by(value, GetTupleElementOp)
    call = None if part is None or part.index != 0 else made_by(part.operand, CustomCallOp)
    if call is None or call.custom_call_target not in (FORWARD, FUSED) or call.dim_labels is None:
        return None
    if uses(value) != readers or uses(call.output) != 1 or call.control_predecessors:
        return None
    config = config_of(call, CONV_CONFIG)
    is_plain = config["activation_mode"] == "kNone"
    return _Convolution(call, config) if activated or is_plain else None


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
    """The call with more operands and other fields in its configuration, for `op`, in the type of `op`.

    `bias`: a number a feature; `everywhere`: one for all of them. Does nothing for a convolution of
    each feature by itself, which cuDNN has no such call of.
    """
    call = found.call
    labels = call.dim_labels
    assert labels is not None
    groups = call.feature_group_count
    if groups > 1 and groups == array(call.inputs[0]).dimensions[labels.input_feature_dimension]:
        return
    b = Builder(op, rewriter)
    operands = list(call.inputs)
    if len(operands) == 2:
        features = array(op).dimensions[labels.output_feature_dimension]
        # The bias of integers is f32.
        vector = typed(sized(array(op), (features,)), element(op) if element(op).is_float else _F32)
        if everywhere is not None:
            bias = b.broadcast(everywhere, (), vector).output
        operands.append(b.splat(vector, 0).output if bias is None else bias)
    elif bias is not None:
        operands[2] = bias
    if side is not None:
        operands.append(side)
    properties = with_config(call, CONV_CONFIG, **fields)
    properties["custom_call_target"] = string(FUSED)
    new = make("custom-call", operands, _giving(call, op), properties)
    b.made.append(new)
    b.like(GetTupleElementOp, new, index=integer(0))
    b.done()


def _giving(call: CustomCallOp, op: Instruction) -> TupleShape:
    """The shape of a call that gives the result in the type of `op`."""
    assert isinstance(call.shape, TupleShape)
    first, *rest = call.shape.elements
    assert isinstance(first, ArrayShape)
    return TupleShape((typed(first, element(op)), *rest))


@rule(ConvertOp)
def f32_of_integer_convolution(op: ConvertOp, rewriter: Rewriter) -> None:
    """convert(conv(x, w)) => conv(x, w), of s8 and summed as s32, given as f32"""
    found = _convolution(op.operand)
    if found is None or (element(op.operand).name, element(op).name) != ("s32", "f32"):
        return
    b = Builder(op, rewriter)
    properties = dict(found.call.properties)
    new = make("custom-call", found.call.inputs, _giving(found.call, op), properties)
    b.made.append(new)
    b.like(GetTupleElementOp, new, index=integer(0))
    b.done()


@rule(ConvertOp, contract="rounding")
def s8_of_convolution(op: ConvertOp, rewriter: Rewriter) -> None:
    """convert(clamp(-128, conv(x, w), 127)) => conv(x, w) of s8 in s8"""
    clamp = made_by(op.operand, ClampOp)
    if clamp is None or element(op).name != "s8" or uses(op.operand) != 1:
        return
    low, value, high = clamp.inputs
    found = _convolution(value, activated=True)
    if found is None or not is_all(low, -128) or not is_all(high, 127):
        return
    types = [element(v).name for v in found.call.inputs]
    if element(value).name == "f32" and types[:2] == ["s8", "s8"] and "s8" not in types[2:3]:
        _fuse(op, rewriter, found)


@rule(ConvertOp, contract="rounding")
def f16_of_convolution(op: ConvertOp, rewriter: Rewriter) -> None:
    """convert(conv(convert(x), convert(w))) => conv(x, w), in f16"""
    found = _convolution(op.operand, activated=True)
    if found is None or (element(op.operand).name, element(op).name) != ("f32", "f16"):
        return
    b = Builder(op, rewriter)
    narrow = [_narrowed(b, v, element(op)) for v in found.call.inputs]
    operands = [v for v in narrow if v is not None]
    if len(operands) < len(narrow):
        return
    properties = dict(found.call.properties)
    b.made.append(make("custom-call", operands, _giving(found.call, op), properties))
    b.like(GetTupleElementOp, b.made[-1], index=integer(0))
    b.done()


def _narrowed(b: Builder, value: SSAValue, type_: PrimitiveType) -> SSAValue | None:
    """A value in a narrower type, where every element is one of that type; None where that is not known."""
    if element(value) is type_:
        return value
    owner = value.owner
    if isinstance(owner, ConvertOp) and element(owner.operand) is type_:
        return owner.operand
    if isinstance(owner, (BroadcastOp, ReshapeOp, TransposeOp)):
        inner = _narrowed(b, owner.inputs[0], type_)
        if inner is None:
            return None
        shape = typed(array(owner), type_)
        return b(type(owner), inner, shape=shape, **own_properties(owner)).output
    literal = literal_of(value)
    if literal is None:
        return None
    with np.errstate(over="ignore"):
        values = literal.array.astype(type_.dtype)
    if not np.array_equal(values.astype(literal.array.dtype), literal.array):
        return None
    return b.constant(Literal.from_array(typed(array(value), type_), values)).output


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
    nothing else. A convolution of s8 gives f32 itself, or s8 where the result is clamped to what s8 holds; one of f32
    is done in f16 where operands come from f16 and the result becomes f16. Nothing goes
    into depthwise convolutions. Needs: conv-rewriter. Source: XLA:GPU's pass and its dumps.
    """

    name = "cudnn-fused-convolution-rewriter"
    exact: ClassVar[bool] = False
    rules: ClassVar[tuple[Rule, ...]] = (
        f32_of_integer_convolution,
        constant_times_convolution,
        convolution_plus_bias,
        convolution_plus_side_input,
        scaled_side_input,
        relu_of_convolution,
        relu6_of_convolution,
        elu_of_convolution,
        leaky_relu_of_convolution,
        s8_of_convolution,
        f16_of_convolution,
    )

    runtime_fusion: bool = False
    """Activations whose kernels cuDNN compiles at run time: relu6, elu, leaky relu."""
