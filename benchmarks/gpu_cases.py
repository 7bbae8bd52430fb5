"""What `gpu.py` measures: functions of numpy's names, which are this compiler's, JAX's and numpy's alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
F32, BF16, F8 = np.float32, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn
SMALL, LARGE = 0, 1


@dataclass(frozen=True)
class Case:
    """One function at a small size, which the simulator runs, and at the size that is measured on a card."""

    name: str
    function: Callable[..., Any]
    """Of `numpy`, `jax.numpy` or `mlirhlo.numpy`, and arrays."""
    shapes: tuple[Sequence[tuple[int, ...]], Sequence[tuple[int, ...]]]
    dtype: Any = F32
    reach: float = 0.9
    """What share is to be reached: of the copy bandwidth, of cuBLAS, or of the card's rate."""
    flops: Callable[[Sequence[tuple[int, ...]]], float] | None = None
    """Of products; None where moving bytes is what takes time."""
    hlo: str = ""
    """The module, for what `mlirhlo.numpy` does not say; `{m}`, `{n}`, `{k}` are the sizes of a product."""
    attention: bool | None = None
    """Of flash attention, a kernel in the language of GPUs: whether it is causal."""
    launches: int = 1
    """Kernels of one call, for programs whose time is their launches'."""
    tolerance: float = 1e-4

    def arrays(self, size: int) -> tuple[Array, ...]:
        """Random operands: times on zeros say nothing of real ones."""
        random = np.random.default_rng(0)
        return tuple(
            random.standard_normal(shape, np.float32).astype(self.dtype)
            for shape in self.shapes[size]
        )


def softmax(xp: Any, x: Any) -> Any:
    """Of rows."""
    e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)


def layer_norm(xp: Any, x: Any, scale: Any, shift: Any) -> Any:
    """Of rows."""
    centred = x - xp.mean(x, axis=-1, keepdims=True)
    variance = xp.mean(centred * centred, axis=-1, keepdims=True)
    return centred / xp.sqrt(variance + 1e-5) * scale + shift


def rms_norm(xp: Any, x: Any, scale: Any) -> Any:
    """Of rows."""
    return x / xp.sqrt(xp.mean(x * x, axis=-1, keepdims=True) + 1e-5) * scale


def small_kernels(xp: Any, x: Any) -> Any:
    """Ten kernels of a few microseconds: each needs the one before, along the other dimension."""
    for step in range(10):
        total = xp.sum(x, axis=step % 2, keepdims=True)
        x = xp.tanh(x * 0.5 + total * 0.01)
    return x


def attention(xp: Any, q: Any, k: Any, v: Any, causal: bool) -> Any:
    """`[heads, length, size]`, as written."""
    scores = xp.matmul(q, xp.matrix_transpose(k)).astype(F32) * (1 / q.shape[-1] ** 0.5)
    if causal:
        at = xp.arange(q.shape[1])
        scores = xp.where(at[:, None] >= at[None, :], scores, -1e30)
    return xp.matmul(softmax(xp, scores).astype(q.dtype), v)


def _product(shapes: Sequence[tuple[int, ...]]) -> float:
    (m, k), n = shapes[0], shapes[1][1]
    return 2.0 * m * n * k


def _attention(share: float) -> Callable[[Sequence[tuple[int, ...]]], float]:
    def flops(shapes: Sequence[tuple[int, ...]]) -> float:
        heads, length, size = shapes[0]
        return 4.0 * heads * length * length * size * share

    return flops


_F8 = """HloModule product
ENTRY e {{ a = f8e4m3fn[{m},{k}] parameter(0)  b = f8e4m3fn[{n},{k}] parameter(1)
  ROOT r = bf16[{m},{n}] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}} }}"""


def _square(n: int) -> tuple[tuple[int, ...], ...]:
    return ((n, n),) * 2


def cases() -> list[Case]:
    """All of them."""
    rows = [(64, 256)], [(16384, 4096)]
    return [
        Case("add", lambda xp, x, y: x + y, ([(64, 256)] * 2, [(16384, 4096)] * 2)),
        Case(
            "exp(x) y + 1",
            lambda xp, x, y: xp.exp(x) * y + 1,
            ([(64, 256)] * 2, [(16384, 4096)] * 2),
        ),
        Case("tanh bf16", lambda xp, x: xp.tanh(x), rows, BF16, tolerance=2e-2),
        Case("sum of rows", lambda xp, x: xp.sum(x, axis=1), rows),
        Case("sum of columns", lambda xp, x: xp.sum(x, axis=0), rows),
        Case("maximum of all", lambda xp, x: xp.max(x), rows),
        Case("softmax", softmax, rows),
        Case("softmax bf16", softmax, rows, BF16, tolerance=2e-2),
        Case(
            "layer norm",
            layer_norm,
            ([(64, 256), (256,), (256,)], [(16384, 4096), (4096,), (4096,)]),
        ),
        Case("RMS norm", rms_norm, ([(64, 256), (256,)], [(16384, 4096), (4096,)])),
        Case("transpose", lambda xp, x: x.T, rows),
        Case("transpose bf16", lambda xp, x: x.T, rows, BF16),
        Case(
            "transpose of three",
            lambda xp, x: xp.permute_dims(x, (1, 2, 0)),
            ([(16, 32, 32)], [(256, 512, 512)]),
        ),
        Case(
            "product bf16 8192",
            lambda xp, a, b: xp.matmul(a, b),
            (_square(256), _square(8192)),
            BF16,
            0.75,
            _product,
            tolerance=0.5,
        ),
        Case(
            "product bf16 4096",
            lambda xp, a, b: xp.matmul(a, b),
            (_square(128), _square(4096)),
            BF16,
            0.70,
            _product,
            tolerance=0.5,
        ),
        Case(
            "product f8 8192",
            lambda xp, a, b: xp.matmul(a.astype(BF16), b.T.astype(BF16)),
            (_square(128), _square(8192)),
            F8,
            0.70,
            _product,
            _F8,
            tolerance=0.5,
        ),
        *(
            Case(
                f"attention{' causal' if causal else ''}",
                lambda xp, q, k, v, causal=causal: attention(xp, q, k, v, causal),
                ([(1, 256, 128)] * 3, [(64, 4096, 128)] * 3),
                BF16,
                0.60,
                _attention(0.5 if causal else 1.0),
                attention=causal,
                tolerance=3e-2,
            )
            for causal in (False, True)
        ),
        Case("ten small kernels", small_kernels, ([(64, 64)], [(128, 128)]), launches=10),
    ]
