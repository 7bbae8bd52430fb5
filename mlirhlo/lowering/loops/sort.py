"""sort: rows one by one, each in memory of its own; all orders are stable.

    for each row:
      keys = key(row); order keys          or    merge indices, asking the comparator
      result[i] = operand[index[i]]

Kinds, in the schedule:
`counting`  a key for each element (`sort_keys`); for each of them those below it are counted
`radix`     the same keys, ordered by digits of 8 bits from the lowest up
`merge`     a merge sort of the elements' indices, by any comparator

A comparator that compares the same function of both sides makes keys. NaNs under an order that puts them nowhere are
merged, whatever the kind. `chunk` rows are a part of the parallel loop, keys are computed in vectors of `lanes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import i1, i8, i32, i64
from xdsl.ir import BlockArgument, Operation, SSAValue

from mlirhlo.dialects import arith as casts
from mlirhlo.dialects.hlo.element_types import F32, PrimitiveType
from mlirhlo.dialects.structured import SortOp
from mlirhlo.interp.ops.sorting import SortKey
from mlirhlo.lowering.builder import INDEX, Index, Loop
from mlirhlo.lowering.hlo_to_loops.elemental import Elements
from mlirhlo.lowering.hlo_to_loops.elements import Value
from mlirhlo.lowering.hlo_to_loops.elementwise_convert import convert
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places
from mlirhlo.lowering.hlo_to_loops.sort_keys import (
    KeyedRow,
    key_bits,
    order_of,
    ordered_key,
    row_buffers,
)
from mlirhlo.lowering.loops.kernel import LoopKernel, array, inlined
from mlirhlo.lowering.loops.lowering import OpLowering, lowers
from mlirhlo.lowering.loops.rows import Rows, rows_in_chunk
from mlirhlo.lowering.loops.schedule import LoopSchedule
from mlirhlo.lowering.schedule.sorts import key_of

_MAX_LENGTH = 1 << 31
"""Of rows with indices of 31 bits."""


@lowers(SortOp)
class Sort(OpLowering[SortOp]):
    """Rows one by one."""

    kinds = ("counting", "radix", "merge")

    def kind(self, op: SortOp) -> str:
        """By keys where the comparator has them."""
        length = array(op.inputs[0]).dimensions[op.dim]
        return "merge" if _key(op) is None else order_of(length)

    def chunk(self, op: SortOp, schedule: LoopSchedule) -> int:
        """Rows for each thread."""
        return rows_in_chunk(op.inputs[0], op.dim, _buffers(op, schedule)[0])

    def reason_against(self, op: SortOp, schedule: LoopSchedule) -> str:
        """Keys have to be there."""
        if schedule.chunk < 1:
            return "a chunk has one row and more"
        if schedule.kind != "merge" and _key(op) is None:
            return "its comparator orders by no key"
        return ""

    def emit(self, k: LoopKernel, op: SortOp, schedule: LoopSchedule) -> None:
        """The rows in order."""
        if 0 not in array(op.inputs[0]).dimensions:
            _Sorter(k, op, schedule).build()


def _key(op: SortOp) -> SortKey | None:
    """The key that a comparator orders by, of rows whose indices words hold."""
    return key_of(op) if array(op.inputs[0]).dimensions[op.dim] < _MAX_LENGTH else None


def _buffers(op: SortOp, schedule: LoopSchedule) -> tuple[list[tuple[int, Any]], int]:
    """Memory of a part of the parallel loop, and how many of the buffers are for keys."""
    length = array(op.inputs[0]).dimensions[op.dim]
    key = None if schedule.kind == "merge" else _key(op)
    keyed = [] if key is None else row_buffers(length, key_bits(key.element_type))
    is_merged = key is None or _has_no_order(key)
    return [*keyed, *([(length, i32)] * 2 if is_merged else [])], len(keyed)


def _has_no_order(key: SortKey) -> bool:
    """Whether there are elements that the order puts nowhere: NaNs."""
    return key.element_type.is_float and not key.total


class _Sorter:
    def __init__(self, k: LoopKernel, op: SortOp, schedule: LoopSchedule) -> None:
        self.k, self.b, self.op, self.schedule = k, k.b, op, schedule
        self.rows = Rows(k, op.inputs[0], op.dim)
        self.lanes = schedule.lanes if 0 < schedule.lanes <= self.rows.length else 0
        self.key = None if schedule.kind == "merge" else _key(op)

    def build(self) -> None:
        """All rows."""
        buffers, keyed = _buffers(self.op, self.schedule)
        with self.rows.each(buffers, self.schedule.chunk) as (row, memory):
            self.row(row, memory[:keyed], memory[keyed:])

    def row(
        self, row: Sequence[Coordinate], keyed: Sequence[SSAValue], merged: Sequence[SSAValue]
    ) -> None:
        """One row."""
        b, key = self.b, self.key
        if key is None:
            self.by_merging(row, merged)
            return
        keys = KeyedRow(b, self.rows.length, key_bits(key.element_type), keyed)
        unordered = self.put_keys(row, keys, key)
        if unordered is None:
            self.by_key(row, keys)
            return
        with b.if_(unordered):
            self.by_merging(row, merged)
        with b.if_(b.xori(unordered, b.constant(True, i1))):
            self.by_key(row, keys)

    def by_key(self, row: Sequence[Coordinate], keys: KeyedRow) -> None:
        """Writes the row in the order of its keys."""
        keys.order(self.schedule.kind)
        results = list(zip(self.op.inputs, self.op.outputs, strict=True))
        self.rows.give(row, keys.number, results, lanes=self.lanes)

    def by_merging(self, row: Sequence[Coordinate], buffers: Sequence[SSAValue]) -> None:
        """Writes the row in the order of its comparator."""
        b = self.b
        numbers = self.merge(row, buffers)

        def number(at: Index, lanes: int, mask: SSAValue | None) -> SSAValue:
            x = b.vector_load(numbers, [at], lanes, mask) if lanes else b.load(numbers, [at])
            return b.cast_index(x, INDEX)

        results = list(zip(self.op.inputs, self.op.outputs, strict=True))
        self.rows.give(row, number, results, lanes=self.lanes)

    def put_keys(self, row: Sequence[Coordinate], keys: KeyedRow, key: SortKey) -> SSAValue | None:
        """Computes the keys of a row; whether one is NaN, where that matters."""
        b, rows, element = self.b, self.rows, key.element_type
        arguments = _arguments(key.value)
        flag = b.scratch([1], i8) if _has_no_order(key) else None
        if flag is not None:
            b.store(b.constant(0, i8), flag, [0])

        def put(at: Index, lanes: int, mask: SSAValue | None) -> None:
            places = Places(b, lanes, mask)
            e = Elements(places, {})
            for argument in arguments:
                place = rows.at(row, Coordinate(at, 1 if lanes else 0))
                operand = self.op.inputs[argument.index // 2]
                e.know(argument, (), self.k.read(operand, place, places))
            value = e.at(key.value, ())
            if flag is not None:
                self.watch(value, flag, element, lanes, mask)
            made = ordered_key(b, value, element, total=key.total, descending=key.descending)
            keys.put(at, made, lanes, mask)

        rows.vectors(rows.length, put, lanes=self.lanes)
        return None if flag is None else b.cmpi("ne", b.load(flag, [0]), b.constant(0, i8))

    def watch(
        self,
        value: Value,
        flag: SSAValue,
        element: PrimitiveType,
        lanes: int,
        mask: SSAValue | None,
    ) -> None:
        """Sets the flag when one of these is NaN."""
        b = self.b
        (x,) = convert(b, value, element, F32) if element.bits < 32 else value
        nan = b.cmpf("uno", x, x)
        if mask is not None:
            nan = b.andi(nan, mask)
        seen = b.cast(casts.ExtUIOp, nan, i8)
        if lanes:
            seen = b.reduce("or", seen)
        b.store(b.ori(b.load(flag, [0]), seen), flag, [0])

    def merge(self, row: Sequence[Coordinate], buffers: Sequence[SSAValue]) -> SSAValue:
        """Indices of a row's elements in order: runs of 1, 2, 4, … merge."""
        k, b, n = self.k, self.b, self.rows.length
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
            place = self.rows.at(row, Coordinate(b.cast_index(number, INDEX)))
            return [k.read(operand, place, places) for operand in self.op.inputs]

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
                    ((less,),) = inlined(places, self.op.comparator, arguments)
                    over = b.cmpi("sge", i, middle)
                    takes = b.andi(b.cmpi("slt", j, end), b.ori(over, less))
                    b.store(b.select(takes, right, left), target, [inner.index])
                    moved = b.cast_index(b.cast(casts.ExtUIOp, takes, i64), INDEX)
                    inner.carry(b.subi(b.addi(i, one), moved), b.addi(j, moved))
            halved = b.div(b.add(runs, 1), 2)
            outer.carry(target, source, b.addi(width, width), b.index(halved))
        return cast(Loop, outer).results[0]


def _arguments(value: SSAValue) -> list[BlockArgument]:
    """The arguments of a body that a value is computed from."""
    found: dict[BlockArgument, None] = {}
    stack, seen = [value], set[SSAValue]()
    while stack:
        here = stack.pop()
        if here in seen:
            continue
        seen.add(here)
        if isinstance(here, BlockArgument):
            found[here] = None
        else:
            stack += cast(Operation, here.owner).operands
    return sorted(found, key=lambda argument: argument.index)
