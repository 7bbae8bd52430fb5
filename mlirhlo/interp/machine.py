"""The simulated machine: replicas × partitions in one process, and the host next to them.

Every device is a thread that runs the whole module; collectives meet in `exchange`, messages travel
through `post` and `collect`, the host feeds and drains queues. The machine knows at every moment
which device waits for what, so a program that can never go on is refused with that list instead of
hanging. An error on one device stops all.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from mlirhlo.diagnostics import Diagnostic, HloError
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.interp.value_types import Value

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.base import Instruction

T = TypeVar("T")

_LOOK_S = 0.1
"""Seconds between two looks at devices that run for long."""

_MOST_DEVICES = 1 << 15
"""Threads of a process, at the most, as Linux has it by default."""

FIRST_RNG_STATE = 0x7012395
"""Random state a module starts with on XLA:CPU, 128 bits wide."""


class Stopped(Exception):
    """Ends a device's thread because another one failed."""


class Watched(Protocol):
    """Where devices wait outside of Python."""

    def waits(self) -> Mapping[int, str]:
        """By device that cannot go on by itself, what it waits in, and for whom."""
        ...

    def place(self, device: int) -> Any:
        """Where the instruction is that a device waits in."""
        ...

    def tell(self) -> None:
        """Warns of devices that have waited for long."""
        ...

    def end(self) -> None:
        """Ends all waiting."""
        ...


@dataclass(slots=True)
class _Meeting:
    members: tuple[int, ...]
    arrived: dict[int, Value] = field(default_factory=dict[int, Value])

    @property
    def is_complete(self) -> bool:
        return len(self.arrived) == len(self.members)


@dataclass(frozen=True, slots=True)
class _Wait:
    is_over: Callable[[], bool]
    reason: Callable[[], str]


class Machine:
    """Simulated devices; one may be used for many runs, and keeps random state and queues."""

    def __init__(
        self,
        replicas: int = 1,
        partitions: int = 1,
        *,
        seed: int = 42,
        host_timeout_s: float = 0.0,
        custom_calls: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        """`seed`: of `rng` instructions. `host_timeout_s`: how long an infeed or a receive from the
        host waits for another thread to feed it; with 0 an empty queue is an error at once.
        `custom_calls`: meanings by target, before those of `register_custom_call`.
        """
        if replicas < 1 or partitions < 1:
            raise ValueError("a machine has at least one replica and one partition")
        self.replicas: int = replicas
        self.partitions: int = partitions
        self.seed: int = seed
        self.host_timeout_s: float = host_timeout_s
        self.custom_calls: dict[str, Callable[..., Any]] = dict(custom_calls or {})
        self.watched: dict[Hashable, Watched] = {}
        """Where machine code waits, by whose it is."""
        self._changed = threading.Condition()
        self._here = threading.local()
        self._running: set[int] = set()
        self._waits: dict[int, _Wait] = {}
        self._failure: BaseException | None = None
        self._deadlock: HloError | None = None
        self._meetings: dict[Hashable, _Meeting] = {}
        self._mail: dict[Hashable, deque[Value]] = {}
        self._tickets: dict[int, Hashable] = {}
        self._last_ticket: int = 0
        self._rng_states: dict[int, int] = {}
        self._generators: dict[int, np.random.Generator] = {}

    # -------------------------------------------------------------- devices

    @property
    def device_count(self) -> int:
        """Replicas × partitions."""
        return self.replicas * self.partitions

    def device(self, replica: int, partition: int) -> int:
        """Global number of a device: replicas major, partitions minor."""
        return replica * self.partitions + partition

    def place(self, device: int) -> tuple[int, int]:
        """Replica and partition of a global device number."""
        return divmod(device, self.partitions)

    def describe(self, device: int) -> str:
        """`replica 0 partition 3`, without the part there is only one of."""
        replica, partition = self.place(device)
        parts = [f"replica {replica}"] if self.replicas > 1 else []
        if self.partitions > 1 or not parts:
            parts.append(f"partition {partition}")
        return " ".join(parts)

    def run_devices(
        self, program: Callable[[int, int], T], own: Sequence[int] | None = None
    ) -> list[T]:
        """Results of `program(replica, partition)` on every device, or on these, by global device number.

        Raises the first exception any device raised; the others are stopped. Raises `HloError` HLO0507 for more
        devices than a process has threads.
        """
        if own is None and self.device_count > _MOST_DEVICES:
            problem = (
                f"{self.device_count} devices are more threads than a process has ({_MOST_DEVICES})"
            )
            raise HloError(Diagnostic("HLO0507", problem))
        devices = range(self.device_count) if own is None else own
        results: dict[int, Any] = {}
        self._forget()
        if len(devices) == 1:
            with self._runs(devices[0]):
                return [program(*divmod(devices[0], self.partitions))]

        def work(device: int) -> None:
            try:
                with self._runs(device):
                    results[device] = program(*self.place(device))
            except Stopped:
                pass
            except BaseException as problem:  # noqa: BLE001 - handed to the caller's thread
                self._fail(problem)

        with self._changed:
            self._running.update(devices)
        threads = [threading.Thread(target=work, args=(d,), daemon=True) for d in devices]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(_LOOK_S)
                while thread.is_alive():
                    self._look()
                    thread.join(_LOOK_S)
        except BaseException as problem:
            self._fail(problem)
            raise
        if self._failure is not None:
            raise self._take_failure()
        return [results[device] for device in devices]

    def _take_failure(self) -> BaseException:
        """The error, which nothing here refers to any longer: its traceback refers to this machine."""
        failure, self._failure = self._failure, None
        assert failure is not None
        return failure

    def must_run_all(self, module: HloModule) -> bool:
        """Whether a run of `module` asked for from outside needs all devices, since they meet."""
        if self.device_count == 1 or getattr(self._here, "is_inside", False):
            return False
        return any(map(_meets_others, module.instructions))

    @contextmanager
    def _runs(self, device: int) -> Generator[None]:
        with self._changed:
            self._running.add(device)
        self._here.is_inside = True
        try:
            yield
        finally:
            self._here.is_inside = False
            with self._changed:
                self._running.discard(device)
                self._check_progress()

    def _fail(self, problem: BaseException) -> None:
        with self._changed:
            if self._failure is None:
                self._failure = problem
            self._changed.notify_all()
        for watched in list(self.watched.values()):
            watched.end()

    def _forget(self) -> None:
        """Drops what a failed run left behind, so that the next one starts clean."""
        self._failure = self._deadlock = None
        self._running.clear()
        self._waits.clear()
        self._meetings.clear()
        self._mail = {key: box for key, box in self._mail.items() if _is_host(key)}
        self._tickets.clear()

    # -------------------------------------------------------------- waiting

    def _wait(self, device: int, wait: _Wait) -> None:
        """Waits under the lock. Raises HLO0351 when no device can ever go on."""
        self._waits[device] = wait
        try:
            self._check_progress(device)
            while not wait.is_over():
                if self._deadlock is not None:
                    # The first to wake reports it, with the place of its instruction.
                    raise self._take_deadlock()
                if self._failure is not None:
                    raise Stopped
                self._changed.wait()
        finally:
            self._waits.pop(device, None)

    def _take_deadlock(self) -> HloError:
        deadlock, self._deadlock = self._deadlock, None
        assert deadlock is not None
        return deadlock

    def _check_progress(self, device: int | None = None) -> None:
        stuck = self._running if device is None else self._running | {device}
        if (
            not self._waits
            or self._failure is not None
            or any(d not in self._waits for d in stuck)
            or any(wait.is_over() for wait in self._waits.values())
        ):
            return
        self._deadlock = self.stuck({d: wait.reason() for d, wait in self._waits.items()})
        self._changed.notify_all()

    def stuck(self, reasons: Mapping[int, str]) -> HloError:
        """The error of devices that all wait, each for its reason."""
        first, *rest = sorted(reasons.items())
        others = [d for d in range(self.device_count) if d not in reasons]
        return HloError(
            Diagnostic(
                "HLO0351",
                f"deadlock: {self.describe(first[0])} waits {first[1]}, and no device can go on",
                notes=[(f"{self.describe(d)} waits {reason}", None) for d, reason in rest]
                + [(f"{self.describe(d)} is not running", None) for d in others],
                help="every member of a collective's group must run it, in the same order as the others",
            )
        )

    def _look(self) -> None:
        """Ends the run where no device can go on, and some wait in machine code."""
        watched = list(self.watched.values())
        if not watched:
            return
        with self._changed:
            reasons = {d: w.reason() for d, w in self._waits.items() if not w.is_over()}
            running = set(self._running)
        places: dict[int, Any] = {}
        for each in watched:
            for device, reason in each.waits().items():
                reasons[device] = reason
                places[device] = each.place(device)
        if running and running <= reasons.keys():
            problem = self.stuck({d: reasons[d] for d in running})
            self._fail(problem.at(places.get(min(running))))
        else:
            for each in watched:
                each.tell()

    # -------------------------------------------------------------- meeting and mail

    def exchange(
        self, device: int, key: Hashable, members: tuple[int, ...], value: Value, what: str
    ) -> list[Value]:
        """The values of all `members`, in their order, once each of them has come with `key`.

        `what` names the instruction for messages. Raises HLO0351 when some member never comes.
        """
        if members == (device,):
            return [value]
        with self._changed:
            meeting = self._meetings.setdefault((key, members), _Meeting(members))
            meeting.arrived[device] = value
            if meeting.is_complete:
                del self._meetings[key, members]
                self._changed.notify_all()
            else:

                def reason() -> str:
                    missing = [d for d in meeting.members if d not in meeting.arrived]
                    return f"in {what} for {', '.join(map(self.describe, missing))}"

                self._wait(device, _Wait(lambda: meeting.is_complete, reason))
            return [meeting.arrived[member] for member in members]

    def post(self, key: Hashable, value: Value) -> None:
        """Puts a message into the box `key`; never waits."""
        with self._changed:
            self._mail.setdefault(key, deque()).append(value)
            self._changed.notify_all()

    def collect(self, device: int, key: Hashable, what: str, sender: str) -> Value:
        """The oldest message of the box `key`, waiting for it. Raises HLO0351 when none can come."""
        with self._changed:
            if not self._mail.get(key):
                wait = _Wait(lambda: bool(self._mail.get(key)), lambda: f"in {what} for {sender}")
                self._wait(device, wait)
            return self._mail[key].popleft()

    def ticket(self, key: Hashable) -> int:
        """A number below 2**32 that stands for `key` until `redeem`; for contexts of transfers."""
        with self._changed:
            self._last_ticket = (self._last_ticket + 1) % (1 << 32)
            self._tickets[self._last_ticket] = key
            return self._last_ticket

    def redeem(self, ticket: int) -> Hashable | None:
        """The key of a ticket, once; None for an unknown one."""
        with self._changed:
            return self._tickets.pop(ticket, None)

    # -------------------------------------------------------------- host

    def feed(self, value: object, *, replica: int = 0, partition: int = 0) -> None:
        """Puts a value (array, or tuple of values) into the infeed queue of a device."""
        self.post(infeed_box(self.device(replica, partition)), value)

    def outfed(self, *, replica: int = 0, partition: int = 0) -> list[Value]:
        """Takes everything a device has put out by `outfeed`, oldest first."""
        return self._drain(outfeed_box(self.device(replica, partition)))

    def host_send(
        self, channel: int, value: object, *, replica: int = 0, partition: int = 0
    ) -> None:
        """Sends a value to the `recv` with `is_host_transfer` and `channel` of a device."""
        self.post(host_box(channel, self.device(replica, partition), to_device=True), value)

    def host_received(self, channel: int, *, replica: int = 0, partition: int = 0) -> list[Value]:
        """Takes everything a device has sent to the host on `channel`, oldest first."""
        return self._drain(host_box(channel, self.device(replica, partition), to_device=False))

    def _drain(self, key: Hashable) -> list[Value]:
        with self._changed:
            return list(self._mail.pop(key, ()))

    def from_host(self, key: Hashable, what: str) -> Value:
        """The oldest value the host has put into the box `key`. Raises HLO0352 when there is none."""
        with self._changed:

            def is_ready() -> bool:
                return bool(self._mail.get(key)) or self._failure is not None

            if not self._changed.wait_for(is_ready, self.host_timeout_s) or not self._mail.get(key):
                if self._failure is not None:
                    raise Stopped
                raise HloError(
                    Diagnostic(
                        "HLO0352",
                        f"{what}: the host has sent nothing",
                        help="put values into the queue first: machine.feed(value) for infeed, "
                        "machine.host_send(channel, value) for recv",
                    )
                )
            return self._mail[key].popleft()

    # -------------------------------------------------------------- random state

    def advance_rng_state(self, device: int, delta: int) -> int:
        """The 128-bit random state of a device, which then moves on by `delta`."""
        with self._changed:
            state = self._rng_states.get(device, FIRST_RNG_STATE)
            self._rng_states[device] = (state + delta) % (1 << 128)
            return state

    def generator(self, device: int) -> np.random.Generator:
        """Source of the values of `rng` instructions; seeded by `seed` and the device's number."""
        with self._changed:
            if device not in self._generators:
                self._generators[device] = np.random.default_rng([self.seed, device])
            return self._generators[device]


def infeed_box(device: int) -> Hashable:
    """Box with the values the host feeds to a device."""
    return ("host", "infeed", device)


def outfeed_box(device: int) -> Hashable:
    """Box with the values a device has put out."""
    return ("host", "outfeed", device)


def host_box(channel: int, device: int, *, to_device: bool) -> Hashable:
    """Box of a host transfer."""
    return ("host", "to device" if to_device else "to host", channel, device)


def _is_host(key: Hashable) -> bool:
    return isinstance(key, tuple) and key[:1] == ("host",)


def _meets_others(op: Instruction) -> bool:
    """Whether a device needs others to run `op`."""
    opcode = op.opcode
    if opcode.name == "custom-call":
        target = getattr(op, "custom_call_target", "")
        return target in _MANUAL_BORDERS or bool(_SENDS.search(getattr(op, "backend_config", "")))
    if opcode.name == "recv":
        return not getattr(op, "is_host_transfer", False)
    return opcode.collective and opcode.name not in ("partition-id", "replica-id")


_SENDS = re.compile(r'"has_communication": ?true')
"""What the configuration of a kernel says that sends to other devices."""
_MANUAL_BORDERS = ("xla.sdy.LocalToGlobalShape", "SPMDShardToFullShape")
