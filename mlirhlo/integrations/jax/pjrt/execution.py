"""Machine code of executables: running one on one device, and references to it."""

# JAX, llvmlite and the structs of ctypes have no types that pyright knows.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnknownLambdaType=false
# pyright: reportMissingTypeArgument=false, reportAttributeAccessIssue=false

from __future__ import annotations

import ctypes as c
from typing import TYPE_CHECKING

from mlirhlo.integrations.jax.pjrt.buffers import delete
from mlirhlo.integrations.jax.pjrt.emitter import BYTE, INT, NULL, POINTER, WORD, Emitter, Value
from mlirhlo.integrations.jax.pjrt.interface import structs
from mlirhlo.integrations.jax.pjrt.objects import objects
from mlirhlo.runtime import call_ir
from mlirhlo.runtime.run_ir import DONE

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
    """Runs a module on one device, without Python where it has a descriptor and the buffers fit."""
    executable_, buffer_, storage_ = (objects()[n] for n in ("Executable", "Buffer", "Storage"))
    b = e.b

    def slow() -> Value:
        return e.call("LoadedExecutable_Execute_slow", args)

    executable = e.pointer(kind, args, "executable")
    descriptor = e.pointer(executable_, executable, "descriptor")
    count = e.load(kind, args, "num_args")
    results = e.load(executable_, executable, "num_outputs")
    parameters = e.load(executable_, executable, "num_parameters")
    one_device = b.icmp_unsigned("==", e.load(kind, args, "num_devices"), WORD(1))
    fits = b.and_(one_device, b.icmp_unsigned("==", count, parameters))
    fits = b.and_(fits, b.icmp_unsigned("!=", descriptor, NULL))
    e.return_if(b.not_(fits), slow)
    given = e.item_pointer(e.pointer(kind, args, "argument_lists"), WORD(0))
    inputs = e.array(b.add(count, WORD(1)))
    outputs, storages = (e.array(b.add(results, WORD(1))) for _ in range(2))
    expected = e.pointer(executable_, executable, "expected_bytes")
    with e.loop(count) as i:
        buffer = e.item_pointer(given, i)
        gone = b.icmp_unsigned("!=", e.load(buffer_, buffer, "is_deleted"), BYTE(0))
        size = e.load(buffer_, buffer, "on_device_size_in_bytes")
        misfit = b.or_(gone, b.icmp_unsigned("!=", size, e.item(expected, i)))
        e.return_if(misfit, slow)
        b.store(e.load(buffer_, buffer, "buffer_pointer"), e.word_at(inputs, i))
    # What may be overwritten: a donated parameter whose memory nobody else holds.
    rows = e.word_at(descriptor, WORD(call_ir.HEAD))
    result_rows = e.word_at(rows, b.mul(count, WORD(call_ir.ROW)))
    donated = e.pointer(executable_, executable, "is_donated")
    is_donated = e.array(b.add(count, WORD(1)))
    with e.loop(count) as i:
        b.store(e.item(donated, i), e.word_at(is_donated, i))
    options_, options = structs()["ExecuteOptions"], e.pointer(kind, args, "options")
    kept = e.pointer(options_, options, "non_donatable_input_indices")
    with e.loop(e.load(options_, options, "num_non_donatable_input_indices")) as i:
        b.store(WORD(0), e.word_at(is_donated, e.item(kept, i)))
    with e.loop(results) as j:
        row = e.word_at(result_rows, b.mul(j, WORD(call_ir.ROW)))
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
        storage = b.load(taken, typ=POINTER)
        e.return_if(
            b.icmp_unsigned("==", storage, NULL), lambda: e.call("execute_failed", args, INT(0))
        )
        b.store(storage, e.word_at(storages, j))
        b.store(e.load(storage_, storage, "data"), e.word_at(outputs, j))
    status = e.call("run", descriptor, inputs, outputs)
    with b.if_then(b.icmp_unsigned("!=", status, INT(DONE))):
        with e.loop(results) as j:
            e.call("release", e.item_pointer(storages, j))
        b.ret(e.call("execute_failed", args, status))
    with e.loop(count) as i, b.if_then(b.icmp_unsigned("!=", e.item(is_donated, i), WORD(0))):
        delete(e, e.item_pointer(given, i))
    produced = e.item_pointer(e.pointer(kind, args, "output_lists"), WORD(0))
    _make_buffers(e, executable, results, storages, produced)
    events = e.pointer(kind, args, "device_complete_events")
    with b.if_then(b.icmp_unsigned("!=", events, NULL)):
        b.store(code.module.get_global("ready"), events)
    b.ret(NULL)


def _make_buffers(
    e: Emitter, executable: Value, results: Value, storages: Value, produced: Value
) -> None:
    """Stores a buffer on each storage of a run's results to `produced`."""
    structure = objects()["Executable"]
    templates = e.pointer(structure, executable, "templates")
    sizes = e.pointer(structure, executable, "template_sizes")
    with e.loop(results) as j:
        template, size = e.item_pointer(templates, j), e.item(sizes, j)
        made = e.call("buffer_new", template, size, e.item_pointer(storages, j))
        e.b.store(made, e.word_at(produced, j))
