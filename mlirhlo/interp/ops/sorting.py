"""Sort and top-k. Every sort is stable.

A comparator that compares the same function of both sides sorts by that function as key; any other
one runs a merge sort whose comparisons are whole arrays.
"""

# numpy's stubs leave the element types of results open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.ir import BlockArgument, SSAValue

from mlirhlo.dialects.hlo.element_types import Kind, PrimitiveType
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.control_flow import ParameterOp
from mlirhlo.dialects.hlo.ops.elementwise import CompareOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.interp.numerics import total_order_key, work_dtype
from mlirhlo.interp.ops.elementwise import element_type
from mlirhlo.interp.registry import Array, Frame, Program, Run, Value, prepares

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.reduction import SortOp, TopkOp

Less = Callable[[Sequence[Array], Sequence[Array]], Array]
"""Whether elements (one array per operand) come before others, place by place."""


@dataclass(frozen=True, slots=True)
class SortKey:
    """A comparator that orders by one value computed from each side."""

    value: SSAValue
    """The key of the first side, in the comparator."""
    element_type: PrimitiveType
    total: bool
    descending: bool


@prepares("sort")
def sort(op: SortOp, program: Program) -> Run:
    """Operands sorted together along a dimension by a comparator."""
    dim, name = op.dimensions[0], op.to_apply
    is_tuple = isinstance(op.shape, TupleShape)
    key = sort_key(program.computation(name).root)

    def run(inputs: Sequence[Any], frame: Frame) -> Value:
        rows = [np.moveaxis(array, dim, -1) for array in inputs]
        order = None if key is None else _order_by_key(rows, key, frame)
        if order is None:
            order = merge_order(rows, _caller(name, frame))
        results = tuple(
            np.moveaxis(np.take_along_axis(row, order, axis=-1), -1, dim) for row in rows
        )
        return results if is_tuple else results[0]

    return run


def _caller(name: str, frame: Frame) -> Less:
    def less(first: Sequence[Array], second: Sequence[Array]) -> Array:
        pairs = [array for pair in zip(first, second, strict=True) for array in pair]
        return frame.call_elementwise(name, pairs)[0]

    return less


# ---------------------------------------------------------------- by key


def sort_key(root: Instruction) -> SortKey | None:
    """The key a comparator orders by; None when it is not of that kind."""
    if not isinstance(root, CompareOp) or root.direction not in ("LT", "GT"):
        return None
    type_ = element_type(root)
    total = root.comparison_type == "TOTALORDER" or root.order == "TOTAL"
    for first, second, turned in ((root.lhs, root.rhs, False), (root.rhs, root.lhs, True)):
        if _mirrors(first, second):
            return SortKey(first, type_, total, (root.direction == "GT") != turned)
    return None


def _mirrors(first: SSAValue, second: SSAValue) -> bool:
    """Whether `second` is to the odd parameters what `first` is to the even ones."""
    pending, seen = [(first, second)], set[tuple[SSAValue, SSAValue]]()
    while pending:
        pair = pending.pop()
        if pair in seen:
            continue
        seen.add(pair)
        a, b = pair[0].owner, pair[1].owner
        number, other = parameter_number(pair[0]), parameter_number(pair[1])
        if number is not None and other is not None:
            if number % 2 or other != number + 1:
                return False
            continue
        if not isinstance(a, Instruction) or not isinstance(b, Instruction):
            return False
        if not a.opcode.elementwise and a.opcode.name not in ("constant", "broadcast"):
            return False
        alike = type(a) is type(b) and _meaning_of(a) == _meaning_of(b)
        if not alike or len(a.inputs) != len(b.inputs) or pair[0].type != pair[1].type:
            return False
        pending += zip(a.inputs, b.inputs, strict=True)
    return True


def parameter_number(value: SSAValue) -> int | None:
    """The number of a parameter of a computation, or of an argument of a body; None for any other value."""
    if isinstance(value, BlockArgument):
        return value.index
    return value.owner.parameter_number if isinstance(value.owner, ParameterOp) else None


def _meaning_of(op: Instruction) -> dict[str, Any]:
    """The properties that decide what an instruction computes."""
    return {
        spec.property_name: op.properties.get(spec.property_name) for spec in op.opcode.attributes
    }


def _order_by_key(rows: Sequence[Array], key: SortKey, frame: Frame) -> Array | None:
    arguments = [row for row in rows for _ in range(2)]
    values = np.broadcast_to(cast(Array, frame.value(key.value, arguments)), rows[0].shape)
    return stable_order(values, key.element_type, total=key.total, descending=key.descending)


def stable_order(
    values: Array, type_: PrimitiveType, *, total: bool, descending: bool
) -> Array | None:
    """Indices that sort the last dimension; None for NaNs in an order that is not total."""
    if type_.is_complex:
        return None
    if type_.is_float and not total:
        numbers = values.astype(work_dtype(type_))
        if np.any(np.isnan(numbers)):
            return None
        return np.argsort(-numbers if descending else numbers, axis=-1, kind="stable")
    keys = total_order_key(values, type_)
    if descending:
        keys = ~keys
    return np.argsort(keys, axis=-1, kind="stable")


# ---------------------------------------------------------------- by any comparator


def merge_order(rows: Sequence[Array], less: Less) -> Array:
    """Indices that sort the last dimension by `less`: bottom-up merging, all runs at once.

    Every element finds its place in the neighbouring run by binary search. A comparator that is no
    strict weak order can send two elements to one place; then rows are merged one by one.
    """
    shape, length = rows[0].shape, rows[0].shape[-1]
    count = math.prod(shape[:-1])
    flat = [row.reshape(count, length) for row in rows]
    order = np.broadcast_to(np.arange(length), (count, length)).copy()
    if length < 2 or count == 0:
        return order.reshape(shape)
    run = 1
    while run < length:
        current = [np.take_along_axis(row, order, axis=-1) for row in flat]
        places = _merged_places(current, run, less)
        if np.any(np.sort(places, axis=-1) != np.arange(length)):
            return _order_one_by_one(flat, less).reshape(shape)
        merged = np.empty_like(order)
        np.put_along_axis(merged, places, order, axis=-1)
        order = merged
        run *= 2
    return order.reshape(shape)


def _merged_places(rows: Sequence[Array], run: int, less: Less) -> Array:
    """Where every element goes when neighbouring sorted runs of length `run` merge."""
    count, length = rows[0].shape
    position = np.arange(length)
    start = position // (2 * run) * (2 * run)
    middle = np.minimum(start + run, length)
    end = np.minimum(start + 2 * run, length)
    is_left = position < middle
    other_start = np.where(is_left, middle, start)
    low = np.broadcast_to(other_start, (count, length)).copy()
    high = np.broadcast_to(np.where(is_left, end, middle), (count, length)).copy()
    left = np.broadcast_to(is_left, (count, length))
    while np.any(low < high):
        probe = np.minimum((low + high) // 2, length - 1)
        others = [np.take_along_axis(row, probe, axis=-1) for row in rows]
        # Left elements go before equal ones of the right run, right ones after equal left ones.
        before = less(
            [np.where(left, o, r) for o, r in zip(others, rows, strict=True)],
            [np.where(left, r, o) for o, r in zip(others, rows, strict=True)],
        )
        passes = np.where(left, before, ~before) & (low < high)
        high = np.where((low < high) & ~passes, probe, high)
        low = np.where(passes, probe + 1, low)
    own = np.where(is_left, position - start, position - middle)
    return start + own + (low - other_start)


def _order_one_by_one(rows: Sequence[Array], less: Less) -> Array:
    count, length = rows[0].shape
    result = np.empty((count, length), dtype=np.int64)
    for row in range(count):
        elements = [array[row] for array in rows]

        def compare(i: int, j: int, elements: list[Array] = elements) -> int:
            a = [e[i : i + 1] for e in elements]
            b = [e[j : j + 1] for e in elements]
            if less(a, b)[0]:
                return -1
            return 1 if less(b, a)[0] else 0

        result[row] = sorted(range(length), key=cmp_to_key(compare))
    return result


# ---------------------------------------------------------------- top-k


@prepares("topk")
def topk(op: TopkOp, program: Program) -> Run:
    """The k largest or smallest of the last dimension, best first, and their s32 indices.

    Floats compare in total order (NaN above infinity); equal elements keep their order.
    """
    k, largest = op.k, op.largest
    type_ = cast(ArrayShape, op.input_shapes[0]).element_type

    def run(inputs: Sequence[Any], frame: Frame) -> Value:
        return top(inputs[0], type_, k, largest=largest)

    return run


def top(operand: Array, type_: PrimitiveType, k: int, *, largest: bool) -> tuple[Array, Array]:
    """Values and s32 indices of the `k` best of the last dimension."""
    keys = operand if type_.kind is Kind.PRED else total_order_key(operand, type_)
    if largest:
        keys = ~keys
    order = np.argsort(keys, axis=-1, kind="stable")[..., :k]
    return np.take_along_axis(operand, order, axis=-1), order.astype(np.int32)
