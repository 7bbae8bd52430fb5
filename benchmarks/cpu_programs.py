"""What `cpu.py` measures: programs in jax, their inputs, and what they cost.

A program is a name, a function of arrays, its inputs, and the bytes it has to move or the products it has
to sum, which is what the share of the machine's limit refers to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Array = Any


@dataclass(frozen=True, slots=True)
class Program:
    """One row of the table."""

    name: str
    function: Callable[..., Any]
    inputs: Callable[[np.random.Generator], Sequence[Array]]
    read: int = 0
    written: int = 0
    """Bytes that have to come from and go to memory; both 0 where products bound it."""
    gigaflop: float = 0.0
    """Operations of the products that are needed, in 1e9; 0 where memory bounds it."""
    peak: str = "f32"
    """Whose peak bounds the products: `f32`, `bf16` or `s8`."""
    computes: bool = False
    """Whether functions of elements, or their order, take as long: no limit is known then."""
    tolerance: float = 1e-4
    """Largest difference from XLA's result, relative to its largest element."""


_PROGRAMS: list[Program] = []


def programs() -> Mapping[str, Program]:
    """All of them by name."""
    return {p.name: p for p in _PROGRAMS}


def _add(
    name: str,
    function: Callable[..., Any],
    *inputs: Array | tuple[int, ...],
    tolerance: float = 1e-4,
    **costs: Any,
) -> None:
    """Inputs are arrays, functions of a generator, or shapes of standard normal f32."""

    def draw(rng: np.random.Generator) -> list[Array]:
        return [
            i(rng)
            if callable(i)
            else rng.standard_normal(i, np.float32)
            if isinstance(i, tuple)
            else i
            for i in inputs
        ]

    _PROGRAMS.append(Program(name, function, draw, tolerance=tolerance, **costs))


def _integers(
    high: int, *shape: int, dtype: str = "int32"
) -> Callable[[np.random.Generator], Array]:
    return lambda rng: rng.integers(0, high, shape).astype(dtype)


def _weights(*shape: int, dtype: Any = np.float32) -> Callable[[np.random.Generator], Array]:
    scale = 1 / np.sqrt(np.prod(shape[:-1]))
    return lambda rng: (rng.standard_normal(shape, np.float32) * scale).astype(dtype)


# Elementwise, rows, reductions

N = 1 << 24
_SQUARE = (4096, 4096)
_ROWS = (8192, 1024)
_MATRIX = 4 * N


def layer_norm(x: Array, gamma: Array, beta: Array) -> Array:
    """Over the last dimension."""
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * gamma + beta


def rms_norm(x: Array, gamma: Array) -> Array:
    """Over the last dimension."""
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * gamma


def _chain(x: Array, y: Array) -> Array:
    return jnp.maximum(x * 2.0 + y, 0.0) * 0.5 - x * y + 1.0


_add("elementwise chain", _chain, (N,), (N,), read=2 * _MATRIX, written=_MATRIX)
_add(
    "tanh chain",
    lambda x: jnp.tanh(x * 0.5) * x + 1.0,
    (N,),
    read=_MATRIX,
    written=_MATRIX,
    computes=True,
)
_add(
    "reduce_sum(x+y*z)",
    lambda x, y, z: jnp.sum(x + y * z),
    _SQUARE,
    _SQUARE,
    _SQUARE,
    read=3 * _MATRIX,
    tolerance=1e-3,
)
_add("column sum", lambda x: jnp.sum(x, 0), _SQUARE, read=_MATRIX)
_add("row sum", lambda x: jnp.sum(x, 1), _SQUARE, read=_MATRIX)
_add("argmax", lambda x: jnp.argmax(x, -1), _SQUARE, read=_MATRIX, tolerance=0)
_add(
    "softmax",
    lambda x: jax.nn.softmax(x, -1),
    _SQUARE,
    read=_MATRIX,
    written=_MATRIX,
    computes=True,
)
_NORM = {"read": _MATRIX // 2, "written": _MATRIX // 2}
_add("layer norm", layer_norm, _ROWS, (1024,), (1024,), **_NORM)
_add("rms norm", rms_norm, _ROWS, (1024,), **_NORM)


def cross_entropy(logits: Array, labels: Array) -> Array:
    """Mean over rows."""
    picked = jnp.take_along_axis(logits, labels[:, None], -1)[:, 0]
    return jnp.mean(jax.nn.logsumexp(logits, -1) - picked)


_add("cross-entropy", cross_entropy, _ROWS, _integers(1024, 8192), read=_MATRIX // 2, computes=True)

# Moving elements

_add("transpose", lambda x: x.T, _SQUARE, read=_MATRIX, written=_MATRIX, tolerance=0)
_add(
    "transpose 0213",
    lambda x: x.transpose(0, 2, 1, 3),
    (8, 512, 16, 64),
    read=4 * 8 * 512 * 1024,
    written=4 * 8 * 512 * 1024,
    tolerance=0,
)


def _pieces(x: Array, y: Array) -> Array:
    both = jnp.concatenate([x[:, :1000], y[:, 24:], x * 2], axis=1)
    return jnp.pad(both, ((1, 1), (3, 5)))[1:, 2:]


_add(
    "concatenate pad slice",
    _pieces,
    (4096, 1024),
    (4096, 1024),
    read=4 * 4096 * 2024,
    written=4 * 4097 * 3030,
)
_add(
    "gather (embedding)",
    lambda table, ids: table[ids],
    (50_000, 512),
    _integers(50_000, 8192),
    read=4 * 8192 * 512,
    written=4 * 8192 * 512,
    tolerance=0,
)
_add(
    "scatter-add (embedding)",
    lambda table, ids, rows: table.at[ids].add(rows),
    (50_000, 512),
    _integers(50_000, 8192),
    (8192, 512),
    read=4 * 512 * (50_000 + 8192),
    written=4 * 512 * 50_000,
)
_SORT = {"read": 4 << 20, "written": 4 << 20, "computes": True}
_add("sort 1M", jnp.sort, (1 << 20,), **_SORT, tolerance=0)
_add("sort rows", lambda x: jnp.sort(x, -1), (4096, 256), **_SORT, tolerance=0)
_add(
    "top-k",
    lambda x: lax.top_k(x, 16),
    (1024, 4096),
    read=4 << 22,
    computes=True,
    tolerance=0,
)
_add("cumsum", lambda x: jnp.cumsum(x, -1), (1024, 4096), read=4 << 22, written=4 << 22)
_add(
    "threefry normal",
    lambda seed: jax.random.normal(jax.random.wrap_key_data(seed, impl="threefry2x32"), (1 << 22,)),
    _integers(1 << 31, 2, dtype="uint32"),
    written=4 << 22,
    computes=True,
)

# Products


def _gemm(n: int) -> None:
    _add(f"sgemm {n}", lambda x, y: x @ y, (n, n), (n, n), gigaflop=2e-9 * n**3)


for _n in (64, 256, 1024, 2048):
    _gemm(_n)
_add(
    "batched small matmul",
    lambda x, y: jnp.einsum("bij,bjk->bik", x, y),
    (256, 64, 64),
    (256, 64, 64),
    gigaflop=2e-9 * 256 * 64**3,
)
_add(
    "matmul bias gelu",
    lambda x, w, b: jax.nn.gelu(x @ w + b),
    (1024, 768),
    _weights(768, 3072),
    (3072,),
    gigaflop=2e-9 * 1024 * 768 * 3072,
)


def _bf16(x: Array, w: Array) -> Array:
    return jax.nn.gelu(x @ w)


_add(
    "bf16 matmul gelu",
    _bf16,
    _weights(1024, 1024, dtype=jnp.bfloat16),
    _weights(1024, 4096, dtype=jnp.bfloat16),
    gigaflop=2e-9 * 1024 * 1024 * 4096,
    peak="bf16",
    tolerance=3e-2,
)
_add(
    "int8 dot",
    lambda x, y: lax.dot(x, y, preferred_element_type=jnp.int32),
    _integers(100, 1024, 1024, dtype="int8"),
    _integers(100, 1024, 1024, dtype="int8"),
    gigaflop=2e-9 * 1024**3,
    peak="s8",
    tolerance=0,
)


def conv(x: Array, w: Array, stride: int = 1) -> Array:
    """NHWC by HWIO, sizes kept."""
    return lax.conv_general_dilated(
        x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


_add(
    "conv 3x3",
    conv,
    (8, 56, 56, 64),
    _weights(3, 3, 64, 64),
    gigaflop=2e-9 * 8 * 56 * 56 * 64 * 64 * 9,
)
_add(
    "conv 1x1",
    conv,
    (8, 56, 56, 64),
    _weights(1, 1, 64, 256),
    gigaflop=2e-9 * 8 * 56 * 56 * 64 * 256,
)

# Whole programs


def attention(q: Array, k: Array, v: Array) -> Array:
    """Causal, (batch, heads, length, depth)."""
    length = q.shape[2]
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * (q.shape[-1] ** -0.5)
    mask = jnp.tril(jnp.ones((length, length), bool))
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(jnp.where(mask, scores, -1e9), -1), v)


_QKV = (4, 8, 512, 64)
_add(
    "attention", attention, _QKV, _QKV, _QKV, gigaflop=4e-9 * 4 * 8 * 512 * 512 * 64, computes=True
)


def _mlp_loss(parameters: Any, x: Array, labels: Array) -> Array:
    *hidden, (w, b) = parameters
    for weight, bias in hidden:
        x = jax.nn.relu(x @ weight + bias)
    return cross_entropy(x @ w + b, labels)


def mlp_train(
    w0: Array, b0: Array, w1: Array, b1: Array, w2: Array, b2: Array, x: Array, y: Array
) -> Any:
    """One step of gradient descent."""
    parameters = [(w0, b0), (w1, b1), (w2, b2)]
    loss, gradients = jax.value_and_grad(_mlp_loss)(parameters, x, y)
    return loss, jax.tree.map(lambda p, g: p - 0.01 * g, parameters, gradients)


_add(
    "mlp train step",
    mlp_train,
    _weights(784, 512),
    (512,),
    _weights(512, 512),
    (512,),
    _weights(512, 16),
    (16,),
    (256, 784),
    _integers(16, 256),
    # The inputs have no gradient.
    gigaflop=2e-9 * 256 * (2 * 784 * 512 + 3 * 512 * 512 + 3 * 512 * 16),
)


def transformer_layer(x: Array, p: Mapping[str, Array], heads: int = 8) -> Array:
    """Before each half a norm; (batch, length, width)."""
    batch, length, width = x.shape
    normed = layer_norm(x, p["g1"], p["b1"])
    qkv = (normed @ p["qkv"]).reshape(batch, length, 3, heads, width // heads)
    q, k, v = (qkv[:, :, i].transpose(0, 2, 1, 3) for i in range(3))
    mixed = attention(q, k, v).transpose(0, 2, 1, 3).reshape(batch, length, width)
    x = x + mixed @ p["out"]
    normed = layer_norm(x, p["g2"], p["b2"])
    return x + jax.nn.gelu(normed @ p["up"]) @ p["down"]


LAYER = {
    "b1": (512,),
    "b2": (512,),
    "down": (2048, 512),
    "g1": (512,),
    "g2": (512,),
    "out": (512, 512),
    "qkv": (512, 1536),
    "up": (512, 2048),
}
"""Shapes of a layer's parameters, in the order of their names."""


def _named(values: Sequence[Array]) -> dict[str, Array]:
    return dict(zip(LAYER, values, strict=True))


def _layer_forward(x: Array, *values: Array) -> Array:
    return transformer_layer(x, _named(values))


def _layer_train(x: Array, *values: Array) -> Any:
    parameters = _named(values)

    def loss(parameters: Mapping[str, Array]) -> Array:
        return jnp.mean(transformer_layer(x, parameters) ** 2)

    value, gradients = jax.value_and_grad(loss)(parameters)
    return value, jax.tree.map(lambda p, g: p - 0.01 * g, parameters, gradients)


_LAYER_INPUTS = [_weights(*s) if len(s) > 1 else s for s in LAYER.values()]
_LAYER_GFLOP = 2e-9 * 4 * 256 * (512 * 1536 + 512 * 512 + 2 * 512 * 2048 + 2 * 256 * 512)
_add("transformer layer", _layer_forward, (4, 256, 512), *_LAYER_INPUTS, gigaflop=_LAYER_GFLOP)
_add(
    "transformer layer train",
    _layer_train,
    (4, 256, 512),
    *_LAYER_INPUTS,
    gigaflop=3 * _LAYER_GFLOP,
    tolerance=1e-3,
)


def resnet_block(
    x: Array, w1: Array, s1: Array, w2: Array, s2: Array, w3: Array, s3: Array
) -> Array:
    """A bottleneck whose normalisations are folded into scales."""
    y = jax.nn.relu(conv(x, w1) * s1)
    y = jax.nn.relu(conv(y, w2) * s2)
    return jax.nn.relu(conv(y, w3) * s3 + x)


_add(
    "resnet block",
    resnet_block,
    (8, 28, 28, 256),
    _weights(1, 1, 256, 64),
    (64,),
    _weights(3, 3, 64, 64),
    (64,),
    _weights(1, 1, 64, 256),
    (256,),
    gigaflop=2e-9 * 8 * 28 * 28 * (256 * 64 * 2 + 64 * 64 * 9),
)


def lstm(xs: Array, wx: Array, wh: Array, b: Array) -> Array:
    """(length, batch, width) through a scan."""
    width = wh.shape[0]

    def step(state: tuple[Array, Array], x: Array) -> Any:
        h, c = state
        i, f, g, o = jnp.split(x @ wx + h @ wh + b, 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    start = jnp.zeros((xs.shape[1], width))
    return lax.scan(step, (start, start), xs)[1]


_add(
    "lstm scan",
    lstm,
    (100, 32, 128),
    _weights(128, 1024),
    _weights(256, 1024),
    (1024,),
    gigaflop=2e-9 * 100 * 32 * 1024 * (128 + 256),
)
_add("tiny", lambda x: x + 1.0, (8,))


# Schedules of their own: axes that do not neighbour, ordered indices, batches of small matrices, complex numbers


def _ordered(high: int, count: int) -> Callable[[np.random.Generator], Array]:
    return lambda rng: np.sort(rng.integers(0, high, count)).astype(np.int32)


def _complex(*shape: int) -> Callable[[np.random.Generator], Array]:
    return lambda rng: rng.standard_normal((*shape, 2), np.float32).view(np.complex64)[..., 0]


def _positive_definite(*shape: int) -> Callable[[np.random.Generator], Array]:
    def draw(rng: np.random.Generator) -> Array:
        x = rng.standard_normal(shape, np.float32)
        return x @ np.swapaxes(x, -1, -2) + shape[-1] * np.eye(shape[-1], dtype=np.float32)

    return draw


def batch_norm_gradient(x: Array, gamma: Array, beta: Array, dy: Array) -> Array:
    """Of a normalisation over all dimensions but the last."""

    def normalised(x: Array, gamma: Array, beta: Array) -> Array:
        mean = x.mean((0, 1, 2))
        variance = ((x - mean) ** 2).mean((0, 1, 2))
        return (x - mean) * lax.rsqrt(variance + 1e-5) * gamma + beta

    return (*jax.vjp(normalised, x, gamma, beta)[1](dy), beta + 1)


_add(
    "dot, depth apart",
    lambda x, y: lax.dot_general(x, y, (((1, 3), (1, 3)), ((), ()))),
    (12, 24, 20, 32),
    (12, 24, 20, 32),
    gigaflop=2e-9 * (12 * 20) ** 2 * 24 * 32,
)
_add(
    "dot, depth crossed",
    lambda x, y: lax.dot_general(x, y, (((0, 2), (2, 0)), ((), ()))),
    (10, 36, 24, 36),
    (24, 36, 10, 36),
    gigaflop=2e-9 * 36**4 * 240,
)
_add(
    "dot, depth 1", lambda x, y: x[:, None] @ y[None, :], (1200,), (1100,), written=4 * 1200 * 1100
)
_add("dot, depth 3", lambda x, y: x @ y, (1700, 3), (3, 900), written=4 * 1700 * 900)
_add(
    "scatter-max rows",
    lambda x, ids, rows: x.at[ids].max(rows),
    (15_000, 5),
    _integers(15_000, 40_000),
    (40_000, 5),
    tolerance=0,
)
_add(
    "segment max, in order",
    lambda x, ids: jax.ops.segment_max(x, ids, 1500, indices_are_sorted=True),
    (80_000,),
    _ordered(1500, 80_000),
    tolerance=0,
)
_add("gather in order", lambda x, ids: x[ids], (900_000,), _ordered(900_000, 900_000), tolerance=0)
_add("gather columns", lambda x, ids: x[:, ids], (1500, 400), _integers(400, 250), tolerance=0)
_add("cholesky", jnp.linalg.cholesky, _positive_definite(48, 40, 40))
_add(
    "triangular solve",
    lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True),
    _positive_definite(48, 36, 36),
    (48, 36, 20),
)
_add("batch norm gradient", batch_norm_gradient, (24, 28, 28, 48), (48,), (48,), (24, 28, 28, 48))
_add("complex abs", jnp.abs, _complex(300_000), computes=True)
_add("complex sign", jnp.sign, _complex(300_000), computes=True)
_add(
    "scatter-min rows",
    lambda x, ids, rows: x.at[ids].min(rows),
    (11_000, 7),
    _integers(11_000, 26_000),
    (26_000, 7),
    tolerance=0,
)
_add(
    "scatter-multiply rows",
    lambda x, ids, rows: x.at[ids].mul(rows),
    (8_000, 3),
    _integers(8_000, 33_000),
    (33_000, 3),
)
_add(
    "segment sum, in order",
    lambda x, ids: jax.ops.segment_sum(x, ids, 1100, indices_are_sorted=True),
    (70_000,),
    _ordered(1100, 70_000),
)
_add(
    "segment max rows, in order",
    lambda x, ids: jax.ops.segment_max(x, ids, 1300, indices_are_sorted=True),
    (22_000, 6),
    _ordered(1300, 22_000),
    tolerance=0,
)
_add("gather few columns", lambda x, ids: x[:, ids], (8500, 28), _integers(28, 19), tolerance=0)
_add("fft 23 x 29", jnp.fft.fft, _complex(150, 667), computes=True, tolerance=1e-3)
_add("real fft 19 x 37", jnp.fft.rfft, (150, 703), computes=True, tolerance=1e-3)
_add("fft 541", jnp.fft.fft, _complex(90, 541), computes=True, tolerance=1e-3)
_add("fft 3 x 677", jnp.fft.fft, _complex(30, 2031), computes=True, tolerance=1e-3)
_add("real fft 877", jnp.fft.rfft, (70, 877), computes=True, tolerance=1e-3)
_add(
    "bytes scaled to f32",
    lambda x: x.astype(jnp.float32) / 255,
    _integers(256, 5, 240, 240, 3, dtype="uint8"),
    tolerance=1e-6,  # XLA multiplies by 1 / 255, which is not the quotient for half of the bytes
)
