"""Ranks of MPI as devices: one rank a device, which runs its own code and exchanges messages with the others.

A process that a launcher started beside others is a rank; MPI itself is loaded when the first module with collectives
runs. `mpi_ir.py` has the functions that generated code calls; here each collective's messages are laid out. Ranks
compare their modules before the first run; one that waits for another which has ended, or waits for long, ends all of
them with an error that names both (HLO0878).
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import hashlib
import os
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.lowering import meeting_words as words
from mlirhlo.lowering.cpu.collective_parts import Part, folded_part, read_part
from mlirhlo.runtime import meetings, mpi_ir
from mlirhlo.runtime.cache import builder_code
from mlirhlo.runtime.jit import Library
from mlirhlo.runtime.launcher import launched

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.base import Instruction
    from mlirhlo.interp.machine import Machine
    from mlirhlo.lowering.plan.steps import Site

_MOST_BYTES = 1 << 30
"""Of a message: counts of MPI are 32 bits wide."""
_MOST_TAG = 32767
_LOOK_S = 0.25
_ENDED_S = 1.0
"""How long a rank waits for another that has said that it ends, since what it sent may be under way."""


Wait: TypeAlias = tuple[str, list[int], float]
"""What a rank waits in, for which ranks, and since how many seconds."""


def _listed(ranks: Sequence[int]) -> str:
    return ", ".join(f"rank {rank}" for rank in ranks)


def limit_s() -> float:
    """Seconds after which a rank that waits ends all."""
    return float(os.environ.get("MLIRHLO_MPI_TIMEOUT_S", "600"))


_TURN_S = 0.2
"""From one rank to the next, where several have the same to say."""


class Ranks:
    """This process among the others."""

    def __init__(self) -> None:
        """Raises `HloError` HLO0878 without mpi4py, or without a library of MPI."""
        try:
            from mpi4py import MPI
        except (ImportError, RuntimeError) as problem:
            raise error(
                "HLO0878", f"cannot load MPI: {problem}", help="pip install 'mlirhlo[mpi]'"
            ) from None
        self.mpi: Any = MPI
        self.world: Any = MPI.COMM_WORLD.Dup()
        self.farewells: Any = MPI.COMM_WORLD.Dup()
        self.rank: int = self.world.Get_rank()
        self.count: int = self.world.Get_size()
        self.lock = threading.Lock()
        """Of the run under way: messages of two would meet."""
        self._wait: Callable[[], Wait | None] = lambda: None
        self._ended: set[int] = set()
        self._hook = sys.excepthook
        sys.excepthook = self._on_exception
        atexit.register(self._leave)
        threading.Thread(target=self._watch, name="mlirhlo ranks", daemon=True).start()

    @functools.cached_property
    def library(self) -> Library:
        """The functions that generated code calls, with this process's handles."""
        mpi = self.mpi
        process = ctypes.CDLL(mpi.__file__)
        outside = {
            mpi_ir.TEST: _address(process.MPI_Testall),
            **{name: _address(getattr(ctypes.CDLL(None), name)) for name in ("nanosleep", "prctl")},
            **{mpi_ir.LOCAL[name]: at for name, at in meetings.local_functions().items()},
        }
        names = [*mpi_ir.LOCAL, *mpi_ir.VARIABLES]
        library = Library([builder_code("mpi_ir")], names, outside)
        library.keep()
        ignored = 1 if mpi._sizeof(mpi.Comm) == ctypes.sizeof(ctypes.c_int) else 0
        values = (
            mpi._handleof(self.world),
            mpi._handleof(mpi.BYTE),
            mpi._sizeof(mpi.Request),
            ignored,
        )
        for name, value in zip(mpi_ir.VARIABLES, values, strict=True):
            ctypes.c_int64.from_address(library.address(name)).value = value
        return library

    @functools.cached_property
    def functions(self) -> tuple[int, int]:
        """Addresses of what receives and sends."""
        process = ctypes.CDLL(self.mpi.__file__)
        return _address(process.MPI_Irecv), _address(process.MPI_Isend)

    def compare(self, sites: Sequence[Site]) -> None:
        """Raises `HloError` HLO0878 on every rank where one has another module."""
        op: Any = next(site.op for site in sites if site.op is not None)
        while op.parent_op() is not None:
            op = op.parent_op()
        mine = HloModule(op).name, hashlib.sha256(str(op).encode()).hexdigest()
        first, *others = self.gather(mine, "to compare modules with")
        for rank, other in enumerate(others, 1):
            if other != first:
                names = other[0] if other[0] == first[0] else f"{other[0]}, not {first[0]}"
                problem = f"rank {rank} runs another module than rank 0: {names}"
                raise error("HLO0878", problem)

    def gather(self, value: Any, why: str = "for results of") -> list[Any]:
        """A value of each rank."""
        began, peers = time.monotonic(), [n for n in range(self.count) if n != self.rank]
        what = f"{why} {_listed(peers)}"
        with self.watched(lambda: (what, peers, time.monotonic() - began)):
            return cast("list[Any]", self.world.allgather(value))

    @contextmanager
    def watched(self, wait: Callable[[], Wait | None]) -> Generator[None]:
        """While this rank may wait; `wait` says for whom."""
        self._wait = wait
        try:
            yield
        finally:
            self._wait = lambda: None

    def abort(self, code: int) -> None:
        """Ends all ranks."""
        sys.stdout.flush()
        sys.stderr.flush()
        self.mpi.COMM_WORLD.Abort(code)

    def fail(self, message: str) -> None:
        """Says what is wrong, and ends all ranks; the first of several speaks for them."""
        time.sleep(min(self.rank * _TURN_S, 1.0))
        sys.stderr.write(f"[rank {self.rank}] error[HLO0878]: {message}\n")
        self.abort(1)

    def _on_exception(
        self, kind: type[BaseException], problem: BaseException, where: TracebackType | None
    ) -> None:
        self._hook(kind, problem, where)
        if isinstance(problem, Exception):
            self.fail(f"ended by {kind.__name__}")

    def _leave(self) -> None:
        for peer in range(self.count):
            if peer != self.rank:
                self.farewells.isend(None, peer)

    def _watch(self) -> None:
        while not self.mpi.Is_finalized():
            time.sleep(_LOOK_S)
            wait = self._wait()
            if wait is None:
                continue
            what, peers, since = wait
            for peer in peers:
                if peer not in self._ended and self.farewells.iprobe(source=peer):
                    self._ended.add(peer)
            gone = sorted(self._ended.intersection(peers))
            if gone and since > _ENDED_S:
                self.fail(f"waits {what}, and rank {gone[0]} has ended")
            elif since > limit_s():
                self.fail(f"waits {what} since {since:.0f} s")


class RankWorld(meetings.World):
    """The memory of this rank's device; it knows the groups of all, and has messages of its own."""

    def __init__(self, sites: Sequence[Site], machine: Machine, ranks: Ranks) -> None:
        """Raises `HloError` as `World`."""
        self.ranks = ranks
        self._kept: list[np.ndarray[Any, Any]] = []
        self._began: tuple[int, float] = 0, 0.0
        super().__init__(sites, machine)

    def _fill(self, seats: Sequence[Sequence[meetings.Seat]]) -> None:
        super()._fill(seats)
        for number, site in enumerate(self.sites):
            seat = seats[self.ranks.rank][number]
            if seat.group is not None and site.op is not None:
                members = self._groups[seat.group].members
                sources = [seats[member][number].source for member in members]
                self._route(number, site.op, members, sources)

    def _new(self, values: Sequence[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
        array = np.array(values, np.int64)
        self._kept.append(array)
        return array

    def _route(
        self, number: int, op: Instruction, members: tuple[int, ...], sources: Sequence[int]
    ) -> None:
        """Lays out the messages of a collective."""
        me, operands = members.index(self.ranks.rank), len(op.inputs)
        table = self._new([0] * (2 * operands * len(members)))
        own = self._new([0] * (2 * operands + 1))  # the last is the null that staged memory is off
        receives, sends, later = list[int](), list[int](), list[int]()
        receive, send = self.ranks.functions
        for k in range(operands):
            for at, peer in enumerate(members):
                if at == me:
                    continue
                part = read_part(op, k, sources, me, at)
                if part is not None:
                    staged = np.empty(max(part.end - part.start, 1), np.uint8)
                    self._kept.append(staged)
                    base = staged.ctypes.data - part.start
                    table[k * len(members) + at] = base
                    receives += self._messages(receive, peer, number, 2 * operands, part, base)
                part = read_part(op, k, sources, at, me)
                sends += self._messages(send, peer, number, k, part)
                part = folded_part(op, k, at, len(members))
                later += self._messages(receive, peer, number, operands + k, part)
                part = folded_part(op, k, me, len(members))
                later += self._messages(send, peer, number, operands + k, part)
        size = words.WORD
        first = [table.ctypes.data + size * (k * len(members) + me) for k in range(operands)]
        first += [table.ctypes.data + size * (operands + k) * len(members) for k in range(operands)]
        counts = [len(m) // mpi_ir.MESSAGE for m in (receives + sends, later)]
        requests = self._new([0] * (sum(counts) + 1))
        pointers = [a.ctypes.data for a in (requests, own, self._new(first))]
        routes = self._new([*counts, *pointers, 0, *receives, *sends, *later])
        record = self._contexts[self.ranks.rank] + words.HEAD + words.RECORD * number
        self.memory[record + words.TABLE] = table.ctypes.data
        self.memory[record + words.TARGETS] = 1
        self.memory[record + words.ROUTES] = routes.ctypes.data

    @staticmethod
    def _messages(
        function: int, peer: int, tag: int, buffer: int, part: Part | None, base: int = 0
    ) -> Iterator[int]:
        if part is None:
            return
        for start in range(part.start, part.end, _MOST_BYTES):
            size = min(_MOST_BYTES, part.end - start)
            yield from (function, peer, tag % _MOST_TAG, size, buffer, base + start)

    def check(self) -> None:
        """Raises `HloError` HLO0878 where MPI has failed, HLO0354 where operands did not fit."""
        fault = self.take_fault()
        if fault is not None:
            raise fault
        wait = self.wait()
        if wait is not None:
            raise error("HLO0878", f"MPI failed {wait[0]}")

    def wait(self) -> Wait | None:
        """What this rank waits in; None where it runs."""
        start = self._contexts[self.ranks.rank]
        state = int(self.memory[start + words.STATE])
        if not state:
            self._began = 0, 0.0
            return None
        now = time.monotonic()
        if self._began[0] != state:
            self._began = state, now
        record = start + state // words.WORD
        op = self.sites[(record - start - words.HEAD) // words.RECORD].op
        meeting = int(self.memory[record + words.MEETING])
        group = next(g for g in self._groups.values() if self._address(g.offset) == meeting)
        peers = [member for member in group.members if member != self.ranks.rank]
        assert op is not None
        name = f"in {op.opcode.name} %{op.instruction_name} for {_listed(peers)}"
        return name, peers, now - self._began[1]


@functools.cache
def ranks() -> Ranks:
    """The ranks of this job. Raises `HloError` HLO0878."""
    return Ranks()


def externals(text: str) -> dict[str, int]:
    """Addresses of the functions by which devices meet that LLVM assembly calls."""
    names = meetings.called(text)
    if launched() == 1 or not names:
        return meetings.externals(text)
    library = ranks().library
    return {name: library.address(name) for name in names}


def world_of(sites: Sequence[Site], machine: Machine) -> RankWorld:
    """Where this rank's device meets the others, for a module that all of them run. Raises `HloError` HLO0878."""
    if not all(site.is_native for site in sites):
        names = sorted({s.op.opcode.name for s in sites if s.op is not None and not s.is_native})
        raise error("HLO0878", f"runs in Python, and not on several ranks: {', '.join(names)}")
    ranks().compare(sites)
    return RankWorld(sites, machine, ranks())


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
