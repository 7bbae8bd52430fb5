"""The choices that generators make: by a seed in commands, drawn by hypothesis in tests, where they shrink."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar, cast

import numpy as np

from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES, Kind, PrimitiveType

T = TypeVar("T")


class Choices(ABC):
    """Random choices; the first option and the least number are the simplest."""

    @abstractmethod
    def integer(self, low: int, high: int) -> int:
        """Both ends included; all other choices follow from these."""

    def pick(self, options: Sequence[T]) -> T:
        return options[self.integer(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        """True so often; shrinks to False."""
        return self.integer(0, 99) >= 100 - percent

    def rarely(self, one_in: int = 10) -> bool:
        """True once in so many times."""
        return self.integer(0, one_in - 1) == one_in - 1

    def shape(self, rank: int, low: int = 1, high: int = 5) -> list[int]:
        return [self.integer(low, high) for _ in range(rank)]

    def permutation(self, count: int) -> list[int]:
        order = list(range(count))
        for at in range(count - 1):
            other = self.integer(at, count - 1)
            order[at], order[other] = order[other], order[at]
        return order

    def subset(self, count: int, size: int) -> list[int]:
        return sorted(self.permutation(count)[:size])

    def some(self, options: Sequence[T], percent: int) -> list[T]:
        """Each option so often, and one at least."""
        return [o for o in options if self.chance(percent)] or [self.pick(options)]

    def random(self) -> random.Random:
        """For code that damages texts by an interface of the standard library's."""
        return random.Random(self.integer(0, 1 << 32))

    # ------------------------------------------------------------ arrays

    def arranged(self, pool: np.ndarray, shape: Sequence[int]) -> np.ndarray:
        """An array of values of `pool`, in turn or shuffled."""
        size = int(np.prod(shape, dtype=np.int64))
        at = np.arange(size) % pool.size
        shuffle = self.integer(0, 1 << 16)
        if shuffle:
            at = np.random.default_rng(shuffle).integers(0, pool.size, size)
        return pool[at].reshape(tuple(shape))

    def values(self, name: str, shape: Sequence[int], denormals: bool = True) -> np.ndarray:
        """Special values and any others of a type. XLA:CPU computes with denormals as with zero."""
        pool = self.pool(PRIMITIVE_TYPES[name], self.integer(1, 8), denormals)
        return self.arranged(pool, shape)

    def small(self, name: str, shape: Sequence[int]) -> np.ndarray:
        """Small integers: their sums are exact in every type."""
        type_ = PRIMITIVE_TYPES[name]
        pool = [0, 1] if name == "pred" else [0, 1, 2, 3]
        if not type_.is_unsigned and name != "pred":
            pool += [-1, -2, -3]
        return self.arranged(np.array(pool).astype(type_.dtype), shape)

    def pool(self, type_: PrimitiveType, count: int, denormals: bool = False) -> np.ndarray:
        """So many scalars: zeros, ones, extremes, infinities and NaN, or any others."""
        if type_.kind is Kind.PRED:
            return np.array([self.integer(0, 1) for _ in range(count)], np.bool_)
        special = special_values(type_)
        chosen = [
            special[self.integer(0, special.size - 1)]
            if self.integer(0, 1)
            else self._scalar(type_, denormals)
            for _ in range(count)
        ]
        return np.array(chosen, type_.dtype)

    def _scalar(self, type_: PrimitiveType, denormals: bool) -> Any:
        if type_.is_integer or (denormals and type_.is_float):
            bits = self.integer(0, (1 << type_.bits) - 1)
            size = type_.dtype.itemsize
            if type_.is_integer and type_.is_signed:
                bits -= (1 << type_.bits) if bits >> (type_.bits - 1) else 0
                return np.array(bits, f"i{size}").astype(type_.dtype)[()]
            return np.frombuffer(bits.to_bytes(size, "little"), type_.dtype)[0]
        if type_.is_complex:
            # XLA takes differences of exponentials, which says nothing of parts near zero.
            real, imaginary = (self.integer(-64, 64) / 8 for _ in range(2))
            return type_.dtype.type(complex(real, imaginary))
        with np.errstate(all="ignore"):
            wide = np.float64 if type_.bits == 64 else np.float32
            return wide(self._float()).astype(type_.dtype)

    def _float(self) -> float:
        """A number of moderate size."""
        return self.integer(-(1 << 24), 1 << 24) * 2.0 ** self.integer(-30, 2)


class Seeded(Choices):
    """The same choices by a seed, for commands."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        """Both ends included."""
        return self._random.randint(low, high) if low < high else low


def special_values(type_: PrimitiveType) -> np.ndarray:
    """Zeros, ones, halves, extremes, infinities, NaNs: the values that break things.

    Denormal f32 and f64 are left out: XLA:CPU treats them as zero.
    """
    if type_.kind is Kind.PRED:
        return np.array([False, True])
    if type_.is_integer:
        low = -(1 << (type_.bits - 1)) if type_.is_signed else 0
        high = low + (1 << type_.bits) - 1
        wanted = {
            0,
            1,
            2,
            3,
            5,
            7,
            8,
            31,
            32,
            33,
            63,
            64,
            100,
            high,
            high - 1,
            high // 2,
            high // 3,
        }
        wanted |= {-1, -2, -3, -7, -8, -100, low, low + 1, low // 2}
        chosen = sorted(value for value in wanted if low <= value <= high)
        return np.array(chosen, dtype=object).astype(_wide(type_)).astype(type_.dtype)
    if type_.is_complex:
        parts = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e3]
        return np.array([complex(a, b) for a in parts for b in parts], dtype=type_.dtype)
    import ml_dtypes

    info = cast(Any, ml_dtypes.finfo)(type_.dtype)
    plain = [0.0, -0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 7.25, 10.0, 100.0, 0.1, 1 / 3]
    plain += [0.49999997, 0.75, 0.99, 1.01, 1e4, 1e-3, 12345.678, 2.0**31, 2.0**63, 1e30]
    values = [*plain, *(-v for v in plain), np.inf, -np.inf, np.nan]
    limits = [float(info.max), float(info.min), float(info.smallest_normal)]
    with np.errstate(all="ignore"):
        found = np.array([*values, *limits], np.float64).astype(
            np.float32 if type_.bits < 32 else type_.dtype
        )
        return found.astype(type_.dtype)


def type_of(name: str) -> PrimitiveType:
    """An element type by its name in HLO text."""
    return PRIMITIVE_TYPES[name]


def _wide(type_: PrimitiveType) -> Any:
    return np.int64 if type_.is_signed else np.uint64
