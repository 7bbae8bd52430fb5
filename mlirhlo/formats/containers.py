"""The files that hold modules as protobuf messages: reading and writing them in every encoding.

    read(data, name)   -> Contents    any of them, recognised by content, gzip or not
    write(message, …)  -> bytes       binary, text or JSON, gzip on request
    module_of(message) -> HloModuleProto, whatever it is wrapped in

Framed snapshots are read into the plain message. Binary files keep fields this package does not
know; text and JSON cannot carry them, and `write` refuses rather than drop them.
"""

from __future__ import annotations

import gzip as gzip_module
from dataclasses import dataclass

from google.protobuf import json_format, text_format
from google.protobuf.message import DecodeError, Message

from mlirhlo.diagnostics import HloError, Place, error
from mlirhlo.formats.proto._pool import POOL
from mlirhlo.formats.proto.config_pb2 import HloModuleConfigProto, HloModuleProtoWithConfig
from mlirhlo.formats.proto.containers_pb2 import (
    HloModuleGroupProto,
    HloProto,
    HloSnapshot,
    HloUnoptimizedSnapshot,
)
from mlirhlo.formats.proto.files.damage import locate
from mlirhlo.formats.proto.files.framed import read_framed, write_framed
from mlirhlo.formats.proto.files.kinds import Container
from mlirhlo.formats.proto.module_pb2 import HloModuleProto
from mlirhlo.formats.sniff import MAX_UNPACKED_BYTES, Format, Sniffed, sniff_plain, unwrap

_PROTO_FORMATS = (Format.PROTO, Format.PROTO_TEXT, Format.PROTO_JSON)


@dataclass(frozen=True, slots=True)
class Contents:
    """A message out of a file, and what the file was."""

    sniffed: Sniffed
    message: Message
    """An instance of `sniffed.container.message_class`."""

    @property
    def module(self) -> HloModuleProto:
        """The module inside. Raises `HloError` HLO0204 when the message holds none."""
        return module_of(self.message)

    @property
    def config(self) -> HloModuleConfigProto | None:
        """The configuration beside the module, where the message has one."""
        message = self.message
        return message.config if isinstance(message, HloModuleProtoWithConfig) else None


def read(
    data: bytes,
    name: str = "<input>",
    sniffed: Sniffed | None = None,
    limit: int = MAX_UNPACKED_BYTES,
) -> Contents:
    """The message in a file; `sniffed` overrides what the content looks like.

    Raises `HloError`: HLO0200 when it is no message of ours, HLO0201 (binary), HLO0202 (text, JSON)
    or HLO0205 (frames) when it is damaged, HLO0203 for bad or oversized gzip.
    """
    plain = unwrap(data, name, limit)
    if sniffed is None:
        sniffed = sniff_plain(plain)
        sniffed = Sniffed(sniffed.format, plain is not data, sniffed.container)
    if sniffed.format not in _PROTO_FORMATS or sniffed.container is None:
        raise error(
            "HLO0200",
            "the file is empty" if not plain else f"no protobuf message of XLA's ({sniffed})",
            Place(name),
            help="known are HloProto, HloModuleProto, HloSnapshot and HloUnoptimizedSnapshot,"
            " binary, as text or as JSON",
        )
    return Contents(sniffed, parse(plain, sniffed.format, sniffed.container, name))


def parse(data: bytes, format: Format, container: Container, name: str = "<input>") -> Message:
    """The message of kind `container` in unpacked `data`. Raises as `read` does."""
    if container is Container.FRAMED_SNAPSHOT:
        return read_framed(data, name)
    message = container.message_class()
    if format is Format.PROTO:
        try:
            message.ParseFromString(data)
        except DecodeError as problem:
            raise locate(data, message, name, str(problem)) from None
        return message
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise error("HLO0202", f"not UTF-8 text: {problem}", Place(name)) from None
    # Flags come and go with every version: an unknown one is no reason to refuse a configuration.
    lenient = not container.holds_module
    try:
        if format is Format.PROTO_TEXT:
            text_format.Parse(text, message, allow_unknown_field=lenient, descriptor_pool=POOL)
        else:
            json_format.Parse(text, message, ignore_unknown_fields=lenient, descriptor_pool=POOL)
    except text_format.ParseError as problem:
        raise text_problem(text, problem, name) from None
    except json_format.ParseError as problem:
        raise error("HLO0202", f"{container.value} as JSON: {problem}", Place(name)) from None
    except RecursionError:
        raise error("HLO0202", f"{container.value}: nested too deeply", Place(name)) from None
    return message


def text_problem(text: str, problem: text_format.ParseError, name: str) -> HloError:
    """HLO0202 with the line of a text that is no message."""
    line = problem.GetLine() or 0
    source = text.split("\n", line)[line - 1] if line else None
    place = Place(name, line, problem.GetColumn() or 0, source_line=source)
    # The runtime's message repeats the position in front.
    message = str(problem).split(" : ", 1)[-1]
    return error("HLO0202", f"protobuf text: {message}", place)


def write(
    message: Message, format: Format = Format.PROTO, *, gzip: bool = False, framed: bool = False
) -> bytes:
    """The bytes of a file; the same message gives the same bytes.

    `framed` asks for the stream form of an HloUnoptimizedSnapshot. Raises `HloError` HLO0207 for a
    form the message does not have.
    """
    if framed:
        if not isinstance(message, HloUnoptimizedSnapshot) or format is not Format.PROTO:
            raise error("HLO0207", "only a binary HloUnoptimizedSnapshot can be framed")
        data = write_framed(message)
    elif format is Format.PROTO:
        data = message.SerializeToString(deterministic=True)
    elif format in _PROTO_FORMATS:
        data = _write_text(message, format).encode()
    else:
        raise error("HLO0207", f"a {message.DESCRIPTOR.name} cannot be written as {format.value}")
    # A fixed time keeps the bytes the same.
    return gzip_module.compress(data, mtime=0) if gzip else data


def _write_text(message: Message, format: Format) -> str:
    known = type(message)()
    known.CopyFrom(message)
    known.DiscardUnknownFields()
    if known.ByteSize() != message.ByteSize():
        raise error(
            "HLO0207",
            f"the {message.DESCRIPTOR.name} has fields of a newer producer,"
            f" which {format.value} cannot carry",
            help="write it as binary protobuf (pb)",
        )
    if format is Format.PROTO_TEXT:
        return text_format.MessageToString(message, descriptor_pool=POOL)
    return json_format.MessageToJson(
        message, preserving_proto_field_name=True, descriptor_pool=POOL, sort_keys=False
    )


def module_of(message: Message) -> HloModuleProto:
    """The module in a message. Raises `HloError` HLO0204 when there is none, or more than one."""
    match message:
        case HloModuleProto():
            return message
        case HloProto() | HloModuleProtoWithConfig() | HloUnoptimizedSnapshot():
            present, module = message.HasField("hlo_module"), message.hlo_module
        case HloSnapshot():
            present, module = message.hlo.HasField("hlo_module"), message.hlo.hlo_module
        case HloModuleGroupProto():
            present = len(message.hlo_modules) == 1
            module = message.hlo_modules[0] if present else HloModuleProto()
        case _:
            raise error(
                "HLO0204",
                f"a {message.DESCRIPTOR.name} holds no module",
                help="give a dump of the module itself: *.hlo.pb, *.txt, a snapshot",
            )
    if not present:
        raise error("HLO0204", f"this {message.DESCRIPTOR.name} has no module in it")
    return module


def wrap(
    module: HloModuleProto,
    container: Container = Container.HLO,
    config: HloModuleConfigProto | None = None,
) -> Message:
    """A message of kind `container` around `module`; only HloModuleProtoWithConfig takes a `config`.

    Raises `HloError` HLO0207 for a kind that holds no module.
    """
    match container:
        case Container.MODULE:
            return module
        case Container.HLO:
            return HloProto(hlo_module=module)
        case Container.MODULE_WITH_CONFIG:
            return HloModuleProtoWithConfig(hlo_module=module, config=config)
        case Container.SNAPSHOT:
            return HloSnapshot(hlo=HloProto(hlo_module=module))
        case Container.UNOPTIMIZED_SNAPSHOT | Container.FRAMED_SNAPSHOT:
            return HloUnoptimizedSnapshot(hlo_module=module)
        case Container.MODULE_GROUP:
            return HloModuleGroupProto(name=module.name, hlo_modules=[module])
        case _:
            raise error("HLO0207", f"a {container.value} cannot hold a module")
