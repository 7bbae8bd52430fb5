"""Attention in 8-bit floats that XLA:GPU hands to cuDNN: `__cudnn$fmhaSoftmaxF8`, `…BackwardF8`.

Every array has a factor that makes its numbers real ones (descale); what leaves, and what is rounded on the way
(P and dP), is multiplied by a factor first (scale), and its greatest magnitude before that is a result too.
Source: JAX's lowerings, and the graphs that cuDNN's frontend builds for these calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.interp.custom_calls import computes
from mlirhlo.interp.custom_calls.gpu.gpu_attention import Call, as_f32, shared_heads, summed_heads
from mlirhlo.interp.custom_calls.gpu.gpu_gemm import saturated
from mlirhlo.interp.registry import Array, Frame, Value

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.control_flow import CustomCallOp


def _factors(call: Call, count: int) -> list[np.float32]:
    """The next operands, each one number."""
    found = [np.float32(call.rest.pop(0).item()) for _ in range(count)]
    call.done()
    return found


def _eight(x: Any, scale: np.float32, type_: PrimitiveType) -> Array:
    """What is left of numbers in 8 bits."""
    return as_f32(saturated(x * scale, type_))


def _greatest(x: Array) -> Array:
    return np.asarray(np.max(np.abs(x), initial=0))


def _type(op: CustomCallOp) -> PrimitiveType:
    return cast(ArrayShape, op.input_shapes[0]).element_type


@computes("__cudnn$fmhaSoftmaxF8")
def forward(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """`(O, amax of P, amax of O[, log-sum-exp], workspace)` of Q, K, V, their descales, that of P, the scales of
    P and O. Raises HLO0355."""
    call = Call(op, inputs)
    q = as_f32(call.take("bmm1", "lhs", "contracted"))
    k = as_f32(call.take("bmm1", "rhs", "contracted"))
    v = as_f32(call.take("bmm2", "rhs"))
    real_q, real_k, real_v, real_p, scale_p, scale_o = _factors(call, 6)
    scores = call.attention.scores(q, k, None) * (real_q * real_k)
    p, stat = call.attention.weights(scores, call.seen(q, k, None))
    o = np.matmul(_eight(p, scale_p, _type(op)), shared_heads(v, q)) * (real_p * real_v)
    results = [o * scale_o, _greatest(p), _greatest(o)]
    return call.result(*results, *([stat] if call.results > 4 else []))


@computes("__cudnn$fmhaSoftmaxBackwardF8")
def backward(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """`(dQ, dK, dV, their amax, amax of dP, workspace)` of Q, K, V, O, dO, log-sum-exp; the descales of Q, K, V,
    O, dO, P, dP; the scales of P, dQ, dK, dV, dP. Raises HLO0355."""
    call = Call(op, inputs)
    q = as_f32(call.take("bmm1_grad_gemm1", "rhs"))
    k = as_f32(call.take("bmm1_grad_gemm2", "rhs"))
    v = as_f32(call.take("bmm2_grad_gemm2", "rhs", "contracted"))
    o, do = (as_f32(call.take("bmm2_grad_gemm1", "rhs")) for _ in range(2))
    stat = as_f32(call.rest.pop(0))
    real_q, real_k, real_v, real_o, real_do, real_p, real_dp, *scales = _factors(call, 12)
    scale_p, scale_dq, scale_dk, scale_dv, scale_dp = scales
    keys, values = shared_heads(k, q), shared_heads(v, q)
    scores = call.attention.scores(q, k, None) * (real_q * real_k)
    seen = call.seen(q, k, None)
    p = np.exp(np.where(seen, scores - stat[..., None], -np.inf))
    kept = _eight(p, scale_p, _type(op))
    dv = summed_heads(np.matmul(kept.swapaxes(-1, -2), do) * (real_p * real_do), v)
    products = np.sum(do * o, axis=-1, keepdims=True) * (real_do * real_o)
    dp = np.matmul(do, values.swapaxes(-1, -2)) * (real_do * real_v) - products
    dp = dp * p * np.float32(call.attention.scale)
    part = _eight(dp, scale_dp, _type(op))
    dq = np.matmul(part, keys) * (real_dp * real_k)
    dk = summed_heads(np.matmul(part.swapaxes(-1, -2), q) * (real_dp * real_q), k)
    made = (dq * scale_dq, dk * scale_dk, dv * scale_dv)
    return call.result(*made, *map(_greatest, (dq, dk, dv, dp)))
