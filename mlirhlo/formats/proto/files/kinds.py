"""Which protobuf message a file holds: by wire structure, or by the names of its fields.

HloProto, HloSnapshot, HloUnoptimizedSnapshot and HloModuleProtoWithConfig all begin with a nested
message, so the question is how deep the first computation lies and what stands beside it.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping, Set
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING

from mlirhlo.formats.proto.files.wire import (
    BYTES,
    VARINT,
    Field,
    WireProblem,
    leading_fields,
    read_varint,
)

if TYPE_CHECKING:
    # Sniffing a text file must not pay for loading the runtime.
    from google.protobuf.message import Message


class Container(Enum):
    """A message that files hold; the value is the message's name."""

    HLO = "HloProto"
    MODULE = "HloModuleProto"
    MODULE_WITH_CONFIG = "HloModuleProtoWithConfig"
    SNAPSHOT = "HloSnapshot"
    UNOPTIMIZED_SNAPSHOT = "HloUnoptimizedSnapshot"
    FRAMED_SNAPSHOT = "HloUnoptimizedSnapshot (framed)"
    """The stream form: a length-prefixed message, then raw literals. Binary only."""
    MODULE_GROUP = "HloModuleGroupProto"
    MODULE_METADATA = "HloModuleMetadataProto"
    MEMORY_USAGE = "MemoryUsageReportProto"
    BUFFER_ASSIGNMENT = "BufferAssignmentProto"
    COMPILE_OPTIONS = "CompileOptionsProto"
    MODULE_CONFIG = "HloModuleConfigProto"
    GPU_TARGET = "GpuTargetConfigProto"
    RUN_LITERALS = "RunHloModuleLiterals"
    LITERAL = "LiteralProto"
    DEBUG_OPTIONS = "DebugOptions"

    @property
    def message_class(self) -> type[Message]:
        """The generated class."""
        module = importlib.import_module(f"mlirhlo.formats.proto.{_HOME[self]}_pb2")
        cls: type[Message] = getattr(module, self.value.partition(" ")[0])
        return cls

    @property
    def holds_module(self) -> bool:
        """Whether there is an HloModuleProto in it."""
        return self in _WITH_MODULE


_HOME: Mapping[Container, str] = {
    Container.HLO: "containers",
    Container.MODULE: "module",
    Container.MODULE_WITH_CONFIG: "config",
    Container.SNAPSHOT: "containers",
    Container.UNOPTIMIZED_SNAPSHOT: "containers",
    Container.FRAMED_SNAPSHOT: "containers",
    Container.MODULE_GROUP: "containers",
    Container.MODULE_METADATA: "containers",
    Container.MEMORY_USAGE: "buffer_assignment",
    Container.BUFFER_ASSIGNMENT: "buffer_assignment",
    Container.COMPILE_OPTIONS: "compile_options",
    Container.MODULE_CONFIG: "config",
    Container.GPU_TARGET: "gpu_target",
    Container.RUN_LITERALS: "containers",
    Container.LITERAL: "literal",
    Container.DEBUG_OPTIONS: "debug_options",
}
"""The generated module each message lives in."""

_WITH_MODULE = {
    Container.HLO,
    Container.MODULE,
    Container.MODULE_WITH_CONFIG,
    Container.SNAPSHOT,
    Container.UNOPTIMIZED_SNAPSHOT,
    Container.FRAMED_SNAPSHOT,
    Container.MODULE_GROUP,
}


def by_names(names: Set[str]) -> Container | None:
    """The container that fits top-level field `names` best; on a tie the earlier one.

    None when it would know less than half of them: then the message is none of ours.
    """
    best, best_score = None, 0
    for container in Container:
        if container is Container.FRAMED_SNAPSHOT:
            continue
        fields = container.message_class.DESCRIPTOR.fields_by_name
        score = sum(1 if name in fields else -1 for name in names)
        if score > best_score:
            best, best_score = container, score
    return best


def is_top_level_name(name: str) -> bool:
    """Whether any container has a field of this name."""
    return by_names({name}) is not None


def by_structure(data: bytes) -> Container | None:
    """The container whose wire structure `data` has; truncated data are still recognised."""
    end = len(data)
    if _is_module(data, 0, end):
        return Container.MODULE
    found, _ = leading_fields(data, 0, end)
    if found and found[0].number == 1 and found[0].wire_type == BYTES:
        first = found[0]
        if _is_module(data, first.start, first.end):
            return _beside_module(data, found)
        if _first_field_is_module(data, first.start, first.end):
            return Container.SNAPSHOT
    if any(
        f.number == 2 and f.wire_type == BYTES and _is_module(data, f.start, f.end) for f in found
    ):
        return Container.MODULE_GROUP
    try:
        length, start = read_varint(data, 0, end)
    except WireProblem:
        return None
    if _first_field_is_module(data, start, min(start + length, end)):
        return Container.FRAMED_SNAPSHOT
    return _by_parsing(data)


def _beside_module(data: bytes, found: list[Field]) -> Container:
    """Which message it is that has a module in field 1."""
    for field in found[1:]:
        if field.number == 3 and field.wire_type == VARINT:
            return Container.UNOPTIMIZED_SNAPSHOT
        if field.number == 2 and field.wire_type == BYTES:
            inside, _ = leading_fields(data, field.start, field.end)
            # HloInputs has fields 1 and 2 only; a configuration always has more.
            if all(f.number <= 2 for f in inside):
                return Container.UNOPTIMIZED_SNAPSHOT
            return Container.MODULE_WITH_CONFIG
    return Container.HLO


_LOOKS = 16
"""Computations and instructions looked at: one damaged one does not decide."""

_NAME = re.compile(rb"[A-Za-z_][\w.\-]*")
_OPCODE = re.compile(rb"[a-z][a-z0-9\-]*")


def _is_module(data: bytes, start: int, end: int) -> bool:
    found, _ = leading_fields(data, start, end)
    if any(f.number == 1 and f.wire_type != BYTES for f in found):
        return False
    computations = [f for f in found if f.number == 3 and f.wire_type == BYTES]
    if computations:
        return any(_is_computation(data, f.start, f.end) for f in computations[:_LOOKS])
    # A module without computations, or cut off before the first.
    names = [f for f in found if f.number in (1, 2)]
    return bool(names) and all(
        f.wire_type == BYTES and _NAME.fullmatch(data, f.start, f.end) is not None for f in names
    )


def _is_computation(data: bytes, start: int, end: int) -> bool:
    found, damaged = leading_fields(data, start, end)
    instructions = [f for f in found if f.number == 2 and f.wire_type == BYTES]
    if not instructions:
        return damaged and bool(found) and found[0].number == 1
    return any(_is_instruction(data, f.start, f.end) for f in instructions[:_LOOKS])


def _is_instruction(data: bytes, start: int, end: int) -> bool:
    found, damaged = leading_fields(data, start, end)
    for field in islice(found, 3):
        if field.number == 2:
            matches = _OPCODE.fullmatch(data, field.start, field.end) is not None
            return field.wire_type == BYTES and matches
    return damaged and len(found) == 1


def _first_field_is_module(data: bytes, start: int, end: int) -> bool:
    found, _ = leading_fields(data, start, end)
    return bool(found) and (
        found[0].number == 1
        and found[0].wire_type == BYTES
        and _is_module(data, found[0].start, found[0].end)
    )


_MAX_TRIED_BYTES = 64 << 20
"""Larger files that hold no module are not tried as reports and options."""


def _by_parsing(data: bytes) -> Container | None:
    """The first container without a module that knows every byte of `data`."""
    if not data or len(data) > _MAX_TRIED_BYTES:
        return None
    from google.protobuf.message import DecodeError

    for container in Container:
        if container.holds_module:
            continue
        parse: Callable[[bytes], Message] = container.message_class.FromString
        try:
            message = parse(data)
        except DecodeError:
            continue
        message.DiscardUnknownFields()
        if message.ByteSize() == len(data):
            return container
    return None
