"""LLVM assembly of running a module: in an arena, under the modes of floating point that it counts on, until it ends
or the user interrupts the process.

`run(descriptor, parameters, results)` takes an arena out of the pool, calls the module's `main` and puts it back. It
is `DONE`, `NO_MEMORY`, or `STOPPED`: then the results hold anything. `call_ir.py` says what stands in a descriptor.

Native code sees no signal of Python's. A handler in front of Python's own sets a byte that loops look at (`STOP`),
as long as a long run is going on; with the last of these it is cleared. It is put there by the runs themselves, where
Python has a handler: programs that ignore SIGINT are not interrupted.
"""

from __future__ import annotations

from mlirhlo.lowering.loops_to_llvm.memory import STOP

NO_MEMORY, DONE, STOPPED = range(3)
"""What `run` returns."""

_SIGINT = 2
_HANDLER_BYTES = 256
"""More than a `struct sigaction` has on any system; its first word is the handler."""

_LOOK_CYCLES = 1 << 20
"""Cycles after which a run looks whose handler there is, which is a call of the system: less than a millisecond."""

_X86_MODES, _X86_DEFAULT = 0xFFC0, 0x1F80
"""Of MXCSR: all but the flags of what happened, and rounding to nearest without traps and flushing."""


def run_assembly(machine: str, *, is_linux: bool) -> str:
    """The functions, for a machine as `platform` calls it."""
    signals = _SIGNALS if is_linux else _NO_SIGNALS
    clock = _CYCLES if machine == "x86_64" else _NO_CYCLES
    return signals + clock + run_main(machine) + _RUN


def run_main(machine: str) -> str:
    """`run_main(main, parameters, results, arena)`: calls `main` under the modes that it counts on."""
    return _IN_MODES if machine == "x86_64" else _AS_IT_IS


def set_modes(machine: str) -> tuple[str, str]:
    """A declaration, and instructions that set the modes of a thread of our own."""
    if machine != "x86_64":
        return "", ""
    declared = "\ndeclare void @llvm.x86.sse.ldmxcsr(ptr)\n"
    lines = (
        "%modes = alloca i32, align 4",
        f"store i32 {_X86_DEFAULT}, ptr %modes",
        "call void @llvm.x86.sse.ldmxcsr(ptr %modes)",
    )
    return declared, "\n  ".join(lines)


_NO_SIGNALS = f"""
@{STOP} = global i8 0, align 64
@last_look = internal global i64 0, align 8

define internal void @begin() {{
  ret void
}}

define internal i1 @end() {{
  ret i1 false
}}
"""

_SIGNALS = f"""
@{STOP} = global i8 0, align 64
@running = internal global i32 0, align 64
@next_handler = internal global ptr null, align 8
@last_look = internal global i64 0, align 8

declare i32 @sigaction(i32, ptr, ptr)

define internal void @interrupted(i32 %signal, ptr %info, ptr %context) {{
entry:
  %count = load atomic i32, ptr @running seq_cst, align 4
  %some = icmp sgt i32 %count, 0
  br i1 %some, label %stop, label %pass
stop:
  store atomic i8 1, ptr @{STOP} seq_cst, align 1
  br label %pass
pass:
  %handler = load ptr, ptr @next_handler
  call void %handler(i32 %signal, ptr %info, ptr %context)
  ret void
}}

define internal void @begin() {{
entry:
  %before = atomicrmw add ptr @running, i32 1 seq_cst
  %first = icmp eq i32 %before, 0
  br i1 %first, label %clear, label %think
clear:
  store atomic i8 0, ptr @{STOP} seq_cst, align 1
  br label %think
think:
  %now = call i64 @now()
  %then = load atomic i64, ptr @last_look monotonic, align 8
  %since = sub i64 %now, %then
  %old = icmp ugt i64 %since, {_LOOK_CYCLES}
  br i1 %old, label %look, label %out
look:
  store atomic i64 %now, ptr @last_look monotonic, align 8
  %action = alloca [{_HANDLER_BYTES} x i8], align 16
  %failed = call i32 @sigaction(i32 {_SIGINT}, ptr null, ptr %action)
  %handler = load ptr, ptr %action
  %number = ptrtoint ptr %handler to i64
  %own = icmp ugt i64 %number, 1
  %ours = icmp eq ptr %handler, @interrupted
  %theirs = xor i1 %ours, true
  %fine = icmp eq i32 %failed, 0
  %a = and i1 %own, %theirs
  %b = and i1 %a, %fine
  br i1 %b, label %put, label %out
put:
  store ptr %handler, ptr @next_handler
  store ptr @interrupted, ptr %action
  %r = call i32 @sigaction(i32 {_SIGINT}, ptr %action, ptr null)
  br label %out
out:
  ret void
}}

; Whether the run was to stop.
define internal i1 @end() {{
entry:
  %flag = load atomic i8, ptr @{STOP} seq_cst, align 1
  %before = atomicrmw sub ptr @running, i32 1 seq_cst
  %last = icmp eq i32 %before, 1
  br i1 %last, label %clear, label %out
clear:
  store atomic i8 0, ptr @{STOP} seq_cst, align 1
  br label %out
out:
  %stopped = icmp ne i8 %flag, 0
  ret i1 %stopped
}}
"""

_CYCLES = """
declare i64 @llvm.readcyclecounter()

define internal i64 @now() {
  %cycles = call i64 @llvm.readcyclecounter()
  ret i64 %cycles
}
"""

_IN_MODES = f"""
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)

define internal void @run_main(ptr %main, ptr %parameters, ptr %results, ptr %arena) {{
entry:
  %modes = alloca i32, align 4
  call void @llvm.x86.sse.stmxcsr(ptr %modes)
  %found = load i32, ptr %modes
  %kept = and i32 %found, {_X86_MODES}
  %usual = icmp eq i32 %kept, {_X86_DEFAULT}
  br i1 %usual, label %plain, label %other
plain:
  call void %main(ptr %parameters, ptr %results, ptr %arena)
  ret void
other:
  store i32 {_X86_DEFAULT}, ptr %modes
  call void @llvm.x86.sse.ldmxcsr(ptr %modes)
  call void %main(ptr %parameters, ptr %results, ptr %arena)
  store i32 %found, ptr %modes
  call void @llvm.x86.sse.ldmxcsr(ptr %modes)
  ret void
}}
"""

_NO_CYCLES = f"""
; Nothing that is known to count: a run looks every time.
define internal i64 @now() {{
  %then = load atomic i64, ptr @last_look monotonic, align 8
  %now = add i64 %then, {2 * _LOOK_CYCLES}
  ret i64 %now
}}
"""

_AS_IT_IS = """
define internal void @run_main(ptr %main, ptr %parameters, ptr %results, ptr %arena) {
  call void %main(ptr %parameters, ptr %results, ptr %arena)
  ret void
}
"""

_RUN = f"""
define i32 @run(ptr %d, ptr %parameters, ptr %results) {{
entry:
  %main = load ptr, ptr %d
  %size_at = getelementptr i64, ptr %d, i64 4
  %size = load i64, ptr %size_at
  %class_at = getelementptr i64, ptr %d, i64 5
  %class = load i64, ptr %class_at
  %long_at = getelementptr i64, ptr %d, i64 6
  %long = load i64, ptr %long_at
  %short = icmp eq i64 %long, 0
  %bare = icmp eq i64 %size, 0
  br i1 %bare, label %ready, label %with
with:
  %taken = call ptr @arena_take(i64 %class)
  %failed = icmp eq ptr %taken, null
  br i1 %failed, label %no, label %ready
no:
  ret i32 {NO_MEMORY}
ready:
  %arena = phi ptr [ null, %entry ], [ %taken, %with ]
  br i1 %short, label %quick, label %watched
quick:
  call void @run_main(ptr %main, ptr %parameters, ptr %results, ptr %arena)
  br label %give
watched:
  call void @begin()
  call void @run_main(ptr %main, ptr %parameters, ptr %results, ptr %arena)
  %stopped = call i1 @end()
  %ended = select i1 %stopped, i32 {STOPPED}, i32 {DONE}
  br label %give
give:
  %status = phi i32 [ {DONE}, %quick ], [ %ended, %watched ]
  br i1 %bare, label %out, label %back
back:
  call void @arena_give(ptr %arena, i64 %class)
  br label %out
out:
  ret i32 %status
}}
"""
