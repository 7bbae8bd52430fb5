"""A traced program as JAX prints its own: text, a page, and a profile of how many equations there are."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mlirhlo.debug.pprof import pprof_profile
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import ConstantOp, ParameterOp, TupleOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.formats.hlo_text import PrintOptions
from mlirhlo.formats.hlo_text.printer import ModulePrinter

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


def jaxpr_text(op: ModuleOp) -> str:
    """`{ lambda constants ; parameters. let equations in (results,) }`.

    The equations are HLO's instructions: attributes stand in brackets as HLO text has them.
    """
    module = HloModule(op)
    entry = module.entry
    printer = ModulePrinter(module, PrintOptions(metadata=False, percent=False))
    letters: dict[Instruction, str] = {}
    order = printer.ordered(entry)
    constants = [o for o in order if isinstance(o, ConstantOp) and not _is_scalar(o)]
    for instruction in (*constants, *entry.parameters, *order):
        if instruction not in letters and not _is_scalar(instruction):
            letters[instruction] = _letters(len(letters))
    lines: list[str] = []
    for instruction in order:
        if isinstance(instruction, ConstantOp | ParameterOp | TupleOp):
            continue
        text = printer.instruction_text(instruction, 0)
        attributes = text.rpartition(")")[2].lstrip(", ") if ", " in text else ""
        given = " ".join(_operand(v.owner, letters) for v in instruction.inputs)
        called = instruction.opcode.name.replace("-", "_") + (
            f"[{attributes}]" if attributes else ""
        )
        lines.append(f"    {_typed(instruction, letters)} = {called} {given}".rstrip())
    root = entry.root
    results = [v.owner for v in root.inputs] if isinstance(root, TupleOp) else [root]
    given = ", ".join(_operand(r, letters) for r in results) + ("," if len(results) == 1 else "")
    first = " ".join(_typed(c, letters) for c in constants)
    second = " ".join(_typed(p, letters) for p in entry.parameters)
    head = f"{{ lambda {first}; {second}. let"
    return "\n".join([head, *lines, f"  in ({given}) }}"]) + "\n"


def _is_scalar(op: Instruction) -> bool:
    return isinstance(op, ConstantOp) and isinstance(op.shape, ArrayShape) and not op.shape.rank


def _letters(number: int) -> str:
    """a, b, …, z, ba, bb, … as JAX counts."""
    text = chr(97 + number % 26)
    while number >= 26:
        number //= 26
        text = chr(97 + number % 26) + text
    return text


def _typed(op: Instruction, letters: dict[Instruction, str]) -> str:
    return f"{letters[op]}:{op.shape.to_string(layout=False)}"


def _operand(owner: object, letters: dict[Instruction, str]) -> str:
    if not isinstance(owner, Instruction):
        return "_"
    if isinstance(owner, ConstantOp) and owner not in letters and owner.literal is not None:
        return f"{owner.literal.to_text()}:{owner.shape.to_string(layout=False)}"
    return letters[owner]


def jaxpr_html(op: ModuleOp, title: str) -> str:
    """The text on a page."""
    head = f'<!doctype html><meta charset="utf-8"><title>{html.escape(title)}</title>'
    return f"{head}<pre>{html.escape(jaxpr_text(op))}</pre>\n"


def equation_profile(op: ModuleOp) -> bytes:
    """How many equations there are of each kind and place: a pprof profile, gzipped."""
    return pprof_profile(Counter(_places(HloModule(op))), "equation_count", "count")


def _places(module: HloModule) -> Iterator[tuple[str, ...]]:
    """Kind of each equation, then the names around it from the inside out."""
    for instruction in module.instructions:
        if isinstance(instruction, ConstantOp | ParameterOp | TupleOp):
            continue
        metadata = instruction.metadata
        path = metadata.op_name.split("/") if metadata is not None and metadata.op_name else []
        yield (instruction.opcode.name, *reversed(path))
