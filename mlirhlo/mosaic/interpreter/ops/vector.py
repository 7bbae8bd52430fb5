"""`vector`: memory, reductions and products. Shapes are `vector_shape`."""

# Lambdas that numpy takes have parameters of no stated type.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.mosaic.attributes import attribute_of, case_of, integers_of, name_of
from mlirhlo.mosaic.interpreter.memory import MemRef, box, dtype_in, read_at, shape_of, write_at
from mlirhlo.mosaic.interpreter.numbers import as_unsigned, is_float
from mlirhlo.mosaic.interpreter.problems import unfit
from mlirhlo.mosaic.interpreter.products import contract, indexing_maps
from mlirhlo.mosaic.interpreter.registry import Activation, Run, Scope, means

if TYPE_CHECKING:
    from xdsl.ir import Operation


def _box_shape(rank: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A vector of fewer dimensions lies along the last ones of the reference."""
    return (1,) * (rank - len(shape)) + shape


@means("vector.load")
def load(op: Operation, scope: Scope) -> Run:
    """The box of the result's shape at the indices."""
    shape = shape_of(op.results[0].type)

    def run(frame: Activation, ref: MemRef, *at: Any) -> Any:
        index = box(ref, at, _box_shape(len(at), shape))
        return read_at(frame, op, ref, index).reshape(shape).copy()

    return run


@means("vector.store")
def store(op: Operation, scope: Scope) -> Run:
    """Writes the vector at the indices."""
    shape = shape_of(op.operands[0].type)

    def run(frame: Activation, value: Any, ref: MemRef, *at: Any) -> Any:
        sizes = _box_shape(len(at), shape)
        write_at(frame, op, ref, box(ref, at, sizes), value.reshape(sizes))
        return ()

    return run


def _chosen(ref: MemRef, at: tuple[Any, ...], mask: Any, shape: tuple[int, ...]) -> Any:
    """Where in a vector the mask holds, and where that is in the reference."""
    places = np.nonzero(np.broadcast_to(mask, shape))
    lead = len(at) - len(shape)
    index = [np.full(places[0].shape, int(start)) for start in at] if shape else []
    for dim, offsets in enumerate(places):
        index[lead + dim] += offsets
    for dim, numbers in enumerate(index):
        if numbers.size:
            # Raises when the least or the greatest is outside.
            one = [0] * len(at)
            for end in (numbers.min(), numbers.max()):
                one[dim] = int(end)
                box(ref, one, (1,) * len(at))
    return places, tuple(index)


def masked_read(
    frame: Activation, op: Operation, ref: MemRef, at: tuple[Any, ...], mask: Any, other: Any
) -> Any:
    """The elements where the mask holds, which alone have to be inside; `other` elsewhere."""
    result = np.array(other)
    places, index = _chosen(ref, at, mask, result.shape)
    result[places] = read_at(frame, op, ref, index)
    return result


def masked_write(
    frame: Activation, op: Operation, ref: MemRef, at: tuple[Any, ...], mask: Any, values: Any
) -> None:
    """Writes the elements where the mask holds, which alone have to be inside."""
    places, index = _chosen(ref, at, mask, values.shape)
    write_at(frame, op, ref, index, values[places])


@means("vector.maskedload")
def masked_load(op: Operation, scope: Scope) -> Run:
    """The box where the mask holds, the given vector elsewhere."""

    def run(frame: Activation, ref: MemRef, *rest: Any) -> Any:
        *at, mask, other = rest
        return masked_read(frame, op, ref, tuple(at), mask, other)

    return run


@means("vector.maskedstore")
def masked_store(op: Operation, scope: Scope) -> Run:
    """Writes where the mask holds."""

    def run(frame: Activation, ref: MemRef, *rest: Any) -> Any:
        *at, mask, value = rest
        masked_write(frame, op, ref, tuple(at), mask, value)
        return ()

    return run


def _number_of(pick: Callable[..., Any], empty: float) -> Callable[..., Any]:
    """A reduction that NaN takes no part in, unless there is nothing else."""

    def reduce(a: Any, axis: Any) -> Any:
        nan = np.isnan(a)
        found = pick(np.where(nan, empty, a), axis=axis)
        return np.where(np.all(nan, axis=axis), np.nan, found)

    return reduce


def _sum(a: Any, axis: Any) -> Any:
    if a.dtype.kind == "b":
        return np.logical_xor.reduce(a, axis=axis)
    return np.add.reduce(a, axis=axis, dtype=a.dtype)


def _product(a: Any, axis: Any) -> Any:
    return np.multiply.reduce(a, axis=axis, dtype=a.dtype)


def _bitwise(function: np.ufunc) -> Callable[..., Any]:
    return lambda a, axis: function.reduce(a, axis=axis)


REDUCTIONS: dict[str, tuple[Callable[..., Any], Callable[[Any, Any], Any]]] = {
    "add": (_sum, np.add),
    "mul": (_product, np.multiply),
    "maximumf": (np.max, np.maximum),
    "minimumf": (np.min, np.minimum),
    "maxnumf": (_number_of(np.max, -np.inf), np.fmax),
    "minnumf": (_number_of(np.min, np.inf), np.fmin),
    "maxsi": (np.max, np.maximum),
    "minsi": (np.min, np.minimum),
    "maxui": (np.max, np.maximum),
    "minui": (np.min, np.minimum),
    "and": (_bitwise(np.bitwise_and), np.bitwise_and),
    "or": (_bitwise(np.bitwise_or), np.bitwise_or),
    "xor": (_bitwise(np.bitwise_xor), np.bitwise_xor),
}
"""By `#vector.kind`: along axes, and of two."""


def reduced(kind: str, source: Any, axes: tuple[int, ...], start: Any = None) -> Any:
    """A reduction along axes, combined with `start`; floats in f32, `…ui` on unsigned numbers.

    An empty tuple of axes combines each element with `start`.
    """
    dtype = source.dtype
    along, combine = REDUCTIONS[kind]

    def wide(a: Any) -> Any:
        if kind.endswith("ui"):
            return as_unsigned(a)
        if is_float(dtype):
            return a if dtype == np.float64 else a.astype(np.float32)
        return a.astype(np.int32) if dtype.kind == "V" else a

    found = along(wide(source), axis=axes) if axes else wide(source)
    if start is not None:
        if dtype.kind == "b" and kind == "add":
            combine = np.logical_xor
        found = combine(wide(start), found)
    return np.asarray(found).astype(dtype)[()]


@means("vector.multi_reduction")
def multi_reduction(op: Operation, scope: Scope) -> Run:
    """Reduces dimensions, and combines with the accumulator."""
    kind, axes = case_of(attribute_of(op, "kind")), integers_of(op, "reduction_dims")
    if kind not in REDUCTIONS or axes is None:
        raise unfit(op, f"reduction {kind or 'of no kind'}")
    return lambda frame, source, start: reduced(kind, source, axes, start)


@means("vector.reduction")
def reduction(op: Operation, scope: Scope) -> Run:
    """Reduces a vector of one dimension to a scalar."""
    kind = case_of(attribute_of(op, "kind"))
    if kind not in REDUCTIONS:
        raise unfit(op, f"reduction {kind or 'of no kind'}")
    return lambda frame, source, start=None: reduced(kind, source, (0,), start)


@means("vector.contract")
def contraction(op: Operation, scope: Scope) -> Run:
    """A product as the indexing maps say, combined with the accumulator."""
    kind, maps = case_of(attribute_of(op, "kind"), "add"), indexing_maps(op)
    if kind not in REDUCTIONS:
        raise unfit(op, f"combining kind {kind}")
    dtype = dtype_in(op.results[0].type)
    if kind == "add":
        return lambda frame, a, b, c: contract(maps, a, b, c, dtype)
    along, combine = REDUCTIONS[kind]
    left, right, out = maps

    def run(frame: Activation, a: Any, b: Any, c: Any) -> Any:
        count = 1 + max((*left, *right))
        wide = np.float32 if is_float(dtype) else dtype

        def spread(value: Any, dims: tuple[int, ...]) -> Any:
            order = sorted(range(len(dims)), key=dims.__getitem__)
            shape = [1] * count
            for dim, size in zip(dims, value.shape, strict=True):
                shape[dim] = size
            return value.astype(wide).transpose(order).reshape(shape)

        product = spread(a, left) * spread(b, right)
        gone = tuple(dim for dim in range(count) if dim not in out)
        found = along(product, axis=gone)
        kept = sorted(out)
        return combine(c, found.transpose([kept.index(dim) for dim in out])).astype(dtype)

    return run


@means("vector.fma")
def fused(op: Operation, scope: Scope) -> Run:
    """a * b + c, rounded once for f32 and narrower types."""
    dtype = dtype_in(op.results[0].type)

    def run(frame: Activation, a: Any, b: Any, c: Any) -> Any:
        x, y, z = (v.astype(np.float64) for v in (a, b, c))
        return (x * y + z).astype(dtype)

    return run


@means("vector.outerproduct")
def outer_product(op: Operation, scope: Scope) -> Run:
    """Each element of one vector times each of the other, combined with the accumulator."""
    kind, dtype = case_of(attribute_of(op, "kind"), "add"), dtype_in(op.results[0].type)
    if kind not in REDUCTIONS:
        raise unfit(op, f"{name_of(op)} of kind {kind}")
    combine = REDUCTIONS[kind][1]

    def run(frame: Activation, a: Any, b: Any, c: Any = None) -> Any:
        product = a[:, None] * b if np.ndim(b) else a * b
        return (product if c is None else combine(c, product)).astype(dtype)

    return run
