"""LLVM assembly of running a module on all devices of one process, each on a thread of its own, without Python.

`run_devices(descriptor, count, inputs, outputs, worlds)` runs the first device on the caller's thread and the others on
workers, which wait between runs: they spin for a while, then sleep on a futex. A module whose devices never meet and
that has no long loops runs its devices one after another instead, which takes less than waking a thread. The result is
that of `run_ir`, or `ENDED` when the devices could not go on, or `MISSING` when there are too few workers or no world:
then nothing has run, and the caller makes some (`device_threads.py`).

Workers, and the worlds of a module (`meetings.World`) that no run uses, are lists whose first word is the next item.
"""

from __future__ import annotations

from mlirhlo.lowering import meeting_words as words
from mlirhlo.runtime import meeting_ir
from mlirhlo.runtime.run_ir import DONE, STOPPED

ENDED, MISSING = STOPPED + 1, STOPPED + 2
"""More results of a run."""

WORLD_START, WORLD_CONTEXTS = 1, 2
"""Words of a list's item about a world: the address of its memory, then those of the contexts, by device."""

NEXT, DESCRIPTOR, INPUTS, OUTPUTS, WORLD, PENDING, STATE, STATUS = range(8)
"""Words of a worker: the next one in a list, its job, the counter of jobs that have not ended; then whether it has a
job, and how the last one ended."""
WORKER = 16
"""Words of a worker, so that no two share a line."""

_WAIT, _WAKE = 128, 129
SPINS = 4000
"""Reads before a thread sleeps, where it spins at all."""


def assembly(futex: int, pause: str) -> str:
    """Returns the module; `futex`: number of the system call; `pause`: intrinsic for spin loops, or nothing."""
    declared = f"declare void @{pause}()\n" if pause else ""
    pause = f"call void @{pause}()" if pause else ""
    return declared + "".join(
        (
            _DECLARATIONS,
            _LISTS,
            _await(futex, pause),
            _RUN_ONE,
            _worker(futex),
            _SERIAL,
            _run(futex),
        )
    )


_DECLARATIONS = """
declare i64 @syscall(i64, ...)
declare i32 @sched_yield()
declare i32 @run(ptr, ptr, ptr)

@idle = global ptr null, align 64
@lists = global i32 0, align 64
@spins = global i64 0, align 64
"""

_LISTS = """
define internal void @lock() {
entry:
  br label %try
try:
  %before = atomicrmw xchg ptr @lists, i32 1 acquire
  %free = icmp eq i32 %before, 0
  br i1 %free, label %out, label %again
again:
  %y = call i32 @sched_yield()
  br label %try
out:
  ret void
}

; Takes the first item of a list; null from an empty one.
define ptr @list_take(ptr %list) {
entry:
  call void @lock()
  %item = load ptr, ptr %list
  %none = icmp eq ptr %item, null
  br i1 %none, label %out, label %some
some:
  %next = load ptr, ptr %item
  store ptr %next, ptr %list
  br label %out
out:
  store atomic i32 0, ptr @lists release, align 4
  ret ptr %item
}

define void @list_put(ptr %list, ptr %item) {
  call void @lock()
  %first = load ptr, ptr %list
  store ptr %first, ptr %item
  store ptr %item, ptr %list
  store atomic i32 0, ptr @lists release, align 4
  ret void
}

; Puts a chain of workers back.
define internal void @give_back(ptr %chain) {
entry:
  br label %head
head:
  %worker = phi ptr [ %chain, %entry ], [ %next, %one ]
  %none = icmp eq ptr %worker, null
  br i1 %none, label %out, label %one
one:
  %next = load ptr, ptr %worker
  call void @list_put(ptr @idle, ptr %worker)
  br label %head
out:
  ret void
}

define internal ptr @item(ptr %array, i64 %index) alwaysinline {
  %at = getelementptr ptr, ptr %array, i64 %index
  %value = load ptr, ptr %at
  ret ptr %value
}

define internal i64 @parameters(ptr %descriptor) alwaysinline {
  %at = getelementptr i64, ptr %descriptor, i64 1
  %count = load i64, ptr %at
  ret i64 %count
}
"""


def _await(futex: int, pause: str) -> str:
    """`leaves`: waits until a word has another value than `seen`, and returns it."""
    return f"""
define internal i32 @leaves(ptr %word, i32 %seen) {{
entry:
  %spins = load i64, ptr @spins
  br label %spin
spin:
  %turn = phi i64 [ 0, %entry ], [ %turn1, %again ]
  %now = load atomic i32, ptr %word acquire, align 4
  %other = icmp ne i32 %now, %seen
  br i1 %other, label %out, label %again
again:
  {pause}
  %turn1 = add i64 %turn, 1
  %more = icmp ult i64 %turn1, %spins
  br i1 %more, label %spin, label %sleep
sleep:
  %r = call i64 (i64, ...) @syscall(i64 {futex}, ptr %word, i32 {_WAIT}, i32 %seen, ptr null, ptr null, i32 0)
  %late = load atomic i32, ptr %word acquire, align 4
  %awake = icmp ne i32 %late, %seen
  br i1 %awake, label %out, label %sleep
out:
  %value = phi i32 [ %now, %spin ], [ %late, %sleep ]
  ret i32 %value
}}

define internal void @wake(ptr %word) {{
  %r = call i64 (i64, ...) @syscall(i64 {futex}, ptr %word, i32 {_WAKE}, i32 1, ptr null, ptr null, i32 0)
  ret void
}}
"""


_RUN_ONE = f"""
; Runs one device; where it does not come to its end, no other one waits for it.
define internal i32 @run_one(ptr %descriptor, ptr %inputs, ptr %outputs, ptr %world) {{
entry:
  %status = call i32 @run(ptr %descriptor, ptr %inputs, ptr %outputs)
  %alone = icmp eq ptr %world, null
  br i1 %alone, label %out, label %meets
meets:
  %count = call i64 @parameters(ptr %descriptor)
  %context = call ptr @item(ptr %inputs, i64 %count)
  %active = getelementptr i64, ptr %context, i64 {words.ACTIVE}
  store atomic i64 0, ptr %active seq_cst, align 8
  %failed = icmp ne i32 %status, {DONE}
  br i1 %failed, label %end, label %out
end:
  %ended = getelementptr i64, ptr %world, i64 {meeting_ir.ENDED}
  store atomic i64 1, ptr %ended seq_cst, align 8
  br label %out
out:
  ret i32 %status
}}
"""


def _worker(futex: int) -> str:
    """`device_worker`: what a worker's thread does, for ever."""
    fields = "\n".join(
        f"  %{name}_at = getelementptr i64, ptr %worker, i64 {at}"
        for name, at in (("state", STATE), ("status", STATUS))
    )
    return f"""
define void @device_worker(ptr %worker) {{
entry:
{fields}
  br label %wait
wait:
  %job = call i32 @leaves(ptr %state_at, i32 0)
  %descriptor = call ptr @item(ptr %worker, i64 {DESCRIPTOR})
  %inputs = call ptr @item(ptr %worker, i64 {INPUTS})
  %outputs = call ptr @item(ptr %worker, i64 {OUTPUTS})
  %world = call ptr @item(ptr %worker, i64 {WORLD})
  %pending = call ptr @item(ptr %worker, i64 {PENDING})
  %status = call i32 @run_one(ptr %descriptor, ptr %inputs, ptr %outputs, ptr %world)
  store i32 %status, ptr %status_at
  store atomic i32 0, ptr %state_at release, align 4
  %before = atomicrmw sub ptr %pending, i32 1 seq_cst
  %last = icmp eq i32 %before, 1
  br i1 %last, label %tell, label %wait
tell:
  call void @wake(ptr %pending)
  br label %wait
}}
"""


_SERIAL = f"""
define internal i32 @run_in_turn(ptr %descriptor, i64 %count, ptr %inputs, ptr %outputs) {{
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i1, %went ]
  %in = call ptr @item(ptr %inputs, i64 %i)
  %out = call ptr @item(ptr %outputs, i64 %i)
  %status = call i32 @run(ptr %descriptor, ptr %in, ptr %out)
  %good = icmp eq i32 %status, {DONE}
  br i1 %good, label %went, label %done
went:
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %count
  br i1 %more, label %next, label %done
done:
  ret i32 %status
}}
"""


def _run(futex: int) -> str:
    """`run_devices`, in stages: world and contexts, workers, jobs, the caller's own device, the wait."""
    return f"""
define i32 @run_devices(ptr %descriptor, i64 %count, ptr %inputs, ptr %outputs, ptr %worlds) {{
entry:
  %pending = alloca i32, align 64
  %alone = icmp eq ptr %worlds, null
  br i1 %alone, label %apart, label %meet
apart:
  %long_at = getelementptr i64, ptr %descriptor, i64 6
  %long = load i64, ptr %long_at
  %short = icmp eq i64 %long, 0
  br i1 %short, label %in_turn, label %hire
in_turn:
  %in_turn_status = call i32 @run_in_turn(ptr %descriptor, i64 %count, ptr %inputs, ptr %outputs)
  ret i32 %in_turn_status
meet:
  %taken = call ptr @list_take(ptr %worlds)
  %no_world = icmp eq ptr %taken, null
  br i1 %no_world, label %missing, label %enter
missing:
  ret i32 {MISSING}
enter:
  %start = call ptr @item(ptr %taken, i64 {WORLD_START})
  %contexts = getelementptr ptr, ptr %taken, i64 {WORLD_CONTEXTS}
  %parameters = call i64 @parameters(ptr %descriptor)
  br label %context
context:
  %c = phi i64 [ 0, %enter ], [ %c1, %context ]
  %own_context = call ptr @item(ptr %contexts, i64 %c)
  %active = getelementptr i64, ptr %own_context, i64 {words.ACTIVE}
  store atomic i64 1, ptr %active seq_cst, align 8
  %given = call ptr @item(ptr %inputs, i64 %c)
  %last = getelementptr ptr, ptr %given, i64 %parameters
  store ptr %own_context, ptr %last
  %c1 = add i64 %c, 1
  %more_contexts = icmp ult i64 %c1, %count
  br i1 %more_contexts, label %context, label %hire
hire:
  %item = phi ptr [ null, %apart ], [ %taken, %context ]
  %world = phi ptr [ null, %apart ], [ %start, %context ]
  br label %next
next:
  %n = phi i64 [ 1, %hire ], [ %n1, %hired ]
  %chain = phi ptr [ null, %hire ], [ %worker, %hired ]
  %enough = icmp uge i64 %n, %count
  br i1 %enough, label %begin, label %take
take:
  %worker = call ptr @list_take(ptr @idle)
  %none = icmp eq ptr %worker, null
  br i1 %none, label %too_few, label %hired
hired:
  store ptr %chain, ptr %worker
  %n1 = add i64 %n, 1
  br label %next
too_few:
  call void @give_back(ptr %chain)
  br i1 %alone, label %missing, label %return_world
return_world:
  call void @rest(ptr %item, i64 %count)
  call void @list_put(ptr %worlds, ptr %item)
  ret i32 {MISSING}
begin:
  %others = trunc i64 %count to i32
  %jobs = sub i32 %others, 1
  store atomic i32 %jobs, ptr %pending seq_cst, align 4
  br label %start_next
start_next:
  %w = phi ptr [ %chain, %begin ], [ %w_next, %start_one ]
  %d = phi i64 [ 1, %begin ], [ %d1, %start_one ]
  %all = icmp eq ptr %w, null
  br i1 %all, label %own, label %start_one
start_one:
  %w_next = load ptr, ptr %w
  %w_in = call ptr @item(ptr %inputs, i64 %d)
  %w_out = call ptr @item(ptr %outputs, i64 %d)
  call void @set(ptr %w, i64 {DESCRIPTOR}, ptr %descriptor)
  call void @set(ptr %w, i64 {INPUTS}, ptr %w_in)
  call void @set(ptr %w, i64 {OUTPUTS}, ptr %w_out)
  call void @set(ptr %w, i64 {WORLD}, ptr %world)
  call void @set(ptr %w, i64 {PENDING}, ptr %pending)
  %state = getelementptr i64, ptr %w, i64 {STATE}
  store atomic i32 1, ptr %state seq_cst, align 4
  call void @wake(ptr %state)
  %d1 = add i64 %d, 1
  br label %start_next
own:
  %own_in = call ptr @item(ptr %inputs, i64 0)
  %own_out = call ptr @item(ptr %outputs, i64 0)
  %first = call i32 @run_one(ptr %descriptor, ptr %own_in, ptr %own_out, ptr %world)
  br label %join
join:
  %open = load atomic i32, ptr %pending acquire, align 4
  %joined = icmp eq i32 %open, 0
  br i1 %joined, label %collect, label %wait
wait:
  %changed = call i32 @leaves(ptr %pending, i32 %open)
  br label %join
collect:
  %worst = phi i32 [ %first, %join ], [ %worse, %add ]
  %k = phi ptr [ %chain, %join ], [ %k_next, %add ]
  %counted = icmp eq ptr %k, null
  br i1 %counted, label %judge, label %add
add:
  %k_next = load ptr, ptr %k
  %status_at = getelementptr i64, ptr %k, i64 {STATUS}
  %status = load i32, ptr %status_at
  %good = icmp eq i32 %worst, {DONE}
  %worse = select i1 %good, i32 %status, i32 %worst
  br label %collect
judge:
  call void @give_back(ptr %chain)
  br i1 %alone, label %out, label %look
look:
  %ended_at = getelementptr i64, ptr %world, i64 {meeting_ir.ENDED}
  %ended = load atomic i64, ptr %ended_at seq_cst, align 8
  %is_ended = icmp ne i64 %ended, 0
  br i1 %is_ended, label %broken, label %whole
broken:
  %well = icmp eq i32 %worst, {DONE}
  %reason = select i1 %well, i32 {ENDED}, i32 %worst
  ret i32 %reason
whole:
  call void @list_put(ptr %worlds, ptr %item)
  br label %out
out:
  ret i32 %worst
}}

define internal void @set(ptr %worker, i64 %at, ptr %value) alwaysinline {{
  %to = getelementptr ptr, ptr %worker, i64 %at
  store ptr %value, ptr %to
  ret void
}}

; Marks all devices of a world as not running.
define internal void @rest(ptr %item, i64 %count) {{
entry:
  %contexts = getelementptr ptr, ptr %item, i64 {WORLD_CONTEXTS}
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i1, %next ]
  %context = call ptr @item(ptr %contexts, i64 %i)
  %active = getelementptr i64, ptr %context, i64 {words.ACTIVE}
  store atomic i64 0, ptr %active seq_cst, align 8
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %count
  br i1 %more, label %next, label %out
out:
  ret void
}}
"""
