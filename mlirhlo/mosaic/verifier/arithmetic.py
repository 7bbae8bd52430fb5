"""Constraints of products, reductions, numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirhlo.dialects.tpu.attributes import DotDimensionNumbersAttr
from mlirhlo.dialects.tpu.op_classes import KernelOp
from mlirhlo.mosaic.attributes import (
    attribute_of,
    case_of,
    integer_of,
)
from mlirhlo.mosaic.target.divisible import constant_of
from mlirhlo.mosaic.target.tiling import element_name, shape_in, width_in_bits
from mlirhlo.mosaic.verifier.constraint import Constraint, demand

if TYPE_CHECKING:
    pass


def _matmul_acc(op: KernelOp) -> str | None:
    acc, result = op.operands[2].type, op.results[0].type
    return None if acc == result else f"an accumulator of {acc} for {result}"


def _matmul_bits(op: KernelOp) -> str | None:
    element = element_name(op.results[0].type)
    return None if width_in_bits(element) == 32 else f"it accumulates in {element}"


def _matmul_order(op: KernelOp) -> str | None:
    numbers = attribute_of(op, "dimension_numbers")
    if not isinstance(numbers, DotDimensionNumbersAttr):
        return None
    wanted = numbers.data.wanted_order()
    found = numbers.data.output_order
    return None if found == wanted else f"the output order {list(found)} is not {list(wanted)}"


def _matmul_sizes(op: KernelOp) -> str | None:
    numbers = attribute_of(op, "dimension_numbers")
    if not isinstance(numbers, DotDimensionNumbersAttr):
        return None
    data, lhs, rhs = numbers.data, shape_in(op.operands[0].type), shape_in(op.operands[1].type)
    for left, right in (
        (data.lhs_contracting, data.rhs_contracting),
        (data.lhs_batch, data.rhs_batch),
    ):
        for a, b in zip(left, right, strict=False):
            if a >= len(lhs) or b >= len(rhs) or lhs[a] != rhs[b]:
                return f"dimension {a} of {list(lhs)} against {b} of {list(rhs)}"
    return None


def _matmul_cover(op: KernelOp) -> str | None:
    numbers = attribute_of(op, "dimension_numbers")
    if not isinstance(numbers, DotDimensionNumbersAttr):
        return None
    data = numbers.data
    for side, operand, dims in (
        ("lhs", 0, (*data.lhs_contracting, *data.lhs_non_contracting, *data.lhs_batch)),
        ("rhs", 1, (*data.rhs_contracting, *data.rhs_non_contracting, *data.rhs_batch)),
    ):
        rank = len(shape_in(op.operands[operand].type))
        if sorted(dims) != list(range(rank)):
            return f"{side} has {rank} dimensions, and its numbers name {sorted(dims)}"
    return None


def _reduce_index_rank(op: KernelOp) -> str | None:
    before, after = shape_in(op.operands[0].type), shape_in(op.results[0].type)
    axis = integer_of(op, "axis")
    if len(before) < 2:
        return f"a vector of rank {len(before)}"
    if not 0 <= axis < len(before):
        return f"axis {axis} of {len(before)}"
    wanted, kept = (before[:axis] + one + before[axis + 1 :] for one in ((), (1,)))
    return None if after in (wanted, kept) else f"the result is {list(after)}, not {list(wanted)}"


def _reduce_index_kind(op: KernelOp) -> str | None:
    kind = case_of(attribute_of(op, "kind"))
    return None if kind in ("arg_max", "arg_min") else f"'{kind}' has no place"


def _f32(op: KernelOp) -> str | None:
    element = element_name(op.operands[0].type)
    return None if element in ("f32", "bf16") else f"of {element}"


def _weird(op: KernelOp) -> str | None:
    element = element_name(op.results[0].type)
    return None if element == "i1" else f"it gives {element}"


def _multiple(op: KernelOp) -> str | None:
    multiple = integer_of(op, "multiple")
    return None if multiple >= 1 else f"a multiple of {multiple}"


def _promise(op: KernelOp) -> str | None:
    known, multiple = constant_of(op.operands[0]), integer_of(op, "multiple", 1)
    if known is None or multiple < 1 or known % multiple == 0:
        return None
    return f"{known} is no multiple of {multiple}"


ROWS: tuple[Constraint, ...] = (
    *demand("tpu.matmul", 1, "the accumulator has the type of the result", _matmul_acc),
    *demand("tpu.matmul", 2, "it accumulates in 32 bits", _matmul_bits),
    *demand("tpu.matmul", 3, "the output is batch, free of lhs, free of rhs", _matmul_order),
    *demand("tpu.matmul", 4, "contracted and batched sizes are equal", _matmul_sizes),
    *demand("tpu.matmul", 5, "every dimension has one role", _matmul_cover),
    *demand(
        "tpu.reduce_index",
        1,
        "the reduced dimension goes, or stays with size one",
        _reduce_index_rank,
    ),
    *demand("tpu.reduce_index", 2, "the kind is arg_max or arg_min", _reduce_index_kind),
    *demand("tpu.reciprocal", 1, "it is of f32, or approximately of bf16", _f32),
    *demand("tpu.weird", 1, "it gives a mask", _weird),
    *demand("tpu.assume_multiple", 1, "the multiple is 1 or more", _multiple),
    *demand("tpu.assume_multiple", 2, "a known value keeps the promise", _promise),
)
