"""LLVM assembly of how devices of one process meet; `lowering/meeting_words.py` says what lies where.

Each meeting has counters, on lines of their own: how often somebody came, how often somebody left, and who sleeps.
Both only grow, so that who comes first may go on to the next round while others still read this one's. Who waits spins
for some microseconds, then offers the processor to others a few times, since the one it waits for may be kept off it,
and then sleeps on a futex, a hundredth of a second at a time: no wake-up can be missed for good, and a world that has
ended is noticed. A device that sees its group complete goes on even then; one whose group has moved its data
only in part waits for a second, since the others read its memory.
"""

from __future__ import annotations

from mlirhlo.lowering import meeting_words as words

ENDED, SPINS = range(2)
"""Words of a world: not 0 once it has ended; how many turns a device spins before it sleeps."""

ARRIVED, LEFT, SLEEPERS, POINTERS = 0, 64, 128, 192
"""Bytes from a meeting to its counters, and to the published pointers."""

_WAIT, _WAKE = 128, 129
_YIELDS = 20
"""How often a device offers its processor before it sleeps."""
_SLEEP_NS = 10_000_000
_PATIENCE = 100
"""Sleeps in a world that has ended."""


def assembly(futex: int, pause: str) -> str:
    """Returns the module; `futex`: system call number, or 0 for none; `pause`: intrinsic that a spin loop executes."""
    sleep, wake = _sleep_and_wake(futex)
    parts = (
        _declarations(pause),
        _FIELDS,
        _count(wake),
        _await(f"call void @{pause}()" if pause else "", sleep),
        _publish(),
        _arrive(),
        _leave(),
        _wait_for_group(),
    )
    return "\n".join(parts)


def _sleep_and_wake(futex: int) -> tuple[str, str]:
    """Returns the instruction that sleeps while `%counter` equals `%seen`, and the one that wakes all sleepers.

    Without a futex, a device yields the processor instead, and nothing has to be woken.
    """
    if not futex:
        return "%r = call i32 @sched_yield()", ""
    call, rest = f"call i64 (i64, ...) @syscall(i64 {futex}, ptr %counter", "ptr null, i32 0)"
    sleep = f"%r = {call}, i32 {_WAIT}, i32 %seen, ptr @nap, {rest}"
    wake = f"%r = {call}, i32 {_WAKE}, i32 {(1 << 31) - 1}, ptr null, {rest}"
    return sleep, wake


def _declarations(pause: str) -> str:
    """Declares the system's functions and the time of one sleep."""
    return f"""\
{f"declare void @{pause}()" if pause else ""}
declare i64 @syscall(i64, ...)
declare i32 @sched_yield()

@nap = internal constant [2 x i64] [i64 0, i64 {_SLEEP_NS}], align 8
"""


def _count(wake: str) -> str:
    """`count`: adds one to a counter and wakes the devices that sleep."""
    return f"""\
; Adds one to a counter of a meeting.
define internal void @count(ptr %meeting, ptr %counter) {{
entry:
  %x = atomicrmw add ptr %counter, i32 1 seq_cst
  %place = getelementptr i8, ptr %meeting, i64 {SLEEPERS}
  %asleep = load atomic i32, ptr %place seq_cst, align 4
  %some = icmp ne i32 %asleep, 0
  br i1 %some, label %wake, label %out
wake:
  {wake}
  br label %out
out:
  ret void
}}
"""


def _await(pause: str, sleep: str) -> str:
    """`await`: waits until a counter has reached a number: spins, then yields the processor, then sleeps."""
    return _spin(pause) + _yield() + _sleep(sleep)


def _spin(pause: str) -> str:
    """The first stage of `await`: reads the counter again and again, as often as the world says."""
    return f"""\
; Waits until a counter has reached a number: 0, or 1 where the world ends first and patience after it.
define internal i8 @await(ptr %context, ptr %meeting, ptr %counter, i32 %goal, i64 %patience) {{
entry:
  %world = load ptr, ptr %context
  %spins_at = getelementptr i64, ptr %world, i64 {SPINS}
  %spins = load i64, ptr %spins_at
  %sleepers = getelementptr i8, ptr %meeting, i64 {SLEEPERS}
  br label %spin
spin:
  %turn = phi i64 [ 0, %entry ], [ %turn1, %again ]
  %now = load atomic i32, ptr %counter acquire, align 4
  %missing = sub i32 %goal, %now
  %there = icmp sle i32 %missing, 0
  br i1 %there, label %good, label %again
again:
  {pause}
  %turn1 = add i64 %turn, 1
  %patient = icmp ult i64 %turn1, %spins
  br i1 %patient, label %spin, label %yield
"""


def _yield() -> str:
    """The second stage of `await`: yields the processor between reads."""
    return f"""\
yield:
  %offer = phi i32 [ 0, %again ], [ %offer1, %unmet ]
  %y0 = call i32 @sched_yield()
  %late = load atomic i32, ptr %counter acquire, align 4
  %lacking = sub i32 %goal, %late
  %offerhere = icmp sle i32 %lacking, 0
  br i1 %offerhere, label %good, label %unmet
unmet:
  %offer1 = add i32 %offer, 1
  %offers = icmp ult i32 %offer1, {_YIELDS}
  br i1 %offers, label %yield, label %look
"""


def _sleep(sleep: str) -> str:
    """The last stage of `await`: sleeps between reads; gives up when the world has ended and patience has run out."""
    return f"""\
look:
  %left = phi i64 [ %patience, %unmet ], [ %left1, %slept ]
  %x = atomicrmw add ptr %sleepers, i32 1 seq_cst
  %seen = load atomic i32, ptr %counter seq_cst, align 4
  %missing2 = sub i32 %goal, %seen
  %there2 = icmp sle i32 %missing2, 0
  br i1 %there2, label %awake, label %alive
alive:
  %ended = load atomic i64, ptr %world seq_cst, align 8
  %is_ended = icmp ne i64 %ended, 0
  %none = icmp eq i64 %left, 0
  %gives_up = and i1 %is_ended, %none
  br i1 %gives_up, label %over, label %sleep
sleep:
  {sleep}
  %y = atomicrmw sub ptr %sleepers, i32 1 seq_cst
  br label %slept
slept:
  %step = zext i1 %is_ended to i64
  %left1 = sub i64 %left, %step
  br label %look
awake:
  %z = atomicrmw sub ptr %sleepers, i32 1 seq_cst
  br label %good
over:
  %w = atomicrmw sub ptr %sleepers, i32 1 seq_cst
  ret i8 1
good:
  ret i8 0
}}
"""


def _publish() -> str:
    """Writes a device's pointers to the table of its group, starts its next round, and counts its arrival."""
    return f"""\
define void @{words.PUBLISH}(ptr %context, ptr %record, ptr %pointers, i64 %count) {{
entry:
  %size = call i64 @field(ptr %record, i64 {words.COUNT})
  %alone = icmp eq i64 %size, 0
  br i1 %alone, label %out, label %in
in:
  %position = call i64 @field(ptr %record, i64 {words.POSITION})
  %table = call ptr @pointer(ptr %record, i64 {words.TABLE})
  br label %next
next:
  %k = phi i64 [ 0, %in ], [ %k1, %next ]
  %from = getelementptr ptr, ptr %pointers, i64 %k
  %value = load ptr, ptr %from
  %row = mul i64 %k, %size
  %at = add i64 %row, %position
  %to = getelementptr ptr, ptr %table, i64 %at
  store ptr %value, ptr %to
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, %count
  br i1 %more, label %next, label %told
told:
  %round = call ptr @pointer(ptr %record, i64 {words.ROUND})
  %before = load i64, ptr %round
  %after = add i64 %before, 1
  store i64 %after, ptr %round
  %meeting = call ptr @pointer(ptr %record, i64 {words.MEETING})
  call void @count(ptr %meeting, ptr %meeting)
  br label %out
out:
  ret void
}}
"""


def _arrive() -> str:
    """Waits until all devices of the group have published their pointers."""
    return f"""\
define i8 @{words.ARRIVE}(ptr %context, ptr %record) {{
  %status = call i8 @wait_for_group(ptr %context, ptr %record, i64 {ARRIVED}, i64 0)
  ret i8 %status
}}
"""


def _leave() -> str:
    """Counts a device that has moved its data, and waits for its whole group, which reads its memory until then."""
    return f"""\
define i8 @{words.LEAVE}(ptr %context, ptr %record) {{
entry:
  %size = call i64 @field(ptr %record, i64 {words.COUNT})
  %alone = icmp ule i64 %size, 1
  br i1 %alone, label %out, label %in
in:
  %meeting = call ptr @pointer(ptr %record, i64 {words.MEETING})
  %counter = getelementptr i8, ptr %meeting, i64 {LEFT}
  call void @count(ptr %meeting, ptr %counter)
  %status = call i8 @wait_for_group(ptr %context, ptr %record, i64 {LEFT}, i64 {_PATIENCE})
  ret i8 %status
out:
  ret i8 0
}}
"""


def _wait_for_group() -> str:
    """`wait_for_group`: waits until a counter shows the whole group.

    Meanwhile the context's state holds the offset of the record, from which a watchdog sees where the device waits.
    """
    return f"""\
; Waits for all of the group at one of its counters; the context says so meanwhile.
define internal i8 @wait_for_group(ptr %context, ptr %record, i64 %which, i64 %patience) {{
entry:
  %size = call i64 @field(ptr %record, i64 {words.COUNT})
  %alone = icmp ule i64 %size, 1
  br i1 %alone, label %out, label %in
in:
  %state = getelementptr i64, ptr %context, i64 {words.STATE}
  %start = ptrtoint ptr %context to i64
  %here = ptrtoint ptr %record to i64
  %offset = sub i64 %here, %start
  store atomic i64 %offset, ptr %state seq_cst, align 8
  %meeting = call ptr @pointer(ptr %record, i64 {words.MEETING})
  %counter = getelementptr i8, ptr %meeting, i64 %which
  %round_at = call ptr @pointer(ptr %record, i64 {words.ROUND})
  %round = load i64, ptr %round_at
  %all = mul i64 %round, %size
  %goal = trunc i64 %all to i32
  %status = call i8 @await(ptr %context, ptr %meeting, ptr %counter, i32 %goal, i64 %patience)
  store atomic i64 0, ptr %state seq_cst, align 8
  ret i8 %status
out:
  ret i8 0
}}
"""


_FIELDS = """\
define internal i64 @field(ptr %record, i64 %at) alwaysinline {
  %place = getelementptr i64, ptr %record, i64 %at
  %value = load i64, ptr %place
  ret i64 %value
}

define internal ptr @pointer(ptr %record, i64 %at) alwaysinline {
  %place = getelementptr ptr, ptr %record, i64 %at
  %value = load ptr, ptr %place
  ret ptr %value
}
"""
"""Readers of a record's fields."""
