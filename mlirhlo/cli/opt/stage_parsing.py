"""Text of the stages behind HLO, parsed."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, TypeAlias

from mlirhlo.diagnostics import error
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.dialects import amx, arith, llvm, memref, vector, x86, x86vector


if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Dialect

Stage: TypeAlias = "ModuleOp | str | bytes"
"""A program at a stage: operations, text, or object code."""

_BITS = r'dense<([^>"]*\b0x[^>"]*)>'
_DENSE = re.compile(_BITS + r" : (vector|tensor)<(\d+)x(bf16|f16|f32|f64)>")
_GLOBAL = re.compile(r"(memref<(\d+)x(bf16|f16|f32|f64)\b[^>]*>) = " + _BITS)


def parsed(text: str, name: str, context: Context) -> ModuleOp:
    """A module of a later stage from its text. Raises `HloError` HLO0430."""
    from xdsl.parser import Parser
    from xdsl.utils.exceptions import ParseError, VerifyException

    try:
        module = Parser(context, _with_bits(text), name).parse_module()
        module.verify()
    except ParseError as problem:
        line = text.count("\n", 0, problem.span.start) + 1
        raise error("HLO0430", f"{name}:{line}: {problem.msg}") from None
    except VerifyException as problem:
        raise error("HLO0430", f"{name} does not verify: {str(problem).splitlines()[0]}") from None
    return module


def _with_bits(text: str) -> str:
    """Vectors, tensors and memory of floats whose bits are spelled, as bytes: xDSL 0.74 prints `dense<0xFF800000>` for
    minus infinity and for what has no digits behind the point, and reads it as an integer."""

    def dense(match: re.Match[str]) -> str:
        listed, kind, count, element = match.groups()
        return f"{_as_bytes(listed, int(count), element)} : {kind}<{count}x{element}>"

    def global_(match: re.Match[str]) -> str:
        type_, count, element, listed = match.groups()
        return f"{type_} = {_as_bytes(listed, int(count), element)}"

    return _GLOBAL.sub(global_, _DENSE.sub(dense, text))


def _as_bytes(listed: str, count: int, element: str) -> str:
    """Elements as `dense` with their bytes; one stands for all."""
    width = {"f64": 8, "f32": 4}.get(element, 2)
    words = [w.strip() for w in listed.strip("[]").split(",")]
    found = b"".join(_bits(word, element, width) for word in words)
    if len(words) == 1:
        found *= count
    return f'dense<"0x{found.hex().upper()}">'


def _bits(word: str, element: str, width: int) -> bytes:
    if word.startswith("0x"):
        return int(word, 16).to_bytes(width, "little")
    if element == "bf16":
        return struct.pack("<f", float(word))[2:]
    return struct.pack({"f64": "<d", "f32": "<f", "f16": "<e"}[element], float(word))


def dialects() -> Sequence[Dialect]:
    """The dialects of the stages behind HLO."""
    from xdsl.dialects.builtin import Builtin
    from xdsl.dialects.func import Func
    from xdsl.dialects.math import Math
    from xdsl.dialects.scf import Scf

    return (
        Builtin,
        Func,
        Scf,
        memref.MemRef,
        Math,
        arith.Arith,
        vector.Vector,
        amx.AMX,
        x86vector.X86Vector,
        x86.X86,
        llvm.LLVM,
    )


def context() -> Context:
    """A context that knows `dialects`."""
    from xdsl.context import Context

    ctx = Context()
    for dialect in dialects():
        ctx.load_dialect(dialect)
    return ctx
