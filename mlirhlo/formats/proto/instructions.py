"""One instruction, to and from HloInstructionProto, following the rows of `rows.py`.

`instruction_bytes` is what XLA would write for the instruction; whatever else an original said is the
rest's business (`rest.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects.hlo.attributes.annotations import MetadataAttr
from mlirhlo.dialects.hlo.attributes.base import integer, string, symbol, symbols_of
from mlirhlo.dialects.hlo.attributes.groups import ReplicaGroups, ReplicaGroupsAttr
from mlirhlo.dialects.hlo.element_types import PRED
from mlirhlo.dialects.hlo.literal import LiteralAttr
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS, Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.formats.proto.annotations import payload_of
from mlirhlo.formats.proto.context import Codec, Context, Place
from mlirhlo.formats.proto.files.wire import BYTES, VARINT
from mlirhlo.formats.proto.groups import Chunk
from mlirhlo.formats.proto.literals import fitted
from mlirhlo.formats.proto.message import (
    DecodeProblem,
    bytes_field,
    numbers_field,
    tag,
    text_field,
    to_text,
    varint,
)
from mlirhlo.formats.proto.module_pb2 import HloInstructionProto
from mlirhlo.formats.proto.rows import Row

# Reading ----------------------------------------------------------------------------------


def read_properties(
    proto: HloInstructionProto,
    row: Row,
    shape: Shape,
    operands: Sequence[SSAValue],
    context: Context,
) -> tuple[dict[str, Attribute], bool]:
    """The properties of an instruction, but for its callees. Raises `DecodeProblem`.

    Also whether `instruction_bytes` is known to write every known field as it stands; false where that
    was not looked into.
    """
    place = Place(shape, operands)
    properties: dict[str, Attribute] = {}
    readers, decoded = row.readers, context.decoded
    is_exact = not (row.groups or row.unset)
    has_legacy = False
    empty = 0
    for descriptor, value in cast("list[tuple[Any, Any]]", proto.ListFields()):
        number: int = descriptor.number
        if number in _STRUCTURE:
            continue
        reader = readers.get(number)
        if reader is None:
            has_legacy = has_legacy or number in _LEGACY
            is_exact = False
            continue
        if not isinstance(reader, tuple):
            reader.decode(number, value, properties, context, place)
            continue
        key, codec = reader
        if codec.is_message:
            if number in _ALWAYS:
                empty += 1
            # Maps alone have an order that needs asking for.
            data = (
                value.SerializeToString(deterministic=True)
                if number == 68
                else value.SerializeToString()
            )
            known = decoded.get((id(codec), data))
            if known is None:
                attribute = codec.decode(value, context, place)
                known = attribute, _is_exact(number, data, attribute, codec, context)
                decoded[id(codec), data] = known
            attribute = known[0]
            is_exact = is_exact and known[1]
        else:
            attribute = codec.decode(value, context, place)
            is_exact = is_exact and attribute is not None and number not in _UNCHECKED
        if attribute is not None:
            properties[key] = attribute
    is_exact = is_exact and empty == len(_ALWAYS)
    if has_legacy:
        _read_legacy(proto, row, properties, context)
    if row.unset:
        properties |= {key: value for name, key, value in row.unset if not getattr(proto, name)}
    for key, absent in row.required:
        if key not in properties:
            if absent is None:
                raise DecodeProblem("HLO0215", f"attribute {key} is expected but not seen")
            properties[key] = absent
    if row.opcode.name == "constant":
        literal = properties.get("literal")
        if not isinstance(literal, LiteralAttr):
            raise DecodeProblem("HLO0206", "a constant without a literal")
        value = fitted(literal.data, shape)
        if value is not literal.data:
            properties["literal"] = LiteralAttr(value)
    return properties, is_exact


def _is_exact(
    number: int, data: bytes, attribute: Attribute | None, codec: Codec, context: Context
) -> bool:
    """Whether a message that was read is written with the same bytes."""
    if attribute is None:
        return not data and number in _ALWAYS
    if isinstance(attribute, MetadataAttr) and not attribute.data.metadata_payload:
        return True  # each field says one thing in one way
    return codec.encode(attribute, context) == bytes_field(number, data)


_STRUCTURE = frozenset({1, 2, 3, 35, 36, 37, 38})
"""Fields that the decoder itself reads: name, opcode, shape, ids."""
_ALWAYS = frozenset({7, 68, 82})
"""Messages that are always written: metadata, frontend attributes, statistics."""
_UNCHECKED = frozenset({61, 88})
"""Fields of messages that are not remembered, and of which several may mean the same."""


_LEGACY = frozenset({45, 49, 73, 99})
"""Fields that older producers wrote instead of today's, and the payload form of backend_config."""


def _read_legacy(
    proto: HloInstructionProto, row: Row, properties: dict[str, Attribute], context: Context
) -> None:
    if proto.replica_groups and "replica_groups" in row.writers:
        groups = ReplicaGroups.of(group.replica_ids for group in proto.replica_groups)
        properties["replica_groups"] = ReplicaGroupsAttr(groups)
    if proto.all_reduce_id and "channel_id" in row.writers:
        properties.setdefault("channel_id", integer(proto.all_reduce_id))
    if proto.is_cross_program_prefetch and "cross_program_prefetch_index" in row.writers:
        properties.setdefault("cross_program_prefetch_index", integer(0))
    if proto.HasField("backend_config_payload") and "backend_config" not in properties:
        payload = payload_of(proto.backend_config_payload, context.payloads)
        if payload:
            properties["backend_config"] = string(to_text(payload))


def read_calls(
    names: Sequence[str], row: Row, operands: Sequence[SSAValue]
) -> dict[str, Attribute]:
    """The properties that name the called computations. Raises `DecodeProblem` HLO0215."""
    opcode = row.opcode.name
    if opcode == "conditional":
        first = shape_of(operands[0].type) if operands else None
        if isinstance(first, ArrayShape) and first.element_type is PRED:
            keys: tuple[str, ...] = ("true_computation", "false_computation")
        else:
            return {"branch_computations": ArrayAttr([symbol(name) for name in names])}
    elif opcode == "custom-call":
        refs = [symbol(name) for name in names]
        return {"called_computations": ArrayAttr(refs)} if refs else {}
    else:
        keys = row.calls
    if len(names) != len(keys):
        raise DecodeProblem(
            "HLO0215", f"{opcode} calls {len(keys)} computations, found {len(names)}"
        )
    return {key: symbol(name) for key, name in zip(keys, names, strict=True)}


# Writing ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ids:
    """Ids of what an instruction refers to."""

    values: dict[int, bytes]
    """Full id of the instruction behind each SSA value, as a varint, by identity of the value."""
    computations: dict[str, int]


_EMPTY: tuple[tuple[str, Chunk], ...] = tuple(
    (key, (number, bytes_field(number, b"")))
    for number, key in ((7, "metadata"), (68, "frontend_attributes"), (82, "statistics"))
)
"""Messages that are present though empty."""

_number_of: Callable[[Chunk], int] = itemgetter(0)
_ID, _OPERANDS = tag(35, VARINT), tag(36, BYTES)


def instruction_bytes(op: Instruction, name: str, row: Row, ids: Ids, context: Context) -> bytes:
    """The serialised instruction, without its rest."""
    properties = op.properties
    values = ids.values
    result = op.results[0]
    chunks: list[Chunk] = [chunk for key, chunk in _EMPTY if key not in properties]
    encoded, writers = context.encoded, row.writers
    for key, attribute in properties.items():
        writer = writers.get(key)
        if writer is None:
            continue
        memo = writer.number, id(attribute)
        known = encoded.get(memo)
        if known is None:
            data = writer.encode(attribute, context)
            encoded[memo] = attribute, data
        else:
            data = known[1]
        if data:
            chunks.append((_form(writer.number, data), data))
    for group in row.groups:
        chunks += group.encode(op, context)
    if row.calls:
        calls = [
            ids.computations[callee]
            for key in row.calls
            for callee in symbols_of(properties.get(key))
        ]
        chunks.append((38, numbers_field(38, calls)))
    own = values[id(result)]
    if own != b"\0":
        chunks.append((35, _ID + own))
    operands = b"".join([values[id(value)] for value in op.inputs])
    if operands:
        chunks.append((36, _OPERANDS + varint(len(operands)) + operands))
    if CONTROL_PREDECESSORS in properties:
        before = b"".join([values[id(value)] for value in op.control_predecessors])
        chunks.append((37, bytes_field(37, before)))
    chunks.sort(key=_number_of)
    parts = [text_field(1, name), row.opcode_field, context.shape_field(result.type)]
    parts += [data for _, data in chunks]
    return b"".join(parts)


def _form(number: int, data: bytes) -> int:
    """The field that was really written: device groups choose theirs by their form."""
    if number != 87:
        return number
    return (data[0] & 127 | data[1] << 7) >> 3
