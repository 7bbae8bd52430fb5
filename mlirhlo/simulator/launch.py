"""One launch: parameters, cohorts of blocks, findings and figures."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mlirhlo.diagnostics import Diagnostic, HloError, Place, error
from mlirhlo.dialects.ptx import Variable
from mlirhlo.simulator.assembler import place_of
from mlirhlo.simulator.cohort import Cohort
from mlirhlo.simulator.counters import Counts, MemoryFigures
from mlirhlo.simulator.lanes import WARP
from mlirhlo.simulator.memory import ALIGNMENT, GLOBAL_BASE, UNALLOCATED, UNINITIALISED
from mlirhlo.simulator.races import Races
from mlirhlo.simulator.report import Figures, LaunchReport

if TYPE_CHECKING:
    from mlirhlo.simulator.machine import Machine
    from mlirhlo.simulator.program import Program

COHORT_LANES = 8192
"""Lanes that run together: enough to hide the cost of Python, few enough to stay in the caches."""
REGISTER_BYTES = 64 << 20
"""Bytes of registers of a cohort, at most."""
SHARED_BYTES = 64 << 20
LOCAL_BYTES = 256 << 20
MAX_FINDINGS = 100


class Launch:
    """A kernel with its grid and arguments; also what its cohorts share."""

    def __init__(
        self,
        machine: Machine,
        program: Program,
        entry: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        arguments: Sequence[int | float | bytes],
        dynamic_shared: int,
        cluster: tuple[int, int, int],
    ) -> None:
        self.machine, self.entry = machine, entry
        self.code = program.code(entry)
        self.grid: tuple[int, int, int] = grid
        self.block: tuple[int, int, int] = block
        head = program.functions[entry].signature
        stated = (*(head.directive("reqnctapercluster") or cluster), 1, 1)
        self.cluster: tuple[int, int, int] = (stated[0], stated[1], stated[2])
        self.threads = block[0] * block[1] * block[2]
        self.dynamic_shared: int = dynamic_shared
        self.shared_bytes: int = self.code.shared_bytes + dynamic_shared
        self.shared_stride = -(-self.shared_bytes // ALIGNMENT) * ALIGNMENT + ALIGNMENT
        self.local_stride = -(-self.code.local_bytes // 16) * 16 + 16
        self.clock = 1_000_000
        self._check(head.directive("reqntid"), head.directive("maxntid"))
        self.parameters = b"".join(self._pack(arguments))
        allocated = machine.arena.allocations
        pointers = {one - GLOBAL_BASE for one in arguments if isinstance(one, int)}
        self.buffer_bytes = sum(allocated[one][0] for one in pointers if one in allocated)
        self.found: dict[object, Diagnostic] = {}
        self.counts = Counts(len(self.code.run))
        self.figures = MemoryFigures() if machine.checks else None
        self.shared_region = self.local_region = 0
        self.races: Races | None = None

    @cached_property
    def random(self) -> np.random.Generator:
        """Of the order of blocks and warps."""
        return np.random.default_rng(self.machine.seed)

    def _check(self, required: Sequence[int] | None, most: Sequence[int] | None) -> None:
        wrong = ""
        if min(self.grid) < 1 or min(self.block) < 1 or self.threads > 1024:
            wrong = f"grid {self.grid} of blocks {self.block}: a block has 1 to 1024 threads"
        elif required is not None and (*required, 1, 1)[:3] != self.block:
            wrong = f"blocks {self.block}: the kernel requires {tuple(required)} (.reqntid)"
        elif most is not None and self.threads > int(np.prod(most)):
            wrong = (
                f"blocks {self.block}: the kernel takes at most {tuple(most)} threads (.maxntid)"
            )
        elif any(count % part for count, part in zip(self.grid, self.cluster, strict=True)):
            wrong = f"grid {self.grid} is no multiple of the cluster {self.cluster}"
        if wrong:
            raise error("HLO0774", f"{self.entry}: {wrong}")

    def _pack(self, arguments: Sequence[int | float | bytes]) -> list[bytes]:
        layout = self.code.parameters
        if len(arguments) != len(layout):
            raise error(
                "HLO0774", f"{self.entry} has {len(layout)} parameters, {len(arguments)} arguments"
            )
        pieces, end = list[bytes](), 0
        for (variable, offset, size), argument in zip(layout, arguments, strict=True):
            data = _bytes_of(variable, size, argument, self.entry)
            pieces += [bytes(offset - end), data]
            end = offset + size
        return pieces

    def run(self) -> LaunchReport:
        """Runs all blocks, cohort by cohort."""
        arena = self.machine.arena
        block = self.code.parameter_block
        arena.bytes[block : block + len(self.parameters)] = np.frombuffer(self.parameters, np.uint8)
        cohorts = self._cohorts()
        most = max(map(len, cohorts))
        lanes = most * -(-self.threads // WARP) * WARP
        regions = [
            arena.allocate(most * self.shared_stride, "shared memory"),
            arena.allocate(lanes * self.local_stride, "local memory"),
        ]
        self.shared_region, self.local_region = regions
        if self.machine.checks:
            self.races = Races(self, arena.used)
        try:
            with np.errstate(all="ignore"):
                for blocks in cohorts:
                    self._run_cohort(blocks)
        except HloError as problem:
            raise HloError(*problem.diagnostics, *self.found.values()) from None
        finally:
            for region in regions:
                arena.free(region)
        return LaunchReport(tuple(self.found.values()), self._figures())

    def _run_cohort(self, blocks: NDArray[np.int64]) -> None:
        states = self.machine.arena.states
        shared, stride = self.shared_region, self.shared_stride
        states[shared : shared + len(blocks) * stride] = UNALLOCATED
        rows = states[shared : shared + len(blocks) * stride].reshape(-1, stride)
        rows[:, : self.shared_bytes] = UNINITIALISED
        lanes = len(blocks) * -(-self.threads // WARP) * WARP
        local = self.local_region
        rows = states[local : local + lanes * self.local_stride].reshape(lanes, self.local_stride)
        rows[:, :] = UNALLOCATED
        rows[:, 16 : self.code.local_bytes] = UNINITIALISED
        cohort = Cohort(self, blocks)
        if self.races is not None:
            self.races.begin(cohort)
        cohort.run()
        for unit in cohort.extra.values():
            if hasattr(unit, "finish"):
                unit.finish()

    def _cohorts(self) -> list[NDArray[np.int64]]:
        """Blocks in the order in which they run; clusters stay together."""
        x, y, z = self.grid
        numbers = np.arange(x * y * z, dtype=np.int64)
        size = self.cluster[0] * self.cluster[1] * self.cluster[2]
        if size > 1:
            index = (numbers % x, numbers // x % y, numbers // (x * y))
            cx, cy, cz = (i // part for i, part in zip(index, self.cluster, strict=True))
            numbers = numbers[np.lexsort((index[0], index[1], index[2], cx, cy, cz))]
        clusters = numbers.reshape(-1, size)
        if self.machine.seed:
            clusters = self.random.permutation(clusters)
        lanes = -(-self.threads // WARP) * WARP
        registers = sum(
            slot.value.itemsize
            for slot in self.code.slots
            if slot.kind == "register" and not isinstance(slot.value, str)
        )
        most = min(
            COHORT_LANES // lanes,
            REGISTER_BYTES // (lanes * max(registers, 1)),
            SHARED_BYTES // self.shared_stride,
            LOCAL_BYTES // (lanes * self.local_stride),
        )
        step = max(1, most // size)
        return [clusters[i : i + step].reshape(-1) for i in range(0, len(clusters), step)]

    def _figures(self) -> Figures:
        classes, units, issued = self.counts.totals(self.code.classes, self.code.units)
        memory = self.figures or MemoryFigures()
        warps = int(np.prod(self.grid)) * -(-self.threads // WARP)
        buffers = self.buffer_bytes
        return Figures(
            classes, issued, memory.global_memory, memory.shared_memory, units, warps, buffers
        )

    # Findings

    def finding(self, key: object, diagnostic: Diagnostic) -> None:
        """Notes what is wrong, once a key."""
        if key not in self.found and len(self.found) < MAX_FINDINGS:
            self.found[key] = diagnostic

    def place(self, pc: int) -> Place:
        """Where the instruction at `pc` stands."""
        return place_of(self.code.instructions[pc], self.code.names[pc])


def _bytes_of(variable: Variable, size: int, argument: int | float | bytes, entry: str) -> bytes:
    if isinstance(argument, bytes):
        if len(argument) > size:
            raise error(
                "HLO0774", f"{entry}: {len(argument)} bytes for {variable.name}, which has {size}"
            )
        return argument.ljust(size, b"\0")
    if variable.type in ("f32", "f64"):
        return struct.pack("<f" if variable.type == "f32" else "<d", argument)
    if isinstance(argument, float):
        if size not in (4, 8):
            raise error(
                "HLO0774", f"{entry}: a float for {variable.name}, which is .{variable.type}"
            )
        return struct.pack("<f" if size == 4 else "<d", argument)
    return (int(argument) & ((1 << size * 8) - 1)).to_bytes(size, "little")
