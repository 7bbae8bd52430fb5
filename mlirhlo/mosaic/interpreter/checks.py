"""What the checking simulator holds every access against: memory nobody wrote, races."""

# A numpy index has no stated type until it is looked at.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.diagnostics import Diagnostic, HloError
from mlirhlo.mosaic.interpreter.clocks import (
    Flight,
    Memory,
    Touch,
    overlap,
    place_of_view,
    race,
    root,
)
from mlirhlo.mosaic.interpreter.poison import LOADS, Poison
from mlirhlo.mosaic.interpreter.problems import place_of

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from mlirhlo.mosaic.interpreter.core import Core
    from mlirhlo.mosaic.interpreter.memory import MemRef
    from mlirhlo.mosaic.interpreter.registry import Array

_TOUCHES = 256
"""How many accesses are kept for each memory that other devices may write to."""
_EFFECTS = ("store", "enqueue", "wait", "signal", "assert", "log", "yield", "return", "condition")


class Checks:
    """The checks of one core."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._dead: dict[Operation, bool] = {}
        self.last_write: Any = None
        """Where the last write was."""

    # Accesses.

    def read(self, op: Operation, ref: MemRef, index: Any) -> None:
        """Raises `HloError` HLO0730 for a read that a copy races with, HLO0731 for one of memory that
        nobody wrote and whose value is used.
        """
        memory = ref.memory
        if memory is None:
            return
        self._race(op, ref, index, is_write=False)
        written = ref.written
        if memory.written is None or written is None or ref.parent is not None:
            return
        part = written[index]
        if part.all() or self._is_dead(op):
            return
        problem = self._unwritten(op, memory, part)
        if op.name not in LOADS or len(op.results) != 1:
            raise problem
        shape: tuple[int, ...] = getattr(op.results[0].type, "get_shape", tuple)()
        if part.size != prod(shape):
            raise problem
        source = memory, place_of_view(_view(ref, index))
        self._core.poison[op.results[0]] = Poison(~part.reshape(shape), problem, source)

    def write(self, op: Operation, ref: MemRef, index: Any) -> None:
        """Raises `HloError` HLO0730 for a write that a copy races with."""
        memory = ref.memory
        if memory is None:
            return
        self._race(op, ref, index, is_write=True)
        mark(ref, index)
        if self._core.poison:
            self.last_write = place_of_view(_view(ref, index))

    def _race(self, op: Operation, ref: MemRef, index: Any, *, is_write: bool) -> None:
        memory = ref.memory
        assert memory is not None
        core = self._core
        if not (memory.flights or core.has_peers) or not core.options.detect_races:
            return
        view = _view(ref, index)
        for flight in memory.flights:
            if flight.number in core.clock:
                continue
            doing = "write" if is_write else "read"
            if flight.target.memory is memory and overlap(view, root(flight.target)):
                what = f"the copy that writes there{self._whose(flight.agent)}"
                raise race(flight, what, op, doing, self._named(memory))
            if is_write and flight.source.memory is memory and overlap(view, root(flight.source)):
                what = f"the copy that reads there{self._whose(flight.agent)}"
                raise race(flight, what, op, doing, self._named(memory))
        if core.has_peers:
            doing = "write" if is_write else "read"
            self._touch(
                memory, Touch(view, is_write, core.agent, core.clock[core.agent], op), doing
            )
            if not memory.is_shared and len(memory.touches) > _TOUCHES:
                del memory.touches[next(iter(memory.touches))]

    def block(self, memory: Memory, view: Array, op: Operation, *, is_write: bool) -> None:
        """Raises `HloError` HLO0730 for a block that the grid moves while another core has to do with
        the same elements.
        """
        core = self._core
        if not core.options.detect_races:
            return
        what = f"{'the way back' if is_write else 'the fetch'} of a block by core {core.number}"
        touch = Touch(view, is_write, core.agent, core.clock[core.agent], op, what)
        for flight in memory.flights:
            ends = ((flight.target, True), (flight.source, False))
            for ref, flight_writes in ends:
                if (
                    (is_write or flight_writes)
                    and flight.number not in core.clock
                    and ref.memory is memory
                    and overlap(view, root(ref))
                ):
                    raise race(flight, "the copy there", op, what, memory.name)
        self._touch(memory, touch, what)

    def _touch(self, memory: Memory, touch: Touch, doing: str) -> None:
        """Notes an access, after those of other cores that it could race with."""
        if memory.is_shared:
            clock = self._core.clock
            for other in memory.touches.values():
                if (
                    other.agent != touch.agent
                    and (other.is_write or touch.is_write)
                    and clock.get(other.agent, -1) < other.time
                    and overlap(touch.view, other.view)
                ):
                    raise race(other.op, str(other), touch.op, doing, memory.name)
        memory.note(touch)

    def start(self, flight: Flight) -> None:
        """Raises `HloError` HLO0730 for a copy that races with another, or with a core."""
        if not self._core.options.detect_races:
            return
        for ref, is_write in ((flight.source, False), (flight.target, True)):
            memory = ref.memory
            if memory is None:
                continue
            view = root(ref)
            doing = "copy into it" if is_write else "copy out of it"
            for other in memory.flights:
                if other.number in flight.clock:
                    continue
                whose, name = self._whose(other.agent), self._named(memory)
                if other.target.memory is memory and overlap(view, root(other.target)):
                    what = f"the copy that writes there{whose}"
                    raise race(other, what, flight.op, doing, name)
                if is_write and other.source.memory is memory and overlap(view, root(other.source)):
                    what = f"the copy that reads there{whose}"
                    raise race(other, what, flight.op, doing, name)
            for touch in memory.touches.values():
                if not is_write and not touch.is_write:
                    continue
                if flight.clock.get(touch.agent, -1) < touch.time and overlap(view, touch.view):
                    what = f"{touch}{self._whose(touch.agent)}"
                    raise race(touch.op, what, flight.op, doing, self._named(memory))
        source, target = flight.source, flight.target
        if source.memory is not None and source.memory is target.memory:
            if overlap(root(source), root(target)):
                what = "the copy's own source"
                raise race(flight.op, what, flight.op, "copy into it", source.memory.name)
            source.memory.launch(flight)
            return
        for memory in (source.memory, target.memory):
            if memory is not None:
                memory.launch(flight)

    def _whose(self, agent: int) -> str:
        """Of which core something is, where that is another one."""
        core = self._core
        return f" of {core.world.title(agent)}" if core.world and agent != core.agent else ""

    def _named(self, memory: Memory) -> str:
        """A memory by its name, and by its core where there are several."""
        core = self._core
        return (
            f"{memory.name} of {core.world.title(memory.agent)}"
            if core.world and core.has_peers
            else memory.name
        )

    # Memory nobody wrote.

    def _unwritten(self, op: Operation, memory: Memory, part: Array) -> HloError:
        places = np.argwhere(~part)
        allocated = memory.place
        notes = [] if allocated is None else [("it is allocated here", place_of(allocated))]
        return HloError(
            Diagnostic(
                "HLO0731",
                f"{len(places)} of {part.size} elements read from {memory.name} were never written"
                f"{memory.since}, the first at {[int(i) for i in places[0]]} of what is read",
                place_of(op),
                notes,
                help="write it in each of them, or call the dimension arbitrary"
                if memory.since
                else "write it first (an accumulator: in the first step of the grid), or wait for "
                "the copy that fills it; InterpretParams(uninitialized_memory='zero') lets it be read",
            )
        )

    def _is_dead(self, op: Operation) -> bool:
        """Whether nothing that can be seen comes of the op's results."""
        known = self._dead.get(op)
        if known is None:
            known = self._dead[op] = all(
                not any(sign in use.operation.name for sign in _EFFECTS)
                and not use.operation.regions
                and self._is_dead(use.operation)
                for result in op.results
                for use in result.uses
            )
        return known


def _view(ref: MemRef, index: Any) -> Array:
    """What an access is of; of all the reference where the index makes a copy."""
    whole = root(ref)
    if ref.parent is not None or index is Ellipsis:
        return whole
    if isinstance(index, tuple) and all(isinstance(item, int | slice) for item in index):
        part: Array = whole[index]
        return part
    return whole


def mark(ref: MemRef, index: Any) -> None:
    """Notes that elements are written."""
    memory = ref.memory
    if memory is None or memory.written is None:
        return
    if ref.parent is not None or ref.written is None:
        memory.written = None
        return
    part = ref.written[index]
    fresh = part.size - int(np.count_nonzero(part))
    if fresh:
        ref.written[index] = True
        memory.missing -= fresh
        if memory.missing <= 0:
            memory.written = None


def copied(target: MemRef, written: Array) -> None:
    """Notes that elements come from others of which only those that are true in `written` were written."""
    mark(target, written)
    memory = target.memory
    if memory is None or target.written is None or target.parent is not None:
        return
    if not memory.keeps_count(target.written):
        return
    lost = np.count_nonzero(target.written & ~written)
    target.written[...] &= written
    memory.missing += int(lost)
