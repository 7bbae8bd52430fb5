"""Warp groups, blocks and clusters as the interpreter runs them: whose turn it is, what they wait for."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from mlirhlo.diagnostics import error
from mlirhlo.mosaic.interpreter.ops import arith, math, vector, vector_shape
from mlirhlo.mosaic.interpreter.registry import MEANINGS
from mlirhlo.mosaic.target.places import source_place

_REGISTERED = (arith, math, vector, vector_shape)
"""Modules whose operations have their meanings from here on."""
Steps = Generator[None, None, Any]
ENDS = frozenset({"scf.yield", "func.return", "scf.condition"})


@dataclass(eq=False)
class BarrierState:
    """An mbarrier: its phase ends when all have arrived and all bytes that were announced have."""

    count: int = 0
    pending: int = 0
    phase: int = 0
    bytes: int = 0

    def arrive(self, bytes_: int = 0) -> None:
        """One arrival, which announces bytes."""
        self.pending -= 1
        self.receive(-bytes_)

    def receive(self, bytes_: int) -> None:
        """Bytes of a copy have arrived."""
        self.bytes -= bytes_
        if self.pending == 0 and self.bytes == 0:
            self.phase += 1
            self.pending = self.count


@dataclass(eq=False)
class Meeting:
    """Where a number of warp groups meet."""

    members: int
    here: int = 0
    round: int = 0

    def arrive(self) -> int:
        before = self.round
        self.here += 1
        if self.here == self.members:
            self.here, self.round = 0, self.round + 1
        return before


@dataclass(eq=False)
class BlockState:
    """One block: its shared memory and barriers, by their offsets."""

    number: int
    rank: int
    meeting: Meeting
    memory: dict[int, Any] = field(default_factory=dict[int, Any])
    barriers: dict[int, Any] = field(default_factory=dict[int, Any])

    def buffer(self, offset: int, shape: tuple[int, ...], dtype: Any) -> Any:
        """Shared memory from an offset on; of barriers (no `dtype`) their states."""
        if dtype is None:
            if offset not in self.barriers:
                self.barriers[offset] = np.array(
                    [BarrierState() for _ in range(prod(shape))], object
                )
            return self.barriers[offset]
        found = self.memory.get(offset)
        if found is None or found.shape != shape or found.dtype != dtype:
            found = self.memory[offset] = unwritten(shape, dtype)
        return found


@dataclass(eq=False)
class View:
    """A part of some memory: an array, and for shared memory where it stands."""

    array: Any
    offset: int = -1
    index: Any = ()

    def at(self, index: Any) -> View:
        """A part of it."""
        return View(self.array[index], self.offset, (*self.index, index))


class WarpGroup:
    """One warp group running."""

    def __init__(self, run: Run, block: BlockState, number: int) -> None:
        self.run, self.block, self.number = run, block, number
        self.env: dict[SSAValue, Any] = {}
        self.waits_at: Operation | None = None

    def go(self, block: Block) -> Steps:
        """Runs a block of the module; what its terminator has."""
        env = self.env
        for op in block.ops:
            name = op.name
            if name in ENDS:
                return tuple(env[v] for v in op.operands)
            inside = self.run.control.get(name)
            if inside is not None:
                results = yield from inside(self, op)
            else:
                found = self.run.operations.get(name)
                operands = [env[v] for v in op.operands]
                if found is not None:
                    results = found(self, op, operands)
                else:
                    results = self.run.meaning(op)(None, *operands)
                    results = results if isinstance(results, tuple) else (results,)
            for result, value in zip(op.results, results or (), strict=False):
                env[result] = value
        return ()


class Run:
    """One launch."""

    def __init__(
        self,
        kernel: Any,
        arrays: Sequence[Any],
        control: Mapping[str, Control],
        operations: Mapping[str, Meaning],
    ) -> None:
        self.kernel = kernel
        self.control, self.operations = control, operations
        (self.function,) = kernel.module.ops
        self.meanings: dict[Operation, Any] = {}
        self.arrays = [np.ascontiguousarray(a).copy() for a in arrays]
        self.arrays += [np.zeros(one.shape, one.dtype) for one in kernel.results]
        self.blocks: list[BlockState] = []

    def meaning(self, op: Operation) -> Any:
        """What an operation of arithmetic does."""
        found = self.meanings.get(op)
        if found is None:
            prepare = MEANINGS.get(op.name)
            if prepare is None:
                raise error(
                    "HLO0757", f"{op.name} has no meaning in a kernel for GPUs", source_place(op)
                )
            found = self.meanings[op] = prepare(op, None)  # type: ignore[arg-type]
        return found

    def all(self) -> list[Any]:
        """Runs every cluster; the results."""
        launch = self.kernel.launch
        size = launch.cluster_size
        body = self.function.body.blocks[0]
        with np.errstate(all="ignore"):
            for first in range(0, launch.blocks, size):
                self._cluster(first, size, launch.num_threads, body)
        return self.arrays[len(self.kernel.inputs) :]

    def _cluster(self, first: int, size: int, groups_: int, body: Block) -> None:
        self.meeting = Meeting(size * groups_)
        self.blocks = [BlockState(first + i, i, Meeting(groups_)) for i in range(size)]
        running: list[tuple[WarpGroup, Steps]] = []
        for block in self.blocks:
            for number in range(groups_):
                group = WarpGroup(self, block, number)
                for argument, array in zip(body.args, self.arrays, strict=True):
                    group.env[argument] = View(array)
                running.append((group, group.go(body)))
        state: Any = None
        while running:
            still = []
            for group, steps in running:
                try:
                    next(steps)
                    still.append((group, steps))
                except StopIteration:
                    continue
            if len(still) == len(running):
                now = [(g.waits_at, self._progress()) for g, _ in still]
                if now == state:
                    raise self._deadlock(still[0][0])
                state = now
            running = still

    def _progress(self) -> Any:
        states = [b for block in self.blocks for row in block.barriers.values() for b in row]
        return [(b.pending, b.phase, b.bytes) for b in states], self.meeting.round

    def _deadlock(self, group: WarpGroup) -> Exception:
        at = group.waits_at
        return error(
            "HLO0703",
            f"warp group {group.number} of block {group.block.number} waits for a barrier whose phase never ends",
            None if at is None else source_place(at),
            help="every phase needs as many arrivals as num_arrivals says, each copy is one",
        )


def unwritten(shape: Sequence[int], dtype: Any) -> Any:
    """Memory that nothing has written."""
    return np.full(shape, np.nan if np.dtype(dtype).kind not in "iub" else 0, dtype)


Meaning = Callable[[WarpGroup, Operation, Any], Any]
"""Of an operation that is done at once: its results, given its operands."""
Control = Callable[[WarpGroup, Operation], Steps]
"""Of an operation that has regions or waits."""
