"""Machine code of buffers: storages with counted references, arrays from and to the host, layouts as text."""

# JAX, llvmlite and the structs of ctypes have no types that pyright knows.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnknownLambdaType=false
# pyright: reportMissingTypeArgument=false, reportAttributeAccessIssue=false

from __future__ import annotations

import ctypes as c
from typing import TYPE_CHECKING

from llvmlite import ir  # type: ignore[import-untyped]

from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
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
from mlirhlo.integrations.jax.pjrt.interface import ELEMENT_TYPES, structs
from mlirhlo.integrations.jax.pjrt.objects import objects

if TYPE_CHECKING:
    from mlirhlo.integrations.jax.pjrt.code import Code

ELEMENT_BYTES = [
    PRIMITIVE_TYPES[name].dtype.itemsize if name and PRIMITIVE_TYPES[name].numpy_name else 0
    for name in ELEMENT_TYPES
]
"""Bytes of an element by the interface's number of its type; 0 where there are no arrays."""


def release(code: Code) -> None:
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
                call_pointer(e, callback, deleter, [data, argument])
        e.call("free", storage)
    e.b.ret_void()


def storage_new(code: Code) -> None:
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


def buffer_new(code: Code) -> None:
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


def buffer_delete(code: Code, e: Emitter, kind: type[c.Structure], args: Value) -> None:
    """Deletes a buffer."""
    del code
    delete(e, e.pointer(kind, args, "buffer"))
    e.b.ret(NULL)


def delete(e: Emitter, buffer: Value) -> None:
    """Gives up the buffer's reference to its storage, unless it is gone."""
    object_ = objects()["Buffer"]
    with e.b.if_then(e.b.icmp_unsigned("==", e.load(object_, buffer, "is_deleted"), BYTE(0))):
        e.store(object_, buffer, "is_deleted", BYTE(1))
        e.call("release", e.pointer(object_, buffer, "storage"))


def buffer_destroy(code: Code, e: Emitter, kind: type[c.Structure], args: Value) -> None:
    """Frees a buffer, and its storage with the last reference."""
    del code
    buffer = e.pointer(kind, args, "buffer")
    with e.b.if_then(e.b.icmp_unsigned("!=", buffer, NULL)):
        delete(e, buffer)
        e.call("free", buffer)
    e.b.ret(NULL)


def hold(code: Code, e: Emitter, kind: type[c.Structure], args: Value) -> None:
    """Takes a reference to the storage of a buffer for somebody outside."""
    del code
    storage = e.pointer(objects()["Buffer"], e.pointer(kind, args, "buffer"), "storage")
    e.atomic_add(objects()["Storage"], storage, "references", 1)
    e.b.ret(NULL)


def let_go(code: Code, e: Emitter, kind: type[c.Structure], args: Value) -> None:
    """Gives up a reference from outside."""
    del code
    e.call("release", e.pointer(objects()["Buffer"], e.pointer(kind, args, "buffer"), "storage"))
    e.b.ret(NULL)


def from_host(code: Code, e: Emitter, kind: type[c.Structure], args: Value) -> None:
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
    template = untyped(template)
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


def to_host(code: Code, e: Emitter, kind: type[c.Structure], args: Value) -> None:
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


def layout_of_buffer(code: Code, e: Emitter, kind: type[c.Structure], args: Value) -> None:
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


def serialize_layout(code: Code, e: Emitter, kind: type[c.Structure], args: Value) -> None:
    """Hands out the text of a layout, which stays where it is."""
    layout = e.pointer(kind, args, "layout")
    e.store(kind, args, "serialized_bytes", e.word_at(layout, WORD(1)))
    e.store(kind, args, "serialized_bytes_size", e.item(layout, WORD(0)))
    e.store(kind, args, "serialized_layout", layout)
    e.store(kind, args, "serialized_layout_deleter", code.callee("Plugin_Initialize"))
    e.b.ret(NULL)


def free_layout(code: Code, e: Emitter, kind: type[c.Structure], args: Value) -> None:
    """Frees a layout."""
    del code
    e.call("free", e.pointer(kind, args, "layout"))
    e.b.ret(NULL)
