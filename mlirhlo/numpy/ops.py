"""HLO's instructions on traced arrays: one function an opcode, shapes worked out here.

For the kernels of this room only: operands are arrays of the current trace, its surroundings, or
concrete ones, which become constants. Types and shapes are taken as right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects.hlo.attributes.base import boolean, integer, integers, string, symbol
from mlirhlo.dialects.hlo.attributes.dimensions import (
    Padding,
    PaddingAttr,
    PaddingDimension,
    Slice,
    SliceAttr,
    SliceDimension,
)
from mlirhlo.dialects.hlo.identities import identity_element
from mlirhlo.dialects.hlo.shapes import Layout as HloLayout
from mlirhlo.dialects.hlo.shapes import TupleShape, array
from mlirhlo.dialects.hlo.table import OPCODES
from mlirhlo.dialects.hlo.types import type_of
from mlirhlo.numpy import dtypes as dt
from mlirhlo.numpy.array import Array
from mlirhlo.numpy.dtypes import DType
from mlirhlo.numpy.tracing.trace import Trace, active, type_for

Shape = tuple[int, ...]


def emit(
    opcode: str,
    operands: Sequence[Array],
    dtype: DType,
    shape: Shape,
    properties: dict[str, Attribute] | None = None,
) -> Array:
    """An instruction of the current trace."""
    trace = active()
    values = [trace.value(operand) for operand in operands]
    value = trace.emit(opcode, values, type_for(dtype, shape), properties)
    return Array.traced(trace, value, dtype, shape)


def several(
    opcode: str,
    operands: Sequence[Array],
    results: Sequence[tuple[DType, Shape]],
    properties: dict[str, Attribute],
) -> tuple[Array, ...]:
    """An instruction whose result is a tuple, taken apart."""
    trace = active()
    values = [trace.value(operand) for operand in operands]
    shape = TupleShape(tuple(array(dt.primitive(d), s) for d, s in results))
    value = trace.emit(opcode, values, type_of(shape), properties)
    return tuple(
        Array.traced(trace, trace.element(value, index), d, s)
        for index, (d, s) in enumerate(results)
    )


# ------------------------------------------------------------------ elementwise


def unary(opcode: str, x: Array, dtype: DType | None = None) -> Array:
    """An elementwise instruction of one operand."""
    return emit(opcode, (x,), x.dtype if dtype is None else dtype, x.shape)


def binary(opcode: str, a: Array, b: Array) -> Array:
    """An elementwise instruction of two operands of one shape and type."""
    return emit(opcode, (a, b), a.dtype, a.shape)


def compare(direction: str, a: Array, b: Array) -> Array:
    """`a EQ|NE|LT|LE|GT|GE b`."""
    return emit("compare", (a, b), dt.bool, a.shape, {"direction": string(direction)})


def select(condition: Array, a: Array, b: Array) -> Array:
    """`a` where the condition holds, else `b`; all of one shape."""
    return emit("select", (condition, a, b), a.dtype, a.shape)


def convert(x: Array, dtype: DType) -> Array:
    """`x` in another type; complex numbers lose their imaginary part on the way to a real type."""
    if x.dtype == dtype:
        return x
    if dt.kind_of(x.dtype) == "c" and dt.kind_of(dtype) != "c":
        if dtype == dt.bool:
            return compare("NE", x, splat(0, x.dtype, x.shape))
        return convert(unary("real", x, dt.real_of(x.dtype)), dtype)
    return unary("convert", x, dtype)


def complex_(real: Array, imag: Array) -> Array:
    """`real + i*imag`."""
    return emit("complex", (real, imag), dt.complex_of(real.dtype), real.shape)


def constant(value: Any, dtype: DType) -> Array:
    """A constant of numpy data or Python numbers."""
    return Array.concrete(np.asarray(value, dtype=dtype))


def splat(value: Any, dtype: DType, shape: Shape) -> Array:
    """One value in every place."""
    scalar = constant(value, dtype)
    return broadcast(scalar, shape, ()) if shape else scalar


def like(value: Any, x: Array) -> Array:
    """One value in every place of an array like `x`."""
    return splat(value, x.dtype, x.shape)


# ------------------------------------------------------------------ data movement


def broadcast(x: Array, shape: Shape, dimensions: Shape) -> Array:
    """Dimension i of `x` becomes dimension `dimensions[i]`; its size stays."""
    return emit("broadcast", (x,), x.dtype, shape, {"dimensions": integers(dimensions)})


def broadcast_to(x: Array, shape: Shape) -> Array:
    """numpy's broadcasting: sizes of 1 are repeated, dimensions in front are new."""
    if x.shape == shape:
        return x
    new = len(shape) - x.ndim
    kept = [d for d, size in enumerate(x.shape) if size == shape[d + new]]
    if len(kept) != x.ndim:
        x = reshape(x, tuple(x.shape[d] for d in kept))
    return broadcast(x, shape, tuple(d + new for d in kept))


def reshape(x: Array, shape: Shape) -> Array:
    """The same elements in row-major order."""
    return x if x.shape == shape else emit("reshape", (x,), x.dtype, shape)


def transpose(x: Array, order: Shape) -> Array:
    """Result dimension i is dimension `order[i]`."""
    if order == tuple(range(x.ndim)):
        return x
    shape = tuple(x.shape[d] for d in order)
    return emit("transpose", (x,), x.dtype, shape, {"dimensions": integers(order)})


def reverse(x: Array, axes: Shape) -> Array:
    """Dimensions turned round."""
    return emit("reverse", (x,), x.dtype, x.shape, {"dimensions": integers(axes)}) if axes else x


def slice_(x: Array, ranges: Sequence[tuple[int, int, int]]) -> Array:
    """`x[start:limit:step]` in every dimension, steps positive."""
    shape = tuple(max(0, -(-(limit - start) // step)) for start, limit, step in ranges)
    if shape == x.shape:
        return x
    spec = Slice(tuple(SliceDimension(*one) for one in ranges))
    return emit("slice", (x,), x.dtype, shape, {"slice": SliceAttr(spec)})


def slice_axis(x: Array, axis: int, start: int, limit: int) -> Array:
    """`x[…, start:limit, …]`."""
    ranges = [(0, size, 1) for size in x.shape]
    ranges[axis] = (start, limit, 1)
    return slice_(x, ranges)


def pad(x: Array, value: Array, padding: Sequence[tuple[int, int, int]]) -> Array:
    """`value` in `low` places before, `high` after and `interior` between; per dimension."""
    shape = tuple(
        max(0, low + high + size + max(0, size - 1) * interior)
        for size, (low, high, interior) in zip(x.shape, padding, strict=True)
    )
    spec = Padding(tuple(PaddingDimension(*one) for one in padding))
    return emit("pad", (x, value), x.dtype, shape, {"padding": PaddingAttr(spec)})


def concatenate(parts: Sequence[Array], axis: int) -> Array:
    """Arrays of one type, one after the other."""
    if len(parts) == 1:
        return parts[0]
    shape = list(parts[0].shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    return emit(
        "concatenate", parts, parts[0].dtype, tuple(shape), {"dimensions": integers((axis,))}
    )


def iota(dtype: DType, shape: Shape, axis: int) -> Array:
    """0, 1, 2, … along an axis."""
    if dtype == dt.bool:
        return convert(iota(dt.int64, shape, axis), dtype)
    return emit("iota", (), dtype, shape, {"iota_dimension": integer(axis)})


def dynamic_slice(x: Array, starts: Sequence[Array], sizes: Shape) -> Array:
    """A slice at starts that are scalars, clamped into the array."""
    return emit(
        "dynamic-slice", (x, *starts), x.dtype, sizes, {"dynamic_slice_sizes": integers(sizes)}
    )


def dynamic_update_slice(x: Array, update: Array, starts: Sequence[Array]) -> Array:
    """`x` with a slice replaced, starts clamped."""
    return emit("dynamic-update-slice", (x, update, *starts), x.dtype, x.shape)


def gather(x: Array, indices: Array, axes: Shape, at: int) -> Array:
    """`x` at index vectors of `axes`: `indices[..., k]` is the place along `axes[k]`.

    The dimensions of `indices` but its last stand in the result from dimension `at` on; the other
    dimensions of `x` keep their order around them.
    """
    batch = indices.shape[:-1]
    rest = [d for d in range(x.ndim) if d not in axes]
    shape = (
        *(x.shape[d] for d in rest[:at]),
        *batch,
        *(x.shape[d] for d in rest[at:]),
    )
    if 0 in shape:
        return splat(
            0, x.dtype, shape
        )  # slices of size 1 do not fit into an array without elements
    offsets = tuple(range(at)) + tuple(range(at + len(batch), len(shape)))
    sizes = tuple(1 if d in axes else size for d, size in enumerate(x.shape))
    return emit(
        "gather",
        (x, indices),
        x.dtype,
        shape,
        {
            "offset_dims": integers(offsets),
            "collapsed_slice_dims": integers(tuple(sorted(axes))),
            "start_index_map": integers(axes),
            "index_vector_dim": integer(len(batch)),
            "slice_sizes": integers(sizes),
        },
    )


def identity(opcode: str, dtype: DType) -> Any:
    """The element that `opcode` leaves others as they are with."""
    return identity_element(OPCODES[opcode], dt.primitive(dtype))


def scatter(
    x: Array, indices: Array, updates: Array, axes: Shape, at: int, opcode: str | None = None
) -> Array:
    """`x` with `updates` put at index vectors of `axes`, or folded into it by `opcode`; dimensions as
    `gather` has them."""
    if 0 in updates.shape:
        return x
    rank, batch = updates.ndim, indices.ndim - 1
    windows = tuple(range(at)) + tuple(range(at + batch, rank))
    trace = active()

    def second(region: Trace, values: Sequence[SSAValue]) -> SSAValue:
        return values[1]

    name = (
        trace.region(opcode, x.dtype)
        if opcode is not None
        else trace.scalar_region(
            ("second", x.dtype), f"assign_{dt.primitive(x.dtype)}", (x.dtype, x.dtype), second
        )
    )
    return emit(
        "scatter",
        (x, indices, updates),
        x.dtype,
        x.shape,
        {
            "update_window_dims": integers(windows),
            "inserted_window_dims": integers(tuple(sorted(axes))),
            "scatter_dims_to_operand_dims": integers(axes),
            "index_vector_dim": integer(batch),
            "to_apply": symbol(name),
        },
    )


# ------------------------------------------------------------------ reduction and sorting


def reduce(opcode: str, x: Array, axes: Shape) -> Array:
    """`x` folded over axes by `add`, `multiply`, `maximum`, `minimum`, `and`, `or`."""
    if not axes:
        return x
    shape = tuple(size for d, size in enumerate(x.shape) if d not in axes)
    start = constant(
        0 if opcode == "add" else identity(opcode, x.dtype), x.dtype
    )  # numpy's sums start from +0
    name = active().region(opcode, x.dtype)
    return emit(
        "reduce",
        (x, start),
        x.dtype,
        shape,
        {"dimensions": integers(axes), "to_apply": symbol(name)},
    )


def sort(operands: Sequence[Array], axis: int, *, descending: bool) -> tuple[Array, ...]:
    """Operands sorted together by the first, stably; NaN counts as the greatest value."""
    trace = active()
    dtypes = [operand.dtype for operand in operands for _ in range(2)]
    key, direction = operands[0].dtype, "GT" if descending else "LT"

    def comparator(region: Trace, values: Sequence[SSAValue]) -> SSAValue:
        sides = [_sort_key(region, value, key) for value in values[:2]]
        own: dict[str, Attribute] = {"direction": string(direction)}
        if dt.kind_of(key) == "f":
            own["type"] = string("TOTALORDER")
        return region.emit("compare", sides, type_for(dt.bool, ()), own)

    stem = f"{'descending' if descending else 'ascending'}_{dt.primitive(key)}"
    region = ("sort", tuple(dtypes), descending)
    properties: dict[str, Attribute] = {
        "dimensions": integers((axis,)),
        "is_stable": boolean(True),
        "to_apply": symbol(trace.scalar_region(region, stem, dtypes, comparator)),
    }
    if len(operands) == 1:
        x = operands[0]
        return (emit("sort", operands, x.dtype, x.shape, properties),)
    return several("sort", operands, [(x.dtype, x.shape) for x in operands], properties)


def _sort_key(region: Trace, value: SSAValue, dtype: DType) -> SSAValue:
    """Both zeros are one key, and so are all NaNs: in total order they would not be."""
    if dt.kind_of(dtype) != "f":
        return value
    type_, flag = type_for(dtype, ()), type_for(dt.bool, ())

    def number(data: float) -> SSAValue:
        return region.value(constant(data, dtype))

    def choose(
        direction: str, a: SSAValue, b: SSAValue, then: SSAValue, other: SSAValue
    ) -> SSAValue:
        test = region.emit("compare", (a, b), flag, {"direction": string(direction)})
        return region.emit("select", (test, then, other), type_)

    zero = number(0.0)
    value = choose("EQ", value, zero, zero, value)
    return choose("NE", value, value, number(float("nan")), value)


# ------------------------------------------------------------------ linear algebra and calls


def dot(a: Array, b: Array, contracting: tuple[Shape, Shape], batch: tuple[Shape, Shape]) -> Array:
    """Sums of products: result dimensions are the batch, then the rest of `a`, then that of `b`."""
    left = [size for d, size in enumerate(a.shape) if d not in (*contracting[0], *batch[0])]
    right = [size for d, size in enumerate(b.shape) if d not in (*contracting[1], *batch[1])]
    shape = (*(a.shape[d] for d in batch[0]), *left, *right)
    names = ("lhs_contracting_dims", "rhs_contracting_dims", "lhs_batch_dims", "rhs_batch_dims")
    own: dict[str, Attribute] = {
        name: integers(value)
        for name, value in zip(names, (*contracting, *batch), strict=True)
        if value
    }
    return emit("dot", (a, b), a.dtype, shape, own)


def cholesky(a: Array) -> Array:
    """The lower factor of positive definite matrices; NaN for others."""
    return emit("cholesky", (a,), a.dtype, a.shape, {"lower": boolean(True)})


def triangular_solve(
    a: Array, b: Array, *, lower: bool, unit_diagonal: bool = False, transpose: str = "NO_TRANSPOSE"
) -> Array:
    """x with op(a) x = b."""
    own: dict[str, Attribute] = {"left_side": boolean(True), "transpose_a": string(transpose)}
    if lower:
        own["lower"] = boolean(True)
    if unit_diagonal:
        own["unit_diagonal"] = boolean(True)
    return emit("triangular-solve", (a, b), b.dtype, b.shape, own)


def fft(x: Array, kind: str, length: int, dtype: DType, size: int) -> Array:
    """`FFT`, `IFFT`, `RFFT` or `IRFFT` of the last dimension, which then has `size` elements."""
    own: dict[str, Attribute] = {"fft_type": string(kind), "fft_length": integers((length,))}
    return emit("fft", (x,), dtype, (*x.shape[:-1], size), own)


_LETTERS = {dt.float64: "d", dt.float32: "s", dt.complex128: "z", dt.complex64: "c"}


def lapack(
    routine: str,
    operands: Sequence[Array],
    results: Sequence[tuple[DType, Shape, int]],
    config: str = "",
) -> tuple[Array, ...]:
    """A LAPACK routine as JAX calls it on the CPU: matrices lie in columns.

    `results`: type, shape, and the rank of one of the batch (2 for matrices).
    """
    trace = active()
    batch = operands[0].ndim - 2

    def column_major(dtype: DType, shape: Shape, rank: int) -> Any:
        order = list(range(len(shape) - 1, -1, -1))
        if rank == 2:
            order[:2] = order[1::-1]
        return array(dt.primitive(dtype), shape, layout=HloLayout(tuple(order)))

    values = [trace.value(x) for x in operands]
    constraints = [type_of(column_major(x.dtype, x.shape, x.ndim - batch)) for x in operands]
    shapes = tuple(column_major(*result) for result in results)
    own: dict[str, Attribute] = {
        "custom_call_target": string(f"lapack_{_LETTERS[operands[0].dtype]}{routine}_ffi"),
        "operand_layout_constraints": ArrayAttr(constraints),
        "api_version": string("API_VERSION_TYPED_FFI"),
        "backend_config": string("{" + config + "}"),
    }
    type_ = type_of(shapes[0] if len(shapes) == 1 else TupleShape(shapes))
    value = trace.emit("custom-call", values, type_, own)
    parts = [value] if len(shapes) == 1 else [trace.element(value, i) for i in range(len(shapes))]
    return tuple(
        Array.traced(trace, part, dtype, shape)
        for part, (dtype, shape, _) in zip(parts, results, strict=True)
    )
