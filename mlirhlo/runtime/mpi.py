"""Ranks of MPI as devices: each runs code of its own for one or more, which meet those of the others.

A process that a launcher started beside others is a rank; MPI itself is loaded when the first module with collectives
runs. `mpi_ir.py` has the functions that generated code calls, `rank_worlds.py` what they work on. Ranks
compare their modules before the first run; one that waits for another which has ended, or waits for long, ends all of
them with an error that names both (HLO0878).
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import hashlib
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.runtime import meetings
from mlirhlo.runtime.cache import builder_code
from mlirhlo.runtime.generated import mpi_ir
from mlirhlo.runtime.jit import Library
from mlirhlo.runtime.launcher import launched

if TYPE_CHECKING:
    from mlirhlo.lowering.plan.steps import Site

_LOOK_S = 0.25
_ENDED_S = 1.0
"""How long a rank waits for another that has said that it ends, since what it sent may be under way."""


Wait: TypeAlias = tuple[str, list[int], float]
"""What a rank waits in, for which ranks, and since how many seconds."""


def listed(ranks: Sequence[int]) -> str:
    """`rank 0, rank 2`."""
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
        self.values: Any = MPI.COMM_WORLD.Dup()
        _forget_names()
        self.rank: int = self.world.Get_rank()
        self.count: int = self.world.Get_size()
        self.most_tag = cast(int, self.world.Get_attr(MPI.TAG_UB))
        self._groups: dict[tuple[int, ...], Any] = {tuple(range(self.count)): self.world}
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
        shared = meetings.local_functions(is_private=False)
        outside = {
            mpi_ir.TEST: _address(process.MPI_Testall),
            **{name: _address(getattr(ctypes.CDLL(None), name)) for name in ("nanosleep", "prctl")},
            "memcpy": _address(ctypes.CDLL(None).memcpy),
            **{mpi_ir.LOCAL[name]: at for name, at in meetings.local_functions().items()},
            **{mpi_ir.SHARED[name]: at for name, at in shared.items()},
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

    def expect(self, owners: Sequence[int]) -> None:
        """Raises `HloError` HLO0878 where one of these is no rank."""
        if max(owners) >= self.count:
            problem = f"process {max(owners)} is no rank of MPI: there are {self.count}"
            raise error("HLO0878", problem, help="start all processes with mpirun")

    def compare(self, sites: Sequence[Site], members: tuple[int, ...]) -> None:
        """Raises `HloError` HLO0878 on every one of these ranks where one has another module."""
        op: Any = next(site.op for site in sites if site.op is not None)
        while op.parent_op() is not None:
            op = op.parent_op()
        mine = HloModule(op).name, hashlib.sha256(str(op).encode()).hexdigest()
        first, *others = self.gather(mine, "to compare modules with", members)
        for rank, other in zip(members[1:], others, strict=True):
            if other != first:
                names = other[0] if other[0] == first[0] else f"{other[0]}, not {first[0]}"
                problem = f"rank {rank} runs another module than rank {members[0]}: {names}"
                raise error("HLO0878", problem)

    def gather(
        self, value: Any, why: str = "for results of", members: tuple[int, ...] = ()
    ) -> list[Any]:
        """A value of each of these ranks, of all where there are none."""
        began, members = time.monotonic(), members or tuple(range(self.count))
        peers = [n for n in members if n != self.rank]
        what = f"{why} {listed(peers)}"
        with self.watched(lambda: (what, peers, time.monotonic() - began)):
            return cast("list[Any]", self.group(members).allgather(value))

    def swap(
        self, value: dict[int, Any], device: int, firsts: Mapping[int, int], count: int
    ) -> dict[int, Any]:
        """Values by device, of a device of `count` for those of others; `firsts`: by other rank, its device."""
        sends = [
            self.values.isend(value, rank, (device * count + first) % self.most_tag)
            for rank, first in firsts.items()
        ]
        others: dict[int, Any] = {}
        for rank, first in firsts.items():
            others |= self.values.recv(source=rank, tag=(first * count + device) % self.most_tag)
        for send in sends:
            send.wait()
        return others

    def group(self, members: tuple[int, ...]) -> Any:
        """The communicator of these ranks, which all ask for it."""
        if members not in self._groups:
            group = self.world.Get_group().Incl(members)
            self._groups[members] = self.world.Create_group(group)
        return self._groups[members]

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


_SEGMENT = re.compile(r" (/dev/shm/mpich_shm_\w+)$", re.MULTILINE)


def _forget_names() -> None:
    """Unlinks MPICH's shared memory, which all ranks of the machine have opened by now: of ranks that are killed
    nothing stays behind. MPICH unlinks it at its end, and does not mind that it is gone."""
    with suppress(OSError):
        for path in set(_SEGMENT.findall(Path("/proc/self/maps").read_text())):
            Path(path).unlink(missing_ok=True)


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


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
