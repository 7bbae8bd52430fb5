"""The code that runs a module on all devices of one process, each on a thread of its own, without Python.

`run_devices(descriptor, count, inputs, outputs, worlds)` runs the first device on the caller's thread and the others on
workers, which wait between runs: they spin for a while, then sleep on a futex. A module whose devices never meet and
that has no long loops runs its devices one after another instead, which takes less than waking a thread. The result is
that of `run_ir`, or `ENDED` when the devices could not go on, or `MISSING` when there are too few workers or no world:
then nothing has run, and the caller makes some (`device_threads.py`).

Workers, and the worlds of a module (`meetings.World`) that no run uses, are lists whose first word is the next item.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, i32, i64

from mlirhlo.lowering import meeting_words as words
from mlirhlo.lowering.llvm_builder import POINTER, LlvmBuilder, LlvmFunction, Value
from mlirhlo.lowering.llvm_text import print_llvm
from mlirhlo.runtime import call_layout
from mlirhlo.runtime.call_layout import DONE, STOPPED
from mlirhlo.runtime.generated import meeting_ir

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
    """LLVM assembly of `module`."""
    return print_llvm(module(futex, pause))


def module(futex: int, pause: str) -> ModuleOp:
    """`run_devices`, workers and lists, in the llvm dialect.

    `futex`: number of the system call; `pause`: intrinsic for spin loops, or nothing.
    """
    m = LlvmBuilder()
    m.external("syscall", [i64], i64, is_variadic=True)
    m.external("sched_yield", [], i32)
    m.external("run", [POINTER] * 3, i32)
    m.variable("idle", POINTER, alignment=64, linkage="external")
    m.variable("lists", i32, alignment=64, linkage="external")
    m.variable("spins", i64, alignment=64, linkage="external")
    _add_lock(m)
    _add_take(m)
    _add_put(m)
    _add_give_back(m)
    _add_leaves(m, futex, pause)
    _add_wake(m, futex)
    _add_run_one(m)
    _add_worker(m)
    _add_run_in_turn(m)
    _add_enter(m)
    _add_rest(m)
    _add_hire(m)
    _add_start(m)
    _add_join(m)
    _add_run_all(m)
    _add_run_devices(m)
    return m.module()


def _add_lock(m: LlvmBuilder) -> None:
    """`lock()`: holds the lists until a 0 is stored."""
    f = m.function("lock")
    with f.loop() as loop:
        loop.leave_if(f.address("lists").update("xchg", f.value(1, i32), "acquire").cmp("eq", 0))
        f.call("sched_yield")
        loop.next()
    f.ret()


def _unlock(f: LlvmFunction) -> None:
    f.address("lists").store(f.value(0, i32), "release")


def _add_take(m: LlvmBuilder) -> None:
    """`list_take(list)`: takes the first item; null from an empty one."""
    f = m.function("list_take", [POINTER], POINTER, is_public=True)
    (list_,) = f.arguments
    f.call("lock")
    item = list_.load(POINTER)
    with f.if_(item.cmp("ne", 0)):
        list_.store(item.load(POINTER))
    _unlock(f)
    f.ret(item)


def _add_put(m: LlvmBuilder) -> None:
    """`list_put(list, item)`: makes an item the first."""
    f = m.function("list_put", [POINTER, POINTER], is_public=True)
    list_, item = f.arguments
    f.call("lock")
    item.store(list_.load(POINTER))
    list_.store(item)
    _unlock(f)
    f.ret()


def _add_give_back(m: LlvmBuilder) -> None:
    """`give_back(chain)`: puts a chain of workers back."""
    f = m.function("give_back", [POINTER])
    with f.loop(*f.arguments) as loop:
        (worker,) = loop.values
        loop.leave_if(worker.cmp("eq", 0))
        following = worker.load(POINTER)
        f.call("list_put", f.address("idle"), worker)
        loop.next(following)
    f.ret()


def _add_leaves(m: LlvmBuilder, futex: int, pause: str) -> None:
    """`leaves(word, seen)`: waits until a word has another value than `seen`, and returns it."""
    f = m.function("leaves", [POINTER, i32], i32)
    word, seen = f.arguments
    spins, out = f.address("spins").load(i64), f.label(i32)
    with f.loop(0) as spin:
        (round_,) = spin.values
        now = word.load(i32, "acquire")
        f.jump_if(now.cmp("ne", seen), out, now)
        if pause:
            f.intrinsic(pause)
        following = round_ + 1
        spin.leave_unless(following.cmp("ult", spins))
        spin.next(following)
    with f.loop() as sleep:
        rest = f.null, f.null, f.value(0, i32)
        f.call("syscall", futex, word, f.value(_WAIT, i32), seen, *rest)
        late = word.load(i32, "acquire")
        f.jump_if(late.cmp("ne", seen), out, late)
        sleep.next()
    f.ret(*f.place(out))


def _add_wake(m: LlvmBuilder, futex: int) -> None:
    f = m.function("wake", [POINTER])
    rest = f.null, f.null, f.value(0, i32)
    f.call("syscall", futex, f.arguments[0], f.value(_WAKE, i32), f.value(1, i32), *rest)
    f.ret()


def _set_active(f: LlvmFunction, context: Value, value: int) -> None:
    context.at(i64, words.ACTIVE).store(value, "seq_cst")


def _add_run_one(m: LlvmBuilder) -> None:
    """`run_one(descriptor, inputs, outputs, world)`: runs one device; if it does not end, no other waits for it."""
    f = m.function("run_one", [POINTER] * 4, i32)
    descriptor, inputs, outputs, world = f.arguments
    status = f.call("run", descriptor, inputs, outputs)
    with f.if_(world.cmp("ne", 0)):
        count = descriptor.item(i64, call_layout.PARAMETERS)
        _set_active(f, inputs.item(POINTER, count), 0)
        with f.if_(status.cmp("ne", DONE)):
            world.at(i64, meeting_ir.ENDED).store(1, "seq_cst")
    f.ret(status)


def _add_worker(m: LlvmBuilder) -> None:
    """`device_worker(worker)`: what a worker's thread does, for ever."""
    f = m.function("device_worker", [POINTER], is_public=True)
    (worker,) = f.arguments
    state = worker.at(i64, STATE)
    with f.loop() as loop:
        f.call("leaves", state, 0)
        fields = DESCRIPTOR, INPUTS, OUTPUTS, WORLD, PENDING
        *job, pending = [worker.item(POINTER, field) for field in fields]
        worker.at(i64, STATUS).store(f.call("run_one", *job))
        state.store(f.value(0, i32), "release")
        before = pending.update("sub", f.value(1, i32), "seq_cst")
        with f.if_(before.cmp("eq", 1)):
            f.call("wake", pending)
        loop.next()


def _add_run_in_turn(m: LlvmBuilder) -> None:
    """`run_in_turn(descriptor, count, inputs, outputs)`: runs all devices on this thread, one after another."""
    f = m.function("run_in_turn", [POINTER, i64, POINTER, POINTER], i32)
    descriptor, count, inputs, outputs = f.arguments
    with f.count(count) as k:
        status = f.call("run", descriptor, inputs.item(POINTER, k), outputs.item(POINTER, k))
        with f.if_(status.cmp("ne", DONE)):
            f.ret(status)
    f.ret(DONE)


def _add_enter(m: LlvmBuilder) -> None:
    """`enter(descriptor, count, inputs, item)`: marks all devices of a world as running, and adds their contexts to
    their parameters."""
    f = m.function("enter", [POINTER, i64, POINTER, POINTER])
    descriptor, count, inputs, item = f.arguments
    contexts, parameters = (
        item.at(POINTER, WORLD_CONTEXTS),
        descriptor.item(i64, call_layout.PARAMETERS),
    )
    with f.count(count) as k:
        context = contexts.item(POINTER, k)
        _set_active(f, context, 1)
        inputs.item(POINTER, k).at(POINTER, parameters).store(context)
    f.ret()


def _add_rest(m: LlvmBuilder) -> None:
    """`rest(item, count)`: marks all devices of a world as not running."""
    f = m.function("rest", [POINTER, i64])
    item, count = f.arguments
    with f.count(count) as k:
        _set_active(f, item.at(POINTER, WORLD_CONTEXTS).item(POINTER, k), 0)
    f.ret()


def _add_hire(m: LlvmBuilder) -> None:
    """`hire(chain_at, count)`: takes so many workers, as a chain; whether there were enough."""
    f = m.function("hire", [POINTER, i64], i32)
    chain_at, count = f.arguments
    chain_at.store(f.null)
    with f.count(count):
        worker = f.call("list_take", f.address("idle"))
        with f.if_(worker.cmp("eq", 0)):
            f.call("give_back", chain_at.load(POINTER))
            f.ret(0)
        worker.store(chain_at.load(POINTER))
        chain_at.store(worker)
    f.ret(1)


_RUN = [POINTER, POINTER, POINTER, POINTER]
"""A descriptor, the inputs and outputs of all devices, and their world or null."""


def _add_start(m: LlvmBuilder) -> None:
    """`start_all(chain, pending, …)`: gives each worker the job of a device, from the second on."""
    f = m.function("start_all", [POINTER, POINTER, *_RUN])
    chain, pending, descriptor, inputs, outputs, world = f.arguments
    with f.loop(chain, 1) as loop:
        worker, device = loop.values
        loop.leave_if(worker.cmp("eq", 0))
        following = worker.load(POINTER)
        job = {
            DESCRIPTOR: descriptor,
            INPUTS: inputs.item(POINTER, device),
            OUTPUTS: outputs.item(POINTER, device),
            WORLD: world,
            PENDING: pending,
        }
        for field, value in job.items():
            worker.at(POINTER, field).store(value)
        state = worker.at(i64, STATE)
        state.store(f.value(1, i32), "seq_cst")
        f.call("wake", state)
        loop.next(following, device + 1)
    f.ret()


def _add_join(m: LlvmBuilder) -> None:
    """`join(chain, pending, status)`: waits for all workers; the first status that is not `DONE`, if there is one."""
    f = m.function("join", [POINTER, POINTER, i32], i32)
    chain, pending, own = f.arguments
    with f.loop() as wait:
        left = pending.load(i32, "acquire")
        wait.leave_if(left.cmp("eq", 0))
        f.call("leaves", pending, left)
        wait.next()
    with f.loop(chain, own) as collect:
        worker, worst = collect.values
        collect.leave_if(worker.cmp("eq", 0), worst)
        status = worker.at(i64, STATUS).load(i32)
        collect.next(worker.load(POINTER), worst.cmp("eq", DONE).select(status, worst))
    f.ret(*collect.results)


def _add_run_all(m: LlvmBuilder) -> None:
    """`run_all(chain, count, …)`: runs the first device here, the others on a chain of workers, which go back."""
    f = m.function("run_all", [POINTER, i64, *_RUN], i32)
    chain, count, descriptor, inputs, outputs, world = f.arguments
    pending = f.stack(i32, alignment=64)
    pending.store((count - 1).to(i32), "seq_cst")
    f.call("start_all", chain, pending, descriptor, inputs, outputs, world)
    first = (x.load(POINTER) for x in (inputs, outputs))
    own = f.call("run_one", descriptor, *first, world)
    status = f.call("join", chain, pending, own)
    f.call("give_back", chain)
    f.ret(status)


def _add_run_devices(m: LlvmBuilder) -> None:
    f = m.function("run_devices", [POINTER, i64, *[POINTER] * 3], i32, is_public=True)
    descriptor, count, inputs, outputs, worlds = f.arguments
    chain, missing, meets = f.stack(POINTER), f.label(), f.label()
    run = descriptor, inputs, outputs
    f.jump_if(worlds.cmp("ne", 0), meets)
    with f.if_(descriptor.item(i64, call_layout.IS_LONG).cmp("eq", 0)):
        f.ret(f.call("run_in_turn", descriptor, count, inputs, outputs))
    f.jump_if(f.call("hire", chain, count - 1).cmp("eq", 0), missing)
    f.ret(f.call("run_all", chain.load(POINTER), count, *run, f.null))
    f.place(meets)
    item = f.call("list_take", worlds)
    f.jump_if(item.cmp("eq", 0), missing)
    f.call("enter", descriptor, count, inputs, item)
    with f.if_(f.call("hire", chain, count - 1).cmp("eq", 0)):
        f.call("rest", item, count)
        f.call("list_put", worlds, item)
        f.jump(missing)
    world = item.item(POINTER, WORLD_START)
    status = f.call("run_all", chain.load(POINTER), count, *run, world)
    with f.if_(world.at(i64, meeting_ir.ENDED).load(i64, "seq_cst").cmp("ne", 0)):
        f.ret(status.cmp("eq", DONE).select(f.value(ENDED, i32), status))
    f.call("list_put", worlds, item)
    f.ret(status)
    f.place(missing)
    f.ret(MISSING)
