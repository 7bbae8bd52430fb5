"""Kinds `sort` and `top_k`: see `sorter.py`; kind `radix_sort`: see `radix.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from xdsl.ir import SSAValue

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.element_types import S32
from mlirhlo.dialects.hlo.ops import CompareOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.structured import SortOp, TopKOp, sizes_of
from mlirhlo.interp.ops.sorting import SortKey
from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.gpu.elements import array
from mlirhlo.lowering.gpu.kinds.radix import RadixSorter
from mlirhlo.lowering.gpu.kinds.sorter import Sorter
from mlirhlo.lowering.gpu.launches import (
    THREADS,
    LaunchBuilder,
    Plan,
    inputs_of,
    launches,
    stored_inputs,
)
from mlirhlo.lowering.hlo_to_loops.elements import (
    Value,
    buffer_type,
)
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places
from mlirhlo.lowering.hlo_to_loops.sort_keys import key_bits, ordered_key
from mlirhlo.lowering.schedule.attributes import Schedule
from mlirhlo.lowering.schedule.sorts import digits_pay, key_of


@launches("sort")
def sort(plan: Plan, ops: Sequence[SortOp], schedule: Schedule) -> None:
    """A launch for short runs, then one for each doubling."""
    del schedule
    for op in ops:

        def less(
            b: LaunchBuilder, x: Sequence[Value], y: Sequence[Value], op: SortOp = op
        ) -> SSAValue:
            pairs = [v for pair in zip(x, y, strict=True) for v in pair]
            return b.e.body(op.comparator, pairs)[0][0]

        def read(b: LaunchBuilder, at: tuple[Index, ...], op: SortOp = op) -> Sequence[Value]:
            return [b.e.at(value, at) for value in op.inputs]

        shapes = [array(value) for value in op.outputs]
        targets = [plan.numbers[value] for value in op.outputs]
        direct = {value for value in op.inputs if value in plan.numbers}
        computed = [value for value in op.inputs if value not in direct]
        Sorter(
            plan,
            shapes,
            op.dim,
            inputs_of(plan, ops, ops),
            read,
            less,
            sources=op.inputs,
            in_place=direct.difference(stored_inputs(plan, computed)),
            is_distinct=_is_distinct(op),
        ).sort(targets)


@launches("radix_sort")
def radix_sort(plan: Plan, ops: Sequence[SortOp], schedule: Schedule) -> None:
    """A launch that counts digits of keys, then one for each digit."""
    del schedule
    for op in ops:
        found = key_of(op)
        if found is None:
            raise error("HLO0806", f"`{op.name}` orders by no key, as `radix_sort` does")
        element = found.element_type

        def key(
            b: LaunchBuilder, x: Sequence[Value], op: SortOp = op, found: SortKey = found
        ) -> SSAValue:
            arguments = [v for value in x for v in (value, None)]
            (value,) = b.e.values(op.comparator, arguments, (), [found.value])
            return ordered_key(
                b, value, found.element_type, total=found.total, descending=found.descending
            )

        def read(b: LaunchBuilder, at: tuple[Index, ...], op: SortOp = op) -> Sequence[Value]:
            return [b.e.at(value, at) for value in op.inputs]

        shapes = [array(value) for value in op.outputs]
        inputs = inputs_of(plan, ops, ops)
        sorter = RadixSorter(plan, shapes, op.dim, inputs, read, (key, key_bits(element)))
        sorter.sort([plan.numbers[value] for value in op.outputs])


@launches("top_k")
def top_k(plan: Plan, ops: Sequence[TopKOp], schedule: Schedule) -> None:
    """Values and their numbers: the first ones of each tile, then of those, until they are those of each row.

    Where more than half of a tile is wanted, rows are ordered as a whole: by digits where that pays.
    """
    del schedule
    for op in ops:
        shape = array(op.input)
        sizes = shape.dimensions

        def key(b: LaunchBuilder, x: Sequence[Value], op: TopKOp = op) -> SSAValue:
            element, is_descending = array(op.input).element_type, op.largest is not None
            return ordered_key(b, x[0], element, total=True, descending=is_descending)

        def less(
            b: LaunchBuilder,
            x: Sequence[Value],
            y: Sequence[Value],
            key: Callable[[LaunchBuilder, Sequence[Value]], SSAValue] = key,
        ) -> SSAValue:
            keys = [key(b, v) for v in (x, y)]
            # Of equal ones the first: numbers are different, so that all elements are.
            before, same = b.cmpi("ult", *keys), b.cmpi("eq", *keys)
            return b.ori(before, b.andi(same, b.cmpi("ult", x[1][0], y[1][0])))

        def read(b: LaunchBuilder, at: tuple[Index, ...], op: TopKOp = op) -> Sequence[Value]:
            assert S32.mlir is not None
            return [b.e.at(op.input, at), (b.cast_index(b.index(at[-1]), S32.mlir),)]

        shapes = [shape, ArrayShape(S32, sizes)]
        inputs = inputs_of(plan, ops, ops)
        sorter = Sorter(
            plan,
            shapes,
            len(sizes) - 1,
            inputs,
            read,
            less,
            sources=[op.input],
            is_distinct=True,
        )
        kept = sizes_of(op.values)[-1]
        if 0 in (*sizes, kept):
            continue
        if 2 * kept <= sorter.tile or sorter.tile >= sizes[-1]:
            sorter.select([plan.numbers[value] for value in (op.values, op.indices)], kept)
            continue
        bits = key_bits(shape.element_type)
        if digits_pay(sizes[-1], bits):
            targets = [plan.numbers[value] for value in (op.values, op.indices)]
            RadixSorter(plan, shapes, len(sizes) - 1, inputs, read, (key, bits)).sort(targets, kept)
            continue
        ordered = [plan.workspace(buffer_type(s)) for s in shapes]
        sorter.sort(ordered)
        _first_of_rows(plan, op, shapes, ordered)


def _is_distinct(op: SortOp) -> bool:
    """Whether elements that stand neither before nor after each other are the same bits."""
    first = op.comparator.block.first_op
    if len(op.inputs) > 1 or not isinstance(first, CompareOp):
        return False
    element = array(op.inputs[0]).element_type
    is_plain = set(first.inputs) == set(op.comparator.block.args) and first.next_op is (
        op.comparator.block.last_op
    )
    is_total = not element.is_float or first.comparison_type == "TOTALORDER"
    return is_plain and is_total and first.direction in ("LT", "GT")


def _first_of_rows(
    plan: Plan, op: TopKOp, shapes: Sequence[ArrayShape], ordered: Sequence[int]
) -> None:
    results, kept = (op.values, op.indices), sizes_of(op.values)
    b = plan.begin((), results, (), ordered)

    def body(index: SSAValue) -> None:
        at = b.e.unlinear(index, kept)
        places = [Coordinate(i) for i in at]
        for value, number, shape in zip(results, ordered, shapes, strict=True):
            b.write(value, at, Places(b, 0).load(b.memory[number], shape, places))

    count = prod(kept)
    if count:
        threads = min(THREADS, -(-count // 32) * 32)
        b.launch(b.each_thread(count, threads, body), threads)
