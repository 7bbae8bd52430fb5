"""TopK, PartialReduce and their relatives: the best elements along a dimension.

The approximate ones may return any good candidates; the exact best are among what they may return.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.interp.custom_calls import computes, options_of, unfit
from mlirhlo.interp.registry import Array, Frame, Value

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.control_flow import CustomCallOp


def order_keys(values: Array) -> Array:
    """Integers in the total order of `values` (-NaN < -inf < … < -0 < 0 < … < inf < NaN)."""
    dtype = values.dtype
    if dtype.kind in "iub" or dtype.name.startswith(("int", "uint")):
        wide = np.uint64 if dtype == np.uint64 else np.int64
        return cast(Array, values.astype(wide))
    size = dtype.itemsize
    bits: Any = values.view(f"u{size}").astype(np.uint64)
    sign = np.uint64(1 << (8 * size - 1))
    mask = np.uint64((1 << (8 * size)) - 1)
    flipped = cast(Array, np.where(bits & sign, ~bits & mask, bits | sign))
    return (
        cast(Array, (flipped ^ np.uint64(1 << 63)).view(np.int64))
        if size == 8
        else cast(Array, flipped.astype(np.int64))
    )


def best(values: Array, count: int, dim: int, *, largest: bool = True) -> tuple[Array, Array]:
    """The `count` best values along `dim` in order, earlier ones first among equals, and their
    indices as s32.
    """
    keys: Any = order_keys(values)
    # `~x` turns the order of any integer round without overflow.
    order = np.argsort(~keys if largest else keys, axis=dim, kind="stable")
    order = order.take(range(count), axis=dim)
    return np.take_along_axis(values, order, axis=dim), order.astype(np.int32)


def is_largest(op: CustomCallOp, frame: Frame, dtype: np.dtype[Any]) -> bool:
    """Which end a call selects: by its option, or else by its comparator, applied to 1 and 0."""
    options = options_of(op)
    if "largest" in options or not op.called_computations:
        return bool(options.get("largest", True))
    computation = op.called_computations[0]
    one, zero = np.ones((), dtype), np.zeros((), dtype)
    count = len(frame.program.computation(computation).parameters)
    index = [np.zeros((), p.shape.element_type.dtype)
             for p in frame.program.computation(computation).parameters[2:]
             if isinstance(p.shape, ArrayShape)]  # fmt: skip
    arguments = [one, zero, *index][:count]
    return bool(np.asarray(frame.call(computation, arguments)))


@computes("TopK", "__gpu$TopK")
def top_k(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """`(values, s32 indices)` of the best of the last dimension."""
    values = cast(Array, inputs[0])
    shape = cast(ArrayShape, cast(TupleShape, op.shape).elements[0])
    largest = is_largest(op, frame, values.dtype)
    return best(values, shape.dimensions[-1], values.ndim - 1, largest=largest)


@computes("PartialReduce", "ApproxTopK", "stablehlo.dynamic_approx_top_k")
def partial_reduce(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """Candidates for an approximate top-k: operands, then their initial values.

    The first operand is compared, the others go along. The result holds the best candidates in
    order, filled up with the initial values.
    """
    options = options_of(op)
    half = len(inputs) // 2
    arrays, fills = cast("list[Array]", list(inputs[:half])), inputs[half:]
    shapes = op.shape.elements if isinstance(op.shape, TupleShape) else (op.shape,)
    first = cast(ArrayShape, shapes[0])
    dim = int(options.get("reduction_dim", arrays[0].ndim - 1)) % arrays[0].ndim
    if len(inputs) != 2 * half or first.rank != arrays[0].ndim:
        raise unfit(op, f"expects operands and as many initial values, giving {op.shape}")
    wanted, available = first.dimensions[dim], arrays[0].shape[dim]
    keys: Any = order_keys(arrays[0])
    largest = is_largest(op, frame, arrays[0].dtype)
    order = np.argsort(~keys if largest else keys, axis=dim, kind="stable")
    order = order.take(range(min(wanted, available)), axis=dim)
    results: list[Value] = []
    for array, fill in zip(arrays, fills, strict=True):
        part = np.take_along_axis(array, order, axis=dim)
        if wanted > available:
            missing = list(part.shape)
            missing[dim] = wanted - available
            rest = np.broadcast_to(np.asarray(fill, array.dtype), missing)
            part = np.concatenate([part, rest], axis=dim)
        results.append(part)
    return tuple(results) if isinstance(op.shape, TupleShape) else results[0]
