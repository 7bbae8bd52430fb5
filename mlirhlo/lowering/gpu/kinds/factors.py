"""Cholesky and LU factors and triangular solves whose inner loops the threads of a block share, in double precision.

Small matrices of `cholesky` are a thread's work, by the loops of the CPU (`library.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, TypeAlias, cast

from xdsl.dialects import math
from xdsl.dialects.builtin import StringAttr, f64, i32
from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.structured import LibraryOp
from mlirhlo.interp.custom_calls.lapack_signature import is_lower, routine_of
from mlirhlo.interp.custom_calls.options import options_of
from mlirhlo.lowering.builder import Index, Loop, memref_of
from mlirhlo.lowering.gpu.elements import array
from mlirhlo.lowering.gpu.launches import THREADS, LaunchBuilder, Plan
from mlirhlo.lowering.hlo_to_loops.elements import Value
from mlirhlo.lowering.hlo_to_loops.elementwise_convert import convert
from mlirhlo.lowering.hlo_to_loops.linear_algebra import conjugate, less_product, quotient, wide

_WARP = 32
_SMALL = 16
"""Rows of a matrix that a thread factors on its own."""
_MANY = 128
"""Columns to solve for that keep a block busy with a thread for each."""

Options: TypeAlias = "Mapping[str, Any]"
Factor: TypeAlias = "Callable[[Plan, LibraryOp, Instruction], bool]"


def cholesky(plan: Plan, op: LibraryOp, instruction: Instruction) -> bool:
    """A block for each matrix. Returns whether it has added the launch.

    A matrix that has no factor is NaN everywhere.
    """
    del instruction
    *batch, n, _ = array(op.inputs[0]).dimensions
    if n <= _SMALL or not prod(batch):
        return False
    work = _Block(plan, op, prod(batch) * n * n)
    factor = _Cholesky(work, n, _flag(op, "lower"))
    failed = work.b.cmpi("ne", factor.run(), work.b.index(0))
    nan, zero = (work.b.constant(v, f64) for v in (float("nan"), 0.0))
    factor.write(
        lambda inside, part, _: work.b.select(failed, nan, work.b.select(inside, part, zero))
    )
    work.b.launch(prod(batch), _threads(n))
    return True


def potrf(plan: Plan, op: LibraryOp, options: Options) -> bool:
    """The factor over one triangle, and the order of the first minor that is not positive, or 0."""
    *batch, n, _ = array(op.inputs[0]).dimensions
    work = _Block(plan, op, prod(batch) * n * n)
    factor = _Cholesky(work, n, is_lower(options))
    work.write_number(1, factor.at, factor.run())
    factor.write(work.b.select)
    work.b.launch(prod(batch), _threads(n))
    return True


class _Cholesky:
    """The factor of a matrix, column by column.

    for j:   l[i, j] = a[i, j] - l[i, :j] . conj(l[j, :j])   for i from j on, a thread each
             l[j, j] = sqrt(l[j, j]);   l[i, j] /= l[j, j]
    """

    def __init__(self, work: _Block, n: int, lower: bool) -> None:
        self.work, self.b, self.n, self.lower = work, work.b, n, lower
        self.at = work.batch()
        self.start = work.start(n * n)

    def number(self, i: Index, j: Index) -> Index:
        """Where l[i, j] is."""
        return self.b.add(self.start, self.b.add(self.b.mul(j, self.n), i))

    def element(self, i: Index, j: Index) -> Value:
        """a[i, j], of the triangle that is read."""
        value = self.work.read(0, [*self.at, i, j] if self.lower else [*self.at, j, i])
        return value if self.lower else conjugate(self.b, value)

    def run(self) -> SSAValue:
        """The order of the first minor that is not positive, or 0."""
        b, n = self.b, self.n
        with b.loop(0, n, 1, [b.index(0)]) as columns:
            j = columns.index
            pivot = self._less_products(j)
            self._divide(j, b.one(math.SqrtOp, pivot))
            is_bad = b.cmpf("ule", pivot, b.constant(0.0, f64))
            columns.carry(first_failure(b, columns.carried[0], is_bad, j))
        return cast(Loop, columns).results[0]

    def _less_products(self, j: Index) -> SSAValue:
        """A column less what the columns before it explain; its pivot."""
        b, work = self.b, self.work
        with b.loop(b.add(j, b.thread_id()), self.n, _threads(self.n)) as i:
            with b.loop(0, j, 1, self.element(i, j)) as loop:
                x = work.load(self.number(i, loop.index))
                y = conjugate(b, work.load(self.number(j, loop.index)))
                loop.carry(*less_product(b, tuple(loop.carried), x, y))
            work.store(tuple(cast(Loop, loop).results), self.number(i, j))
        b.barrier()
        pivot = work.load(self.number(j, j))[0]
        b.barrier()
        return pivot

    def _divide(self, j: Index, root: SSAValue) -> None:
        b, work = self.b, self.work
        with b.loop(b.add(j, b.thread_id()), self.n, _threads(self.n)) as i:
            is_pivot = b.cmpi("eq", b.index(i), b.index(j))
            parts = work.load(self.number(i, j))
            own = (root, *[b.constant(0.0, f64)] * (len(parts) - 1))
            pairs = zip(own, parts, strict=True)
            below = tuple(b.select(is_pivot, r, b.divf(part, root)) for r, part in pairs)
            work.store(below, self.number(i, j))
        b.barrier()

    def write(self, choice: Callable[[SSAValue, SSAValue, SSAValue], SSAValue]) -> None:
        """The result: a choice between numbers of the factor and of the operand, inside the triangle or not."""
        b, work = self.b, self.work
        with b.loop(b.thread_id(), self.n * self.n, _threads(self.n)) as cell:
            row, column = b.div(cell, self.n), b.rem(cell, self.n)
            low = b.minimum(row, column)
            high = b.sub(b.add(row, column), low)
            first, second = (row, column) if self.lower else (column, row)
            inside = b.cmpi("uge", b.index(first), b.index(second))
            value = work.load(self.number(high, low))
            value = value if self.lower else conjugate(b, value)
            own = work.read(0, [*self.at, row, column])
            parts = zip(value, own, strict=True)
            work.write([*self.at, row, column], tuple(choice(inside, v, w) for v, w in parts))


def first_failure(b: LaunchBuilder, before: SSAValue, is_bad: SSAValue, j: Index) -> SSAValue:
    """An order, or `j + 1` where it is 0 and something is bad."""
    is_first = b.andi(is_bad, b.cmpi("eq", before, b.index(0)))
    return b.select(is_first, b.index(b.add(j, 1)), before)


def getrf(plan: Plan, op: LibraryOp, options: Options) -> bool:
    """Factors with rows exchanged, pivots from 1 on, and the order of the first pivot that is 0, or 0."""
    del options
    *batch, m, n = array(op.inputs[0]).dimensions
    work = _Block(plan, op, prod(batch) * m * n)
    b, at, start, threads = work.b, work.batch(), work.start(m * n), _threads(m)

    def number(i: Index, j: Index) -> Index:
        return b.add(start, b.add(b.mul(j, m), i))

    with b.loop(b.thread_id(), m * n, threads) as cell:
        i, j = b.rem(cell, m), b.div(cell, m)
        work.store(work.read(0, [*at, i, j]), number(i, j))
    b.barrier()
    with b.loop(0, min(m, n), 1, [b.index(0)]) as columns:
        j = columns.index
        row = _largest(work, j, m, number)
        work.write_number(1, [*at, j], b.index(b.add(row, 1)))
        b.barrier()
        with b.loop(b.thread_id(), n, threads) as k:
            x, y = work.load(number(j, k)), work.load(number(row, k))
            work.store(y, number(j, k))
            work.store(x, number(row, k))
        b.barrier()
        pivot = work.load(number(j, j))
        is_zero = b.cmpf("oeq", _size(b, pivot), b.constant(0.0, f64))
        with b.loop(b.add(b.add(j, 1), b.thread_id()), m, threads) as i:
            value = work.load(number(i, j))
            pairs = zip(value, quotient(b, value, pivot), strict=True)
            factor = tuple(b.select(is_zero, v, q) for v, q in pairs)
            work.store(factor, number(i, j))
            with b.loop(b.add(j, 1), n) as k:
                rest = less_product(b, work.load(number(i, k)), factor, work.load(number(j, k)))
                work.store(rest, number(i, k))
        b.barrier()
        columns.carry(first_failure(b, columns.carried[0], is_zero, j))
    work.write_number(2, at, cast(Loop, columns).results[0])
    with b.loop(b.thread_id(), m * n, threads) as cell:
        i, j = b.div(cell, n), b.rem(cell, n)
        work.write([*at, i, j], work.load(number(i, j)))
    b.launch(prod(batch), threads)
    return True


def _largest(work: _Block, j: Index, m: int, number: Callable[[Index, Index], Index]) -> SSAValue:
    """The row from `j` on whose number in column `j` is the largest; the first of them."""
    b = work.b
    start = [_size(b, work.load(number(j, j))), b.index(j)]
    with b.loop(b.add(j, 1), m, 1, start) as loop:
        most, row = loop.carried
        found = _size(b, work.load(number(loop.index, j)))
        is_more = b.cmpf("ogt", found, most)
        loop.carry(b.select(is_more, found, most), b.select(is_more, b.index(loop.index), row))
    return cast(Loop, loop).results[1]


def _size(b: LaunchBuilder, value: Value) -> SSAValue:
    """LAPACK's measure of a number: the sum of the magnitudes of its parts."""
    first, *others = (b.one(math.AbsFOp, part) for part in value)
    return b.addf(first, others[0]) if others else first


def triangular_solve(plan: Plan, op: LibraryOp, instruction: Instruction) -> bool:
    """A thread for each column of x, or a block for each where they are few. Returns whether it has added the launch.

    x with op(a) x = b; x op(a) = b is the transposed of it.
    """
    del instruction
    *batch, n, _ = array(op.inputs[0]).dimensions
    sizes = array(op.inputs[1]).dimensions
    columns = sizes[-1] if _flag(op, "left_side") else sizes[-2]
    count = prod(batch) * columns
    if not count or not n:
        return False
    if n <= _SMALL or count >= _MANY:
        _by_threads(plan, op, count, n)
    else:
        _by_blocks(plan, op, count, n)
    return True


def _by_threads(plan: Plan, op: LibraryOp, count: int, n: int) -> None:
    """for i in order:   x[i] = (b[i] - sum over known k of t[i, k] * x[k]) / t[i, i]"""
    work = _Block(plan, op, count * n)
    b = work.b

    def body(column: SSAValue) -> None:
        system = _System(work, op, column)
        with b.loop(0, n) as step:
            i = system.row(step)
            first, end = (0, i) if system.lower else (b.add(i, 1), n)
            with b.loop(first, end, 1, system.right(i)) as loop:
                x = work.load(b.add(b.mul(loop.index, count), column))
                y = system.left(i, loop.index)
                loop.carry(*less_product(b, tuple(loop.carried), y, x))
            value = system.divided(tuple(cast(Loop, loop).results), i)
            work.store(value, b.add(b.mul(i, count), column))
            system.write(value, i)

    threads = min(_MANY, -(-count // _WARP) * _WARP)
    b.launch(b.each_thread(count, threads, body), threads)


def _by_blocks(plan: Plan, op: LibraryOp, count: int, n: int) -> None:
    """for i in order:   x[i] = b[i] / t[i, i];   b[k] -= t[k, i] * x[i] for k after i, a thread each"""
    threads = _threads(n)
    work = _Block(plan, op, count * n)
    b, start, thread = work.b, work.start(n), work.b.thread_id()
    system = _System(work, op, b.index(b.block_id()))
    with b.loop(thread, n, threads) as i:
        work.store(system.right(i), b.add(start, i))
    b.barrier()
    with b.loop(0, n) as step:
        i = system.row(step)
        value = system.divided(work.load(b.add(start, i)), i)
        with b.if_(b.cmpi("eq", thread, b.index(0))):
            system.write(value, i)
        with b.loop(b.add(b.add(step, 1), thread), n, threads) as later:
            k = system.row(later)
            rest = less_product(b, work.load(b.add(start, k)), system.left(k, i), value)
            work.store(rest, b.add(start, k))
        b.barrier()
    b.launch(count, threads)


def _threads(rows: int) -> int:
    return min(THREADS, -(-rows // _WARP) * _WARP)


def _flag(op: LibraryOp, key: str) -> bool:
    value = op.settings.data.get(key)
    return value is not None and bool(cast(Any, value).value.data)


def routine(plan: Plan, op: LibraryOp, instruction: Instruction) -> bool:
    """A custom call of LAPACK. Returns whether it has added the launch."""
    target = cast(StringAttr, op.settings.data["custom_call_target"]).data
    called = routine_of(target, [array(v) for v in op.inputs], [array(v) for v in op.outputs])
    build = {"getrf": getrf, "potrf": potrf}.get(called or "")
    return build is not None and build(plan, op, options_of(instruction))


FACTORS: dict[str, Factor] = {
    "cholesky": cholesky,
    "custom-call": routine,
    "triangular-solve": triangular_solve,
}
"""What adds the launch of an opcode, if its sizes are worth it."""


class _Block:
    """A launch with memory for doubles, of complex numbers in two planes."""

    def __init__(self, plan: Plan, op: LibraryOp, numbers: int) -> None:
        self.op = op
        self.element = array(op.inputs[0]).element_type
        self.buffers = [
            plan.workspace(memref_of(f64, numbers)) for _ in range(1 + self.element.is_complex)
        ]
        self.b: LaunchBuilder = plan.begin(list(op.inputs), list(op.outputs), self.buffers)

    def batch(self) -> list[Index]:
        """Indices of the block's matrix."""
        *sizes, _, _ = array(self.op.inputs[0]).dimensions
        return list(self.b.e.unlinear(self.b.index(self.b.block_id()), sizes))

    def start(self, numbers: int) -> Index:
        """Where the memory of the block begins."""
        return self.b.mul(self.b.block_id(), numbers)

    def load(self, number: Index) -> Value:
        return tuple(self.b.load(self.b.memory[n], [number]) for n in self.buffers)

    def store(self, value: Value, number: Index) -> None:
        for n, part in zip(self.buffers, value, strict=True):
            self.b.store(part, self.b.memory[n], [number])

    def read(self, operand: int, indices: Sequence[Index]) -> Value:
        """An element of an operand, as doubles."""
        value = self.b.e.at(self.op.inputs[operand], tuple(indices))
        return convert(self.b, value, self.element, wide(self.element))

    def write_number(self, result: int, indices: Sequence[Index], number: SSAValue) -> None:
        """An integer of a result, by the first thread."""
        b = self.b
        with b.if_(b.cmpi("eq", b.index(b.thread_id()), b.index(0))):
            b.write(self.op.outputs[result], tuple(indices), (b.cast_index(number, i32),))

    def write(self, indices: Sequence[Index], value: Value) -> None:
        """An element of the first result."""
        narrow = convert(self.b, value, wide(self.element), self.element)
        self.b.write(self.op.outputs[0], tuple(indices), narrow)


class _System:
    """One column of a triangular solve: t x = b."""

    def __init__(self, work: _Block, op: LibraryOp, column: SSAValue) -> None:
        self.work, self.b = work, work.b
        *batch, self.size, _ = array(op.inputs[0]).dimensions
        sizes = array(op.inputs[1]).dimensions
        self.is_left, self.is_unit = _flag(op, "left_side"), _flag(op, "unit_diagonal")
        transposition = cast(StringAttr, op.settings.data["transpose_a"]).data
        self.is_adjoint = transposition == "ADJOINT"
        self.is_transposed = (transposition != "NO_TRANSPOSE") == self.is_left
        self.lower = _flag(op, "lower") != self.is_transposed
        *self.at, self.column = work.b.e.unlinear(
            column, (*batch, sizes[-1] if self.is_left else sizes[-2])
        )

    def row(self, step: Index) -> Index:
        """The row that is solved for in a step."""
        return step if self.lower else self.b.sub(self.size - 1, step)

    def left(self, i: Index, k: Index) -> Value:
        """t[i, k]."""
        value = self.work.read(0, [*self.at, k, i] if self.is_transposed else [*self.at, i, k])
        return conjugate(self.b, value) if self.is_adjoint else value

    def _place(self, i: Index) -> list[Index]:
        return [*self.at, i, self.column] if self.is_left else [*self.at, self.column, i]

    def right(self, i: Index) -> Value:
        """b[i]."""
        return self.work.read(1, self._place(i))

    def divided(self, value: Value, i: Index) -> Value:
        """A number by t[i, i]."""
        return value if self.is_unit else quotient(self.b, value, self.left(i, i))

    def write(self, value: Value, i: Index) -> None:
        """x[i]."""
        self.work.write(self._place(i), value)
