"""Matrix products: which element types each generation multiplies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirhlo.mosaic.attributes import attribute_of, case_of, name_of
from mlirhlo.mosaic.target.rules import ELEMENTS, LOWERING, SHAPE, Question, Refusal, refuses
from mlirhlo.mosaic.target.tiling import element_name, shape_in

if TYPE_CHECKING:
    from xdsl.ir import Operation

_F8 = ("f8E5M2", "f8E4M3FN", "f8E4M3B11FNUZ")
_INTEGERS = ("i32", "i8", "i4")


@refuses("tpu.matmul", "vector.contract")
def types_of_products(op: Operation, question: Question) -> Refusal | None:
    """Floats in any mixture, narrow integers in pairs; f8 and integer products from generation 5."""
    lhs, rhs = (element_name(op.operands[at].type) for at in (0, 1))
    number = question.generation.number
    if element_name(op.operands[2].type) not in ("f32", "i32"):
        return Refusal(ELEMENTS, "it accumulates in 32 bits", "accumulate in f32 and truncate")
    # Integers on the right of floats are made floats; 16-bit ones until generation 6.
    if rhs == "i16" and lhs in ("f32", "bf16", *_F8) and number < 7:
        rhs = "i8"
    for element in (lhs, rhs):
        if element in ("f16", "i16", "i1", "i64", "f64"):
            return _types(op, lhs, rhs, f"{element} is not multiplied", "cast to bf16 or f32")
    if case_of(attribute_of(op, "precision")) == "fp32" and (lhs, rhs) != ("f32", "f32"):
        if not {lhs, rhs} <= {"f32", "bf16"}:
            return _types(op, lhs, rhs, "precision fp32 is of f32", "leave the precision out")
    if lhs in _INTEGERS:
        if rhs not in _INTEGERS:
            if number >= 7 and rhs != "f8E4M3B11FNUZ":
                return None
            return _types(op, lhs, rhs, "an integer times a float", "cast both to bf16")
        if lhs == rhs:
            if lhs == "i32":
                return _types(op, lhs, rhs, "there is no product of i32", "cast to f32, or to i8")
            return (
                None
                if number >= 5
                else _types(
                    op,
                    lhs,
                    rhs,
                    "integers are multiplied from generation 5 on",
                    "cast both to bf16",
                )
            )
        return (
            None
            if number >= 7
            else _types(
                op, lhs, rhs, "two integer types are multiplied from generation 7 on", "cast to one"
            )
        )
    for element in (lhs, rhs):
        if element in _F8 and number < 5:
            return _types(
                op, lhs, rhs, f"{element} is multiplied from generation 5 on", "cast to bf16"
            )
        if element == "f8E4M3B11FNUZ" and number >= 7:
            return _types(
                op, lhs, rhs, "f8E4M3B11FNUZ went with generation 7", "use f8E4M3FN, or bf16"
            )
    return None


def _types(op: Operation, lhs: str, rhs: str, why: str, mend: str) -> Refusal:
    return Refusal(ELEMENTS, f"{lhs} times {rhs}: {why}", mend)


@refuses("tpu.matmul_push_rhs", "tpu.matmul_acc_lhs", "tpu.matmul_pop")
def units_by_hand(op: Operation, question: Question) -> Refusal | None:
    """Accumulating units came with generation 7; what is pushed fills a unit."""
    if name_of(op) != "tpu.matmul_push_rhs":
        if question.generation.number >= 7:
            return None
        return Refusal(LOWERING, "its units do not accumulate", "use tpu.matmul_lhs_fifo")
    size = question.generation.mxu
    shape = shape_in(op.operands[0].type)
    if shape == (size, size):
        return None
    return Refusal(
        SHAPE, f"a unit holds {size}x{size} elements, not {list(shape)}", "pad the operand"
    )
