"""Functions of the interface about buffers that run Python."""

# JAX, llvmlite and the structs of ctypes have no types that pyright knows.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnknownLambdaType=false
# pyright: reportMissingTypeArgument=false, reportAttributeAccessIssue=false

from __future__ import annotations

import ctypes as c
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mlirhlo.integrations.jax.pjrt.client_functions import client_of, clients
from mlirhlo.integrations.jax.pjrt.interface import Code, structs
from mlirhlo.integrations.jax.pjrt.machine import (
    PjrtError,
    array_on,
    dtype_of,
    machine,
    numbers_at,
    template,
    type_named,
    unimplemented,
)
from mlirhlo.integrations.jax.pjrt.objects import objects


def _template_for(type_: str, dims: list[int], layout: int | None, where: tuple[int, int]) -> bytes:
    order = None
    if layout:
        found = structs()["MemoryLayout"].from_address(layout)
        if found.type == 0:
            if found.num_tiles:
                raise unimplemented("arrays in tiles")
            order = numbers_at(found.minor_to_major, found.minor_to_major_size)
    return template(type_, dims, *where, order)


def from_host(args: Any) -> None:
    """A buffer with a copy of the caller's array, so that it may do with that what it wants."""
    type_ = type_named(args.type)
    dtype = dtype_of(type_)
    dims = numbers_at(args.dims, args.num_dims)
    where = client_of(args).chosen(args.device, args.memory)
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


def to_host(args: Any) -> None:
    """Copies a buffer to memory of the caller's, in the layout that it asks for."""
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
    for client in clients.values():
        if any(c.addressof(one) == args.dst_device for one in client.devices):
            args.dst_buffer = _copy_of(args.buffer, client.chosen(args.dst_device, None))
            return
    raise PjrtError(Code.INVALID_ARGUMENT, "a device of another client")


def _copy_to_memory(args: Any) -> None:
    for client in clients.values():
        if args.dst_memory in client.memories:
            args.dst_buffer = _copy_of(args.buffer, client.chosen(None, args.dst_memory))
            return
    raise PjrtError(Code.INVALID_ARGUMENT, "a memory of another client")


def _uninitialized(args: Any) -> None:
    type_, dims = (
        type_named(args.shape_element_type),
        numbers_at(args.shape_dims, args.shape_num_dims),
    )
    where = client_of(args).chosen(args.device, args.memory)
    made = _template_for(type_, dims, args.shape_layout, where)
    size = math.prod(dims) * dtype_of(type_).itemsize
    args.buffer = machine().buffer(made, machine().storage(size))


def _view(args: Any) -> None:
    """A buffer on memory of the caller's, who is told when it is no longer used (DLPack)."""
    type_, dims = type_named(args.element_type), numbers_at(args.dims, args.num_dims)
    where = client_of(args).chosen(args.device, args.memory)
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


FUNCTIONS: dict[str, Callable[[Any], None]] = {
    "Client_CreateUninitializedBuffer": _uninitialized,
    "Client_CreateViewOfDeviceBuffer": _view,
    "Buffer_CopyRawToHost": _raw_to_host,
    "Buffer_CopyToDevice": _copy_to_device,
    "Buffer_CopyToMemory": _copy_to_memory,
    "Buffer_Bitcast": _bitcast,
}
