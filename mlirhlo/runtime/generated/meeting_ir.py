"""The code by which devices of one process meet; `lowering/meeting_words.py` says what lies where.

Each meeting has counters, each on a cache line of its own: arrivals, departures, and devices that sleep. The first two
only grow, so that the first device may go on to the next round while others still read this one's. A device that waits
spins for some microseconds, then yields the processor a few times, since the device it waits for may be kept off it,
and then sleeps on a futex, a hundredth of a second at a time: no wake-up can be missed for good, and the end of the
world is noticed. A device that sees its group complete goes on even then; one whose group has moved its data only in
part waits for a second, since the others read its memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp, i8, i32, i64

from mlirhlo.lowering import meeting_words as words
from mlirhlo.lowering.llvm_builder import POINTER, LlvmBuilder, LlvmFunction, Value, array_of
from mlirhlo.lowering.llvm_text import print_llvm

ENDED, SPINS = words.ENDED, 1
"""Words of a world; of the second, rounds that a device spins before it sleeps."""

ARRIVED, LEFT, SLEEPERS, POINTERS = 0, 64, 128, 192
"""Bytes from a meeting to its counters, and to the published pointers."""

_WAIT, _WAKE, _PRIVATE = 0, 1, 128
"""Of the futex's system call, and its flag for threads of one process."""
_YIELDS = 20
"""How often a device yields its processor before it sleeps."""
_SLEEP_NS = 10_000_000
_PATIENCE = 100
"""Sleeps in a world that has ended."""
_EVERY_SLEEPER = (1 << 31) - 1


def assembly(futex: int, pause: str, is_private: bool = True) -> str:
    """LLVM assembly of `module`."""
    return print_llvm(module(futex, pause, is_private=is_private))


def module(futex: int, pause: str, *, is_private: bool = True) -> ModuleOp:
    """`publish`, `arrive` and `leave`, in the llvm dialect.

    `futex`: number of the system call, or 0 for none: then a device yields the processor instead of sleeping.
    `pause`: intrinsic that a spin loop executes, or nothing. `is_private`: whether all devices are in one process.
    """
    m = LlvmBuilder()
    add_meeting(m, futex, pause, is_private=is_private)
    return m.module()


def add_meeting(m: LlvmBuilder, futex: int, pause: str, *, is_private: bool = True) -> None:
    """Adds the functions; `module` says what the parameters are."""
    flag = _PRIVATE if is_private else 0
    m.external("syscall", [i64], i64, is_variadic=True)
    m.external("sched_yield", [], i32)
    m.external("memcpy", [POINTER, POINTER, i64], POINTER)
    m.variable("nap", array_of(2, i64), [0, _SLEEP_NS], is_constant=True)
    _count(m, futex, _WAKE | flag)
    _await(m, futex, _WAIT | flag, pause)
    _wait_for_group(m)
    _publish(m)
    _arrive(m)
    _leave(m)


def _count(m: LlvmBuilder, futex: int, wake: int) -> None:
    """`count(meeting, counter)`: adds one to a counter and wakes the devices that sleep."""
    f = m.function("count", [POINTER, POINTER])
    meeting, counter = f.arguments
    counter.update("add", f.value(1, i32), "seq_cst")
    asleep = meeting.at(i8, SLEEPERS).load(i32, "seq_cst")
    if futex:
        with f.if_(asleep.cmp("ne", 0)):
            sleepers = f.value(_EVERY_SLEEPER, i32)
            f.call("syscall", futex, counter, f.value(wake, i32), sleepers, *_rest(f, f.null))
    f.ret()


def _rest(f: LlvmFunction, time: Value) -> Sequence[Value]:
    """The last operands of the futex's system call."""
    return time, f.null, f.value(0, i32)


def _await(m: LlvmBuilder, futex: int, wait: int, pause: str) -> None:
    """`await(context, meeting, counter, goal, patience)`: waits until a counter has reached a number.

    Returns 0, or 1 where the world ends first, and patience after it.
    """
    f = m.function("await", [POINTER, POINTER, POINTER, i32, i64], i8)
    context, meeting, counter, goal, patience = f.arguments
    world, sleepers = context.load(POINTER), meeting.at(i8, SLEEPERS)
    spins, good = world.item(i64, SPINS), f.label()

    def is_there(seen: Value) -> Value:
        return (goal - seen).cmp("sle", 0)

    with f.loop(0) as spin:
        (turn,) = spin.values
        f.jump_if(is_there(counter.load(i32, "acquire")), good)
        if pause:
            f.intrinsic(pause)
        spin.leave_unless((turn + 1).cmp("ult", spins))
        spin.next(turn + 1)
    with f.count(_YIELDS):
        f.call("sched_yield")
        f.jump_if(is_there(counter.load(i32, "acquire")), good)
    with f.loop(patience) as sleep:
        (left,) = sleep.values
        sleepers.update("add", f.value(1, i32), "seq_cst")
        seen = counter.load(i32, "seq_cst")
        with f.if_(is_there(seen)):
            sleepers.update("sub", f.value(1, i32), "seq_cst")
            f.jump(good)
        is_ended = world.at(i64, ENDED).load(i64, "seq_cst").cmp("ne", 0)
        with f.if_(is_ended & left.cmp("eq", 0)):
            sleepers.update("sub", f.value(1, i32), "seq_cst")
            f.ret(1)
        if futex:
            rest = _rest(f, f.address("nap"))
            f.call("syscall", futex, counter, f.value(wait, i32), seen, *rest)
        else:
            f.call("sched_yield")
        sleepers.update("sub", f.value(1, i32), "seq_cst")
        sleep.next(left - is_ended.to(i64))
    f.place(good)
    f.ret(0)


def _publish(m: LlvmBuilder) -> None:
    """Starts a device's next round: writes its pointers to its group's table, or copies, and counts its arrival."""
    f = m.function(words.PUBLISH, [POINTER, POINTER, POINTER, i64], is_public=True)
    _, record, pointers, count = f.arguments
    size = record.item(i64, words.COUNT)
    with f.unless(size.cmp("eq", 0)):
        round_ = record.item(POINTER, words.ROUND)
        number = round_.load(i64) + 1
        round_.store(number)
        copies = record.item(POINTER, words.COPIES)
        with f.if_(copies.cmp("ne", 0)):
            _copy(f, record, pointers, copies, number & 1)
        with f.if_(copies.cmp("eq", 0)):
            table = record.item(POINTER, words.TABLE).at(POINTER, record.item(i64, words.POSITION))
            with f.count(count) as k:
                table.at(POINTER, k * size).store(pointers.item(POINTER, k))
        meeting = record.item(POINTER, words.MEETING)
        f.call("count", meeting, meeting.at(i8, ARRIVED))
    f.ret()


def _copy(f: LlvmFunction, record: Value, pointers: Value, copies: Value, parity: Value) -> None:
    """Copies operands to the slots of a round, and takes its table."""
    record.at(POINTER, words.TABLE).store(copies.item(POINTER, parity + 1))
    with f.count(copies.item(i64, 0)) as k:
        row = copies.at(i64, k * words.COPY_ROW + words.COPY_HEAD)
        f.call("memcpy", row.item(POINTER, parity + 1), pointers.item(POINTER, k), row.item(i64, 0))


def _arrive(m: LlvmBuilder) -> None:
    """Waits until all devices of the group have published their pointers."""
    f = m.function(words.ARRIVE, [POINTER, POINTER], i8, is_public=True)
    f.ret(f.call("wait_for_group", *f.arguments, ARRIVED, 0))


def _leave(m: LlvmBuilder) -> None:
    """Counts a device that has moved its data, and waits for its whole group if that reads its memory until then."""
    f = m.function(words.LEAVE, [POINTER, POINTER], i8, is_public=True)
    context, record = f.arguments
    with f.if_(record.item(i64, words.COUNT).cmp("ule", 1)):
        f.ret(0)
    meeting = record.item(POINTER, words.MEETING)
    f.call("count", meeting, meeting.at(i8, LEFT))
    with f.if_(record.item(i64, words.COPIES).cmp("ne", 0)):
        f.ret(0)
    f.ret(f.call("wait_for_group", context, record, LEFT, _PATIENCE))


def _wait_for_group(m: LlvmBuilder) -> None:
    """`wait_for_group(context, record, which, patience)`: waits until a counter shows the whole group.

    Meanwhile the context's state holds the offset of the record, from which a watchdog sees where the device waits.
    """
    f = m.function("wait_for_group", [POINTER, POINTER, i64, i64], i8)
    context, record, which, patience = f.arguments
    size = record.item(i64, words.COUNT)
    with f.if_(size.cmp("ule", 1)):
        f.ret(0)
    state = context.at(i64, words.STATE)
    state.store(record.to(i64) - context.to(i64), "seq_cst")
    meeting = record.item(POINTER, words.MEETING)
    goal = (record.item(POINTER, words.ROUND).load(i64) * size).to(i32)
    status = f.call("await", context, meeting, meeting.at(i8, which), goal, patience)
    state.store(0, "seq_cst")
    f.ret(status)
