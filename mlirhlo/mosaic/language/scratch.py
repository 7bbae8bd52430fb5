"""Memory of a kernel's own: `pltpu.VMEM((8, 128), np.float32)`, semaphores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from mlirhlo.mosaic.language.elements import BOOL, I32, DType, DTypeLike, as_dtype, element_type
from mlirhlo.mosaic.language.faults import bad_spec
from mlirhlo.mosaic.language.trace import attribute

if TYPE_CHECKING:
    from xdsl.ir import Attribute


class semaphore_dtype:  # noqa: N801  (jax's name)
    """What semaphores are in the place of an element type."""

    name = ""
    """The MLIR type, without its `!`."""


class semaphore(semaphore_dtype):  # noqa: N801  (jax's name)
    """Of regular semaphores."""

    name = "tpu.semaphore"


class dma_semaphore(semaphore_dtype):  # noqa: N801  (jax's name)
    """Of semaphores that copies signal."""

    name = "tpu.dma_semaphore"


def semaphore_name(dtype: Any) -> str:
    """The MLIR type of what is no element type but that of a semaphore; empty for others."""
    if isinstance(dtype, type) and issubclass(dtype, semaphore_dtype):
        return dtype.name
    return ""


@dataclass(frozen=True, slots=True, init=False)
class MemoryRef:
    """Memory of a shape and element type, or semaphores, in a memory space: it is there while a kernel, or a
    `run_scoped`, runs.
    """

    shape: tuple[int, ...]
    dtype: DType
    space: str
    semaphore: str = ""

    def __init__(self, inner_aval: Any, *spaces: Any) -> None:
        """`MemoryRef(inner_aval, memory_space)`, `inner_aval` having a shape and dtype; `MemoryRef(shape, dtype,
        memory_space)` as JAX had it before.

        Raises `HloError` HLO0726 for what is no memory space, or has no shape and dtype.
        """
        if len(spaces) == 2 and isinstance(inner_aval, Sequence):
            inner_aval = _Type(tuple(cast("Sequence[int]", inner_aval)), spaces[0])
        memory_space = spaces[-1] if spaces else None
        has_type = hasattr(inner_aval, "shape") and hasattr(inner_aval, "dtype")
        if not has_type or not isinstance(memory_space, MemorySpace):
            raise bad_spec(
                f"MemoryRef takes what has a shape and dtype, and a memory space, not {inner_aval!r}, {memory_space!r}",
                "write pl.MemoryRef(pl.ShapeDtypeStruct((8, 128), np.float32), pltpu.VMEM)",
            )
        name = semaphore_name(inner_aval.dtype)
        dtype = I32 if name else as_dtype(inner_aval.dtype)
        object.__setattr__(self, "shape", tuple(inner_aval.shape))
        object.__setattr__(self, "dtype", dtype)
        object.__setattr__(
            self, "space", MemorySpace.SEMAPHORE.value if name else memory_space.value
        )
        object.__setattr__(self, "semaphore", name)

    @property
    def memory_space(self) -> MemorySpace:
        """Where it is."""
        return MemorySpace(self.space)

    @property
    def element(self) -> Attribute:
        """The MLIR type of its elements."""
        if self.semaphore:
            return attribute(f"!{self.semaphore}")
        return element_type(I32 if self.dtype == BOOL else self.dtype)


class _Type(NamedTuple):
    shape: tuple[int, ...]
    dtype: Any


class CoreType(Enum):
    """The kinds of cores that a chip has; kernels are of TensorCores here."""

    TC = "tc"
    SC_SCALAR_SUBCORE = "sc_scalar_subcore"
    SC_VECTOR_SUBCORE = "sc_vector_subcore"

    def __str__(self) -> str:
        return self.value


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

    def __call__(self, shape: Sequence[int], dtype: DTypeLike) -> MemoryRef:
        """Scratch memory of that shape and element type."""
        return MemoryRef(_Type(tuple(shape), dtype), self)

    def from_type(self, ty: Any) -> MemoryRef:
        """Scratch memory for what has a shape and element type."""
        return MemoryRef(ty, self)

    like = from_type


class SemaphoreType(Enum):
    """Semaphores as scratch: `SemaphoreType.DMA`, or `SemaphoreType.DMA((2,))` for several."""

    REGULAR = "regular"
    DMA = "dma"
    BARRIER = "barrier"

    @property
    def dtype(self) -> type[semaphore_dtype]:
        """What stands for it in the place of an element type."""
        return dma_semaphore if self is SemaphoreType.DMA else semaphore

    def __call__(self, shape: Sequence[int]) -> MemoryRef:
        """An array of semaphores."""
        if self is SemaphoreType.BARRIER:
            raise bad_spec(
                "barrier semaphores are not scratch", "get_barrier_semaphore() gives the kernel's"
            )
        return MemoryRef(_Type(tuple(shape), self.dtype), MemorySpace.SEMAPHORE)


def scratch_of(shape: Any) -> MemoryRef:
    """What a scratch shape says. Raises `HloError` HLO0726 for what is none."""
    if isinstance(shape, MemoryRef):
        return shape
    if isinstance(shape, SemaphoreType):
        return shape(())
    raise bad_spec(
        f"{shape!r} is no scratch memory",
        "write pltpu.VMEM(shape, dtype), pltpu.SMEM(shape, dtype) or pltpu.SemaphoreType.DMA",
    )
