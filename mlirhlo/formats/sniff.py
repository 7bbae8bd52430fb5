"""What a file is, told by its content: file names lie, and dumps get renamed.

`sniff` never fails: damaged and unknown data give the nearest answer or `Format.UNKNOWN`, and the
reader of that format says what is wrong. Only as much is looked at as the answer needs.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, replace
from enum import Enum

from mlirhlo.diagnostics import HloError, Place, error
from mlirhlo.formats.jax_export import is_jax_export
from mlirhlo.formats.proto.files import kinds
from mlirhlo.formats.proto.files.kinds import Container

__all__ = ["Container", "Format", "Sniffed", "is_gzip", "sniff", "sniff_plain", "unwrap"]

MAX_UNPACKED_BYTES = 1 << 30
"""Most that a gzip file may unpack to; protobuf itself ends at 2 GiB."""


class Format(Enum):
    """How the content is written."""

    HLO_TEXT = "hlo"
    MLIR_TEXT = "mlir"
    MLIR_BYTECODE = "mlirbc"
    JAX_EXPORT = "jax-export"
    """What `jax.export` writes: bytecode in a FlatBuffers table."""
    PROTO = "pb"
    """Binary protobuf; `Sniffed.container` says which message."""
    PROTO_TEXT = "pbtxt"
    PROTO_JSON = "json"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Sniffed:
    """What `sniff` found."""

    format: Format
    is_gzip: bool = False
    """Whether the content stands in a gzip wrapper."""
    container: Container | None = None
    """The message, for the protobuf formats."""

    def __str__(self) -> str:
        parts = [self.format.value]
        if self.container is not None:
            parts.insert(0, self.container.value)
        if self.is_gzip:
            parts.append("gzip")
        return ", ".join(parts)


def is_gzip(data: bytes) -> bool:
    """Whether `data` is a gzip file."""
    return data[:2] == b"\x1f\x8b"


def unwrap(data: bytes, name: str = "<input>", limit: int = MAX_UNPACKED_BYTES) -> bytes:
    """`data` without its gzip wrapper, if it has one.

    Raises `HloError` HLO0203 when the wrapper is damaged, cut off, or hides more than `limit`
    bytes; never holds more than that.
    """
    if not is_gzip(data):
        return data
    parts: list[bytes] = []
    size = 0
    rest = data
    while is_gzip(rest):  # a gzip file may have several members
        unpacker = zlib.decompressobj(wbits=31)
        try:
            part = unpacker.decompress(rest, limit - size + 1)
        except zlib.error as problem:
            raise error("HLO0203", f"gzip data is damaged: {problem}", Place(name)) from None
        size += len(part)
        if size > limit:
            raise error(
                "HLO0203",
                f"gzip data unpacks to more than {limit} bytes ({len(data)} packed)",
                Place(name),
                help="unpack the file first if it is what it should be",
            )
        if not unpacker.eof:
            raise error("HLO0203", f"gzip data is cut off after {len(data)} bytes", Place(name))
        parts.append(part)
        rest = unpacker.unused_data
    return b"".join(parts)


def sniff(data: bytes) -> Sniffed:
    """What `data` is. Gzip that cannot be unpacked is `Format.UNKNOWN` with `is_gzip` set."""
    if not is_gzip(data):
        return sniff_plain(data)
    try:
        return replace(sniff_plain(unwrap(data)), is_gzip=True)
    except HloError:
        return Sniffed(Format.UNKNOWN, is_gzip=True)


def sniff_plain(data: bytes) -> Sniffed:
    """What unpacked `data` is."""
    if data[:4] == b"ML\xefR":
        return Sniffed(Format.MLIR_BYTECODE)
    if is_jax_export(data):
        return Sniffed(Format.JAX_EXPORT)
    head = data[:_HEAD_BYTES].removeprefix(b"\xef\xbb\xbf")
    # A stray NUL in HLO text is the text reader's to report; protos begin 0a 07 ... or the like.
    if _KEYWORD.match(head) or not _CONTROL.search(head, 0, 4096):
        return _sniff_text(head.decode("utf-8", errors="replace"), data)
    container = kinds.by_structure(data)
    return Sniffed(Format.UNKNOWN if container is None else Format.PROTO, container=container)


_HEAD_BYTES = 1 << 16
"""Looked at before deciding between the text formats."""

_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_KEYWORD = re.compile(rb"\s*(?:HloModule|ENTRY|ROOT|module)\b")

_SKIP = re.compile(r"(?:\s+|//[^\r\n]*|/\*.*?\*/|#(?![\w.$-]+\s*=)[^\n]*)*", re.DOTALL)
"""Blanks and the comments of all formats; `#name =` is an MLIR alias."""

_JSON = re.compile(r'\{\s*(?:["}]|$)')

_MLIR = re.compile(
    r"""
      \# | ! | "[\w.$-]+" \s* [(<] | \{-\#                  # aliases, generic operations, resources
    | (?: builtin\. )? module \s* (?: \{ | @ | attributes\b )
    | %\d | %[\w.$-]+ (?: :\d+ )? (?: \s*,\s* %[\w.$-]+ )* \s* = \s* (?: " | \w+\.[a-z] )
    | [a-z]\w* (?: \.[a-z]\w* )+ \s* (?: @ | \{\s*(?:\}|$|\^) | attributes\b | private\b | public\b | " | % )
    """,
    re.VERBOSE,
)

_HLO_DIALECT = re.compile(
    r"""(?<![\w."])"?(?:hlo\.(?:computation|[a-z_]+")|structured\.kernel\b)"""
)


def is_hlo_dialect(text: str) -> bool:
    """Whether MLIR text is of the hlo dialect or of kernels around it; other text is StableHLO, or MLIR.

    Modules of the hlo dialect hold computations; a module without any has attributes `hlo.…`.
    """
    if _HLO_DIALECT.search(text) is not None:
        return True
    return (
        re.match(r"\s*(?:builtin\.)?module[^\n]*attributes \{[^\n]*\bhlo\.\w+ =", text) is not None
    )


_PROTO_FIELD = re.compile(r"([A-Za-z_]\w*)\s*([:{<])")
_HLO_BODY = re.compile(r"\s*(?:ROOT\b|%|[\w.-]+\s+=)")

_HLO = re.compile(
    r"""
      (?: HloModule | ENTRY | ROOT ) \b
    | %?[A-Za-z_][\w.-]* \s* (?: = | \( | \{ )            # instruction, signature, body
    | [a-z]\w* \[ | \(                                     # shape of a single instruction
    """,
    re.VERBOSE,
)


def _sniff_text(head: str, data: bytes) -> Sniffed:
    skipped = _SKIP.match(head)
    text = head[skipped.end() :] if skipped is not None else head
    if _JSON.match(text):
        return Sniffed(Format.PROTO_JSON, container=kinds.by_names(_json_names(data)))
    if _MLIR.match(text):
        return Sniffed(Format.MLIR_TEXT)
    field = _PROTO_FIELD.match(text)
    if (
        field is not None
        and kinds.is_top_level_name(field[1])
        and not (field[2] == "{" and _HLO_BODY.match(text, field.end()))
    ):
        return Sniffed(Format.PROTO_TEXT, container=kinds.by_names(_text_names(data)))
    return Sniffed(Format.HLO_TEXT if _HLO.match(text) else Format.UNKNOWN)


_TEXT_TOKEN = re.compile(
    r"""(?:"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'|\#[^\n]*)
      | (?P<open>[{<]) | (?P<close>[}>]) | (?P<name>[A-Za-z_]\w*) (?=\s*[:{<])""",
    re.VERBOSE,
)
_JSON_TOKEN = re.compile(
    r"""(?P<name>"[^"\\]*+(?:\\.[^"\\]*+)*+")(?=\s*:) | "[^"\\]*+(?:\\.[^"\\]*+)*+"
      | (?P<open>[{\[]) | (?P<close>[}\]])""",
    re.VERBOSE,
)


def _text_names(data: bytes) -> frozenset[str]:
    """Field names at the top level of protobuf text."""
    return _names(_TEXT_TOKEN, data.decode("utf-8", errors="replace"), depth=0)


def _json_names(data: bytes) -> frozenset[str]:
    """Keys of the outermost JSON object, in the spelling of `.proto` files."""
    found = _names(_JSON_TOKEN, data.decode("utf-8", errors="replace"), depth=1)
    return frozenset(re.sub(r"(?<!^)(?=[A-Z])", "_", name.strip('"')).lower() for name in found)


def _names(token: re.Pattern[str], text: str, depth: int) -> frozenset[str]:
    found: set[str] = set()
    level = 0
    for match in token.finditer(text):
        match match.lastgroup:
            case "open":
                level += 1
            case "close":
                level -= 1
            case "name" if level == depth:
                found.add(match["name"])
            case _:
                pass
    return frozenset(found)
