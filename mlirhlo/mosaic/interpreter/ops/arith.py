"""`arith`: integers wrap, floats are computed in f32 at least and rounded once an operation."""

# Lambdas that numpy takes have parameters of no stated type.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr

from mlirhlo.dialects.stablehlo.elements import array_of
from mlirhlo.mosaic.attributes import attribute_of, case_of, name_of
from mlirhlo.mosaic.interpreter.memory import dtype_in
from mlirhlo.mosaic.interpreter.numbers import (
    as_unsigned,
    float_to_integer,
    lifted,
    to_float,
    width_of,
)
from mlirhlo.mosaic.interpreter.problems import fault, unfit
from mlirhlo.mosaic.interpreter.registry import Activation, Run, Scope, means

if TYPE_CHECKING:
    from xdsl.ir import Operation


@means("arith.constant")
def constant(op: Operation, scope: Scope) -> Run:
    """A scalar or dense constant."""
    value, type_ = attribute_of(op, "value"), op.results[0].type
    if value is None:
        raise unfit(op, "it has no value")
    dtype = dtype_in(type_)
    made: Any
    if isinstance(value, IntegerAttr):
        number = value.value.data
        if dtype.kind == "b":
            made = np.bool_(number)
        else:
            made = np.array(number).astype(dtype)[()]
    elif isinstance(value, FloatAttr):
        made = np.array(value.value.data).astype(dtype)[()]
    else:
        made = array_of(value)
    return lambda frame: made


def _integer(function: Callable[[Any, Any], Any]) -> Callable[[Operation, Scope], Run]:
    """An operation on integers of one type; the narrow ones are computed as i32."""

    def prepare(op: Operation, scope: Scope) -> Run:
        dtype = dtype_in(op.results[0].type)
        if dtype.kind in "biu":
            return lambda frame, a, b: function(a, b)

        def run(frame: Activation, a: Any, b: Any) -> Any:
            return function(a.astype(np.int32), b.astype(np.int32)).astype(dtype)

        return run

    return prepare


def _on_bits(function: Callable[[Any, Any], Any]) -> Callable[[Operation, Scope], Run]:
    """An operation on the same bits read as unsigned numbers."""

    def prepare(op: Operation, scope: Scope) -> Run:
        dtype = dtype_in(op.results[0].type)

        def run(frame: Activation, a: Any, b: Any) -> Any:
            return function(as_unsigned(a), as_unsigned(b)).astype(dtype)

        return run

    return prepare


def _no_zero(b: Any) -> None:
    if np.any(b == 0):
        raise fault("a division by zero", "keep the divisor away from zero with arith.select")


def _quotient(a: Any, b: Any) -> Any:
    """Rounded toward zero."""
    _no_zero(b)
    return np.where((a < 0) != (b < 0), -(np.abs(a) // np.abs(b)), np.abs(a) // np.abs(b)).astype(
        a.dtype
    )[()]


def _remainder(a: Any, b: Any) -> Any:
    """With the sign of the dividend."""
    _no_zero(b)
    return np.fmod(a, b)


def _floor_quotient(a: Any, b: Any) -> Any:
    _no_zero(b)
    return a // b


def _ceiling_quotient(a: Any, b: Any) -> Any:
    _no_zero(b)
    return -((-a) // b)


def _shifted(a: Any, b: Any, shift: Callable[[Any, Any], Any], beyond: Any) -> Any:
    """A shift by as many bits as there are, or more, gives `beyond`."""
    width = np.asarray(a).dtype.itemsize * 8
    amount = as_unsigned(b)
    inside = amount < width
    return np.where(inside, shift(a, np.where(inside, amount, 0).astype(a.dtype)), beyond).astype(
        a.dtype
    )[()]


def _left(a: Any, b: Any) -> Any:
    return _shifted(a, b, np.left_shift, 0)


def _right(a: Any, b: Any) -> Any:
    return _shifted(a, b, np.right_shift, np.where(a < 0, -1, 0))


def _right_unsigned(a: Any, b: Any) -> Any:
    return _shifted(a, b, np.right_shift, 0)


_SIGNLESS: dict[str, Callable[[Any, Any], Any]] = {
    "addi": lambda a, b: a ^ b if a.dtype == np.bool_ else a + b,
    "subi": lambda a, b: a ^ b if a.dtype == np.bool_ else a - b,
    "muli": lambda a, b: a & b if a.dtype == np.bool_ else a * b,
    "divsi": _quotient,
    "remsi": _remainder,
    "floordivsi": _floor_quotient,
    "ceildivsi": _ceiling_quotient,
    "andi": lambda a, b: a & b,
    "ori": lambda a, b: a | b,
    "xori": lambda a, b: a ^ b,
    "shli": _left,
    "shrsi": _right,
    "maxsi": np.maximum,
    "minsi": np.minimum,
}

_UNSIGNED: dict[str, Callable[[Any, Any], Any]] = {
    "divui": _floor_quotient,
    "remui": _remainder,
    "ceildivui": lambda a, b: _floor_quotient(a, b) + (_remainder(a, b) != 0).astype(a.dtype),
    "shrui": _right_unsigned,
    "maxui": np.maximum,
    "minui": np.minimum,
}

for _name, _function in _SIGNLESS.items():
    means(f"arith.{_name}")(_integer(_function))
for _name, _function in _UNSIGNED.items():
    means(f"arith.{_name}")(_on_bits(_function))


def _number_of(pick: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The other operand where one is NaN."""
    return lambda a, b: np.where(np.isnan(a), b, np.where(np.isnan(b), a, pick(a, b)))


FLOATS: dict[str, Callable[..., Any]] = {
    "addf": np.add,
    "subf": np.subtract,
    "mulf": np.multiply,
    "divf": np.divide,
    "remf": np.fmod,
    "negf": np.negative,
    "maximumf": np.maximum,
    "minimumf": np.minimum,
    "maxnumf": _number_of(np.maximum),
    "minnumf": _number_of(np.minimum),
}


@means(*(f"arith.{name}" for name in FLOATS))
def float_arithmetic(op: Operation, scope: Scope) -> Run:
    """Arithmetic of floats."""
    return lifted(FLOATS[name_of(op).removeprefix("arith.")], dtype_in(op.results[0].type))


_INTEGER_ORDER: dict[int, tuple[bool, Callable[[Any, Any], Any]]] = {
    0: (False, np.equal),
    1: (False, np.not_equal),
    2: (False, np.less),
    3: (False, np.less_equal),
    4: (False, np.greater),
    5: (False, np.greater_equal),
    6: (True, np.less),
    7: (True, np.less_equal),
    8: (True, np.greater),
    9: (True, np.greater_equal),
}
"""Predicates of `arith.cmpi` by number: whether unsigned, and the comparison."""


@means("arith.cmpi")
def compare_integers(op: Operation, scope: Scope) -> Run:
    """A comparison of integers; i1 is 0 or -1 where signed."""
    predicate = attribute_of(op, "predicate")
    if not isinstance(predicate, IntegerAttr):
        raise unfit(op, "its predicate is missing")
    on_bits, compare = _INTEGER_ORDER[predicate.value.data]
    is_bool = dtype_in(op.operands[0].type).kind == "b"

    def run(frame: Activation, a: Any, b: Any) -> Any:
        if is_bool:
            return compare(a, b) if on_bits else compare(-a.astype(np.int8), -b.astype(np.int8))
        return compare(as_unsigned(a), as_unsigned(b)) if on_bits else compare(a, b)

    return run


_FLOAT_ORDER: tuple[Callable[[Any, Any], Any] | None, ...] = (
    None,
    np.equal,
    np.greater,
    np.greater_equal,
    np.less,
    np.less_equal,
    np.not_equal,
)
"""Comparisons of `arith.cmpf` by number, ordered; 7 is "ordered", 8 to 13 the unordered ones."""


@means("arith.cmpf")
def compare_floats(op: Operation, scope: Scope) -> Run:
    """A comparison of floats; predicates 0 (false) to 15 (true) as LLVM numbers them."""
    predicate = attribute_of(op, "predicate")
    if not isinstance(predicate, IntegerAttr):
        raise unfit(op, "its predicate is missing")
    number = predicate.value.data

    def run(frame: Activation, a: Any, b: Any) -> Any:
        a, b = to_float(a), to_float(b)
        unordered = np.isnan(a) | np.isnan(b)
        if number in (0, 15):
            return np.full(np.shape(a), number == 15)[()]
        if number == 7:
            return ~unordered
        if number == 14:
            return unordered
        compare = _FLOAT_ORDER[number if number < 7 else number - 7]
        assert compare is not None
        return (compare(a, b) | unordered) if number > 7 else (compare(a, b) & ~unordered)

    return run


@means("arith.select")
def select(op: Operation, scope: Scope) -> Run:
    """One of two values; the condition is a scalar or has their shape."""
    if not getattr(op.operands[0].type, "get_shape", None):
        return lambda frame, c, a, b: a if c else b
    return lambda frame, c, a, b: np.where(c, a, b)


@means("arith.extsi", "arith.trunci", "arith.index_cast", "arith.sitofp")
def convert_signed(op: Operation, scope: Scope) -> Run:
    """Signed integers to wider or narrower ones, or to floats; i1 is 0 or -1."""
    dtype = dtype_in(op.results[0].type)
    from_bool = dtype_in(op.operands[0].type).kind == "b"

    def run(frame: Activation, a: Any) -> Any:
        if dtype.kind == "b":
            return (a.astype(np.int32) & 1).astype(np.bool_)
        if from_bool:
            a = -a.astype(np.int8)
        if a.dtype.kind == "V" and dtype.kind != "i":
            a = a.astype(np.int32)
        return a.astype(dtype)

    return run


@means("arith.extui", "arith.index_castui", "arith.uitofp")
def convert_unsigned(op: Operation, scope: Scope) -> Run:
    """Unsigned integers to wider ones, or to floats."""
    dtype = dtype_in(op.results[0].type)
    return lambda frame, a: as_unsigned(a).astype(dtype)


@means("arith.extf", "arith.truncf", "tpu.extf", "tpu.truncf")
def convert_float(op: Operation, scope: Scope) -> Run:
    """Floats to wider or narrower ones, to nearest even unless told otherwise."""
    dtype = dtype_in(op.results[0].type)
    mode = case_of(attribute_of(op, "rounding_mode") or attribute_of(op, "roundingmode"))
    if mode not in ("", "to_nearest_even", "none"):
        raise unfit(op, f"rounding mode {mode}")
    return lambda frame, a: a.astype(dtype)


@means("arith.fptosi", "arith.fptoui", "tpu.fptosi", "tpu.fptoui")
def float_to_int(op: Operation, scope: Scope) -> Run:
    """Toward zero, or to nearest even where `rounding_mode` says so; saturates, NaN gives zero."""
    dtype = dtype_in(op.results[0].type)
    is_unsigned = name_of(op).endswith("ui")
    nearest = case_of(attribute_of(op, "rounding_mode")) == "to_nearest_even"

    def run(frame: Activation, a: Any) -> Any:
        a = to_float(a)
        return float_to_integer(np.rint(a) if nearest else a, dtype, is_unsigned=is_unsigned)

    return run


@means("tpu.sitofp")
def tpu_signed_to_float(op: Operation, scope: Scope) -> Run:
    """As `arith.sitofp`."""
    return convert_signed(op, scope)


@means("tpu.uitofp")
def tpu_unsigned_to_float(op: Operation, scope: Scope) -> Run:
    """As `arith.uitofp`."""
    return convert_unsigned(op, scope)


@means("arith.bitcast")
def bitcast(op: Operation, scope: Scope) -> Run:
    """The same bits as a type of equal width."""
    source, target = dtype_in(op.operands[0].type), dtype_in(op.results[0].type)
    if source.itemsize != target.itemsize:
        raise unfit(op, f"{source} and {target} differ in width")
    return lambda frame, a: a.view(target)


@means("arith.addui_extended", "arith.mulsi_extended", "arith.mului_extended")
def extended(op: Operation, scope: Scope) -> Run:
    """Low half of a product and its high half; a sum and its carry."""
    name, dtype = name_of(op), dtype_in(op.results[0].type)
    width = width_of(dtype)
    if width > 32:
        raise unfit(op, f"of {dtype}")

    def run(frame: Activation, a: Any, b: Any) -> Any:
        if name == "arith.mulsi_extended":
            wide = a.astype(np.int64) * b.astype(np.int64)
            return wide.astype(dtype), (wide >> width).astype(dtype)
        x, y = as_unsigned(a).astype(np.uint64), as_unsigned(b).astype(np.uint64)
        wide = x + y if name == "arith.addui_extended" else x * y
        high = wide >> np.uint64(width)
        return wide.astype(dtype), high.astype(
            np.bool_ if name == "arith.addui_extended" else dtype
        )

    return run
