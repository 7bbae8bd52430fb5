"""cholesky and triangular-solve: matrix by matrix, in double precision, in memory of their own.

Rows of the work matrices are padded with zeros to whole vectors. Batches go to several threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects import math
from xdsl.dialects.builtin import f64, i1, i8
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects import arith as casts
from mlirhlo.dialects.hlo.element_types import C128, F64, PrimitiveType
from mlirhlo.dialects.hlo.ops.linear_algebra import CholeskyOp, TriangularSolveOp
from mlirhlo.lowering.builder import FunctionBuilder, Index, Loop, vector_of
from mlirhlo.lowering.hlo_to_loops.array_kernel import ArrayKernel
from mlirhlo.lowering.hlo_to_loops.complex_arithmetic import divide
from mlirhlo.lowering.hlo_to_loops.elements import Value
from mlirhlo.lowering.hlo_to_loops.elementwise_convert import convert
from mlirhlo.lowering.hlo_to_loops.kernels import builds
from mlirhlo.lowering.hlo_to_loops.math_numbers import Numbers
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places

_LANES = 8
_FLOP_NS = 0.3


class _Matrix:
    """A matrix of doubles in memory, row by row: complex ones in two planes."""

    def __init__(self, b: FunctionBuilder, planes: Sequence[SSAValue], columns: int) -> None:
        self.b, self.planes, self.stride = b, planes, padded(columns)

    def _at(self, row: Index, column: Index) -> Index:
        return self.b.add(self.b.mul(row, self.stride), column)

    def load(self, row: Index, column: Index, lanes: int = 0) -> Value:
        b, at = self.b, self._at(row, column)
        return tuple(
            b.vector_load(p, [at], lanes) if lanes else b.load(p, [at]) for p in self.planes
        )

    def store(self, value: Value, row: Index, column: Index, lanes: int = 0) -> None:
        b, at = self.b, self._at(row, column)
        for plane, part in zip(self.planes, value, strict=True):
            if lanes:
                b.vector_store(part, plane, [at])
            else:
                b.store(part, plane, [at])

    def clear(self, rows: int) -> None:
        b = self.b
        zero = b.constant(0.0, vector_of(f64, _LANES))
        with b.loop(0, rows * self.stride, _LANES) as at:
            for plane in self.planes:
                b.vector_store(zero, plane, [at])


def padded(columns: int) -> int:
    """Columns of a work matrix."""
    return -(-columns // _LANES) * _LANES


def _planes(rows: int, columns: int, element: PrimitiveType) -> list[tuple[int, Attribute]]:
    return [(rows * padded(columns), f64)] * (2 if element.is_complex else 1)


def wide(element: PrimitiveType) -> PrimitiveType:
    """The type that factors are computed in."""
    return C128 if element.is_complex else F64


def conjugate(b: FunctionBuilder, x: Value) -> Value:
    """Of a real number itself."""
    return (x[0], b.negf(x[1])) if len(x) == 2 else x


def less_product(b: FunctionBuilder, sum_: Value, x: Value, y: Value) -> Value:
    """`sum - x * y`."""
    negative = tuple(b.negf(part) for part in x)
    if len(x) == 1:
        return (b.fma(negative[0], y[0], sum_[0]),)
    real = b.fma(negative[0], y[0], b.fma(x[1], y[1], sum_[0]))
    imaginary = b.fma(negative[0], y[1], b.fma(negative[1], y[0], sum_[1]))
    return (real, imaginary)


class _Read:
    """Elements of an operand's matrices in double precision."""

    def __init__(self, k: ArrayKernel, number: int, batch: Sequence[Coordinate]) -> None:
        self.k, self.number, self.batch = k, number, batch

    def __call__(self, row: Index, column: Index) -> Value:
        k, element = self.k, self.k.shape(self.number).element_type
        place = [*self.batch, Coordinate(row), Coordinate(column)]
        value = k.read(self.number, place, Places(k.b, 0))
        return convert(k.b, value, element, wide(element))

    def write(self, value: Value, row: Index, column: Index) -> None:
        k, element = self.k, self.k.shape(self.number).element_type
        place = [*self.batch, Coordinate(row), Coordinate(column)]
        k.write(self.number, place, convert(k.b, value, wide(element), element))


# ---------------------------------------------------------------- triangular-solve


@builds("triangular-solve")
def triangular_solve(name: str, op: Any) -> FuncOp:
    """x with op(a) x = b, or x op(a) = b, which is the transposed of it.

    for i in order:   x[i, :] = (b[i, :] - sum over known k of t[i, k] * x[k, :]) / t[i, i]
    """
    assert isinstance(op, TriangularSolveOp)
    k = ArrayKernel(name, op)
    b = k.b
    element = k.operands[0].element_type
    *batch, size, _ = k.operands[0].dimensions
    right = k.operands[1].dimensions
    columns = right[-1] if op.left_side else right[-2]
    if 0 in right:
        return k.finish()
    turned = (op.transpose_a != "NO_TRANSPOSE") == op.left_side
    lower = op.lower != turned
    buffers = [*_planes(size, size, element), *_planes(size, columns, element)]
    count = len(buffers) // 2
    work = k.operands[1].element_count * size * _FLOP_NS
    with k.each(batch, buffers, work) as (place, memory):
        t = _Matrix(b, memory[:count], size)
        x = _Matrix(b, memory[count:], columns)
        a, given, result = (_Read(k, n, place) for n in range(3))
        with b.loop(0, size) as i, b.loop(0 if lower else i, b.add(i, 1) if lower else size) as j:
            value = a(j, i) if turned else a(i, j)
            if op.transpose_a == "ADJOINT":
                value = conjugate(b, value)
            t.store(value, i, j)
        x.clear(size)
        with b.loop(0, size) as i, b.loop(0, columns) as j:
            x.store(given(i, j) if op.left_side else given(j, i), i, j)
        with b.loop(0, size) as step:
            i = step if lower else b.sub(size - 1, step)
            pivot = t.load(i, i)
            with b.loop(0, padded(columns), _LANES) as j:
                start = x.load(i, j, _LANES)
                first, end = (0, i) if lower else (b.add(i, 1), size)
                with b.loop(first, end, 1, start) as loop:
                    factor = tuple(b.broadcast(p, _LANES) for p in t.load(i, loop.index))
                    row = x.load(loop.index, j, _LANES)
                    loop.carry(*less_product(b, tuple(loop.carried), factor, row))
                rest = tuple(cast(Loop, loop).results)
                if not op.unit_diagonal:
                    below = tuple(b.broadcast(p, _LANES) for p in pivot)
                    rest = quotient(b, rest, below)
                x.store(rest, i, j, _LANES)
        with b.loop(0, size) as i, b.loop(0, columns) as j:
            value = x.load(i, j)
            result.write(value, *((i, j) if op.left_side else (j, i)))
    return k.finish()


def quotient(b: FunctionBuilder, x: Value, y: Value) -> Value:
    """`x / y`."""
    if len(x) == 1:
        return (b.divf(x[0], y[0]),)
    return divide(Numbers(b, x[0].type), (x[0], x[1]), (y[0], y[1]))


# ---------------------------------------------------------------- cholesky


@builds("cholesky")
def cholesky(name: str, op: Any) -> FuncOp:
    """L with L * adjoint(L) = A from A's lower triangle; of the upper one its adjoint.

        for i, for j below i:   l[i, j] = (a[i, j] - l[i, :] . conj(l[j, :])) / l[j, j]
                                l[i, i] = sqrt(a[i, i] - |l[i, :]|^2)

    NaN everywhere when a pivot is not positive.
    """
    assert isinstance(op, CholeskyOp)
    k = ArrayKernel(name, op)
    b = k.b
    shape = k.operands[0]
    element = shape.element_type
    *batch, size, _ = shape.dimensions
    if 0 in shape.dimensions:
        return k.finish()
    work = shape.element_count * size * _FLOP_NS
    with k.each(batch, _planes(size, size, element), work) as (place, memory):
        factor = _Matrix(b, memory, size)
        a, result = _Read(k, 0, place), _Read(k, 1, place)
        factor.clear(size)
        failed = b.scratch([1], i8)
        b.store(b.constant(0, i8), failed, [0])
        with b.loop(0, size) as i:
            with b.loop(0, i) as j:
                value = a(i, j) if op.lower else conjugate(b, a(j, i))
                rest = _less_row(b, value, factor, i, j, j)
                below = factor.load(j, j)[0]
                factor.store(tuple(b.divf(part, below) for part in rest), i, j)
            pivot = _less_row(b, a(i, i), factor, i, i, i)[0]
            positive = b.cmpf("ogt", pivot, b.constant(0.0, f64))
            bad = b.cast(casts.ExtUIOp, b.xori(positive, b.constant(True, i1)), i8)
            b.store(b.ori(b.load(failed, [0]), bad), failed, [0])
            root = b.one(math.SqrtOp, pivot)
            zero = [b.constant(0.0, f64)] * (len(factor.planes) - 1)
            factor.store((root, *zero), i, i)
        is_bad = b.cmpi("ne", b.load(failed, [0]), b.constant(0, i8))
        nan = b.constant(float("nan"), f64)
        with b.loop(0, size) as i, b.loop(0, size) as j:
            # What stands above the diagonal was never written: zeros.
            value = factor.load(i, j) if op.lower else conjugate(b, factor.load(j, i))
            result.write(tuple(b.select(is_bad, nan, part) for part in value), i, j)
    return k.finish()


def _less_row(
    b: FunctionBuilder, value: Value, factor: _Matrix, i: Index, j: Index, count: Index
) -> Value:
    """`value` less the product of row `i` with the conjugate of row `j`, of `count` elements.

    Row `i` is zero from there on, so that whole vectors do.
    """
    zeros = [b.constant(0.0, vector_of(f64, _LANES))] * len(factor.planes)
    with b.loop(0, count, _LANES, zeros) as loop:
        x = factor.load(i, loop.index, _LANES)
        y = conjugate(b, factor.load(j, loop.index, _LANES))
        loop.carry(*less_product(b, tuple(loop.carried), x, y))
    sums = cast(Loop, loop).results
    return tuple(b.addf(v, b.reduce("add", s)) for v, s in zip(value, sums, strict=True))
