"""Element-wise instructions on registers.

Narrow floats (f16, bf16) are computed in f32 and rounded after every instruction, as XLA does.
Integers wrap; division by zero and shifts beyond the width have XLA's results.
Source: the interpreter's element-wise meanings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IntegerType, VectorType, f32, f64
from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects import arith as casts
from mlirhlo.dialects.hlo.element_types import PRED
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.structured.base import ULP
from mlirhlo.lowering.builder import APPROXIMATE, EXACT, FunctionBuilder, element_of
from mlirhlo.lowering.hlo_to_loops.complex_elements import COMPLEX
from mlirhlo.lowering.hlo_to_loops.element_math import FUNCTIONS
from mlirhlo.lowering.hlo_to_loops.elemental import Elements, Emitter, Place, emits
from mlirhlo.lowering.hlo_to_loops.elements import Value
from mlirhlo.lowering.hlo_to_loops.elementwise_convert import (
    element_type,
    narrowed,
    no_meaning,
    widened,
)
from mlirhlo.lowering.hlo_to_loops.extremes import maximum, minimum
from mlirhlo.lowering.hlo_to_loops.quotients import quotient

Scalar: TypeAlias = "Callable[..., SSAValue]"
"""Builder and operands to a result."""


def _operands(e: Elements, op: Instruction, place: Place) -> list[Value]:
    return [e.at(o, place) for o in op.inputs]


def _arithmetic(
    opcode: str, floats: Scalar | None, integers: Scalar | None, preds: Scalar | None = None
) -> None:
    """Registers an opcode by what it does to each kind of element."""
    emits(opcode)(_by_kind(opcode, floats, integers, preds))


def _by_kind(
    opcode: str, floats: Scalar | None, integers: Scalar | None, preds: Scalar | None = None
) -> Emitter:
    def emit(e: Elements, op: Instruction, place: Place) -> Value:
        element = element_type(op.inputs[0])
        if element.is_complex and opcode in COMPLEX:
            return COMPLEX[opcode](e.b, _operands(e, op, place))
        values = [v[0] for v in _operands(e, op, place)]
        if element.is_float and floats is not None:
            wide = [widened(e.b, v, element) for v in values]
            return (narrowed(e.b, floats(e.b, *wide), element),)
        if element.is_integer and integers is not None:
            return (integers(e.b, *values, signed=element.is_signed),)
        if element is PRED and preds is not None:
            return (preds(e.b, *values),)
        raise no_meaning(op, element)

    return emit


def _two(cls: type[Operation]) -> Scalar:
    def emit(b: FunctionBuilder, x: SSAValue, y: SSAValue, *, signed: bool = True) -> SSAValue:
        del signed
        return b.integer(cls, x, y)

    return emit


def _by_sign(signed_op: type[Operation], unsigned_op: type[Operation]) -> Scalar:
    def emit(b: FunctionBuilder, x: SSAValue, y: SSAValue, *, signed: bool) -> SSAValue:
        return b.integer(signed_op if signed else unsigned_op, x, y)

    return emit


def _width(x: SSAValue) -> int:
    return cast(IntegerType, element_of(x.type)).width.data


def _divide(b: FunctionBuilder, x: SSAValue, y: SSAValue, *, signed: bool) -> SSAValue:
    """By zero -1 (all bits set); the least number by -1 is itself."""
    by_zero, safe = _divisor(b, x, y, signed=signed)
    whole = _whole(b, x, safe, _in_floats(y), signed=signed)
    return b.select(by_zero, b.constant(-1, x.type), whole)


def _remainder(b: FunctionBuilder, x: SSAValue, y: SSAValue, *, signed: bool) -> SSAValue:
    """By zero x itself; of the least number by -1 it is 0."""
    by_zero, safe = _divisor(b, x, y, signed=signed)
    type_ = _in_floats(y)
    if type_ is None:
        rest = b.integer(arith.RemSIOp if signed else arith.RemUIOp, x, safe)
    else:
        rest = b.subi(x, b.muli(_whole(b, x, safe, type_, signed=signed), safe))
    return b.select(by_zero, x, rest)


def _divisor(
    b: FunctionBuilder, x: SSAValue, y: SSAValue, *, signed: bool
) -> tuple[SSAValue, SSAValue]:
    """Whether `y` is zero, and 1 in the place of a divisor that has no quotient."""
    by_zero = without = b.cmpi("eq", y, b.constant(0, y.type))
    if signed:
        least = b.cmpi("eq", x, b.constant(1 << (_width(x) - 1), x.type))
        overflow = b.andi(least, b.cmpi("eq", y, b.constant(-1, y.type)))
        without = b.ori(by_zero, overflow)
    return by_zero, b.select(without, b.constant(1, y.type), y)


def _in_floats(y: SSAValue) -> Attribute | None:
    """The float type in which vectors are divided, of which processors have no instruction for integers.

    A quotient that is no integer is further from one than it is rounded. Division by a constant is a product.
    """
    if not isinstance(y.type, VectorType) or isinstance(y.owner, arith.ConstantOp):
        return None
    width = _width(y)
    return None if width > 32 else f32 if width <= 16 else f64


def _whole(
    b: FunctionBuilder, x: SSAValue, y: SSAValue, type_: Attribute | None, *, signed: bool
) -> SSAValue:
    """The quotient, rounded towards zero, where there is one; computed in floats of a type, or in integers."""
    if type_ is None:
        return b.integer(arith.DivSIOp if signed else arith.DivUIOp, x, y)
    to_float = casts.SIToFPOp if signed else casts.UIToFPOp
    ratio = b.divf(b.cast(to_float, x, type_), b.cast(to_float, y, type_))
    return b.cast(casts.FPToSIOp if signed else casts.FPToUIOp, ratio, element_of(x.type))


def _shift(cls: type[Operation], arithmetic: bool = False) -> Scalar:
    """Shifts by the width or more give 0, or the sign."""

    def emit(b: FunctionBuilder, x: SSAValue, y: SSAValue, *, signed: bool = True) -> SSAValue:
        del signed
        width = _width(x)
        inside = b.cmpi("ult", y, b.constant(width, y.type))
        if width == 1:
            inside = b.cmpi("eq", y, b.constant(0, y.type))
        safe = b.select(inside, y, b.constant(0, y.type))
        shifted = b.integer(cls, x, safe)
        if arithmetic:
            beyond = b.integer(cls, x, b.constant(width - 1, x.type))
        else:
            beyond = b.constant(0, x.type)
        return b.select(inside, shifted, beyond)

    return emit


def _one(cls: type[Operation]) -> Scalar:
    def emit(b: FunctionBuilder, x: SSAValue) -> SSAValue:
        return b.one(cls, x)

    return emit


def _negate_integer(b: FunctionBuilder, x: SSAValue, *, signed: bool) -> SSAValue:
    del signed
    return b.subi(b.constant(0, x.type), x)


def _abs_integer(b: FunctionBuilder, x: SSAValue, *, signed: bool) -> SSAValue:
    if not signed:
        return x
    return b.integer(arith.MaxSIOp, x, b.subi(b.constant(0, x.type), x))


def _sign_float(b: FunctionBuilder, x: SSAValue) -> SSAValue:
    zero = b.constant(0.0, x.type)
    one = b.emit(math.CopySignOp, (b.constant(1.0, x.type), x), x.type, {"fastmath": _exact()})
    # Zeros keep their sign and NaN stays NaN.
    return b.select(b.cmpf("one", x, zero), one, x)


def _exact() -> arith.FastMathFlagsAttr:
    return EXACT


def _sign_integer(b: FunctionBuilder, x: SSAValue, *, signed: bool) -> SSAValue:
    zero, one = b.constant(0, x.type), b.constant(1, x.type)
    if not signed:
        return b.select(b.cmpi("ne", x, zero), one, zero)
    positive = b.select(b.cmpi("sgt", x, zero), one, zero)
    return b.select(b.cmpi("slt", x, zero), b.constant(-1, x.type), positive)


def _not(b: FunctionBuilder, x: SSAValue, *, signed: bool = True) -> SSAValue:
    del signed
    return b.xori(x, b.constant(-1, x.type))


def _power_integer(b: FunctionBuilder, x: SSAValue, y: SSAValue, *, signed: bool) -> SSAValue:
    """By squaring, over all bits of the exponent."""
    one, zero = b.constant(1, x.type), b.constant(0, x.type)
    result, square = one, x
    width = _width(x)
    bits = width - 1 if signed else width
    for bit in range(bits):
        odd = b.cmpi("ne", b.andi(y, b.constant(1 << bit, y.type)), zero)
        result = b.select(odd, b.muli(result, square), result)
        if bit < bits - 1:
            square = b.muli(square, square)
    if not signed:
        return result
    # Negative exponents: 1 and -1 keep their size, all else is 0.
    negative = b.cmpi("slt", y, zero)
    is_one = b.cmpi("eq", x, one)
    is_minus_one = b.cmpi("eq", x, b.constant(-1, x.type))
    odd = b.cmpi("ne", b.andi(y, one), zero)
    other = b.select(is_one, one, b.select(is_minus_one, b.select(odd, x, one), zero))
    return b.select(negative, other, result)


def _multiply_high(b: FunctionBuilder, x: SSAValue, y: SSAValue, *, signed: bool) -> SSAValue:
    """The high half of the double-width product."""
    width = _width(x)
    if width < 64:
        widen = casts.ExtSIOp if signed else casts.ExtUIOp
        wide = [b.cast(widen, v, IntegerType(2 * width)) for v in (x, y)]
        product = b.muli(*wide)
        high = b.shrui(product, b.constant(width, product.type))
        return b.cast(casts.TruncIOp, high, IntegerType(width))
    half, mask = b.constant(32, x.type), b.constant(0xFFFFFFFF, x.type)
    (x1, y1), (x0, y0) = ([b.shrui(v, half) for v in (x, y)], [b.andi(v, mask) for v in (x, y)])
    middle = b.addi(b.muli(x1, y0), b.shrui(b.muli(x0, y0), half))
    carry = b.addi(b.muli(x0, y1), b.andi(middle, mask))
    high = b.addi(b.addi(b.muli(x1, y1), b.shrui(middle, half)), b.shrui(carry, half))
    if not signed:
        return high
    zero = b.constant(0, x.type)
    for negative, other in ((x, y), (y, x)):
        high = b.subi(high, b.select(b.cmpi("slt", negative, zero), other, zero))
    return high


def _reciprocal_root(b: FunctionBuilder, x: SSAValue) -> SSAValue:
    return b.divf(b.constant(1.0, x.type), b.one(math.SqrtOp, x))


_arithmetic("add", FunctionBuilder.addf, _two(arith.AddiOp), FunctionBuilder.ori)
_arithmetic("subtract", FunctionBuilder.subf, _two(arith.SubiOp))
_arithmetic("multiply", FunctionBuilder.mulf, _two(arith.MuliOp), FunctionBuilder.andi)
_divided = _by_kind("divide", FunctionBuilder.divf, _divide)


@emits("divide")
def _quotient(e: Elements, op: Instruction, place: Place) -> Value:
    """Approximate where that is allowed; in loops over what is in the first cache, by a divisor that stays, without
    dividing."""
    element = element_type(op.inputs[0])
    is_approximate = ULP in op.attributes
    is_product = e.divides and e.lanes
    if not (is_approximate or is_product) or not element.is_float or element.bits > 32:
        return _divided(e, op, place)
    x, y = (widened(e.b, e.at(o, place)[0], element) for o in op.inputs)
    result = e.b.divf(x, y, APPROXIMATE) if is_approximate else quotient(e, x, y)
    return (narrowed(e.b, result, element),)


_arithmetic("remainder", FUNCTIONS["remainder"], _remainder)
_arithmetic(
    "maximum",
    maximum,
    _by_sign(arith.MaxSIOp, arith.MaxUIOp),
    FunctionBuilder.ori,
)
_arithmetic(
    "minimum",
    minimum,
    _by_sign(arith.MinSIOp, arith.MinUIOp),
    FunctionBuilder.andi,
)
_arithmetic("mulhi", None, _multiply_high)
_arithmetic("and", None, _two(arith.AndIOp), FunctionBuilder.andi)
_arithmetic("or", None, _two(arith.OrIOp), FunctionBuilder.ori)
_arithmetic("xor", None, _two(arith.XOrIOp), FunctionBuilder.xori)
_arithmetic("not", None, _not, _not)
_arithmetic("shift-left", None, _shift(arith.ShLIOp))
_arithmetic("shift-right-logical", None, _shift(arith.ShRUIOp))
_arithmetic("shift-right-arithmetic", None, _shift(arith.ShRSIOp, arithmetic=True))
_arithmetic("negate", FunctionBuilder.negf, _negate_integer)
_arithmetic("abs", _one(math.AbsFOp), _abs_integer)
_arithmetic("sign", _sign_float, _sign_integer)
_arithmetic("floor", _one(math.FloorOp), None)
_arithmetic("ceil", _one(math.CeilOp), None)
_arithmetic("round-nearest-afz", _one(math.RoundOp), None)
_arithmetic("round-nearest-even", _one(math.RoundEvenOp), None)
_arithmetic("sqrt", _one(math.SqrtOp), None)
_arithmetic("rsqrt", _reciprocal_root, None)
_arithmetic("power", FUNCTIONS["power"], _power_integer)
for _name, _function in FUNCTIONS.items():
    if _name not in ("remainder", "power"):
        _arithmetic(_name, _function, None)


@emits("popcnt", "count-leading-zeros")
def _count(e: Elements, op: Instruction, place: Place) -> Value:
    ((x,),) = _operands(e, op, place)
    if not element_type(op.inputs[0]).is_integer:
        raise no_meaning(op, element_type(op.inputs[0]))
    cls = math.CtPopOp if op.opcode.name == "popcnt" else math.CountLeadingZerosOp
    return (e.b.emit(cls, (x,), x.type),)


_ORDERED = {"EQ": "oeq", "NE": "une", "LT": "olt", "LE": "ole", "GT": "ogt", "GE": "oge"}


def _total_key(b: FunctionBuilder, x: SSAValue) -> SSAValue:
    """Integers in the total order of floats: -NaN < -inf < … < -0 < +0 < … < NaN."""
    width = cast(Any, element_of(x.type)).bitwidth
    bits = b.bitcast(x, IntegerType(width))
    sign = b.shrsi(bits, b.constant(width - 1, bits.type))
    return b.xori(bits, b.shrui(sign, b.constant(1, bits.type)))


@emits("compare")
def _compare(e: Elements, op: Any, place: Place) -> Value:
    element = element_type(op.inputs[0])
    lhs, rhs = _operands(e, op, place)
    direction = cast(str, op.direction)
    b = e.b
    if element.is_complex:
        word = "oeq" if direction == "EQ" else "une"
        parts = [b.cmpf(word, x, y) for x, y in zip(lhs, rhs, strict=True)]
        return (b.andi(*parts) if direction == "EQ" else b.ori(*parts),)
    x, y = lhs[0], rhs[0]
    if element.is_float:
        x, y = (widened(b, v, element) if element.bits < 16 else v for v in (x, y))
        if op.comparison_type == "TOTALORDER" or op.order == "TOTAL":
            return (b.cmpi(_integer_word(direction, True), _total_key(b, x), _total_key(b, y)),)
        if element.bits == 16:
            x, y = widened(b, x, element), widened(b, y, element)
        return (b.cmpf(_ORDERED[direction], x, y),)
    return (b.cmpi(_integer_word(direction, element.is_signed), x, y),)


def _integer_word(direction: str, signed: bool) -> str:
    if direction in ("EQ", "NE"):
        return direction.lower()
    return ("s" if signed else "u") + direction.lower()


def _beside(op: Instruction, operand: SSAValue, place: Place) -> Place:
    """The place of an operand that may be a scalar among arrays."""
    is_scalar = not cast(ArrayShape, shape_of(operand.type)).dimensions
    return () if is_scalar and cast(ArrayShape, op.shape).dimensions else place


@emits("select")
def _select(e: Elements, op: Instruction, place: Place) -> Value:
    predicate, on_true, on_false = op.inputs
    (mask,) = e.at(predicate, _beside(op, predicate, place))
    pairs = zip(e.at(on_true, place), e.at(on_false, place), strict=True)
    return tuple(e.b.select(mask, x, y) for x, y in pairs)


@emits("clamp")
def _clamp(e: Elements, op: Instruction, place: Place) -> Value:
    b = e.b
    element = element_type(op.inputs[1])
    low, x, high = (e.at(o, _beside(op, o, place))[0] for o in op.inputs)
    if element.is_float:
        low, x, high = (widened(b, v, element) for v in (low, x, high))
        return (narrowed(b, minimum(b, maximum(b, x, low), high), element),)
    if element.is_integer:
        most, least = (
            (arith.MaxSIOp, arith.MinSIOp) if element.is_signed else (arith.MaxUIOp, arith.MinUIOp)
        )
        return (b.integer(least, b.integer(most, x, low), high),)
    if element.name == "pred":
        return (b.andi(b.ori(x, low), high),)
    raise no_meaning(op, element)


@emits("is-finite")
def _is_finite(e: Elements, op: Instruction, place: Place) -> Value:
    b = e.b
    element = element_type(op.inputs[0])
    (value,) = _operands(e, op, place)
    if not (element.is_float or element.is_complex):
        return (e.constant(True, IntegerType(1)),)
    finite: SSAValue | None = None
    for part in value:
        size = b.one(math.AbsFOp, widened(b, part, element.real))
        mask = b.cmpf("olt", size, b.constant(float("inf"), size.type))
        finite = mask if finite is None else b.andi(finite, mask)
    assert finite is not None
    return (finite,)


@emits("complex")
def _complex(e: Elements, op: Instruction, place: Place) -> Value:
    (real,), (imag,) = _operands(e, op, place)
    return (real, imag)


@emits("real", "imag")
def _part(e: Elements, op: Instruction, place: Place) -> Value:
    (value,) = _operands(e, op, place)
    if len(value) == 1:
        return value if op.opcode.name == "real" else (e.b.constant(0, value[0].type),)
    return (value[0 if op.opcode.name == "real" else 1],)
