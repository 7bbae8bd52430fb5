"""Reductions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirhlo.mosaic.attributes import attribute_of, case_of, integer_of, integers_of, name_of
from mlirhlo.mosaic.target.rules import ELEMENTS, LOWERING, SHAPE, Question, Refusal, refuses
from mlirhlo.mosaic.target.tiling import element_name, shape_in

if TYPE_CHECKING:
    from xdsl.ir import Operation

_KINDS = {
    "add": "f32 bf16 i32",
    "maximumf": "f32 bf16",
    "minimumf": "f32 bf16",
    "maxsi": "i32",
    "minsi": "i32",
    "maxui": "i32",
    "minui": "i32",
    "sum": "f32 bf16 i32",
    "max": "f32 bf16 i32",
    "min": "f32 bf16 i32",
}
"""Element types by kind."""


_DIMENSIONS = {"vector.multi_reduction": "reduction_dims", "tpu.reduce": "dimensions"}


@refuses(*_DIMENSIONS)
def kinds_of_reductions(op: Operation, question: Question) -> Refusal | None:
    """Sums, maxima and minima of 32-bit elements and bf16."""
    source, result = op.operands[0].type, op.results[0].type
    kind, element = case_of(attribute_of(op, "kind")), element_name(source)
    types = _KINDS.get(kind)
    if types is None:
        return Refusal(LOWERING, f"there is no reduction '{kind}'", "use add, maximumf or maxsi")
    if element not in types.split():
        return Refusal(ELEMENTS, f"'{kind}' reduces {types}, not {element}", "cast to 32 bits")
    rank, dims = len(shape_in(source)), integers_of(op, _DIMENSIONS[op.name]) or ()
    lanes = rank - 1 in dims
    if kind == "maxui":
        return Refusal(LOWERING, "'maxui' is not lowered", "flip the sign bit, and use maxsi")
    if lanes and is_row_of_column(op) and not question.generation.permutes_sublanes:
        return Refusal(
            SHAPE,
            f"its result is used as a vector of rank {len(shape_in(result))}, whose last "
            "dimension were rows before",
            "keep the reduced dimension with vector.shape_cast",
        )
    return None


@refuses("tpu.reduce_index")
def places_of_extrema(op: Operation, question: Question) -> Refusal | None:
    """The places of maxima and minima of floats."""
    element = element_name(op.operands[0].type)
    if element not in ("f32", "bf16"):
        return Refusal(ELEMENTS, f"it compares f32, not {element}", "cast to f32 before")
    if element == "bf16" and question.generation.number < 6:
        return Refusal(ELEMENTS, "bf16 is compared from generation 6 on", "cast to f32 before")
    places = "i32" if element == "f32" else "i16"
    if element_name(op.results[0].type) != places:
        return Refusal(ELEMENTS, f"places among {element} are {places}", f"make it {places}")
    rank = len(shape_in(op.operands[0].type))
    is_lanes = integer_of(op, "axis") == rank - 1
    if is_lanes and is_row_of_column(op) and not question.generation.permutes_sublanes:
        return Refusal(SHAPE, "a column does not become a row", "keep the reduced dimension")
    return None


def is_row_of_column(op: Operation) -> bool:
    """Whether the result, one number a row, is used as a row: other than by a cast that keeps it
    a column, or by more reductions."""
    shape = shape_in(op.results[0].type)
    if not shape or shape[-1] == 1:
        return False
    for use in op.results[0].uses:
        user = use.operation
        if name_of(user) in ("vector.shape_cast", "tpu.reshape"):
            after = shape_in(user.results[0].type)
            if after[-1] == 1 or after == (1,) * len(after):
                continue
        if name_of(user) in ("vector.store", "tpu.vector_store"):
            return True
        if user.results and name_of(user).startswith(("arith.", "math.")):
            continue
        return True
    return False
