"""Memory of a kernel's own: `pltpu.VMEM((8, 128), np.float32)`, semaphores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.mosaic.language.elements import BOOL, I32, DType, DTypeLike, as_dtype, element_type
from mlirhlo.mosaic.language.faults import bad_spec
from mlirhlo.mosaic.language.trace import attribute

if TYPE_CHECKING:
    from xdsl.ir import Attribute


@dataclass(frozen=True, slots=True)
class Scratch:
    """Memory that is there while a kernel, or a `run_scoped`, runs."""

    shape: tuple[int, ...]
    dtype: DType
    space: str
    semaphore: str = ""

    @property
    def element(self) -> Attribute:
        """The MLIR type of its elements."""
        if self.semaphore:
            return attribute(f"!{self.semaphore}")
        return element_type(I32 if self.dtype == BOOL else self.dtype)


class MemorySpace(Enum):
    """Where arrays are; called with a shape and element type, scratch memory there."""

    ANY = "any"
    HOST = "host"
    VMEM = "vmem"
    SMEM = "smem"
    HBM = "hbm"
    CMEM = "cmem"
    VMEM_SHARED = "vmem_shared"
    SEMAPHORE = "semaphore_mem"

    def __call__(self, shape: Sequence[int], dtype: DTypeLike) -> Scratch:
        """Scratch memory of that shape and element type."""
        return Scratch(tuple(shape), as_dtype(dtype), self.value)


class SemaphoreType(Enum):
    """Semaphores as scratch: `SemaphoreType.DMA`, or `SemaphoreType.DMA((2,))` for several."""

    REGULAR = "tpu.semaphore"
    DMA = "tpu.dma_semaphore"
    BARRIER = "barrier"

    def __call__(self, shape: Sequence[int]) -> Scratch:
        """An array of semaphores."""
        if self is SemaphoreType.BARRIER:
            raise bad_spec(
                "barrier semaphores are not scratch", "get_barrier_semaphore() gives the kernel's"
            )
        return Scratch(tuple(shape), np.dtype(np.int32), "semaphore_mem", self.value)


def scratch_of(shape: Any) -> Scratch:
    """What a scratch shape says. Raises `HloError` HLO0726 for what is none."""
    if isinstance(shape, Scratch):
        return shape
    if isinstance(shape, SemaphoreType):
        return shape(())
    raise bad_spec(
        f"{shape!r} is no scratch memory",
        "write pltpu.VMEM(shape, dtype), pltpu.SMEM(shape, dtype) or pltpu.SemaphoreType.DMA",
    )
