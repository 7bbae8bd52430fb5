"""The kernels of the library as cases, with what numpy says of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from unit.mosaic.language.cases import BF16, F32, I8, I32, Case, numbers

from mlirhlo.mosaic import kernels

LIBRARY_CASES: dict[str, Case] = {}


def add(name: str, inputs: list[Any], want: Any, tolerance: float = 1e-4, **options: Any) -> None:
    kernel = kernels.LIBRARY[name.split("__")[0]]
    LIBRARY_CASES[name] = Case(kernel.call(*inputs, **options), inputs, want, tolerance)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(q: Any, k: Any, v: Any, causal: bool = False) -> Any:
    group = q.shape[1] // k.shape[1]
    q, k, v = q.astype(np.float64), *(np.repeat(a.astype(np.float64), group, 1) for a in (k, v))
    scores = np.einsum("bhmd,bhnd->bhmn", q, k) / np.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    return np.einsum("bhmn,bhnd->bhmd", softmax(scores), v)


def gathered(indices: Any, lengths: Any, pages: Any) -> Any:
    used = np.arange(indices.shape[1]) < lengths[:, None]
    return np.where(used[..., None, None], pages[indices], 0)


X = numbers(100, 300)
R = numbers(64, 256)
add("add", [X, numbers(100, 300, seed=1)], lambda x, y: x + y)
add("add__bf16", [X.astype(BF16), X.astype(BF16)], lambda x, y: x + y, block=(32, 128))
add("matmul", [numbers(256, 256), numbers(256, 384)], lambda a, b: a @ b, block=(128, 128, 128))
add(
    "matmul__epilogue",
    [numbers(100, 256).astype(BF16), numbers(256, 200).astype(BF16), numbers(1, 200)],
    lambda a, b, c: np.maximum(a.astype(F32) @ b.astype(F32) + c, 0),
    1e-3,
    block=(32, 128, 128),
    epilogue="relu",
    out_dtype=np.float32,
)
add(
    "matmul__gelu",
    [numbers(64, 128), numbers(128, 128)],
    lambda a, b: (lambda t: t * 0.5 * (1 + np.vectorize(__import__("math").erf)(t / np.sqrt(2))))(
        a @ b
    ),
    epilogue="gelu",
)
add("softmax", [X], softmax)
add("softmax__bf16", [R.astype(BF16)], lambda x: softmax(x.astype(F32)), 1e-2, rows=16)
add(
    "layernorm",
    [R, numbers(1, 256), numbers(1, 256, seed=1)],
    lambda x, g, b: (
        (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-6) * g + b
    ),
    rows=32,
)
add(
    "rmsnorm",
    [R, numbers(1, 256)],
    lambda x, g: x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6) * g,
)
add(
    "top_k",
    [numbers(20, 256)],
    lambda x: (-np.sort(-x, 1)[:, :5], np.argsort(-x, 1, kind="stable")[:, :5]),
    k=5,
)
Q, KV = numbers(1, 4, 256, 128), numbers(1, 2, 256, 128)
add("flash_attention", [Q, Q[:, ::-1].copy(), Q * 2], attention)
add(
    "flash_attention__causal_gqa",
    [Q, KV, KV * 2],
    lambda q, k, v: attention(q, k, v, True),
    causal=True,
)
add("flash_attention__bf16", [Q.astype(BF16), KV.astype(BF16), KV.astype(BF16)], attention, 2e-2)
add(
    "quantised_matmul",
    [numbers(64, 256).astype(BF16), numbers(256, 256, dtype=I8), np.abs(numbers(1, 256))],
    lambda x, w, s: x.astype(F32) @ (w * s),
    1e-2,
)
add(
    "ragged_gather",
    [numbers(4, 3, dtype=I32) % 10, np.array([0, 1, 2, 3], I32), numbers(10, 8, 128)],
    gathered,
)
add("double_buffered_copy", [numbers(512, 256)], lambda x: x)
