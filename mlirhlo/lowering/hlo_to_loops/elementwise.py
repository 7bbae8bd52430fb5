"""Element-wise instructions on registers.

Narrow floats (f16, bf16) are computed in f32 and rounded after every instruction, as XLA does.
Integers wrap; division by zero and shifts beyond the width have XLA's results.
Source: the interpreter's element-wise meanings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float32Type, Float64Type, IntegerType, f32
from xdsl.ir import Operation, SSAValue

from mlirhlo.diagnostics import error
from mlirhlo.dialects import arith as casts
from mlirhlo.dialects.hlo.element_types import PRED, Kind, PrimitiveType
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.lowering.builder import FunctionBuilder, element_of
from mlirhlo.lowering.hlo_to_loops.element_math import FUNCTIONS
from mlirhlo.lowering.hlo_to_loops.elemental import Elements, Place, emits
from mlirhlo.lowering.hlo_to_loops.elements import Value, register_type

Scalar: TypeAlias = "Callable[..., SSAValue]"
"""Builder and operands to a result."""


def element_type(value: SSAValue) -> PrimitiveType:
    """Element type of an array value."""
    return cast(ArrayShape, shape_of(value.type)).element_type


def _no_meaning(op: Instruction, element: PrimitiveType) -> Exception:
    return error("HLO0432", f"`{op.opcode.name}` of {element} has no lowering to a loop")


def _operands(e: Elements, op: Instruction, place: Place) -> list[Value]:
    return [e.at(o, place) for o in op.inputs]


def widened(b: FunctionBuilder, x: SSAValue) -> SSAValue:
    """A float as f32 at least."""
    element = element_of(x.type)
    if isinstance(element, Float32Type | Float64Type):
        return x
    return b.cast(casts.ExtFOp, x, f32)


def narrowed(b: FunctionBuilder, x: SSAValue, element: PrimitiveType) -> SSAValue:
    """Rounded to the element type it stands for."""
    type_ = register_type(element)
    return x if element_of(x.type) == type_ else b.cast(casts.TruncFOp, x, type_)


def _arithmetic(
    opcode: str, floats: Scalar | None, integers: Scalar | None, preds: Scalar | None = None
) -> None:
    """Registers an opcode by what it does to each kind of element."""

    def emit(e: Elements, op: Instruction, place: Place) -> Value:
        element = element_type(op.inputs[0])
        values = [v[0] for v in _operands(e, op, place)]
        if element.is_float and floats is not None and element.bits >= 16:
            wide = [widened(e.b, v) for v in values]
            return (narrowed(e.b, floats(e.b, *wide), element),)
        if element.is_integer and integers is not None:
            return (integers(e.b, *values, signed=element.is_signed),)
        if element is PRED and preds is not None:
            return (preds(e.b, *values),)
        raise _no_meaning(op, element)

    emits(opcode)(emit)


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
    zero, one = b.constant(0, x.type), b.constant(1, x.type)
    by_zero = b.cmpi("eq", y, zero)
    if not signed:
        safe = b.select(by_zero, one, y)
        return b.select(by_zero, b.constant(-1, x.type), b.integer(arith.DivUIOp, x, safe))
    minus_one = b.constant(-1, x.type)
    overflow = b.andi(
        b.cmpi("eq", x, b.constant(1 << (_width(x) - 1), x.type)), b.cmpi("eq", y, minus_one)
    )
    safe = b.select(b.ori(by_zero, overflow), one, y)
    return b.select(by_zero, minus_one, b.integer(arith.DivSIOp, x, safe))


def _remainder(b: FunctionBuilder, x: SSAValue, y: SSAValue, *, signed: bool) -> SSAValue:
    """By zero x itself; of the least number by -1 it is 0."""
    zero, one = b.constant(0, x.type), b.constant(1, x.type)
    by_zero = b.cmpi("eq", y, zero)
    if not signed:
        safe = b.select(by_zero, one, y)
        return b.select(by_zero, x, b.integer(arith.RemUIOp, x, safe))
    by_minus_one = b.cmpi("eq", y, b.constant(-1, x.type))
    safe = b.select(b.ori(by_zero, by_minus_one), one, y)
    rest = b.integer(arith.RemSIOp, x, safe)
    return b.select(by_zero, x, rest)


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
    from mlirhlo.lowering.builder import EXACT

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


def _reciprocal_root(b: FunctionBuilder, x: SSAValue) -> SSAValue:
    return b.divf(b.constant(1.0, x.type), b.one(math.SqrtOp, x))


_arithmetic("add", FunctionBuilder.addf, _two(arith.AddiOp), FunctionBuilder.ori)
_arithmetic("subtract", FunctionBuilder.subf, _two(arith.SubiOp))
_arithmetic("multiply", FunctionBuilder.mulf, _two(arith.MuliOp), FunctionBuilder.andi)
_arithmetic("divide", FunctionBuilder.divf, _divide)
_arithmetic("remainder", FUNCTIONS["remainder"], _remainder)
_arithmetic(
    "maximum",
    FunctionBuilder.maximumf,
    _by_sign(arith.MaxSIOp, arith.MaxUIOp),
    FunctionBuilder.ori,
)
_arithmetic(
    "minimum",
    FunctionBuilder.minimumf,
    _by_sign(arith.MinSIOp, arith.MinUIOp),
    FunctionBuilder.andi,
)
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
        if element.bits < 16:
            raise _no_meaning(op, element)
        if (op.comparison_type or "") == "TOTALORDER":
            return (b.cmpi(_integer_word(direction, True), _total_key(b, x), _total_key(b, y)),)
        return (b.cmpf(_ORDERED[direction], widened(b, x), widened(b, y)),)
    return (b.cmpi(_integer_word(direction, element.is_signed), x, y),)


def _integer_word(direction: str, signed: bool) -> str:
    if direction in ("EQ", "NE"):
        return direction.lower()
    return ("s" if signed else "u") + direction.lower()


@emits("select")
def _select(e: Elements, op: Instruction, place: Place) -> Value:
    predicate, on_true, on_false = op.inputs
    scalar = not cast(ArrayShape, shape_of(predicate.type)).dimensions
    (mask,) = e.at(predicate, () if scalar else place)
    pairs = zip(e.at(on_true, place), e.at(on_false, place), strict=True)
    return tuple(e.b.select(mask, x, y) for x, y in pairs)


@emits("clamp")
def _clamp(e: Elements, op: Instruction, place: Place) -> Value:
    b = e.b
    element = element_type(op.inputs[1])
    low, x, high = (
        e.at(o, place if cast(ArrayShape, shape_of(o.type)).dimensions else ())[0]
        for o in op.inputs
    )
    if element.is_float and element.bits >= 16:
        low, x, high = (widened(b, v) for v in (low, x, high))
        return (narrowed(b, b.minimumf(b.maximumf(x, low), high), element),)
    if element.is_integer:
        most, least = (
            (arith.MaxSIOp, arith.MinSIOp) if element.is_signed else (arith.MaxUIOp, arith.MinUIOp)
        )
        return (b.integer(least, b.integer(most, x, low), high),)
    raise _no_meaning(op, element)


@emits("is-finite")
def _is_finite(e: Elements, op: Instruction, place: Place) -> Value:
    b = e.b
    ((x,),) = _operands(e, op, place)
    size = b.one(math.AbsFOp, widened(b, x))
    return (b.cmpf("olt", size, b.constant(float("inf"), size.type)),)


@emits("copy", "optimization-barrier", "convert")
def _convert_op(e: Elements, op: Instruction, place: Place) -> Value:
    source, target = element_type(op.inputs[0]), element_type(op.results[0])
    (value,) = _operands(e, op, place)
    return convert(e.b, value, source, target)


def convert(
    b: FunctionBuilder, value: Value, source: PrimitiveType, target: PrimitiveType
) -> Value:
    """Another element type: floats saturate into integers, NaN is 0."""
    if source is target:
        return value
    if target.is_complex:
        real = value[0] if source.is_complex else convert(b, value, source, target.real)[0]
        imag = value[1] if source.is_complex else b.constant(0, real.type)
        if source.is_complex:
            parts = (convert(b, (v,), source.real, target.real)[0] for v in (real, imag))
            return tuple(parts)
        return (real, imag)
    if source.is_complex:
        return convert(b, value[:1], source.real, target)
    (x,) = value
    for element in (source, target):
        if element.is_float and element.bits < 16:
            raise error("HLO0432", f"convert of {source} to {target} has no lowering to a loop")
    if target.kind is Kind.PRED:
        if source.is_float:
            x = widened(b, x)
            return (b.cmpf("une", x, b.constant(0.0, x.type)),)
        return (b.cmpi("ne", x, b.constant(0, x.type)),)
    if source.kind is Kind.PRED:
        if target.is_integer:
            return (_resized(b, x, 1, target.bits, signed=False),)
        one = b.cast(casts.UIToFPOp, x, f32)
        return (_between_floats(b, one, 32, target),)
    if source.is_integer and target.is_integer:
        return (_resized(b, x, source.bits, target.bits, signed=source.is_signed),)
    if source.is_integer:
        if source.bits < 32:
            x = _resized(b, x, source.bits, 32, signed=source.is_signed)
        cls = casts.SIToFPOp if source.is_signed else casts.UIToFPOp
        through = register_type(target) if target.bits >= 32 else f32
        return (narrowed(b, b.cast(cls, x, through), target),)
    if target.is_integer:
        return (_saturated(b, widened(b, x), target),)
    return (_between_floats(b, x, source.bits, target),)


def _between_floats(b: FunctionBuilder, x: SSAValue, bits: int, target: PrimitiveType) -> SSAValue:
    type_ = register_type(target)
    if element_of(x.type) == type_:
        return x
    if bits < target.bits:
        return b.cast(casts.ExtFOp, x, type_)
    if bits == target.bits:  # f16 and bf16
        x, bits = b.cast(casts.ExtFOp, x, f32), 32
    if bits == 64 and target.bits < 32:
        x = b.cast(casts.TruncFOp, x, f32) if target.name == "bf16" else _rounded_to_odd(b, x)
    return b.cast(casts.TruncFOp, x, type_)


def _rounded_to_odd(b: FunctionBuilder, x: SSAValue) -> SSAValue:
    """f64 as f32 whose last bit is set where it is not exact: rounding it again rounds once."""
    near = b.cast(casts.TruncFOp, x, f32)
    back = b.cast(casts.ExtFOp, near, element_of(x.type))
    bits = b.bitcast(near, IntegerType(32))
    one, zero = b.constant(1, bits.type), b.constant(0, bits.type)
    too_far = b.cmpf("ogt", b.one(math.AbsFOp, back), b.one(math.AbsFOp, x))
    lower = b.subi(bits, b.select(too_far, one, zero))
    inexact = b.cmpf("one", back, x)
    return b.bitcast(b.select(inexact, b.ori(lower, one), bits), f32)


def _resized(b: FunctionBuilder, x: SSAValue, before: int, after: int, *, signed: bool) -> SSAValue:
    type_ = IntegerType(after)
    if before == after:
        return x
    if before > after:
        return b.cast(casts.TruncIOp, x, type_)
    return b.cast(casts.ExtSIOp if signed else casts.ExtUIOp, x, type_)


def _saturated(b: FunctionBuilder, x: SSAValue, target: PrimitiveType) -> SSAValue:
    low = -(1 << (target.bits - 1)) if target.is_signed else 0
    high = low + (1 << target.bits) - 1
    bits = max(target.bits, 32)
    above = b.cmpf("oge", x, b.constant(float(high + 1), x.type))
    below = b.cmpf("ole", x, b.constant(float(low - 1 if low > -(1 << 31) else low), x.type))
    ordered = b.cmpf("ord", x, x)
    inside = b.andi(ordered, _not(b, b.ori(above, below)))
    safe = b.select(inside, x, b.constant(0.0, x.type))
    cls = casts.FPToSIOp if target.is_signed else casts.FPToUIOp
    value = _resized(b, b.cast(cls, safe, IntegerType(bits)), bits, target.bits, signed=True)
    result = b.select(above, b.constant(high, value.type), value)
    return b.select(below, b.constant(low, value.type), result)


@emits("bitcast-convert")
def _bitcast_convert(e: Elements, op: Instruction, place: Place) -> Value:
    source, target = element_type(op.inputs[0]), element_type(op.results[0])
    if source.bits != target.bits or source.is_complex or target.is_complex:
        raise _no_meaning(op, target)
    ((x,),) = _operands(e, op, place)
    type_ = register_type(target)
    return (x if element_of(x.type) == type_ else e.b.bitcast(x, type_),)


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
