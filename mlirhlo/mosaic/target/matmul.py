"""Matrix products: which element types each generation multiplies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mlirhlo.dialects.tpu.values import SUBLANES
from mlirhlo.mosaic.attributes import attribute_of, case_of, name_of
from mlirhlo.mosaic.target.rules import ELEMENTS, LOWERING, SHAPE, Question, Refusal, refuses
from mlirhlo.mosaic.target.tiling import element_name, shape_in, width_in_bits

if TYPE_CHECKING:
    from xdsl.ir import Operation

_SINCE: Mapping[str, int] = {"f8E5M2": 5, "f8E4M3FN": 5, "f8E4M3B11FNUZ": 5}
_UNTIL: Mapping[str, int] = {"f8E4M3B11FNUZ": 6, "i16": 6}
"""First and last generations that multiply an element type."""
_NEVER = ("f16", "f64", "i1", "i64")


@refuses("tpu.matmul", "vector.contract")
def types_of_products(op: Operation, question: Question) -> Refusal | None:
    """Floats in any mixture, integers as floats beside them; two integers from generation 5 on."""
    lhs, rhs, acc = (element_name(operand.type) for operand in op.operands[:3])
    number = question.generation.number
    if acc not in ("f32", "i32"):
        return Refusal(ELEMENTS, "it accumulates in 32 bits", "accumulate in f32 and truncate")
    for element in (lhs, rhs):
        if element in _NEVER:
            return _types(lhs, rhs, f"{element} is not multiplied", "cast to bf16 or f32")
        if number < _SINCE.get(element, 0):
            since = f"{element} is multiplied from generation {_SINCE[element]} on"
            return _types(lhs, rhs, since, "cast to bf16")
        if number > _UNTIL.get(element, number):
            until = f"{element} is multiplied until generation {_UNTIL[element]}"
            return _types(lhs, rhs, until, "cast to bf16")
    if case_of(attribute_of(op, "precision")) == "fp32":
        others = {lhs, rhs} - {"f32"}
        if "f32" not in (lhs, rhs) or not others <= {"i4", "i8", "i16", "i32"}:
            return _types(lhs, rhs, "precision fp32 is of f32", "leave the precision out")
        if number >= 7 and others - {"i32"}:
            return _types(lhs, rhs, "precision fp32 is of 32 bits", "leave the precision out")
    if lhs[0] == rhs[0] == "i":
        if "i16" in (lhs, rhs) or lhs == rhs == "i32":
            return _types(lhs, rhs, "there is no product of them", "cast to f32, or to i8")
        first = 5 if lhs == rhs and acc == "i32" else 7
    else:
        first = 7 if acc == "i32" else 0
    if number < first:
        return _types(
            lhs, rhs, f"a sum of them in {acc} is there from generation {first} on", "cast to bf16"
        )
    return None


def _types(lhs: str, rhs: str, why: str, mend: str) -> Refusal:
    return Refusal(ELEMENTS, f"{lhs} times {rhs}: {why}", mend)


_PUSHED: Mapping[str, range] = {
    "bf16": range(4, 99),
    "f32": range(4, 99),
    "i8": range(5, 7),
    "f8E5M2": range(5, 99),
    "f8E4M3FN": range(7, 99),
}
"""Generations whose units take right sides of an element type by hand."""


@refuses("tpu.matmul_push_rhs")
def right_sides_fill_a_unit(op: Operation, question: Question) -> Refusal | None:
    """What is pushed fills a unit, and is of a type it multiplies without help."""
    element, size = element_name(op.operands[0].type), question.generation.mxu
    shape = shape_in(op.operands[0].type)
    if shape != (size, size):
        return Refusal(
            SHAPE, f"a unit holds {size}x{size} elements, not {list(shape)}", "pad the operand"
        )
    if question.generation.number in _PUSHED.get(element, ()):
        return None
    return Refusal(ELEMENTS, f"{element} is not pushed by hand", "cast to bf16, or use tpu.matmul")


@refuses("tpu.matmul_acc_lhs", "tpu.matmul_pop", "tpu.matmul_lhs_fifo", "tpu.matmul_pop_fifo")
def units_by_hand(op: Operation, question: Question) -> Refusal | None:
    """Units accumulate from generation 7 on, those before have queues; rows come by registers."""
    is_queue = name_of(op).endswith("_fifo")
    if is_queue != (question.generation.number < 7):
        if is_queue:
            return Refusal(LOWERING, "its units accumulate", "use tpu.matmul_acc_lhs and _pop")
        return Refusal(LOWERING, "its units do not accumulate", "use tpu.matmul_lhs_fifo")
    if not op.operands:
        return None
    element, shape = element_name(op.operands[0].type), shape_in(op.operands[0].type)
    rows = SUBLANES * 32 // width_in_bits(element)
    if shape[0] % rows == 0:
        return None
    return Refusal(
        SHAPE, f"{shape[0]} rows of {element} are no multiple of {rows}", "pad the operand"
    )
