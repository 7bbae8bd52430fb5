"""`bitcast`: the same memory under another shape and layout.

A bitcast reads its operand's elements in the order in which they lie in memory and lays them down in
that of its result: a transposition, a reshape and a transposition, of which StableHLO has all.
Tiles pad and cut the array on the way. Where packed elements make more of it, it is a marked custom
call.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.element_types import Kind
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import UNBOUNDED, ArrayShape, array
from mlirhlo.interp.layouts import major_to_minor, same_memory, tiles_of
from mlirhlo.rewrites.hlo_to_stablehlo.attributes import integers
from mlirhlo.rewrites.hlo_to_stablehlo.core import Scope, Tree, converts
from mlirhlo.rewrites.hlo_to_stablehlo.marks import MARK, marked, with_shapes

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.element_types import PrimitiveType


@converts("bitcast")
def bitcast(op: Instruction, scope: Scope) -> Tree:
    """Transpositions, a `reshape` and a `bitcast_convert`, those that do nothing left out."""
    operand, result = op.input_shapes[0], op.shape
    if not isinstance(operand, ArrayShape) or not isinstance(result, ArrayShape):
        return scope.trees[op.inputs[0]]
    source, target = operand.element_type, result.element_type
    tiled = source.bits == target.bits and same_memory(operand, result) is not None
    if (
        operand.is_dynamic
        or result.is_dynamic
        or (source is not target and not (_is_whole(source) and _is_whole(target)))
        or (
            not tiled
            and prod(operand.dimensions) * source.bits != prod(result.dimensions) * target.bits
        )
    ):
        return scope.importer.fallback(op, scope)
    value = scope.leaf(op.inputs[0])
    if tiled:
        return _through_memory(value, operand, result, scope)
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


def _tile_steps(shape: ArrayShape) -> list[tuple[list[int], list[int], list[int], list[int]]]:
    """How tiles cut an array: for each, its sizes with leading ones, those padded to whole tiles,
    those cut into counts and places, and the order that puts counts first.

    Tiles with `*` (which combine dimensions) keep the order of elements and are left out.
    """
    sizes = [shape.dimensions[dim] for dim in major_to_minor(shape)]
    found: list[tuple[list[int], list[int], list[int], list[int]]] = []
    for tile in tiles_of(shape):
        if UNBOUNDED in tile:
            continue
        begin = [1] * (len(tile) - len(sizes)) + sizes
        outer = len(begin) - len(tile)
        padded = begin[:outer] + [
            -(-size // width) * width for size, width in zip(begin[outer:], tile, strict=True)
        ]
        cut = begin[:outer]
        for size, width in zip(padded[outer:], tile, strict=True):
            cut += [size // width, width]
        counts = [outer + 2 * i for i in range(len(tile))]
        order = [*range(outer), *counts, *(place + 1 for place in counts)]
        found.append((begin, padded, cut, order))
        sizes = [cut[place] for place in order]
    return found


def _through_memory(
    value: SSAValue, operand: ArrayShape, result: ArrayShape, scope: Scope
) -> SSAValue:
    """The operand laid out as its tiles say, and read back as the result's say."""
    type_ = operand.element_type
    nesting = major_to_minor(operand)
    value = _transposed(value, operand, nesting, scope)
    shape = _permuted(operand, nesting)
    for begin, padded, cut, order in _tile_steps(operand):
        value = _reshaped(value, shape, array(type_, begin), scope)
        if padded != begin:
            zero = scope.constant(0, array(type_))
            edges = {
                "edge_padding_low": integers((0,) * len(begin)),
                "edge_padding_high": integers(
                    tuple(p - b for p, b in zip(padded, begin, strict=True))
                ),
                "interior_padding": integers((0,) * len(begin)),
            }
            value = scope.one("stablehlo.pad", (value, zero), array(type_, padded), edges)
        value = _reshaped(value, array(type_, padded), array(type_, cut), scope)
        value = _transposed(value, array(type_, cut), order, scope)
        shape = _permuted(array(type_, cut), order)
    type_ = result.element_type
    steps = _tile_steps(result)
    nesting = major_to_minor(result)
    sizes = [result.dimensions[dim] for dim in nesting]
    last = [steps[-1][2][place] for place in steps[-1][3]] if steps else sizes
    value = _reinterpreted(value, shape, type_, tuple(last), scope)
    shape = array(type_, last)
    for begin, padded, cut, places in reversed(steps):
        back = [places.index(dim) for dim in range(len(places))]
        moved = array(type_, [cut[place] for place in places])
        value = _reshaped(value, shape, moved, scope)
        value = _transposed(value, moved, back, scope)
        value = _reshaped(value, array(type_, cut), array(type_, padded), scope)
        if padded != begin:
            bounds = {
                "start_indices": integers((0,) * len(begin)),
                "limit_indices": integers(tuple(begin)),
                "strides": integers((1,) * len(begin)),
            }
            value = scope.one("stablehlo.slice", (value,), array(type_, begin), bounds)
        shape = array(type_, begin)
    value = _reshaped(value, shape, array(type_, sizes), scope)
    back = [nesting.index(dim) for dim in range(result.rank)]
    return _transposed(value, array(type_, sizes), back, scope)


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
