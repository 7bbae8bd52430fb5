"""`tpu`: vectors moved, counted, searched and sorted."""

# Lambdas that numpy takes have parameters of no stated type.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.mosaic.attributes import attribute_of, case_of, flag_of, integer_of, integers_of
from mlirhlo.mosaic.interpreter.bits import rows_as
from mlirhlo.mosaic.interpreter.memory import dtype_in, shape_of
from mlirhlo.mosaic.interpreter.numbers import is_float, to_float
from mlirhlo.mosaic.interpreter.ops.vector import reduced
from mlirhlo.mosaic.interpreter.problems import unfit
from mlirhlo.mosaic.interpreter.registry import Activation, Run, Scope, means

if TYPE_CHECKING:
    from xdsl.ir import Operation


def _wide(a: Any) -> Any:
    """Values that numpy orders."""
    if is_float(a.dtype):
        return to_float(a)
    return a.astype(np.int32) if a.dtype.kind == "V" else a


@means("tpu.iota")
def iota(op: Operation, scope: Scope) -> Run:
    """Counts along dimensions, taken together row-major."""
    type_ = op.results[0].type
    shape, dtype = shape_of(type_), dtype_in(type_)
    made = np.zeros(shape, np.int64)
    step = 1
    for dim in reversed(integers_of(op, "dimensions") or ()):
        column = step * np.arange(shape[dim])
        made += column.reshape([-1 if d == dim else 1 for d in range(len(shape))])
        step *= shape[dim]
    result = made.astype(dtype)
    return lambda frame: result


@means("tpu.concatenate")
def concatenate(op: Operation, scope: Scope) -> Run:
    """Vectors on end along a dimension."""
    dim = integer_of(op, "dimension")
    return lambda frame, *parts: np.concatenate(parts, axis=dim)


@means("tpu.repeat")
def repeat(op: Operation, scope: Scope) -> Run:
    """The vector `times` times on end along a dimension."""
    dim, times = integer_of(op, "dimension"), integer_of(op, "times", 1)
    return lambda frame, a: np.concatenate([a] * times, axis=dim)


@means("tpu.dynamic_rotate", "tpu.rotate")
def rotate(op: Operation, scope: Scope) -> Run:
    """`out[i] = in[(i - amount) mod n]`; with a stride, row j turns by `amount + stride * j`."""
    dim, stride = integer_of(op, "dimension"), integer_of(op, "stride")
    along = attribute_of(op, "stride_dimension")
    other = integer_of(op, "stride_dimension") if along is not None else None
    fixed = integer_of(op, "amount")

    def run(frame: Activation, a: Any, amount: Any = fixed) -> Any:
        if other is None:
            return np.roll(a, int(amount), axis=dim)
        size = a.shape[dim]
        places, rows = np.indices(a.shape, sparse=True)[dim], np.arange(a.shape[other])
        turn = rows.reshape([-1 if d == other else 1 for d in range(a.ndim)]) * stride
        index = np.broadcast_to((places - int(amount) - turn) % size, a.shape)
        return np.take_along_axis(a, index, axis=dim)

    return run


@means("tpu.dynamic_gather")
def dynamic_gather(op: Operation, scope: Scope) -> Run:
    """Along the gather dimensions, taken together, the element at the index modulo their size."""
    dims = integers_of(op, "dimensions") or ()

    def run(frame: Activation, a: Any, index: Any) -> Any:
        rest = [d for d in range(a.ndim) if d not in dims]
        order = [*rest, *dims]
        kept = [a.shape[d] for d in rest]
        source = a.transpose(order).reshape(*kept, -1)
        wanted = index.transpose(order)
        flat = wanted.reshape(*kept, -1).astype(np.int64) % source.shape[-1]
        found = np.take_along_axis(source, flat, axis=-1).reshape(wanted.shape)
        return found.transpose(np.argsort(order))

    return run


@means("tpu.gather")
def gather(op: Operation, scope: Scope) -> Run:
    """Rows of a dimension at fixed indices."""
    indices, dim = np.array(integers_of(op, "indices") or (), int), integer_of(op, "dimension")
    return lambda frame, a: np.take(a, indices, axis=dim)


@means("tpu.bitcast")
def bitcast(op: Operation, scope: Scope) -> Run:
    """The same bits; rows are packed into wider elements, even ones in the low half."""
    dtype = dtype_in(op.results[0].type)
    return lambda frame, a: rows_as(a, dtype)


@means("tpu.bitcast_vreg")
def bitcast_register(op: Operation, scope: Scope) -> Run:
    """The same words of a register; the first element of a word is in its low bits."""
    shape, dtype = shape_of(op.results[0].type), dtype_in(op.results[0].type)

    def run(frame: Activation, a: Any) -> Any:
        # Elements of a word as rows, as which `rows_as` packs them.
        rows = np.moveaxis(a, 2, 1).reshape(-1, a.shape[1]) if a.ndim == 3 else a
        made = rows_as(rows, dtype)
        if len(shape) == 2:
            return made
        return np.moveaxis(made.reshape(shape[0], shape[2], shape[1]), 1, 2)

    return run


@means("tpu.broadcast_in_sublanes")
def broadcast_in_sublanes(op: Operation, scope: Scope) -> Run:
    """Sublane i gets lane `lane + i`, in all lanes."""
    shape, lane = shape_of(op.results[0].type), integer_of(op, "lane")

    def run(frame: Activation, a: Any) -> Any:
        rows = np.arange(shape[0])
        return np.broadcast_to(a[rows, lane + rows].reshape(-1, 1), shape)

    return run


@means("tpu.sublane_shuffle")
def sublane_shuffle(op: Operation, scope: Scope) -> Run:
    """Rows picked among those of two vectors."""
    pattern = np.array(integers_of(op, "pattern") or (), int)
    return lambda frame, a, b: np.concatenate([a, b])[pattern]


@means("tpu.create_mask")
def create_mask(op: Operation, scope: Scope) -> Run:
    """True in the box from the first half of the operands to the second."""
    shape = shape_of(op.results[0].type)

    def run(frame: Activation, *bounds: Any) -> Any:
        rank = len(bounds) // 2
        mask = np.zeros(shape, np.bool_)
        pairs = zip(bounds[:rank], bounds[rank:], strict=True)
        mask[tuple(slice(max(int(low), 0), max(int(high), 0)) for low, high in pairs)] = True
        return mask

    return run


def keeps_dimension(op: Operation) -> bool:
    """Whether the reduced dimension stays, with size one, as from version 20 of the stable form on."""
    return len(shape_of(op.results[0].type)) == len(shape_of(op.operands[0].type))


@means("tpu.reduce_index")
def reduce_index(op: Operation, scope: Scope) -> Run:
    """Where the greatest or least element stands; the first of equal ones, NaN before all."""
    axis, kind = integer_of(op, "axis"), case_of(attribute_of(op, "kind"))
    if kind not in ("arg_max", "arg_min"):
        raise unfit(op, f"of kind {kind}")
    find = np.argmax if kind == "arg_max" else np.argmin
    dtype, keeps = dtype_in(op.results[0].type), keeps_dimension(op)
    return lambda frame, a: find(_wide(a), axis=axis, keepdims=keeps).astype(dtype)


def _kind_for(kind: str, dtype: np.dtype[Any]) -> str:
    """The kind of `vector.multi_reduction` for a `#tpu.reduction_kind`."""
    if kind in ("max", "min"):
        return kind + ("imumf" if is_float(dtype) else "si")
    return {"sum": "add", "maxf": "maximumf", "minf": "minimumf"}.get(kind, kind)


@means("tpu.all_reduce")
def all_reduce(op: Operation, scope: Scope) -> Run:
    """Reduces a dimension and repeats the result along it."""
    dim, kind = integer_of(op, "dim"), case_of(attribute_of(op, "kind"))
    type_ = op.results[0].type
    shape, dtype = shape_of(type_), dtype_in(type_)

    def run(frame: Activation, a: Any) -> Any:
        if kind == "find_first_set":
            first = np.where(a.any(axis=dim), np.argmax(a, axis=dim), a.shape[dim])
            found = np.expand_dims(first, dim).astype(dtype)
        elif kind in ("arg_max", "arg_min"):
            find = np.argmax if kind == "arg_max" else np.argmin
            found = np.expand_dims(find(_wide(a), axis=dim), dim).astype(dtype)
        else:
            value = a.astype(dtype) if a.dtype.kind == "b" else a
            found = np.expand_dims(reduced(_kind_for(kind, dtype), value, (dim,)), dim)
        return np.broadcast_to(found, shape)

    return run


@means("tpu.reduce")
def reduce(op: Operation, scope: Scope) -> Run:
    """Reduces dimensions, which stay with size one."""
    kind = case_of(attribute_of(op, "kind"))
    axes = integers_of(op, "dimensions") or ()
    shape = shape_of(op.results[0].type)
    return lambda frame, a: reduced(_kind_for(kind, a.dtype), a, axes).reshape(shape)


@means("tpu.scan")
def scan(op: Operation, scope: Scope) -> Run:
    """Running sum, greatest or least along a dimension, over the elements of the mask."""
    stated, dtype = case_of(attribute_of(op, "kind")), dtype_in(op.results[0].type)
    kind = stated.removesuffix("f").removesuffix("si")
    axis = integer_of(op, "dimension") if attribute_of(op, "dimension") is not None else -1
    functions: dict[str, np.ufunc] = {"sum": np.add, "max": np.maximum, "min": np.minimum}
    if kind not in functions:
        raise unfit(op, f"of kind {stated}")
    function = functions[kind]

    def run(frame: Activation, a: Any, mask: Any = None) -> Any:
        value = _wide(a.astype(dtype))
        if mask is not None:
            if kind == "sum":
                neutral: Any = 0
            elif value.dtype.kind == "f":
                neutral = -np.inf if kind == "max" else np.inf
            else:
                limits = np.iinfo(value.dtype)
                neutral = limits.min if kind == "max" else limits.max
            value = np.where(mask, value, value.dtype.type(neutral))
        return function.accumulate(value, axis=axis, dtype=value.dtype).astype(dtype)

    return run


@means("tpu.scan_count")
def scan_count(op: Operation, scope: Scope) -> Run:
    """How often each value occurred up to its place, and the last occurrence of each."""

    def run(frame: Activation, mask: Any, value: Any) -> Any:
        counts, last = np.ones(value.shape, np.int32), np.zeros(value.shape, np.bool_)
        seen: dict[Any, tuple[int, int]] = {}
        for lane in np.nonzero(mask)[0].tolist():
            count = seen.get(value[lane].item(), (0, 0))[0] + 1
            counts[lane] = count
            seen[value[lane].item()] = (count, lane)
        for _, lane in seen.values():
            last[lane] = True
        return counts, last

    return run


@means("tpu.sort")
def sort(op: Operation, scope: Scope) -> Run:
    """Keys in order with their values, those off the mask last; equal keys keep their order."""
    descending = flag_of(op, "descending")

    def run(frame: Activation, keys: Any, values: Any, mask: Any = None) -> Any:
        keep = np.ones(keys.shape, np.bool_) if mask is None else mask
        wide = _wide(keys)
        ranks = np.unique(wide, return_inverse=True)[1].reshape(keys.shape)
        ranks = -ranks if descending else ranks
        order = np.lexsort((ranks, ~keep), axis=-1)
        found = tuple(np.take_along_axis(part, order, axis=-1) for part in (keep, keys, values))
        return found[-len(op.results) :] if len(op.results) > 1 else found[1]

    return run


@means("tpu.assume_layout", "tpu.relayout", "mosaic_tc.relayout")
def same(op: Operation, scope: Scope) -> Run:
    """The same elements; where they stand in registers does not show."""
    return lambda frame, a: a


@means("tpu.mask_cast")
def mask_cast(op: Operation, scope: Scope) -> Run:
    """The mask of a register of other elements: one of words is that of all elements of each."""
    before, after = shape_of(op.operands[0].type), shape_of(op.results[0].type)
    old, new = (shape[2] if len(shape) == 3 else 1 for shape in (before, after))

    def run(frame: Activation, a: Any) -> Any:
        parts = a.reshape(*before[:2], old)
        parts = np.repeat(parts, new // old, axis=2) if new >= old else parts[..., :: old // new]
        return parts.reshape(after)

    return run
