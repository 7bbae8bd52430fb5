"""The worlds of devices that ranks of MPI run: in memory that the processes of a machine share, or with messages.

`mpi_ir.py` says what the routes of a collective hold. What has no machine code, and callbacks, run in Python on each
device; where they meet others, the values go from rank to rank (`RankMachine`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.diagnostics import error
from mlirhlo.interp.machine import Machine
from mlirhlo.interp.registry import Value
from mlirhlo.lowering import meeting_words as words
from mlirhlo.lowering.cpu.collective_parts import (
    Part,
    folded_part,
    is_shared_out,
    read_part,
    size_of,
)
from mlirhlo.lowering.cpu.collectives import base_of, operands_of, results_of
from mlirhlo.runtime import meetings
from mlirhlo.runtime.generated import mpi_ir
from mlirhlo.runtime.mpi import Ranks, Wait, listed, ranks
from mlirhlo.runtime.shared_memory import share

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.base import Instruction
    from mlirhlo.lowering.plan.steps import Site
    from mlirhlo.runtime.arguments import Array, Runs
    from mlirhlo.runtime.callbacks import Callbacks

_MOST_BYTES = 1 << 30
"""Of a message: counts of MPI are 32 bits wide."""
MEMORY = "MLIRHLO_MPI_MEMORY"
"""0: ranks of one machine exchange messages, too."""


class RankMachine(Machine):
    """Devices that several ranks run, as those see them that run here; threads of one rank meet as on any machine."""

    def __init__(self, machine: Machine, ranks: Ranks, owners: Sequence[int]) -> None:
        """`owners`: by device, the rank that runs it."""
        calls = machine.custom_calls
        super().__init__(
            machine.replicas, machine.partitions, seed=machine.seed, custom_calls=calls
        )
        self._ranks, self._owners = ranks, owners
        self._waiting: dict[int, Wait] = {}

    def exchange(
        self, device: int, key: Hashable, members: tuple[int, ...], value: Value, what: str
    ) -> list[Value]:
        """As of any machine: the first member of each rank meets those of the other ranks."""
        by_rank: dict[int, list[int]] = {}
        for member in members:
            by_rank.setdefault(self._owners[member], []).append(member)
        own = tuple(by_rank[self._ranks.rank])
        values = super().exchange(device, key, own, value, what)
        if len(by_rank) == 1:
            return values
        merged: Any = dict(zip(own, values, strict=True))
        if device == own[0]:
            del by_rank[self._ranks.rank]
            self._waiting[device] = (
                f"in {what} for {listed([*by_rank])}",
                [*by_rank],
                time.monotonic(),
            )
            firsts = {rank: theirs[0] for rank, theirs in by_rank.items()}
            merged |= self._ranks.swap(merged, device, firsts, self.device_count)
            del self._waiting[device]
        merged = super().exchange(device, (key, "all ranks"), own, merged, what)[0]
        return [merged[member] for member in members]

    def wait(self) -> Wait | None:
        """What a device of this rank waits in outside of machine code, since how many seconds; None where none does."""
        for what, peers, began in self._waiting.copy().values():
            return what, peers, time.monotonic() - began
        return None


class RankWorld(meetings.World):
    """The memory of this rank's devices, which knows the groups of all."""

    def __init__(
        self, sites: Sequence[Site], machine: Machine, ranks: Ranks, owners: Sequence[int]
    ) -> None:
        """`owners`: by device, the rank that runs it. Raises `HloError` as `World`."""
        self.ranks = ranks
        self.owners = owners
        self.own = [device for device, rank in enumerate(owners) if rank == ranks.rank]
        """The devices of this rank."""
        self._began: dict[int, tuple[int, float]] = {}
        super().__init__(sites, machine)

    def run(
        self,
        runner: Runs,
        inputs: Sequence[Sequence[Array]],
        outputs: Sequence[Sequence[Array]],
        callbacks: Callbacks,
        machine: Machine,
    ) -> None:
        """Runs a module on this rank's devices of a machine, with callbacks as they have their meaning there.

        Raises as the runner does, and `HloError` HLO0878, HLO0354.
        """
        devices = RankMachine(machine, self.ranks, self.owners)
        is_native = any(site.is_native for site in self.sites)

        def run_one(replica: int, partition: int) -> None:
            device = devices.device(replica, partition)
            number, contexts = self.own.index(device), [self.context(device)] * is_native
            with callbacks.start(devices, replica, partition, meets=False):
                runner.run([*inputs[number], *contexts], outputs[number])

        with self.ranks.watched(lambda: self.wait() or devices.wait()):
            devices.run_devices(run_one, self.own)
        self.check()

    def check(self) -> None:
        """Raises `HloError` HLO0878 where MPI has failed, HLO0354 where operands did not fit."""
        fault = self.take_fault()
        if fault is not None:
            raise fault
        wait = self.wait()
        if wait is not None:
            raise error("HLO0878", f"MPI failed {wait[0]}")

    def wait(self) -> Wait | None:
        """What the first device of this rank that waits does so in; None where all run."""
        waits = (self._wait_of(device) for device in self.own)
        return next((wait for wait in waits if wait is not None), None)

    def _wait_of(self, device: int) -> Wait | None:
        start = self._contexts[device]
        state = int(self.memory[start + words.STATE])
        if not state:
            self._began.pop(device, None)
            return None
        now = time.monotonic()
        if self._began.get(device, (0, 0.0))[0] != state:
            self._began[device] = state, now
        record = start + state // words.WORD
        op = self.sites[(record - start - words.HEAD) // words.RECORD].op
        meeting = int(self.memory[record + words.MEETING])
        group = next(g for g in self._groups.values() if self._address(g.offset) == meeting)
        peers = sorted({self.owners[member] for member in group.members} - {self.ranks.rank})
        assert op is not None
        name = f"in {op.opcode.name} %{op.instruction_name} for {listed(peers)}"
        return name, peers, now - self._began[device][1]


class _NotShared(Exception):
    """The processes have no memory in common."""


class SharedWorld(RankWorld):
    """All devices' memory, shared by processes of one machine, which fill it alike."""

    def _allocate(self, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        self._end = self._buffers = count
        for site in self.sites:
            sizes = sum(map(_rounded, _sizes(site)))
            self._end += self.machine.device_count * sizes // words.WORD
        memory = share(self.ranks.group(tuple(sorted(set(self.owners)))), self._end)
        if memory is None:
            raise _NotShared
        return memory

    def _fill(self, seats: Sequence[Sequence[meetings.Seat]]) -> None:
        super()._fill(seats)
        self._routes: list[Any] = []
        at = self._address(self._buffers)
        for number, site in enumerate(self.sites):
            if site.op is None:
                continue
            for device, context in enumerate(self._contexts):
                copied = _sizes(site)
                addresses: list[int] = []
                for size in copied:
                    addresses.append(at)
                    at += _rounded(size)
                if device not in self.own or seats[device][number].group is None:
                    continue
                lists = [len(operands_of(site.op)), len(copied), *addresses, *copied]
                routes = np.array([1, *lists, *[0] * len(copied)], np.int64)
                self._routes.append(routes)
                record = context + words.HEAD + words.RECORD * number
                self.memory[record + words.ROUTES] = routes.ctypes.data
        self.ranks.group(tuple(sorted(set(self.owners)))).Barrier()


def _sizes(site: Site) -> list[int]:
    """Bytes of the buffers of a collective that are copied: the operands, and results that others write."""
    op = site.op
    if op is None or not site.is_native or base_of(op) in ("partition-id", "replica-id"):
        return []
    operands = [size_of(shape) for shape in operands_of(op)]
    folds = base_of(op) == "all-reduce"
    results = enumerate(results_of(op))
    return operands + [size_of(r) if folds and is_shared_out(op, k) else 0 for k, r in results]


def _rounded(size: int) -> int:
    """Bytes of whole lines."""
    return -(-size // 64) * 64


class MessageWorld(RankWorld):
    """The memory of this rank's devices, which exchange messages with all others."""

    def __init__(
        self, sites: Sequence[Site], machine: Machine, ranks: Ranks, owners: Sequence[int]
    ) -> None:
        """As of any world of ranks."""
        self._kept: list[np.ndarray[Any, Any]] = []
        super().__init__(sites, machine, ranks, owners)

    def _fill(self, seats: Sequence[Sequence[meetings.Seat]]) -> None:
        super()._fill(seats)
        for device in self.own:
            for number, site in enumerate(self.sites):
                seat = seats[device][number]
                if seat.group is not None and site.op is not None:
                    members = self._groups[seat.group].members
                    sources = [seats[member][number].source for member in members]
                    self._route(device, number, site.op, members, sources)

    def _new(self, values: Sequence[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
        array = np.array(values, np.int64)
        self._kept.append(array)
        return array

    def _route(
        self,
        device: int,
        number: int,
        op: Instruction,
        members: tuple[int, ...],
        sources: Sequence[int],
    ) -> None:
        """Lays out the messages of a collective; those between two devices of this rank are messages, too."""
        me, operands = members.index(device), len(op.inputs)
        table = self._new([0] * (2 * operands * len(members)))
        own = self._new([0] * (2 * operands + 1))  # the last is the null that staged memory is off
        receives, sends, later = list[int](), list[int](), list[int]()
        receive, send = self.ranks.functions
        for k in range(operands):
            for at, peer in enumerate(members):
                if at == me:
                    continue
                come, go = (peer, device, number), (device, peer, number)
                part = read_part(op, k, sources, me, at)
                if part is not None:
                    staged = np.empty(max(part.end - part.start, 1), np.uint8)
                    self._kept.append(staged)
                    base = staged.ctypes.data - part.start
                    table[k * len(members) + at] = base
                    receives += self._messages(receive, come, 2 * operands, part, base)
                part = read_part(op, k, sources, at, me)
                sends += self._messages(send, go, k, part)
                part = folded_part(op, k, at, len(members))
                later += self._messages(receive, come, operands + k, part)
                part = folded_part(op, k, me, len(members))
                later += self._messages(send, go, operands + k, part)
        size = words.WORD
        first = [table.ctypes.data + size * (k * len(members) + me) for k in range(operands)]
        first += [table.ctypes.data + size * (operands + k) * len(members) for k in range(operands)]
        counts = [len(m) // mpi_ir.MESSAGE for m in (receives + sends, later)]
        requests = self._new([0] * (sum(counts) + 1))
        pointers = [a.ctypes.data for a in (requests, own, self._new(first))]
        routes = self._new([0, *counts, *pointers, 0, *receives, *sends, *later])
        record = self._contexts[device] + words.HEAD + words.RECORD * number
        self.memory[record + words.TABLE] = table.ctypes.data
        self.memory[record + words.TARGETS] = 1
        self.memory[record + words.ROUTES] = routes.ctypes.data

    def _messages(
        self,
        function: int,
        way: tuple[int, int, int],
        buffer: int,
        part: Part | None,
        base: int = 0,
    ) -> Iterator[int]:
        """A part in pieces; `way`: from which device to which, and for which site."""
        if part is None:
            return
        source, target, site = way
        peer = self.owners[source if function == self.ranks.functions[0] else target]
        tag = (site * len(self.owners) + source) * len(self.owners) + target
        for start in range(part.start, part.end, _MOST_BYTES):
            size = min(_MOST_BYTES, part.end - start)
            yield from (function, peer, tag % self.ranks.most_tag, size, buffer, base + start)


def world_of(sites: Sequence[Site], machine: Machine, owners: Sequence[int]) -> RankWorld:
    """Where this rank's devices meet the others, for a module that all of them run; `owners`: by device, its rank.

    Raises `HloError` HLO0878.
    """
    sending = sorted(
        {s.op.opcode.name for s in sites if s.op is not None and s.op.opcode.transfers}
    )
    if sending:
        raise error(
            "HLO0878",
            f"does not run on several ranks: {', '.join(sending)}",
            help="use collective-permute, or run all devices in one process",
        )
    ranks().compare(sites, tuple(sorted(set(owners))))
    if os.environ.get(MEMORY) != "0":
        try:
            return SharedWorld(sites, machine, ranks(), owners)
        except _NotShared:
            pass
    return MessageWorld(sites, machine, ranks(), owners)
