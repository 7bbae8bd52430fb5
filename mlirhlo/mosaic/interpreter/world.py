"""The devices of a run: their cores in turns, semaphores, copies in flight.

Only one core runs at a time, until it waits for what is not there; then another one that can go on is
chosen, by the seed. A copy is performed when it is started (`eager`), or not before somebody waits for
it (`on_wait`). When nobody can go on, nobody ever will.
"""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.diagnostics import Diagnostic, HloError
from mlirhlo.mosaic.interpreter.checks import copied, mark
from mlirhlo.mosaic.interpreter.clocks import Clock, Flight, Memory, merge
from mlirhlo.mosaic.interpreter.memory import MemRef
from mlirhlo.mosaic.interpreter.numbers import width_of
from mlirhlo.mosaic.interpreter.problems import fault, place_of

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from mlirhlo.mosaic.interpreter.core import Core, Options
    from mlirhlo.mosaic.timeline.clock import Moment


_COPIES = 128
"""How many copies a core's clock may know before those go that no memory asks about any more."""


class _Abandoned(Exception):
    """Another core has failed."""


@dataclass(slots=True, eq=False)
class _Signal:
    amount: int
    clock: Clock
    op: Operation
    moment: Moment
    """When it arrives, where time is modelled."""
    flight: Flight | None = None
    """The copy whose end it is."""
    whole: int = 0
    """What it was when nothing of it was taken."""


@dataclass(slots=True, eq=False)
class _Semaphore:
    """What was added to a semaphore and not yet taken, the oldest first."""

    ref: MemRef
    signals: deque[_Signal] = field(default_factory=deque[_Signal])
    unsure: list[_Signal] = field(default_factory=list[_Signal])
    """Ends of copies that were taken while others were under way: who took them may have had those."""
    largest: int = 0
    """The most that one of these added."""

    @property
    def value(self) -> int:
        return sum(signal.amount for signal in self.signals)


@dataclass(slots=True, eq=False)
class _Wait:
    op: Operation
    semaphore: MemRef
    amount: int


_NAMED = 3
"""How many other semaphores the error of a wait names."""


def address(ref: MemRef) -> int:
    """Where a semaphore is."""
    return int(ref.array.__array_interface__["data"][0])


def bytes_of(ref: MemRef) -> int:
    """What a copy of it counts."""
    return ref.array.size * width_of(ref.dtype) // 8


def amount_of(semaphore: MemRef, moved: MemRef) -> int:
    """What the end of a copy adds: its bytes, or one to a semaphore that counts."""
    return 1 if semaphore.element == "tpu.semaphore" else bytes_of(moved)


class World:
    """All devices that run a kernel together."""

    def __init__(self, options: Options, devices: int = 1, cores: int = 1) -> None:
        self.options = options
        self.devices, self.cores = devices, cores
        self.count = count = devices * cores
        self._random = random.Random(options.random_seed)
        self._semaphores: dict[int, _Semaphore] = {}
        self._pending: list[Flight] = []
        self._coming: dict[int, int] = {}
        """What those will add to each semaphore."""
        self._next = count
        self._waits: dict[int, _Wait] = {}
        self._turns = [threading.Semaphore(0) for _ in range(count)]
        self._over: set[int] = set()
        self._failure: BaseException | None = None
        self._takers: dict[int, Operation] = {}
        self._looks: dict[tuple[int, int], int] = {}
        self.memories: dict[tuple[int, Any], Memory] = {}
        """Of each core, by key."""

    # Turns.

    def run(self, bodies: Sequence[Callable[[], None]]) -> None:
        """Runs a body on each core. Raises what the first of them to fail raises."""
        if self.count == 1:
            bodies[0]()
            self._end()
            return
        threads = [
            threading.Thread(target=self._thread, args=(at, body), daemon=True)
            for at, body in enumerate(bodies)
        ]
        for thread in threads:
            thread.start()
        self._turns[self._random.randrange(self.count)].release()
        for thread in threads:
            thread.join()
        if self._failure is not None:
            raise self._failure
        self._end()

    def _thread(self, device: int, body: Callable[[], None]) -> None:
        self._turns[device].acquire()
        if self._failure is None:
            try:
                # numpy's handling of overflows belongs to the thread.
                with np.errstate(all="ignore"):
                    body()
            except _Abandoned:
                pass
            except BaseException as problem:  # noqa: BLE001  (raised again by `run`)
                self._failure = self._failure or problem
        self._over.add(device)
        others = [at for at in range(self.count) if at not in self._over]
        if others:
            ready = [at for at in others if self._can_go_on(at)]
            self._turns[self._random.choice(ready or others)].release()

    def _can_go_on(self, device: int) -> bool:
        wait = self._waits.get(device)
        return wait is None or self._holds(wait)

    def _holds(self, wait: _Wait) -> bool:
        return self.value(wait.semaphore) >= wait.amount

    def _wait(self, core: Core, wait: _Wait) -> None:
        device = core.agent
        while not self._holds(wait):
            if self._perform_for(wait.semaphore):
                continue
            self._waits[device] = wait
            ready = [
                at
                for at in range(self.count)
                if at != device and at not in self._over and self._can_go_on(at)
            ]
            if ready:
                self._turns[self._random.choice(ready)].release()
                self._turns[device].acquire()
                if self._failure is not None:
                    raise _Abandoned
            elif not self._perform_any():
                raise self._stuck(wait)
        self._waits.pop(device, None)

    def _stuck(self, wait: _Wait) -> HloError:
        found = self._semaphores.get(address(wait.semaphore))
        value = found.value if found is not None else 0
        notes: list[Any] = []
        if found is not None and found.signals:
            notes.append(("what it holds was added here", place_of(found.signals[-1].op)))
        if (taker := self._takers.get(address(wait.semaphore))) is not None:
            notes.append(("what it held before was taken here", place_of(taker)))
        notes += [
            (f"another semaphore holds {other.value}, added here", place_of(other.signals[-1].op))
            for other in list(self._semaphores.values())[:_NAMED]
            if other is not found and other.signals
        ]
        notes += [
            (f"{self.title(agent)} waits for {other.amount} here", place_of(other.op))
            for agent, other in sorted(self._waits.items())
            if other is not wait
        ]
        return HloError(
            Diagnostic(
                "HLO0703",
                f"this wait{self._whose(wait)} never ends: it needs {wait.amount} of a semaphore that holds "
                f"{value}, and "
                "nothing that is under way will add to it",
                place_of(wait.op),
                notes,
                help="start the copy, or signal the semaphore, before the wait; wait for each once, for as much",
            )
        )

    def _whose(self, wait: _Wait) -> str:
        """Of which core a wait is, where there are several."""
        agents = [agent for agent, other in self._waits.items() if other is wait]
        return f" of {self.title(agents[0])}" if agents and self.count > 1 else ""

    def look(self, core: Core, ref: MemRef) -> int:
        """What a semaphore holds. Who sees the same again lets others go on: it may wait for them so."""
        key, value = (core.agent, address(ref)), self.value(ref)
        if self._looks.get(key) == value and not self._perform_for(ref):
            others = [
                at
                for at in range(self.count)
                if at != core.agent and at not in self._over and self._can_go_on(at)
            ]
            if others:
                self._turns[self._random.choice(others)].release()
                self._turns[core.agent].acquire()
                if self._failure is not None:
                    raise _Abandoned
            else:
                self._perform_any()
        self._looks[key] = value
        return value

    def title(self, agent: int) -> str:
        """What a core is called."""
        device, core = divmod(agent, self.cores)
        return f"device {device}" if self.cores == 1 else f"core {core} of device {device}"

    # Semaphores.

    def value(self, ref: MemRef) -> int:
        """What a semaphore holds."""
        found = self._semaphores.get(address(ref))
        return found.value if found is not None else 0

    def signal(
        self,
        ref: MemRef,
        amount: int,
        clock: Clock,
        op: Operation,
        moment: Moment = 0.0,
        flight: Flight | None = None,
    ) -> None:
        """Adds to a semaphore; with a `flight`, the end of a copy."""
        found = self._semaphores.setdefault(address(ref), _Semaphore(ref))
        found.signals.append(_Signal(amount, clock, op, moment, flight, amount))

    def take(self, core: Core, ref: MemRef, amount: int, op: Operation) -> None:
        """Waits until a semaphore holds as much, and takes it; what was done before the signals is
        ordered before what follows. Raises `HloError` HLO0703 when that will never be.
        """
        if ref.array.size != 1:
            raise fault(f"a wait for {ref.array.size} semaphores at once")
        self._wait(core, _Wait(op, ref, amount))
        self._takers[address(ref)] = op
        found = self._semaphores.get(address(ref))
        moments: list[Moment] = []
        while amount > 0 and found is not None:
            signal = found.signals[0]
            moments.append(signal.moment)
            if signal.flight is None:
                merge(core.clock, signal.clock)
            elif not (found.unsure and found.unsure[-1] is signal):
                found.unsure.append(signal)
                found.largest = max(found.largest, signal.whole)
                signal.flight.waits.append(op)
            taken = min(amount, signal.amount)
            signal.amount -= taken
            amount -= taken
            if not signal.amount:
                found.signals.popleft()
        if found is not None:
            self._settle(core, found)
            if not found.signals and not found.unsure:
                del self._semaphores[address(ref)]
        if core.time is not None:
            name = ref.memory.name if ref.memory is not None else "a semaphore"
            core.time.wait(moments, f"wait for {name}", op)
        self._forget(core)

    def _settle(self, core: Core, semaphore: _Semaphore) -> None:
        """Merges the clocks of copies that are done for sure: those that add, with all that began after their
        end, more than what is still to be taken of the semaphore. Other copies end in any order.
        """
        if not semaphore.unsure:
            return
        rest = semaphore.value + self._coming.get(address(semaphore.ref), 0)
        if rest >= semaphore.largest > 0 and self.count == 1:
            return
        unsure: list[_Signal] = []
        for signal in semaphore.unsure:
            if not rest or signal.whole + self._following(signal, semaphore, rest) > rest:
                merge(core.clock, signal.clock)
                if signal.flight is not None:
                    signal.flight.waits.clear()
            else:
                unsure.append(signal)
        semaphore.unsure = unsure
        semaphore.largest = max((signal.whole for signal in unsure), default=0)

    def _following(self, signal: _Signal, semaphore: _Semaphore, rest: int) -> int:
        """What is added to a semaphore by those who had seen the end of a copy when they began."""
        if signal.flight is None or signal.whole > rest or self.count == 1:
            return 0
        number, at = signal.flight.number, address(semaphore.ref)
        added = sum(
            other.whole
            for other in {id(one): one for one in (*semaphore.unsure, *semaphore.signals)}.values()
            if other is not signal and number in other.clock
        )
        for flight in self._pending:
            if number in flight.clock:
                for ref, moved in ((flight.sent, flight.source), (flight.arrived, flight.target)):
                    if ref is not None and address(ref) == at:
                        added += amount_of(ref, moved)
        return added

    def _count(self, flight: Flight, sign: int) -> None:
        """Counts what a copy under way will add to semaphores, and what it added."""
        for semaphore, moved in ((flight.sent, flight.source), (flight.arrived, flight.target)):
            if semaphore is not None:
                at = address(semaphore)
                self._coming[at] = self._coming.get(at, 0) + sign * amount_of(semaphore, moved)

    def _forget(self, core: Core) -> None:
        """Copies that all who use their memories have seen done are no news."""
        for memory in self.memories.values():
            if memory.flights and memory.agent == core.agent and not memory.is_shared:
                memory.flights = [f for f in memory.flights if f.number not in core.clock]
        if self.count == 1:
            core.clock = {core.agent: core.clock[core.agent]}
        elif len(core.clock) > self.count + _COPIES:
            known = {
                flight.number for memory in self.memories.values() for flight in memory.flights
            }
            known.update(range(self.count))
            core.clock = {agent: time for agent, time in core.clock.items() if agent in known}

    # Copies.

    def start(
        self,
        core: Core,
        op: Operation,
        source: MemRef,
        target: MemRef,
        arrived: MemRef | None,
        sent: MemRef | None,
    ) -> None:
        """Starts a copy. Raises `HloError` HLO0730 when it races."""
        clock = dict(core.clock)
        flight = Flight(self._next, op, source, target, clock, arrived, sent, core.agent)
        self._next += 1
        if core.time is not None:
            names = [ref.memory.name if ref.memory is not None else "" for ref in (source, target)]
            there = core.agent if target.memory is None else target.memory.agent
            other = there // self.cores != core.device
            flight.transfer = core.time.copy(
                " to ".join(names), source.space, target.space, bytes_of(source), op, other
            )
        core.tick()
        if core.checks is not None:
            core.checks.start(flight)
        mode = self.options.dma_execution_mode
        if mode == "eager" or (mode == "random" and self._random.random() < 0.5):
            self._perform(flight)
        else:
            self._pending.append(flight)
            self._count(flight, 1)

    def _perform(self, flight: Flight) -> None:
        flight.is_done = True
        source, target = flight.source, flight.target
        target.write(..., np.array(source.read()))
        memory = source.memory
        if memory is None or memory.written is None or source.written is None:
            mark(target, ...)
        elif target.written is not None:
            # What nobody wrote stays what nobody wrote.
            copied(target, np.asarray(source.written))
        clock = {**flight.clock, flight.number: 1}
        end = flight.transfer if flight.transfer is not None else 0.0
        if flight.sent is not None:
            amount = amount_of(flight.sent, source)
            self.signal(flight.sent, amount, dict(clock), flight.op, end, flight)
        if flight.arrived is not None:
            amount = amount_of(flight.arrived, target)
            self.signal(flight.arrived, amount, clock, flight.op, end, flight)

    def _perform_for(self, semaphore: MemRef) -> bool:
        """Ends a copy that is under way and adds to a semaphore, if there is one."""
        wanted = address(semaphore)
        for flight in self._pending:
            if any(
                ref is not None and address(ref) == wanted for ref in (flight.arrived, flight.sent)
            ):
                self._pending.remove(flight)
                self._count(flight, -1)
                self._perform(flight)
                return True
        return False

    def _perform_any(self) -> bool:
        if not self._pending:
            return False
        flight = self._pending.pop(self._random.randrange(len(self._pending)))
        self._count(flight, -1)
        self._perform(flight)
        return True

    # The end.

    def _end(self) -> None:
        """Raises `HloError` HLO0733 for copies and signals that nobody waited for."""
        if not self.options.checks:
            while self._perform_any():
                pass
            return
        for flight in self._pending:
            semaphore = flight.arrived or flight.sent
            told = (
                ""
                if semaphore is None
                else f": nothing takes its end from {self._called(semaphore)}"
            )
            raise self._leak(
                f"the copy that {self._at(flight.agent)} starts here is never waited for{told}",
                flight.op,
            )
        for found in self._semaphores.values():
            if found.value and found.signals:
                first = found.signals[0]
                agent = next(iter(first.clock), 0) if first.flight is None else first.flight.agent
                what = "copy that {} starts" if "dma" in first.op.name else "signal that {} sends"
                raise self._leak(
                    f"the {what.format(self._at(agent))} here is never waited for: {self._called(found.ref)} "
                    f"holds {found.value} when the kernel ends",
                    first.op,
                )

    def _at(self, agent: int) -> str:
        return self.title(agent) if self.count > 1 else "the kernel"

    def _called(self, semaphore: MemRef) -> str:
        """A semaphore by its reference and, where there are several devices, by where it is."""
        memory = semaphore.memory
        if memory is None:
            return "a semaphore"
        where = f" of {self.title(memory.agent)}" if self.count > 1 else ""
        return f"the semaphore {memory.name}{where}"

    def _leak(self, message: str, op: Operation) -> HloError:
        function = op
        while (parent := function.parent_op()) is not None and function.name != "func.func":
            function = parent
        body = function.regions[0].blocks[0].last_op if function.regions else None
        notes = [] if body is None else [("the kernel ends here", place_of(body))]
        return HloError(
            Diagnostic(
                "HLO0733",
                message,
                place_of(op),
                notes,
                help="wait for every copy and take every signal before the kernel ends",
            )
        )
