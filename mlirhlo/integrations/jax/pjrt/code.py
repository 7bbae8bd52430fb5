"""Machine code of what JAX asks in a steady call: fields of objects, events, buffers, and running a module.

A function of the interface whose results are fields of its object copies them (`_getter`). Everything here runs
without Python: JAX calls it with and without the interpreter's lock, also while an exception is on its way, when
Python functions would fail. All work is done when a call returns, so that there is one event, and it has happened.

Executables whose last reference goes are put on a list (`GARBAGE`), which Python clears when it compiles.
"""

# JAX, llvmlite and the structs of ctypes have no types that pyright knows.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnknownLambdaType=false
# pyright: reportMissingTypeArgument=false, reportAttributeAccessIssue=false

from __future__ import annotations

import ctypes as c
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]

from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.integrations.jax.pjrt.interface import ELEMENT_TYPES, all_arguments, arguments, structs
from mlirhlo.integrations.jax.pjrt.objects import objects
from mlirhlo.runtime import call_ir
from mlirhlo.runtime.cache import object_code
from mlirhlo.runtime.calls import pool_functions
from mlirhlo.runtime.jit import Library
from mlirhlo.runtime.run_ir import DONE

_HANDLES = {
    "LoadedExecutable": "Executable",
    "Executable": "Executable",
    **{name: name for name in objects()},
}
"""The object that the functions of a prefix take."""

ELEMENT_BYTES = [
    PRIMITIVE_TYPES[name].dtype.itemsize if name and PRIMITIVE_TYPES[name].numpy_name else 0
    for name in ELEMENT_TYPES
]
"""Bytes of an element by the interface's number of its type; 0 where there are no arrays."""

POINTER, BYTE, INT, WORD, VOID = (
    ir.PointerType(),
    ir.IntType(8),
    ir.IntType(32),
    ir.IntType(64),
    ir.VoidType(),
)
NULL = ir.Constant(POINTER, None)
_TYPES = {1: BYTE, 4: INT, 8: WORD}

Value = Any
"""A value of llvmlite's, which has no types."""


def _untyped(pointer: Value) -> Value:
    """The value with the type that all pointers have; llvmlite still gives new memory pointers of a type."""
    pointer.type = POINTER
    return pointer


class _Emitter:
    """One function in the making; structs are those of the tables."""

    def __init__(self, code: Code, name: str, result: Any, *parameters: Any) -> None:
        self.code = code
        self.function = ir.Function(code.module, ir.FunctionType(result, parameters), name)
        self.b = ir.IRBuilder(self.function.append_basic_block())
        self.parameters = self.function.args

    def _field(self, kind: type[c.Structure], pointer: Value, field: str) -> tuple[Value, Any]:
        """Address and type of a field; pointers are words."""
        descriptor = getattr(kind, field)
        at = self.b.gep(pointer, [WORD(descriptor.offset)], source_etype=BYTE)
        return at, _TYPES[descriptor.size]

    def load(self, kind: type[c.Structure], pointer: Value, field: str) -> Value:
        """A field as an integer."""
        at, type_ = self._field(kind, pointer, field)
        return self.b.load(at, typ=type_)

    def pointer(self, kind: type[c.Structure], pointer: Value, field: str) -> Value:
        """A field as a pointer."""
        return self.b.inttoptr(self.load(kind, pointer, field), POINTER)

    def store(self, kind: type[c.Structure], pointer: Value, field: str, value: Value) -> None:
        """Sets a field to an integer or a pointer."""
        at, type_ = self._field(kind, pointer, field)
        if value.type == POINTER:
            value = self.b.ptrtoint(value, WORD)
        elif value.type != type_:
            value = self.b.zext(value, type_)
        self.b.store(value, at)

    def word_at(self, pointer: Value, index: Value) -> Value:
        """Address of a word of an array."""
        return self.b.gep(pointer, [index], source_etype=WORD)

    def item(self, pointer: Value, index: Value) -> Value:
        """A word of an array."""
        return self.b.load(self.word_at(pointer, index), typ=WORD)

    def item_pointer(self, pointer: Value, index: Value) -> Value:
        """A pointer of an array."""
        return self.b.load(self.word_at(pointer, index), typ=POINTER)

    @contextmanager
    def loop(self, count: Value) -> Generator[Value]:
        """A body for each number below `count`."""
        counter = self.variable()
        self.b.store(WORD(0), counter)
        head, body, out = (self.function.append_basic_block() for _ in range(3))
        self.b.branch(head)
        self.b.position_at_end(head)
        index = self.b.load(counter, typ=WORD)
        self.b.cbranch(self.b.icmp_unsigned("<", index, count), body, out)
        self.b.position_at_end(body)
        yield index
        self.b.store(self.b.add(index, WORD(1)), counter)
        self.b.branch(head)
        self.b.position_at_end(out)

    def array(self, words: Value) -> Value:
        """An array of words on the stack; not in loops."""
        return _untyped(self.b.alloca(WORD, size=words))

    def variable(self) -> Value:
        """A word on the stack."""
        with self.b.goto_entry_block():
            return _untyped(self.b.alloca(WORD))

    def call(self, name: str, *values: Value) -> Value:
        """Calls a function of this module or of `_EXTERNALS`."""
        return self.b.call(self.code.callee(name), values)

    def return_if(self, condition: Value, value: Callable[[], Value]) -> None:
        """Ends the function there."""
        with self.b.if_then(condition):
            self.b.ret(value())

    def atomic_add(self, kind: type[c.Structure], pointer: Value, field: str, value: int) -> Value:
        """Adds to a counter; its value before."""
        at, _ = self._field(kind, pointer, field)
        return self.b.atomic_rmw("add", at, WORD(value & (1 << 64) - 1), "seq_cst")


PARTLY = (
    "LoadedExecutable_Execute",
    "Client_BufferFromHostBuffer",
    "Buffer_ToHostBuffer",
    "Layouts_Buffer_MemoryLayout",
)
"""Functions whose usual case is here, and all others in a function of Python."""

_EXTERNALS: dict[str, tuple[Any, list[Any]]] = {
    "malloc": (POINTER, [WORD]),
    "free": (VOID, [POINTER]),
    "memcpy": (POINTER, [POINTER, POINTER, WORD]),
    "memset": (POINTER, [POINTER, INT, WORD]),
    "memory_new": (POINTER, [POINTER, WORD]),
    "memory_free": (VOID, [POINTER, POINTER, WORD]),
    "run": (INT, [POINTER, POINTER, POINTER]),
    "execute_failed": (POINTER, [POINTER, INT]),
    **{f"{name}_slow": (POINTER, [POINTER]) for name in PARTLY},
}
"""What the code calls: the system's, the runtime's, and functions of Python."""


class Code:
    """The module of all functions."""

    def __init__(self) -> None:
        self.module = ir.Module("pjrt")
        self.structs = {**all_arguments(), **objects(), **structs()}
        for name, (result, parameters) in _EXTERNALS.items():
            ir.Function(self.module, ir.FunctionType(result, parameters), name)
        self.functions: list[str] = []
        for name, initial in (("ready", 1), ("garbage", 0), ("in_use", 0), ("peak", 0)):
            variable = ir.GlobalVariable(self.module, WORD, name)
            variable.initializer, variable.align = WORD(initial), 64
            _untyped(variable)
        sizes = ir.ArrayType(WORD, len(ELEMENT_BYTES))
        table = ir.GlobalVariable(self.module, sizes, "element_bytes")
        table.initializer, table.global_constant = sizes(ELEMENT_BYTES), True
        _untyped(table)
        for make in (_release, _storage_new, _buffer_new, _make_functions):
            make(self)

    def callee(self, name: str) -> Value:
        """A function by name."""
        return self.module.get_global(name)

    def internal(self, name: str, result: Any, *parameters: Any) -> _Emitter:
        """Begins a function that Python and this code call."""
        self.functions.append(name)
        return _Emitter(self, name, result, *parameters)

    def api(self, name: str) -> tuple[_Emitter, type[c.Structure], Value]:
        """Begins a function of the interface: its emitter, the struct of its arguments, and their address."""
        self.functions.append(name)
        emitter = _Emitter(self, name, POINTER, POINTER)
        return emitter, self.structs[name], emitter.parameters[0]


def _getter(code: Code, name: str) -> None:
    """Copies fields of the object to those of the arguments, as far as the caller knows of these."""
    e, kind, args = code.api(name)
    handle, *fields = [field[0] for field in kind._fields_[2:]]
    source = _object_of(name)
    assert source is not None
    object_ = e.pointer(kind, args, handle)
    size = e.load(kind, args, "struct_size")
    for field in fields:
        descriptor = getattr(kind, field)
        end = WORD(descriptor.offset + descriptor.size)
        with e.b.if_then(e.b.icmp_unsigned(">=", size, end), likely=True):
            e.store(kind, args, field, e.load(source, object_, field))
    e.b.ret(NULL)


def _object_of(name: str) -> type[c.Structure] | None:
    handle = _HANDLES.get(name.partition("_")[0])
    return None if handle is None else objects()[handle]


def getters() -> list[str]:
    """The functions of the interface that hand out fields of their object."""
    found: list[str] = []
    for name, kind in arguments().items():
        source = _object_of(name)
        fields = [field[0] for field in kind._fields_[3:]]
        known = () if source is None else [field[0] for field in source._fields_]
        if fields and all(field in known for field in fields) and name not in _OTHERS:
            found.append(name)
    return found


_OTHERS = ("Executable_Serialize", "Buffer_ReadyEvent", "LoadedExecutable_GetExecutable")


def _release(code: Code) -> None:
    """Takes a reference from a storage, and frees it with the last."""
    e = code.internal("release", VOID, POINTER)
    kind = objects()["Storage"]
    (storage,) = e.parameters
    before = e.atomic_add(kind, storage, "references", -1)
    with e.b.if_then(e.b.icmp_unsigned("==", before, WORD(1))):
        deleter = e.pointer(kind, storage, "deleter")
        data = e.pointer(kind, storage, "data")
        with e.b.if_else(e.b.icmp_unsigned("==", deleter, NULL)) as (own, other):
            with own:
                bytes_ = e.load(kind, storage, "bytes")
                e.b.atomic_rmw("sub", code.module.get_global("in_use"), bytes_, "monotonic")
                e.call("memory_free", NULL, data, bytes_)
            with other:
                callback = ir.FunctionType(VOID, [POINTER, POINTER])
                argument = e.pointer(kind, storage, "deleter_arg")
                _call_pointer(e, callback, deleter, [data, argument])
        e.call("free", storage)
    e.b.ret_void()


@dataclass(frozen=True)
class _Callee:
    """A pointer with the type of the function there, which llvmlite reads off what is called."""

    pointer: Value
    function_type: Any

    def get_reference(self) -> str:
        """As an operand."""
        return str(self.pointer.get_reference())


def _call_pointer(e: _Emitter, kind: Any, pointer: Value, values: list[Value]) -> Value:
    """Calls through a pointer."""
    return e.b.call(_Callee(pointer, kind), values)


def _storage_new(code: Code) -> None:
    """A storage of memory from the pool, with one reference; null when there is none."""
    e = code.internal("storage_new", POINTER, WORD)
    kind = objects()["Storage"]
    (bytes_,) = e.parameters
    data = e.call("memory_new", NULL, bytes_)
    e.return_if(e.b.icmp_unsigned("==", data, NULL), lambda: NULL)
    storage = e.call("malloc", WORD(c.sizeof(kind)))
    e.store(kind, storage, "references", WORD(1))
    e.store(kind, storage, "data", data)
    e.store(kind, storage, "bytes", bytes_)
    e.store(kind, storage, "deleter", NULL)
    before = e.b.atomic_rmw("add", code.module.get_global("in_use"), bytes_, "monotonic")
    now = e.b.add(before, bytes_)
    e.b.atomic_rmw("umax", code.module.get_global("peak"), now, "monotonic")
    e.b.ret(storage)


def _buffer_new(code: Code) -> None:
    """A buffer as a template of so many bytes describes it, on a storage, whose reference it takes over."""
    e = code.internal("buffer_new", POINTER, POINTER, WORD, POINTER)
    kind = objects()["Buffer"]
    template, size, storage = e.parameters
    buffer = e.call("malloc", size)
    e.call("memcpy", buffer, template, size)
    dims = e.b.gep(buffer, [WORD(c.sizeof(kind))], source_etype=BYTE)
    e.store(kind, buffer, "dims", dims)
    e.store(kind, buffer, "unpadded_dims", dims)
    rank = e.load(kind, buffer, "num_dims")
    e.store(kind, buffer, "minor_to_major", e.word_at(dims, rank))
    data = e.load(objects()["Storage"], storage, "data")
    e.store(kind, buffer, "storage", storage)
    e.store(kind, buffer, "buffer_pointer", data)
    e.store(kind, buffer, "device_memory_ptr", data)
    e.b.ret(buffer)


def _make_functions(code: Code) -> None:
    for name in getters():
        _getter(code, name)
    for name, make in FUNCTIONS.items():
        make(code, *code.api(name))


def _nothing(code: Code, e: _Emitter, kind: type[c.Structure], args: Value) -> None:
    del code, kind, args
    e.b.ret(NULL)


def _is_ready(code: Code, e: _Emitter, kind: type[c.Structure], args: Value) -> None:
    del code
    e.store(kind, args, "is_ready", BYTE(1))
    e.b.ret(NULL)


def _on_ready(code: Code, e: _Emitter, kind: type[c.Structure], args: Value) -> None:
    del code
    callback = ir.FunctionType(VOID, [POINTER, POINTER])
    user = e.pointer(kind, args, "user_arg")
    _call_pointer(e, callback, e.pointer(kind, args, "callback"), [NULL, user])
    e.b.ret(NULL)


def _ready_event(code: Code, e: _Emitter, kind: type[c.Structure], args: Value) -> None:
    e.store(kind, args, "event", code.module.get_global("ready"))
    e.b.ret(NULL)


def _free_error(code: Code, e: _Emitter, kind: type[c.Structure], args: Value) -> None:
    del code
    e.call("free", e.pointer(kind, args, "error"))
    e.b.ret(NULL)


def _buffer_delete(code: Code, e: _Emitter, kind: type[c.Structure], args: Value) -> None:
    del code
    _delete(e, e.pointer(kind, args, "buffer"))
    e.b.ret(NULL)


def _delete(e: _Emitter, buffer: Value) -> None:
    """Gives up the buffer's reference to its storage, unless it is gone."""
    object_ = objects()["Buffer"]
    with e.b.if_then(e.b.icmp_unsigned("==", e.load(object_, buffer, "is_deleted"), BYTE(0))):
        e.store(object_, buffer, "is_deleted", BYTE(1))
        e.call("release", e.pointer(object_, buffer, "storage"))


def _buffer_destroy(code: Code, e: _Emitter, kind: type[c.Structure], args: Value) -> None:
    del code
    buffer = e.pointer(kind, args, "buffer")
    with e.b.if_then(e.b.icmp_unsigned("!=", buffer, NULL)):
        _delete(e, buffer)
        e.call("free", buffer)
    e.b.ret(NULL)


def _hold(code: Code, e: _Emitter, kind: type[c.Structure], args: Value) -> None:
    del code
    storage = e.pointer(objects()["Buffer"], e.pointer(kind, args, "buffer"), "storage")
    e.atomic_add(objects()["Storage"], storage, "references", 1)
    e.b.ret(NULL)


def _let_go(code: Code, e: _Emitter, kind: type[c.Structure], args: Value) -> None:
    del code
    e.call("release", e.pointer(objects()["Buffer"], e.pointer(kind, args, "buffer"), "storage"))
    e.b.ret(NULL)


def _get_executable(code: Code, e: _Emitter, kind: type[c.Structure], args: Value) -> None:
    del code
    loaded = e.pointer(kind, args, "loaded_executable")
    e.atomic_add(objects()["Executable"], loaded, "references", 1)
    e.store(kind, args, "executable", loaded)
    e.b.ret(NULL)


def _drop_executable(code: Code, e: _Emitter, kind: type[c.Structure], args: Value) -> None:
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


def _delete_executable(code: Code, e: _Emitter, kind: type[c.Structure], args: Value) -> None:
    del code
    executable = e.pointer(kind, args, "executable")
    e.store(objects()["Executable"], executable, "is_deleted", BYTE(1))
    e.b.ret(NULL)


def _execute(code: Code, e: _Emitter, kind: type[c.Structure], args: Value) -> None:
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
        _delete(e, e.item_pointer(given, i))
    produced = e.item_pointer(e.pointer(kind, args, "output_lists"), WORD(0))
    _make_buffers(e, executable, results, storages, produced)
    events = e.pointer(kind, args, "device_complete_events")
    with b.if_then(b.icmp_unsigned("!=", events, NULL)):
        b.store(code.module.get_global("ready"), events)
    b.ret(NULL)


def _make_buffers(
    e: _Emitter, executable: Value, results: Value, storages: Value, produced: Value
) -> None:
    """Stores a buffer on each storage of a run's results to `produced`."""
    structure = objects()["Executable"]
    templates = e.pointer(structure, executable, "templates")
    sizes = e.pointer(structure, executable, "template_sizes")
    with e.loop(results) as j:
        template, size = e.item_pointer(templates, j), e.item(sizes, j)
        made = e.call("buffer_new", template, size, e.item_pointer(storages, j))
        e.b.store(made, e.word_at(produced, j))


def _from_host(code: Code, e: _Emitter, kind: type[c.Structure], args: Value) -> None:
    """Copies an array in C order to a buffer in C order."""
    b = e.b
    object_, device_ = objects()["Buffer"], objects()["Device"]
    layout_ = structs()["MemoryLayout"]

    def slow() -> Value:
        return e.call("Client_BufferFromHostBuffer_slow", args)

    layout = e.pointer(kind, args, "device_layout")
    e.return_if(b.icmp_unsigned("!=", layout, NULL), slow)
    chosen, memory_ = e.variable(), objects()["Memory"]
    b.store(e.pointer(kind, args, "device"), chosen)
    memory = e.pointer(kind, args, "memory")
    with b.if_then(b.icmp_unsigned("!=", memory, NULL)):
        b.store(e.item_pointer(e.pointer(memory_, memory, "devices"), WORD(0)), chosen)
    device = b.load(chosen, typ=POINTER)
    e.return_if(b.icmp_unsigned("==", device, NULL), slow)
    type_ = e.load(kind, args, "type")
    known = b.icmp_unsigned("<", type_, INT(len(ELEMENT_BYTES)))
    e.return_if(b.not_(known), slow)
    each = e.item(code.module.get_global("element_bytes"), b.zext(type_, WORD))
    e.return_if(b.icmp_unsigned("==", each, WORD(0)), slow)
    rank = e.load(kind, args, "num_dims")
    dims = e.pointer(kind, args, "dims")
    strides = e.pointer(kind, args, "byte_strides")
    has_strides = b.icmp_unsigned("!=", e.load(kind, args, "num_byte_strides"), WORD(0))
    bytes_ = e.variable()
    b.store(each, bytes_)
    with e.loop(rank) as i:
        dim = b.sub(b.sub(rank, WORD(1)), i)
        size, before = e.item(dims, dim), b.load(bytes_, typ=WORD)
        with b.if_then(b.and_(has_strides, b.icmp_unsigned("!=", size, WORD(1)))):
            e.return_if(b.icmp_unsigned("!=", e.item(strides, dim), before), slow)
        b.store(b.mul(before, size), bytes_)
    total = b.load(bytes_, typ=WORD)
    storage = e.call("storage_new", total)
    e.return_if(b.icmp_unsigned("==", storage, NULL), slow)
    data = e.pointer(objects()["Storage"], storage, "data")
    e.call("memcpy", data, e.pointer(kind, args, "data"), total)
    # A template with the dimensions behind it.
    size = b.add(WORD(c.sizeof(object_)), b.mul(rank, WORD(16)))
    template = b.alloca(BYTE, size=size)
    template = _untyped(template)
    e.call("memset", template, INT(0), size)
    e.store(object_, template, "on_device_size_in_bytes", total)
    e.store(object_, template, "type", type_)
    e.store(object_, template, "is_on_cpu", BYTE(1))
    e.store(object_, template, "num_dims", rank)
    e.store(object_, template, "device", device)
    default = e.load(device_, device, "memory")
    has_memory = b.icmp_unsigned("!=", memory, NULL)
    e.store(object_, template, "memory", b.select(has_memory, b.ptrtoint(memory, WORD), default))
    e.store(object_, template, "layout_size", WORD(c.sizeof(layout_)))
    tiled = layout_.type.offset - layout_.tiled_size.offset
    e.store(object_, template, "tiled_size", WORD(tiled))
    e.store(object_, template, "minor_to_major_size", rank)
    tail = b.gep(template, [WORD(c.sizeof(object_))], source_etype=BYTE)
    with e.loop(rank) as i:
        b.store(e.item(dims, i), e.word_at(tail, i))
        b.store(b.sub(b.sub(rank, WORD(1)), i), e.word_at(tail, b.add(rank, i)))
    e.store(kind, args, "buffer", e.call("buffer_new", template, size, storage))
    e.store(kind, args, "done_with_host_buffer", code.module.get_global("ready"))
    b.ret(NULL)


def _to_host(code: Code, e: _Emitter, kind: type[c.Structure], args: Value) -> None:
    """Copies a buffer as it lies in memory, where the host wants that order or says none and it is C's."""
    b = e.b
    object_, layout_ = objects()["Buffer"], structs()["MemoryLayout"]

    def slow() -> Value:
        return e.call("Buffer_ToHostBuffer_slow", args)

    buffer = e.pointer(kind, args, "src")
    layout = e.pointer(kind, args, "host_layout")
    target = e.pointer(kind, args, "dst")
    size = e.load(object_, buffer, "on_device_size_in_bytes")
    with b.if_then(b.icmp_unsigned("==", target, NULL)):
        e.store(kind, args, "dst_size", size)
        b.ret(NULL)
    gone = b.icmp_unsigned("!=", e.load(object_, buffer, "is_deleted"), BYTE(0))
    short = b.icmp_unsigned("<", e.load(kind, args, "dst_size"), size)
    e.return_if(b.or_(gone, short), slow)
    rank = e.load(object_, buffer, "num_dims")
    own = e.pointer(object_, buffer, "minor_to_major")
    with b.if_else(b.icmp_unsigned("==", layout, NULL)) as (free, ordered):
        with free, e.loop(rank) as i:
            c_order = b.sub(b.sub(rank, WORD(1)), i)
            e.return_if(b.icmp_unsigned("!=", e.item(own, i), c_order), slow)
        with ordered:
            strided = b.icmp_unsigned("!=", e.load(layout_, layout, "type"), INT(0))
            tiled = b.icmp_unsigned("!=", e.load(layout_, layout, "num_tiles"), WORD(0))
            e.return_if(b.or_(strided, tiled), slow)
            asked = e.pointer(layout_, layout, "minor_to_major")
            with e.loop(rank) as i:
                other = b.icmp_unsigned("!=", e.item(own, i), e.item(asked, i))
                e.return_if(other, slow)
    e.call("memcpy", target, e.pointer(object_, buffer, "buffer_pointer"), size)
    e.store(kind, args, "event", code.module.get_global("ready"))
    b.ret(NULL)


def _layout_of_buffer(code: Code, e: _Emitter, kind: type[c.Structure], args: Value) -> None:
    """A layout is the count of its bytes and its text, `{1,0}`."""
    del code
    b, object_ = e.b, objects()["Buffer"]
    buffer = e.pointer(kind, args, "buffer")
    rank = e.load(object_, buffer, "num_dims")
    large = b.icmp_unsigned(">", rank, WORD(len("0123456789")))
    e.return_if(large, lambda: e.call("Layouts_Buffer_MemoryLayout_slow", args))
    order = e.pointer(object_, buffer, "minor_to_major")
    # Two bytes a dimension: a comma or the brace in front of it, and its digit; a scalar has but the brace.
    scalar = b.icmp_unsigned("==", rank, WORD(0))
    last = b.select(scalar, WORD(1), b.shl(rank, WORD(1)))
    layout = e.call("malloc", b.add(last, WORD(c.sizeof(c.c_size_t) + 1)))
    b.store(b.add(last, WORD(1)), layout)
    text = e.word_at(layout, WORD(1))
    b.store(BYTE(ord("{")), text)
    with e.loop(rank) as i:
        at = b.gep(text, [b.shl(i, WORD(1))], source_etype=BYTE)
        first = b.icmp_unsigned("==", i, WORD(0))
        b.store(b.select(first, BYTE(ord("{")), BYTE(ord(","))), at)
        digit = b.add(b.trunc(e.item(order, i), BYTE), BYTE(ord("0")))
        b.store(digit, b.gep(at, [WORD(1)], source_etype=BYTE))
    b.store(BYTE(ord("}")), b.gep(text, [last], source_etype=BYTE))
    e.store(kind, args, "layout", layout)
    b.ret(NULL)


def _serialize_layout(code: Code, e: _Emitter, kind: type[c.Structure], args: Value) -> None:
    layout = e.pointer(kind, args, "layout")
    e.store(kind, args, "serialized_bytes", e.word_at(layout, WORD(1)))
    e.store(kind, args, "serialized_bytes_size", e.item(layout, WORD(0)))
    e.store(kind, args, "serialized_layout", layout)
    e.store(kind, args, "serialized_layout_deleter", code.callee("Plugin_Initialize"))
    e.b.ret(NULL)


def _free_layout(code: Code, e: _Emitter, kind: type[c.Structure], args: Value) -> None:
    del code
    e.call("free", e.pointer(kind, args, "layout"))
    e.b.ret(NULL)


FUNCTIONS: dict[str, Callable[[Code, _Emitter, type[c.Structure], Value], None]] = {
    "Error_Destroy": _free_error,
    "Plugin_Initialize": _nothing,
    "Event_Destroy": _nothing,
    "Event_IsReady": _is_ready,
    "Event_Error": _nothing,
    "Event_Await": _nothing,
    "Event_OnReady": _on_ready,
    "Error_ForEachPayload": _nothing,
    "Client_Destroy": _nothing,
    "Client_UpdateGlobalProcessInfo": _nothing,
    "TopologyDescription_Destroy": _nothing,
    "Buffer_ReadyEvent": _ready_event,
    "Buffer_Delete": _buffer_delete,
    "Buffer_Destroy": _buffer_destroy,
    "Buffer_IncreaseExternalReferenceCount": _hold,
    "Buffer_DecreaseExternalReferenceCount": _let_go,
    "LoadedExecutable_GetExecutable": _get_executable,
    "LoadedExecutable_Destroy": _drop_executable,
    "Executable_Destroy": _drop_executable,
    "LoadedExecutable_Delete": _delete_executable,
    "LoadedExecutable_Execute": _execute,
    "Client_BufferFromHostBuffer": _from_host,
    "Buffer_ToHostBuffer": _to_host,
    "Layouts_Buffer_MemoryLayout": _layout_of_buffer,
    "Layouts_MemoryLayout_Serialize": _serialize_layout,
    "Layouts_MemoryLayout_Destroy": _free_layout,
}


@cache
def text() -> tuple[str, list[str]]:
    """The code as LLVM assembly, and the names of its functions."""
    code = Code()
    return str(code.module), code.functions


def load(externals: dict[str, int]) -> Library:
    """The code in this process; `externals`: the addresses of `execute_slow` and `execute_failed`."""
    assembly, functions = text()
    process = c.CDLL(None)
    for name in ("malloc", "free", "memcpy", "memset"):
        externals[name] = c.cast(getattr(process, name), c.c_void_p).value or 0
    externals.update(pool_functions())
    library = Library(
        [object_code(assembly)], [*functions, "ready", "garbage", "in_use", "peak"], externals
    )
    library.keep()
    return library
