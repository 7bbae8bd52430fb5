"""The thread pool that generated code calls.

`mlirhlo_parallel_for(kernel, args, n, most)` cuts 0…n into ranges and calls `kernel(args, begin, end, range)` for
each: as many ranges as there are threads, four times as many where `most` allows it, then a range for each round if
they would have few, never more than `most`. The ranges depend on these numbers alone, also when they run one after
another: in a nested call, while another thread has the pool, and when the system starts fewer threads than it should.
Each thread has a queue of neighbouring ranges, the same ones in jobs of equal sizes, so that its caches hold what it
wrote before; a thread with an empty queue takes ranges of others: rounds need not take equally long, nor threads be
equally fast. So what is computed does not depend on which thread computes it.

The caller waits for the ranges that were begun, not for workers that the system gave no time meanwhile. An epoch counts
jobs. The word of a queue holds it beside the next range and the end, so that a late worker, which may have read half of
the next job, begins nothing. Threads that wait spin first and then sleep on a futex.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp, i8, i32, i64

from mlirhlo.lowering.llvm_builder import POINTER, LlvmBuilder, LlvmFunction, Value, array_of
from mlirhlo.lowering.llvm_text import print_llvm
from mlirhlo.lowering.runtime_symbols import MAX_THREADS, PARALLEL_FOR, STOP
from mlirhlo.runtime.generated.run_ir import set_modes

_RANGES_A_THREAD = 4
"""Where there is enough to do: a thread that is held up has so much less to do at the end."""

_EVEN_ROUNDS = 4
"""Rounds that a range has at least where it has several: one more or less is much for it otherwise."""

_PIECE = 256
"""Of the work that `most` counts (`lowering/loops_to_llvm/parallel.py`): milliseconds, after which a range looks
whether the user has interrupted the process."""

_SPINS = 4000
"""Rounds before sleep: some 100 µs, which what one thread does between jobs should not take."""

_WAIT, _WAKE = 128, 129
"""futex: FUTEX_WAIT and FUTEX_WAKE within one process."""
_EVERY_SLEEPER = (1 << 31) - 1

_QUEUE = array_of(8, i64)
"""A word on a cache line of its own: the epoch in 32 bits, then the end and the next range in 16 each."""
_JOB = {
    "job_kernel": POINTER,
    "job_args": POINTER,
    "job_n": i64,
    "job_parts": i64,
    "job_step": i64,
    "job_queues": i64,
}
"""What workers read of a job."""
_RANGES = [POINTER, POINTER, i64, i64, i64]
"""A job's kernel, its arguments, rounds, ranges, and rounds between two looks at the interrupt flag."""
_SIGNAL_WORDS = 16


def assembly(futex: int, pause: str, machine: str) -> str:
    """LLVM assembly of the pool alone. `futex`: number of the system call; `pause`: an intrinsic that eases a spinning
    core, or nothing; `machine`: as `platform` calls it."""
    return print_llvm(module(futex, pause, machine))


def module(futex: int, pause: str, machine: str) -> ModuleOp:
    """The pool as a module of the llvm dialect; the interrupt flag is elsewhere."""
    m = LlvmBuilder()
    m.external_variable(STOP)
    add_pool(m, futex, pause, machine)
    return m.module()


def add_pool(
    m: LlvmBuilder, futex: int, pause: str, machine: str, *, name: str = PARALLEL_FOR
) -> None:
    """Adds the pool beside the interrupt flag; `name`: of the function that runs a job."""
    _add_state(m)
    _add_pieces(m)
    _add_share(m)
    _add_claim(m)
    _add_help(m, futex)
    _add_await_job(m, futex, pause)
    _add_worker(m, machine)
    _add_start(m)
    _add_publish(m, futex)
    _add_await_workers(m, futex, pause)
    _add_parts(m)
    _add_fill(m)
    _add_run_job(m)
    _add_parallel_for(m, name)
    _add_stop(m)
    _add_forget(m)


def _add_state(m: LlvmBuilder) -> None:
    """Variables, and functions of the system. What several threads write has a cache line of its own."""
    m.variable("threads", i32, 1, alignment=64, linkage="external")
    for name in ("busy", "epoch", "sleepers", "pending", "caller_sleeps", "started"):
        m.variable(name, i32, alignment=64)
    m.variable("stopping", i32, alignment=4)
    for name, type_ in _JOB.items():
        m.variable(name, type_, alignment=64 if name == "job_kernel" else 8)
    m.variable("queues", array_of(MAX_THREADS, _QUEUE), alignment=64)
    m.variable("handles", array_of(MAX_THREADS, i64), alignment=64)
    m.external("pthread_create", [POINTER] * 4, i32)
    m.external("pthread_join", [i64, POINTER], i32)
    m.external("pthread_sigmask", [i32, POINTER, POINTER], i32)
    m.external("sched_yield", [], i32)
    m.external("syscall", [i64], i64, is_variadic=True)


def _sleep(f: LlvmFunction, futex: int, address: Value, seen: Value) -> None:
    """Sleeps while the address holds a number."""
    rest = f.null, f.null, f.value(0, i32)
    f.call("syscall", futex, address, f.value(_WAIT, i32), seen, *rest)


def _wake(f: LlvmFunction, futex: int, address: Value, count: int) -> None:
    """Wakes so many of the threads that sleep there."""
    rest = f.null, f.null, f.value(0, i32)
    f.call("syscall", futex, address, f.value(_WAKE, i32), f.value(count, i32), *rest)


def _add_pieces(m: LlvmBuilder) -> None:
    """The rounds of a range, so many at a time, until the user interrupts the process."""
    f = m.function("pieces", [POINTER, POINTER, i64, i64, i64, i64])
    kernel, args, begin, end, range_, step = f.arguments
    with f.loop(begin) as loop:
        (at,) = loop.values
        goes_on = f.address(STOP).load(i8, "monotonic").cmp("eq", 0)
        loop.leave_unless(at.cmp("slt", end) & goes_on)
        following = at + step
        to = following.cmp("slt", end).select(following, end)
        f.call_pointer(kernel, args, at, to, range_)
        loop.next(to)
    f.ret()


def _run_range(f: LlvmFunction, job: Sequence[Value], number: Value) -> None:
    kernel, args, n, parts, step = job
    f.call("pieces", kernel, args, n * number // parts, n * (number + 1) // parts, number, step)


def _add_share(m: LlvmBuilder) -> None:
    """All ranges of a job, one after another."""
    f = m.function("share", _RANGES)
    job = f.arguments
    with f.count(job[3]) as number:
        _run_range(f, job, number)
    f.ret()


def _add_claim(m: LlvmBuilder) -> None:
    """`claim(queue, all, epoch)`: takes a range that no thread has begun, of the queue, else of those after it.

    Returns -1 where there is none, or the epoch is over.
    """
    f = m.function("claim", [i64, i64, i32], i64)
    queue, all_, epoch = f.arguments
    none = f.label()
    with f.loop(0, queue) as seek:
        tried, number = seek.values
        f.jump_unless(tried.cmp("slt", all_), none)
        word_at = f.address("queues").at(_QUEUE, number)
        with f.loop() as look:
            word = word_at.load(i64, "seq_cst")
            f.jump_unless((word >> 32).to(i32).cmp("eq", epoch), none)
            range_, end = word & 0xFFFF, (word >> 16) & 0xFFFF
            look.leave_unless(range_.cmp("ult", end))
            with f.if_(word_at.replace(word, word + 1, "seq_cst", "seq_cst")):
                f.ret(range_)
            look.next()
        following = number + 1
        seek.next(tried + 1, following.cmp("eq", all_).select(f.value(0), following))
    f.place(none)
    f.ret(-1)


def _add_help(m: LlvmBuilder, futex: int) -> None:
    """`help(…, queue, all, epoch)`: runs ranges of the job of an epoch while there are some left."""
    f = m.function("help", [*_RANGES, i64, i64, i32])
    *job, queue, all_, epoch = f.arguments
    with f.loop(f.value(0, i32)) as loop:
        (done,) = loop.values
        number = f.call("claim", queue, all_, epoch)
        loop.leave_unless(number.cmp("sge", 0), done)
        _run_range(f, job, number)
        loop.next(done + 1)
    (done,) = loop.results
    with f.if_(done.cmp("ne", 0)):
        pending = f.address("pending")
        before = pending.update("sub", done, "seq_cst")
        with f.if_(before.cmp("eq", done)):
            asleep = f.address("caller_sleeps").load(i32, "seq_cst")
            with f.if_(asleep.cmp("ne", 0)):
                _wake(f, futex, pending, 1)
    f.ret()


def _add_await_job(m: LlvmBuilder, futex: int, pause: str) -> None:
    """`await_job(seen)`: returns the epoch once it is another than the one seen."""
    f = m.function("await_job", [i32], i32)
    (seen,) = f.arguments
    address, sleepers, new = f.address("epoch"), f.address("sleepers"), f.label(i32)
    with f.loop(0) as spin:
        (round_,) = spin.values
        now = address.load(i32, "acquire")
        f.jump_if(now.cmp("ne", seen), new, now)
        _spin(f, pause)
        following = round_ + 1
        spin.leave_unless(following.cmp("ult", _SPINS))
        spin.next(following)
    with f.loop() as sleep:
        sleepers.update("add", f.value(1, i32), "seq_cst")
        _sleep(f, futex, address, seen)
        sleepers.update("sub", f.value(1, i32), "seq_cst")
        late = address.load(i32, "acquire")
        f.jump_if(late.cmp("ne", seen), new, late)
        sleep.next()
    (epoch,) = f.place(new)
    f.ret(epoch)


def _spin(f: LlvmFunction, pause: str) -> None:
    if pause:
        f.intrinsic(pause)


def _add_worker(m: LlvmBuilder, machine: str) -> None:
    """A thread of the pool: gets the epoch it was started in and the number of its queue in one word."""
    f = m.function("worker", [POINTER], POINTER)
    signals = f.stack(i64, _SIGNAL_WORDS, alignment=16)
    for index in range(_SIGNAL_WORDS):
        signals.at(i64, index).store(-1)
    f.call("pthread_sigmask", 0, signals, f.null)
    set_modes(f, machine)
    word = f.arguments[0].to(i64)
    with f.loop(word.to(i32)) as loop:
        epoch = f.call("await_job", *loop.values)
        stopping = f.address("stopping").load(i32, "monotonic")
        loop.leave_if(stopping.cmp("ne", 0))
        *job, all_ = [f.address(name).load(type_, "monotonic") for name, type_ in _JOB.items()]
        f.call("help", *job, word >> 32, all_, epoch)
        loop.next(epoch)
    f.ret(0)


def _add_start(m: LlvmBuilder) -> None:
    """`start(wanted)`: starts workers until there are so many, or the system refuses; returns how many there are."""
    f = m.function("start", [i32], i32)
    (wanted,) = f.arguments
    started = f.address("started")
    with f.loop(started.load(i32)) as loop:
        (have,) = loop.values
        loop.leave_unless(have.cmp("slt", wanted), have)
        number = have + 1
        word = (number.to(i64) << 32) | f.address("epoch").load(i32).to(i64)
        handle = f.address("handles").at(i64, have.to(i64))
        worker = f.address("worker")
        failed = f.call("pthread_create", handle, f.null, worker, word.to(POINTER))
        loop.leave_unless(failed.cmp("eq", 0), have)
        started.store(number)
        loop.next(number)
    f.ret(*loop.results)


def _add_publish(m: LlvmBuilder, futex: int) -> None:
    """Begins a new epoch and wakes the workers that sleep."""
    f = m.function("publish")
    epoch = f.address("epoch")
    epoch.update("add", f.value(1, i32), "seq_cst")
    with f.if_(f.address("sleepers").load(i32, "seq_cst").cmp("ne", 0)):
        _wake(f, futex, epoch, _EVERY_SLEEPER)
    f.ret()


def _add_await_workers(m: LlvmBuilder, futex: int, pause: str) -> None:
    """Waits until no range of the job is pending."""
    f = m.function("await_workers")
    pending, asleep, out = f.address("pending"), f.address("caller_sleeps"), f.label()
    with f.loop(0) as spin:
        (round_,) = spin.values
        f.jump_if(pending.load(i32, "acquire").cmp("eq", 0), out)
        _spin(f, pause)
        following = round_ + 1
        spin.leave_unless(following.cmp("ult", _SPINS))
        spin.next(following)
    asleep.store(f.value(1, i32), "seq_cst")
    with f.loop() as sleep:
        left = pending.load(i32, "seq_cst")
        sleep.leave_if(left.cmp("eq", 0))
        _sleep(f, futex, pending, left)
        sleep.next()
    asleep.store(f.value(0, i32), "seq_cst")
    f.place(out)
    f.ret()


def _add_parts(m: LlvmBuilder) -> None:
    """`parts(all, n, most)`: how many ranges a job has."""
    f = m.function("parts", [i64, i64, i64], i64)
    all_, n, most = f.arguments
    several = all_ * _RANGES_A_THREAD
    cuts = most.cmp("sge", several) & all_.cmp("sgt", 1)
    even = n.cmp("slt", several * _EVEN_ROUNDS).select(n, several)
    f.ret(_least(_least(cuts.select(even, all_), most), n))


def _least(x: Value, y: Value) -> Value:
    return y.cmp("slt", x).select(y, x)


def _add_fill(m: LlvmBuilder) -> None:
    """`fill(parts, all, epoch)`: divides the ranges of a job among the queues."""
    f = m.function("fill", [i64, i64, i32])
    parts, all_, epoch = f.arguments
    first = epoch.to(i64) << 32
    with f.loop(0, 0) as loop:
        queue, low = loop.values
        following = queue + 1
        end = parts * following // all_
        f.address("queues").at(_QUEUE, queue).store(first | (end << 16) | low, "release")
        loop.leave_if(following.cmp("eq", all_))
        loop.next(following, end)
    f.ret()


def _add_run_job(m: LlvmBuilder) -> None:
    """`run_job(…, all)`: runs a job with the workers, while the pool is this thread's."""
    f = m.function("run_job", [*_RANGES, i64])
    *job, all_ = f.arguments
    epoch, parts = f.address("epoch").load(i32) + 1, job[3]
    for name, value in zip(_JOB, (*job, all_), strict=True):
        f.address(name).store(value, "monotonic")
    f.address("pending").store(parts.to(i32), "release")
    f.call("fill", parts, all_, epoch)
    f.call("publish")
    f.call("help", *job, 0, all_, epoch)
    f.call("await_workers")
    f.ret()


def _add_parallel_for(m: LlvmBuilder, name: str) -> None:
    f = m.function(name, [POINTER, POINTER, i64, i64], is_public=True)
    kernel, args, n, most = f.arguments
    threads, busy = f.address("threads").load(i32, "monotonic"), f.address("busy")
    all_, serial, free = threads.to(i64, signed=True), f.label(), f.label()
    parts, looks = f.call("parts", all_, n, most), most // _PIECE
    step = f.either(
        looks.cmp("ugt", 1),
        lambda: f.intrinsic("llvm.umax", n // looks, f.value(1), output=i64),
        lambda: n,
    )
    job = kernel, args, n, parts, step
    f.jump_if(parts.cmp("sle", 1), serial)
    f.jump_unless(busy.replace(f.value(0, i32), f.value(1, i32), "acquire", "monotonic"), serial)
    f.jump_if(f.address("stopping").load(i32, "monotonic").cmp("ne", 0), free)
    f.jump_if(f.call("start", threads - 1).cmp("eq", 0), free)
    f.call("run_job", *job, all_)
    busy.store(f.value(0, i32), "release")
    f.ret()
    f.place(free)
    busy.store(f.value(0, i32), "release")
    f.place(serial)
    f.call("share", *job)
    f.ret()


def _add_stop(m: LlvmBuilder) -> None:
    """Ends the workers and waits for them; jobs run serially from then on."""
    f = m.function("pool_stop", is_public=True)
    busy, started = f.address("busy"), f.address("started")
    with f.loop() as claim:
        claim.leave_if(busy.replace(f.value(0, i32), f.value(1, i32), "acquire", "monotonic"))
        f.call("sched_yield")
        claim.next()
    f.address("stopping").store(f.value(1, i32), "seq_cst")
    f.call("publish")
    with f.count(started.load(i32).to(i64, signed=True)) as number:
        f.call("pthread_join", f.address("handles").item(i64, number), f.null)
    started.store(f.value(0, i32))
    busy.store(f.value(0, i32), "release")
    f.ret()


def _add_forget(m: LlvmBuilder) -> None:
    """In a forked child, which has no workers: the pool as it was before its first job."""
    f = m.function("pool_forget", is_public=True)
    for name in ("started", "sleepers", "pending", "caller_sleeps"):
        f.address(name).store(f.value(0, i32))
    f.address("busy").store(f.value(0, i32), "seq_cst")
    f.ret()
