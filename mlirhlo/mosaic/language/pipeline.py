"""`emit_pipeline`: a loop over blocks within a kernel, with copies beside the work.

Each array has two buffers. While the body works on one, the next block is copied into the other, and
the block before it out of it. A block that stays is not copied again. Of a block that reaches over an end of
the array, what is there is copied; of a bounded slice, as much as its index map says.
"""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import prod
from operator import index as as_index
from typing import Any, TypeAlias

from mlirhlo.mosaic.language.arithmetic import maximum, minimum, where
from mlirhlo.mosaic.language.control import fori_loop, run_scoped, when
from mlirhlo.mosaic.language.dma import axis_index, axis_size, make_async_copy
from mlirhlo.mosaic.language.elements import I32, bits_of
from mlirhlo.mosaic.language.extras import named_scope
from mlirhlo.mosaic.language.faults import bad_spec
from mlirhlo.mosaic.language.grid import num_programs, program_id, within_grid
from mlirhlo.mosaic.language.indexing import Slice, ds, multiple_of, scalar
from mlirhlo.mosaic.language.refs import Ref
from mlirhlo.mosaic.language.scratch import MemorySpace, Scratch, SemaphoreType
from mlirhlo.mosaic.language.shapes import zeros
from mlirhlo.mosaic.language.specs import Blocked, BlockSpec, BoundedSlice, Element, Squeezed
from mlirhlo.mosaic.language.tree import flatten
from mlirhlo.mosaic.language.value import Value, as_value, is_number
from mlirhlo.mosaic.target.memory import tiles_of_indices

_Scope: TypeAlias = "Callable[[str], AbstractContextManager[None]]"


@dataclass(slots=True, eq=False)
class _Stream:
    """One array that goes through the pipeline."""

    ref: Ref
    spec: BlockSpec
    is_output: bool
    sizes: tuple[int | None, ...]
    """Of the block; None for dimensions that the body does not see."""
    counts_elements: bool
    padding: Mapping[int, tuple[int, int]]
    """By dimension, what the array is thought to have in front and behind."""
    bounded: tuple[int, ...]
    """Dimensions whose index map gives a slice."""
    buffers: Any = None
    semaphores: Any = None

    @property
    def shape(self) -> tuple[int, ...]:
        """What the body sees."""
        return tuple(size for size in self.sizes if size is not None)

    @property
    def ragged(self) -> list[int]:
        """Dimensions whose last block the end of the array cuts."""
        return [
            dim
            for dim, size in enumerate(self.sizes)
            if size is not None
            and not self.counts_elements
            and dim not in self.bounded
            and self.ref.shape[dim] % size
        ]

    @property
    def is_partial(self) -> bool:
        """Whether a copy may fill a part of a buffer."""
        return bool(self.ragged or self.padding or self.bounded)

    def block(self, indices: Sequence[Any]) -> tuple[Any, ...]:
        """The block's numbers at a step: one a dimension, then the sizes of bounded slices."""
        if self.spec.index_map is None:
            return (0,) * len(self.sizes)
        found = self.spec.index_map(*indices)
        items = list(found) if isinstance(found, tuple | list) else [found]
        if len(items) != len(self.sizes):
            raise bad_spec(
                f"an index map gives {len(items)} numbers for a block of {len(self.sizes)}"
            )
        counts: list[Any] = []
        for dim, item in enumerate(items):
            if isinstance(item, Slice) != (dim in self.bounded):
                raise bad_spec(
                    f"an index map gives {item!r} for dimension {dim}, which is {self._said(dim)}",
                    "a BoundedSlice takes pl.ds(start, size), other dimensions one number",
                )
            if isinstance(item, Slice):
                items[dim] = item.start
                counts.append(item.size)
        return (*items, *counts)

    def _said(self, dim: int) -> Any:
        block = self.spec.block_shape
        return self.sizes[dim] if block is None else block[dim]

    def _span(self, numbers: Sequence[Any], dim: int) -> tuple[Any, Any, Any] | None:
        """Where a block begins in the array and in the buffer along a dimension, and how much of it is
        there; None where that is the same at every step.
        """
        size, total = self.sizes[dim], self.ref.shape[dim]
        if dim in self.bounded:
            count = numbers[len(self.sizes) + self.bounded.index(dim)]
            return numbers[dim], 0, self._tiled(count, dim)
        if dim not in self.padding or size is None:
            return None
        start = numbers[dim] - self.padding[dim][0]
        begin = _most(start, 0)
        count = _least(start + size, total) - begin
        parts = (begin, begin - start, count)
        first, mine, count = (self._tiled(part, dim) for part in parts)
        return first, mine, count

    def _tiled(self, number: Any, dim: int) -> Any:
        """A number with the promise that it is a multiple of the tile, where that has to be so."""
        tile = tiles_of_indices(self.ref.shape, bits_of(self.ref.dtype)).get(dim, 1)
        return multiple_of(number, tile) if isinstance(number, Value) and tile > 1 else number

    def part(self, numbers: Sequence[Any], cut: frozenset[int]) -> tuple[Ref, tuple[Any, ...]]:
        """Where the block is in the array, and what of the buffer it fills; dimensions that are `cut`
        have what is left of the array.
        """
        index: list[Any] = []
        mine: list[Any] = []
        for dim, size in enumerate(self.sizes):
            number = numbers[dim]
            if size is None:
                index.append(number)
                continue
            span = self._span(numbers, dim)
            if span is not None:
                start, at, count = span
                index.append(ds(start, count))
                mine.append(ds(at, count))
                continue
            there = self.ref.shape[dim] % size if dim in cut else size
            index.append(ds(number if self.counts_elements else number * size, there))
            mine.append(ds(0, there))
        return self.ref.at[tuple(index)], tuple(mine)

    def start(self, numbers: Sequence[Any], slot: Any) -> None:
        """Starts the copy of a block into its buffer, or out of it."""
        self._each(numbers, slot, lambda copy: copy.start())

    def wait(self, numbers: Sequence[Any], slot: Any) -> None:
        """Waits for that copy."""
        self._each(numbers, slot, lambda copy: copy.wait())

    def _each(self, numbers: Sequence[Any], slot: Any, do: Callable[[Any], None]) -> None:
        """The copy of the size that the block has at a step: whole, or cut in some dimensions."""
        ragged = self.ragged
        for flags in product((False, True), repeat=len(ragged)):
            is_this: Any = True
            for dim, is_cut in zip(ragged, flags, strict=True):
                size = self.sizes[dim]
                assert size is not None
                last = self.ref.shape[dim] // size
                at_end = numbers[dim] == last if is_cut else numbers[dim] < last
                is_this = _both(is_this, bool(at_end) if is_number(numbers[dim]) else at_end)
            for dim in (*self.padding, *self.bounded):
                # Nothing is copied of a block that lies in the padding, or of no elements.
                span = self._span(numbers, dim)
                is_this = _both(is_this, True if span is None else _is_positive(span[2]))
            cut = frozenset(dim for dim, is_cut in zip(ragged, flags, strict=True) if is_cut)
            when(is_this)(lambda c=cut: do(self._copy(numbers, slot, c)))

    def _copy(self, numbers: Sequence[Any], slot: Any, cut: frozenset[int]) -> Any:
        array, mine = self.part(numbers, cut)
        is_part = bool(cut or self.padding or self.bounded)
        buffer = self.buffers.at[(slot, *mine)] if is_part else self.buffers.at[slot]
        source, target = (buffer, array) if self.is_output else (array, buffer)
        return make_async_copy(source, target, self.semaphores.at[slot])


def _stream(ref: Any, spec: Any, is_output: bool) -> _Stream:
    if not isinstance(ref, Ref) or not isinstance(spec, BlockSpec):
        raise bad_spec("emit_pipeline takes references and one BlockSpec for each")
    block = ref.shape if spec.block_shape is None else spec.block_shape
    if len(block) != ref.ndim:
        raise bad_spec(f"a block of {len(block)} dimensions for an array of {ref.ndim}")
    sizes: list[int | None] = []
    padding: dict[int, tuple[int, int]] = {}
    bounded: list[int] = []
    for dim, (size, total) in enumerate(zip(block, ref.shape, strict=True)):
        if isinstance(size, Squeezed | None):
            sizes.append(None)
            continue
        if isinstance(size, BoundedSlice):
            bounded.append(dim)
        if isinstance(size, Element) and any(size.padding):
            padding[dim] = size.padding
        sized = isinstance(size, Blocked | Element | BoundedSlice)
        number = as_index(size.block_size if sized else size)
        if number > total + sum(padding.get(dim, ())):
            raise bad_spec(
                f"a block of {number} in dimension {dim}, of size {total}",
                "a block is no larger than its array",
            )
        sizes.append(number)
    if bounded and spec.index_map is None:
        raise bad_spec(
            "a BoundedSlice has no index map", "give one that returns pl.ds(start, size)"
        )
    counts_elements = any(isinstance(size, Element) for size in block)
    return _Stream(ref, spec, is_output, tuple(sizes), counts_elements, padding, tuple(bounded))


def _steps(grid: Sequence[Any]) -> Any:
    """How many a grid has: a number, where Python knows all sizes."""
    found: Any = prod(size for size in grid if is_number(size))
    for size in grid:
        if not is_number(size):
            found = size if is_number(found) and found == 1 else found * size
    return found


def _unflattened(step: Any, grid: Sequence[Any]) -> list[Any]:
    indices: list[Any] = []
    for size in reversed(grid):
        if is_number(size) and size == 1:
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


def _most(one: Any, other: Any) -> Any:
    return max(one, other) if is_number(one) and is_number(other) else maximum(one, other)


def _least(one: Any, other: Any) -> Any:
    return min(one, other) if is_number(one) and is_number(other) else minimum(one, other)


def _is_positive(count: Any) -> Any:
    return bool(count > 0) if is_number(count) else count > 0


def _either(one: Any, other: Any) -> Any:
    if is_number(one):
        return True if one else other
    if is_number(other):
        return True if other else one
    return one | other


def emit_pipeline(
    body: Callable[..., None],
    *,
    grid: Any,
    in_specs: Any = (),
    out_specs: Any = (),
    tiling: Any = None,
    core_axis: int | str | None = None,
    core_axis_name: str | None = None,
    dimension_semantics: Sequence[Any] | None = None,
    trace_scopes: bool = True,
    no_pipelining: bool = False,
) -> Callable[..., None]:
    """A function of references in HBM that runs `body` on their blocks for every step of the grid, of which
    `program_id` tells inside. References, as specs, may stand in tuples, lists and dictionaries; those of
    `scratches=` are given to the body after the blocks.

    The sizes of `grid` may be known when the kernel runs. With `core_axis_name`, the cores of that axis (or of
    dimension `core_axis` of the kernel's grid) share the first parallel dimension of the grid that they
    divide. `tiling` says nothing here: HBM has one. `trace_scopes`: whether profiles and timelines show the
    phases of a step, as `ep_run_kernel`. `no_pipelining`: every copy is waited for at once, in one buffer, to
    see whether the pipeline is at fault.
    Raises `HloError` HLO0726 for specs that do not fit.
    """
    del tiling
    given_sizes: Any = grid if isinstance(grid, Sequence) else [grid]
    sizes = [
        scalar(size, "a size of the grid") if isinstance(size, Value) else as_index(size)
        for size in given_sizes
    ]
    ins, outs = flatten(in_specs)[0], flatten(out_specs)[0]
    specs = [*ins, *outs]
    words = _semantics(dimension_semantics, len(sizes))
    scope: _Scope = named_scope if trace_scopes else _no_scope

    def run(
        *given: Any, allocations: Sequence[Ref] | None = None, scratches: Sequence[Any] = ()
    ) -> None:
        refs, arranged = flatten(given)
        if len(refs) != len(specs):
            raise bad_spec(f"{len(refs)} references for {len(specs)} specs")
        streams = [
            _stream(ref, spec, at >= len(ins))
            for at, (ref, spec) in enumerate(zip(refs, specs, strict=True))
        ]
        own, begins = _share(sizes, words, core_axis if core_axis_name is None else core_axis_name)
        buffers = 1 if no_pipelining and allocations is None else 2

        def step(*blocks: Ref) -> None:
            body(*arranged(list(blocks)), *scratches)

        def scoped(*made: Ref) -> None:
            for at, stream in enumerate(streams):
                stream.buffers, stream.semaphores = made[2 * at], made[2 * at + 1]
                if stream.is_partial and not stream.is_output:
                    # What a cut block lacks is read, if only to be dropped.
                    stream.buffers[...] = zeros((buffers, *stream.shape), stream.ref.dtype)
            run_grid = _one_by_one if no_pipelining else _pipeline
            there = _steps(own) > 0
            # A grid without steps has no first block to fetch.
            when(there)(lambda: run_grid(step, own, begins, streams, scope))

        if allocations is None:
            run_scoped(scoped, *_allocations(streams, buffers))
        elif len(allocations) != 2 * len(streams):
            raise bad_spec(f"{len(allocations)} allocations for {len(streams)} references")
        else:
            scoped(*allocations)

    return run


def _semantics(stated: Sequence[Any] | None, rank: int) -> list[str]:
    words = [str(getattr(word, "value", word)) for word in stated or ["arbitrary"] * rank]
    if len(words) != rank:
        raise bad_spec(f"{len(words)} dimension_semantics for a grid of {rank} dimensions")
    return words


def _share(
    sizes: list[Any], words: Sequence[str], axis: int | str | None
) -> tuple[list[Any], list[Any]]:
    """The grid of one core, and where it begins in the whole one."""
    begins: list[Any] = [0] * len(sizes)
    by_number = isinstance(axis, int)
    cores: Any = 1 if axis is None else num_programs(axis) if by_number else axis_size(axis)
    if axis is None or cores == 1:
        return sizes, begins
    for dim, (size, word) in enumerate(zip(sizes, words, strict=True)):
        if word == "parallel" and is_number(size) and size % cores == 0:
            begins[dim] = (program_id if by_number else axis_index)(axis) * (size // cores)
            return [*sizes[:dim], size // cores, *sizes[dim + 1 :]], begins
    raise bad_spec(
        f"{cores} cores share no dimension of the grid {sizes}",
        "make one parallel in dimension_semantics that they divide",
    )


def _allocations(streams: Sequence[_Stream], count: int = 2) -> list[Scratch]:
    """Buffers and their semaphores for each."""
    made: list[Scratch] = []
    for stream in streams:
        made.append(MemorySpace.VMEM((count, *stream.shape), stream.ref.dtype))
        made.append(SemaphoreType.DMA((count,)))
    return made


def emit_pipeline_with_allocations(
    body: Callable[..., None],
    *,
    grid: Any,
    in_specs: Any = (),
    out_specs: Any = (),
) -> tuple[Callable[..., None], Callable[..., list[Scratch]]]:
    """`emit_pipeline`, and a function of the references that gives the memory it needs, for `run_scoped`:
    pipelines that run one after the other share it by `pipeline(*refs, allocations=…)`.
    """
    specs = [*flatten(in_specs)[0], *flatten(out_specs)[0]]

    def make_allocations(*refs: Any) -> list[Scratch]:
        pairs = zip(flatten(refs)[0], specs, strict=True)
        return _allocations([_stream(ref, spec, False) for ref, spec in pairs])

    pipeline = emit_pipeline(body, grid=grid, in_specs=in_specs, out_specs=out_specs)
    return pipeline, make_allocations


@contextmanager
def _no_scope(_: str) -> Generator[None]:
    yield


def _within(begins: Sequence[Any], indices: Sequence[Any]) -> list[Any]:
    """Where a step of this core is in the whole grid."""
    return [
        index if is_number(begin) and begin == 0 else begin + index
        for begin, index in zip(begins, indices, strict=True)
    ]


def _one_by_one(
    body: Callable[..., None],
    grid: Sequence[Any],
    begins: Sequence[Any],
    streams: Sequence[_Stream],
    scope: _Scope,
) -> None:
    """Blocks in, the body, blocks out, at every step."""

    def copy(now: Sequence[Any], is_output: bool) -> None:
        for stream in streams:
            if stream.is_output == is_output:
                here = stream.block(now)
                stream.start(here, 0)
                stream.wait(here, 0)

    def step(number: Any, _: Any) -> Any:
        now = _within(begins, _unflattened(number, grid))
        copy(now, False)
        with within_grid(now, grid), scope("ep_run_kernel"):
            body(*(stream.buffers.at[0] for stream in streams))
        copy(now, True)
        return ()

    fori_loop(0, _steps(grid), step, ())


def _pipeline(
    body: Callable[..., None],
    grid: Sequence[Any],
    begins: Sequence[Any],
    streams: Sequence[_Stream],
    scope: _Scope,
) -> None:
    total = _steps(grid)

    def at(indices: Sequence[Any]) -> list[Any]:
        return _within(begins, indices)

    def phase(name: str, condition: Any, do: Callable[[], None]) -> None:
        """Something that is done at some steps."""

        def scoped() -> None:
            with scope(name):
                do()

        when(condition)(scoped)

    first = at([0] * len(grid))
    with scope("ep_initialize_0"):
        for stream in streams:
            if not stream.is_output:
                stream.start(stream.block(first), 0)

    def step(number: Any, carried: Any) -> Any:
        # Of each stream: the buffer of this step's block; of outputs also how many went out.
        now = at(_unflattened(number, grid))
        after = at(_unflattened(number + 1, grid))
        before = at(_unflattened(number - 1, grid))
        is_first, is_last = number == 0, number == total - 1
        changes: list[Any] = []
        for stream, (slot, gone, left) in zip(streams, carried, strict=True):
            here = stream.block(now)
            moves = _both(number < total - 1, _differs(stream.block(after), here))
            is_new = _either(is_first, _differs(stream.block(before), here))
            changes.append(moves)
            if stream.is_output:
                # The buffer is free once the copy from it, two blocks ago, is done.
                older = left[0] if left else here
                is_held = _both(is_new, gone > 1)
                phase("ep_wait_out", is_held, partial(stream.wait, older, slot))
                continue
            phase("ep_copy_in", moves, partial(stream.start, stream.block(after), 1 - slot))
            phase("ep_wait_in", is_new, partial(stream.wait, here, slot))
        buffers = (s.buffers.at[slot] for s, (slot, _, _) in zip(streams, carried, strict=True))
        with within_grid(now, grid), scope("ep_run_kernel"):
            body(*buffers)
        results: list[Any] = []
        for stream, (slot, gone, left), moves in zip(streams, carried, changes, strict=True):
            leaves = _either(is_last, moves)
            if stream.is_output:
                here = stream.block(now)
                phase("ep_copy_out", leaves, partial(stream.start, here, slot))
                gone = _counted(gone, leaves)
                left = _gone_on(left, here, leaves)
            results.append((_turned(slot, moves), gone, left))
        return results

    def _counted(gone: Any, leaves: Any) -> Any:
        return gone + (int(leaves) if is_number(leaves) else as_value(leaves).astype(I32))

    def _turned(slot: Any, moves: Any) -> Any:
        return (1 - slot if moves else slot) if is_number(moves) else where(moves, 1 - slot, slot)

    def _gone_on(left: Any, here: Sequence[Any], leaves: Any) -> Any:
        """The last two blocks that went out, where their sizes may differ."""
        if not left or leaves is False:
            return left
        _, newer = left
        given = [as_value(item, I32) for item in here]
        if leaves is True:
            return newer, given
        pairs = [(newer, left[0]), (given, newer)]
        return tuple(
            [where(leaves, a, b) for a, b in zip(now, before, strict=True)] for now, before in pairs
        )

    def _none_left(stream: _Stream) -> Any:
        zeros = [as_value(0, I32) for _ in (*stream.sizes, *stream.bounded)]
        return (zeros, zeros) if stream.is_output and stream.is_partial else ()

    start = [(as_value(0, I32), as_value(0, I32), _none_left(one)) for one in streams]
    done: list[tuple[Value, Value, Any]] = fori_loop(0, total, step, start)
    last = at([size - 1 for size in grid])
    with scope("ep_finalize"):
        for stream, (slot, gone, left) in zip(streams, done, strict=True):
            if stream.is_output:
                here = stream.block(last)
                older = left[0] if left else here
                when(gone > 1)(lambda s=stream, h=older, at=slot: s.wait(h, 1 - at))
                stream.wait(here, slot)
