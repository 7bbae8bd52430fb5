"""Neutral elements of reducers: the initial values that change no result.

Source: operation semantics, "Reduce": XLA may apply the initial value any number of times and
expects a neutral one. A transformation that drops or repeats an initial value asks here first.
"""

from __future__ import annotations

from mlirhlo.dialects.hlo.element_types import PRED, PrimitiveType
from mlirhlo.dialects.hlo.ops import TupleOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.shapes import ArrayShape


def neutral_element(reducer: ComputationOp) -> float | None:
    """The neutral element of a reducer of one array that is one binary opcode; else None.

    Of a sum of floats it is -0.0, which keeps the sign of zeros.
    """
    found = neutral_elements(reducer)
    return found[0] if found is not None and len(found) == 1 else None


def neutral_elements(reducer: ComputationOp) -> tuple[float, ...] | None:
    """The neutral element of each array that `reducer` combines, in order.

    None unless result k is one binary opcode on the k-th value of both sides and has a neutral
    element: a reducer that mixes its arrays, such as that of an arg-max, has none.
    """
    root, parameters = reducer.root, reducer.parameters
    results = [value.owner for value in root.inputs] if isinstance(root, TupleOp) else [root]
    if len(parameters) != 2 * len(results):
        return None
    elements: list[float] = []
    for index, op in enumerate(results):
        pair = {parameters[index].output, parameters[index + len(results)].output}
        if not isinstance(op, Instruction) or len(op.operands) != 2 or {*op.operands} != pair:
            return None
        element = _of_opcode(op)
        if element is None:
            return None
        elements.append(element)
    return tuple(elements)


def _of_opcode(op: Instruction) -> float | None:
    if not isinstance(op.shape, ArrayShape):
        return None
    type_ = op.shape.element_type
    match op.opcode.name:
        case "add":
            return -0.0 if type_.is_float else 0
        case "multiply":
            return 1
        case "or" | "xor":
            return 0
        case "and":
            return True if type_ is PRED else _all_ones(type_)
        case "maximum" | "minimum" as name:
            return _extreme(type_, lowest=name == "maximum")
        case _:
            return None


def _all_ones(type_: PrimitiveType) -> int:
    return -1 if type_.is_signed else (1 << type_.bits) - 1


def _extreme(type_: PrimitiveType, *, lowest: bool) -> float | None:
    """The lowest or the highest number of a type; None for types without an order of all numbers."""
    if type_ is PRED:
        return not lowest
    if type_.is_float:
        return (float("-inf") if lowest else float("inf")) if type_.bits >= 16 else None
    if type_.is_complex:
        return None
    bits = type_.bits - type_.is_signed
    return (-(1 << bits) if type_.is_signed else 0) if lowest else (1 << bits) - 1
