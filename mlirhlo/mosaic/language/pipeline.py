"""`emit_pipeline`: a loop over blocks within a kernel, with copies beside the work.

Each array has two buffers. While the body works on one, the next block is copied into the other, and
the block before it out of it. A block that stays is not copied again.
"""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import index as as_index
from typing import Any

from mlirhlo.mosaic.language.arithmetic import where
from mlirhlo.mosaic.language.control import fori_loop, run_scoped, when
from mlirhlo.mosaic.language.dma import make_async_copy
from mlirhlo.mosaic.language.elements import I32
from mlirhlo.mosaic.language.faults import bad_spec
from mlirhlo.mosaic.language.indexing import ds
from mlirhlo.mosaic.language.refs import Ref
from mlirhlo.mosaic.language.scratch import MemorySpace, SemaphoreType
from mlirhlo.mosaic.language.specs import Blocked, BlockSpec, Element, Squeezed
from mlirhlo.mosaic.language.value import Value, as_value, is_number


@dataclass(slots=True, eq=False)
class _Stream:
    """One array that goes through the pipeline."""

    ref: Ref
    spec: BlockSpec
    is_output: bool
    sizes: tuple[int | None, ...]
    """Of the block; None for dimensions that the body does not see."""
    counts_elements: bool
    buffers: Any = None
    semaphores: Any = None

    @property
    def shape(self) -> tuple[int, ...]:
        """What the body sees."""
        return tuple(size for size in self.sizes if size is not None)

    def block(self, indices: Sequence[Any]) -> tuple[Any, ...]:
        """The block's numbers at a step."""
        if self.spec.index_map is None:
            return (0,) * len(self.sizes)
        found = self.spec.index_map(*indices)
        items = tuple(found) if isinstance(found, tuple | list) else (found,)
        if len(items) != len(self.sizes):
            raise bad_spec(
                f"an index map gives {len(items)} numbers for a block of {len(self.sizes)}"
            )
        return items

    def part(self, numbers: Sequence[Any]) -> Ref:
        """Where the block is in the array."""
        index: list[Any] = []
        for number, size in zip(numbers, self.sizes, strict=True):
            if size is None:
                index.append(number)
            else:
                index.append(ds(number if self.counts_elements else number * size, size))
        return self.ref.at[tuple(index)]

    def copy(self, numbers: Sequence[Any], slot: Any) -> Any:
        """The copy of a block into its buffer, or out of it."""
        buffer, array, semaphore = (
            self.buffers.at[slot],
            self.part(numbers),
            self.semaphores.at[slot],
        )
        source, target = (buffer, array) if self.is_output else (array, buffer)
        return make_async_copy(source, target, semaphore)


def _stream(ref: Any, spec: Any, is_output: bool) -> _Stream:
    if not isinstance(ref, Ref) or not isinstance(spec, BlockSpec):
        raise bad_spec("emit_pipeline takes references and one BlockSpec for each")
    block = ref.shape if spec.block_shape is None else spec.block_shape
    if len(block) != ref.ndim:
        raise bad_spec(f"a block of {len(block)} dimensions for an array of {ref.ndim}")
    sizes: list[int | None] = []
    for dim, (size, total) in enumerate(zip(block, ref.shape, strict=True)):
        if isinstance(size, Squeezed | None):
            sizes.append(None)
            continue
        number = as_index(size.block_size if isinstance(size, Blocked | Element) else size)
        if total % number:
            raise bad_spec(
                f"blocks of {number} do not divide dimension {dim}, of size {total}",
                "in emit_pipeline blocks are whole; ragged ones are for the grid of kernel_call",
            )
        sizes.append(number)
    return _Stream(ref, spec, is_output, tuple(sizes), any(isinstance(s, Element) for s in block))


def _unflattened(step: Any, grid: Sequence[int]) -> list[Any]:
    indices: list[Any] = []
    for size in reversed(grid):
        if size == 1:
            indices.append(0)
            continue
        indices.append(step % size)
        step = step // size
    return indices[::-1]


def _differs(one: Sequence[Any], other: Sequence[Any]) -> Any:
    """Whether two blocks are different ones: a boolean of Python where it can tell."""
    found: Any = False
    for a, b in zip(one, other, strict=True):
        if is_number(a) and is_number(b):
            found = True if a != b else found
        elif found is not True:
            found = (as_value(a) != b) if found is False else found | (as_value(a) != b)
    return found


def _both(one: Any, other: Any) -> Any:
    if is_number(one):
        return other if one else False
    if is_number(other):
        return one if other else False
    return one & other


def _either(one: Any, other: Any) -> Any:
    if is_number(one):
        return True if one else other
    if is_number(other):
        return True if other else one
    return one | other


def emit_pipeline(
    body: Callable[..., None],
    *,
    grid: Sequence[int] | int,
    in_specs: Sequence[BlockSpec] = (),
    out_specs: Sequence[BlockSpec] | BlockSpec = (),
) -> Callable[..., None]:
    """A function of references in HBM that runs `body` on their blocks for every step of the grid.

    Raises `HloError` HLO0726 for specs that do not fit.
    """
    sizes = [as_index(size) for size in (grid if isinstance(grid, Sequence) else [grid])]
    outs = [out_specs] if isinstance(out_specs, BlockSpec) else list(out_specs)
    specs = [*in_specs, *outs]

    def run(*refs: Ref) -> None:
        if len(refs) != len(specs):
            raise bad_spec(f"{len(refs)} references for {len(specs)} specs")
        streams = [
            _stream(ref, spec, at >= len(in_specs))
            for at, (ref, spec) in enumerate(zip(refs, specs, strict=True))
        ]
        memory: list[Any] = []
        for stream in streams:
            memory.append(MemorySpace.VMEM((2, *stream.shape), stream.ref.dtype))
            memory.append(SemaphoreType.DMA((2,)))

        def scoped(*own: Ref) -> None:
            for at, stream in enumerate(streams):
                stream.buffers, stream.semaphores = own[2 * at], own[2 * at + 1]
            _pipeline(body, sizes, streams)

        run_scoped(scoped, *memory)

    return run


def _pipeline(body: Callable[..., None], grid: Sequence[int], streams: Sequence[_Stream]) -> None:
    total = 1
    for size in grid:
        total *= size
    if not total:
        return
    first = [0] * len(grid)
    for stream in streams:
        if not stream.is_output:
            stream.copy(stream.block(first), 0).start()

    def step(number: Any, carried: Any) -> Any:
        # Of each stream: the buffer of this step's block; of outputs also how many went out.
        now = _unflattened(number, grid)
        after = _unflattened(number + 1, grid)
        before = _unflattened(number - 1, grid)
        is_first, is_last = number == 0, number == total - 1
        changes: list[Any] = []
        for stream, (slot, gone) in zip(streams, carried, strict=True):
            here = stream.block(now)
            moves = _both(number < total - 1, _differs(stream.block(after), here))
            is_new = _either(is_first, _differs(stream.block(before), here))
            changes.append(moves)
            if stream.is_output:
                # The buffer is free once the copy from it, two blocks ago, is done.
                when(_both(is_new, gone > 1))(
                    lambda s=stream, h=here, at=slot: s.copy(h, at).wait()
                )
                continue
            following = stream.block(after)
            when(moves)(lambda s=stream, f=following, at=slot: s.copy(f, 1 - at).start())
            when(is_new)(lambda s=stream, h=here, at=slot: s.copy(h, at).wait())
        body(*(s.buffers.at[slot] for s, (slot, _) in zip(streams, carried, strict=True)))
        results: list[Any] = []
        for stream, (slot, gone), moves in zip(streams, carried, changes, strict=True):
            leaves = _either(is_last, moves)
            if stream.is_output:
                here = stream.block(now)
                when(leaves)(lambda s=stream, h=here, at=slot: s.copy(h, at).start())
                gone = _counted(gone, leaves)
            results.append((_turned(slot, moves), gone))
        return results

    def _counted(gone: Any, leaves: Any) -> Any:
        return gone + (int(leaves) if is_number(leaves) else as_value(leaves).astype(I32))

    def _turned(slot: Any, moves: Any) -> Any:
        return (1 - slot if moves else slot) if is_number(moves) else where(moves, 1 - slot, slot)

    start = [(as_value(0, I32), as_value(0, I32)) for _ in streams]
    done: list[tuple[Value, Value]] = fori_loop(0, total, step, start)
    last = [size - 1 for size in grid]
    for stream, (slot, gone) in zip(streams, done, strict=True):
        if stream.is_output:
            here = stream.block(last)
            when(gone > 1)(lambda s=stream, h=here, at=slot: s.copy(h, 1 - at).wait())
            stream.copy(here, slot).wait()
