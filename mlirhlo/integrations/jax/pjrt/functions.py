"""The functions of the interface that run Python, and the interface as a whole."""

# JAX, llvmlite and the structs of ctypes have no types that pyright knows.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnknownLambdaType=false
# pyright: reportMissingTypeArgument=false, reportAttributeAccessIssue=false

from __future__ import annotations

import ctypes as c
import math
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any

import numpy as np

from mlirhlo.integrations.jax.pjrt import callbacks, code, compiling, layouts, running
from mlirhlo.integrations.jax.pjrt.client import Client
from mlirhlo.integrations.jax.pjrt.interface import (
    EXTENSIONS,
    VERSION,
    Code,
    api_struct,
    arguments,
    extension_arguments,
    extension_struct,
    structs,
)
from mlirhlo.integrations.jax.pjrt.machine import (
    PjrtError,
    array_on,
    callback,
    dtype_of,
    machine,
    numbers_at,
    template,
    text_at,
    type_named,
    unimplemented,
)
from mlirhlo.integrations.jax.pjrt.objects import address, objects
from mlirhlo.integrations.jax.pjrt.programs import program_at

DEVICES_OPTION, INTERPRETER_OPTION = "num_devices", "interpreter"
"""The client's options: how many devices there are, and whether the interpreter runs programs."""

_clients: dict[int, Client] = {}


def _client_create(args: Any) -> None:
    options = _named_values(args.create_options, args.num_options)
    count = options.get(DEVICES_OPTION, 1)
    if not isinstance(count, int) or count < 1:
        raise PjrtError(Code.INVALID_ARGUMENT, f"{DEVICES_OPTION}: expects a count, got {count!r}")
    client = Client(count, interpreted=bool(options.get(INTERPRETER_OPTION)))
    args.client = address(client.handle)
    _clients[args.client] = client


def _named_values(start: int | None, count: int) -> dict[str, object]:
    kind = structs()["NamedValue"]
    found: dict[str, object] = {}
    for number in range(count):
        value = kind.from_address((start or 0) + number * c.sizeof(kind))
        name = text_at(value.name, value.name_size).decode()
        if value.type == 0:
            found[name] = text_at(value.value, value.value_size).decode()
        elif value.type == 2:
            found[name] = numbers_at(value.value, value.value_size)
        elif value.type == _FLOAT:
            found[name] = float(np.int32(value.value & 0xFFFFFFFF).view(np.float32))
        else:
            found[name] = value.value if value.type == 1 else bool(value.value & 1)
    return found


def _client(args: Any) -> Client:
    return _clients[args.client]


def _lookup_device(args: Any) -> None:
    args.device = _device_numbered(args, args.id)


def _lookup_addressable(args: Any) -> None:
    args.addressable_device = _device_numbered(args, args.local_hardware_id)


def _device_numbered(args: Any, number: int) -> int:
    client = _client(args)
    if not 0 <= number < client.count:
        raise PjrtError(Code.INVALID_ARGUMENT, f"no device {number}: there are {client.count}")
    return c.addressof(client.devices[number])


def _default_assignment(args: Any) -> None:
    count = args.num_replicas * args.num_partitions
    if count > args.default_assignment_size or count > _client(args).count:
        raise PjrtError(
            Code.INVALID_ARGUMENT, f"{count} devices asked for, there are {_client(args).count}"
        )
    for number in range(count):
        c.c_int.from_address(args.default_assignment + 4 * number).value = number


def _compile(args: Any) -> None:
    program = structs()["Program"].from_address(args.program)
    options = text_at(args.compile_options, args.compile_options_size)
    args.executable = compiling.compile_program(_client(args), program, options)


def _deserialize(args: Any) -> None:
    data = text_at(args.serialized_executable, args.serialized_executable_size)
    args.loaded_executable = compiling.restore(_client(args), data)


def _optimized_program(args: Any) -> None:
    """The module as it runs: bytes where the caller brought memory, else how many there are."""
    program = structs()["Program"].from_address(args.program)
    data = compiling.module_of(program_at(args.executable))
    form = b"hlo_with_config"
    program.format_size, program.code_size = len(form), len(data)
    program.format = c.addressof(_kept(form))
    if program.code:
        c.memmove(program.code, data, len(data))


@lru_cache(maxsize=1024)
def _kept(text: bytes) -> Any:
    return c.create_string_buffer(text)


def _cost_analysis(args: Any) -> None:
    """Costs as named numbers; computed when somebody asks."""
    program = program_at(args.executable)
    if "costs" not in program.kept:
        program.kept["costs"] = _named(program.costs)
    args.num_properties = len(program.costs)
    args.properties = c.addressof(program.kept["costs"])


def _named(values: Mapping[str, float]) -> Any:
    """An array of named floats."""
    kind = structs()["NamedValue"]
    made = (kind * max(len(values), 1))()
    for one, (name, value) in zip(made, values.items(), strict=False):
        one.struct_size, one.type, one.value_size = c.sizeof(kind), _FLOAT, 1
        one.name, one.name_size = c.addressof(_kept(name.encode())), len(name)
        one.value = int(np.float32(value).view(np.uint32))
    return made


_FLOAT = 3
"""The type of a named value that is an f32."""


class _Handed:
    """Bytes that the caller gives back through a function it gets with them."""

    def __init__(self) -> None:
        self._alive: dict[int, Any] = {}
        self.free = c.CFUNCTYPE(None, c.c_void_p)(self._free)

    def _free(self, handle: int) -> None:
        self._alive.pop(handle, None)

    def out(self, data: bytes) -> int:
        """The address of a copy, which is also its handle."""
        copy = c.create_string_buffer(data, len(data) + 1)
        self._alive[c.addressof(copy)] = copy
        return c.addressof(copy)


_handed = _Handed()


def _hand(data: Callable[[Any], bytes], handle: str, deleter: str) -> Callable[[Any], None]:
    """A function that hands out serialised bytes."""

    def function(args: Any) -> None:
        found = data(args)
        args.serialized_bytes, args.serialized_bytes_size = _handed.out(found), len(found)
        setattr(args, handle, args.serialized_bytes)
        setattr(args, deleter, c.cast(_handed.free, c.c_void_p).value)

    return function


def _device_attributes(args: Any) -> None:
    args.attributes, args.num_attributes = 0, 0
    args.device_attributes = 0
    args.attributes_deleter = c.cast(_handed.free, c.c_void_p).value


def _memory_stats(args: Any) -> None:
    for field, *_ in args._fields_:
        if field.endswith("_is_set"):
            setattr(args, field, field == "peak_bytes_in_use_is_set")
    args.bytes_in_use = machine().word("in_use")
    args.peak_bytes_in_use = machine().word("peak")


# ---------------------------------------------------------------- buffers


def _template_for(type_: str, dims: list[int], layout: int | None, where: tuple[int, int]) -> bytes:
    order = None
    if layout:
        found = structs()["MemoryLayout"].from_address(layout)
        if found.type == 0:
            if found.num_tiles:
                raise unimplemented("arrays in tiles")
            order = numbers_at(found.minor_to_major, found.minor_to_major_size)
    return template(type_, dims, *where, order)


def _from_host(args: Any) -> None:
    """A buffer with a copy of the caller's array, so that it may do with that what it wants."""
    type_ = type_named(args.type)
    dtype = dtype_of(type_)
    dims = numbers_at(args.dims, args.num_dims)
    where = _client(args).chosen(args.device, args.memory)
    made = _template_for(type_, dims, args.device_layout, where)
    strides = numbers_at(args.byte_strides, args.num_byte_strides) or None
    values = _array_with(args.data, dims, dtype, strides)
    order = numbers_at_tail(made, len(dims))
    args.buffer = machine().filled(made, values.transpose(order[::-1]))
    args.done_with_host_buffer = machine().ready


def numbers_at_tail(template_: bytes, count: int) -> list[int]:
    """The dimensions of a template from minor to major."""
    return list(np.frombuffer(template_[len(template_) - 8 * count :], np.int64)) if count else []


def _array_with(
    data: int | None, dims: list[int], dtype: np.dtype[Any], strides: list[int] | None
) -> np.ndarray[Any, Any]:
    """An array on memory of the caller's; strides may be negative."""
    if 0 in dims or not data:
        return np.empty(dims, dtype)
    if strides is None:
        strides = [0] * len(dims)
        step = dtype.itemsize
        for dim in reversed(range(len(dims))):
            strides[dim], step = step, step * dims[dim]
    low = sum(min(s, 0) * (d - 1) for s, d in zip(strides, dims, strict=True))
    high = sum(max(s, 0) * (d - 1) for s, d in zip(strides, dims, strict=True))
    memory: Any = (c.c_uint8 * (high - low + dtype.itemsize)).from_address(data + low)
    return np.ndarray(dims, dtype, memory, -low, strides)


def _to_host(args: Any) -> None:
    values = array_on(args.src)
    order: list[int] | None = None
    if args.host_layout:
        layout = structs()["MemoryLayout"].from_address(args.host_layout)
        if layout.type == 0:
            order = numbers_at(layout.minor_to_major, layout.minor_to_major_size)[::-1]
        else:
            strides = numbers_at(layout.minor_to_major, values.ndim)
            if not args.dst:
                args.dst_size = values.nbytes
                return
            target = _array_with(args.dst, list(values.shape), values.dtype, strides)
            np.copyto(target, values)
            args.event = machine().ready
            return
    if not args.dst:
        args.dst_size = values.nbytes
        return
    if args.dst_size < values.nbytes:
        raise PjrtError(
            Code.INVALID_ARGUMENT, f"{values.nbytes} bytes do not fit into {args.dst_size}"
        )
    if order is not None:
        values = values.transpose(order)
    np.copyto(_array_with(args.dst, list(values.shape), values.dtype, None), values)
    args.event = machine().ready


def _raw_to_host(args: Any) -> None:
    buffer = objects()["Buffer"].from_address(args.buffer)
    array_on(args.buffer)
    size = buffer.on_device_size_in_bytes
    if args.offset < 0 or args.offset + args.transfer_size > size:
        raise PjrtError(
            Code.INVALID_ARGUMENT,
            f"bytes {args.offset} to {args.offset + args.transfer_size} of a buffer of {size}",
        )
    c.memmove(args.dst, buffer.buffer_pointer + args.offset, args.transfer_size)
    args.event = machine().ready


def _copy_of(buffer: int, where: tuple[int, int]) -> int:
    values = array_on(buffer)
    b = objects()["Buffer"].from_address(buffer)
    order = numbers_at(b.minor_to_major, b.num_dims)
    made = template(type_named(b.type), values.shape, *where, order)
    return machine().filled(made, values.transpose(order[::-1]))


def _copy_to_device(args: Any) -> None:
    for client in _clients.values():
        if any(c.addressof(one) == args.dst_device for one in client.devices):
            args.dst_buffer = _copy_of(args.buffer, client.chosen(args.dst_device, None))
            return
    raise PjrtError(Code.INVALID_ARGUMENT, "a device of another client")


def _copy_to_memory(args: Any) -> None:
    for client in _clients.values():
        if args.dst_memory in client.memories:
            args.dst_buffer = _copy_of(args.buffer, client.chosen(None, args.dst_memory))
            return
    raise PjrtError(Code.INVALID_ARGUMENT, "a memory of another client")


def _uninitialized(args: Any) -> None:
    type_, dims = (
        type_named(args.shape_element_type),
        numbers_at(args.shape_dims, args.shape_num_dims),
    )
    where = _client(args).chosen(args.device, args.memory)
    made = _template_for(type_, dims, args.shape_layout, where)
    size = math.prod(dims) * dtype_of(type_).itemsize
    args.buffer = machine().buffer(made, machine().storage(size))


def _view(args: Any) -> None:
    """A buffer on memory of the caller's, who is told when it is no longer used (DLPack)."""
    type_, dims = type_named(args.element_type), numbers_at(args.dims, args.num_dims)
    where = _client(args).chosen(args.device, args.memory)
    made = _template_for(type_, dims, args.layout, where)
    deleter = args.on_delete_callback or c.cast(_ignored, c.c_void_p).value or 0
    storage = machine().view(args.device_buffer_ptr, deleter, args.on_delete_callback_arg or 0)
    args.buffer = machine().buffer(made, storage)


_ignored = c.CFUNCTYPE(None, c.c_void_p, c.c_void_p)(lambda data, argument: None)


def _bitcast(args: Any) -> None:
    """Another view of a buffer's memory."""
    values = array_on(args.buffer)
    old = objects()["Buffer"].from_address(args.buffer)
    type_, dims = type_named(args.element_type), numbers_at(args.dims, args.num_dims)
    if math.prod(dims) * dtype_of(type_).itemsize != values.nbytes:
        raise PjrtError(Code.INVALID_ARGUMENT, f"{values.nbytes} bytes are no {type_}{dims}")
    made = _template_for(type_, dims, args.device_layout, (old.device, old.memory))
    storage = objects()["Storage"].from_address(old.storage)
    storage.references += 1
    args.out_buffer = machine().buffer(made, old.storage)


# ---------------------------------------------------------------- callbacks and the whole


def _no_attributes(args: Any) -> None:
    args.attributes, args.num_attributes = 0, 0


_FUNCTIONS: dict[str, Callable[[Any], None]] = {
    "Plugin_Attributes": _no_attributes,
    "Client_Create": _client_create,
    "Client_LookupDevice": _lookup_device,
    "Client_LookupAddressableDevice": _lookup_addressable,
    "Client_DefaultDeviceAssignment": _default_assignment,
    "Client_Compile": _compile,
    "Client_CreateUninitializedBuffer": _uninitialized,
    "Client_CreateViewOfDeviceBuffer": _view,
    "Device_GetAttributes": _device_attributes,
    "Device_MemoryStats": _memory_stats,
    "Executable_GetCostAnalysis": _cost_analysis,
    "Executable_OptimizedProgram": _optimized_program,
    "Executable_Serialize": _hand(
        lambda args: compiling.serialized(program_at(args.executable)),
        "serialized_executable",
        "serialized_executable_deleter",
    ),
    "Executable_GetCompileOptions": _hand(
        lambda args: program_at(args.executable).options,
        "serialized_compile_options",
        "serialized_compile_options_deleter",
    ),
    "LoadedExecutable_GetDeviceAssignment": _hand(
        lambda args: compiling.assignment(program_at(args.executable)),
        "serialized_device_assignment",
        "serialized_device_assignment_deleter",
    ),
    "Executable_DeserializeAndLoad": _deserialize,
    "Buffer_CopyRawToHost": _raw_to_host,
    "Buffer_CopyToDevice": _copy_to_device,
    "Buffer_CopyToMemory": _copy_to_memory,
    "Buffer_Bitcast": _bitcast,
    "ExecuteContext_Create": callbacks.new_context,
    "ExecuteContext_Destroy": callbacks.drop_context,
}


_SLOW = {
    "LoadedExecutable_Execute": running.execute,
    "Client_BufferFromHostBuffer": _from_host,
    "Buffer_ToHostBuffer": _to_host,
    "Layouts_Buffer_MemoryLayout": layouts.of_buffer,
}

_EXTENSIONS: dict[str, dict[str, Callable[[Any], None]]] = {
    "Layouts": {
        "Client_GetDefaultLayout": layouts.default,
        "Topology_GetDefaultLayout": layouts.default,
        "Executable_GetOutputLayouts": layouts.of_results,
        "Executable_GetParameterLayouts": layouts.of_parameters,
    },
    "FFI": {
        "Type_Register": callbacks.register_type,
        "UserData_Add": callbacks.add_data,
        "Register_Handler": callbacks.register_handler,
    },
}


@cache
def interface() -> Any:
    """The interface as JAX takes it; lives as long as the process."""
    library = machine().library
    machine().slow.update(_SLOW)
    native = {*code.getters(), *code.FUNCTIONS}
    kind = api_struct()
    api: Any = kind(struct_size=c.sizeof(kind), version_size=24, major=VERSION[0], minor=VERSION[1])
    api.kept = []
    for name, taken in arguments().items():
        if name in native:
            setattr(api, name, library.address(name))
        else:
            _set(api, name, callback(taken, _FUNCTIONS.get(name) or _missing(name)))
    for extension, functions in _EXTENSIONS.items():
        kind = extension_struct(extension)
        made: Any = kind(c.sizeof(kind), EXTENSIONS[extension][0], api.extension_start)
        made.kept = []
        for name, taken in extension_arguments(extension).items():
            if (whole := f"{extension}_{name}") in native:
                setattr(made, name, library.address(whole))
            else:
                _set(made, name, callback(taken, functions[name]))
        api.kept.append(made)
        api.extension_start = c.addressof(made)
    return api


def _set(struct: Any, field: str, function: Any) -> None:
    struct.kept.append(function)
    setattr(struct, field, c.cast(function, c.c_void_p).value)


def _missing(name: str) -> Callable[[Any], None]:
    def function(args: Any) -> None:
        raise unimplemented(f"there is no PJRT_{name}")

    return function
