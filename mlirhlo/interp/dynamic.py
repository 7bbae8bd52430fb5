"""Arrays with bounded dynamic dimensions: ops on the part in use, and ops about sizes.

An op without a rule of its own works on the elements in use, as if their sizes were the shape, and
its result is put back into the bounds its shape declares.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.dialects.hlo.table import Movement, opcodes
from mlirhlo.interp.registry import (
    Array,
    DynamicArray,
    Frame,
    Program,
    Run,
    Value,
    evaluates,
    prepares,
)
from mlirhlo.interp.values import with_bounds

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops import ConvolutionOp, DotOp
    from mlirhlo.dialects.hlo.ops.base import Instruction
    from mlirhlo.dialects.hlo.ops.data_movement import (
        DynamicReshapeOp,
        GetDimensionSizeOp,
        SetDimensionSizeOp,
    )

KEEPS_WHOLE = opcodes(
    lambda row: (
        row.handles_whole
        or row.about_sizes
        or row.movement in (Movement.COPY, Movement.SLICE, Movement.GATHER, Movement.UPDATE)
    )
) - {"bitcast"}
"""Opcodes whose meaning takes dynamic arrays as they are."""


def is_dynamic(shape: Shape) -> bool:
    """Whether `shape`, or a part of it, has dynamic dimensions."""
    if isinstance(shape, TupleShape):
        return any(map(is_dynamic, shape.elements))
    return isinstance(shape, ArrayShape) and shape.is_dynamic


def needs_lifting(op: Instruction) -> bool:
    """Whether `op` deals in dynamic arrays without a rule of its own."""
    if op.opcode.name in KEEPS_WHOLE:
        return False
    return is_dynamic(op.shape) or any(map(is_dynamic, op.input_shapes))


def lifted(op: Instruction, run: Run) -> Run:
    """`run` for arrays cut to the elements in use; its result in the bounds of `op`'s shape."""
    shape, cut = op.shape, _cut
    if op.opcode.elementwise or op.opcode.name == "map":
        cut = _alike
    elif pairs := _multiplied(op):
        cut = partial(_paired, pairs)

    def lifted_run(inputs: Sequence[Any], frame: Frame) -> Value:
        sizes = _common_sizes(inputs) if cut is _alike else None
        if sizes is None:
            return bounded(run(cut(inputs), frame), shape)
        whole = [v.data if isinstance(v, DynamicArray) else v for v in inputs]
        return DynamicArray(np.asarray(cast(Array, run(whole, frame))), sizes)

    return lifted_run


def _common_sizes(inputs: Sequence[Any]) -> tuple[int, ...] | None:
    """The sizes in use that all inputs of an elementwise op have, if they agree; else None.

    Then the op works on whole arrays: what is beyond the sizes may come into use when a later
    `set-dimension-size` raises them, and XLA's code computes it as well.
    """
    dynamic = [v for v in inputs if isinstance(v, DynamicArray)]
    if not dynamic:
        return None
    first = dynamic[0]
    for value in inputs:
        if isinstance(value, DynamicArray):
            if value.sizes != first.sizes or value.data.shape != first.data.shape:
                return None
        elif np.ndim(value) and np.shape(value) != first.data.shape:
            return None
    return first.sizes


def _cut(inputs: Sequence[Any]) -> list[Value]:
    return [in_use(value) for value in inputs]


def _multiplied(op: Instruction) -> list[tuple[int, int]]:
    """Dimensions of two operands along which a product goes through both at once."""
    match op.opcode.name:
        case "dot":
            dot = cast("DotOp", op)
            batch = zip(dot.lhs_batch_dims, dot.rhs_batch_dims, strict=True)
            summed = zip(dot.lhs_contracting_dims, dot.rhs_contracting_dims, strict=True)
            return [*batch, *summed]
        case "convolution":
            labels = cast("ConvolutionOp", op).dim_labels
            if labels is None or cast("ConvolutionOp", op).feature_group_count > 1:
                return []
            return [(labels.input_feature_dimension, labels.kernel_input_feature_dimension)]
        case _:
            return []


def _paired(pairs: Sequence[tuple[int, int]], inputs: Sequence[Any]) -> list[Value]:
    """Operands of a product: what only one side has in use is multiplied with nothing."""
    left, right, *others = cast("list[Array]", _cut(inputs))
    for first, second in pairs:
        size = min(left.shape[first], right.shape[second])
        left = left[(slice(None),) * first + (slice(size),)]
        right = right[(slice(None),) * second + (slice(size),)]
    return [left, right, *others]


def _alike(inputs: Sequence[Any]) -> list[Value]:
    """Operands of an element-wise op, cut to one size in each dimension.

    An array with one element in use along a dimension repeats it for the others; beside that, the
    smallest size counts. Source: XLA's DynamicDimensionInference, HandleElementwiseNary.
    """
    columns = zip(
        *(v.sizes for v in inputs if isinstance(v, DynamicArray) and v.sizes), strict=True
    )
    sizes = tuple(min((s for s in column if s != 1), default=1) for column in columns)
    found: list[Value] = []
    for value, array in zip(inputs, _cut(inputs), strict=True):
        part = cast(Array, array)
        if part.ndim == len(sizes) and part.shape != sizes:
            part = part[tuple(slice(size) for size in sizes)]
            if isinstance(value, DynamicArray):
                part = np.broadcast_to(part, sizes)
        found.append(part)
    return found


def in_use(value: Value) -> Value:
    """`value` with every dynamic array cut to its sizes."""
    if isinstance(value, DynamicArray):
        return value.valid
    if isinstance(value, tuple):
        return tuple(map(in_use, cast("tuple[Value, ...]", value)))
    return value


def bounded(value: Value, shape: Shape) -> Value:
    """`value` with the arrays that `shape` calls dynamic put into their bounds."""
    if isinstance(shape, TupleShape):
        parts = cast("tuple[Value, ...]", value)
        return tuple(bounded(p, s) for p, s in zip(parts, shape.elements, strict=True))
    if isinstance(shape, ArrayShape) and not isinstance(value, DynamicArray):
        array = np.asarray(cast(Array, value))
        if shape.is_dynamic or array.shape != shape.dimensions:
            return with_bounds(array, shape)
    return value


def whole(value: Array | DynamicArray) -> Array:
    """All elements of an array, those that are not in use too."""
    return value.data if isinstance(value, DynamicArray) else value


def cut_to(array: Array, shape: ArrayShape, sizes: Iterable[int]) -> Array | DynamicArray:
    """`array` with sizes in use along the dimensions that `shape` calls dynamic; of the others all is in use."""
    if not shape.is_dynamic:
        return array
    known = zip(array.shape, shape.dynamic, sizes, strict=True)
    return DynamicArray(array, tuple(min(size, n) if mark else n for n, mark, size in known))


def sizes_of(value: Value) -> tuple[int, ...]:
    """Sizes in use of an array."""
    return value.sizes if isinstance(value, DynamicArray) else cast(Array, value).shape


@evaluates("get-dimension-size")
def get_dimension_size(op: GetDimensionSizeOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """The size in use of a dimension, s32[]."""
    return np.array(sizes_of(inputs[0])[op.dimensions[0]], dtype=np.int32)


@evaluates("set-dimension-size")
def set_dimension_size(op: SetDimensionSizeOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """The operand with one dimension's size in use set.

    Raises HLO0306 when the size is negative or above the bound.
    """
    value, size, dim = inputs[0], int(inputs[1]), op.dimensions[0]
    data = value.data if isinstance(value, DynamicArray) else value
    if not 0 <= size <= data.shape[dim]:
        raise error(
            "HLO0306",
            f"set-dimension-size: size {size} of dimension {dim} is not within 0 and the bound {data.shape[dim]}",
        )
    sizes = list(sizes_of(value))
    sizes[dim] = size
    shape = op.shape
    # A size equal to the bound may be declared static again.
    if isinstance(shape, ArrayShape) and not shape.is_dynamic:
        return data
    return DynamicArray(data, tuple(sizes))


@prepares("dynamic-reshape")
def dynamic_reshape(op: DynamicReshapeOp, program: Program) -> Run:
    """The elements in use, in row-major order, under the sizes given as operands."""
    shape = op.shape

    def run(inputs: Sequence[Any], frame: Frame) -> Value:
        source = cast(Array, in_use(inputs[0]))
        sizes = tuple(int(size) for size in inputs[1:])
        return bounded(reshaped(source, sizes, "dynamic-reshape"), shape)

    return run


def reshaped(source: Array, sizes: tuple[int, ...], opcode: str) -> Array:
    """`source.reshape(sizes)`. Raises `HloError` HLO0306 when the element counts differ."""
    if math.prod(sizes) != source.size:
        wanted = ",".join(map(str, sizes))
        raise error(
            "HLO0306",
            f"{opcode}: {source.size} elements in use cannot become [{wanted}] ({math.prod(sizes)} elements)",
        )
    return source.reshape(sizes)


def reshape_sizes(
    source: tuple[int, ...], shape: ArrayShape, operand: ArrayShape, inferred: int
) -> tuple[int, ...]:
    """Sizes of a reshape whose operand has `source` elements in use per dimension, by `reshape_groups`."""
    sizes = list(shape.dimensions)
    if source != operand.dimensions:
        for own, result, free in reshape_groups(operand, shape, inferred):
            rest = math.prod(sizes[dim] for dim in result if dim != free)
            if free >= 0 and rest:
                sizes[free] = math.prod(source[dim] for dim in own) // rest
    return tuple(sizes)


def reshape_groups(
    operand: ArrayShape, shape: ArrayShape, inferred: int
) -> list[tuple[list[int], list[int], int]]:
    """Dimensions of the operand, those of the result with as many elements in use, and the one of these that follows.

    Groups are as small as equal products of bounds allow, but where the operand has a dynamic dimension, the result
    has one too. It is `inferred`, or else the first one of a bound above 1; -1 where there is none.
    """
    groups: list[tuple[list[int], list[int], int]] = []
    pending: tuple[list[int], list[int]] = [], []
    for own, result in equal_runs(operand.dimensions, shape.dimensions):
        dynamic = [dim for dim in result if shape.is_dynamic_dimension(dim)]
        large = [dim for dim in dynamic if shape.dimensions[dim] != 1]
        free = inferred if inferred in dynamic else next(iter(large or dynamic), -1)
        if free >= 0:
            groups.append((pending[0] + own, pending[1] + result, free))
            pending = [], []
        elif pending[0] or any(map(operand.is_dynamic_dimension, own)):
            pending = pending[0] + own, pending[1] + result
        else:
            groups.append((own, result, -1))
    if pending[0]:  # joined with what comes before, up to a dynamic dimension
        free = -1
        while free < 0 and groups:
            own, result, free = groups.pop()
            pending = own + pending[0], result + pending[1]
        groups.append((*pending, free))
    return groups


def equal_runs(first: Sequence[int], second: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """The smallest runs of dimensions with equal products of bounds; all as one where these say nothing."""
    if min((*first, *second), default=1) <= 0:  # no elements, or unbounded
        return [(list(range(len(first))), list(range(len(second))))]
    runs: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(first) and j < len(second):
        start, begin, a, b = i, j, first[i], second[j]
        i, j = i + 1, j + 1
        while a != b:
            if a < b:
                a, i = a * first[i], i + 1
            else:
                b, j = b * second[j], j + 1
        runs.append((list(range(start, i)), list(range(begin, j))))
    own, result = runs.pop() if runs else ([], [])  # sizes of 1 at the end belong to the last
    runs.append(([*own, *range(i, len(first))], [*result, *range(j, len(second))]))
    return runs
