"""How arrays are cut into blocks, the grid, and what the compiler is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import prod
from typing import Any, TypeAlias

from mlirhlo.diagnostics import Place
from mlirhlo.mosaic.language.elements import DType, DTypeLike, as_dtype
from mlirhlo.mosaic.language.faults import user_place
from mlirhlo.mosaic.language.scratch import MemorySpace


@dataclass(frozen=True, slots=True)
class ShapeDtypeStruct:
    """The type of an array: what a result is, or what a kernel is lowered for."""

    shape: tuple[int, ...]
    dtype: DType

    def __init__(self, shape: Sequence[int], dtype: DTypeLike, **_: Any) -> None:
        object.__setattr__(self, "shape", tuple(int(size) for size in shape))
        object.__setattr__(self, "dtype", as_dtype(dtype))

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """The type of an array, of a value, or of another type."""
        return cls(x.shape, x.dtype)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    def update(self, **changed: Any) -> ShapeDtypeStruct:
        """The type with another shape or element type."""
        return ShapeDtypeStruct(changed.get("shape", self.shape), changed.get("dtype", self.dtype))


@dataclass(frozen=True, slots=True)
class Blocked:
    """A dimension cut into blocks; the index map counts blocks. A plain number says the same."""

    block_size: int


@dataclass(frozen=True, slots=True)
class Squeezed:
    """A dimension of which the kernel sees one element, and which its reference has not."""


squeezed = Squeezed()


@dataclass(frozen=True, slots=True)
class Element:
    """A dimension whose index map counts elements; `padding` lengthens the array at both ends by
    undefined ones.
    """

    block_size: int
    padding: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class BoundedSlice:
    """A dimension whose index map gives a slice, `pl.ds(start, size)`, of at most this size; both may be
    known when the kernel runs. In `emit_pipeline` alone: the grid of a call moves blocks of one size.
    """

    block_size: int


BlockDim: TypeAlias = int | Blocked | Squeezed | Element | BoundedSlice | None
"""What a block's shape says of one dimension."""


class RevisitMode(Enum):
    """When the grid may return to a block of an output."""

    IMMEDIATE = "immediate"
    """In the step after it alone."""
    ANY = "any"
    """At any step: such a block has one buffer."""


@dataclass(frozen=True, slots=True)
class Buffered:
    """How many buffers a block has: 2, or 1 for one that hardly moves."""

    buffer_count: int = 2
    use_lookahead: bool = False
    revisit: RevisitMode | str | None = None


@dataclass(frozen=True, slots=True, init=False)
class BlockSpec:
    """The block of an array that each step of the grid sees.

    `block_shape` has a number, None, `Element`, … for each dimension; without one the block is the
    whole array. `index_map` gives, for the indices of the grid (and scalar-prefetch references), one
    block number a dimension; without one all are zero.
    """

    block_shape: tuple[Any, ...] | None
    index_map: Callable[..., Any] | None
    memory_space: MemorySpace | None
    pipeline_mode: Buffered | None
    place: Place | None = field(compare=False, repr=False)
    """Where it is written."""

    def __init__(
        self,
        block_shape: Sequence[Any] | None = None,
        index_map: Callable[..., Any] | None = None,
        *,
        memory_space: MemorySpace | None = None,
        pipeline_mode: Buffered | None = None,
    ) -> None:
        shape = None if block_shape is None else tuple(block_shape)
        object.__setattr__(self, "block_shape", shape)
        object.__setattr__(self, "index_map", index_map)
        object.__setattr__(self, "memory_space", memory_space)
        object.__setattr__(self, "pipeline_mode", pipeline_mode)
        object.__setattr__(self, "place", user_place())


no_block_spec = BlockSpec()
"""For an array that is not cut: a call's kernel sees all of it; in `emit_pipeline` its body sees nothing of it."""


@dataclass(frozen=True, slots=True)
class GridSpec:
    """The grid, blocks and scratch of a call."""

    grid: Any = ()
    in_specs: Any = None
    out_specs: Any = None
    scratch_shapes: Any = ()


@dataclass(frozen=True, slots=True)
class PrefetchScalarGridSpec:
    """As `GridSpec`; the first `num_scalar_prefetch` operands are in SMEM before the kernel begins,
    and index maps see them.
    """

    num_scalar_prefetch: int
    grid: Any = ()
    in_specs: Any = None
    out_specs: Any = None
    scratch_shapes: Any = ()


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """What XLA's scheduler thinks a call costs."""

    flops: int
    transcendentals: int
    bytes_accessed: int
    remote_bytes_transferred: int = 0


class GridDimensionSemantics(Enum):
    """Whether the steps along a dimension of the grid may run in any order, and on which cores."""

    PARALLEL = "parallel"
    CORE_PARALLEL = "core_parallel"
    SUBCORE_PARALLEL = "subcore_parallel"
    ARBITRARY = "arbitrary"


PARALLEL = GridDimensionSemantics.PARALLEL
ARBITRARY = GridDimensionSemantics.ARBITRARY
SUBCORE_PARALLEL = GridDimensionSemantics.SUBCORE_PARALLEL
CORE_PARALLEL = GridDimensionSemantics.CORE_PARALLEL


class SideEffectType(Enum):
    """What a call does beside giving its results; true of those that do anything."""

    PURE = "pure"
    DATAFLOW_SIDE_EFFECTING = "dataflow_side_effecting"
    """Something, which is not needed where nobody uses the results."""
    SIDE_EFFECTING = "side_effecting"

    def __bool__(self) -> bool:
        return self is not SideEffectType.PURE


@dataclass(frozen=True, slots=True)
class CompilerParams:
    """What the compiler is told of a kernel; names and defaults are Pallas'."""

    dimension_semantics: Sequence[Any] | None = None
    """`parallel`, `core_parallel` or `arbitrary` for each dimension of the grid; parallel ones come first."""
    allow_input_fusion: Sequence[bool] | None = None
    vmem_limit_bytes: int | None = None
    collective_id: int | None = None
    has_side_effects: bool | SideEffectType = False
    flags: Mapping[str, bool | int | float] = field(default_factory=dict[str, Any])
    internal_scratch_in_bytes: int | None = None
    serialization_format: int = 1
    """That of the body in a `tpu_custom_call`: always 1, the stable form."""
    disable_bounds_checks: bool = False
    disable_semaphore_checks: bool = False
    skip_device_barrier: bool = False
    allow_collective_id_without_custom_barrier: bool = False
    """Whether a `collective_id` may stand where no barrier semaphore is asked for; here it always may."""
    shape_invariant_numerics: bool = True
    """Whether a product is summed up in one order, whatever the block."""
    use_tc_tiling_on_sc: bool | None = None
    """Of SparseCores, which kernels do not run on here."""
    needs_layout_passes: bool = True
    """Whether the compiler chooses layouts: it does for every kernel of this language."""
    fuse_transposed_lhs_in_matmul: bool = False
    """Whether a transpose becomes part of the product that reads it; the compiler does what it likes here."""


__all__ = [
    "ARBITRARY",
    "CORE_PARALLEL",
    "PARALLEL",
    "SUBCORE_PARALLEL",
    "BlockDim",
    "BlockSpec",
    "Blocked",
    "BoundedSlice",
    "Buffered",
    "CompilerParams",
    "CostEstimate",
    "Element",
    "GridDimensionSemantics",
    "GridSpec",
    "PrefetchScalarGridSpec",
    "RevisitMode",
    "ShapeDtypeStruct",
    "SideEffectType",
    "Squeezed",
    "no_block_spec",
    "squeezed",
]
