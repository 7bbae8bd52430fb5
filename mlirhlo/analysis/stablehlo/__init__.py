"""The rules of StableHLO and CHLO: numbered constraints, and the types results follow to have.

`verify_module` says what is wrong with a program, `infer_types` what an op yields. The numbers are
those of the StableHLO specification; a rule that the hlo dialect has too (windows, fitting sizes)
is the same function. CHLO, and the deprecated ops that the specification leaves out, have numbers
of their own.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation

from mlirhlo.analysis.stablehlo import (
    chlo,
    collectives,
    control_flow,
    convolution,
    data_movement,
    dynamism,
    elementwise,
    indexing,
    linear_algebra,
    reduction,
)
from mlirhlo.analysis.stablehlo.base import CONSTRAINTS, ConstraintError, Given
from mlirhlo.analysis.stablehlo.places import place_of
from mlirhlo.analysis.stablehlo.shardings import check_shardings, meshes_of
from mlirhlo.analysis.stablehlo.verifier import check, infer
from mlirhlo.diagnostics import Diagnostic

__all__ = ["CONSTRAINTS", "ConstraintError", "Given", "infer_types", "verify_module", "verify_op"]

FAMILIES = (
    chlo,
    collectives,
    control_flow,
    convolution,
    data_movement,
    dynamism,
    elementwise,
    indexing,
    linear_algebra,
    reduction,
)
"""Modules with rules; importing them registers the rules."""

MOST_DIAGNOSTICS = 100
"""A program that breaks more rules than this is not looked at any further."""

_DIALECTS = ("stablehlo.", "chlo.")
_TERMINATORS = ("stablehlo.return", "func.return", "sdy.return")


def infer_types(op: Operation | Given) -> tuple[Attribute, ...] | None:
    """Types of the results of an op, from its operands, attributes and regions.

    None for ops whose results these do not determine (`reshape`, `custom_call`, …) and those whose
    shape operand is not known. A builder that has no op yet passes a `Given`. The declared types
    of an op are looked at only for what nothing else says: the element type of a `convert` or a
    product. Raises `ConstraintError` when a constraint is broken.
    """
    return infer(op if isinstance(op, Given) else Given.of(op))


def verify_op(op: Operation) -> ConstraintError | None:
    """The first constraint that an op breaks; None where it is sound."""
    try:
        check(Given.of(op))
    except ConstraintError as problem:
        return problem
    return None


def verify_module(
    module: ModuleOp, *, file: str = "<module>", limit: int = MOST_DIAGNOSTICS
) -> list[Diagnostic]:
    """What is wrong with the StableHLO and CHLO ops of `module`, and with its shardings, in program
    order; at most `limit` diagnostics. `file` stands in places of ops that were not read from text.
    """
    found: list[Diagnostic] = []
    meshes = meshes_of(module)
    for op in module.walk():
        problem = verify_op(op) if op.name.startswith(_DIALECTS) else None
        if op.name in _TERMINATORS and op.next_op is not None:
            name = op.name.removeprefix("stablehlo.")
            problem = ConstraintError(f"{name}_form", "must be the last op of its block")
        if problem is None:
            try:
                check_shardings(op, meshes)
            except ConstraintError as broken:
                problem = broken
        if problem is not None:
            found.append(_diagnostic(op, problem, file))
            if len(found) >= limit:
                break
    return found


def _diagnostic(op: Operation, problem: ConstraintError, file: str) -> Diagnostic:
    code = "HLO0120"
    if problem.constraint.endswith("_form"):
        code = "HLO0121"
    elif problem.constraint.startswith("chlo."):
        code = "HLO0122"
    elif problem.constraint.startswith("sdy."):
        code = "HLO0123"
    said = CONSTRAINTS.get(problem.constraint)
    return Diagnostic(
        code,
        f"{op.name}: {problem.message} [{problem.constraint}]",
        place_of(op, problem.operand, problem.attribute, file),
        notes=() if said is None else ((f"{problem.constraint}: {said}", None),),
        help=problem.help,
    )
