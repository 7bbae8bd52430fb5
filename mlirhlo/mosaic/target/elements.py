"""Which element types the elementwise operations have, by generation.

One line an operation: the types of vector elements it is lowered for, `i8@5` from generation 5 on;
what is not there is refused. Comparisons have a line a predicate where predicates differ. Source: the
real compiler's verdicts on one-op kernels of every operation and type.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from xdsl.ir import Operation

from mlirhlo.dialects.stablehlo.elements import array_of
from mlirhlo.mosaic.attributes import attribute_of, integer_of, name_of
from mlirhlo.mosaic.target.divisible import constant_of
from mlirhlo.mosaic.target.rules import ELEMENTS, LOWERING, Question, Refusal, refuses
from mlirhlo.mosaic.target.tiling import element_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Attribute, SSAValue

_VECTORS = """
arith.addf arith.subf arith.mulf arith.divf arith.negf: f32 bf16
arith.maximumf arith.minimumf: f32 bf16
arith.remf: f32
arith.maxnumf arith.minnumf:
arith.addi arith.subi arith.muli: i32 i16
arith.divsi arith.remsi arith.maxsi arith.minsi arith.maxui arith.minui: i32
arith.divui arith.remui: i32 i16 i8@6
arith.andi arith.ori arith.xori: i32 i16 i8 i4 i1
arith.shli arith.shrsi arith.shrui: i32 i16 i8@5 i4@5
arith.cmpf: f32 bf16
arith.cmpi: i32 i16 i8 i4 i1
math.absf math.ceil math.cos math.erf math.exp math.exp2 math.floor: f32 bf16
math.log math.log1p math.log2 math.round math.roundeven math.rsqrt math.sin: f32 bf16
math.sqrt math.tan math.tanh math.powf: f32 bf16
math.trunc: f32 bf16@6
math.atan2: f32
math.isnan: f32
math.absi: i32 i16
math.ctlz math.ctpop: i32
tpu.logistic: f32 bf16
tpu.weird: f32
arith.mulsi_extended arith.mului_extended: i32 i16
math.acos math.acosh math.asin math.asinh math.atan math.atanh math.cbrt math.cosh math.sinh:
math.erfc math.expm1 math.fma math.copysign math.isinf math.isfinite math.isnormal math.log10:
math.ipowi math.fpowi math.cttz arith.ceildivsi arith.ceildivui arith.floordivsi:
arith.addui_extended: i32
"""


def _rows(text: str) -> dict[str, dict[str, int]]:
    """By operation and element type, the first generation that takes it."""
    found: dict[str, dict[str, int]] = {}
    for line in text.strip().splitlines():
        names, _, elements = line.partition(":")
        since = {
            name: int(number or 0)
            for name, _, number in (word.partition("@") for word in elements.split())
        }
        for name in names.split():
            found[name] = since
    return found


VECTORS = _rows(_VECTORS)
"""By operation and element type, the first generation that takes vectors of it."""


def element_problem(
    op: Operation, element: str, table: dict[str, int], question: Question
) -> Refusal | None:
    """Why a type is not in a row of a table, if it is not."""
    since = table.get(element)
    if since is not None and question.generation.number >= since:
        return None
    if not table:
        return Refusal(
            LOWERING,
            "it has no lowering",
            "write it with arithmetic, exp, log and the other operations of math",
        )
    taken = [name for name, number in table.items() if question.generation.number >= number]
    return Refusal(
        ELEMENTS,
        f"vectors of {element} are not for it, those of {', '.join(taken) or 'no type'} are",
        f"cast to {taken[0]} before, and back after" if taken else "compute it otherwise",
    )


_UNORDERED = {7: "ord", 14: "uno", 8: "ueq", 9: "ugt", 10: "uge", 11: "ult", 12: "ule", 13: "une"}
"""Predicates of `arith.cmpf` that no TensorCore compares by, by their numbers."""


@refuses("arith.cmpf")
def comparisons_are_ordered(op: Operation, question: Question) -> Refusal | None:
    """Floats are compared by the ordered predicates."""
    predicate = _UNORDERED.get(integer_of(op, "predicate"))
    if predicate is None or not _is_vector(op.operands[0].type):
        return None
    return Refusal(
        LOWERING,
        f"there is no comparison '{predicate}'",
        "compare by an ordered predicate, and turn the mask with arith.xori where needed",
    )


@refuses("tpu.reciprocal")
def approximations(op: Operation, question: Question) -> Refusal | None:
    """It is of bf16 too, from generation 6 on."""
    element = element_name(op.operands[0].type)
    if element == "bf16" and question.generation.number >= 6:
        return None
    return element_problem(op, element, {"f32": 0}, question)


_FOLDED = ("arith.maxnumf", "arith.minnumf")
_DECIDED = {"arith.muli": (0, 1), "arith.addi": (0,)}
"""Constants that leave nothing to compute, on either side."""


def _number(value: SSAValue) -> int | None:
    """The integer that a constant is everywhere, or that is broadcast."""
    owner = value.owner
    if not isinstance(owner, Operation):
        return None
    if name_of(owner) == "vector.broadcast":
        return _number(owner.operands[0])
    stated = attribute_of(owner, "value") if name_of(owner) == "arith.constant" else None
    if stated is None or not element_name(value.type).startswith("i"):
        return None
    if not _is_vector(value.type):
        return constant_of(value)
    numbers = array_of(stated).reshape(-1)
    same = numbers.size and (numbers == numbers[0]).all()
    return int(numbers[0]) if same else None


@refuses(*VECTORS)
def elements_of_vectors(op: Operation, question: Question) -> Refusal | None:
    """The element type of an elementwise operation on vectors."""
    type_, name = op.operands[0].type, name_of(op)
    if not _is_vector(type_):
        return None
    # The extremum of a value and itself is folded away, and so is what a constant decides.
    if name in _FOLDED and op.operands[0] is op.operands[1]:
        return None
    if any(_number(value) in _DECIDED.get(name, ()) for value in op.operands):
        return None
    return element_problem(op, element_name(type_), VECTORS[name], question)


_EXTREMA = {"2": "minsi", "3": "minsi", "4": "maxsi", "5": "maxsi", "6": "minui", "8": "maxui"}
"""What a selection by a comparison of the selected values is folded to, by the predicate's number."""


def _are_same(pair: Sequence[SSAValue], other: Sequence[SSAValue]) -> bool:
    """Whether two pairs have the same values, or equal constants, in either order."""
    orders = (tuple(pair), tuple(reversed(pair)))
    return any(
        all(
            a is b or (a.type == b.type and _number(a) is not None and _number(a) == _number(b))
            for a, b in zip(one, other, strict=True)
        )
        for one in orders
    )


@refuses("arith.select")
def selections_become_extrema(op: Operation, question: Question) -> Refusal | None:
    """`select(a < b, a, b)` is folded to a minimum, and is as little supported as that."""
    comparison = op.operands[0].owner
    chosen = op.operands[1:]
    if not isinstance(comparison, Operation) or name_of(comparison) != "arith.cmpi":
        return None
    if not _are_same(comparison.operands, chosen) or chosen[0] is chosen[1]:
        return None
    folded = _EXTREMA.get(str(integer_of(comparison, "predicate")))
    element = element_name(op.results[0].type)
    if folded is None or not _is_vector(op.results[0].type):
        return None
    refusal = element_problem(op, element, VECTORS[f"arith.{folded}"], question)
    if refusal is None:
        return None
    return replace(refusal, problem=f"it is folded to arith.{folded}: {refusal.problem}")


_NOT_OF_SCALARS = frozenset(
    {"math.trunc", "math.ctpop", "math.powf", "arith.maxnumf", "arith.minnumf"}
)
"""What is lowered for vectors only."""


@refuses(*VECTORS)
def elements_of_scalars(op: Operation, question: Question) -> Refusal | None:
    """The scalar unit computes with i32, f32, indices and booleans."""
    type_ = op.operands[0].type
    element = element_name(type_)
    if _is_vector(type_) or element in ("index", "i1"):
        return None
    if element not in ("i32", "f32"):
        return Refusal(
            ELEMENTS,
            f"scalars are i32 and f32, not {element}",
            f"cast it to {'f32' if 'f' in element else 'i32'} first",
        )
    name = name_of(op)
    if name in _NOT_OF_SCALARS or element not in VECTORS[name]:
        return Refusal(
            LOWERING, f"it has no lowering for a scalar of {element}", "use a 1x1 vector"
        )
    return None


def _is_vector(type_: Attribute) -> bool:
    return str(type_).startswith("vector<")


@refuses("vector.load", "tpu.vector_load", "vector.store", "tpu.vector_store", "tpu.strided_load")
def no_halves_in_memory(op: Operation, question: Question) -> Refusal | None:
    """No vector of f16 is loaded or stored."""
    for value in (*op.operands, *op.results):
        if element_name(value.type) == "f16" and _is_vector(value.type):
            return Refusal(ELEMENTS, "f16 is no type of TensorCores", "use bf16, or f32")
    return None
