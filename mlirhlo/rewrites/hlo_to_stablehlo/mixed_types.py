"""Instructions whose operands or result have other element types than the opcode asks for.

XLA:TPU folds converts into copies, pads, selects, reductions and convolutions. StableHLO wants them
spelled out: operands are converted to the type the work is done in, the result to the declared one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.rewrites.hlo_to_stablehlo.types import leaves

_PAIRS = ("reduce", "reduce-window")
_PRODUCTS = ("convolution", "dot")


def _data(op: Instruction) -> dict[int, int] | None:
    """Which operands hold data, and of which result leaf; None for opcodes that are not asked."""
    name = op.opcode.name
    count = len(op.inputs)
    if name in _PAIRS:
        return {i: i % (count // 2) for i in range(count)}
    if name == "scatter":
        half = count // 2
        return {i: i % (half + 1) for i in range(count) if i != half}
    if (name in _PRODUCTS and count == 2) or name == "compare":
        return {0: 0, 1: 0}
    if op.opcode.gives_real and cast(ArrayShape, op.input_shapes[0]).element_type.is_complex:
        return None
    return dict.fromkeys(op.opcode.data_operands(count), 0) or None


def _element_type(shape: Shape) -> PrimitiveType | None:
    return shape.element_type if isinstance(shape, ArrayShape) else None


def _wider(types: Sequence[PrimitiveType]) -> PrimitiveType:
    return max(types, key=lambda t: (t.is_complex, t.is_float, t.bits))


def working_types(op: Instruction) -> tuple[dict[int, PrimitiveType], list[PrimitiveType]] | None:
    """The types to convert operands to, and those that the results have then.

    None where nothing is mixed, which is nearly always.
    """
    data = _data(op)
    if data is None:
        return None
    declared = [_element_type(leaf) for leaf in leaves(op.shape)]
    inputs = op.input_shapes
    given = {i: _element_type(inputs[i]) for i in data}
    if None in declared or None in given.values():
        return None
    own = op.opcode.name in (*_PRODUCTS, "compare")
    types = [cast(PrimitiveType, d) for d in declared]
    if all(t is (given[0] if own else types[data[i]]) for i, t in given.items()):
        return None
    operands: dict[int, PrimitiveType] = {}
    results = list(types)
    for leaf in set(data.values()):
        group = [i for i, of in data.items() if of == leaf]
        found = [cast(PrimitiveType, given[i]) for i in group]
        together = op.opcode.elementwise or own
        work = _wider(found) if together else found[0]
        operands.update(dict.fromkeys(group, work))
        if not own:
            results[leaf] = work
    return operands, results


def retyped(shape: Shape, types: Iterator[PrimitiveType]) -> Shape:
    """The shape with the next of `types` as the element type of each array, leaf by leaf."""
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(retyped(element, types) for element in shape.elements))
    assert isinstance(shape, ArrayShape)
    return with_type(shape, next(types))


def with_type(shape: ArrayShape, type_: PrimitiveType) -> ArrayShape:
    """The array of another element type."""
    return ArrayShape(type_, shape.dimensions, shape.dynamic, shape.layout)
