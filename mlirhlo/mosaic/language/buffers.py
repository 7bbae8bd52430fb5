"""`BufferedRef`: the buffers of an array that goes through a pipeline, and the copies into and out of them.

One of the buffers holds the block that the body works on. Copies of blocks that come next go into the others,
and the block before it leaves its own meanwhile.
"""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import ml_dtypes
import numpy as np

from mlirhlo.mosaic.language.blocks import Blocks, sizes_of
from mlirhlo.mosaic.language.control import when
from mlirhlo.mosaic.language.dma import make_async_copy
from mlirhlo.mosaic.language.elements import BOOL, DType, DTypeLike, as_dtype
from mlirhlo.mosaic.language.faults import bad_spec
from mlirhlo.mosaic.language.functions.shapes import full
from mlirhlo.mosaic.language.indexing import Slice, ds
from mlirhlo.mosaic.language.refs import Ref
from mlirhlo.mosaic.language.scratch import MemoryRef, MemorySpace, SemaphoreType
from mlirhlo.mosaic.language.specs import BlockSpec, ShapeDtypeStruct
from mlirhlo.mosaic.language.tree import Node

_HBM = ("any", "hbm")


class BufferType(Enum):
    """Which way the blocks of an array go."""

    INPUT = 1
    OUTPUT = 2
    INPUT_OUTPUT = 3
    MANUAL = 4

    @property
    def is_input(self) -> bool:
        """Whether blocks are copied in."""
        return self in (BufferType.INPUT, BufferType.INPUT_OUTPUT)

    @property
    def is_output(self) -> bool:
        """Whether blocks are copied out."""
        return self in (BufferType.OUTPUT, BufferType.INPUT_OUTPUT)


class BufferedRefBase(Node):
    """What `emit_pipeline` takes as an allocation."""


@dataclass(frozen=True, slots=True, eq=False)
class BufferedRef(BufferedRefBase):
    """The buffers of one array; as `scratch_shapes` and in `run_scoped` the memory that they need.

    A block of one dimension has its buffers one after the other, others have a dimension for them.
    """

    spec: BlockSpec
    buffer_type: BufferType
    buffer_count: int
    """0 where the body works on the array itself, in the memory that it is in."""
    use_lookahead: bool = False
    is_trivial_windowing: bool = False
    """Whether the block is the array: it is copied once, before the first step or after the last."""
    window_ref: MemoryRef | Ref | None = None
    sem_recvs: Any = None
    sem_sends: Any = None

    @classmethod
    def input(cls, spec: BlockSpec, dtype_or_type: Any, buffer_count: int = 2, **more: Any) -> Any:
        """Buffers that blocks are copied into."""
        return cls.create(spec, dtype_or_type, BufferType.INPUT, buffer_count, **more)

    @classmethod
    def output(cls, spec: BlockSpec, dtype_or_type: Any, buffer_count: int = 2, **more: Any) -> Any:
        """Buffers that blocks are copied out of."""
        return cls.create(spec, dtype_or_type, BufferType.OUTPUT, buffer_count, **more)

    @classmethod
    def input_output(
        cls, spec: BlockSpec, dtype_or_type: Any, buffer_count: int = 2, **more: Any
    ) -> Any:
        """Buffers that blocks are copied into before the body works on them, and out of afterwards."""
        return cls.create(spec, dtype_or_type, BufferType.INPUT_OUTPUT, buffer_count, **more)

    @classmethod
    def create(
        cls,
        spec: BlockSpec,
        dtype_or_type: DTypeLike | Any,
        buffer_type: BufferType,
        buffer_count: int,
        grid_rank: int | None = None,
        use_lookahead: bool = False,
        source_memory_space: MemorySpace | str = MemorySpace.ANY,
        tiling: Any = None,
        is_trivial_windowing: bool = False,
    ) -> BufferedRef:
        """Buffers for blocks of `spec` in its memory space, VMEM without one.

        Raises `HloError` HLO0726 for a number of buffers that there cannot be, or another memory.
        """
        del grid_rank, tiling
        space = (spec.memory_space or MemorySpace.VMEM).value
        source = str(getattr(source_memory_space, "value", source_memory_space))
        if space == source or (space in _HBM and source in _HBM):
            return cls(spec, buffer_type, 0, is_trivial_windowing=is_trivial_windowing)
        if space not in ("vmem", "smem"):
            raise bad_spec(
                f"buffers of a pipeline in {space}", "give their BlockSpec VMEM, SMEM or HBM"
            )
        if buffer_count < 1:
            raise bad_spec(f"a pipeline with {buffer_count} buffers", "give one or more")
        if buffer_type.is_output and buffer_count > 2:
            raise bad_spec(
                f"{buffer_count} buffers of an output",
                "an output has one or two: inputs alone are fetched further ahead",
            )
        sizes = tuple(size for size in sizes_of(spec) if size is not None)
        shape = (buffer_count, *sizes)
        if is_trivial_windowing:
            shape = sizes
        elif len(sizes) == 1:
            shape = (buffer_count * sizes[0],)
        is_type = isinstance(dtype_or_type, ShapeDtypeStruct | Ref | np.ndarray)
        dtype = as_dtype(dtype_or_type.dtype if is_type else dtype_or_type)
        counted = SemaphoreType.DMA((buffer_count,))
        return cls(
            spec,
            buffer_type,
            buffer_count,
            use_lookahead,
            is_trivial_windowing,
            MemorySpace(space)(shape, dtype),
            counted if buffer_type.is_input else None,
            counted if buffer_type.is_output else None,
        )

    @classmethod
    def of(
        cls, ref: Any, spec: Any, is_output: bool, grid: Sequence[Any], count: int | None = None
    ) -> BufferedRef:
        """The buffers that a pipeline over a grid makes for an array: `count`, or as many as its spec says.

        Raises `HloError` HLO0726 for a spec that does not fit.
        """
        is_whole = Blocks.of(ref, spec).is_whole(grid)
        if spec.block_shape is None:
            spec = BlockSpec(
                ref.shape,
                spec.index_map,
                memory_space=spec.memory_space,
                pipeline_mode=spec.pipeline_mode,
            )
        mode = spec.pipeline_mode
        if is_output and mode is not None and mode.use_lookahead:
            raise bad_spec("an output does not look ahead", "use_lookahead is for inputs")
        return cls.create(
            spec,
            ref.dtype,
            BufferType.OUTPUT if is_output else BufferType.INPUT,
            count or ((1 if is_whole else 2) if mode is None else mode.buffer_count),
            use_lookahead=mode is not None and mode.use_lookahead,
            source_memory_space=ref.space,
            is_trivial_windowing=is_whole,
        )

    def parts(self) -> list[Any]:
        """Memory and semaphores, as a tree has them."""
        return [part for part in (self.window_ref, self.sem_recvs, self.sem_sends) if part]

    def with_parts(self, parts: list[Any]) -> BufferedRef:
        """The same with others in their places."""
        rest = iter(parts)
        names = ("window_ref", "sem_recvs", "sem_sends")
        return replace(self, **{name: next(rest) for name in names if getattr(self, name)})

    def with_spec(self, spec: BlockSpec) -> BufferedRef:
        """The same buffers for another index map."""
        return replace(self, spec=spec)

    @property
    def is_buffered(self) -> bool:
        """Whether blocks are copied into memory of the pipeline's."""
        return self.buffer_count > 0

    @property
    def is_input(self) -> bool:
        """Whether blocks are copied in."""
        return self.buffer_type.is_input

    @property
    def is_output(self) -> bool:
        """Whether blocks are copied out."""
        return self.buffer_type.is_output

    @property
    def is_input_output(self) -> bool:
        """Whether blocks are copied in and out."""
        return self.buffer_type is BufferType.INPUT_OUTPUT

    @property
    def moves(self) -> bool:
        """Whether blocks are copied while the grid runs."""
        return self.is_buffered and not self.is_trivial_windowing

    def at_slot(self, slot: Any, part: tuple[Slice, ...] | None = None) -> Ref:
        """One of the buffers, or a part of it."""
        window = self.window_ref
        assert isinstance(window, Ref)
        if self.is_trivial_windowing:
            return window if part is None else window.at[part]
        sizes = [size for size in sizes_of(self.spec) if size is not None]
        if len(sizes) != 1:
            return window.at[slot if part is None else (slot, *part)]
        (one,) = part or (ds(0, sizes[0]),)
        return window.at[ds(slot * sizes[0] + one.start, one.size)]

    def name_after(self, ref: Ref) -> None:
        """Calls memory that nobody has named after the array, for messages."""
        name = ref.ssa.name_hint
        for part, what in zip(self.parts(), ("blocks", "copies", "copies"), strict=False):
            if name is not None and isinstance(part, Ref) and part.ssa.name_hint is None:
                part.ssa.name_hint = f"{name}_{what}"

    def copy(self, blocks: Blocks, numbers: Sequence[Any], slot: Any, is_out: bool) -> _Copies:
        """The copy of a block into its buffer, or out of it."""
        return _Copies(self, blocks, numbers, slot, is_out)


@dataclass(frozen=True, slots=True, eq=False)
class _Copies:
    """The copy of a block, of the size that the block has at a step."""

    buffered: BufferedRef
    blocks: Blocks
    numbers: Sequence[Any]
    slot: Any
    is_out: bool

    def start(self) -> None:
        """Starts it."""
        self._each("start")

    def wait(self) -> None:
        """Waits for it."""
        self._each("wait")

    def now(self) -> None:
        """Starts it and waits."""
        self._each("start", "wait")

    def _each(self, *verbs: str) -> None:
        buffered = self.buffered
        semaphores = buffered.sem_sends if self.is_out else buffered.sem_recvs

        def one(array: Ref, part: tuple[Any, ...] | None) -> None:
            buffer = buffered.at_slot(self.slot, part)
            source, target = (buffer, array) if self.is_out else (array, buffer)
            copy = make_async_copy(source, target, semaphores.at[self.slot])
            for verb in verbs:
                getattr(copy, verb)()

        if not self.is_out and "start" in verbs:
            self._fill()
        self.blocks.each_part(self.numbers, one)

    def _fill(self) -> None:
        """Before a cut block comes, its buffer is filled with what nobody should use: the body may read what
        the block lacks, if only to drop it, and would find the block before.
        """
        buffer = self.buffered.at_slot(self.slot)

        def fill() -> None:
            buffer[...] = full(buffer.shape, _poison(buffer.dtype), buffer.dtype)

        if buffer.space == "vmem":
            when(self.blocks.is_cut(self.numbers))(fill)


def _poison(dtype: DType) -> Any:
    if dtype == BOOL:
        return 0
    if dtype.kind in "iu" or "int" in dtype.name:
        return int(ml_dtypes.iinfo(dtype).min)
    return np.nan


__all__ = ["BufferType", "BufferedRef", "BufferedRefBase"]
