"""What handlers of `jax.ffi` may call back: a table of functions, and the context of a call."""

# The structs of ctypes have no types that pyright knows.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false, reportMissingTypeArgument=false

from __future__ import annotations

import ctypes as c
import itertools
from collections.abc import Callable
from functools import cache
from typing import Any

MAJOR, MINOR = 0, 3
"""Of the interface."""

_INVALID_ARGUMENT, _NOT_FOUND, _UNIMPLEMENTED = 3, 5, 12
_CODES = (
    *("OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND"),
    *(
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
    ),
    *("OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"),
)


def struct(name: str, /, **fields: Any) -> type[c.Structure]:
    """A struct with these fields behind its size and its list of extensions."""
    head = [("struct_size", c.c_size_t), ("extension_start", c.c_void_p)]
    return type(name, (c.Structure,), {"_fields_": [*head, *fields.items()]})


class Span(c.Structure):
    """Bytes of somebody's memory."""

    _fields_ = (("data", c.c_void_p), ("size", c.c_size_t))


def span(data: bytes, kept: list[Any]) -> Span:
    """A copy of some bytes, which `kept` holds."""
    buffer = c.create_string_buffer(data, len(data) + 1)
    kept.append(buffer)
    return Span(c.addressof(buffer), len(data))


_numbers = itertools.count(1)
_contexts: dict[int, Context] = {}
_errors: dict[int, tuple[int, Any]] = {}
"""Code and text, by handle."""
_types: dict[str, int] = {}
_memory: dict[int, Any] = {}
"""Scratch of handlers, by address."""


class Context:
    """What a handler reaches through its call frame; open while it runs."""

    def __init__(self, states: dict[int, int] | None = None, device: int = 0) -> None:
        self.handle = next(_numbers)
        self.states = {} if states is None else states
        """Addresses that handlers have stored, by stage."""
        self.device = device
        self.stage = 0

    def of_run(self, device: int) -> Context:
        """The context of one run, which sees what was stored before."""
        return Context(dict(self.states), device)

    def __enter__(self) -> None:
        _contexts[self.handle] = self

    def __exit__(self, *_: object) -> None:
        del _contexts[self.handle]


def _new_error(message: str | bytes, code: int) -> int:
    data = message.encode() if isinstance(message, str) else message
    handle = next(_numbers)
    _errors[handle] = code, c.create_string_buffer(data)
    return handle


def message_of(handle: int) -> str:
    """Code and text of an error, which ends with this."""
    code, text = _errors.pop(handle, (2, c.create_string_buffer(b"an error without a message")))
    name = _CODES[code] if 0 <= code < len(_CODES) else str(code)
    return f"{name}: {text.value.decode('utf-8', 'replace')}"


def _error_create(args: Any) -> int:
    return _new_error(c.string_at(args.message) if args.message else b"", args.errc)


def _error_message(args: Any) -> None:
    args.message = c.addressof(_errors[args.error][1])


def _error_destroy(args: Any) -> None:
    _errors.pop(args.error, None)


def _type_register(args: Any) -> None:
    register_type(c.string_at(args.name.data, args.name.size).decode(), args.type_id)


def register_type(name: str, address: int) -> None:
    """Stores the number of a type at an address; a type that has one keeps it."""
    number = c.c_int64.from_address(address)
    number.value = _types.setdefault(name, number.value or len(_types) + 1)


def _context_get(args: Any) -> int:
    del args
    return _new_error("the context of this run has no such data", _NOT_FOUND)


def _state_set(args: Any) -> None:
    _contexts[args.ctx].states[args.stage] = args.state


def _state_get(args: Any) -> int | None:
    found = _contexts[args.ctx].states.get(args.stage)
    if found is None:
        return _new_error("no state was set at this stage", _NOT_FOUND)
    args.state = found
    return None


def _allocate(args: Any) -> None:
    alignment = max(args.alignment, 1)
    memory = c.create_string_buffer(args.size + alignment)
    start = c.addressof(memory)
    args.data = start + -start % alignment
    _memory[args.data] = memory


def _free(args: Any) -> None:
    _memory.pop(args.data, None)


def _schedule(args: Any) -> None:
    """Runs a task at once: who waits for it never waits in vain."""
    c.CFUNCTYPE(None, c.c_void_p)(args.task)(args.data)


def _thread_count(args: Any) -> None:
    c.c_int64.from_address(args.num_threads).value = 1


def _run_id(args: Any) -> None:
    args.run_id = args.ctx


def _device(args: Any) -> None:
    args.device_ordinal = _contexts[args.ctx].device


def _not_here(args: Any) -> int:
    del args
    return _new_error("not on this platform", _UNIMPLEMENTED)


_P, _Z, _I, _L = c.c_void_p, c.c_size_t, c.c_int, c.c_int64

_FUNCTIONS: tuple[tuple[type[c.Structure], Callable[[Any], int | None]], ...] = (
    (struct("Error_Create", message=_P, errc=_I), _error_create),
    (struct("Error_GetMessage", error=_P, message=_P), _error_message),
    (struct("Error_Destroy", error=_P), _error_destroy),
    (struct("Handler_Register"), _not_here),
    (struct("Stream_Get", ctx=_P, stream=_P), _not_here),
    (struct("Type_Register", name=Span, type_id=_P, type_info=_P), _type_register),
    (struct("ExecutionContext_Get", ctx=_P, type_id=_P, data=_P), _context_get),
    (struct("State_Set", ctx=_P, stage=_I, type_id=_P, state=_P), _state_set),
    (struct("State_Get", ctx=_P, stage=_I, type_id=_P, state=_P), _state_get),
    (struct("DeviceMemory_Allocate", ctx=_P, size=_Z, alignment=_Z, data=_P), _allocate),
    (struct("DeviceMemory_Free", ctx=_P, size=_Z, data=_P), _free),
    (struct("ThreadPool_Schedule", ctx=_P, task=_P, data=_P), _schedule),
    (struct("ThreadPool_NumThreads", ctx=_P, num_threads=_P), _thread_count),
    (struct("Future_Create", future=_P), _not_here),
    (struct("Future_SetAvailable", future=_P), _not_here),
    (struct("Future_SetError", future=_P, error=_P), _not_here),
    (struct("RunId_Get", ctx=_P, run_id=_L), _run_id),
    (struct("DeviceOrdinal_Get", ctx=_P, device_ordinal=c.c_int32), _device),
)
"""The functions of the table in their order, with the structs of their arguments."""

_Version = struct("Api_Version", major=_I, minor=_I)
_Table = struct("Api", version=_Version, internal=_P, functions=_P * len(_FUNCTIONS))


def _callable(kind: type[c.Structure], function: Callable[[Any], int | None]) -> Any:
    def call(at: int) -> int | None:
        try:
            return function(kind.from_address(at))
        except Exception as problem:  # noqa: BLE001 - nothing may pass through C
            return _new_error(f"{type(problem).__name__}: {problem}", _INVALID_ARGUMENT)

    return c.CFUNCTYPE(c.c_void_p, c.c_void_p)(call)


@cache
def api() -> Any:
    """The table, which lives as long as the process."""
    callables = [_callable(*row) for row in _FUNCTIONS]
    addresses = [c.cast(each, c.c_void_p).value for each in callables]
    made = _Table(
        struct_size=c.sizeof(_Table),
        version=_Version(struct_size=c.sizeof(_Version), major=MAJOR, minor=MINOR),
        functions=(_P * len(addresses))(*addresses),
    )
    made.kept = callables
    return made
