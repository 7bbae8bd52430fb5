"""The machine code with what Python needs of it: errors, buffers on memory, arrays on buffers."""

# JAX, llvmlite and the structs of ctypes have no types that pyright knows.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnknownLambdaType=false
# pyright: reportMissingTypeArgument=false, reportAttributeAccessIssue=false

from __future__ import annotations

import ctypes as c
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.integrations.jax.pjrt import code
from mlirhlo.integrations.jax.pjrt.interface import ELEMENT_TYPES, Code, all_arguments, structs
from mlirhlo.integrations.jax.pjrt.objects import objects
from mlirhlo.runtime.call_layout import STOPPED
from mlirhlo.runtime.generated.device_threads_ir import ENDED

Array = np.ndarray[Any, Any]

TOKEN_TYPE = "token"

_NUMBERS = {name: number for number, name in enumerate(ELEMENT_TYPES) if name is not None}

_PROCESS = c.CDLL(None)
_PROCESS.malloc.restype, _PROCESS.malloc.argtypes = c.c_void_p, [c.c_size_t]


class PjrtError(Exception):
    """An error with a code of the interface's."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code


def unimplemented(what: str) -> PjrtError:
    """What this platform does not do."""
    return PjrtError(Code.UNIMPLEMENTED, f"mlirhlo: {what}")


def allocate(bytes_: int) -> int:
    """Memory of the system's, which `free` takes."""
    return int(_PROCESS.malloc(bytes_))


def error_handle(problem: BaseException) -> int:
    """An error of the interface for an exception; JAX raises it with the same text, and gives the memory back."""
    if isinstance(problem, PjrtError):
        number = problem.code
    elif isinstance(problem, MemoryError):
        number = Code.RESOURCE_EXHAUSTED
    elif isinstance(problem, KeyboardInterrupt):
        number = Code.CANCELLED
    elif isinstance(problem, HloError):
        number = Code.INVALID_ARGUMENT
    else:
        number = Code.INTERNAL
    name = "" if isinstance(problem, (PjrtError, HloError)) else f"{type(problem).__name__}: "
    text = f"{name}{problem}".encode("utf-8", "replace")
    kind = objects()["Error"]
    made = allocate(c.sizeof(kind) + len(text) + 1)
    error = kind.from_address(made)
    error.message, error.message_size, error.code = made + c.sizeof(kind), len(text), number
    c.memmove(error.message, text + b"\0", len(text) + 1)
    return made


Function = Callable[[Any], "int | None"]


def callback(kind: type[c.Structure], function: Callable[[Any], None]) -> Any:
    """A function that takes this struct of arguments and runs Python; what it raises becomes the call's error."""
    pointer = c.POINTER(kind)

    def call(args: Any) -> int | None:
        try:
            function(args.contents)
        except BaseException as problem:  # noqa: BLE001 - nothing may pass through C
            return error_handle(problem)
        return None

    return c.CFUNCTYPE(c.c_void_p, pointer)(call)


class Machine:
    """The functions of `code`, loaded once."""

    def __init__(self) -> None:
        self.slow: dict[str, Callable[[Any], None]] = {}
        """The other half of the functions that are partly machine code (`code.PARTLY`)."""
        self._callbacks = {
            f"{name}_slow": callback(all_arguments()[name], self._other_half(name))
            for name in code.PARTLY
        }
        self._callbacks["execute_failed"] = c.CFUNCTYPE(c.c_void_p, c.c_void_p, c.c_int)(_failed)
        externals = {
            name: c.cast(function, c.c_void_p).value or 0
            for name, function in self._callbacks.items()
        }
        self.library = code.load(externals)
        self._storage_new = self._function("storage_new", c.c_void_p, c.c_size_t)
        self._buffer_new = self._function(
            "buffer_new", c.c_void_p, c.c_char_p, c.c_size_t, c.c_void_p
        )
        self.release = self._function("release", None, c.c_void_p)
        self.delete = self._function("Buffer_Delete", c.c_void_p, c.c_void_p)
        self.ready = self.library.address("ready")

    def _function(self, name: str, result: Any, *parameters: Any) -> Any:
        return c.CFUNCTYPE(result, *parameters)(self.library.address(name))

    def _other_half(self, name: str) -> Callable[[Any], None]:
        def call(args: Any) -> None:
            self.slow[name](args)

        return call

    def word(self, name: str) -> int:
        """A variable of the code."""
        return c.c_int64.from_address(self.library.address(name)).value

    def storage(self, bytes_: int) -> int:
        """Memory with one reference. Raises MemoryError."""
        made = self._storage_new(bytes_)
        if made is None:
            raise MemoryError(f"{bytes_} bytes")
        return int(made)

    def view(self, data: int, deleter: int, argument: int) -> int:
        """A storage of memory that somebody else frees: `deleter(data, argument)` is called with the last reference."""
        kind = objects()["Storage"]
        made = allocate(c.sizeof(kind))
        storage = kind.from_address(made)
        storage.references, storage.data, storage.bytes = 1, data, 0
        storage.deleter, storage.deleter_arg = deleter, argument
        return made

    def buffer(self, template: bytes, storage: int) -> int:
        """A buffer on a storage, whose reference it takes over."""
        return int(self._buffer_new(template, len(template), storage))

    def filled(self, template: bytes, values: Array) -> int:
        """A buffer with the values of an array, which are copied in C order."""
        values = np.asarray(values)
        storage = self.storage(values.nbytes)
        target = _array_at(data_of(storage), values.shape, values.dtype)
        np.copyto(target, values)
        return self.buffer(template, storage)


@cache
def machine() -> Machine:
    """The one of this process."""
    return Machine()


def _failed(args: int, status: int) -> int:
    from mlirhlo.integrations.jax.pjrt.programs import program_at

    if status == STOPPED:
        return error_handle(KeyboardInterrupt("interrupted"))
    if status == ENDED:
        call = all_arguments()["LoadedExecutable_Execute"].from_address(args)
        worlds = program_at(call.executable).worlds
        problem = None if worlds is None else worlds.problem
        return error_handle(problem or KeyboardInterrupt("interrupted"))
    return error_handle(MemoryError())


def data_of(storage: int) -> int:
    """Address of a storage's memory."""
    return int(objects()["Storage"].from_address(storage).data or 0)


def template(
    element_type: str,
    dims: Sequence[int],
    device: int,
    memory: int,
    minor_to_major: Sequence[int] | None = None,
) -> bytes:
    """The struct of a buffer without its storage, as bytes: `buffer_new` copies it.

    `minor_to_major`: of its layout, that of C's order where it is None.
    """
    kind, layout = objects()["Buffer"], structs()["MemoryLayout"]
    order = list(range(len(dims)))[::-1] if minor_to_major is None else list(minor_to_major)
    made = kind(
        on_device_size_in_bytes=bytes_of(element_type, dims),
        type=_NUMBERS[element_type],
        is_on_cpu=True,
        num_dims=len(dims),
        device=device,
        memory=memory,
        layout_size=c.sizeof(layout),
        tiled_size=layout.type.offset - layout.tiled_size.offset,
        minor_to_major_size=len(order),
    )
    numbers = [*dims, *order]
    return bytes(made) + bytes((c.c_int64 * len(numbers))(*numbers))


def bytes_of(element_type: str, dims: Sequence[int]) -> int:
    """Bytes of an array, of which each element takes at least one, as in numpy; a token has none."""
    if element_type == TOKEN_TYPE:
        return 0
    count = 1
    for dim in dims:
        count *= dim
    return count * dtype_of(element_type).itemsize


def dtype_of(element_type: str) -> np.dtype[Any]:
    """NumPy's type. Raises `PjrtError` for what has no arrays."""
    if element_type not in PRIMITIVE_TYPES:
        raise unimplemented(f"there are no arrays of {element_type}")
    return np.dtype(PRIMITIVE_TYPES[element_type].dtype)


def type_named(number: int) -> str:
    """HLO's name of an element type by the interface's number. Raises `PjrtError`."""
    name = ELEMENT_TYPES[number] if 0 <= number < len(ELEMENT_TYPES) else None
    if name is None:
        raise unimplemented(f"there are no arrays of element type {number}")
    return name


def type_number(element_type: str) -> int:
    """The interface's number of an element type."""
    return _NUMBERS[element_type]


def numbers_at(address: int | None, count: int, kind: Any = c.c_int64) -> list[int]:
    """An array of the caller's."""
    return [] if not address else list((kind * count).from_address(address))


def text_at(address: int | None, size: int) -> bytes:
    """Bytes of the caller's."""
    return c.string_at(address, size) if address else b""


def _array_at(address: int, dims: Sequence[int], dtype: np.dtype[Any]) -> Array:
    count = int(np.prod(dims, dtype=np.int64)) * dtype.itemsize
    if count == 0:
        return np.empty(dims, dtype)
    memory: Any = (c.c_uint8 * count).from_address(address)
    return np.ndarray(tuple(dims), dtype, memory)


def array_on(buffer: int) -> Array:
    """An array in logical order on a buffer's memory, valid as long as the buffer. Raises `PjrtError` for one
    that was deleted."""
    b = objects()["Buffer"].from_address(buffer)
    if b.is_deleted:
        raise PjrtError(Code.INVALID_ARGUMENT, "Buffer has been deleted or donated.")
    dims = numbers_at(b.dims, b.num_dims)
    order = numbers_at(b.minor_to_major, b.num_dims)[::-1]
    physical = _array_at(
        b.buffer_pointer or 0, [dims[d] for d in order], dtype_of(type_named(b.type))
    )
    return physical.transpose(np.argsort(order)) if dims else physical
