"""LLVM assembly of the thread pool that generated code calls.

`mlirhlo_parallel_for(kernel, args, n, most)` cuts 0…n into as many ranges as there are threads, `most` at most,
and calls `kernel(args, begin, end, range)` for each. The ranges depend on these numbers alone, also when they
run one after another: in a nested call, while another thread has the pool, and when the system gives fewer
threads than asked for. So what is computed does not depend on who computes it.

Every worker takes part in every job, be it only by saying that it is done; the caller waits for all. An
epoch counts jobs. Who waits spins first and sleeps on a futex then.
"""

from __future__ import annotations

MAX_THREADS = 256

_SPINS = 2000
"""Turns before sleep: some 50 µs."""

_WAIT, _WAKE = 128, 129
"""futex: FUTEX_WAIT and FUTEX_WAKE within one process."""


def assembly(futex: int, pause: str) -> str:
    """`futex`: number of the system call; `pause`: an intrinsic that eases a spinning core,
    or nothing."""
    declared = f"declare void @{pause}()" if pause else ""
    pause = f"call void @{pause}()" if pause else ""
    return f"""
{declared}
@threads = global i32 1, align 64
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
@handles = internal global [{MAX_THREADS} x i64] zeroinitializer, align 64

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sched_yield()
declare i64 @syscall(i64, ...)

; Ranges first, first + step, … of the job.
define internal void @share(ptr %kernel, ptr %args, i64 %n, i64 %parts, i64 %first, i64 %step) {{
entry:
  br label %next
next:
  %w = phi i64 [ %first, %entry ], [ %after, %done ]
  %more = icmp slt i64 %w, %parts
  br i1 %more, label %range, label %out
range:
  %a = mul i64 %n, %w
  %begin = udiv i64 %a, %parts
  %w1 = add i64 %w, 1
  %b = mul i64 %n, %w1
  %end = udiv i64 %b, %parts
  call void %kernel(ptr %args, i64 %begin, i64 %end, i64 %w)
  br label %done
done:
  %after = add i64 %w, %step
  br label %next
out:
  ret void
}}

; Returns the epoch once it is another than the one seen.
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

; A worker: its number, and in the upper half the epoch it was born in.
define internal ptr @worker(ptr %word) {{
entry:
  %signals = alloca [128 x i8], align 16
  store [16 x i64] [{", ".join(["i64 -1"] * 16)}], ptr %signals
  %m = call i32 @pthread_sigmask(i32 0, ptr %signals, ptr null)
  %both = ptrtoint ptr %word to i64
  %first = and i64 %both, 4294967295
  %upper = lshr i64 %both, 32
  %born = trunc i64 %upper to i32
  br label %wait
wait:
  %seen = phi i32 [ %born, %entry ], [ %epoch, %finished ], [ %epoch, %wake ]
  %epoch = call i32 @await_job(i32 %seen)
  %stop = load atomic i32, ptr @stopping monotonic, align 4
  %stops = icmp ne i32 %stop, 0
  br i1 %stops, label %out, label %work
work:
  %kernel = load ptr, ptr @job_kernel
  %args = load ptr, ptr @job_args
  %n = load i64, ptr @job_n
  %parts = load i64, ptr @job_parts
  %step = load i64, ptr @job_step
  %helps = icmp slt i64 %first, %step
  br i1 %helps, label %help, label %finish
help:
  call void @share(ptr %kernel, ptr %args, i64 %n, i64 %parts, i64 %first, i64 %step)
  br label %finish
finish:
  %left = atomicrmw sub ptr @pending, i32 1 seq_cst
  %last = icmp eq i32 %left, 1
  br i1 %last, label %finished_last, label %finished
finished_last:
  %waits = load atomic i32, ptr @caller_sleeps seq_cst, align 4
  %asleep = icmp ne i32 %waits, 0
  br i1 %asleep, label %wake, label %finished
wake:
  %r = call i64 (i64, ...) @syscall(i64 {futex}, ptr @pending, i32 {_WAKE}, i32 1, ptr null, ptr null, i32 0)
  br label %wait
finished:
  br label %wait
out:
  ret ptr null
}}

; Starts workers until there are `wanted`, or the system refuses; how many there are.
define internal i32 @start(i32 %wanted) {{
entry:
  %before = load i32, ptr @started
  br label %next
next:
  %have = phi i32 [ %before, %entry ], [ %number, %born ]
  %more = icmp slt i32 %have, %wanted
  br i1 %more, label %new, label %out
new:
  %number = add i32 %have, 1
  %low = zext i32 %number to i64
  %epoch = load i32, ptr @epoch
  %wide = zext i32 %epoch to i64
  %high = shl i64 %wide, 32
  %both = or i64 %high, %low
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
}}

; Tells the workers of a new epoch.
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

define internal void @await_workers() {{
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

define void @mlirhlo_parallel_for(ptr %kernel, ptr %args, i64 %n, i64 %most) {{
entry:
  %threads_32 = load atomic i32, ptr @threads monotonic, align 4
  %all = sext i32 %threads_32 to i64
  %enough = icmp slt i64 %most, %all
  %threads = select i1 %enough, i64 %most, i64 %all
  %few = icmp slt i64 %n, %threads
  %parts = select i1 %few, i64 %n, i64 %threads
  %alone = icmp sle i64 %parts, 1
  br i1 %alone, label %serial, label %claim
claim:
  %claimed = cmpxchg ptr @busy, i32 0, i32 1 acquire monotonic
  %mine = extractvalue {{ i32, i1 }} %claimed, 1
  br i1 %mine, label %parallel, label %serial
serial:
  call void @share(ptr %kernel, ptr %args, i64 %n, i64 %parts, i64 0, i64 1)
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
  %crew_32 = add i32 %workers, 1
  %crew = sext i32 %crew_32 to i64
  %too_many = icmp slt i64 %parts, %crew
  %step = select i1 %too_many, i64 %parts, i64 %crew
  store ptr %kernel, ptr @job_kernel
  store ptr %args, ptr @job_args
  store i64 %n, ptr @job_n
  store i64 %parts, ptr @job_parts
  store i64 %step, ptr @job_step
  store atomic i32 %workers, ptr @pending monotonic, align 4
  call void @publish()
  call void @share(ptr %kernel, ptr %args, i64 %n, i64 %parts, i64 0, i64 %step)
  call void @await_workers()
  store atomic i32 0, ptr @busy release, align 4
  ret void
}}

; Ends the workers and waits for them; jobs run serially from then on.
define void @pool_stop() {{
entry:
  br label %claim
claim:
  %claimed = cmpxchg ptr @busy, i32 0, i32 1 acquire monotonic
  %mine = extractvalue {{ i32, i1 }} %claimed, 1
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
}}

; In a forked child, which has no workers: the pool as it was before its first job.
define void @pool_forget() {{
  store i32 0, ptr @started
  store i32 0, ptr @sleepers
  store i32 0, ptr @pending
  store i32 0, ptr @caller_sleeps
  store atomic i32 0, ptr @busy seq_cst, align 4
  ret void
}}
"""
