"""Attention that XLA:GPU hands to cuDNN: `__cudnn$fmha[ScaleBias]Softmax[Dropout][Backward]`.

P = softmax(scale * Q Kᵀ + bias) over the keys that the mask lets through, O = P V; the second result of
training is log(sum(exp(...))) of each query. All in f32, rounded once. A query that sees no key, or that is
beyond its sequence's length, gives zeros. Key and value may have fewer heads: neighbouring query heads
share one.

Dimension numbers of the backend config say where batch, heads, sequence and features stand in the operands;
results are [batch, heads, sequence, features]. Sequences may be packed (`max_seg_per_batch` > 1: lengths, and
offsets counted in elements, of each segment) and keys and values may lie in pages (`is_paged_attention`).
Source: JAX's lowerings of `dot_product_attention`, XLA's cuDNN compiler, cuDNN's documentation of attention.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.interp.custom_calls import computes, unfit
from mlirhlo.interp.custom_calls.gpu.gpu_gemm import config_of, saturated
from mlirhlo.interp.ops.async_ops import zeros
from mlirhlo.interp.registry import Array, Frame, Value

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.control_flow import CustomCallOp

_MASKS = ("NO_MASK", "PADDING", "CAUSAL", "PADDING_CAUSAL")
_KINDS = ("Softmax", "ScaleBiasSoftmax", "SoftmaxDropout", "ScaleBiasSoftmaxDropout")


@dataclass(frozen=True)
class Attention:
    """What a backend config asks for."""

    scale: float
    causal: bool
    """Query i sees keys up to i."""
    window: int
    """Query i sees keys after i - window; 0: all."""

    def visible(self, queries: int, keys: int) -> Array:
        """Which keys a query sees, whatever the lengths: [queries, keys]."""
        distance = np.arange(queries)[:, None] - np.arange(keys)
        seen: Any = np.ones(distance.shape, np.bool_)
        if self.causal:
            seen &= distance >= 0
        if self.window:
            seen &= distance < self.window
        return cast(Array, seen)

    def scores(self, q: Array, k: Array, bias: Array | None) -> Array:
        """scale * Q Kᵀ + bias: [batch, heads, queries, keys]."""
        scores = np.float32(self.scale) * np.matmul(q, shared_heads(k, q).swapaxes(-1, -2))
        return scores if bias is None else scores + bias

    def forward(
        self, q: Array, k: Array, v: Array, bias: Array | None, seen: Array
    ) -> tuple[Array, Array]:
        """O, and the logarithm of the sum of exponentials, 0 where no key is seen."""
        p, stat = self.weights(self.scores(q, k, bias), seen)
        return np.matmul(p, shared_heads(v, q)), stat

    @staticmethod
    def weights(scores: Array, seen: Array) -> tuple[Array, Array]:
        """P, and the logarithm of the sum of exponentials, 0 where no key is seen."""
        scores = np.where(seen, scores, -np.inf)
        top: Any = np.max(scores, axis=-1, keepdims=True, initial=-np.inf)
        top = np.where(np.isfinite(top), top, 0)
        weights = np.exp(scores - top)
        total: Any = np.sum(weights, axis=-1, keepdims=True)
        sums = np.where(total == 0, 1, total)
        stat: Any = np.where(total == 0, 0, top + np.log(sums))
        return weights / sums, stat[..., 0]

    def backward(
        self,
        q: Array,
        k: Array,
        v: Array,
        bias: Array | None,
        seen: Array,
        stat: Array,
        o: Array,
        do: Array,
    ) -> tuple[Array, Array, Array, Array]:
        """Gradients of Q, K, V and of the scores."""
        exponents = np.where(seen, self.scores(q, k, bias) - stat[..., None], -np.inf)
        p = np.exp(exponents)
        dp = np.matmul(do, shared_heads(v, q).swapaxes(-1, -2))
        ds = np.where(seen, p * (dp - np.sum(do * o, axis=-1, keepdims=True)), 0)
        scale = np.float32(self.scale)
        dq = scale * np.matmul(ds, shared_heads(k, q))
        dk = scale * np.matmul(ds.swapaxes(-1, -2), q)
        dv = np.matmul(p.swapaxes(-1, -2), do)
        return dq, summed_heads(dk, k), summed_heads(dv, v), ds


def shared_heads(x: Array, q: Array) -> Array:
    """Keys or values, once for each head of the queries."""
    return np.repeat(x, q.shape[1] // x.shape[1], axis=1)


def summed_heads(gradient: Array, x: Array) -> Array:
    """The gradient of what several heads shared."""
    batch, heads, *rest = gradient.shape
    shared = heads // x.shape[1]
    return np.sum(gradient.reshape(batch, heads // shared, shared, *rest), axis=2)


def as_f32(x: Array) -> Array:
    """Numbers in the type in which all is computed."""
    return x.astype(np.float32)


class Call:
    """Operands of a call, one after the other, and its backend config."""

    def __init__(self, op: CustomCallOp, inputs: Sequence[Any]) -> None:
        self.op, self.rest = op, list(inputs)
        self.config: Mapping[str, Any] = config_of(op, "cudnn_fmha_backend_config")
        if float(self.config.get("dropout_rate", 0)) > 0:
            raise unfit(op, "dropout takes random numbers that are cuDNN's own; set its rate to 0")
        mask = str(self.config.get("mask_type", "NO_MASK"))
        if mask not in _MASKS:
            raise unfit(op, f"mask {mask!r} is not known")
        self.has_bias = "ScaleBias" in op.custom_call_target
        self.segments = int(self.config.get("max_seg_per_batch", 1) or 1)
        self.paged = bool(self.config.get("is_paged_attention", False))
        self.has_lengths = "PADDING" in mask or self.segments > 1 or self.paged
        self.attention = Attention(
            float(self.config.get("fmha_scale", 1)),
            "CAUSAL" in mask,
            int(self.config.get("sliding_window_length", 0) or 0),
        )

    def take(self, key: str, side: str, last: str = "other") -> Array:
        """The next operand as [batch, heads, sequence, features], by the dimension numbers of a product.
        `last`: whether the features are the contracted dimension or the other one."""
        x = cast(Array, self.rest.pop(0))
        numbers = self.config.get(f"{key}_dot_dimension_numbers", {})
        batch = [int(d) for d in numbers.get(f"{side}_batch_dimensions", ())]
        contracted = [int(d) for d in numbers.get(f"{side}_contracting_dimensions", ())]
        other = [d for d in range(x.ndim) if d not in (*batch, *contracted)]
        order = [*batch, *(other + contracted if last == "contracted" else contracted + other)]
        if len(batch) != 2 or len(order) != 4 or sorted(order) != [0, 1, 2, 3]:
            raise unfit(
                self.op, f"{key}_dot_dimension_numbers do not fit operands of rank {x.ndim}"
            )
        return x.transpose(order)

    def take_bias(self) -> Array | None:
        return as_f32(self.rest.pop(0)) if self.has_bias else None

    def take_lengths(self) -> tuple[Array, Array] | None:
        """Lengths of the queries' and of the keys' sequences."""
        if not self.has_lengths:
            return None
        return self.rest.pop(0).reshape(-1), self.rest.pop(0).reshape(-1)

    def done(self) -> None:
        if self.rest:
            raise unfit(self.op, f"it has {len(self.rest)} operands more than its options ask for")

    def seen(self, q: Array, k: Array, lengths: tuple[Array, Array] | None) -> Array:
        """Which keys each query sees: [batch or 1, 1, queries, keys]."""
        seen = self.attention.visible(q.shape[2], k.shape[2])[None, None]
        if lengths is None:
            return seen
        shown: Any = seen
        for x, n, axis in ((q, lengths[0], (1, 3)), (k, lengths[1], (1, 2))):
            inside = cast(Any, np.arange(x.shape[2])) < cast(Any, n)[:, None]
            shown = shown & np.expand_dims(cast(Array, inside), axis)
        return cast(Array, shown)

    @property
    def results(self) -> int:
        """How many arrays the result has, the workspace counted."""
        return len(self.op.shape.elements) if isinstance(self.op.shape, TupleShape) else 1

    def result(self, *values: Array) -> Value:
        """The results in their types, then the workspace."""
        parts = self.op.shape.elements if isinstance(self.op.shape, TupleShape) else ()
        shapes = [cast(ArrayShape, part) for part in parts]
        if len(shapes) < len(values):
            raise unfit(self.op, f"its shape is {self.op.shape}")
        typed = [
            saturated(value.reshape(shape.dimensions), shape.element_type)
            for value, shape in zip(values, shapes[: len(values)], strict=True)
        ]
        return (*typed, *map(zeros, shapes[len(values) :]))


@computes(*(f"__cudnn$fmha{kind}" for kind in _KINDS))
def forward(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """`(O[, log-sum-exp], workspace)` of Q, K, V[, bias][, lengths][, offsets][, page tables].

    Raises HLO0355.
    """
    call = Call(op, inputs)
    q = as_f32(call.take("bmm1", "lhs", "contracted"))
    k = as_f32(call.take("bmm1", "rhs", "contracted"))
    v = as_f32(call.take("bmm2", "rhs"))
    bias = call.take_bias()
    lengths = call.take_lengths()
    offsets = (call.rest.pop(0), call.rest.pop(0)) if call.segments > 1 else None
    if call.paged:
        k, v = (_from_pages(x, call.rest.pop(0)) for x in (k, v))
    call.done()
    if offsets is None or lengths is None:
        o, stat = call.attention.forward(q, k, v, bias, call.seen(q, k, lengths))
    else:
        _no_bias(op, bias)
        o = np.zeros((*q.shape[:3], v.shape[3]), np.float32)
        stat = np.zeros((q.shape[0] * call.segments, *q.shape[1:3]), np.float32)
        for at, queries, keys in _segments(q, k, lengths, offsets):
            parts = (_tokens(q, queries), _tokens(k, keys), _tokens(v, keys))
            made, sums = call.attention.forward(*parts, None, call.seen(*parts[:2], None))
            _put(o, queries, made)
            stat[at, :, : sums.shape[-1]] = sums[0]
    return call.result(o, stat) if call.results > 2 else call.result(o)


@computes(*(f"__cudnn$fmha{kind}Backward" for kind in _KINDS))
def backward(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """`(dQ, dK, dV[, dbias], workspace)` of Q, K, V, log-sum-exp, dO[, bias], O[, lengths][, offsets].

    Raises HLO0355.
    """
    call = Call(op, inputs)
    q = as_f32(call.take("bmm1_grad_gemm1", "rhs"))
    k = as_f32(call.take("bmm1_grad_gemm2", "rhs"))
    v = as_f32(call.take("bmm2_grad_gemm2", "rhs", "contracted"))
    stat = as_f32(call.rest.pop(0))
    do = as_f32(call.take("bmm2_grad_gemm1", "rhs"))
    bias = call.take_bias()
    o = as_f32(call.take("bmm2_grad_gemm1", "rhs"))
    lengths = call.take_lengths()
    offsets = (call.rest.pop(0), call.rest.pop(0)) if call.segments > 1 else None
    call.done()
    if offsets is None or lengths is None:
        seen = call.seen(q, k, lengths)
        *gradients, ds = call.attention.backward(q, k, v, bias, seen, stat, o, do)
        if bias is not None and call.results > 4:
            alike = tuple(d for d in range(4) if bias.shape[d] != ds.shape[d])
            gradients.append(np.sum(ds, axis=alike, keepdims=True))
        return call.result(*gradients)
    _no_bias(op, bias)
    gradients = [np.zeros(x.shape, np.float32) for x in (q, k, v)]
    for at, queries, keys in _segments(q, k, lengths, offsets):
        qs, ks, vs = _tokens(q, queries), _tokens(k, keys), _tokens(v, keys)
        sums = stat[at : at + 1, :, : qs.shape[2]]
        others = (_tokens(o, queries), _tokens(do, queries))
        seen = call.seen(qs, ks, None)
        *made, _ = call.attention.backward(qs, ks, vs, None, seen, sums, *others)
        for gradient, tokens, value in zip(gradients, (queries, keys, keys), made, strict=True):
            _put(gradient, tokens, value)
    return call.result(*gradients)


def _no_bias(op: CustomCallOp, bias: Array | None) -> None:
    if bias is not None:
        raise unfit(op, "what a bias means for packed sequences is not known")


def _from_pages(pages: Array, table: Array) -> Array:
    """[pages, heads, page size, features] and [batch, 1, pages of a sequence, 1] as one sequence."""
    found = pages[table[:, 0, :, 0]].swapaxes(1, 2)
    batch, heads, count, size, features = found.shape
    return found.reshape(batch, heads, count * size, features)


def _segments(
    q: Array, k: Array, lengths: tuple[Array, Array], offsets: tuple[Array, Array]
) -> list[tuple[int, slice, slice]]:
    """Number of each segment, its queries and its keys among the tokens of all sequences.

    Offsets count elements of the queries' tokens, also those of the keys, as JAX writes them.
    """
    token = q.shape[1] * q.shape[3]
    starts = [x.reshape(-1).astype(np.int64) // token for x in offsets]
    found: list[tuple[int, slice, slice]] = []
    for at, (queries, keys) in enumerate(zip(*lengths, strict=True)):
        if queries > 0 and keys > 0:
            first, key = int(starts[0][at]), int(starts[1][at])
            found.append((at, slice(first, first + int(queries)), slice(key, key + int(keys))))
    return found


def _tokens(x: Array, tokens: slice) -> Array:
    """Some tokens of [batch, heads, sequence, features] as one sequence."""
    flat = x.swapaxes(1, 2).reshape(-1, x.shape[1], x.shape[3])
    return flat[tokens].swapaxes(0, 1)[None]


def _put(x: Array, tokens: slice, value: Array) -> None:
    """Adds to some tokens."""
    batch, heads, size, features = x.shape
    flat = x.swapaxes(1, 2).reshape(-1, heads, features)
    flat[tokens] += value[0].swapaxes(0, 1)
    x[...] = flat.reshape(batch, size, heads, features).swapaxes(1, 2)
