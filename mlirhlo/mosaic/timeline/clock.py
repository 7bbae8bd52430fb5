"""Time of a simulated run: what each core does when, and the copies beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from mlirhlo.mosaic.interpreter.problems import place_of
from mlirhlo.mosaic.timeline.channels import Channel, Transfer
from mlirhlo.mosaic.timeline.figures import Chip

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from mlirhlo.mosaic.timeline.blocks import Stretch

Moment: TypeAlias = "float | Transfer"
"""A time in cycles, or the end of a copy."""

COMPUTE, STALL, COPY, SIGNAL = "compute", "stall", "copy", "signal"


@dataclass(slots=True, eq=False)
class Event:
    """Something that a core did or that was done for it, in cycles."""

    kind: str
    name: str
    begin: float
    end: float = 0.0
    step: tuple[int, ...] = ()
    """The grid indices."""
    op: Operation | None = None
    bytes: int = 0
    direction: str = ""
    """Of a copy: `in`, `out`, `local`, `remote`."""
    transfer: Transfer | None = None

    @property
    def place(self) -> str:
        """`file:line` of what caused it; empty for what the grid does by itself."""
        return "" if self.op is None else str(place_of(self.op))


@dataclass(slots=True)
class CoreTime:
    """The time of one core, and what it did."""

    chip: Chip
    device: int
    core: int
    hbm: Channel
    link: Channel
    wires: Channel
    now: float = 0.0
    step: tuple[int, ...] = ()
    events: list[Event] = field(default_factory=list[Event])
    units: dict[str, float] = field(default_factory=dict[str, float])
    computed: float = 0.0
    stalled: float = 0.0
    flops: float = 0.0
    matrix_flops: float = 0.0
    transcendentals: float = 0.0
    moved: dict[str, int] = field(default_factory=dict[str, int])
    """Bytes by direction."""
    _fetched: dict[int, Moment] = field(default_factory=dict[int, Moment])
    _written: dict[int, Moment] = field(default_factory=dict[int, Moment])

    # The core itself.

    def compute(self, stretch: Stretch) -> None:
        """A stretch of operations passes."""
        begin, self.now = self.now, self.now + stretch.cycles
        self.computed += stretch.cycles
        self.flops += stretch.flops
        self.matrix_flops += stretch.matrix_flops
        self.transcendentals += stretch.transcendentals
        for unit, busy in stretch.units.items():
            self.units[unit] = self.units.get(unit, 0.0) + busy
        last = self.events[-1] if self.events else None
        if (
            last is not None
            and last.kind == COMPUTE
            and last.end == begin
            and last.step == self.step
        ):
            last.end = self.now
            return
        self.events.append(
            Event(COMPUTE, _step_name(self.step), begin, self.now, self.step, stretch.op)
        )

    def wait(self, moments: Iterable[Moment], name: str, op: Operation | None = None) -> None:
        """The core goes on when all these moments have come."""
        until = max((_time(moment) for moment in moments), default=0.0)
        if until <= self.now:
            return
        self.events.append(Event(STALL, name, self.now, until, self.step, op))
        self.stalled += until - self.now
        self.now = until

    def signal(self, op: Operation, is_remote: bool) -> Moment:
        """When a signal that is sent now arrives."""
        self.events.append(Event(SIGNAL, "signal", self.now, self.now, self.step, op))
        return self.now + (self.chip.cycles(self.chip.link_seconds) if is_remote else 0.0)

    # Copies.

    def copy(
        self, name: str, source: str, target: str, size: int, op: Operation | None, is_remote: bool
    ) -> Transfer:
        """A copy between memory spaces that is started now."""
        chip = self.chip
        if is_remote:
            direction, channel, latency = "remote", self.link, chip.cycles(chip.link_seconds)
        elif _is_far(target):
            direction, channel, latency = "out", self.hbm, chip.cycles(chip.write_seconds)
        elif _is_far(source):
            direction, channel, latency = "in", self.hbm, chip.cycles(chip.read_seconds)
        else:
            direction, channel, latency = "local", self.wires, chip.onchip_cycles
        # From HBM to HBM every byte goes through it twice.
        twice = direction == "out" and _is_far(source)
        transfer = channel.start(self.now, latency, size * (2 if twice else 1))
        self.moved[direction] = self.moved.get(direction, 0) + size
        if twice:
            self.moved["in"] = self.moved.get("in", 0) + size
        self.events.append(
            Event(COPY, name, self.now, 0.0, self.step, op, size, direction, transfer)
        )
        return transfer

    # Blocks of the grid, which the compiler moves.

    def fetch(self, number: int, name: str, size: int) -> None:
        """The next block of an operand is on its way."""
        self._fetched[number] = self.copy(f"{name} in", "hbm", "vmem", size, None, False)

    def is_fetched(self, number: int) -> bool:
        """Whether the next block of an operand was started."""
        return number in self._fetched

    def need(self, number: int, name: str) -> None:
        """The step needs an operand's block."""
        moment = self._fetched.pop(number, None)
        if moment is not None:
            self.wait([moment], f"wait for {name}")

    def write_back(self, number: int, name: str, size: int, buffers: int) -> None:
        """An output's block goes back; its buffer is free when the one before it has."""
        before = self._written.get(number)
        self._written[number] = self.copy(f"{name} out", "vmem", "hbm", size, None, False)
        if buffers == 1:
            before = self._written[number]
        if before is not None:
            self.wait([before], f"wait for {name}")

    def finish(self) -> None:
        """The end of the kernel: all blocks are back."""
        self.wait(self._written.values(), "wait for results")
        for event in self.events:
            if event.transfer is not None:
                event.end = event.transfer.finish()


def _time(moment: Moment) -> float:
    return moment.finish() if isinstance(moment, Transfer) else moment


def _is_far(space: str) -> bool:
    return space in ("hbm", "any", "host", "cmem")


def _step_name(step: Sequence[int]) -> str:
    return f"step {', '.join(map(str, step))}" if step else "kernel"
