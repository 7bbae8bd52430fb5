"""`emit_pipeline`: a loop over blocks within a kernel, with copies beside the work.

Each array has two buffers, or as many as its `pipeline_mode` says. While the body works on one, blocks that come
next are copied into the others, and the block before it out of its own. A block that stays is not copied again, and
one that is the whole array is copied once. Of a block that reaches over an end of the array, what is there is
copied; of a bounded slice, as much as its index map says.
"""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from math import prod
from operator import index as as_index
from typing import Any, TypeAlias

from mlirhlo.mosaic.language.blocks import Blocks, both, differs, either
from mlirhlo.mosaic.language.buffers import BufferedRef
from mlirhlo.mosaic.language.control import fori_loop, run_scoped, when, while_loop
from mlirhlo.mosaic.language.dma import axis_index, axis_size
from mlirhlo.mosaic.language.elements import I32
from mlirhlo.mosaic.language.faults import bad_spec
from mlirhlo.mosaic.language.functions.arithmetic import where
from mlirhlo.mosaic.language.functions.extras import named_scope
from mlirhlo.mosaic.language.grid import num_programs, program_id, within_grid
from mlirhlo.mosaic.language.indexing import scalar
from mlirhlo.mosaic.language.refs import Ref
from mlirhlo.mosaic.language.specs import no_block_spec
from mlirhlo.mosaic.language.tree import flatten
from mlirhlo.mosaic.language.value import Value, as_value, is_number

_Scope: TypeAlias = "Callable[[str], AbstractContextManager[None]]"


def _steps(grid: Sequence[Any]) -> Any:
    """How many a grid has: a number, where Python knows all sizes."""
    found: Any = prod(size for size in grid if is_number(size))
    for size in grid:
        if not is_number(size):
            found = size if is_number(found) and found == 1 else found * size
    return found


def _unflattened(step: Any, grid: Sequence[Any]) -> list[Any]:
    if is_number(step) and not all(map(is_number, grid)):
        step = as_value(step, I32)
    indices: list[Any] = []
    for size in reversed(grid):
        if is_number(size) and size == 1:
            indices.append(0)
            continue
        indices.append(step % size)
        step = step // size
    return indices[::-1]


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
    `scratches=` are given to the body after the blocks, and `body_prologue=` is called before it.

    Blocks are in VMEM, or in the memory space of their spec; an array that is there already is not copied, and of
    one with `no_block_spec` the body gets None. `allocations=` are buffers that the caller has: `BufferedRef`s,
    or what `emit_pipeline_with_allocations` makes; they have the specs.

    The sizes of `grid` may be known when the kernel runs. With `core_axis_name`, the cores of that axis (or of
    dimension `core_axis` of the kernel's grid) share a parallel dimension of the grid: the first that they divide,
    else the longest. `tiling` says nothing here: HBM has one. `trace_scopes`: whether profiles and timelines show
    the phases of a step, as `ep_run_kernel`. `no_pipelining`: every copy is waited for at once, in one buffer, to
    see whether the pipeline is at fault.
    Raises `HloError` HLO0726 for specs that do not fit.
    """
    del tiling
    given_sizes: Any = grid if isinstance(grid, Sequence) else [grid]
    sizes = [
        scalar(size, "a size of the grid") if isinstance(size, Value) else as_index(size)
        for size in given_sizes
    ]
    if any(is_number(size) and size < 1 for size in sizes):
        raise bad_spec(f"a pipeline over the grid {sizes}", "each of its sizes is one or more")
    ins, outs = flatten(in_specs)[0], flatten(out_specs)[0]
    specs = [*ins, *outs]
    words = _semantics(dimension_semantics, len(sizes))
    scope: _Scope = named_scope if trace_scopes else _no_scope

    def run(
        *given: Any,
        allocations: Any = None,
        scratches: Sequence[Any] = (),
        body_prologue: Callable[[], None] | None = None,
    ) -> None:
        refs, arranged = flatten(given)
        if allocations is None:
            made = _buffers(refs, specs, len(ins), sizes, 1 if no_pipelining else None)
            run_scoped(
                lambda *own: run(
                    *given, allocations=own, scratches=scratches, body_prologue=body_prologue
                ),
                *made,
            )
            return
        buffered = _listed(allocations)
        if len(buffered) != len(refs):
            raise bad_spec(f"{len(buffered)} allocations for {len(refs)} references")
        streams = [
            None if one is None else _Stream(Blocks.of(ref, one.spec), one)
            for ref, one in zip(refs, buffered, strict=True)
        ]
        for ref, one in zip(refs, buffered, strict=True):
            if one is not None:
                one.name_after(ref)
        own, begins = _share(sizes, words, core_axis if core_axis_name is None else core_axis_name)

        def step(*blocks: Ref | None) -> None:
            if body_prologue is not None:
                body_prologue()
            body(*arranged(list(blocks)), *scratches)

        pipeline = _Pipeline(step, own, begins, streams, scope)
        # A grid without steps has no first block to fetch.
        there = _steps(own) > 0
        when(there)(pipeline.run_one_by_one if no_pipelining else pipeline.run)

    return run


def _buffers(
    refs: Sequence[Any], specs: Sequence[Any], inputs: int, grid: Sequence[Any], count: int | None
) -> list[BufferedRef | None]:
    """What a pipeline needs for each array; with a `count`, that number of buffers."""
    if len(refs) != len(specs):
        raise bad_spec(f"{len(refs)} references for {len(specs)} specs")
    return [
        None if spec is no_block_spec else BufferedRef.of(ref, spec, at >= inputs, grid, count)
        for at, (ref, spec) in enumerate(zip(refs, specs, strict=True))
    ]


def _listed(allocations: Any) -> list[BufferedRef | None]:
    found: list[BufferedRef | None] = []
    for one in allocations:
        if isinstance(one, tuple | list):
            found += _listed(one)
        elif one is None or isinstance(one, BufferedRef):
            found.append(one)
        else:
            raise bad_spec(
                f"{one!r} is no allocation of a pipeline",
                "give pltpu.BufferedRef, or what make_allocations returned",
            )
    return found


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
    parallel = [dim for dim, word in enumerate(words) if word == "parallel"]
    known = [dim for dim in parallel if is_number(sizes[dim])]
    even = [dim for dim in known if sizes[dim] % cores == 0]
    if not parallel or (not known and len(parallel) > 1):
        raise bad_spec(
            f"{cores} cores share no dimension of the grid {sizes}",
            "make one parallel in dimension_semantics",
        )
    dim = even[0] if even else max(known, key=lambda dim: sizes[dim]) if known else parallel[0]
    core = (program_id if by_number else axis_index)(axis)
    each, more = sizes[dim] // cores, sizes[dim] % cores
    if is_number(more) and more == 0:
        own, begins[dim] = each, core * each
    else:
        # The first cores have a step more.
        own = where(core < more, each + 1, each)
        begins[dim] = where(core < more, core * (each + 1), core * each + more)
    return [*sizes[:dim], own, *sizes[dim + 1 :]], begins


def emit_pipeline_with_allocations(
    body: Callable[..., None],
    *,
    grid: Any,
    in_specs: Any = (),
    out_specs: Any = (),
) -> tuple[Callable[..., None], Callable[..., Sequence[BufferedRef | None]]]:
    """`emit_pipeline`, and a function of the references that gives the memory it needs, for `run_scoped`:
    pipelines that run one after the other share it by `pipeline(*refs, allocations=…)`.
    """
    ins, outs = flatten(in_specs)[0], flatten(out_specs)[0]
    sizes: Any = grid if isinstance(grid, Sequence) else [grid]

    def make_allocations(*refs: Any) -> Sequence[BufferedRef | None]:
        return _buffers(flatten(refs)[0], [*ins, *outs], len(ins), sizes, None)

    pipeline = emit_pipeline(body, grid=grid, in_specs=in_specs, out_specs=out_specs)
    return pipeline, make_allocations


@contextmanager
def _no_scope(_: str) -> Generator[None]:
    yield


@dataclass(frozen=True, slots=True, eq=False)
class _Stream:
    """An array that goes through a pipeline.

    What the loop carries of it: the buffer of this step's block; with more than two buffers, or with lookahead,
    also how many hold a block; with lookahead the step up to which blocks were fetched.
    """

    blocks: Blocks
    buffered: BufferedRef

    @property
    def count(self) -> int:
        """Of buffers."""
        return self.buffered.buffer_count

    @property
    def looks_ahead(self) -> bool:
        """Whether as many blocks are fetched as buffers are free, however many steps ahead."""
        return self.buffered.use_lookahead and self.buffered.is_input

    def begin(self) -> list[Any]:
        """What the loop starts with."""
        if not self.buffered.moves:
            return []
        slot = [0] if self.count > 1 else []
        counted = self.buffered.is_input and (self.count > 2 or self.looks_ahead)
        return [*slot, *([1] if counted else []), *([0] if self.looks_ahead else [])]

    def slot(self, carried: Sequence[Any]) -> Any:
        """The buffer of this step's block."""
        return carried[0] if self.count > 1 else 0

    def free(self, carried: Sequence[Any]) -> Any:
        """The buffer for the next block that is fetched."""
        if self.count == 1:
            return 0
        if len(carried) == 1:
            return _other(carried[0])
        after = carried[0] + carried[1]
        return where(after >= self.count, after - self.count, after)

    def moved(self, carried: Sequence[Any], moves: Any) -> list[Any]:
        """What is carried to the next step, which has another block where it `moves`."""
        if not carried:
            return []
        now = list(carried)
        if self.count > 1:
            after = _other(now[0])
            if self.count > 2:
                after = where(now[0] == self.count - 1, 0, now[0] + 1)
            now[0] = (
                (after if moves else now[0]) if is_number(moves) else where(moves, after, now[0])
            )
        at = 1 if self.count > 1 else 0
        if len(now) > at:
            now[at] = now[at] - _counted(moves)
        return now


def _other(slot: Any) -> Any:
    return 1 - slot


def _counted(condition: Any) -> Any:
    return int(condition) if is_number(condition) else as_value(condition).astype(I32)


@dataclass(frozen=True, slots=True, eq=False)
class _Pipeline:
    body: Callable[..., None]
    grid: Sequence[Any]
    begins: Sequence[Any]
    """Where the grid of this core begins in the whole one."""
    streams: Sequence[_Stream | None]
    scope: _Scope

    @property
    def present(self) -> list[_Stream]:
        """Arrays of which the body sees something."""
        return [stream for stream in self.streams if stream is not None]

    def at(self, step: Any) -> list[Any]:
        """Where a step of this core is in the whole grid."""
        indices = [0] * len(self.grid) if is_number(step) and step == 0 else None
        return [
            index if is_number(begin) and begin == 0 else begin + index
            for begin, index in zip(
                self.begins, indices or _unflattened(step, self.grid), strict=True
            )
        ]

    def phase(self, name: str, condition: Any, do: Callable[[], None]) -> None:
        """Something that is done at some steps."""

        def scoped() -> None:
            with self.scope(name):
                do()

        when(condition)(scoped)

    def call(self, now: Sequence[Any], slots: Sequence[Any]) -> None:
        """The body, on this step's blocks."""
        seen: list[Ref | None] = []
        for stream, slot in zip(self.streams, slots, strict=True):
            if stream is None:
                seen.append(None)
            elif stream.buffered.is_buffered:
                seen.append(stream.buffered.at_slot(slot))
            else:
                seen.append(stream.blocks.view(stream.blocks.numbers(now)))
        with within_grid(now, self.grid), self.scope("ep_run_kernel"):
            self.body(*seen)

    def whole(self, is_out: bool) -> None:
        """Copies arrays that are one block, before the first step or after the last."""
        for stream in self.present:
            buffered, blocks = stream.buffered, stream.blocks
            goes = buffered.is_output if is_out else buffered.is_input
            if buffered.is_trivial_windowing and buffered.is_buffered and goes:
                buffered.copy(blocks, blocks.numbers(self.at(0)), 0, is_out).now()

    def run_one_by_one(self) -> None:
        """Blocks in, the body, blocks out, at every step."""

        def copy(now: Sequence[Any], is_out: bool) -> None:
            for stream in self.present:
                buffered, blocks = stream.buffered, stream.blocks
                goes = buffered.is_output if is_out else buffered.is_input
                if buffered.is_buffered and goes:
                    buffered.copy(blocks, blocks.numbers(now), 0, is_out).now()

        def step(number: Any, _: Any) -> Any:
            now = self.at(number)
            copy(now, False)
            self.call(now, [0] * len(self.streams))
            copy(now, True)
            return ()

        fori_loop(0, _steps(self.grid), step, ())

    def run(self) -> None:
        """Blocks in and out beside the body."""
        self.whole(False)
        total = _steps(self.grid)
        start = [[] if one is None else one.begin() for one in self.streams]
        self.initialize(start, total)

        def step(number: Any, carried: Any) -> Any:
            now, next_, last = self.at(number), self.at(number + 1), self.at(number - 1)
            is_first, is_last = number == 0, number == total - 1
            has_next = number < total - 1
            moves: list[Any] = []
            left: list[Any] = []
            heres: list[Any] = []
            for stream, state in zip(self.streams, carried, strict=True):
                if stream is None or not stream.buffered.moves:
                    moves.append(False)
                    left.append(())
                    heres.append(())
                    continue
                here, after, before = (stream.blocks.numbers(at) for at in (now, next_, last))
                heres.append(here)
                moves.append(both(has_next, differs(after, here)))
                is_other = differs(before, here)
                is_new = either(is_first, is_other)
                left.append(
                    (both(number > 0, is_other), before) if stream.buffered.is_output else ()
                )
                if stream.buffered.is_input_output:
                    # The buffer of the block before is the one that the next block is fetched into.
                    self.wait_out(stream, state, *left[-1])
                if stream.buffered.is_input:
                    self.fetch(stream, state, number, total, (is_new, here), (moves[-1], after))
                    arrived = stream.buffered.copy(stream.blocks, here, stream.slot(state), False)
                    self.phase("ep_wait_in", is_new, arrived.wait)
            slots = [
                None if one is None else one.slot(state)
                for one, state in zip(self.streams, carried, strict=True)
            ]
            self.call(now, slots)
            results: list[Any] = []
            for stream, state, change, here, before in zip(
                self.streams, carried, moves, heres, left, strict=True
            ):
                if stream is None:
                    results.append([])
                    continue
                if stream.buffered.moves and stream.buffered.is_output:
                    leaving = stream.buffered.copy(stream.blocks, here, stream.slot(state), True)
                    do = leaving.start if stream.count > 1 else leaving.now
                    self.phase("ep_copy_out", either(is_last, change), do)
                    if not stream.buffered.is_input:
                        self.wait_out(stream, state, *before)
                results.append(stream.moved(state, change))
            return results

        carried: Any = [[as_value(item, I32) for item in state] for state in start]
        done: Any = fori_loop(0, total, step, carried)
        with self.scope("ep_finalize"):
            for stream, state in zip(self.streams, done, strict=True):
                if stream is None or not (stream.buffered.moves and stream.buffered.is_output):
                    continue
                if stream.count > 1:
                    last = stream.blocks.numbers(self.at(total - 1))
                    stream.buffered.copy(stream.blocks, last, stream.slot(state), True).wait()
        self.whole(True)

    def initialize(self, start: list[list[Any]], total: Any) -> None:
        """Fetches the blocks of the first steps, and counts them."""
        for stream, state in zip(self.streams, start, strict=True):
            if stream is None or not (stream.buffered.moves and stream.buffered.is_input):
                continue
            if stream.count == 1 and not stream.looks_ahead:
                continue
            before = stream.blocks.numbers(self.at(0))
            with self.scope("ep_initialize_0"):
                stream.buffered.copy(stream.blocks, before, 0, False).start()
            for step in range(1, 1 if stream.looks_ahead else stream.count - 1):
                if is_number(total) and step >= total:
                    break
                numbers = stream.blocks.numbers(self.at(step))
                is_there = step < total if is_number(total) else as_value(step, I32) < total
                is_other = both(is_there, differs(numbers, before))
                coming = stream.buffered.copy(stream.blocks, numbers, stream.free(state), False)
                self.phase(f"ep_initialize_{step}", is_other, coming.start)
                state[1] = state[1] + _counted(is_other)
                before = numbers

    def fetch(
        self,
        stream: _Stream,
        state: list[Any],
        number: Any,
        total: Any,
        here: tuple[Any, Any],
        after: tuple[Any, Any],
    ) -> None:
        """Starts the copies of blocks for which buffers are free; `here` and `after` are whether this
        step and the next one have another block than the step before, and which.
        """
        blocks, count = stream.blocks, stream.count
        if stream.looks_ahead:
            self.fetch_ahead(stream, state, total)
            return
        is_other, numbers = here if count == 1 else after
        if count > 2:
            ahead = number + (count - 1)
            numbers = blocks.numbers(self.at(ahead))
            other = differs(numbers, blocks.numbers(self.at(ahead - 1)))
            is_other = both(ahead < total, other)
        coming = stream.buffered.copy(blocks, numbers, stream.free(state), False)
        self.phase("ep_copy_in", is_other, coming.start)
        if count > 2:
            state[1] = state[1] + _counted(is_other)

    def fetch_ahead(self, stream: _Stream, state: list[Any], total: Any) -> None:
        """As many blocks as there are free buffers, as far ahead as they are."""
        *slot, held, reached = state

        def is_room(carried: Any) -> Any:
            held, reached = carried
            return (held < stream.count) & (reached + 1 < total)

        def further(carried: Any) -> Any:
            held, reached = carried
            numbers = stream.blocks.numbers(self.at(reached + 1))
            is_other = differs(numbers, stream.blocks.numbers(self.at(reached)))
            free = stream.free([*slot, held]) if slot else 0
            coming = stream.buffered.copy(stream.blocks, numbers, free, False)
            self.phase("ep_copy_in", is_other, coming.start)
            return held + _counted(is_other), reached + 1

        state[-2:] = while_loop(is_room, further, (held, reached))

    def wait_out(
        self, stream: _Stream, state: Sequence[Any], has_left: Any, gone: Sequence[Any]
    ) -> None:
        """Waits until the block before this one is in its array."""
        if stream.count > 1:
            slot = _other(stream.slot(state))
            copy = stream.buffered.copy(stream.blocks, gone, slot, True)
            self.phase("ep_wait_out", has_left, copy.wait)
