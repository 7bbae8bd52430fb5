"""Vector clocks: which accesses are ordered before which.

A clock maps agents to times. Agents are the cores of the devices, by their numbers, and copies in
flight, by numbers above them. An access of an agent at a time is ordered before what a core does now if
the core's clock has reached that time. Signals carry the clock of their sender; waits merge it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from mlirhlo.diagnostics import Diagnostic, HloError
from mlirhlo.mosaic.interpreter.problems import place_of

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from mlirhlo.mosaic.interpreter.memory import MemRef
    from mlirhlo.mosaic.interpreter.registry import Array
    from mlirhlo.mosaic.timeline.channels import Transfer

Clock: TypeAlias = "dict[int, int]"

_EFFORT = 10_000
"""How hard numpy may try to find out whether two views overlap."""


def merge(into: Clock, other: Mapping[int, int]) -> None:
    """Makes a clock reach all times of another."""
    for agent, time in other.items():
        if into.get(agent, -1) < time:
            into[agent] = time


@dataclass(slots=True, eq=False)
class Flight:
    """A copy that was started."""

    number: int
    """Its agent."""
    op: Operation
    source: MemRef
    target: MemRef
    clock: Clock
    """What was ordered before its start."""
    arrived: MemRef | None
    sent: MemRef | None
    agent: int = 0
    """The core that started it."""
    is_done: bool = False
    transfer: Transfer | None = None
    """Its modelled time."""
    waits: list[Operation] = field(default_factory=list["Operation"])
    """Who took what its end adds to a semaphore, while another copy might have added it."""

    @property
    def ends(self) -> tuple[Any, Any]:
        """Where it is from, and where to."""
        return place_of_view(root(self.source)), place_of_view(root(self.target))


@dataclass(frozen=True, slots=True, eq=False)
class Touch:
    """An access of a core, kept where another device might get in its way."""

    view: Array
    is_write: bool
    agent: int
    time: int
    op: Operation
    what: str = ""
    """What it is, if no plain read or write."""

    def __str__(self) -> str:
        return self.what or ("the write there" if self.is_write else "the read there")


@dataclass(slots=True, eq=False)
class Memory:
    """One allocation, as the checks see it."""

    name: str
    base: Array
    agent: int
    """The core whose memory it is; of what a device shares, its first one."""
    key: Any
    """The same on every device for the allocation that stands in the same place of the kernel."""
    place: Operation | None = None
    """What allocated it, if not the call."""
    written: Array | None = None
    """Which elements somebody wrote; None once all are."""
    missing: int = 0
    since: str = ""
    """When somebody should have, if not at any time."""
    flights: list[Flight] = field(default_factory=list["Flight"])
    """Copies from or to it that its core has not seen done."""
    touches: dict[Any, Touch] = field(default_factory=dict["Any", "Touch"])
    """The last access of each kind to each place."""
    is_shared: bool = False
    """Whether several cores have it."""

    def note(self, touch: Touch) -> None:
        """Keeps an access. Who is not ordered after an earlier one of the same core is not ordered after
        this one either.
        """
        key = touch.agent, touch.is_write, place_of_view(touch.view)
        self.touches.pop(key, None)
        self.touches[key] = touch

    def launch(self, flight: Flight) -> None:
        """Keeps a copy, in the place of those between the same elements that were done before it began:
        who has seen this one done has seen them.
        """
        ends = flight.ends
        self.flights = [
            one for one in self.flights if one.number not in flight.clock or one.ends != ends
        ]
        self.flights.append(flight)

    def expect_writes(self) -> None:
        """Nothing of it is written."""
        self.written = np.zeros(self.base.shape, np.bool_)
        self.missing = self.base.size

    def keeps_count(self, written: Array) -> bool:
        """Whether writes are counted; they are again from here on where all of `written`, of which references have
        views, is.
        """
        if self.written is None:
            whole = written if written.base is None else written.base
            if whole.dtype != np.bool_ or not whole.all():
                return False
            self.written, self.missing = whole, 0
        return True

    def forget_writes(self, written: Array) -> None:
        """Nothing of it is written any more; `written` is what references have for it."""
        written[...] = False
        self.written, self.missing = written, self.base.size


def place_of_view(view: Array) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """The same for views of the same elements in the same order."""
    return view.ctypes.data, view.shape, view.strides


def root(ref: MemRef) -> Array:
    """The elements in memory that a reference is of, of all of them where it converts."""
    while ref.parent is not None:
        ref = ref.parent
    return ref.array


def overlap(one: Array, other: Array) -> bool:
    """Whether two views share an element."""
    if not np.may_share_memory(one, other):
        return False
    try:
        # numpy takes any number here; its types know two.
        return bool(np.shares_memory(one, other, max_work=_EFFORT))  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def race(
    first: Operation | Flight, what: str, second: Operation, doing: str, name: str
) -> HloError:
    """HLO0730, with the places of both."""
    waits: list[Operation] = []
    if isinstance(first, Flight):
        waits = first.waits
        first = first.op
    help_ = "wait for the copy's semaphore between them"
    if waits:
        help_ = "give each copy a semaphore of its own, or wait for all of them before"
    return HloError(
        Diagnostic(
            "HLO0730",
            f"a race in {name}: {doing if doing.startswith('the ') else f'this {doing}'} and {what} are "
            "not ordered",
            place_of(second),
            [
                (what, place_of(first)),
                *(
                    ("this wait may be for another copy that shares the semaphore", place_of(wait))
                    for wait in waits[:1]
                ),
            ],
            help=help_,
        )
    )
