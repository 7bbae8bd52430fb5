"""How LLVM's assembly spells names, bytes and float constants.

Source: LLVM language reference.
"""

from __future__ import annotations

import functools
import struct

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type
from xdsl.ir import Attribute

from mlirhlo.diagnostics import error


@functools.lru_cache(1 << 12)
def symbol(name: str) -> str:
    """A symbol as LLVM writes it after `@`."""
    if name and all(c.isascii() and (c.isalnum() or c in "._$-") for c in name):
        return name if not name[0].isdigit() else f'"{name}"'
    return bytes_text(name.encode().decode("latin-1"))


def float_text(value: float, type_: Attribute) -> str:
    """A float constant in LLVM's hexadecimal spelling of its bits."""
    if isinstance(type_, Float32Type):
        bits = struct.unpack(">Q", struct.pack(">d", _as_f32(value)))[0]
        return f"0x{bits:016X}"
    if isinstance(type_, Float64Type):
        return f"0x{struct.unpack('>Q', struct.pack('>d', value))[0]:016X}"
    if isinstance(type_, Float16Type):
        return f"0xH{struct.unpack('>H', struct.pack('>e', value))[0]:04X}"
    if isinstance(type_, BFloat16Type):
        bits = struct.unpack(">I", struct.pack(">f", value))[0]
        if value != value:
            return "0xR7FC0"
        rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
        return f"0xR{rounded:04X}"
    raise error("HLO0430", f"LLVM has no constants of type `{type_}`")


def _as_f32(value: float) -> float:
    try:
        single: float = struct.unpack(">f", struct.pack(">f", value))[0]
        return single
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def bytes_text(data: str) -> str:
    """Bytes, each a character, within quotes."""
    return f'"{data.translate(_BYTES)}"'


_BYTES = {
    n: chr(n) if 0x20 <= n < 0x7F and chr(n) not in '"\\' else f"\\{n:02X}" for n in range(256)
}
