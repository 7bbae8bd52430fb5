"""Neutral elements of reducers: the initial values that change no result.

Source: operation semantics, "Reduce": XLA may apply the initial value any number of times and
expects a neutral one. A transformation that drops or repeats an initial value asks here first.
"""

from __future__ import annotations

from mlirhlo.dialects.hlo.identities import identity_element
from mlirhlo.dialects.hlo.ops import TupleOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.shapes import ArrayShape


def neutral_element(reducer: ComputationOp) -> complex | None:
    """The neutral element of a reducer of one array that is one binary opcode; else None.

    Of a sum of floats it is -0.0, which keeps the sign of zeros.
    """
    found = neutral_elements(reducer)
    return found[0] if found is not None and len(found) == 1 else None


def neutral_elements(reducer: ComputationOp) -> tuple[complex, ...] | None:
    """The neutral element of each array that `reducer` combines, in order.

    None unless result k is one binary opcode on the k-th value of both sides and has a neutral
    element: a reducer that mixes its arrays, such as that of an arg-max, has none.
    """
    root, parameters = reducer.root, reducer.parameters
    results = [value.owner for value in root.inputs] if isinstance(root, TupleOp) else [root]
    if len(parameters) != 2 * len(results):
        return None
    elements: list[complex] = []
    for index, op in enumerate(results):
        pair = {parameters[index].output, parameters[index + len(results)].output}
        if not isinstance(op, Instruction) or len(op.operands) != 2 or {*op.operands} != pair:
            return None
        shape = op.shape
        if not isinstance(shape, ArrayShape):
            return None
        element = identity_element(op.opcode, shape.element_type)
        if element is None:
            return None
        elements.append(element)
    return tuple(elements)
