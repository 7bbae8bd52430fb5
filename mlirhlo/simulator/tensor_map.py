"""Tensor maps: the 128 bytes that tell a copy the shape of a tensor, its box and its swizzle.

The bits of a real driver's maps are not documented; these are the simulator's own, made by `TensorMap.encode`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from mlirhlo.diagnostics import error

_MAGIC = 0x54_4D_41_50_53_49_4D_31
_LAYOUT = struct.Struct("<QQBBBBI5I5I4Q5H")
SIZE_BYTES = 128


@dataclass(frozen=True, slots=True)
class TensorMap:
    """A tensor in global memory and the box that one copy moves; dimensions from the fastest on."""

    address: int
    element_bytes: int
    dimensions: tuple[int, ...]
    """Elements in each dimension."""
    strides: tuple[int, ...]
    """Bytes from one index to the next, of all dimensions but the first."""
    box: tuple[int, ...]
    """Elements that a copy moves in each dimension."""
    swizzle_bytes: int = 0
    """0, 32, 64 or 128."""
    element_strides: tuple[int, ...] = ()
    """Every how many elements of a dimension one is moved; all ones when empty."""
    fills_nan: bool = False
    """Whether elements out of bounds are NaN instead of zeros."""

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.dimensions)

    @property
    def box_bytes(self) -> int:
        """Bytes that one copy moves."""
        total = self.element_bytes
        for extent, step in zip(self.box, self.steps, strict=True):
            total *= -(-extent // step)
        return total

    @property
    def steps(self) -> tuple[int, ...]:
        """`element_strides`, spelled out."""
        return self.element_strides or (1,) * self.rank

    def encode(self) -> bytes:
        """The map as an argument of a kernel. Raises `HloError` HLO0785 for shapes that no map can have."""
        self._check()
        pad = (0,) * 5
        data = _LAYOUT.pack(
            _MAGIC,
            self.address,
            self.rank,
            self.element_bytes,
            self.swizzle_bytes,
            self.fills_nan,
            0,
            *(*self.dimensions, *pad)[:5],
            *(*self.box, *pad)[:5],
            *(*self.strides, *pad)[:4],
            *(*self.steps, *pad)[:5],
        )
        return data.ljust(SIZE_BYTES, b"\0")

    def _check(self) -> None:
        wrong = ""
        inner = self.box[0] * self.element_bytes if self.box else 0
        if (
            not 1 <= self.rank <= 5
            or len(self.box) != self.rank
            or len(self.strides) != self.rank - 1
        ):
            wrong = f"{self.rank} dimensions, a box of {len(self.box)}, {len(self.strides)} strides"
        elif any(extent < 1 or extent > 256 for extent in self.box):
            wrong = f"a box of {self.box}: each side has 1 to 256 elements"
        elif inner % 16:
            wrong = f"rows of the box have {inner} bytes, which is no multiple of 16"
        elif any(stride % 16 for stride in self.strides) or self.address % 16:
            wrong = f"address {self.address:#x} and strides {self.strides} are multiples of 16"
        elif self.swizzle_bytes not in (0, 32, 64, 128):
            wrong = f"a swizzle of {self.swizzle_bytes} bytes: 0, 32, 64 or 128"
        elif self.swizzle_bytes and inner > self.swizzle_bytes:
            wrong = (
                f"rows of the box have {inner} bytes, more than the swizzle's {self.swizzle_bytes}"
            )
        if wrong:
            raise error("HLO0785", f"tensor map: {wrong}")

    @classmethod
    def decode(cls, data: bytes) -> TensorMap | None:
        """The map in 128 bytes; None when they hold none."""
        values = _LAYOUT.unpack(data[: _LAYOUT.size])
        if values[0] != _MAGIC:
            return None
        rank = values[2]
        return cls(
            values[1],
            values[3],
            values[7 : 7 + rank],
            values[17 : 17 + rank - 1],
            values[12 : 12 + rank],
            values[4],
            values[21 : 21 + rank],
            bool(values[5]),
        )
