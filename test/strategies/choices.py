"""The choices that generators make, each drawn from hypothesis, so that it shrinks."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES, Kind, PrimitiveType

T = TypeVar("T")
C = TypeVar("C", bound="Choices")

FACTOR = int(os.environ.get("MLIRHLO_DIFFERENTIAL", "1"))
"""Multiplies the number of examples; 1 in the suite, 20 or more for a search."""


def examples(count: int) -> settings:
    """Settings of a test of so many examples, the first of which is the simplest there is."""
    return settings(
        max_examples=1 + count * FACTOR,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )


class Choices:
    """Random choices; the first option and the least number are the simplest."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        """Both ends included; shrinks towards `low`, or 0 where that is between."""
        return int(self._draw(st.integers(low, high))) if low < high else low

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
        from xla_execution import special_values

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


def strategy_of(
    make: Callable[[C], T],
    choices: type[C] = Choices,  # type: ignore[assignment]
) -> st.SearchStrategy[T]:
    """What `make` makes of choices, as a strategy."""

    @st.composite
    def drawn(draw: Callable[[st.SearchStrategy[Any]], Any]) -> T:
        return make(choices(draw))

    return drawn()


def several(make: Callable[[Choices], T], most: int) -> Callable[[Choices], list[T]]:
    """From one to `most` of what `make` makes, for one question to XLA."""
    return lambda c: [make(c) for _ in range(c.integer(1, most))]
