"""Rules of the ops that work element by element."""

from __future__ import annotations

from xdsl.dialects.builtin import ComplexType

from mlirhlo.analysis.stablehlo.base import Given, Results, checks, infers
from mlirhlo.analysis.stablehlo.tensors import (
    COMPLEX,
    FLOAT,
    PRED,
    QUANTIZED,
    SIGNED,
    UNSIGNED,
    Tensor,
    expressed,
    fits_element,
    fits_shape,
    is_quantized,
    most_specific,
    quantized,
    real_part,
    signless,
)
from mlirhlo.dialects.stablehlo.signatures import SIGNATURES
from mlirhlo.dialects.stablehlo.table import ROWS


def _of_one_type(operands: int) -> tuple[str, ...]:
    """Elementwise ops of so many operands whose types, and the result's, have to be the same."""
    return tuple(
        name
        for name, signature in SIGNATURES.items()
        if "elementwise" in (row := ROWS["stablehlo." + name]).traits
        and signature.operands == signature.results * operands
        and row.by_name.keys() <= {"result_accuracy"}
        and "A" not in signature.results[0]
        and name != "convert"
    )


_UNARY = _of_one_type(1)
_BINARY = _of_one_type(2)


@infers(*_UNARY, c1="operand and result have one type")
def _unary(given: Given) -> Results:
    return (given.tensor(0),)


@infers(*_BINARY, c1="both operands and the result have one type")
def _binary(given: Given) -> Results:
    return (_together(given, 1),)


def _together(given: Given, number: int, *, any_element: bool = False) -> Tensor:
    lhs, rhs = given.tensor(0), given.tensor(1)
    if not any_element and not fits_element(lhs.element, rhs.element):
        raise given.error(
            number,
            f"operands have different element types: {lhs.element} and {rhs.element}",
            operand=1,
            help="convert one of them",
        )
    merged = most_specific((lhs, rhs)) if fits_shape(lhs, rhs) else None
    if merged is None:
        raise given.error(
            number,
            f"operands have different shapes: {lhs} and {rhs}",
            operand=1,
            help="make the shapes equal, for example by broadcast_in_dim",
        )
    return merged


@infers(
    "add",
    c1="unless quantized, both operands and the result have one type",
    c2="all of operands and result are quantized, or none",
    c3="quantized operands and result have one storage type",
    c4="quantized operands and result have one expressed type",
    c5="the result is quantized along an axis just when an operand is",
    c6="lhs and result are quantized along the same axis",
    c7="rhs and result are quantized along the same axis",
)
def _add(given: Given) -> Results:
    lhs, rhs = given.tensor(0), given.tensor(1)
    if not (is_quantized(lhs.element) or is_quantized(rhs.element)):
        return (_together(given, 1),)
    merged = _together(given, 1, any_element=True)
    return (merged if given.declared is None else merged.with_element(given.result().element),)


@checks("add")
def _check_add(given: Given) -> None:
    lhs, rhs, result = given.tensor(0), given.tensor(1), given.result()
    elements = (lhs.element, rhs.element, result.element)
    if not any(map(is_quantized, elements)):
        return
    if not all(map(is_quantized, elements)):  # c2
        raise given.error(
            2,
            "operands and result are all quantized or none is: " + " and ".join(map(str, elements)),
        )
    for number, part in ((3, "storage_type"), (4, "expressed_type")):  # c3, c4
        kinds = [quantized(element, part) for element in elements]
        if kinds[1:] != kinds[:-1]:
            words = " and ".join(map(str, kinds))
            raise given.error(number, f"{part.replace('_', ' ')}s differ: {words}")
    axes = [quantized(element, "axis") for element in elements]
    if (axes[0] is not None or axes[1] is not None) != (axes[2] is not None):  # c5
        raise given.error(5, "the result is quantized along an axis just when an operand is")
    for number, axis in ((6, axes[0]), (7, axes[1])):  # c6, c7
        if axis is not None and axis != axes[2]:
            raise given.error(
                number, f"quantized along dimension {axis}, the result along {axes[2]}"
            )


@infers(
    "abs",
    c1="operand and result have one shape",
    c2="the result has the operand's element type, that of its parts where it is complex",
    result=(1, 2),
)
def _abs(given: Given) -> Results:
    operand = given.tensor(0)
    return (operand.with_element(real_part(operand.element)),)


@infers(
    "real",
    "imag",
    c1="operand and result have one shape",
    c2="the result has the element type of the operand's parts",
    result=(1, 2),
)
def _part(given: Given) -> Results:
    operand = given.tensor(0)
    return (operand.with_element(real_part(operand.element)),)


@infers("is_finite", c1="operand and result have one shape")
def _is_finite(given: Given) -> Results:
    return (given.tensor(0).with_element(signless(1)),)


@infers(
    "complex",
    c1="both operands have one type, f32 or f64",
    c2="operands and result have one shape",
    c3="the result is complex with the operands' element type as parts",
    result=(2, 3),
)
def _complex(given: Given) -> Results:
    merged = _together(given, 1)
    return (merged.with_element(ComplexType(merged.element)),)  # type: ignore[type-var]


@infers("convert", c1="operand and result have one shape")
def _convert(given: Given) -> Results | None:
    if given.declared is None:
        return None
    return (given.tensor(0).with_element(given.result().element),)


@infers(
    "clamp",
    c1="min is a scalar or has the operand's shape",
    c2="max is a scalar or has the operand's shape",
    c3="min, operand and max have one element type",
    c4="operand and result have one type",
    result=(4, 4),
)
def _clamp(given: Given) -> Results:
    operand = given.tensor(1)
    for index, number, name in ((0, 1, "min"), (2, 2, "max")):  # c1, c2
        limit = given.tensor(index)
        if limit.rank != 0 and not fits_shape(limit, operand):
            raise given.error(
                number,
                f"{name} is neither a scalar nor of the operand's shape: {limit} for {operand}",
                operand=index,
            )
    for index in (0, 2):  # c3
        limit = given.tensor(index)
        if not fits_element(limit.element, operand.element):
            raise given.error(
                3, f"element types differ: {limit.element} and {operand.element}", operand=index
            )
    return (operand,)


_COMPARE_TYPES = {
    SIGNED: ("SIGNED",),
    UNSIGNED: ("UNSIGNED",),
    PRED: ("UNSIGNED",),
    FLOAT: ("FLOAT", "TOTALORDER"),
    COMPLEX: ("FLOAT",),
    QUANTIZED: ("SIGNED", "UNSIGNED", "FLOAT", "TOTALORDER"),
}


@infers(
    "compare",
    c1="both operands have one element type",
    c2="operands and result have one shape",
    c3="the comparison type suits the operands: SIGNED, UNSIGNED (i1 too), FLOAT or TOTALORDER",
    result=(2, 2),
)
def _compare(given: Given) -> Results:
    lhs, rhs = given.tensor(0), given.tensor(1)
    if not fits_element(lhs.element, rhs.element):  # c1
        raise given.error(1, f"element types differ: {lhs.element} and {rhs.element}", operand=1)
    kind = given.str("compare_type", "NOTYPE")
    if kind != "NOTYPE" and kind not in _COMPARE_TYPES.get(lhs.kind, ()):  # c3
        raise given.error(
            3, f"compare_type {kind} does not suit elements {lhs.element}", attribute="compare_type"
        )
    return (_together(given, 2).with_element(signless(1)),)


@infers(
    "select",
    c1="pred is a scalar or has the shape of on_true",
    c2="on_true, on_false and the result have one type",
    result=(2, 2),
)
def _select(given: Given) -> Results:
    pred, on_true, on_false = given.tensor(0), given.tensor(1), given.tensor(2)
    fitting = fits_shape(on_true, on_false) and fits_element(on_true.element, on_false.element)
    merged = most_specific((on_true, on_false)) if fitting else None
    if merged is None:  # c2
        raise given.error(
            2, f"on_true and on_false have different types: {on_true} and {on_false}", operand=2
        )
    if pred.rank != 0 and not fits_shape(pred, on_true):  # c1
        raise given.error(
            1,
            f"pred is neither a scalar nor of the shape of on_true: {pred} for {on_true}",
            operand=0,
        )
    return (merged,)


@infers(
    "reduce_precision",
    c1="operand and result have one type",
    c2="exponent_bits is at least 1",
    c3="mantissa_bits is at least 0",
)
def _reduce_precision(given: Given) -> Results:
    exponent, mantissa = given.int("exponent_bits"), given.int("mantissa_bits")
    if exponent < 1:  # c2
        raise given.error(2, f"exponent_bits is {exponent}", attribute="exponent_bits")
    if mantissa < 0:  # c3
        raise given.error(3, f"mantissa_bits is {mantissa}", attribute="mantissa_bits")
    return (given.tensor(0),)


@infers(
    "uniform_dequantize",
    c1="operand and result have one shape",
    c2="the result has the element type the operand expresses",
    result=(1, 2),
)
def _uniform_dequantize(given: Given) -> Results:
    operand = given.tensor(0)
    return (operand.with_element(expressed(operand.element)),)


@infers(
    "uniform_quantize",
    c1="operand and result have one shape",
    c2="the result expresses the operand's element type",
)
def _uniform_quantize(given: Given) -> Results | None:
    if given.declared is None:
        return None
    return (given.tensor(0).with_element(given.result().element),)


@checks("uniform_quantize")
def _check_uniform_quantize(given: Given) -> None:
    operand, result = given.tensor(0), given.result()
    if expressed(operand.element) != expressed(result.element):  # c2
        raise given.error(
            2, f"the result expresses {expressed(result.element)}, not {expressed(operand.element)}"
        )
