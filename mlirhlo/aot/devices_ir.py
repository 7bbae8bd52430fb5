"""The code that runs a program on its devices: each on a thread of the call, the first on the caller's.

A call lays out the world in which devices meet (`runtime/meetings.py`) and gives each device memory behind it, all in
the arena of the call: calls with arenas of their own may run at the same time. A device copies its tiles of whole
arrays into its memory, runs, and copies tiles of results back. Where the system has no thread for a device, the world
ends, and no device waits for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i8, i32, i64

from mlirhlo.aot.devices import BOX_DIMENSION, BOX_HEAD, ROW, Tables
from mlirhlo.lowering.llvm_builder import POINTER, LlvmBuilder, LlvmFunction, Value, array_of
from mlirhlo.runtime.generated import meeting_ir

DONE, NO_THREAD, MISFIT = 0, 5, 6
"""Status of a run: the system has no thread for a device; a collective's operands do not fit."""

ARGUMENTS, RESULTS, ARENA, POOL, VARIANT, CONTEXTS = range(6)
"""Words of a call: its parameters, the number of the variant, and the table of contexts in the variant's world."""
_JOB = 2
"""Words of a device's job: its call and its number."""
_SIGNAL_WORDS = 16
_BLOCK = 0
"""pthread_sigmask: SIG_BLOCK."""


def add_devices(m: LlvmBuilder, tables: Tables, futex: int, pause: str) -> None:
    """Adds `run_devices(arguments, results, arena, pool, variant)` beside `run_variant` and `set_pool`.

    It returns `DONE`, `NO_THREAD` or `MISFIT`.
    """
    meeting_ir.add_meeting(m, futex, pause)
    m.external("memset", [POINTER, i32, i64], POINTER)
    _add_words(m, "device_inputs", tables.inputs)
    _add_words(m, "device_outputs", tables.outputs)
    _add_words(m, "boxes", tables.boxes)
    _add_prepare_world(m, tables)
    _add_copy_box(m)
    _add_take(m, tables)
    _add_give(m, tables)
    _add_device(m, tables)
    if tables.count > 1:
        _add_threads(m, tables.count)
    _add_run_devices(m, tables)


def _add_words(m: LlvmBuilder, name: str, words: Sequence[int]) -> None:
    m.variable(name, array_of(max(len(words), 1), i64), list(words) or [0], is_constant=True)


def _add_prepare_world(m: LlvmBuilder, tables: Tables) -> None:
    """`prepare_world(arena, variant)`: the world as it is before the first meeting; the table of its contexts."""
    for number, world in enumerate(tables.worlds):
        _add_words(m, f"world_{number}", world.words)
        _add_words(m, f"pointers_{number}", world.pointers)
        _add_words(m, f"contexts_{number}", world.contexts)
    f = m.function("prepare_world", [POINTER, i64], POINTER)
    arena, variant = f.arguments
    for number, world in enumerate(tables.worlds):
        with f.if_(variant.cmp("eq", number)):
            f.call("memcpy", arena, f.address(f"world_{number}"), 8 * len(world.words))
            rest = arena.at(i64, len(world.words))
            f.call("memset", rest, 0, 8 * (world.size - len(world.words)))
            with f.count(len(world.pointers)) as k:
                word = arena.at(i64, f.address(f"pointers_{number}").item(i64, k))
                word.store(word.load(i64) + arena.to(i64))
            f.ret(f.address(f"contexts_{number}"))
    f.ret(0)


def _add_copy_box(m: LlvmBuilder) -> None:
    """`copy_box(box, whole, tile, gives)`: copies a tile out of a whole array, or into it."""
    f = m.function("copy_box", [POINTER, POINTER, POINTER, i64])
    box, whole, tile, gives = f.arguments
    row, rows, rank, start = (box.item(i64, word) for word in range(BOX_HEAD))
    dimensions = box.at(i64, BOX_HEAD)
    with f.count(rows) as number:
        with f.loop(0, number, start, 0) as loop:
            dim, rest, in_whole, in_tile = loop.values
            loop.leave_unless(dim.cmp("slt", rank), in_whole, in_tile)
            words = dimensions.at(i64, dim * BOX_DIMENSION)
            size, far, near = (words.item(i64, word) for word in range(BOX_DIMENSION))
            index = rest - rest // size * size
            loop.next(dim + 1, rest // size, in_whole + index * far, in_tile + index * near)
        offsets = loop.results
        outside, inside = whole.at(i8, offsets[0]), tile.at(i8, offsets[1])
        f.call(
            "memcpy",
            gives.cmp("ne", 0).select(outside, inside),
            gives.cmp("ne", 0).select(inside, outside),
            row,
        )
    f.ret()


def _rows(
    f: LlvmFunction, name: str, device: Value, count: int, k: Value
) -> tuple[Value, Value, Value, Value]:
    row = f.address(name).at(i64, (device * count + k) * ROW)
    position, offset, box, unset = (row.item(i64, word) for word in range(ROW))
    return position, offset, box, unset


def _add_take(m: LlvmBuilder, tables: Tables) -> None:
    """`take(arguments, memory, pointers, device)`: the addresses of a device's parameters, its tiles copied."""
    f = m.function("take", [POINTER, POINTER, POINTER, i64])
    arguments, memory, pointers, device = f.arguments
    with f.count(tables.parameters) as k:
        position, offset, box, unset = _rows(f, "device_inputs", device, tables.parameters, k)
        source, tile = arguments.item(POINTER, position), memory.at(i8, offset)
        is_tile = box.cmp("sge", 0)
        pointers.at(POINTER, k).store(is_tile.select(tile, source))
        with f.if_(is_tile):
            f.call("memset", tile, 0, unset)
            f.call("copy_box", f.address("boxes").at(i64, box), source, tile, 0)
    f.ret()


def _add_give(m: LlvmBuilder, tables: Tables) -> None:
    """`give(results, memory, pointers, device, copies)`: the addresses of a device's results; or copies its tiles."""
    f = m.function("give", [POINTER, POINTER, POINTER, i64, i64])
    results, memory, pointers, device, copies = f.arguments
    with f.count(tables.results) as k:
        position, offset, box, _ = _rows(f, "device_outputs", device, tables.results, k)
        target, tile = results.item(POINTER, position), memory.at(i8, offset)
        is_tile = box.cmp("sge", 0)
        pointers.at(POINTER, k).store(is_tile.select(tile, target))
        with f.if_(is_tile & copies.cmp("ne", 0)):
            f.call("copy_box", f.address("boxes").at(i64, box), target, tile, 1)
    f.ret()


def _add_device(m: LlvmBuilder, tables: Tables) -> None:
    """`device(job)`: all that one device does."""
    f = m.function("device", [POINTER])
    (job,) = f.arguments
    call, number = job.load(POINTER), job.item(i64, 1)
    fields = (ARGUMENTS, RESULTS, ARENA, POOL)
    arguments, results, arena, pool = (call.item(POINTER, word) for word in fields)
    memory = arena.at(i8, number * tables.device_bytes + tables.world_bytes)
    inputs = memory.at(i8, tables.pointers)
    outputs = inputs.at(POINTER, tables.parameters + 1)
    f.call("take", arguments, memory, inputs, number)
    context = arena.at(i8, call.item(POINTER, CONTEXTS).item(i64, number))
    inputs.at(POINTER, tables.parameters).store(context)
    f.call("give", results, memory, outputs, number, 0)
    before = f.call("set_pool", pool)
    f.call("run_variant", call.item(i64, VARIANT), inputs, outputs, memory)
    f.call("set_pool", before)
    f.call("give", results, memory, outputs, number, 1)
    f.ret()


def _add_threads(m: LlvmBuilder, count: int) -> None:
    """`start_threads(jobs, threads, world)`: starts all devices but the first; how many devices there are then.

    Signals are for the caller's thread.
    """
    m.external("pthread_create", [POINTER] * 4, i32)
    m.external("pthread_join", [i64, POINTER], i32)
    m.external("pthread_sigmask", [i32, POINTER, POINTER], i32)
    thread = m.function("device_thread", [POINTER], POINTER)
    signals = thread.stack(i64, _SIGNAL_WORDS, alignment=16)
    for index in range(_SIGNAL_WORDS):
        signals.at(i64, index).store(-1)
    thread.call("pthread_sigmask", _BLOCK, signals, thread.null)
    thread.call("device", thread.arguments[0])
    thread.ret(0)
    f = m.function("start_threads", [POINTER] * 3, i64)
    jobs, threads, world = f.arguments
    with f.loop(1) as loop:
        (k,) = loop.values
        loop.leave_unless(k.cmp("slt", count), k)
        handle, job = threads.at(i64, k), jobs.at(i64, k * _JOB)
        failed = f.call("pthread_create", handle, f.null, f.address("device_thread"), job)
        with f.if_(failed.cmp("ne", 0)):
            world.at(i64, meeting_ir.ENDED).store(1, "seq_cst")
            loop.leave(k)
        loop.next(k + 1)
    f.ret(*loop.results)


def _add_run_devices(m: LlvmBuilder, tables: Tables) -> None:
    f = m.function("run_devices", [POINTER, POINTER, POINTER, POINTER, i64], i32)
    *pointers, variant = f.arguments
    arena, count = pointers[ARENA], tables.count
    call = f.stack(i64, CONTEXTS + 1)
    for word, value in enumerate((*pointers, variant, f.call("prepare_world", arena, variant))):
        call.at(i64, word).store(value)
    jobs, threads = f.stack(i64, _JOB * count), f.stack(i64, count)
    with f.count(count) as k:
        job = jobs.at(i64, k * _JOB)
        job.store(call)
        job.at(i64, 1).store(k)
    started = f.call("start_threads", jobs, threads, arena) if count > 1 else None
    f.call("device", jobs)
    if started is not None:
        with f.count(started - 1) as k:
            f.call("pthread_join", threads.item(i64, k + 1), f.null)
        with f.if_(started.cmp("ne", count)):
            f.ret(NO_THREAD)
    is_ended = arena.at(i64, meeting_ir.ENDED).load(i64, "seq_cst").cmp("ne", 0)
    f.ret(is_ended.select(f.value(MISFIT, i32), DONE))
