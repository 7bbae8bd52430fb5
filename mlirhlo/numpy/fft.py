"""The `fft` extension, on HLO's `fft`, one axis after the other.

Source: Python array API standard 2024.12, "Fourier transform extension".
"""

# Narrowing by isinstance leaves the parameters of numpy's types and of containers open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from mlirhlo.numpy import dtypes as dt
from mlirhlo.numpy import ops
from mlirhlo.numpy.array import Array, axis_of, check_device
from mlirhlo.numpy.creation import arange
from mlirhlo.numpy.dtypes import DType
from mlirhlo.numpy.eager import kernel
from mlirhlo.numpy.elementwise import conj
from mlirhlo.numpy.errors import HloTypeError, HloValueError, problem
from mlirhlo.numpy.manipulation import astype, roll
from mlirhlo.numpy.operands import as_array, checked

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfftn", "rfft", "rfftfreq", "rfftn",
]  # fmt: skip


def _scale(kind: str, size: int, norm: str) -> float:
    """What HLO's own result is multiplied by: it divides inverse transforms by their size."""
    if norm not in ("backward", "ortho", "forward"):
        raise problem(
            HloValueError,
            "HLO0626",
            f"fft: no norm {norm!r}",
            help="one of 'backward', 'ortho', 'forward'",
        )
    is_inverse = kind.startswith("I")
    if norm == "ortho":
        return math.sqrt(size) if is_inverse else 1 / math.sqrt(size)
    if norm == "forward":
        return float(size) if is_inverse else 1 / size
    return 1.0


@kernel
def _transform(x: Array, *, kind: str, axis: int, size: int, scale: float, dtype: DType) -> Array:
    last = x.ndim - 1
    order = (*(d for d in range(x.ndim) if d != axis), axis)
    x = ops.transpose(x, order)
    # The input is cut, or filled with zeros, to what the transform takes.
    taken = size // 2 + 1 if kind == "IRFFT" else size
    if x.shape[last] > taken:
        x = ops.slice_axis(x, last, 0, taken)
    elif x.shape[last] < taken:
        padding = [(0, 0, 0)] * last + [(0, taken - x.shape[last], 0)]
        x = ops.pad(x, ops.constant(0, x.dtype), padding)
    given = size // 2 + 1 if kind == "RFFT" else size
    found = ops.fft(x, kind, size, dtype, given)
    if scale != 1.0:
        found = ops.binary("multiply", found, ops.like(scale, found))
    back = tuple(order.index(d) for d in range(x.ndim))
    return ops.transpose(found, back)


def _along(x: Array, kind: str, n: int | None, axis: int, norm: str) -> Array:
    what = kind.lower()
    if x.ndim == 0:
        raise problem(HloValueError, "HLO0626", f"{what}: takes arrays of rank 1 or more")
    dim = axis_of(axis, x.ndim, what)
    if n is None:
        n = 2 * (x.shape[dim] - 1) if kind == "IRFFT" else x.shape[dim]
    if n < 1:
        raise problem(HloValueError, "HLO0626", f"{what}: a transform of {n} points")
    work = dt.float32 if x.dtype in (dt.float16, dt.bfloat16) else x.dtype
    if kind == "RFFT":
        if dt.kind_of(x.dtype) == "c":
            raise problem(
                HloTypeError,
                "HLO0625",
                f"{what}: takes real numbers, not {x.dtype}",
                help="use fft, or real(x)",
            )
        x, result = astype(x, work), dt.complex_of(work)
    else:
        x = astype(x, dt.complex_of(work))
        result = dt.real_of(x.dtype) if kind == "IRFFT" else x.dtype
    scale = _scale(kind, n, norm)
    return _transform(x, kind=kind, axis=dim, size=n, scale=scale, dtype=result)


def _floats(x: Any, what: str) -> Array:
    array = as_array(x, what)
    return astype(array, checked(what, "float", array.dtype))


def _one(name: str, kind: str, summary: str) -> Callable[..., Array]:
    def function(
        x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Array:
        return _along(_floats(x, name), kind, n, axis, norm)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = summary
    return function


fft = _one("fft", "FFT", "The discrete Fourier transform along an axis.")
ifft = _one("ifft", "IFFT", "The inverse of `fft`.")
irfft = _one("irfft", "IRFFT", "The inverse of `rfft`, real numbers.")
rfft = _one("rfft", "RFFT", "The transform of real numbers, its first half.")

_OPPOSITE = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def hfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """The transform of a signal with Hermitian symmetry, given by its first half; real numbers."""
    array = conj(_floats(x, "hfft"))
    return _along(array, "IRFFT", n, axis, _OPPOSITE.get(norm, norm))


def ihfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """The inverse of `hfft`."""
    found = _along(_floats(x, "ihfft"), "RFFT", n, axis, _OPPOSITE.get(norm, norm))
    return conj(found)


def _axes(x: Array, s: Sequence[int] | None, axes: Any, what: str) -> list[int]:
    if axes is None:
        count = x.ndim if s is None else len(s)
        axes = range(x.ndim - count, x.ndim)
    found = [axis_of(axis, x.ndim, what) for axis in axes]
    if s is not None and len(s) != len(found):
        raise problem(HloValueError, "HLO0626", f"{what}: {len(s)} sizes for {len(found)} axes")
    return found


def _many(name: str, kind: str, summary: str) -> Callable[..., Array]:
    """The transform along several axes; the real one along the last of them."""

    def function(
        x: Any, /, *, s: Sequence[int] | None = None, axes: Any = None, norm: str = "backward"
    ) -> Array:
        array = _floats(x, name)
        dims = _axes(array, s, axes, name)
        sizes: list[int | None] = [None] * len(dims) if s is None else list(s)
        plan = list(zip([kind] * len(dims), dims, sizes, strict=True))
        if kind == "RFFT":
            plan = [plan[-1], *(("FFT", d, n) for _, d, n in plan[:-1])]
        elif kind == "IRFFT":
            plan = [*(("IFFT", d, n) for _, d, n in plan[:-1]), plan[-1]]
        for one, dim, size in plan:
            array = _along(array, one, size, dim, norm)
        return array

    function.__name__ = function.__qualname__ = name
    function.__doc__ = summary
    return function


fftn = _many("fftn", "FFT", "The discrete Fourier transform along several axes.")
ifftn = _many("ifftn", "IFFT", "The inverse of `fftn`.")
irfftn = _many("irfftn", "IRFFT", "The inverse of `rfftn`, real numbers.")
rfftn = _many("rfftn", "RFFT", "The transform of real numbers along several axes.")


def _frequencies(n: int, d: float, first: int, count: int, dtype: Any, what: str) -> Array:
    if n < 1:
        raise problem(HloValueError, "HLO0626", f"{what}: {n} points")
    places = arange(first, first + count, dtype=dt.as_dtype(dtype or dt.float64))
    return places / (n * float(d))


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of `fft`: positive ones first."""
    check_device(device)
    found = _frequencies(n, d, -(n // 2), n, dtype, "fftfreq")
    return roll(found, -(n // 2))


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of `rfft`."""
    check_device(device)
    return _frequencies(n, d, 0, n // 2 + 1, dtype, "rfftfreq")


def _shifted(x: Any, axes: Any, what: str, *, back: bool) -> Array:
    array = as_array(x, what)
    given = range(array.ndim) if axes is None else axes if hasattr(axes, "__iter__") else (axes,)
    dims = [axis_of(axis, array.ndim, what) for axis in given]
    shifts = [-(array.shape[d] // 2) if back else array.shape[d] // 2 for d in dims]
    return roll(array, tuple(shifts), axis=tuple(dims)) if dims else array


def fftshift(x: Any, /, *, axes: Any = None) -> Array:
    """The zero frequency moved to the middle."""
    return _shifted(x, axes, "fftshift", back=False)


def ifftshift(x: Any, /, *, axes: Any = None) -> Array:
    """The inverse of `fftshift`."""
    return _shifted(x, axes, "ifftshift", back=True)
