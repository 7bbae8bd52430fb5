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
from collections.abc import Callable
from functools import cache
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]

from mlirhlo.integrations.jax.pjrt import buffers, execution
from mlirhlo.integrations.jax.pjrt.buffers import ELEMENT_BYTES
from mlirhlo.integrations.jax.pjrt.emitter import (
    BYTE,
    INT,
    NULL,
    POINTER,
    VOID,
    WORD,
    Emitter,
    Value,
    call_pointer,
    untyped,
)
from mlirhlo.integrations.jax.pjrt.interface import all_arguments, arguments, structs
from mlirhlo.integrations.jax.pjrt.objects import objects
from mlirhlo.runtime import device_threads
from mlirhlo.runtime.cache import object_code
from mlirhlo.runtime.calls import pool_functions
from mlirhlo.runtime.jit import Library

_HANDLES = {
    "LoadedExecutable": "Executable",
    "Executable": "Executable",
    **{name: name for name in objects()},
}
"""The object that the functions of a prefix take."""

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
    "run_devices": (INT, [POINTER, WORD, POINTER, POINTER, POINTER]),
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
            untyped(variable)
        sizes = ir.ArrayType(WORD, len(ELEMENT_BYTES))
        table = ir.GlobalVariable(self.module, sizes, "element_bytes")
        table.initializer, table.global_constant = sizes(ELEMENT_BYTES), True
        untyped(table)
        for make in (buffers.release, buffers.storage_new, buffers.buffer_new, _make_functions):
            make(self)

    def callee(self, name: str) -> Value:
        """A function by name."""
        return self.module.get_global(name)

    def internal(self, name: str, result: Any, *parameters: Any) -> Emitter:
        """Begins a function that Python and this code call."""
        self.functions.append(name)
        return Emitter(self, name, result, *parameters)

    def api(self, name: str) -> tuple[Emitter, type[c.Structure], Value]:
        """Begins a function of the interface: its emitter, the struct of its arguments, and their address."""
        self.functions.append(name)
        emitter = Emitter(self, name, POINTER, POINTER)
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


def _make_functions(code: Code) -> None:
    for name in getters():
        _getter(code, name)
    for name, make in FUNCTIONS.items():
        make(code, *code.api(name))


def _nothing(code: Code, e: Emitter, kind: type[c.Structure], args: Value) -> None:
    del code, kind, args
    e.b.ret(NULL)


def _is_ready(code: Code, e: Emitter, kind: type[c.Structure], args: Value) -> None:
    del code
    e.store(kind, args, "is_ready", BYTE(1))
    e.b.ret(NULL)


def _on_ready(code: Code, e: Emitter, kind: type[c.Structure], args: Value) -> None:
    del code
    callback = ir.FunctionType(VOID, [POINTER, POINTER])
    user = e.pointer(kind, args, "user_arg")
    call_pointer(e, callback, e.pointer(kind, args, "callback"), [NULL, user])
    e.b.ret(NULL)


def _ready_event(code: Code, e: Emitter, kind: type[c.Structure], args: Value) -> None:
    e.store(kind, args, "event", code.module.get_global("ready"))
    e.b.ret(NULL)


def _free_error(code: Code, e: Emitter, kind: type[c.Structure], args: Value) -> None:
    del code
    e.call("free", e.pointer(kind, args, "error"))
    e.b.ret(NULL)


FUNCTIONS: dict[str, Callable[[Code, Emitter, type[c.Structure], Value], None]] = {
    "Error_Destroy": _free_error,
    "Plugin_Initialize": _nothing,
    "Client_UpdateGlobalProcessInfo": _nothing,
    "Event_Destroy": _nothing,
    "Event_IsReady": _is_ready,
    "Event_Error": _nothing,
    "Event_Await": _nothing,
    "Event_OnReady": _on_ready,
    "Error_ForEachPayload": _nothing,
    "Client_Destroy": _nothing,
    "TopologyDescription_Destroy": _nothing,
    "Buffer_ReadyEvent": _ready_event,
    "Buffer_Delete": buffers.buffer_delete,
    "Buffer_Destroy": buffers.buffer_destroy,
    "Buffer_IncreaseExternalReferenceCount": buffers.hold,
    "Buffer_DecreaseExternalReferenceCount": buffers.let_go,
    "LoadedExecutable_GetExecutable": execution.get_executable,
    "LoadedExecutable_Destroy": execution.drop_executable,
    "Executable_Destroy": execution.drop_executable,
    "LoadedExecutable_Delete": execution.delete_executable,
    "LoadedExecutable_Execute": execution.execute,
    "Client_BufferFromHostBuffer": buffers.from_host,
    "Buffer_ToHostBuffer": buffers.to_host,
    "Layouts_Buffer_MemoryLayout": buffers.layout_of_buffer,
    "Layouts_MemoryLayout_Serialize": buffers.serialize_layout,
    "Layouts_MemoryLayout_Destroy": buffers.free_layout,
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
    externals["run_devices"] = device_threads.run_function()
    library = Library(
        [object_code(assembly)], [*functions, "ready", "garbage", "in_use", "peak"], externals
    )
    library.keep()
    return library
