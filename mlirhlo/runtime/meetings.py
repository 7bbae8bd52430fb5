"""The devices of one process as their collectives see them: a world of contexts and meetings, in memory.

Generated code publishes, waits and moves data (`lowering/cpu/collective_code.py`, `meeting_ir.py`); here the memory for
that is laid out, and watched: when every running device waits for one that will not come, the run ends with an error
that says which device waits where (HLO0351), and a wait of many seconds is told of.
"""

from __future__ import annotations

import ctypes
import functools
import logging
import os
import platform
import sys
import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.diagnostics import HloError, error
from mlirhlo.interp.ops.collective_permute import permute_members
from mlirhlo.interp.ops.collectives import Meeting, misfit_of
from mlirhlo.interp.plans import place_of
from mlirhlo.lowering import meeting_words as words
from mlirhlo.runtime.cache import builder_code
from mlirhlo.runtime.copies import copies_of
from mlirhlo.runtime.generated import meeting_ir
from mlirhlo.runtime.jit import Library, lock_for_forks
from mlirhlo.runtime.threads import FUTEX

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.base import Instruction
    from mlirhlo.interp.machine import Machine
    from mlirhlo.interp.registry import Frame
    from mlirhlo.lowering.plan.steps import Site

LOG = logging.getLogger(__name__)

_SPINS = 50
"""Turns before a device offers its processor, where every device has one: two microseconds."""
_LINE_WORDS = 8
_LONG_S = 20.0
"""Seconds of waiting that are told of."""
_IDS = ("partition-id", "replica-id")
_FAR = 1 << 62
"""An address that no number of another kind reaches."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A device, as the groups of a collective ask for it."""

    machine: Machine
    replica: int
    partition: int


@dataclass(slots=True)
class _Group:
    """The devices of one meeting, and how many buffers they publish."""

    members: tuple[int, ...]
    buffers: int
    offset: int = 0
    """Words from the world's start to it."""
    rounds: dict[int, int] = field(default_factory=dict[int, int])
    """By member, words to its number of rounds."""


@dataclass(frozen=True, slots=True)
class Seat:
    """What a device is in a collective."""

    group: Hashable | None
    """None in none."""
    position: int = 0
    source: int = -1


@dataclass(frozen=True, slots=True)
class Image:
    """A world as data of a program: copied to memory, and the memory's address added to its pointers."""

    words: Sequence[int]
    """Those before the words that begin as zeros."""
    pointers: Sequence[int]
    """The words that are bytes from the world's start."""
    size: int
    """Words of the whole world."""
    contexts: Sequence[int]
    """By device, bytes from the world's start to its context."""


class World:
    """Memory of the devices of one run; used again by the next one, if all went well."""

    def __init__(
        self, sites: Sequence[Site], machine: Machine, *, start: int | None = None
    ) -> None:
        """`start`: what its pointers count from, in place of its address.

        Raises `HloError` HLO0353 and HLO0354 for groups that do not fit the machine.
        """
        self._start = start
        self.machine = machine
        self.sites = sites
        self.running = 0
        """Devices that have not ended their run."""
        self._groups: dict[Hashable, _Group] = {}
        seats = [
            [self._seat(site, *machine.place(device)) for site in sites]
            for device in range(machine.device_count)
        ]
        self._lay_out(seats)
        self._fill(seats)
        self._since: dict[tuple[int, int], float] = {}
        """By device and number of its meeting, since when it waits there."""
        self._told: set[tuple[int, int]] = set()

    # ------------------------------------------------------------ memory

    def _seat(self, site: Site, replica: int, partition: int) -> Seat:
        op = site.op
        if op is None or not site.is_native or op.opcode.name in _IDS:
            return Seat(None)
        frame = cast("Frame", _Place(self.machine, replica, partition))
        try:
            return self._seat_in(op, frame)
        except HloError as problem:
            raise problem.at(place_of(op)) from None

    def _seat_in(self, op: Instruction, frame: Frame) -> Seat:
        base = op.opcode.name.removesuffix("-start")
        device = self.machine.device(frame.replica, frame.partition)
        if base == "collective-permute":
            members, sources = permute_members(op, frame)
            channel = getattr(op, "channel_id", None)
            key: Hashable = (base, channel if channel and channel > 0 else op, members)
            source = sources.get(device)
            at = -1 if source is None else members.index(source)
        else:
            meeting = Meeting.of(op, kind=base)
            members = meeting.members(frame, leaves_out=base == "collective-broadcast")
            if not members:
                return Seat(None)
            check_shapes(op, len(members))
            key, at = (meeting.key, members), 0
        buffers = 2 * len(op.inputs)
        group = self._groups.setdefault(key, _Group(members, buffers))
        group.buffers = max(group.buffers, buffers)
        return Seat(key, members.index(device), at)

    def _lay_out(self, seats: Sequence[Sequence[Seat]]) -> None:
        end = _LINE_WORDS
        self._contexts = list[int]()
        for _ in range(self.machine.device_count):
            self._contexts.append(end)
            end += words.HEAD + words.RECORD * len(self.sites)
        named = [{each[site].group: 0 for each in seats} for site in range(len(self.sites))]
        groups = [
            {key: len(self._groups[key].members) for key in keys if key is not None}
            for keys in named
        ]
        end = -(-end // _LINE_WORDS) * _LINE_WORDS
        self._copies = copies_of(self.sites, groups, end)
        end = max((copies.end for copies in self._copies.values()), default=end)
        for group in self._groups.values():
            group.offset = end
            size = len(group.members) * group.buffers + meeting_ir.POINTERS // words.WORD
            end += -(-size // _LINE_WORDS) * _LINE_WORDS
            for member in group.members:
                group.rounds[member] = end
                end += _LINE_WORDS
        self.memory = self._allocate(end)
        if self._start is None:
            self._start = int(self.memory.ctypes.data)
        # Words of a run, zero before it.
        self._first = min((g.offset for g in self._groups.values()), default=end)

    def _allocate(self, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """So many words of zeros, on lines of their own."""
        raw = np.zeros(count + _LINE_WORDS, np.int64)
        skip = -raw.ctypes.data % 64 // words.WORD
        return raw[skip : skip + count]

    def _address(self, word: int) -> int:
        assert self._start is not None
        return self._start + words.WORD * word

    @staticmethod
    def image(sites: Sequence[Site], machine: Machine) -> Image:
        """A world that no device has run in yet, as data. Raises what making it does."""
        world = World(sites, machine, start=_FAR)
        memory = [int(word) for word in world.memory[: world._first]]
        memory[meeting_ir.SPINS] = _SPINS
        pointers = [at for at, word in enumerate(memory) if word >= _FAR]
        for at in pointers:
            memory[at] -= _FAR
        contexts = [words.WORD * at for at in world._contexts]
        return Image(memory, pointers, len(world.memory), contexts)

    def _fill(self, seats: Sequence[Sequence[Seat]]) -> None:
        memory, count = self.memory, self.machine.device_count
        memory[meeting_ir.SPINS] = _SPINS if count <= processors() else 0
        copies = {key: one.fill(memory, self._address) for key, one in self._copies.items()}
        for device, start in enumerate(self._contexts):
            memory[start + words.WORLD] = self._address(0)
            replica, partition = self.machine.place(device)
            memory[start + words.REPLICA], memory[start + words.PARTITION] = replica, partition
            for number, seat in enumerate(seats[device]):
                at = start + words.HEAD + words.RECORD * number
                memory[at + words.SOURCE] = seat.source
                if seat.group is None:
                    continue
                group = self._groups[seat.group]
                memory[at + words.COUNT] = memory[at + words.TARGETS] = len(group.members)
                memory[at + words.POSITION] = seat.position
                table = group.offset + meeting_ir.POINTERS // words.WORD
                memory[at + words.TABLE] = self._address(table)
                memory[at + words.MEETING] = self._address(group.offset)
                memory[at + words.ROUND] = self._address(group.rounds[device])
                if (number, seat.group) in copies:
                    memory[at + words.COPIES] = copies[number, seat.group][seat.position]

    def context(self, device: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The memory of a device."""
        return self.memory[self._contexts[device] :]

    def renew(self, machine: Machine) -> None:
        """Makes it one for the next run, of as many devices."""
        self.machine = machine
        self.memory[self._first :] = 0
        self._since.clear()
        self._told.clear()

    # ------------------------------------------------------------ watching

    def active(self) -> set[int]:
        """Devices that run without Python."""
        return {d for d, at in enumerate(self._contexts) if self.memory[at + words.ACTIVE]}

    @property
    def is_ended(self) -> bool:
        """Whether a run here has failed; no other one starts then."""
        return bool(self.memory[meeting_ir.ENDED])

    def end(self) -> None:
        """No device waits any longer."""
        self.memory[meeting_ir.ENDED] = 1

    def take_fault(self) -> HloError | None:
        """The error of a device whose operands did not fit, once; None where there is none."""
        for start in self._contexts:
            number = int(self.memory[start + words.FAULT])
            op = self.sites[number - 1].op if number else None
            if op is not None:
                self.memory[start + words.FAULT] = 0
                name = f"{op.opcode.name} %{op.instruction_name}"
                return error("HLO0354", f"{name}: a slice is out of bounds").at(place_of(op))
        return None

    def waits(self) -> Mapping[int, str]:
        """What each device that cannot go on by itself waits in, and for whom."""
        return {device: self._reason(*wait) for device, wait in self._waiting()}

    def place(self, device: int) -> Any:
        """Where the collective is that a device waits in."""
        op = next((op for d, (op, _, _) in self._waiting() if d == device), None)
        return None if op is None else place_of(op)

    def _waiting(self) -> Iterator[tuple[int, tuple[Instruction, _Group, list[int]]]]:
        by_offset = {self._address(g.offset): g for g in self._groups.values()}
        for device, start in enumerate(self._contexts):
            state = int(self.memory[start + words.STATE])
            if not state:
                continue
            record = start + state // words.WORD
            site = (record - start - words.HEAD) // words.RECORD
            group = by_offset[int(self.memory[record + words.MEETING])]
            mine = int(self.memory[group.rounds[device]])
            missing = [d for d in group.members if int(self.memory[group.rounds[d]]) < mine]
            op = self.sites[site].op
            if missing and op is not None:
                yield device, (op, group, missing)

    def _reason(self, op: Instruction, group: _Group, missing: Sequence[int]) -> str:
        del group
        devices = ", ".join(map(self.machine.describe, missing))
        return f"in {op.opcode.name} %{op.instruction_name} for {devices}"

    def tell(self) -> None:
        """Warns of devices that have waited in one meeting for long."""
        now = time.monotonic()
        waits = {
            (device, int(self.memory[wait[1].rounds[device]])): wait
            for device, wait in self._waiting()
        }
        self._since = {key: self._since.get(key, now) for key in waits}
        for key, since in self._since.items():
            if now - since >= _LONG_S and key not in self._told:
                self._told.add(key)
                who, what = self.machine.describe(key[0]), self._reason(*waits[key])
                LOG.warning("%s waits %s since %d s", who, what, now - since)


def check_shapes(op: Instruction, count: int) -> None:
    """Raises `HloError` HLO0354 where a group of so many devices does not fit the shapes."""
    problem = misfit_of(op, count)
    if problem is not None:
        raise problem


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# ---------------------------------------------------------------- the functions outside

_lock = lock_for_forks()


@functools.lru_cache(maxsize=2)
def _only_library(is_private: bool) -> Library:
    number, pause = FUTEX.get(platform.machine(), (0, ""))
    number = number if sys.platform == "linux" else 0
    code = builder_code("meeting_ir", number, pause, is_private)
    library = Library([code], [words.PUBLISH, words.ARRIVE, words.LEAVE], system_functions())
    library.keep()
    return library


def system_functions() -> dict[str, int]:
    """Addresses of the system's functions that meeting takes."""
    process = ctypes.CDLL(None)
    names = ("syscall", "sched_yield", "memcpy")
    return {n: ctypes.cast(getattr(process, n), ctypes.c_void_p).value or 0 for n in names}


def externals(text: str) -> dict[str, int]:
    """Addresses of what LLVM assembly calls of this module."""
    names = called(text)
    functions = local_functions() if names else {}
    return {name: functions[name] for name in names}


def called(text: str) -> list[str]:
    """The functions by which devices meet that LLVM assembly calls."""
    return [n for n in (words.PUBLISH, words.ARRIVE, words.LEAVE) if f"@{n}(" in text]


def local_functions(*, is_private: bool = True) -> dict[str, int]:
    """Addresses of the functions by which devices meet in memory: of one process, or that several share."""
    with _lock:
        library = _only_library(is_private)
    return {n: library.address(n) for n in (words.PUBLISH, words.ARRIVE, words.LEAVE)}
