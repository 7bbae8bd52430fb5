"""Shape inference: what an instruction's operands and attributes make of its result.

`infer` gives the shape XLA gives an instruction whose shape is left out. `check_declared` holds a
declared shape against the rules, and adds the checks that XLA's own inference lets pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Attribute

from mlirhlo.analysis.shape_inference import (
    asynchronous,
    collectives,
    control_flow,
    conversion,
    convolution,
    data_movement,
    dot,
    elementwise,
    indexing,
    linear_algebra,
    reduction,
    scan,
    selection,
    slicing,
)
from mlirhlo.analysis.shape_inference.base import (
    CHECKS,
    CONSTRAINTS,
    INFERENCES,
    ConstraintError,
    Given,
    plain,
    same_but_precision,
)
from mlirhlo.dialects.hlo.attributes.header import ProgramLayout
from mlirhlo.dialects.hlo.shapes import Shape, compatible
from mlirhlo.dialects.hlo.table import OPCODES, Arity, opcodes

__all__ = ["CONSTRAINTS", "ConstraintError", "check_declared", "infer"]

FAMILIES = (
    asynchronous,
    collectives,
    control_flow,
    conversion,
    convolution,
    data_movement,
    dot,
    elementwise,
    indexing,
    linear_algebra,
    reduction,
    scan,
    selection,
    slicing,
)
"""Modules with rules; importing them registers the rules."""

_NO_CALLEES: Mapping[str, ProgramLayout] = {}


def infer(
    opcode: str,
    operand_shapes: Sequence[Shape],
    properties: Mapping[str, Attribute],
    callees: Mapping[str, ProgramLayout] = _NO_CALLEES,
) -> Shape:
    """Shape of the result of `opcode`. `callees` has the signature of each computation called.

    Raises `ConstraintError` when operands or attributes break a constraint, and for opcodes whose
    shape must be written (`instruction_c3`).
    """
    given = Given(opcode, tuple(operand_shapes), properties, callees)
    _check_form(given)
    rule = INFERENCES.get(opcode)
    if rule is None:
        raise ConstraintError("instruction_c3", f"cannot infer shape for opcode: {opcode}")
    return rule(given)


def check_declared(
    opcode: str,
    declared: Shape,
    operand_shapes: Sequence[Shape],
    properties: Mapping[str, Attribute],
    callees: Mapping[str, ProgramLayout] = _NO_CALLEES,
) -> None:
    """Raises `ConstraintError` unless an instruction with the shape `declared` keeps every constraint."""
    given = Given(opcode, tuple(operand_shapes), properties, callees, declared)
    _check_form(given)
    rule = INFERENCES.get(opcode)
    if rule is not None:
        inferred = rule(given)
        if not _agree(opcode, declared, inferred):
            raise ConstraintError(
                "instruction_c4",
                f"the declared shape is {plain(declared)}, but {opcode} of these operands gives"
                f" {plain(inferred)}",
            )
    check = CHECKS.get(opcode)
    if check is not None:
        check(given)


_EXACT = opcodes(lambda row: row.handles_whole) | {"copy-done"}
"""Opcodes that pass values through: no change of precision hides in them."""


def _agree(opcode: str, declared: Shape, inferred: Shape) -> bool:
    if compatible(declared, inferred):
        return True
    return opcode not in _EXACT and same_but_precision(declared, inferred)


def _check_form(given: Given) -> None:
    """Operand count and required attributes, as the opcode's row says."""
    row = OPCODES[given.opcode]
    count = len(given.operands)
    arity = row.arity
    if isinstance(arity, int):
        holds, wanted = count == arity, f"{arity} operands"
    else:
        holds = {
            Arity.ANY: True,
            Arity.EVEN: count % 2 == 0,
            Arity.ODD: count % 2 == 1,
            Arity.NONE: count == 0,
        }[arity]
        wanted = f"{arity.value} operands"
    if not holds:  # instruction_c1
        raise ConstraintError("instruction_c1", f"expects {wanted}, but has {count} operands")
    for spec in row.attributes:
        if spec.required and not spec.read_only and spec.property_name not in given.properties:
            raise ConstraintError(  # instruction_c2
                "instruction_c2", f"attribute {spec.key} is expected but not seen"
            )
