"""The code that runs a module: in an arena, under the modes of floating point that it counts on, until it ends
or the user interrupts the process.

`run(descriptor, parameters, results)` takes an arena out of the pool, calls the module's `main` and puts it back. It
is `DONE`, `NO_MEMORY`, or `STOPPED`: then the results hold anything. `call_ir.py` says what stands in a descriptor.

Native code sees no signal of Python's. A handler in front of Python's own sets a byte that loops read (`STOP`),
as long as a long run is going on; the last of these clears it. The byte is the lowest of a word whose others count
the long runs, so that the two change together: no run clears an interrupt that is meant for another one. The runs
themselves install the handler, where Python has one: programs that ignore SIGINT are not interrupted.
"""

from __future__ import annotations

from xdsl.dialects.builtin import i1, i8, i32, i64

from mlirhlo.lowering.llvm_builder import POINTER, LlvmBuilder, LlvmFunction, Value
from mlirhlo.lowering.llvm_text import print_llvm
from mlirhlo.lowering.runtime_symbols import STOP
from mlirhlo.runtime.call_layout import DONE, NO_MEMORY, STOPPED
from mlirhlo.runtime.generated import pool_ir

_SIGINT = 2
_HANDLER_BYTES = 256
"""More than a `struct sigaction` has on any system; its first word is the handler."""

_ONE_RUN = 1 << 8
"""In the word that begins with the byte `STOP`."""

_LOOK_CYCLES = 1 << 20
"""Cycles after which a run reads the current handler again, by a call of the system: less than a millisecond."""

_X86_MODES, _X86_DEFAULT = 0xFFC0, 0x1F80
"""Of MXCSR: all but the flags of what happened, and rounding to nearest without traps and flushing."""


def assembly(machine: str, *, is_linux: bool) -> str:
    """LLVM assembly of `run` and the pool of arenas."""
    m = LlvmBuilder()
    pool_ir.add_pool(m)
    add_run(m, machine, is_linux=is_linux)
    return print_llvm(m.module())


def add_run(m: LlvmBuilder, machine: str, *, is_linux: bool) -> None:
    """Adds `run` for a machine as `platform` calls it, beside the functions of `pool_ir`."""
    m.variable(STOP, i64, alignment=64, linkage="external")
    if is_linux:
        _add_clock(m, machine)
        _add_signals(m)
    add_run_main(m, machine)
    _add_run(m, has_signals=is_linux)


def add_run_main(m: LlvmBuilder, machine: str) -> None:
    """Adds `run_main(main, parameters, results, arena)`: calls `main` under the modes that it counts on."""
    f = m.function("run_main", [POINTER] * 4)
    main, *operands = f.arguments
    if machine == "x86_64":
        modes = f.stack(i32, alignment=4)
        f.intrinsic("llvm.x86.sse.stmxcsr", modes)
        before, others = modes.load(i32), f.label()
        f.jump_unless((before & _X86_MODES).cmp("eq", _X86_DEFAULT), others)
        f.call_pointer(main, *operands)
        f.ret()
        f.place(others)
        _set_modes(f, modes, f.value(_X86_DEFAULT, i32))
        f.call_pointer(main, *operands)
        _set_modes(f, modes, before)
        f.ret()
        return
    f.call_pointer(main, *operands)
    f.ret()


def set_modes(f: LlvmFunction, machine: str) -> None:
    """Sets the modes of a thread of our own."""
    if machine == "x86_64":
        _set_modes(f, f.stack(i32, alignment=4), f.value(_X86_DEFAULT, i32))


def _set_modes(f: LlvmFunction, memory: Value, modes: Value) -> None:
    memory.store(modes)
    f.intrinsic("llvm.x86.sse.ldmxcsr", memory)


def _add_clock(m: LlvmBuilder, machine: str) -> None:
    """`now()`: cycles; where no counter is known, so many more at each call that a run reads the handler every time."""
    m.variable("last_look", i64)
    f = m.function("now", [], i64)
    if machine == "x86_64":
        f.ret(f.intrinsic("llvm.readcyclecounter", output=i64))
    else:
        f.ret(f.address("last_look").load(i64, "monotonic") + 2 * _LOOK_CYCLES)


def _add_signals(m: LlvmBuilder) -> None:
    """`begin()` and `end()`, around long runs: the second returns whether the user interrupted them."""
    m.variable("next_handler", POINTER)
    m.external("sigaction", [i32, POINTER, POINTER], i32)
    _add_handler(m)
    _add_begin(m)
    _add_end(m)


def _add_handler(m: LlvmBuilder) -> None:
    """`interrupted(signal, info, context)`: tells the runs that are going on, and Python."""
    f = m.function("interrupted", [i32, POINTER, POINTER])
    state = f.address(STOP)
    with f.loop() as loop:
        before = state.load(i64, "seq_cst")
        loop.leave_if(before.cmp("ult", _ONE_RUN))
        loop.leave_if(state.replace(before, before | 1, "seq_cst", "seq_cst"))
        loop.next()
    f.call_pointer(f.address("next_handler").load(POINTER), *f.arguments)
    f.ret()


def _add_begin(m: LlvmBuilder) -> None:
    """The handler is there before the run counts, and before other runs take it as installed."""
    f = m.function("begin")
    now, last = f.call("now"), f.address("last_look")
    with f.if_((now - last.load(i64, "acquire")).cmp("ugt", _LOOK_CYCLES)):
        action, ours = f.stack(i8, _HANDLER_BYTES, alignment=16), f.address("interrupted")
        failed = f.call("sigaction", _SIGINT, f.null, action)
        handler = action.load(POINTER)
        # 0 and 1 are the default action and none.
        is_own = handler.to(i64).cmp("ugt", 1) & handler.cmp("ne", ours)
        with f.if_(is_own & failed.cmp("eq", 0)):
            f.address("next_handler").store(handler)
            action.store(ours)
            f.call("sigaction", _SIGINT, action, f.null)
        last.store(now, "release")
    f.address(STOP).update("add", f.value(_ONE_RUN), "seq_cst")
    f.ret()


def _add_end(m: LlvmBuilder) -> None:
    f = m.function("end", [], i1)
    state = f.address(STOP)
    with f.loop() as loop:
        before = state.load(i64, "seq_cst")
        left = before - _ONE_RUN
        after = left.cmp("ult", _ONE_RUN).select(f.value(0), left)
        loop.leave_if(state.replace(before, after, "seq_cst", "seq_cst"), before & 1)
        loop.next()
    f.ret(loop.results[0].cmp("ne", 0))


def _add_run(m: LlvmBuilder, *, has_signals: bool) -> None:
    """`run(descriptor, parameters, results)`; `call_ir.py` says what the words of a descriptor are."""
    f = m.function("run", [POINTER] * 3, i32, is_public=True)
    descriptor, parameters, results = f.arguments
    main, size = descriptor.load(POINTER), descriptor.item(i64, 4)
    class_, is_long = descriptor.item(i64, 5), descriptor.item(i64, 6)
    has_arena = size.cmp("ne", 0)
    ready = f.label(POINTER)
    f.jump_unless(has_arena, ready, 0)
    taken = f.call("arena_take", class_)
    with f.if_(taken.cmp("eq", 0)):
        f.ret(NO_MEMORY)
    (arena,) = f.place(ready, taken)

    def run_main() -> Value:
        f.call("run_main", main, parameters, results, arena)
        return f.value(DONE, i32)

    def run_watched() -> Value:
        f.call("begin")
        done = run_main()
        return f.call("end").select(f.value(STOPPED, i32), done)

    status = (
        run_main() if not has_signals else f.either(is_long.cmp("eq", 0), run_main, run_watched)
    )
    with f.if_(has_arena):
        f.call("arena_give", arena, class_)
    f.ret(status)
