"""`bitcast`: the same memory under another shape and layout.

A bitcast reads its operand's elements in the order in which they lie in memory and lays them down in
that of its result: a transposition, a reshape and a transposition, of which StableHLO has all.
Where tiles or packed elements make more of it, it is a marked custom call.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.element_types import Kind
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, array
from mlirhlo.rewrites.hlo_to_stablehlo.attributes import integers
from mlirhlo.rewrites.hlo_to_stablehlo.core import Scope, Tree, converts
from mlirhlo.rewrites.hlo_to_stablehlo.marks import MARK, marked, with_shapes

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.element_types import PrimitiveType


@converts("bitcast")
def bitcast(op: Instruction, scope: Scope) -> Tree:
    """Transpositions, a `reshape` and a `bitcast_convert`, those that do nothing left out."""
    from mlirhlo.interp.layouts import major_to_minor, same_memory

    operand, result = op.input_shapes[0], op.shape
    if not isinstance(operand, ArrayShape) or not isinstance(result, ArrayShape):
        return scope.trees[op.inputs[0]]
    source, target = operand.element_type, result.element_type
    if (
        operand.is_dynamic
        or result.is_dynamic
        or (source is not target and not (_is_whole(source) and _is_whole(target)))
        or (source.bits == target.bits and same_memory(operand, result) is not None)
        or prod(operand.dimensions) * source.bits != prod(result.dimensions) * target.bits
    ):
        return scope.importer.fallback(op, scope)
    value = scope.leaf(op.inputs[0])
    order = major_to_minor(result)
    if (
        source is target
        and operand.dimensions == result.dimensions
        and major_to_minor(operand) == order
    ):
        return copied_as(op, value, result, scope)
    value = _transposed(value, operand, major_to_minor(operand), scope)
    sizes = tuple(result.dimensions[dim] for dim in order)
    value = _reinterpreted(value, _permuted(operand, major_to_minor(operand)), target, sizes, scope)
    back = tuple(order.index(dim) for dim in range(result.rank))
    moved = _transposed(value, array(target, sizes), back, scope)
    if moved is scope.trees[op.inputs[0]]:
        return copied_as(op, moved, result, scope)
    return moved


def copied_as(op: Instruction, value: SSAValue, shape: ArrayShape, scope: Scope) -> SSAValue:
    """A bitcast that changes nothing but the layout: a marked `reshape`."""
    scope.mark(with_shapes(marked(op).data, list(op.input_shapes), shape), MARK)
    return scope.one("stablehlo.reshape", (value,), shape)


def _is_whole(type_: PrimitiveType) -> bool:
    """Whether an element takes whole bytes that `bitcast_convert` sees."""
    return type_.bits >= 8 and type_.kind not in (Kind.PRED, Kind.COMPLEX)


def _permuted(shape: ArrayShape, order: Sequence[int]) -> ArrayShape:
    return array(shape.element_type, [shape.dimensions[dim] for dim in order])


def _transposed(value: SSAValue, shape: ArrayShape, order: Sequence[int], scope: Scope) -> SSAValue:
    """`value` with its dimensions in `order`; transposing in memory only moves sizes of 1."""
    if list(order) == list(range(shape.rank)):
        return value
    properties = {"permutation": integers(tuple(order))}
    return scope.one("stablehlo.transpose", (value,), _permuted(shape, order), properties)


def _reinterpreted(
    value: SSAValue,
    given: ArrayShape,
    target: PrimitiveType,
    sizes: tuple[int, ...],
    scope: Scope,
) -> SSAValue:
    """The elements in row-major order as elements of `target`, in an array of `sizes`."""
    source = given.element_type
    if source is not target:
        count = prod(sizes)
        if source.bits > target.bits:
            shape = array(target, (*given.dimensions, source.bits // target.bits))
        elif source.bits < target.bits:
            ratio = target.bits // source.bits
            value = _reshaped(value, given, array(source, (count, ratio)), scope)
            shape = array(target, (count,))
        else:
            shape = array(target, given.dimensions)
        value = scope.one("stablehlo.bitcast_convert", (value,), shape)
        given = shape
    return _reshaped(value, given, array(target, sizes), scope)


def _reshaped(value: SSAValue, given: ArrayShape, shape: ArrayShape, scope: Scope) -> SSAValue:
    if given.dimensions == shape.dimensions:
        return value
    return scope.one("stablehlo.reshape", (value,), shape)
