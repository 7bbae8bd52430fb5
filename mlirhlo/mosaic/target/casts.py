"""Conversions between element types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirhlo.mosaic.attributes import name_of
from mlirhlo.mosaic.target.rules import ELEMENTS, Question, Refusal, refuses
from mlirhlo.mosaic.target.tiling import element_name, shape_in

if TYPE_CHECKING:
    from xdsl.ir import Operation

_CASTS = (
    "extf",
    "truncf",
    "fptosi",
    "fptoui",
    "sitofp",
    "uitofp",
    "extsi",
    "extui",
    "trunci",
    "bitcast",
)


@refuses(*(f"arith.{name}" for name in _CASTS), "tpu.bitcast", "vector.bitcast")
def casts_of_vectors(op: Operation, question: Question) -> Refusal | None:
    """Every type but f16 and the 64-bit ones converts to every other."""
    before, after = (element_name(v.type) for v in (op.operands[0], op.results[0]))
    for element in (before, after):
        if element in ("f16", "f64", "i64"):
            return Refusal(
                ELEMENTS, f"{element} is no type of TensorCores", "use f32, bf16, or i32"
            )
    if after == "i1" and before == "i8" and question.generation.number < 5:
        return Refusal(ELEMENTS, "i8 is not truncated to a mask", "compare it with zero")
    is_signed = name_of(op) in ("arith.extsi", "arith.sitofp")
    if before == "i1" and is_signed and shape_in(op.operands[0].type):
        mend = "use arith.uitofp, and negate" if "fp" in name_of(op) else "use arith.extui"
        return Refusal(ELEMENTS, "a mask has no sign to extend", mend)
    return None
