"""Instructions whose operands or result have other element types than the opcode asks for.

XLA:TPU folds converts into copies, pads, selects, reductions and convolutions. StableHLO wants them
spelled out: operands are converted to the type the work is done in, the result to the declared one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, cast

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.build import create
from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.dialects.hlo.types import type_of
from mlirhlo.rewrites.hlo_to_stablehlo.types import leaves

if TYPE_CHECKING:
    from mlirhlo.rewrites.hlo_to_stablehlo.core import Scope, Tree

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


def convert_mixed(
    op: Instruction,
    scope: Scope,
    handler: Callable[[Instruction, Scope], Tree],
    types: tuple[dict[int, PrimitiveType], list[PrimitiveType]],
) -> Tree:
    """Converts `op` by its handler, between conversions of operands and results."""
    operands, results = types
    before: dict[SSAValue, Tree] = {}
    attributes, scope.attributes = scope.attributes, {}
    for index, wanted in operands.items():
        value = op.inputs[index]
        shape = cast(ArrayShape, op.input_shapes[index])
        if shape.element_type is wanted or value in before:
            continue
        before[value] = scope.trees[value]
        scope.trees[value] = _converted(scope.leaf(value), shape, wanted, scope)
    work = create(
        type(op),
        list(op.operands),
        type_of(_retyped(op.shape, iter(results))),
        dict(op.properties),
        op.instruction_name,
    )
    scope.attributes = {
        k: v for k, v in attributes.items() if k not in ("xla_shape", "result_layout")
    }
    try:
        tree = handler(work, scope)
    finally:
        work.drop_all_references()
        scope.trees.update(before)
    if scope.last is not None:
        scope.last.attributes.update(scope.attributes)
    scope.attributes = {}
    found = [
        _converted(value, cast(ArrayShape, has), cast(ArrayShape, wanted).element_type, scope)
        for value, has, wanted in zip(
            scope.flatten(tree, op.shape), leaves(work.shape), leaves(op.shape), strict=True
        )
    ]
    return tuple(found) if isinstance(op.shape, TupleShape) else found[0]


def _retyped(shape: Shape, types: Iterator[PrimitiveType]) -> Shape:
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(_retyped(element, types) for element in shape.elements))
    assert isinstance(shape, ArrayShape)
    return _with_type(shape, next(types))


def _with_type(shape: ArrayShape, type_: PrimitiveType) -> ArrayShape:
    return ArrayShape(type_, shape.dimensions, shape.dynamic, shape.layout)


def _converted(value: SSAValue, shape: ArrayShape, type_: PrimitiveType, scope: Scope) -> SSAValue:
    if shape.element_type is type_:
        return value
    return scope.one("stablehlo.convert", (value,), _with_type(shape, type_))
