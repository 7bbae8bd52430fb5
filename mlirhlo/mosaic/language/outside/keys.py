"""Random numbers around a kernel: JAX's, by threefry, from keys that are arrays of two words (`uint32[2]`)."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from mlirhlo.interp.ops.random_bits import threefry_rounds
from mlirhlo.mosaic.language.elements import F32, DTypeLike, as_dtype
from mlirhlo.mosaic.language.functions.random import erf_inv
from mlirhlo.mosaic.language.outside.evaluate import evaluate


def key(seed: int, *, impl: Any = None) -> Any:
    """The key of a seed."""
    del impl
    number = int(seed) & (1 << 64) - 1
    return np.array([number >> 32 if abs(int(seed)) >> 32 else 0, number & 0xFFFFFFFF], np.uint32)


def _words(key: Any, high: Any, low: Any) -> tuple[Any, Any]:
    data = np.asarray(key)
    high, low = np.asarray(high, np.uint32), np.asarray(low, np.uint32)
    first, second = (np.broadcast_to(data[..., at], low.shape) for at in (0, 1))
    with np.errstate(over="ignore"):
        found = threefry_rounds(first, second, high, low)
    return np.asarray(found[0]), np.asarray(found[1])


def _counted(key: Any, shape: Sequence[int]) -> tuple[Any, Any]:
    """Two words for each element of a shape."""
    number = np.arange(prod(shape), dtype=np.uint64).reshape(tuple(shape))
    return _words(key, number >> np.uint64(32), number & np.uint64(0xFFFFFFFF))


def split(key: Any, num: int | Sequence[int] = 2) -> Any:
    """Keys out of one key."""
    shape = tuple(num) if isinstance(num, Sequence) else (num,)
    return np.stack(_counted(key, shape), -1)


def fold_in(key: Any, data: int) -> Any:
    """A key out of a key and a number."""
    return np.stack(_words(key, 0, int(data) & 0xFFFFFFFF), -1)


def bits(key: Any, shape: Sequence[int] = (), dtype: DTypeLike = np.uint32) -> Any:
    """Random words."""
    high, low = _counted(key, shape)
    return (high ^ low).astype(as_dtype(dtype))


def uniform(
    key: Any,
    shape: Sequence[int] = (),
    dtype: DTypeLike = F32,
    minval: Any = 0.0,
    maxval: Any = 1.0,
) -> Any:
    """Numbers of equal chance from `minval` up to, without, `maxval`."""
    drawn = np.asarray(bits(key, shape) >> np.uint32(9) | np.uint32(0x3F800000)).view(
        F32
    ) - F32.type(1)
    low, high = np.asarray(minval, F32), np.asarray(maxval, F32)
    return np.maximum(low, drawn * (high - low) + low).astype(as_dtype(dtype))


def normal(key: Any, shape: Sequence[int] = (), dtype: DTypeLike = F32) -> Any:
    """Numbers of the normal distribution."""
    drawn = uniform(key, shape, F32, np.nextafter(F32.type(-1), F32.type(0)), F32.type(1))
    return (F32.type(np.sqrt(2)) * evaluate(erf_inv, drawn)).astype(as_dtype(dtype))


def bernoulli(key: Any, p: Any = 0.5, shape: Sequence[int] | None = None) -> Any:
    """True with the chance p."""
    return uniform(key, np.shape(p) if shape is None else shape) < np.asarray(p, F32)


def randint(
    key: Any, shape: Sequence[int], minval: Any, maxval: Any, dtype: DTypeLike = np.int32
) -> Any:
    """Whole numbers of equal chance from `minval` up to, without, `maxval`."""
    high, low = (bits(one, shape) for one in split(key))
    span = np.maximum(np.asarray(maxval, np.int64) - minval, 1).astype(np.uint32)
    rest = np.uint32(1 << 16) % span
    with np.errstate(over="ignore"):
        offset = ((high % span) * (rest * rest % span) + low % span) % span
    return (np.asarray(minval, np.int64) + offset).astype(as_dtype(dtype))


def key_data(keys: Any) -> Any:
    """The words of keys."""
    return np.asarray(keys)


ON_ARRAYS: Mapping[str, Callable[..., Any]] = {
    "bernoulli": bernoulli,
    "bits": bits,
    "fold_in": fold_in,
    "normal": normal,
    "uniform": uniform,
}
"""What stands for functions of a kernel's keys outside of kernels."""

__all__ = ["ON_ARRAYS", "key", "key_data", "randint", "split"]
