"""Shapes of instructions that keep values but change how they are represented."""

from __future__ import annotations

from mlirhlo.analysis.shape_inference.base import (
    Given,
    checks,
    infers,
    plain,
    same_sizes,
)
from mlirhlo.analysis.shape_inference.elementwise import ARRAY, ARRAYS, FLOAT
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape


def _same_sizes_as_operand(given: Given, number: int) -> tuple[ArrayShape, ArrayShape]:
    x = given.array(0, f"operand of {given.opcode}")
    result = given.declared_array(number)
    if result.dimensions != x.dimensions and not same_sizes(x, result):
        raise given.error(
            number, f"{plain(x)} cannot become {plain(result)}: the sizes differ", operand=0
        )
    return x, result


@checks("convert", c1=ARRAY, c2="the result has the operand's sizes")
def convert(given: Given) -> None:
    """The operand in the declared element type, whatever the two are."""
    _same_sizes_as_operand(given, 2)


@checks(
    "stochastic-convert",
    c1=ARRAYS,
    c2="the result has the operand's sizes",
    c3="the random operand is of unsigned integers as wide as the operand's elements",
    c4="the operand is floating point",
    c5="the random operand has the operand's sizes",
)
def stochastic_convert(given: Given) -> None:
    """The operand in the declared element type, rounded by random bits."""
    x, _ = _same_sizes_as_operand(given, 2)
    random = given.array(1, "random operand of stochastic-convert")
    if not x.element_type.is_float:  # stochastic-convert_c4
        raise given.error(
            4,
            f"Stochastic convert supports floating-point operands only; got {plain(x)}.",
            operand=0,
        )
    if not random.element_type.is_unsigned or random.element_type.bits != x.element_type.bits:
        raise given.error(  # stochastic-convert_c3
            3,
            "The random is required to be unsigned integers of the operand's"
            f" {x.element_type.bits} bits; got {plain(random)}.",
            operand=1,
        )
    if not same_sizes(random, x):  # stochastic-convert_c5
        raise given.error(
            5,
            "Stochastic convert operand shape does not match random tensor shape:"
            f" {plain(x)} vs {plain(random)}.",
            operand=1,
        )


@infers(
    "reduce-precision",
    c1=ARRAY,
    c2=FLOAT,
    c3="there is at least one exponent bit",
    c4="the number of mantissa bits is not negative",
)
def reduce_precision(given: Given) -> Shape:
    """The operand's shape."""
    x = given.array(0, "operand of reduce-precision")
    if not x.element_type.is_float:  # reduce-precision_c2
        raise given.error(
            2,
            "Expected element type in shape to be floating point for ReducePrecision operation; got"
            f" {x.element_type.name.upper()}.",
            operand=0,
        )
    if given.int("exponent_bits") < 1:  # reduce-precision_c3
        raise given.error(
            3,
            f"Expected exponent_bits > 0, got {given.int('exponent_bits')}.",
            attribute="exponent_bits",
        )
    if given.int("mantissa_bits") < 0:  # reduce-precision_c4
        raise given.error(
            4,
            f"Expected non-negative mantissa_bits, got {given.int('mantissa_bits')}.",
            attribute="mantissa_bits",
        )
    return x
