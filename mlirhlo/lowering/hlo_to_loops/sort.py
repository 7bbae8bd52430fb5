"""sort: rows one by one, each in memory of its own; rows go to several threads.

A comparator that compares the same function of both sides makes keys (`sort_keys`); any other one, and
NaNs under an order that has no place for them, runs a merge sort of the elements' numbers. All are stable.

    for each row:
      keys = key(row); order keys          or    merge numbers, asking the comparator
      result[i] = operand[number[i]]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from math import prod
from typing import Any, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import i1, i8, i32, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects import arith as casts
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.ops.control_flow import ParameterOp
from mlirhlo.dialects.hlo.ops.reduction import SortOp
from mlirhlo.interp.sorting import SortKey, sort_key
from mlirhlo.lowering.builder import INDEX, Index, Loop
from mlirhlo.lowering.hlo_to_loops.array_kernel import ArrayKernel, is_minor
from mlirhlo.lowering.hlo_to_loops.elemental import Elements
from mlirhlo.lowering.hlo_to_loops.elements import Value
from mlirhlo.lowering.hlo_to_loops.folds import callee
from mlirhlo.lowering.hlo_to_loops.kernels import builds
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places
from mlirhlo.lowering.hlo_to_loops.sort_keys import KeyedRow, key_bits, ordered_key, row_buffers

_LANES = 16
_ELEMENT_NS = 20.0
"""Time that ordering takes for an element, about."""


class Rows:
    """Rows of a kernel's arrays along one dimension, and memory to order one in."""

    def __init__(self, k: ArrayKernel, dim: int) -> None:
        self.k, self.b, self.dim = k, k.b, dim
        sizes = k.operands[0].dimensions
        self.length = sizes[dim]
        self.outer = [n for d, n in enumerate(sizes) if d != dim]
        self.count = prod(self.outer)

    def each(
        self, buffers: Sequence[tuple[int, Attribute]]
    ) -> AbstractContextManager[tuple[list[Coordinate], list[SSAValue]]]:
        """A loop over all rows: gives the place of a row but for `dim`, and buffers of these sizes."""
        work = self.count * self.length * _ELEMENT_NS
        return self.k.each(self.outer, buffers, work)

    def at(self, row: Sequence[Coordinate], c: Coordinate) -> list[Coordinate]:
        """A place in a row."""
        return [*row[: self.dim], c, *row[self.dim :]]

    def vectors(
        self, length: int, body: Callable[[Index, int, SSAValue | None], None], *, lanes: int
    ) -> None:
        """`body(at, lanes, mask)` for all of 0…length."""
        b = self.b
        if not lanes:
            with b.loop(0, length) as at:
                body(at, 0, None)
            return
        whole = length - length % lanes
        if whole:
            with b.loop(0, whole, lanes) as at:
                body(at, lanes, None)
        if whole != length:
            body(whole, lanes, b.mask(b.index(length - whole), lanes))

    def give(
        self,
        row: Sequence[Coordinate],
        length: int,
        number: Callable[[Index, int, SSAValue | None], SSAValue],
        results: Sequence[tuple[int, int]],
    ) -> None:
        """Writes elements by their numbers: `results` pairs operands with the arguments they go to."""
        minor = all(is_minor(self.k.shape(to), self.dim) for _, to in results)

        def move(at: Index, lanes: int, mask: SSAValue | None) -> None:
            found = number(at, lanes, mask)
            source = Coordinate(0, 0, found) if lanes else Coordinate(found)
            places = Places(self.b, lanes, mask)
            for operand, to in results:
                value = self.k.read(operand, self.at(row, source), places)
                target = self.at(row, Coordinate(at, 1 if lanes else 0))
                self.k.write(to, target, value, lanes, mask)

        self.vectors(length, move, lanes=_LANES if minor and length >= _LANES else 0)


@builds("sort")
def sort(name: str, op: Any) -> FuncOp:
    """The kernel of a sort of any number of arrays."""
    assert isinstance(op, SortOp)
    k = ArrayKernel(name, op)
    rows = Rows(k, op.dimensions[0])
    if 0 in k.operands[0].dimensions:
        return k.finish()
    comparator = callee(op, op.to_apply)
    key = sort_key(comparator.root)
    if key is not None and (key.element_type.is_complex or rows.length >= 1 << 31):
        key = None
    count = len(k.operands)
    results = [(n, count + n) for n in range(count)]
    merged: list[tuple[int, Attribute]] = [(rows.length, i32)] * 2
    has_no_order = key is not None and key.element_type.is_float and not key.total
    keyed = [] if key is None else row_buffers(rows.length, key_bits(key.element_type))
    with rows.each([*keyed, *(merged if key is None or has_no_order else [])]) as (row, buffers):

        def by_merging() -> None:
            numbers = _merge(rows, row, comparator, buffers[len(keyed) :])

            def number(at: Index, lanes: int, mask: SSAValue | None) -> SSAValue:
                b = k.b
                x = b.vector_load(numbers, [at], lanes, mask) if lanes else b.load(numbers, [at])
                return b.cast_index(x, INDEX)

            rows.give(row, rows.length, number, results)

        def by_key(keys: KeyedRow) -> None:
            keys.order()
            rows.give(row, rows.length, keys.number, results)

        if key is None:
            by_merging()
        else:
            keys = KeyedRow(k.b, rows.length, key_bits(key.element_type), buffers[: len(keyed)])
            unordered = _put_keys(rows, row, keys, comparator, key)
            if unordered is None:
                by_key(keys)
            else:
                with k.b.if_(unordered):
                    by_merging()
                with k.b.if_(k.b.xori(unordered, k.b.constant(True, i1))):
                    by_key(keys)
    return k.finish()


def _put_keys(
    rows: Rows, row: Sequence[Coordinate], keys: KeyedRow, comparator: ComputationOp, key: SortKey
) -> SSAValue | None:
    """Computes the keys of a row; whether one is NaN, where that matters."""
    k, b = rows.k, rows.b
    element = key.element_type
    wanted = _parameters(key.value)
    watched = element.is_float and not key.total
    flag = b.scratch([1], i8) if watched else None
    if flag is not None:
        b.store(b.constant(0, i8), flag, [0])

    def put(at: Index, lanes: int, mask: SSAValue | None) -> None:
        places = Places(b, lanes, mask)
        e = Elements(places, {})
        for parameter in comparator.parameters:
            number = parameter.parameter_number
            if number in wanted:
                place = rows.at(row, Coordinate(at, 1 if lanes else 0))
                e.know(parameter.output, (), k.read(number // 2, place, places))
        value = e.at(key.value, ())
        if flag is not None:
            _watch(rows, value, flag, element, lanes, mask)
        made = ordered_key(b, value, element, total=key.total, descending=key.descending)
        keys.put(at, made, lanes, mask)

    rows.vectors(rows.length, put, lanes=_LANES if rows.length >= _LANES else 0)
    if flag is None:
        return None
    return b.cmpi("ne", b.load(flag, [0]), b.constant(0, i8))


def _watch(
    rows: Rows, value: Value, flag: SSAValue, element: Any, lanes: int, mask: SSAValue | None
) -> None:
    """Sets the flag when one of these is NaN."""
    from mlirhlo.dialects.hlo.element_types import F32
    from mlirhlo.lowering.hlo_to_loops.elementwise_convert import convert

    b = rows.b
    (x,) = convert(b, value, element, F32) if element.bits < 32 else value
    nan = b.cmpf("uno", x, x)
    if mask is not None:
        nan = b.andi(nan, mask)
    seen = b.cast(casts.ExtUIOp, nan, i8)
    if lanes:
        seen = b.reduce("or", seen)
    b.store(b.ori(b.load(flag, [0]), seen), flag, [0])


def _parameters(value: SSAValue) -> set[int]:
    """Numbers of the parameters that a value is computed from."""
    found: set[int] = set()
    stack, seen = [value], set[SSAValue]()
    while stack:
        here = stack.pop()
        if here in seen:
            continue
        seen.add(here)
        op = cast(Instruction, here.owner)
        if isinstance(op, ParameterOp):
            found.add(op.parameter_number)
        stack += op.inputs
    return found


def _merge(
    rows: Rows, row: Sequence[Coordinate], comparator: ComputationOp, buffers: Sequence[SSAValue]
) -> SSAValue:
    """Numbers of a row's elements in order: runs of 1, 2, 4, … merge."""
    k, b, n = rows.k, rows.b, rows.length
    places = Places(b, 0)
    first, spare = buffers
    with b.loop(0, n) as at:
        b.store(b.cast_index(at, i32), first, [at])
    passes = max(n - 1, 0).bit_length()
    if not passes:
        return first
    one, last = b.constant(1, INDEX), b.constant(n - 1, INDEX)
    start = [first, spare, one, b.constant(-(-n // 2), INDEX)]

    def elements(number: SSAValue) -> list[Value]:
        place = rows.at(row, Coordinate(b.cast_index(number, INDEX)))
        return [k.read(o, place, places) for o in range(len(k.operands))]

    def least(x: Index, y: Index) -> SSAValue:
        return b.integer(arith.MinSIOp, b.index(x), b.index(y))

    with b.loop(0, passes, 1, start) as outer:
        source, target, width, runs = outer.carried
        with b.loop(0, runs) as run:
            twice = b.addi(width, width)
            low = b.muli(run, twice)
            middle, end = least(b.addi(low, width), n), least(b.addi(low, twice), n)
            with b.loop(low, end, 1, [low, middle]) as inner:
                i, j = inner.carried
                left = b.load(source, [least(i, last)])
                right = b.load(source, [least(j, last)])
                pairs = zip(elements(right), elements(left), strict=True)
                arguments = [x for pair in pairs for x in pair]
                ((less,),) = Elements(places, {}).inline(comparator, arguments)
                over = b.cmpi("sge", i, middle)
                takes = b.andi(b.cmpi("slt", j, end), b.ori(over, less))
                b.store(b.select(takes, right, left), target, [inner.index])
                moved = b.cast_index(b.cast(casts.ExtUIOp, takes, i64), INDEX)
                inner.carry(b.subi(b.addi(i, one), moved), b.addi(j, moved))
        halved = b.div(b.add(runs, 1), 2)
        outer.carry(target, source, b.addi(width, width), b.index(halved))
    return cast(Loop, outer).results[0]
