"""Files of later stages as input of `hlo-opt --platform=cpu --stage=…`: loops, llvm-dialect, llvm."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

from mlirhlo.cli.opt import gpu_stages
from mlirhlo.diagnostics import error
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.dialects import amx, arith, llvm, memref, vector, x86, x86vector
    from mlirhlo.lowering import llvm_text, loops, loops_to_llvm
    from mlirhlo.lowering.cpu import compiler, emit
    from mlirhlo.lowering.loops import passes
    from mlirhlo.runtime import jit


if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Dialect

    from mlirhlo.cli.opt.stages import Stage

_STAGES = ("structured", "scheduled", "loops", "llvm-dialect", "llvm", "asm", "obj")
_LLVM = re.compile(rb"^(define|declare) ", re.MULTILINE)
_PROGRAM = re.compile(rb"^\s*HloModule\b|(?<![a-z])(?:stablehlo|hlo)\.")
_BITS = r'dense<([^>"]*\b0x[^>"]*)>'
_DENSE = re.compile(_BITS + r" : (vector|tensor)<(\d+)x(bf16|f16|f32|f64)>")
_GLOBAL = re.compile(r"(memref<(\d+)x(bf16|f16|f32|f64)\b[^>]*>) = " + _BITS)
_DIALECT = re.compile(rb'^\s*"?llvm\.func"?\b', re.MULTILINE)
_LOOPS = re.compile(rb'^\s*"?func\.func"?\b', re.MULTILINE)


def stage_of(data: bytes) -> str | None:
    """The stage whose print this is, by its content; None for a program that is still HLO."""
    if gpu_stages.STRUCTURED_KERNEL.search(data):
        return "scheduled" if gpu_stages.SCHEDULE.search(data) else "structured"
    if _PROGRAM.search(data):
        return None
    if _DIALECT.search(data):
        return "llvm-dialect"
    if _LOOPS.search(data) and b"memref<" in data:
        return "loops"
    return "llvm" if _LLVM.search(data) and b"builtin.module" not in data else None


def continued(data: bytes, given: str, wanted: str, name: str) -> Stage:
    """The wanted stage of what was printed at a given one.

    Structured kernels become a module of their functions, without a `main` that calls them.

    Raises `HloError` HLO0430, HLO0431 and HLO0433 for what the following stages refuse, HLO0432 for kernels that
    have no loops, HLO0806 for schedules that are none of the CPU's, HLO0502 for a stage in front of the given one.
    """
    if _STAGES.index(wanted) < _STAGES.index(given):
        raise error("HLO0502", f"{name} is of stage '{given}': nothing makes '{wanted}' of it")
    text = data.decode()
    if given != "llvm":
        is_structured = given in ("structured", "scheduled")
        module = parsed(text, name, gpu_stages.context() if is_structured else context())
        if is_structured:
            module, given = _without_structure(module, given, wanted)
        if given == "loops" and wanted != "loops":
            module = loops_to_llvm.convert_to_llvm(
                module, features=compiler.FEATURES, entry=emit.MAIN
            )
            given = "llvm-dialect"
        if wanted == given:
            return module
        text = llvm_text.print_llvm(module)
    if wanted == "llvm":
        return text
    return jit.compile_assembly(text) if wanted == "asm" else jit.compile_object(text)


def _without_structure(module: ModuleOp, given: str, wanted: str) -> tuple[ModuleOp, str]:
    """Structured kernels at the wanted stage, at the latest as loops; the module and its stage."""
    if given == "structured" and wanted != given:
        passes.schedule_all(module)
        given = "scheduled"
    if given == "scheduled" and wanted != given:
        return loops.loops_of(module), "loops"
    return module, given


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
