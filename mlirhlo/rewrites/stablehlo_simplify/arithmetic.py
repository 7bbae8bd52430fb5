"""Identities of elementwise ops: constants go right, neutral elements go away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import ComplexType, IntegerType
from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects.hlo.element_types import BY_MLIR, Kind
from mlirhlo.dialects.stablehlo.attributes import ComparisonDirectionAttr
from mlirhlo.dialects.stablehlo.elements import dtype_of
from mlirhlo.rewrites.stablehlo_simplify.driver import (
    Simplifier,
    defining,
    simplifies,
    tensor,
)

Values = Sequence[SSAValue]


def _element(value: SSAValue) -> Attribute:
    return tensor(value).element_type


def is_integer(value: SSAValue) -> bool:
    """Whether elements are integers or booleans."""
    return isinstance(_element(value), IntegerType)


@simplifies("add", "multiply", "and", "or", "xor", "maximum", "minimum")
def constant_goes_right(op: Operation, s: Simplifier) -> Values | None:
    """op(c, x) => op(x, c)"""
    lhs, rhs = op.operands
    if s.array(lhs) is None or s.array(rhs) is not None:
        return None
    name = op.name.removeprefix("stablehlo.")
    return s.make(name, (rhs, lhs), [op.results[0].type], dict(op.properties)).results


@simplifies("add")
def add_zero(op: Operation, s: Simplifier) -> Values | None:
    """x + 0 => x"""
    lhs, rhs = op.operands
    value = s.splat(rhs)
    if value is None or lhs.type != op.results[0].type:
        return None
    if isinstance(_element(rhs), ComplexType):
        return None
    if isinstance(_element(rhs), IntegerType):
        return (lhs,) if not int(value) else None
    return (lhs,) if float(value) == 0.0 else None


@simplifies("subtract")
def subtract_zero_or_itself(op: Operation, s: Simplifier) -> Values | None:
    """x - 0 => x, and of integers x - x => 0"""
    lhs, rhs = op.operands
    if lhs is rhs and is_integer(lhs):
        return (_filled(op, s, 0),)
    value = s.splat(rhs)
    if value is None or isinstance(_element(rhs), ComplexType):
        return None
    return (lhs,) if float(value) == 0.0 else None


def _filled(op: Operation, s: Simplifier, number: Any) -> SSAValue:
    import numpy as np

    type_ = tensor(op.results[0])
    one = np.full((), number).astype(dtype_of(type_.element_type))
    return s.constant(np.broadcast_to(one, type_.get_shape()), type_)


@simplifies("multiply")
def multiply_by_one_or_zero(op: Operation, s: Simplifier) -> Values | None:
    """x * 1 => x, and of integers x * 0 => 0"""
    lhs, rhs = op.operands
    value = s.splat(rhs)
    if value is None or isinstance(_element(rhs), ComplexType):
        return None
    if float(value) == 1.0:
        return (lhs,)
    if is_integer(rhs) and not int(value):
        return (rhs,)
    return None


def _ones(value: SSAValue, number: Any) -> bool:
    mask = (1 << BY_MLIR[_element(value)].bits) - 1
    return int(number) & mask == mask


@simplifies("and")
def and_of_constant(op: Operation, s: Simplifier) -> Values | None:
    """x & 0 => 0, x & ~0 => x"""
    lhs, rhs = op.operands
    value = s.splat(rhs)
    if value is None or not is_integer(rhs):
        return None
    if not int(value):
        return (rhs,)
    return (lhs,) if _ones(rhs, value) else None


@simplifies("or")
def or_of_constant(op: Operation, s: Simplifier) -> Values | None:
    """x | 0 => x, x | ~0 => ~0"""
    lhs, rhs = op.operands
    value = s.splat(rhs)
    if value is None or not is_integer(rhs):
        return None
    if not int(value):
        return (lhs,)
    return (rhs,) if _ones(rhs, value) else None


@simplifies("xor")
def xor_of_constant(op: Operation, s: Simplifier) -> Values | None:
    """x ^ 0 => x, x ^ x => 0"""
    lhs, rhs = op.operands
    if not is_integer(lhs):
        return None
    if lhs is rhs:
        return (_filled(op, s, 0),)
    value = s.splat(rhs)
    return (lhs,) if value is not None and not int(value) else None


_TURNED: Mapping[str, str] = {
    "LT": "GT",
    "GT": "LT",
    "LE": "GE",
    "GE": "LE",
    "EQ": "EQ",
    "NE": "NE",
}


@simplifies("compare")
def compare_integers(op: Operation, s: Simplifier) -> Values | None:
    """c < x => x > c, x == x => true, x == true => x"""
    lhs, rhs = op.operands
    kind = str(getattr(op.properties.get("compare_type"), "data", ""))
    if kind not in ("SIGNED", "UNSIGNED"):
        return None
    direction = str(getattr(op.properties["comparison_direction"], "data", ""))
    if lhs is rhs:
        return (_filled(op, s, direction in ("EQ", "LE", "GE")),)
    if s.array(lhs) is not None and s.array(rhs) is None:
        properties = {
            **op.properties,
            "comparison_direction": ComparisonDirectionAttr(_TURNED[direction]),
        }
        return s.make("compare", (rhs, lhs), [op.results[0].type], properties).results
    value = s.splat(rhs)
    if (
        BY_MLIR[_element(lhs)].kind is not Kind.PRED
        or value is None
        or direction not in ("EQ", "NE")
    ):
        return None
    if bool(value) == (direction == "EQ"):
        return (lhs,)
    return s.make("not", (lhs,), [op.results[0].type]).results


@simplifies("select")
def select_of_known(op: Operation, s: Simplifier) -> Values | None:
    """select(p, x, x) => x, select(true, x, y) => x, select(!p, x, y) => select(p, y, x)"""
    predicate, yes, no = op.operands
    if yes is no:
        return (yes,)
    value = s.splat(predicate)
    if value is not None:
        return (yes,) if bool(value) else (no,)
    inverted = defining(predicate, "not")
    if inverted is None:
        return None
    operands = (inverted.operands[0], no, yes)
    return s.make("select", operands, [op.results[0].type]).results


@simplifies("convert")
def convert_to_own_type(op: Operation, s: Simplifier) -> Values | None:
    """convert<T>(x: T) => x"""
    del s
    return (op.operands[0],) if op.operands[0].type == op.results[0].type else None


@simplifies("real", "imag")
def part_of_complex(op: Operation, s: Simplifier) -> Values | None:
    """real(complex(x, y)) => x"""
    del s
    made = defining(op.operands[0], "complex")
    if made is None:
        return None
    return (made.operands[0 if op.name.endswith("real") else 1],)


@simplifies("complex")
def complex_of_parts(op: Operation, s: Simplifier) -> Values | None:
    """complex(real(z), imag(z)) => z"""
    del s
    real, imag = defining(op.operands[0], "real"), defining(op.operands[1], "imag")
    if real is None or imag is None or real.operands[0] is not imag.operands[0]:
        return None
    return (real.operands[0],)
