"""Machine code of executables: running one on one device, and references to it."""

# JAX, llvmlite and the structs of ctypes have no types that pyright knows.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnknownLambdaType=false
# pyright: reportMissingTypeArgument=false, reportAttributeAccessIssue=false

from __future__ import annotations

import ctypes as c
from collections.abc import Callable
from typing import TYPE_CHECKING

from mlirhlo.integrations.jax.pjrt.buffers import delete
from mlirhlo.integrations.jax.pjrt.emitter import BYTE, INT, NULL, POINTER, WORD, Emitter, Value
from mlirhlo.integrations.jax.pjrt.interface import structs
from mlirhlo.integrations.jax.pjrt.objects import objects
from mlirhlo.runtime import call_layout
from mlirhlo.runtime.call_layout import DONE, NO_MEMORY
from mlirhlo.runtime.generated.device_threads_ir import MISSING

if TYPE_CHECKING:
    from mlirhlo.integrations.jax.pjrt.code import Code


def get_executable(code: Code, e: Emitter, kind: type[c.Structure], args: Value) -> None:
    """One more reference to the executable, which is the loaded one."""
    del code
    loaded = e.pointer(kind, args, "loaded_executable")
    e.atomic_add(objects()["Executable"], loaded, "references", 1)
    e.store(kind, args, "executable", loaded)
    e.b.ret(NULL)


def drop_executable(code: Code, e: Emitter, kind: type[c.Structure], args: Value) -> None:
    """With the last reference, puts it in front of the list of garbage."""
    object_ = objects()["Executable"]
    executable = e.pointer(kind, args, "executable")
    before = e.atomic_add(object_, executable, "references", -1)
    with e.b.if_then(e.b.icmp_unsigned("==", before, WORD(1))):
        garbage = code.module.get_global("garbage")
        again, done = (e.function.append_basic_block() for _ in range(2))
        e.b.branch(again)
        e.b.position_at_end(again)
        first = e.b.load_atomic(garbage, "seq_cst", 8, typ=WORD)
        e.store(object_, executable, "next", first)
        own = e.b.ptrtoint(executable, WORD)
        swapped = e.b.cmpxchg(garbage, first, own, "seq_cst", "seq_cst")
        e.b.cbranch(e.b.extract_value(swapped, 1), done, again)
        e.b.position_at_end(done)
    e.b.ret(NULL)


def delete_executable(code: Code, e: Emitter, kind: type[c.Structure], args: Value) -> None:
    """Marks an executable as deleted."""
    del code
    executable = e.pointer(kind, args, "executable")
    e.store(objects()["Executable"], executable, "is_deleted", BYTE(1))
    e.b.ret(NULL)


def execute(code: Code, e: Emitter, kind: type[c.Structure], args: Value) -> None:
    """Runs a module on its devices, without Python where it has a descriptor and the buffers fit."""
    executable_, b = objects()["Executable"], e.b

    def slow() -> Value:
        return e.call("LoadedExecutable_Execute_slow", args)

    executable = e.pointer(kind, args, "executable")
    descriptor = e.pointer(executable_, executable, "descriptor")
    worlds = e.pointer(executable_, executable, "worlds")
    count = e.load(kind, args, "num_args")
    devices = e.load(kind, args, "num_devices")
    results = e.load(executable_, executable, "num_outputs")
    expected_devices = e.load(executable_, executable, "num_addressable_devices")
    parameters = e.load(executable_, executable, "num_parameters")
    fits = b.icmp_unsigned("==", devices, expected_devices)
    fits = b.and_(fits, b.icmp_unsigned("==", count, parameters))
    fits = b.and_(fits, b.icmp_unsigned("!=", descriptor, NULL))
    e.return_if(b.not_(fits), slow)
    argument_lists = e.pointer(kind, args, "argument_lists")
    # One more for the context in which a device meets others.
    inputs = _Rows(e, devices, b.add(count, WORD(1)))
    outputs, storages = (_Rows(e, devices, b.add(results, WORD(1))) for _ in range(2))
    is_donated = e.array(b.add(count, WORD(1)))
    _find_donated(e, executable, args, kind, is_donated)
    with e.loop(devices) as d:
        given = e.item_pointer(argument_lists, d)
        _find_inputs(e, executable, given, inputs.row(d), slow)
    rows = e.word_at(descriptor, WORD(call_layout.HEAD))
    result_rows = e.word_at(rows, b.mul(count, WORD(call_layout.ROW)))
    with e.loop(devices) as d:
        given, stored, target = e.item_pointer(argument_lists, d), storages.row(d), outputs.row(d)
        with e.loop(results) as j:
            storage = _result_storage(e, result_rows, j, given, is_donated)
            failed = b.icmp_unsigned("==", storage, NULL)
            e.return_if(failed, lambda: e.call("execute_failed", args, INT(NO_MEMORY)))
            b.store(storage, e.word_at(stored, j))
            b.store(e.load(objects()["Storage"], storage, "data"), e.word_at(target, j))
    status = _run(e, descriptor, devices, worlds, inputs, outputs)
    with b.if_then(b.icmp_unsigned("!=", status, INT(DONE))):
        with e.loop(devices) as d:
            stored = storages.row(d)
            with e.loop(results) as j:
                e.call("release", e.item_pointer(stored, j))
        e.return_if(b.icmp_unsigned("==", status, INT(MISSING)), slow)
        b.ret(e.call("execute_failed", args, status))
    output_lists = e.pointer(kind, args, "output_lists")
    events = e.pointer(kind, args, "device_complete_events")
    with e.loop(devices) as d:
        given = e.item_pointer(argument_lists, d)
        with e.loop(count) as i, b.if_then(b.icmp_unsigned("!=", e.item(is_donated, i), WORD(0))):
            delete(e, e.item_pointer(given, i))
        first = b.mul(d, results)
        _make_buffers(
            e, executable, first, results, storages.row(d), e.item_pointer(output_lists, d)
        )
        with b.if_then(b.icmp_unsigned("!=", events, NULL)):
            b.store(code.module.get_global("ready"), e.word_at(events, d))
    b.ret(NULL)


class _Rows:
    """An array of words for each device, on the stack."""

    def __init__(self, e: Emitter, devices: Value, size: Value) -> None:
        self.e, self.size = e, size
        self.start = e.array(e.b.mul(devices, size))

    def row(self, device: Value) -> Value:
        """Address of a device's array."""
        return self.e.word_at(self.start, self.e.b.mul(device, self.size))

    def pointers(self, devices: Value) -> Value:
        """An array of the addresses of all of them."""
        found = self.e.array(devices)
        with self.e.loop(devices) as d:
            self.e.b.store(self.row(d), self.e.word_at(found, d))
        return found


def _find_donated(
    e: Emitter, executable: Value, args: Value, kind: type[c.Structure], is_donated: Value
) -> None:
    """Stores for each parameter whether this call gives its memory away."""
    executable_, options_ = objects()["Executable"], structs()["ExecuteOptions"]
    donated = e.pointer(executable_, executable, "is_donated")
    with e.loop(e.load(executable_, executable, "num_parameters")) as i:
        e.b.store(e.item(donated, i), e.word_at(is_donated, i))
    options = e.pointer(kind, args, "options")
    kept = e.pointer(options_, options, "non_donatable_input_indices")
    with e.loop(e.load(options_, options, "num_non_donatable_input_indices")) as i:
        e.b.store(WORD(0), e.word_at(is_donated, e.item(kept, i)))


def _find_inputs(
    e: Emitter, executable: Value, given: Value, inputs: Value, slow: Callable[[], Value]
) -> None:
    """Stores the addresses of a device's arguments; where one does not fit, ends the function by `slow`."""
    executable_, buffer_, b = objects()["Executable"], objects()["Buffer"], e.b
    expected = e.pointer(executable_, executable, "expected_bytes")
    with e.loop(e.load(executable_, executable, "num_parameters")) as i:
        buffer = e.item_pointer(given, i)
        gone = b.icmp_unsigned("!=", e.load(buffer_, buffer, "is_deleted"), BYTE(0))
        size = e.load(buffer_, buffer, "on_device_size_in_bytes")
        misfit = b.or_(gone, b.icmp_unsigned("!=", size, e.item(expected, i)))
        e.return_if(misfit, slow)
        b.store(e.load(buffer_, buffer, "buffer_pointer"), e.word_at(inputs, i))


def _result_storage(
    e: Emitter, result_rows: Value, number: Value, given: Value, is_donated: Value
) -> Value:
    """Memory for a result: that of a donated argument without other references, or new; null where there is none."""
    buffer_, storage_, b = objects()["Buffer"], objects()["Storage"], e.b
    row = e.word_at(result_rows, b.mul(number, WORD(call_layout.ROW)))
    alias = e.item(row, WORD(4))
    at = b.select(b.icmp_unsigned("==", alias, WORD(0)), WORD(0), b.sub(alias, WORD(1)))
    taken = e.variable()
    b.store(NULL, taken)
    is_result = b.icmp_unsigned("!=", alias, WORD(0))
    allowed = b.icmp_unsigned("!=", e.item(is_donated, at), WORD(0))
    with b.if_then(b.and_(is_result, allowed)):
        storage = e.pointer(buffer_, e.item_pointer(given, at), "storage")
        references = e.load(storage_, storage, "references")
        with b.if_then(b.icmp_unsigned("==", references, WORD(1))):
            e.atomic_add(storage_, storage, "references", 1)
            b.store(storage, taken)
    with b.if_then(b.icmp_unsigned("==", b.load(taken, typ=POINTER), NULL)):
        b.store(e.call("storage_new", e.item(row, WORD(3))), taken)
    return b.load(taken, typ=POINTER)


def _run(
    e: Emitter, descriptor: Value, devices: Value, worlds: Value, inputs: _Rows, outputs: _Rows
) -> Value:
    """Runs the module: on one device that meets no other directly, else by `device_threads_ir`."""
    b, status = e.b, e.variable()
    alone = b.icmp_unsigned("==", devices, WORD(1))
    alone = b.and_(alone, b.icmp_unsigned("==", worlds, NULL))
    given, produced = inputs.pointers(devices), outputs.pointers(devices)
    with b.if_else(alone) as (then, otherwise):
        with then:
            found = e.call("run", descriptor, inputs.start, outputs.start)
            b.store(b.zext(found, WORD), status)
        with otherwise:
            found = e.call("run_devices", descriptor, devices, given, produced, worlds)
            b.store(b.zext(found, WORD), status)
    return b.trunc(b.load(status, typ=WORD), INT)


def _make_buffers(
    e: Emitter, executable: Value, first: Value, results: Value, storages: Value, produced: Value
) -> None:
    """Stores a buffer for each result of a device to `produced`; `first`: the number of the first one's template."""
    structure = objects()["Executable"]
    templates = e.pointer(structure, executable, "templates")
    sizes = e.pointer(structure, executable, "template_sizes")
    with e.loop(results) as j:
        at = e.b.add(first, j)
        template, size = e.item_pointer(templates, at), e.item(sizes, at)
        made = e.call("buffer_new", template, size, e.item_pointer(storages, j))
        e.b.store(made, e.word_at(produced, j))
