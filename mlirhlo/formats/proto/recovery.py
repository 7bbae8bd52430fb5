"""The table of recovered original values, which the dialect carries as HLO text.

Its entries may hold whole modules, so this is the one place of the codec that reads and prints HLO
text. `decode` and `encode` are the codec of those modules. Source: HLO text, "Module header".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.attributes.annotations import OriginalArray, read_original_array
from mlirhlo.dialects.hlo.syntax import Cursor, SyntaxProblem, quote
from mlirhlo.formats.hlo_text import parse_module, print_module
from mlirhlo.formats.proto.annotations import original_array_bytes, original_array_of
from mlirhlo.formats.proto.message import bytes_field
from mlirhlo.formats.proto.module_pb2 import HloModuleProto, OriginalValueRecoveryTableProto

Decode: TypeAlias = Callable[[HloModuleProto], ModuleOp]
Encode: TypeAlias = Callable[[ModuleOp], HloModuleProto]


def recovery_of(proto: OriginalValueRecoveryTableProto, decode: Decode) -> str:
    """The table as HLO text."""
    lines: list[str] = []
    for entry in proto.entries:
        old = original_array_of(entry.old_original_array)
        new = original_array_of(entry.new_original_array)
        line = f"  {{{old}}} : {{{new}}}"
        if entry.HasField("recovery_module"):
            text = print_module(decode(entry.recovery_module))
            line += ",\n" + quote("\n    " + text.strip().replace("\n", "\n    ") + "\n  ")
        lines.append(line)
    return "{\n" + "\n".join(lines) + "\n}"


def recovery_bytes(text: str, encode: Encode) -> bytes:
    """The serialised table. Raises `HloError` HLO0208 when the text is no table."""
    cursor = Cursor(text)
    parts: list[bytes] = []
    try:
        cursor.expect("{")
        while not cursor.accept("}"):
            parts.append(bytes_field(1, _entry_bytes(cursor, encode)))
    except SyntaxProblem as problem:
        raise error("HLO0208", f"origin_recovery_table: {problem.message}") from None
    return b"".join(parts)


def _entry_bytes(cursor: Cursor, encode: Encode) -> bytes:
    old = _array(cursor)
    cursor.expect(":")
    data = bytes_field(1, original_array_bytes(old))
    data += bytes_field(2, original_array_bytes(_array(cursor)))
    if not cursor.accept(","):
        return data
    if cursor.peek("{"):
        return data
    module = encode(parse_module(cursor.string(), "<recovery module>"))
    return data + bytes_field(3, module.SerializeToString(deterministic=True))


def _array(cursor: Cursor) -> OriginalArray:
    cursor.expect("{")
    array = read_original_array(cursor)
    cursor.expect("}")
    return array
