"""Memories of a GPU, and what a kernel asks for in them."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from mlirhlo.mosaic.language.elements import DType, DTypeLike, as_dtype, bits_of
from mlirhlo.mosaic.language.faults import bad_spec


@dataclass(frozen=True, slots=True)
class TilingTransform:
    """A buffer is stored tile by tile: `TilingTransform((8, 64))`."""

    tiling: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SwizzleTransform:
    """16-byte pieces of rows of so many bytes change places, so that columns lie in different banks."""

    swizzle: int

    def __post_init__(self) -> None:
        if self.swizzle not in (32, 64, 128):
            raise bad_spec(f"a swizzle of {self.swizzle} bytes", "one of 32, 64, 128")


class MemorySpace(enum.Enum):
    """Where references are: `SMEM((64, 64), np.float16)` asks for a buffer there."""

    GMEM = "gmem"
    SMEM = "smem"
    TMEM = "tmem"
    REGS = "regs"

    def __call__(
        self,
        shape: Sequence[int],
        dtype: DTypeLike,
        *,
        transforms: Sequence[Any] = (),
        **options: Any,
    ) -> Scratch:
        """A buffer of a shape. Raises `HloError` HLO0726 for what no memory of that kind has."""
        if self is MemorySpace.TMEM:
            given = [name for name, value in options.items() if value]
            sizes, type_ = tuple(shape), as_dtype(dtype)
            is_plain = not given and not transforms and len(sizes) == 2
            if not is_plain or sizes[0] != 128 or bits_of(type_) != 32:
                stated = "".join(f", {name}=…" for name in given)
                raise bad_spec(
                    f"TMEM({sizes}, {type_.name}{stated})",
                    "128 rows of at most 512 columns, of 32 bits, without options",
                )
            return Scratch(sizes, type_, self.value)
        if named := [name for name, value in options.items() if value is not None]:
            raise bad_spec(f"{self.name} takes no {', '.join(named)}")
        return Scratch(tuple(shape), as_dtype(dtype), self.value, tuple(transforms))


@dataclass(frozen=True, slots=True)
class Scratch:
    """A buffer that a kernel asks for."""

    shape: tuple[int, ...]
    dtype: DType
    space: str
    transforms: tuple[Any, ...] = ()

    @property
    def size_bytes(self) -> int:
        """Of its elements."""
        return prod(self.shape) * -(-bits_of(self.dtype) // 8)

    @property
    def swizzle(self) -> int:
        """Bytes of swizzled rows; 0 for none. Raises `HloError` HLO0726 for tiles that it does not fit."""
        found = 0
        for transform in self.transforms:
            if isinstance(transform, SwizzleTransform):
                found = transform.swizzle
        for transform in self.transforms:
            if isinstance(transform, TilingTransform) and found:
                columns = found * 8 // bits_of(self.dtype)
                if transform.tiling != (8, columns):
                    raise bad_spec(
                        f"tiles {list(transform.tiling)} with a swizzle of {found} bytes",
                        f"tiles are [8, {columns}]",
                    )
        if found and (
            len(self.shape) < 2
            or self.shape[-2] % (1024 // found)
            or self.shape[-1] * bits_of(self.dtype) % (found * 8)
        ):
            raise bad_spec(f"{list(self.shape)} has no rows of {found} bytes in tiles of 1024")
        return found


@dataclass(frozen=True, slots=True)
class Barrier:
    """Barriers of a block; a phase of one ends when so many have arrived, and all bytes awaited have."""

    num_arrivals: int = 1
    num_barriers: int = 1
    orders_tensor_core: bool = False


@dataclass(frozen=True, slots=True)
class ClusterBarrier:
    """Barriers of all blocks of a cluster along axes; an arrival goes to each of them."""

    collective_axes: Any
    num_arrivals: int = 1
    num_barriers: int = 1
    orders_tensor_core: bool = False
    leader_tracked: bool = False

    def __post_init__(self) -> None:
        if self.leader_tracked:
            raise bad_spec("a barrier that the leader of a cluster tracks", "wait in each block")

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of the axes."""
        axes = self.collective_axes
        return (axes,) if isinstance(axes, str) else tuple(axes)


@dataclass(frozen=True, slots=True)
class WGMMAAccumulatorRef:
    """An accumulator of wgmma, zero at first: `ACC((64, 128))`."""

    shape: tuple[int, int]
    dtype: Any = np.float32

    @staticmethod
    def init(value: Any) -> Any:
        """An accumulator that begins with a value."""
        return Start(value)


@dataclass(frozen=True, slots=True)
class Start:
    """An accumulator that begins with a value."""

    value: Any


@dataclass(frozen=True, slots=True)
class RefUnion:
    """Buffers of SMEM that share memory, one group of them used at a time; the kernel gets a tuple of the groups."""

    refs: tuple[Any, ...]

    def __init__(self, *refs: Any) -> None:
        object.__setattr__(self, "refs", refs)
