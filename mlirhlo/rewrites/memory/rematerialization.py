"""`rematerialization`: values computed again where they are read, rather than kept, to need less memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from mlirhlo.analysis.effects import SideEffects
from mlirhlo.analysis.schedules import Lives, is_free, lives, made_bytes, schedules
from mlirhlo.dialects.hlo.attributes.base import symbol
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.names import NameUniquer
from mlirhlo.dialects.hlo.ops import ComputationOp, FusionOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.order import instruction_list
from mlirhlo.dialects.hlo.table import CONTROL_FLOW, Calls, opcodes
from mlirhlo.rewrites.cloning import clone_computation, clone_instruction
from mlirhlo.rewrites.memory.hlo_memory_scheduler import HloMemorySchedulerPass
from mlirhlo.rewrites.passes import HloPass, Trace

_KEPT = (
    opcodes(lambda row: row.communicates or row.side_effect or row.calls is Calls.TARGET)
    | {"constant", "parameter"}
    | CONTROL_FLOW
)
"""Opcodes that are not computed again: their cost is not known, or they are somewhere anyway."""


_KEPT_INSIDE = (_KEPT - {"parameter", "constant"}) | {"fusion"}
"""Opcodes that a fusion which is computed again may not hold."""


@dataclass(slots=True)
class _Candidate:
    value: Instruction
    readers: list[Instruction]
    """Those after the peak."""
    again: list[Instruction]
    """What is computed again, operands first; `value` is the last."""
    saved: int
    cost: int


class _Computation:
    """One computation whose order may get longer."""

    def __init__(
        self,
        computation: ComputationOp,
        computations: dict[str, ComputationOp],
        inside: dict[Instruction, int],
        effects: SideEffects,
    ) -> None:
        self.computation, self.inside, self.effects = computation, inside, effects
        self.computations = computations
        self.names = NameUniquer(
            op.instruction_name or "" for op in computation.instructions if op.instruction_name
        )
        self.failed: set[Instruction] = set()
        self.measure()

    def measure(self) -> None:
        """Lives in the order as it stands."""
        self.order = instruction_list(self.computation)
        self.place = {op: k for k, op in enumerate(self.order)}
        sizes = {op: made_bytes(op) for op in self.order}
        self.sizes = sizes
        self.lives: Lives = lives(self.order, self.computation.root, sizes, self.inside)

    def reduce(self, limit: int, least: int, block: int) -> int:
        """Computes again until the limit is kept or nothing helps; how many values."""
        count = 0
        while self.lives.peak > limit:
            peak = max(range(len(self.order)), key=lambda k: self.lives.bytes[k])
            candidate = self._best(peak, least, block)
            if candidate is None:
                return count
            before = self._height()
            made = self._apply(candidate)
            self.measure()
            if self._height() >= before:  # what is read for longer costs more than is saved
                self._undo(candidate, made)
                self.measure()
            else:
                count += 1
        return count

    def _height(self) -> tuple[int, int]:
        """The peak, and how often it is reached."""
        return self.lives.peak, self.lives.bytes.count(self.lives.peak)

    def _best(self, peak: int, least: int, block: int) -> _Candidate | None:
        found: _Candidate | None = None
        for value in self.order[:peak]:
            size = self.sizes[value]
            last = self.lives.last.get(value, -1)
            if size < max(1, least) or last <= peak or value in self.failed:
                continue
            if not self._is_repeatable(value):
                continue
            candidate = self._candidate(value, peak, block)
            if candidate is None or candidate.saved <= 0:
                continue
            # The cheapest bytes: what is computed again for each byte that is spared.
            if found is None or candidate.cost * found.saved < found.cost * candidate.saved:
                found = candidate
        return found

    def _candidate(self, value: Instruction, peak: int, block: int) -> _Candidate | None:
        readers: list[Instruction] = []
        for use in value.output.uses:
            reader = use.operation
            if not isinstance(reader, Instruction) or is_free(reader):
                return None  # the root, or one that hands it on: it has to be where it was
            at = self.place[reader]
            if at == peak:
                return None
            if at > peak:
                readers.append(reader)
        if not readers:
            return None
        readers = sorted(dict.fromkeys(readers), key=lambda op: self.place[op])
        start = self.place[readers[0]]
        again: list[Instruction] = []
        longer = self._needed(value, start, block, again)
        if longer is None:
            return None
        cost = sum(self.sizes[op] for op in again)
        return _Candidate(value, readers, again, self.sizes[value] - longer, cost)

    def _needed(
        self, op: Instruction, start: int, block: int, again: list[Instruction]
    ) -> int | None:
        """Bytes of operands that have to live until `start` for `op`; what has none is made again too."""
        longer = 0
        for value in dict.fromkeys(op.inputs):
            for source in self.lives.sources[value]:
                if source is op or self.lives.last.get(source, -1) >= start or source in again:
                    continue
                if self.sizes[source] == 0:
                    continue
                owner = value.owner
                if len(again) + 1 < block and owner is source and self._is_repeatable(source):
                    more = self._needed(source, start, block, again)
                    if more is not None and more < self.sizes[source]:
                        longer += more
                        continue
                longer += self.sizes[source]
        if len(again) >= block:
            return None
        again.append(op)
        return longer

    def _is_repeatable(self, op: Instruction) -> bool:
        name = op.opcode.name
        if isinstance(op, FusionOp):
            fused = self.computations[op.calls]
            if any(o.opcode.name in _KEPT_INSIDE for o in fused.instructions):
                return False
        return not (
            name in _KEPT
            or is_free(op)
            or name.endswith(("-start", "-done", "-update"))
            or op.control_predecessors
            or self.effects.of_instruction(op)
        )

    def _apply(self, candidate: _Candidate) -> list[Instruction]:
        block = self.computation.body.block
        values: dict[SSAValue, SSAValue] = {}
        made: list[Instruction] = []
        first = candidate.readers[0]
        for op in candidate.again:
            name = self.names.unique(f"{op.instruction_name or op.opcode.name}.remat")
            copy = clone_instruction(op, values, name)
            if isinstance(copy, FusionOp):  # each fusion has a computation of its own
                self._clone_fused(copy)
            values[op.output] = copy.output
            block.insert_op_before(copy, first)
            made.append(copy)
        self._redirect(candidate.readers, candidate.value.output, made[-1].output)
        return made

    def _undo(self, candidate: _Candidate, made: Sequence[Instruction]) -> None:
        self._redirect(candidate.readers, made[-1].output, candidate.value.output)
        for op in reversed(made):
            if isinstance(op, FusionOp):
                fused = self.computations.pop(op.calls)
                fused.detach()
                fused.erase()
            op.detach()
            op.erase()
        self.failed.add(candidate.value)

    def _clone_fused(self, op: FusionOp) -> None:
        name = NameUniquer(self.computations).unique(f"{op.calls}.clone")
        copied = clone_computation(self.computations[op.calls], name)
        assert self.computation.parent is not None
        self.computation.parent.insert_op_before(copied, self.computation)
        self.computations[name] = copied
        op.properties["calls"] = symbol(name)

    @staticmethod
    def _redirect(readers: Sequence[Instruction], old: SSAValue, new: SSAValue) -> None:
        for reader in readers:
            reader.operands = [new if v is old else v for v in reader.operands]


@dataclass(frozen=True)
class RematerializationPass(HloPass):
    """Computes values again before they are read, where memory is short.

    Before and after, where %b is large and read late:

        %b = broadcast(%x)   …   %r = add(%b, %y)
          =>   %b = broadcast(%x)   …   %b.remat = broadcast(%x)   %r = add(%b.remat, %y)

    At the highest peak above the limit, of the values that are alive and not read there, the one is taken whose
    repetition costs least for each byte that it spares; operands that are gone by then are computed again with
    it, up to `block_size` instructions. What does not lower the peak is undone. Not repeated: side effects,
    loops, calls, conditionals, custom calls, random numbers, what has control dependencies or is a result.
    Peaks before and after are counted under `--stats`. A module without a schedule gets one first. `cse` would
    put the values together again. Source: reference of the passes, "HloRematerialization".
    """

    name = "rematerialization"

    memory_limit_bytes: int = 0
    """What the entry may need, parameters and constants not counted; 0: no limit, nothing is done."""
    min_remat_size: int = 0
    """Smaller values, in bytes, are kept."""
    block_size: int = 4
    """Instructions that are computed again for one value, at most."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Schedules where that was not done, and repeats; whether anything changed."""
        if not self.memory_limit_bytes:
            return False
        scheduled = HloMemorySchedulerPass().run(module.afresh(), trace)
        effects = SideEffects.of(module)
        found = schedules(module.op, given=True)
        peaks = {c.computation_name: s.lives.peak for c, s in found.items()}
        entry, computations = module.entry, module.by_name()
        before = peaks[entry.computation_name]
        count = 0
        if before > self.memory_limit_bytes:
            for computation in found:  # callees first: what they need less, their callers do too
                inside = {
                    op: max((peaks.get(name, 0) for name in op.called_computations), default=0)
                    for op in computation.instructions
                }
                own = _Computation(computation, computations, inside, effects)
                count += own.reduce(self.memory_limit_bytes, self.min_remat_size, self.block_size)
                peaks[computation.computation_name] = own.lives.peak
        after = peaks[entry.computation_name]
        key = f"peak of {before} bytes is {after}, limit {self.memory_limit_bytes}"
        trace.rule_counts[self.name, key] += count
        return scheduled or count > 0
