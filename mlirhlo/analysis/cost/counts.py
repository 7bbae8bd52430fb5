"""The numbers of one instruction or of a sum of them, by XLA's keys, in f32."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

FLOPS = "flops"
TRANSCENDENTALS = "transcendentals"
BYTES = "bytes accessed"
SECONDS = "optimal_seconds"
UTILIZATION = "utilization"

_EXACT = 1 << 24
"""Integers up to here are f32 numbers."""
_pack, _unpack = struct.Struct("f").pack, struct.Struct("f").unpack
_LARGEST = 3.4028235677973366e38


def f32(value: float) -> float:
    """The nearest f32."""
    if -_EXACT <= value <= _EXACT and value == int(value):
        return float(value)
    if abs(value) >= _LARGEST:
        return float("inf") if value > 0 else float("-inf")
    return float(_unpack(_pack(value))[0])


@lru_cache(maxsize=1024)
def operand_bytes(number: int, index: tuple[int, ...] = ()) -> str:
    """Key of the bytes read of an operand, at a shape index."""
    return f"{BYTES}{number}{_index(index)}"


@lru_cache(maxsize=1024)
def result_bytes(index: tuple[int, ...] = ()) -> str:
    """Key of the bytes written to the result, at a shape index."""
    return f"{BYTES}out{_index(index)}"


@lru_cache(maxsize=1024)
def operand_utilization(number: int) -> str:
    """Key of the part of an operand that is read."""
    return f"{UTILIZATION}{number}{{}}"


def _index(index: tuple[int, ...]) -> str:
    return "{" + ",".join(map(str, index)) + "}"


@dataclass(slots=True)
class Counts:
    """Numbers by key; what is not there is 0."""

    values: dict[str, float] = field(default_factory=dict[str, float])

    def get(self, key: str) -> float:
        """The number at `key`."""
        return self.values.get(key, 0.0)

    def set(self, key: str, value: float) -> None:
        """Sets a number, rounded to f32."""
        self.values[key] = f32(value)

    def add(self, key: str, value: float) -> None:
        """Adds to a number."""
        self.values[key] = f32(self.values.get(key, 0.0) + value)

    def add_all(self, other: Counts) -> None:
        """Adds number by number."""
        mine = self.values
        for key, value in other.values.items():
            if value:
                total = mine.get(key, 0.0) + value
                if -_EXACT <= total <= _EXACT and total.is_integer():
                    mine[key] = total  # as `f32` has it, without a call for each instruction
                else:
                    mine[key] = f32(total)

    def maximum(self, other: Counts) -> None:
        """Takes the greater of each; a number that is not here yet as it is."""
        for key, value in other.values.items():
            self.values[key] = max(self.values[key], value) if key in self.values else value

    def copy(self) -> Counts:
        """The same numbers."""
        return Counts(dict(self.values))

    def nonzero(self) -> Mapping[str, float]:
        """What is not 0."""
        return {key: value for key, value in self.values.items() if value}
