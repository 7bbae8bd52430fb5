"""LLVM assembly of the thread pool that generated code calls.

`mlirhlo_parallel_for(kernel, args, n, most)` cuts 0…n into ranges and calls `kernel(args, begin, end, range)` for
each: as many ranges as there are threads, four times as many where `most` allows it, then a range for each round if
they would have few, never more than `most`. The ranges depend on these numbers alone, also when they run one after
another: in a nested call, while another thread has the pool, and when the system gives fewer threads than asked for.
Each thread has a queue of neighbouring ranges, the same ones in jobs of equal sizes, so that its caches hold what it
wrote before; who has none left takes those of others: rounds need not take equally long, nor threads be equally
fast. So what is computed does not depend on who computes it.

The caller waits for what has been begun, not for workers that the system gave no time meanwhile. An epoch counts
jobs. The word of a queue holds it beside the next range and the end, so that who comes too late, and may have read
half of the next job, begins nothing. Who waits spins first and sleeps on a futex then.
"""

from __future__ import annotations

from mlirhlo.lowering.loops_to_llvm.memory import STOP
from mlirhlo.runtime.run_ir import set_modes

MAX_THREADS = 256

_RANGES_A_THREAD = 4
"""Where there is enough to do: who is held up has so much less to do at the end."""

_EVEN_ROUNDS = 4
"""Rounds that a range has at least where it has several: one more or less is much for it otherwise."""

_PIECE = 256
"""Of the work that `most` counts (`lowering/loops_to_llvm/parallel.py`): milliseconds, after which a range looks
whether the user has interrupted the process."""

_SPINS = 4000
"""Turns before sleep: some 100 µs, which what one thread does between jobs should not take."""

_WAIT, _WAKE = 128, 129
"""futex: FUTEX_WAIT and FUTEX_WAKE within one process."""

_GLOBALS = f"""@threads = global i32 1, align 64
@busy = internal global i32 0, align 64
@epoch = internal global i32 0, align 64
@sleepers = internal global i32 0, align 64
@pending = internal global i32 0, align 64
@caller_sleeps = internal global i32 0, align 64
@started = internal global i32 0, align 64
@stopping = internal global i32 0, align 4
@job_kernel = internal global ptr null, align 64
@job_args = internal global ptr null, align 8
@job_n = internal global i64 0, align 8
@job_parts = internal global i64 0, align 8
@job_step = internal global i64 0, align 8
@job_queues = internal global i64 0, align 8
@queues = internal global [{MAX_THREADS} x [8 x i64]] zeroinitializer, align 64
@handles = internal global [{MAX_THREADS} x i64] zeroinitializer, align 64

@{STOP} = external global i8, align 1

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sched_yield()
declare i64 @syscall(i64, ...)
declare i64 @llvm.umax.i64(i64, i64)

"""

_PIECES = f"""; The rounds of a range, so many at a time, until the user interrupts the process.
define internal void @pieces(ptr %kernel, ptr %args, i64 %begin, i64 %end, i64 %range, i64 %step) {{
entry:
  br label %look
look:
  %at = phi i64 [ %begin, %entry ], [ %to, %run ]
  %more = icmp slt i64 %at, %end
  %flag = load atomic i8, ptr @{STOP} monotonic, align 1
  %goes = icmp eq i8 %flag, 0
  %runs = and i1 %more, %goes
  br i1 %runs, label %run, label %out
run:
  %next = add i64 %at, %step
  %within = icmp slt i64 %next, %end
  %to = select i1 %within, i64 %next, i64 %end
  call void %kernel(ptr %args, i64 %at, i64 %to, i64 %range)
  br label %look
out:
  ret void
}}

"""

_SHARE = """; All ranges of a job.
define internal void @share(ptr %kernel, ptr %args, i64 %n, i64 %parts, i64 %step) {
entry:
  br label %next
next:
  %w = phi i64 [ 0, %entry ], [ %w1, %range ]
  %more = icmp slt i64 %w, %parts
  br i1 %more, label %range, label %out
range:
  %a = mul i64 %n, %w
  %begin = udiv i64 %a, %parts
  %w1 = add i64 %w, 1
  %b = mul i64 %n, %w1
  %end = udiv i64 %b, %parts
  call void @pieces(ptr %kernel, ptr %args, i64 %begin, i64 %end, i64 %w, i64 %step)
  br label %next
out:
  ret void
}

"""

_CLAIM = """; Takes a range that nobody has begun: of the queue, else of those after it; -1 if there is none.
define internal i64 @claim(i64 %queue, i64 %all, i32 %epoch) {
entry:
  br label %seek
seek:
  %tried = phi i64 [ 0, %entry ], [ %tried1, %empty ]
  %number = phi i64 [ %queue, %entry ], [ %following, %empty ]
  %some = icmp slt i64 %tried, %all
  br i1 %some, label %open, label %none
open:
  %place = getelementptr [8 x i64], ptr @queues, i64 %number
  br label %look
look:
  %word = load atomic i64, ptr %place seq_cst, align 8
  %high = lshr i64 %word, 32
  %job = trunc i64 %high to i32
  %same = icmp eq i32 %job, %epoch
  br i1 %same, label %count, label %none
count:
  %w = and i64 %word, 65535
  %shifted = lshr i64 %word, 16
  %end = and i64 %shifted, 65535
  %more = icmp ult i64 %w, %end
  br i1 %more, label %claim, label %empty
claim:
  %next = add i64 %word, 1
  %claimed = cmpxchg ptr %place, i64 %word, i64 %next seq_cst seq_cst
  %mine = extractvalue { i64, i1 } %claimed, 1
  br i1 %mine, label %found, label %look
found:
  ret i64 %w
empty:
  %tried1 = add i64 %tried, 1
  %number1 = add i64 %number, 1
  %wraps = icmp eq i64 %number1, %all
  %following = select i1 %wraps, i64 0, i64 %number1
  br label %seek
none:
  ret i64 -1
}

"""


def _help(futex: int) -> str:
    return f"""; Ranges of the job of an epoch, as long as there are some that nobody has begun.
define internal void @help(ptr %kernel, ptr %args, i64 %n, i64 %parts, i64 %step, i64 %queue, i64 %all, i32 %epoch) {{
entry:
  br label %look
look:
  %did = phi i32 [ 0, %entry ], [ %did1, %range ]
  %w = call i64 @claim(i64 %queue, i64 %all, i32 %epoch)
  %more = icmp sge i64 %w, 0
  br i1 %more, label %range, label %done
range:
  %a = mul i64 %n, %w
  %begin = udiv i64 %a, %parts
  %w1 = add i64 %w, 1
  %b = mul i64 %n, %w1
  %end = udiv i64 %b, %parts
  call void @pieces(ptr %kernel, ptr %args, i64 %begin, i64 %end, i64 %w, i64 %step)
  %did1 = add i32 %did, 1
  br label %look
done:
  %idle = icmp eq i32 %did, 0
  br i1 %idle, label %out, label %tell
tell:
  %left = atomicrmw sub ptr @pending, i32 %did seq_cst
  %last = icmp eq i32 %left, %did
  br i1 %last, label %finished, label %out
finished:
  %waits = load atomic i32, ptr @caller_sleeps seq_cst, align 4
  %asleep = icmp ne i32 %waits, 0
  br i1 %asleep, label %wake, label %out
wake:
  %r = call i64 (i64, ...) @syscall(i64 {futex}, ptr @pending, i32 {_WAKE}, i32 1, ptr null, ptr null, i32 0)
  br label %out
out:
  ret void
}}

"""


def _await_job(futex: int, pause: str) -> str:
    return f"""; Returns the epoch once it is another than the one seen.
define internal i32 @await_job(i32 %seen) {{
entry:
  br label %spin
spin:
  %turn = phi i32 [ 0, %entry ], [ %turn1, %again ]
  %now = load atomic i32, ptr @epoch acquire, align 4
  %new = icmp ne i32 %now, %seen
  br i1 %new, label %out, label %again
again:
  {pause}
  %turn1 = add i32 %turn, 1
  %patient = icmp ult i32 %turn1, {_SPINS}
  br i1 %patient, label %spin, label %sleep
sleep:
  %x = atomicrmw add ptr @sleepers, i32 1 seq_cst
  %r = call i64 (i64, ...) @syscall(i64 {futex}, ptr @epoch, i32 {_WAIT}, i32 %seen, ptr null, ptr null, i32 0)
  %y = atomicrmw sub ptr @sleepers, i32 1 seq_cst
  %late = load atomic i32, ptr @epoch acquire, align 4
  %woken = icmp ne i32 %late, %seen
  br i1 %woken, label %out, label %sleep
out:
  %epoch = phi i32 [ %now, %spin ], [ %late, %sleep ]
  ret i32 %epoch
}}

"""


def _worker(modes_set: str) -> str:
    return f"""; A worker: the epoch it was born in, and its queue.
define internal ptr @worker(ptr %word) {{
entry:
  %signals = alloca [128 x i8], align 16
  store [16 x i64] [{", ".join(["i64 -1"] * 16)}], ptr %signals
  %m = call i32 @pthread_sigmask(i32 0, ptr %signals, ptr null)
  {modes_set}
  %wide = ptrtoint ptr %word to i64
  %born = trunc i64 %wide to i32
  %queue = lshr i64 %wide, 32
  br label %wait
wait:
  %seen = phi i32 [ %born, %entry ], [ %epoch, %work ]
  %epoch = call i32 @await_job(i32 %seen)
  %stop = load atomic i32, ptr @stopping monotonic, align 4
  %stops = icmp ne i32 %stop, 0
  br i1 %stops, label %out, label %work
work:
  %kernel = load atomic ptr, ptr @job_kernel monotonic, align 8
  %args = load atomic ptr, ptr @job_args monotonic, align 8
  %n = load atomic i64, ptr @job_n monotonic, align 8
  %parts = load atomic i64, ptr @job_parts monotonic, align 8
  %step = load atomic i64, ptr @job_step monotonic, align 8
  %all = load atomic i64, ptr @job_queues monotonic, align 8
  call void @help(ptr %kernel, ptr %args, i64 %n, i64 %parts, i64 %step, i64 %queue, i64 %all, i32 %epoch)
  br label %wait
out:
  ret ptr null
}}

"""


_START = """; Starts workers until there are `wanted`, or the system refuses; how many there are.
define internal i32 @start(i32 %wanted) {
entry:
  %before = load i32, ptr @started
  br label %next
next:
  %have = phi i32 [ %before, %entry ], [ %number, %born ]
  %more = icmp slt i32 %have, %wanted
  br i1 %more, label %new, label %out
new:
  %number = add i32 %have, 1
  %epoch = load i32, ptr @epoch
  %wide = zext i32 %epoch to i64
  %queue = zext i32 %number to i64
  %high = shl i64 %queue, 32
  %both = or i64 %high, %wide
  %word = inttoptr i64 %both to ptr
  %at = sext i32 %have to i64
  %handle = getelementptr i64, ptr @handles, i64 %at
  %failed = call i32 @pthread_create(ptr %handle, ptr null, ptr @worker, ptr %word)
  %fine = icmp eq i32 %failed, 0
  br i1 %fine, label %born, label %out
born:
  store i32 %number, ptr @started
  br label %next
out:
  ret i32 %have
}

"""


def _publish(futex: int) -> str:
    return f"""; Tells the workers of a new epoch.
define internal void @publish() {{
entry:
  %x = atomicrmw add ptr @epoch, i32 1 seq_cst
  %asleep = load atomic i32, ptr @sleepers seq_cst, align 4
  %some = icmp ne i32 %asleep, 0
  br i1 %some, label %wake, label %out
wake:
  %r = call i64 (i64, ...) @syscall(i64 {futex}, ptr @epoch, i32 {_WAKE}, i32 2147483647, ptr null, ptr null, i32 0)
  br label %out
out:
  ret void
}}

"""


def _await_workers(futex: int, pause: str) -> str:
    return f"""define internal void @await_workers() {{
entry:
  br label %spin
spin:
  %turn = phi i32 [ 0, %entry ], [ %turn1, %again ]
  %now = load atomic i32, ptr @pending acquire, align 4
  %none = icmp eq i32 %now, 0
  br i1 %none, label %out, label %again
again:
  {pause}
  %turn1 = add i32 %turn, 1
  %patient = icmp ult i32 %turn1, {_SPINS}
  br i1 %patient, label %spin, label %announce
announce:
  store atomic i32 1, ptr @caller_sleeps seq_cst, align 4
  br label %look
look:
  %left = load atomic i32, ptr @pending seq_cst, align 4
  %ready = icmp eq i32 %left, 0
  br i1 %ready, label %up, label %sleep
sleep:
  %r = call i64 (i64, ...) @syscall(i64 {futex}, ptr @pending, i32 {_WAIT}, i32 %left, ptr null, ptr null, i32 0)
  br label %look
up:
  store atomic i32 0, ptr @caller_sleeps seq_cst, align 4
  br label %out
out:
  ret void
}}

"""


_PARALLEL_FOR = f"""define void @mlirhlo_parallel_for(ptr %kernel, ptr %args, i64 %n, i64 %most) {{
entry:
  %threads_32 = load atomic i32, ptr @threads monotonic, align 4
  %all = sext i32 %threads_32 to i64
  %several = mul i64 %all, {_RANGES_A_THREAD}
  %much = icmp sge i64 %most, %several
  %shared = icmp sgt i64 %all, 1
  %cuts = and i1 %much, %shared
  %uneven = mul i64 %several, {_EVEN_ROUNDS}
  %single = icmp slt i64 %n, %uneven
  %some = select i1 %single, i64 %n, i64 %several
  %wished = select i1 %cuts, i64 %some, i64 %all
  %enough = icmp slt i64 %most, %wished
  %ranges = select i1 %enough, i64 %most, i64 %wished
  %few = icmp slt i64 %n, %ranges
  %parts = select i1 %few, i64 %n, i64 %ranges
  %pieces = udiv i64 %most, {_PIECE}
  %long = icmp ugt i64 %pieces, 1
  br i1 %long, label %cut, label %ready
cut:
  %floor = udiv i64 %n, %pieces
  %rounds = call i64 @llvm.umax.i64(i64 %floor, i64 1)
  br label %ready
ready:
  %step = phi i64 [ %n, %entry ], [ %rounds, %cut ]
  %alone = icmp sle i64 %parts, 1
  br i1 %alone, label %serial, label %claim
claim:
  %claimed = cmpxchg ptr @busy, i32 0, i32 1 acquire monotonic
  %mine = extractvalue {{ i32, i1 }} %claimed, 1
  br i1 %mine, label %parallel, label %serial
serial:
  call void @share(ptr %kernel, ptr %args, i64 %n, i64 %parts, i64 %step)
  ret void
parallel:
  %stop = load atomic i32, ptr @stopping monotonic, align 4
  %stops = icmp ne i32 %stop, 0
  br i1 %stops, label %free_serial, label %staffed
free_serial:
  store atomic i32 0, ptr @busy release, align 4
  br label %serial
staffed:
  %wanted = sub i32 %threads_32, 1
  %workers = call i32 @start(i32 %wanted)
  %none = icmp eq i32 %workers, 0
  br i1 %none, label %free_serial, label %go
go:
  %before = load i32, ptr @epoch
  %epoch = add i32 %before, 1
  %wide = zext i32 %epoch to i64
  %first = shl i64 %wide, 32
  store atomic ptr %kernel, ptr @job_kernel monotonic, align 8
  store atomic ptr %args, ptr @job_args monotonic, align 8
  store atomic i64 %n, ptr @job_n monotonic, align 8
  store atomic i64 %parts, ptr @job_parts monotonic, align 8
  store atomic i64 %step, ptr @job_step monotonic, align 8
  store atomic i64 %all, ptr @job_queues monotonic, align 8
  %all_parts = trunc i64 %parts to i32
  store atomic i32 %all_parts, ptr @pending release, align 4
  br label %fill
fill:
  %q = phi i64 [ 0, %go ], [ %q1, %fill ]
  %low = phi i64 [ 0, %go ], [ %end, %fill ]
  %q1 = add i64 %q, 1
  %share = mul i64 %parts, %q1
  %end = udiv i64 %share, %all
  %place = getelementptr [8 x i64], ptr @queues, i64 %q
  %high = shl i64 %end, 16
  %span = or i64 %high, %low
  %word = or i64 %first, %span
  store atomic i64 %word, ptr %place release, align 8
  %filled = icmp eq i64 %q1, %all
  br i1 %filled, label %call, label %fill
call:
  call void @publish()
  call void @help(ptr %kernel, ptr %args, i64 %n, i64 %parts, i64 %step, i64 0, i64 %all, i32 %epoch)
  call void @await_workers()
  store atomic i32 0, ptr @busy release, align 4
  ret void
}}

"""

_STOP = """; Ends the workers and waits for them; jobs run serially from then on.
define void @pool_stop() {
entry:
  br label %claim
claim:
  %claimed = cmpxchg ptr @busy, i32 0, i32 1 acquire monotonic
  %mine = extractvalue { i32, i1 } %claimed, 1
  br i1 %mine, label %stop, label %again
again:
  %y = call i32 @sched_yield()
  br label %claim
stop:
  store atomic i32 1, ptr @stopping seq_cst, align 4
  call void @publish()
  %count = load i32, ptr @started
  br label %next
next:
  %i = phi i32 [ 0, %stop ], [ %i1, %one ]
  %more = icmp slt i32 %i, %count
  br i1 %more, label %one, label %out
one:
  %at = sext i32 %i to i64
  %place = getelementptr i64, ptr @handles, i64 %at
  %handle = load i64, ptr %place
  %j = call i32 @pthread_join(i64 %handle, ptr null)
  %i1 = add i32 %i, 1
  br label %next
out:
  store i32 0, ptr @started
  store atomic i32 0, ptr @busy release, align 4
  ret void
}

"""

_FORGET = """; In a forked child, which has no workers: the pool as it was before its first job.
define void @pool_forget() {
  store i32 0, ptr @started
  store i32 0, ptr @sleepers
  store i32 0, ptr @pending
  store i32 0, ptr @caller_sleeps
  store atomic i32 0, ptr @busy seq_cst, align 4
  ret void
}
"""


def assembly(futex: int, pause: str, machine: str) -> str:
    """`futex`: number of the system call; `pause`: an intrinsic that eases a spinning core,
    or nothing; `machine`: as `platform` calls it."""
    modes_declared, modes_set = set_modes(machine)
    declared = f"declare void @{pause}()" if pause else ""
    declared += modes_declared
    pause = f"call void @{pause}()" if pause else ""
    return "".join(
        [
            "\n",
            declared,
            "\n",
            _GLOBALS,
            _PIECES,
            _SHARE,
            _CLAIM,
            _help(futex),
            _await_job(futex, pause),
            _worker(modes_set),
            _START,
            _publish(futex),
            _await_workers(futex, pause),
            _PARALLEL_FOR,
            _STOP,
            _FORGET,
        ]
    )
