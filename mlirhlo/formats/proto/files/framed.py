"""The framed form of HloUnoptimizedSnapshot, which has no 2 GiB limit.

A varint gives the length of a message that holds the module and, per partition, only the sizes of
the arguments; their raw literals follow one after the other: an 8-byte length, a ShapeProto, and
the packed data of every array leaf in layout order. `read_framed` gives the plain form, so that
nobody else needs to know of the frames.
Source: HLO protobuf reference, "HloUnoptimizedSnapshot".
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from google.protobuf.message import DecodeError

from mlirhlo.diagnostics import HloError, Place, error
from mlirhlo.dialects.hlo.element_types import BY_NUMBER, PrimitiveType
from mlirhlo.formats.proto.containers_pb2 import HloUnoptimizedSnapshot
from mlirhlo.formats.proto.elements import (
    get_elements,
    pack_raw,
    raw_size,
    set_elements,
    unpack_raw,
)
from mlirhlo.formats.proto.files.wire import WireProblem, read_varint
from mlirhlo.formats.proto.literal_pb2 import LiteralProto
from mlirhlo.formats.proto.shape_pb2 import ShapeProto

_TUPLE = 13
_MAX_DEPTH = 90
"""Deepest tuple nesting; the protobuf runtime itself stops at 100 messages."""


def read_framed(data: bytes, name: str) -> HloUnoptimizedSnapshot:
    """The snapshot in its plain form. Raises `HloError` HLO0201 or HLO0205."""
    try:
        size, start = read_varint(data, 0, len(data))
    except WireProblem as problem:
        raise _problem(name, problem.message) from None
    if start + size > len(data):
        raise _problem(name, f"the message claims {size} bytes, {len(data) - start} are left")
    try:
        snapshot = HloUnoptimizedSnapshot.FromString(data[start : start + size])
    except DecodeError as problem:
        raise error("HLO0201", f"not a protobuf message: {problem}", Place(name)) from None
    position = start + size
    for number, partition in enumerate(snapshot.partitions):
        for index, descriptor in enumerate(partition.arguments_descriptors):
            what = f"argument {index} of partition {number}"
            end = position + descriptor.argument_size_bytes
            if end > len(data):
                raise _problem(
                    name,
                    f"{what} claims {descriptor.argument_size_bytes} bytes,"
                    f" {len(data) - position} are left",
                )
            partition.arguments.append(_read_literal(data[position:end], what, name))
            position = end
        del partition.arguments_descriptors[:]
    if position != len(data):
        raise _problem(name, f"{len(data) - position} bytes follow the last argument")
    return snapshot


def write_framed(snapshot: HloUnoptimizedSnapshot) -> bytes:
    """The framed form of a plain snapshot. Raises `HloError` HLO0206 for data that fit no shape."""
    head = HloUnoptimizedSnapshot()
    head.CopyFrom(snapshot)
    raw: list[bytes] = []
    for partition in head.partitions:
        for argument in partition.arguments:
            raw.append(_write_literal(argument))
            partition.arguments_descriptors.add(argument_size_bytes=len(raw[-1]))
        del partition.arguments[:]
    body = head.SerializeToString(deterministic=True)
    size = bytearray()
    rest = len(body)
    while rest > 127:
        size.append(rest & 127 | 128)
        rest >>= 7
    size.append(rest)
    return b"".join([bytes(size), body, *raw])


def _read_literal(data: bytes, what: str, name: str) -> LiteralProto:
    shape_size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or shape_size > len(data) - 8:
        raise _problem(name, f"{what}: the shape claims {shape_size} bytes of {len(data)}")
    literal = LiteralProto()
    try:
        literal.shape.ParseFromString(data[8 : 8 + shape_size])
    except DecodeError as problem:
        raise _problem(name, f"{what}: its shape is not a ShapeProto: {problem}") from None
    position = 8 + shape_size
    parts = list(_leaves(literal, what, name))
    with_sizes = sum(
        raw_size(type_, count) + 4 * _dynamic_count(part.shape) for part, type_, count in parts
    )
    # The sizes of dynamic dimensions precede the data of their array, if they were written at all.
    has_sizes = with_sizes == len(data) - position
    for part, type_, count in parts:
        if has_sizes and _dynamic_count(part.shape):
            for dim, size in enumerate(part.shape.dimensions):
                if part.shape.is_dynamic_dimension[dim]:
                    size = int.from_bytes(data[position : position + 4], "little", signed=True)
                    position += 4
                part.dynamic_sizes.append(size)
        end = position + raw_size(type_, count)
        if end > len(data):
            raise _problem(
                name,
                f"{what}: {type_} data need {end - position} bytes, {len(data) - position} left",
            )
        set_elements(part, type_, unpack_raw(data[position:end], type_, count))
        position = end
    if position != len(data):
        raise _problem(name, f"{what}: {len(data) - position} bytes follow its data")
    return literal


def _write_literal(literal: LiteralProto) -> bytes:
    shape = literal.shape.SerializeToString(deterministic=True)
    out = [len(shape).to_bytes(8, "little"), shape]
    for part, type_, count in _literal_leaves(literal):
        data = get_elements(part, type_)
        if len(data) != count * type_.byte_size:
            raise error(
                "HLO0206",
                f"{len(data) // type_.byte_size} {type_} elements in a literal of {count}",
            )
        if _dynamic_count(part.shape):
            for dim, size in enumerate(part.dynamic_sizes):
                if part.shape.is_dynamic_dimension[dim]:
                    out.append(size.to_bytes(4, "little", signed=True))
        out.append(pack_raw(data, type_))
    return b"".join(out)


def _leaves(
    literal: LiteralProto, what: str, name: str, depth: int = 0
) -> Iterator[tuple[LiteralProto, PrimitiveType, int]]:
    """Array leaves of the literal's shape, with literals made for the elements of tuples."""
    shape = literal.shape
    if depth > _MAX_DEPTH:
        raise _problem(name, f"{what}: tuples are nested deeper than {_MAX_DEPTH}")
    if shape.element_type == _TUPLE:
        for element in shape.tuple_shapes:
            yield from _leaves(literal.tuple_literals.add(shape=element), what, name, depth + 1)
        return
    type_ = BY_NUMBER.get(shape.element_type)
    if type_ is None:
        raise _problem(name, f"{what}: {shape.element_type} is not an element type")
    if type_.is_array:
        yield literal, type_, _element_count(shape, what, name)


def _literal_leaves(literal: LiteralProto) -> Iterator[tuple[LiteralProto, PrimitiveType, int]]:
    if literal.shape.element_type == _TUPLE:
        for element in literal.tuple_literals:
            yield from _literal_leaves(element)
        return
    type_ = BY_NUMBER.get(literal.shape.element_type)
    if type_ is not None and type_.is_array:
        yield literal, type_, math.prod(literal.shape.dimensions)


def _element_count(shape: ShapeProto, what: str, name: str) -> int:
    if any(size < 0 for size in shape.dimensions):
        raise _problem(name, f"{what}: its shape has an unbounded or negative dimension")
    return math.prod(shape.dimensions)


def _dynamic_count(shape: ShapeProto) -> int:
    return sum(shape.is_dynamic_dimension)


def _problem(name: str, message: str) -> HloError:
    return error(
        "HLO0205",
        f"framed snapshot: {message}",
        Place(name),
        help="the file was cut off or is of another version; dump again without"
        " --xla_dump_hlo_as_proto for the plain form",
    )
