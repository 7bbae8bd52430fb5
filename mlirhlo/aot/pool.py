"""LLVM assembly of the threads that run the parallel loops of modules compiled ahead of time.

One pool serves all modules of a program; generated code calls it through a hook, so that a caller may bring a pool
of its own. On systems without futexes loops run on the calling thread.
"""

from __future__ import annotations

from mlirhlo.aot.runtime_ir import Wrapper
from mlirhlo.lowering.loops_to_llvm.memory import STOP
from mlirhlo.runtime import threads_ir

_FUTEX = {"x86_64": (202, "llvm.x86.sse2.pause"), "aarch64": (98, "")}
"""Of a machine: the number of the system call, and the intrinsic that pauses a thread that waits."""


def pool_assembly(wrapper: Wrapper, *, parallel: bool) -> str:
    """What all modules in a program share: the threads, and the flag that generated loops look at."""
    stop = f"@{STOP} = global i8 0, align 64\n"
    if not parallel:
        return stop + _NO_POOL
    local = "" if wrapper.triple.startswith("wasm") else "thread_local "
    hook = _HOOK.replace("thread_local ", local)
    number, pause = _FUTEX.get(wrapper.machine, (0, ""))
    if not wrapper.is_linux or not number:
        return stop + hook + _SERIAL
    text = threads_ir.assembly(number, pause, wrapper.machine)
    text = text.replace(f"@{STOP} = external global i8, align 1\n", "")
    return stop + text.replace("@mlirhlo_parallel_for(", "@pool_parallel_for(") + hook + _PREPARE


_NO_POOL = """
define ptr @set_pool(ptr %pool) {
  ret ptr null
}
define void @set_threads(i32 %count) {
  ret void
}
"""

_HOOK = """
; Of the thread: what runs its parallel loops, { ptr pool, ptr run, i32 threads }; null for the process's pool.
@hook = thread_local global ptr null, align 8
@alone = constant { ptr, ptr, i32 } { ptr null, ptr null, i32 1 }, align 8

define ptr @set_pool(ptr %pool) {
  %before = load ptr, ptr @hook
  store ptr %pool, ptr @hook
  ret ptr %before
}

; One range of a job { kernel, args, n, parts }; parallel loops inside it run where they are.
define void @task(ptr %job, i64 %w) {
  %before = load ptr, ptr @hook
  store ptr @alone, ptr @hook
  %kernel = load ptr, ptr %job
  %args_at = getelementptr i64, ptr %job, i64 1
  %args = load ptr, ptr %args_at
  %n_at = getelementptr i64, ptr %job, i64 2
  %n = load i64, ptr %n_at
  %parts_at = getelementptr i64, ptr %job, i64 3
  %parts = load i64, ptr %parts_at
  %a = mul i64 %n, %w
  %begin = udiv i64 %a, %parts
  %w1 = add i64 %w, 1
  %b = mul i64 %n, %w1
  %end = udiv i64 %b, %parts
  call void %kernel(ptr %args, i64 %begin, i64 %end, i64 %w)
  store ptr %before, ptr @hook
  ret void
}

define void @mlirhlo_parallel_for(ptr %kernel, ptr %args, i64 %n, i64 %most) {
entry:
  %hook = load ptr, ptr @hook
  %own = icmp eq ptr %hook, null
  br i1 %own, label %process, label %given
process:
  call void @pool_prepare()
  call void @pool_parallel_for(ptr %kernel, ptr %args, i64 %n, i64 %most)
  ret void
given:
  %threads_at = getelementptr i64, ptr %hook, i64 2
  %threads_32 = load i32, ptr %threads_at
  %threads = sext i32 %threads_32 to i64
  %few = icmp slt i64 %n, %most
  %limit = select i1 %few, i64 %n, i64 %most
  %several = mul i64 %threads, 4
  %much = icmp sge i64 %limit, %several
  %shared = icmp sgt i64 %threads, 1
  %cuts = and i1 %much, %shared
  %wished = select i1 %cuts, i64 %several, i64 %threads
  %enough = icmp slt i64 %limit, %wished
  %parts = select i1 %enough, i64 %limit, i64 %wished
  %alone = icmp sle i64 %parts, 1
  br i1 %alone, label %here, label %there
here:
  call void %kernel(ptr %args, i64 0, i64 %n, i64 0)
  ret void
there:
  %job = alloca [4 x i64], align 8
  store ptr %kernel, ptr %job
  %args_at = getelementptr i64, ptr %job, i64 1
  store ptr %args, ptr %args_at
  %n_at = getelementptr i64, ptr %job, i64 2
  store i64 %n, ptr %n_at
  %parts_at = getelementptr i64, ptr %job, i64 3
  store i64 %parts, ptr %parts_at
  %pool = load ptr, ptr %hook
  %run_at = getelementptr i64, ptr %hook, i64 1
  %run = load ptr, ptr %run_at
  call void %run(ptr %pool, ptr @task, ptr %job, i64 %parts)
  ret void
}
"""

_SERIAL = """
define void @pool_prepare() {
  ret void
}
define void @set_threads(i32 %count) {
  ret void
}
define void @pool_parallel_for(ptr %kernel, ptr %args, i64 %n, i64 %most) {
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %run, label %out
run:
  call void %kernel(ptr %args, i64 0, i64 %n, i64 0)
  br label %out
out:
  ret void
}
"""

_MASK_WORDS = 16
_PREPARE = f"""
@prepared = global i32 0, align 4
@omp_num_threads = constant [16 x i8] c"OMP_NUM_THREADS\\00", align 1
@llvm.global_dtors = appending global [1 x {{ i32, ptr, ptr }}]
  [{{ i32, ptr, ptr }} {{ i32 65535, ptr @pool_stop, ptr null }}]
declare ptr @getenv(ptr)
declare i32 @atoi(ptr)
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @pthread_atfork(ptr, ptr, ptr)
declare i64 @llvm.ctpop.i64(i64)
declare i32 @llvm.smax.i32(i32, i32)
declare i32 @llvm.smin.i32(i32, i32)

define void @set_threads(i32 %count) {{
  %low = call i32 @llvm.smax.i32(i32 %count, i32 1)
  %number = call i32 @llvm.smin.i32(i32 %low, i32 {threads_ir.MAX_THREADS})
  %first = cmpxchg ptr @prepared, i32 0, i32 1 acq_rel acquire
  store atomic i32 %number, ptr @threads monotonic, align 4
  ret void
}}

; As many threads as OMP_NUM_THREADS says, or as processors that the process may use.
define void @pool_prepare() {{
entry:
  %done = load atomic i32, ptr @prepared acquire, align 4
  %is_done = icmp ne i32 %done, 0
  br i1 %is_done, label %out, label %claim
claim:
  %claimed = cmpxchg ptr @prepared, i32 0, i32 1 acq_rel acquire
  %mine = extractvalue {{ i32, i1 }} %claimed, 1
  br i1 %mine, label %ask, label %out
ask:
  %f = call i32 @pthread_atfork(ptr null, ptr null, ptr @pool_forget)
  %text = call ptr @getenv(ptr @omp_num_threads)
  %unset = icmp eq ptr %text, null
  br i1 %unset, label %system, label %read
read:
  %said = call i32 @atoi(ptr %text)
  %sane = icmp sgt i32 %said, 0
  br i1 %sane, label %set, label %system
system:
  %mask = alloca [{_MASK_WORDS} x i64], align 8
  store [{_MASK_WORDS} x i64] zeroinitializer, ptr %mask
  %e = call i32 @sched_getaffinity(i32 0, i64 {8 * _MASK_WORDS}, ptr %mask)
  br label %count
count:
  %i = phi i64 [ 0, %system ], [ %i1, %count ]
  %sum = phi i64 [ 0, %system ], [ %sum1, %count ]
  %at = getelementptr i64, ptr %mask, i64 %i
  %word = load i64, ptr %at
  %bits = call i64 @llvm.ctpop.i64(i64 %word)
  %sum1 = add i64 %sum, %bits
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, {_MASK_WORDS}
  br i1 %more, label %count, label %counted
counted:
  %processors = trunc i64 %sum1 to i32
  br label %set
set:
  %wanted = phi i32 [ %said, %read ], [ %processors, %counted ]
  %low = call i32 @llvm.smax.i32(i32 %wanted, i32 1)
  %number = call i32 @llvm.smin.i32(i32 %low, i32 {threads_ir.MAX_THREADS})
  store atomic i32 %number, ptr @threads monotonic, align 4
  br label %out
out:
  ret void
}}
"""
