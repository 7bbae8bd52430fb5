"""Reduce and scan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.dialects.hlo.shapes import TupleShape
from mlirhlo.interp.numerics import work_dtype, wrap
from mlirhlo.interp.reducers import combine, fold, reducer_of
from mlirhlo.interp.registry import Array, Frame, Program, Run, Value, prepares

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.reduction import ReduceOp, ScanOp

_SEQUENTIAL = 512
"""Up to so many elements an arbitrary reducer folds one after the other; longer rows fold in parts
first, as XLA may do too (a reducer has to be associative)."""


@prepares("reduce")
def reduce(op: ReduceOp, program: Program) -> Run:
    """Dimensions folded by a computation from initial values.

    Recognised operations fold in f32 for narrower floats and round once (see `reducers`).
    """
    count = len(op.inputs) // 2
    axes = tuple(sorted(op.dimensions))
    reducer = reducer_of(program, op.to_apply)
    is_tuple = isinstance(op.shape, TupleShape)
    if count == 1 and reducer.ufunc is not None and not is_tuple:
        work, dtype = work_dtype(reducer.element_type), reducer.element_type.dtype

        def folded(inputs: Sequence[Any], frame: Frame) -> Array:
            operand, initial = inputs
            if not axes:
                return wrap(combine(reducer, initial.astype(work), operand.astype(work)), dtype)
            result = fold(reducer, operand.astype(work, copy=False), axes)
            return wrap(combine(reducer, initial.astype(work), result), dtype)

        return folded
    name = op.to_apply

    def run(inputs: Sequence[Any], frame: Frame) -> Value:
        arrays, initials = inputs[:count], inputs[count:]
        results = fold_rows([_rows(a, axes) for a in arrays], initials, name, frame)
        return tuple(results) if is_tuple else results[0]

    return run


def _rows(array: Array, axes: tuple[int, ...]) -> Array:
    """The folded axes as one first axis, in row-major order."""
    kept = [dim for dim in range(array.ndim) if dim not in axes]
    moved = array.transpose((*axes, *kept))
    size = 1
    for dim in axes:
        size *= array.shape[dim]
    return moved.reshape(size, *moved.shape[len(axes) :])


def fold_rows(
    arrays: Sequence[Array], initials: Sequence[Array], name: str, frame: Frame
) -> tuple[Array, ...]:
    """Folds the first axis of `arrays` by any computation."""
    length, shape = arrays[0].shape[0], arrays[0].shape[1:]
    state = tuple(
        np.broadcast_to(np.asarray(initial).astype(a.dtype), shape)
        for initial, a in zip(initials, arrays, strict=True)
    )
    while length > _SEQUENTIAL:
        # Neighbours fold pairwise, so the order of operands stays.
        half = length // 2
        pairs = [a[: 2 * half].reshape(half, 2, *shape) for a in arrays]
        merged = frame.call_elementwise(
            name, [*(p[:, 0] for p in pairs), *(p[:, 1] for p in pairs)]
        )
        arrays = [
            np.concatenate([m, a[2 * half :]]) if length % 2 else m
            for m, a in zip(merged, arrays, strict=True)
        ]
        length = arrays[0].shape[0]
    for index in range(length):
        state = frame.call_elementwise(name, [*state, *(a[index, ...] for a in arrays)])
    return tuple(np.asarray(part) for part in state)


@prepares("scan")
def scan(op: ScanOp, program: Program) -> Run:
    """A computation carried along a dimension; its outputs stacked, then the last carries."""
    dim, carries, name = op.dimensions[0], op.num_carries, op.to_apply
    is_reverse = op.is_reverse
    shape = op.shape
    input_count = len(op.inputs) - carries
    is_tuple = isinstance(shape, TupleShape)

    def run(inputs: Sequence[Any], frame: Frame) -> Value:
        arrays, state = inputs[:input_count], tuple(inputs[input_count:])
        length = arrays[0].shape[dim] if arrays else 0
        outputs: list[list[Array]] = []
        order = range(length - 1, -1, -1) if is_reverse else range(length)
        for index in order:
            given = [np.take(a, index, axis=dim) for a in arrays]
            value = frame.call(name, [*given, *state])
            parts = cast("tuple[Array, ...]", value if isinstance(value, tuple) else (value,))
            split = len(parts) - carries
            outputs.append(list(parts[:split]))
            state = parts[split:]
        if is_reverse:
            outputs.reverse()
        stacked = [np.stack(column, axis=dim) for column in zip(*outputs, strict=True)]
        if not outputs:
            shapes = cast(TupleShape, shape).elements[
                : len(cast(TupleShape, shape).elements) - carries
            ]
            stacked = [
                np.empty(cast(Any, s).dimensions, cast(Any, s).element_type.dtype) for s in shapes
            ]
        result = (*stacked, *state)
        return result if is_tuple else result[0]

    return run
