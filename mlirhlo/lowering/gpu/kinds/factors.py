"""Cholesky factors and triangular solves whose inner loops the threads of a block share, in double precision.

Small matrices of a batch are a thread's work, by the loops of the CPU (`library.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias, cast

from xdsl.dialects import math
from xdsl.dialects.builtin import StringAttr, f64, i1
from xdsl.ir import SSAValue

from mlirhlo.dialects.structured import LibraryOp
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

Factor: TypeAlias = "Callable[[Plan, LibraryOp], bool]"


def cholesky(plan: Plan, op: LibraryOp) -> bool:
    """A block for each matrix, column by column. Returns whether it has added the launch.

    for j:   l[i, j] = a[i, j] - l[i, :j] . conj(l[j, :j])   for i from j on, a thread each
             l[j, j] = sqrt(l[j, j]);   l[i, j] /= l[j, j]
    """
    *batch, n, _ = array(op.inputs[0]).dimensions
    if n <= _SMALL or not prod(batch):
        return False
    threads = _threads(n)
    work = _Block(plan, op, prod(batch) * n * n)
    b, at, start = work.b, work.batch(batch), work.start(n * n)
    lower = _flag(op, "lower")

    def number(i: Index, j: Index) -> Index:
        return b.add(start, b.add(b.mul(j, n), i))

    def element(i: Index, j: Index) -> Value:
        value = work.read(0, [*at, i, j] if lower else [*at, j, i])
        return value if lower else conjugate(b, value)

    with b.loop(0, n, 1, [b.constant(False, i1)]) as columns:
        j = columns.index
        with b.loop(b.add(j, b.thread_id()), n, threads) as i:
            with b.loop(0, j, 1, element(i, j)) as loop:
                x = work.load(number(i, loop.index))
                y = conjugate(b, work.load(number(j, loop.index)))
                loop.carry(*less_product(b, tuple(loop.carried), x, y))
            work.store(tuple(cast(Loop, loop).results), number(i, j))
        b.barrier()
        pivot = work.load(number(j, j))[0]
        b.barrier()
        root = b.one(math.SqrtOp, pivot)
        with b.loop(b.add(j, b.thread_id()), n, threads) as i:
            is_pivot = b.cmpi("eq", b.index(i), b.index(j))
            parts = work.load(number(i, j))
            own = (root, *[b.constant(0.0, f64)] * (len(parts) - 1))
            below = tuple(
                b.select(is_pivot, r, b.divf(part, root))
                for r, part in zip(own, parts, strict=True)
            )
            work.store(below, number(i, j))
        b.barrier()
        is_bad = b.cmpf("ule", pivot, b.constant(0.0, f64))
        columns.carry(b.ori(columns.carried[0], is_bad))
    failed = cast(Loop, columns).results[0]
    nan, zero = (b.constant(v, f64) for v in (float("nan"), 0.0))
    with b.loop(b.thread_id(), n * n, threads) as cell:
        row, column = b.div(cell, n), b.rem(cell, n)
        i, j = (row, column) if lower else (column, row)
        inside = b.cmpi("uge", b.index(i), b.index(j))
        low, high = b.minimum(i, j), b.sub(b.add(i, j), b.minimum(i, j))
        value = work.load(number(high, low))
        value = tuple(b.select(failed, nan, b.select(inside, part, zero)) for part in value)
        work.write([*at, row, column], value if lower else conjugate(b, value))
    b.launch(prod(batch), threads)
    return True


def triangular_solve(plan: Plan, op: LibraryOp) -> bool:
    """A thread for each column of x, or a block for each where they are few. Returns whether it has added the launch.

    x with op(a) x = b; x op(a) = b is the transposed of it.
    """
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


FACTORS: dict[str, Factor] = {"cholesky": cholesky, "triangular-solve": triangular_solve}
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

    def batch(self, sizes: Sequence[int]) -> list[Index]:
        """Indices of the block's matrix."""
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

    def write(self, indices: Sequence[Index], value: Value) -> None:
        """An element of the result."""
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
