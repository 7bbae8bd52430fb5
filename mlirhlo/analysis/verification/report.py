"""The diagnostics the verifier collects: code, numbered constraint, place, note, help."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.ir import Operation

from mlirhlo.analysis.shape_inference.base import CONSTRAINTS, ConstraintError
from mlirhlo.analysis.verification.locations import place_of
from mlirhlo.diagnostics import Diagnostic, Place
from mlirhlo.dialects.hlo.module import source_of
from mlirhlo.dialects.hlo.ops import ComputationOp
from mlirhlo.dialects.hlo.ops.base import Instruction

FORM = "HLO0101"
"""An instruction lacks an attribute or has a wrong number of operands."""
CONSTRAINT = "HLO0102"
"""Operands or attributes break a constraint of the opcode."""
SHAPE = "HLO0103"
"""The declared shape is not what the opcode gives."""
COMPUTATION = "HLO0104"
"""A computation is not well formed."""
CALLS = "HLO0105"
"""Computations call each other wrongly."""
HEADER = "HLO0106"
"""The module's header does not fit the module."""
PAIRS = "HLO0107"
"""A start has no matching done, or channels do not fit."""
GROUPS = "HLO0108"
"""The devices of a collective do not fit the module."""
LAYOUT = "HLO0109"
"""A layout or sharding does not fit its shape."""

Authors: TypeAlias = Mapping[Operation, tuple[str, Place]]
"""The rules that wrote instructions, and where they are defined."""

_CODES = {"instruction_c1": FORM, "instruction_c2": FORM, "instruction_c4": SHAPE}


@dataclass(slots=True)
class Report:
    """Diagnostics in program order."""

    file: str
    limit: int
    authors: Authors = field(default_factory=dict[Operation, tuple[str, Place]])
    found: list[Diagnostic] = field(default_factory=list[Diagnostic])

    @property
    def is_full(self) -> bool:
        """Whether as many were found as are worth showing."""
        return len(self.found) >= self.limit

    def broken(self, op: Instruction, problem: ConstraintError) -> None:
        """An instruction breaks a constraint of its opcode."""
        self.add(
            _CODES.get(problem.constraint, CONSTRAINT),
            problem.constraint,
            f"{op.opcode.name}: {problem.message}",
            op,
            operand=problem.operand,
            attribute=problem.attribute,
            help=problem.help,
        )

    def add(
        self,
        code: str,
        constraint: str,
        message: str,
        at: Instruction | ComputationOp | None = None,
        *,
        operand: int | None = None,
        attribute: str | None = None,
        help: str | None = None,
        note: tuple[str, Instruction] | None = None,
    ) -> None:
        """Adds a diagnostic under a numbered constraint. `note` names a second instruction; the
        definition of `operand` is noted by itself."""
        if self.is_full:
            return
        assert constraint in CONSTRAINTS, constraint
        notes: list[tuple[str, Place | None]] = []
        if isinstance(at, Instruction):
            place: Place | None = place_of(at, operand, attribute, self.file)
            definition = (
                at.defining(operand) if operand is not None and operand < len(at.operands) else None
            )
            if isinstance(definition, Instruction) and note is None:
                note = (f"%{definition.instruction_name} is defined", definition)
        elif at is not None:
            place = self._place_of_computation(at)
        else:
            place = Place(self.file)
        if note is not None:
            where = source_of(note[1])
            notes.append((note[0], None if where is None else _bare(where[0].place(where[1]))))
        if at is not None and (author := self.authors.get(at)) is not None:
            notes.append((f"rule '{author[0]}' wrote the instruction", author[1]))
        self.found.append(Diagnostic(code, f"{message} [{constraint}]", place, tuple(notes), help))

    def _place_of_computation(self, computation: ComputationOp) -> Place:
        first = next(computation.instructions, None)
        where = None if first is None else source_of(first)
        name = computation.computation_name
        if where is None:
            return Place(self.file, what=f"%{name}")
        source, offset = where
        start = source.text.rfind("{", 0, offset)
        start = source.text.rfind("\n", 0, start) + 1 if start >= 0 else offset
        at = source.text.find(name, start, offset)
        return source.place(at, len(name)) if at >= 0 else source.place(start)


def _bare(place: Place) -> Place:
    """The place without its line of text: notes are one line."""
    return Place(place.file, place.line, place.column, place.length)
