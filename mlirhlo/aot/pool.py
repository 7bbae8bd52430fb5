"""The threads that run the parallel loops of modules compiled ahead of time.

One pool serves all modules of a program; generated code calls it through a hook, so that a caller may bring a pool
of its own. On systems without futexes loops run on the calling thread.
"""

from __future__ import annotations

from xdsl.dialects.builtin import i8, i32, i64

from mlirhlo.aot.runtime_ir import Wrapper
from mlirhlo.lowering.llvm_builder import POINTER, LlvmBuilder, LlvmFunction, Value, array_of
from mlirhlo.lowering.runtime_symbols import MAX_THREADS, PARALLEL_FOR, STOP
from mlirhlo.runtime.generated import threads_ir
from mlirhlo.runtime.threads import FUTEX

_KERNEL = [POINTER, POINTER, i64, i64]
"""Of `parallel_for`: a kernel, its arguments, the rounds, and the most ranges they may be cut into."""
_JOB = ("kernel", "args", "n", "parts")
"""Words of a job that threads of others run."""
_MASK_WORDS = 16
"""Of the set of processors that a process may use."""


def add_pool(m: LlvmBuilder, wrapper: Wrapper, *, parallel: bool) -> None:
    """Adds what all modules in a program share: the threads, and the flag that generated loops read."""
    m.variable(STOP, i8, alignment=64, linkage="external")
    if not parallel:
        m.function("set_pool", [POINTER], POINTER, is_public=True).ret(0)
        m.function("set_threads", [i32], is_public=True).ret()
        return
    number, pause = FUTEX.get(wrapper.machine, (0, ""))
    if wrapper.is_linux and number:
        threads_ir.add_pool(m, number, pause, wrapper.machine, name="pool_parallel_for")
        _add_set_threads(m)
        _add_prepare(m)
    else:
        _add_serial(m)
    _add_hook(m, is_thread_local=not wrapper.triple.startswith("wasm"))


def _add_hook(m: LlvmBuilder, *, is_thread_local: bool) -> None:
    """What runs the parallel loops of a thread: { ptr pool, ptr run, i32 threads }; null for the process's pool."""
    m.variable("hook", POINTER, linkage="external", is_thread_local=is_thread_local)
    m.variable("alone", array_of(3, i64), [0, 0, 1], linkage="external", is_constant=True)
    f = m.function("set_pool", [POINTER], POINTER, is_public=True)
    before = f.address("hook").load(POINTER)
    f.address("hook").store(f.arguments[0])
    f.ret(before)
    _add_task(m)
    _add_parallel_for(m)


def _add_task(m: LlvmBuilder) -> None:
    """`task(job, number)`: one range of a job; parallel loops inside it run on the thread they are on."""
    f = m.function("task", [POINTER, i64], is_public=True)
    job, number = f.arguments
    hook = f.address("hook")
    before = hook.load(POINTER)
    hook.store(f.address("alone"))
    kernel, args = (job.item(POINTER, word) for word in range(2))
    n, parts = (job.item(i64, word) for word in range(2, 4))
    f.call_pointer(kernel, args, n * number // parts, n * (number + 1) // parts, number)
    hook.store(before)
    f.ret()


def _add_parallel_for(m: LlvmBuilder) -> None:
    f = m.function(PARALLEL_FOR, _KERNEL, is_public=True)
    kernel, args, n, most = f.arguments
    hook = f.address("hook").load(POINTER)
    with f.if_(hook.cmp("eq", 0)):
        f.call("pool_prepare")
        f.call("pool_parallel_for", *f.arguments)
        f.ret()
    threads = hook.item(i32, 4).to(i64, signed=True)
    limit, several = n.cmp("slt", most).select(n, most), threads * 4
    cuts = limit.cmp("sge", several) & threads.cmp("sgt", 1)
    count = cuts.select(several, threads)
    parts = limit.cmp("slt", count).select(limit, count)
    with f.if_(parts.cmp("sle", 1)):
        f.call_pointer(kernel, args, 0, n, 0)
        f.ret()
    job = f.stack(i64, len(_JOB))
    for word, value in enumerate((kernel, args, n, parts)):
        job.at(i64, word).store(value)
    run = hook.item(POINTER, 1)
    f.call_pointer(run, hook.load(POINTER), f.address("task"), job, parts)
    f.ret()


def _add_serial(m: LlvmBuilder) -> None:
    m.function("pool_prepare", is_public=True).ret()
    m.function("set_threads", [i32], is_public=True).ret()
    f = m.function("pool_parallel_for", _KERNEL, is_public=True)
    kernel, args, n, _ = f.arguments
    with f.if_(n.cmp("sgt", 0)):
        f.call_pointer(kernel, args, 0, n, 0)
    f.ret()


def _set_count(f: LlvmFunction, count: Value) -> None:
    low = f.intrinsic("llvm.smax", count, f.value(1, i32), output=i32)
    number = f.intrinsic("llvm.smin", low, f.value(MAX_THREADS, i32), output=i32)
    f.address("threads").store(number, "monotonic")


def _claim(f: LlvmFunction) -> Value:
    """Whether this is the first to say how many threads there are."""
    zero, one = f.value(0, i32), f.value(1, i32)
    return f.address("prepared").replace(zero, one, "acq_rel", "acquire")


def _add_set_threads(m: LlvmBuilder) -> None:
    m.variable("prepared", i32, alignment=4, linkage="external")
    f = m.function("set_threads", [i32], is_public=True)
    _claim(f)
    _set_count(f, f.arguments[0])
    f.ret()


def _add_prepare(m: LlvmBuilder) -> None:
    """`pool_prepare()`: as many threads as OMP_NUM_THREADS says, or as processors that the process may use."""
    name = b"OMP_NUM_THREADS\0"
    m.variable("omp_num_threads", array_of(len(name), i8), name, alignment=1, is_constant=True)
    m.at_exit("pool_stop")
    m.external("getenv", [POINTER], POINTER)
    m.external("atoi", [POINTER], i32)
    m.external("pthread_atfork", [POINTER] * 3, i32)
    _add_processors(m)
    f = m.function("pool_prepare", is_public=True)
    out, system = f.label(), f.label()
    f.jump_if(f.address("prepared").load(i32, "acquire").cmp("ne", 0), out)
    f.jump_unless(_claim(f), out)
    f.call("pthread_atfork", f.null, f.null, f.address("pool_forget"))
    text = f.call("getenv", f.address("omp_num_threads"))
    f.jump_if(text.cmp("eq", 0), system)
    count = f.call("atoi", text)
    f.jump_unless(count.cmp("sgt", 0), system)
    _set_count(f, count)
    f.jump(out)
    f.place(system)
    _set_count(f, f.call("processors"))
    f.place(out)
    f.ret()


def _add_processors(m: LlvmBuilder) -> None:
    """`processors()`: how many the process may use; 0 where the system does not say."""
    m.external("sched_getaffinity", [i32, i64, POINTER], i32)
    f = m.function("processors", [], i32)
    mask = f.stack(i64, _MASK_WORDS)
    for index in range(_MASK_WORDS):
        mask.at(i64, index).store(0)
    f.call("sched_getaffinity", 0, 8 * _MASK_WORDS, mask)
    with f.loop(0, 0) as loop:
        word, total = loop.values
        loop.leave_unless(word.cmp("ult", _MASK_WORDS), total)
        bits = f.intrinsic("llvm.ctpop", mask.item(i64, word), output=i64)
        loop.next(word + 1, total + bits)
    (total,) = loop.results
    f.ret(total.to(i32))
