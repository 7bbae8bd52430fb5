"""Sparse matrices, as JAX hands them to cuSPARSE, hipSPARSE and its own library for the CPU.

COO: values, rows, columns; CSR: values, columns, where each row begins. A place that stands twice counts
twice; places outside the matrix (JAX pads with them) count nothing. Source: the lowerings in
`jax.experimental.sparse` and the descriptors that jaxlib packs into `opaque`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.interp.custom_calls import computes, options_of, register_custom_call, unfit
from mlirhlo.interp.linear_algebra.linalg import widened
from mlirhlo.interp.ops.async_ops import zeros
from mlirhlo.interp.registry import Array, Frame, Meaning, Value

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.control_flow import CustomCallOp

_MATRIX_INTS = 7
"""Value type, index type, rows, columns, number of values, batch count, batch stride."""


def opaque_of(op: CustomCallOp) -> bytes:
    """The bytes of the option `opaque`. Raises HLO0355 without one."""
    opaque = options_of(op).get("opaque")
    if isinstance(opaque, str):
        return opaque.encode()
    if not isinstance(opaque, bytes):
        raise unfit(op, "it has no option `opaque`, which says the sizes")
    return opaque


def _rows_of(begins: Array, count: int) -> Array:
    """The row of each value of a CSR matrix; values beyond the last row are outside."""
    return np.searchsorted(begins, np.arange(count), side="right") - 1


def dense(values: Array, rows: Array, columns: Array, shape: tuple[int, int]) -> Array:
    """The matrix, in double precision."""
    inside: Any = (rows >= 0) & (rows < shape[0]) & (columns >= 0) & (columns < shape[1])
    result: Any = np.zeros(shape, widened(values).dtype)
    np.add.at(result, (rows[inside], columns[inside]), values[inside])
    return cast(Array, result)


def _matrix(kind: str, inputs: Sequence[Any], shape: tuple[int, int]) -> Array:
    """The first three operands."""
    values, second, third = inputs[:3]
    if kind == "coo":
        return dense(values, second, third, shape)
    return dense(values, _rows_of(third, len(values)), second, shape)


def _results(op: CustomCallOp, *values: Array) -> Value:
    """Results in their types, then the workspace. Raises HLO0355 for complex numbers in real results."""
    if not isinstance(op.shape, TupleShape):
        return _typed(op, values[0], cast(ArrayShape, op.shape))
    parts = [cast(ArrayShape, part) for part in op.shape.elements]
    typed = [_typed(op, v, part) for v, part in zip(values, parts, strict=False)]
    return (*typed, *map(zeros, parts[len(values) :]))


def _typed(op: CustomCallOp, value: Array, shape: ArrayShape) -> Array:
    if value.dtype.kind == "c" and not shape.element_type.is_complex:
        raise unfit(op, f"its numbers are complex, its result is {shape}")
    return value.astype(shape.element_type.dtype)


def _first(op: CustomCallOp) -> ArrayShape:
    shape = op.shape.elements[0] if isinstance(op.shape, TupleShape) else op.shape
    return cast(ArrayShape, shape)


def _todense(kind: str) -> Meaning:
    def meaning(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
        rows, columns = _first(op).dimensions
        return _results(op, _matrix(kind, inputs, (rows, columns)))

    return meaning


def _fromdense(kind: str) -> Meaning:
    def meaning(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
        """What is not zero, row by row; unused room holds zeros."""
        matrix = cast(Array, inputs[0])
        (count,) = _first(op).dimensions
        rows, columns = (found[:count] for found in np.nonzero(matrix))
        values, seconds, thirds = (np.zeros(count, d) for d in (matrix.dtype, np.int64, np.int64))
        values[: len(rows)] = matrix[rows, columns]
        if kind == "coo":
            seconds[: len(rows)], thirds[: len(rows)] = rows, columns
            return _results(op, values, seconds, thirds)
        seconds[: len(rows)] = columns
        counts: Any = np.bincount(rows, minlength=matrix.shape[0])
        begins = np.concatenate([[0], np.cumsum(counts)])
        return _results(op, values, seconds, begins)

    return meaning


def _product(kind: str) -> Meaning:
    def meaning(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
        """The matrix, or its transposed one, times a vector or a matrix."""
        opaque = opaque_of(op)
        if len(opaque) < 4 * (_MATRIX_INTS + 1):
            raise unfit(op, f"{len(opaque)} bytes are no descriptor of a product")
        _, _, rows, columns, *_ = struct.unpack_from(f"<{_MATRIX_INTS}i", opaque)
        (operation,) = struct.unpack_from("<i", opaque, len(opaque) - 4)
        matrix = _matrix(kind, inputs, (rows, columns))
        return _results(op, np.matmul(matrix.T if operation else matrix, widened(inputs[3])))

    return meaning


_MEANINGS: dict[str, Callable[[str], Meaning]] = {
    "todense": _todense,
    "fromdense": _fromdense,
    "matvec": _product,
    "matmat": _product,
}

for _vendor in ("cu", "hip"):
    for _kind in ("coo", "csr"):
        for _name, _make in _MEANINGS.items():
            register_custom_call(f"{_vendor}sparse_{_kind}_{_name}_ffi", _make(_kind))


@computes("cpu_csr_sparse_dense_ffi")
def csr_times_dense(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """A CSR matrix times a vector or a matrix; where rows begin stands before the columns here."""
    values, begins, columns, other = inputs
    shape = (len(begins) - 1, other.shape[0])
    matrix = _matrix("csr", (values, columns, begins), shape)
    return _results(op, np.matmul(matrix, widened(other)))


@computes("cusolver_csrlsvqr_ffi", "hipsolver_csrlsvqr_ffi")
def sparse_solve(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """x with A x = b for a square CSR matrix; NaN where A is singular."""
    size = len(inputs[3])
    matrix = _matrix("csr", inputs, (size, size))
    try:
        return _results(op, np.linalg.solve(matrix, widened(inputs[3])))
    except np.linalg.LinAlgError:
        return _results(op, np.full(size, np.nan))
