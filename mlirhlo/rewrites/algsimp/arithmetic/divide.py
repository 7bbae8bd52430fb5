"""Rules of divide and remainder."""

from __future__ import annotations

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.base import string
from mlirhlo.dialects.hlo.element_types import PRED
from mlirhlo.dialects.hlo.literal import Literal
from mlirhlo.dialects.hlo.ops import (
    AbsOp,
    AddOp,
    AndOp,
    BroadcastOp,
    CompareOp,
    ConstantOp,
    ConvertOp,
    DivideOp,
    ExponentialOp,
    Instruction,
    IotaOp,
    MultiplyOp,
    NegateOp,
    PowerOp,
    RemainderOp,
    RsqrtOp,
    SelectOp,
    ShiftRightLogicalOp,
    SqrtOp,
    SubtractOp,
)
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    element,
    forward,
    has_one_user,
    is_all,
    is_constant,
    is_integral,
    is_scalar_broadcast,
    literal_of,
    made_by,
    splat_of,
    typed,
)
from mlirhlo.rewrites.rules import Rewriter, rule


@rule(DivideOp, contract="zeros", reads=(ConstantOp, BroadcastOp))
def divide_by_one(op: DivideOp, rewriter: Rewriter) -> None:
    """x / 1 => x"""
    if is_all(op.rhs, 1):
        forward(op, rewriter, op.lhs)


def _power_of_two(value: SSAValue) -> int | None:
    """`k` of an all-equal integer 2^k > 0."""
    if not element(value).is_integer:
        return None
    number = splat_of(value)
    if number is None or number <= 0 or number & (number - 1):
        return None
    return int(number).bit_length() - 1


def _with_sign_of(b: Builder, x: SSAValue, magnitude: Instruction) -> None:
    """select(x < 0, -magnitude, magnitude)"""
    shape = array(b.op)
    below = b(CompareOp, x, b.splat(shape, 0), shape=typed(shape, PRED), direction=string("LT"))
    b.like(SelectOp, below, b.like(NegateOp, magnitude), magnitude)


@rule(DivideOp, reads=(ConstantOp, BroadcastOp))
def divide_by_power_of_two(op: DivideOp, rewriter: Rewriter) -> None:
    """x / 2^k => x >> k; select(x < 0, -(|x| >> k), |x| >> k), x signed"""
    k = _power_of_two(op.rhs)
    if k is None or array(op).is_dynamic:
        return
    b = Builder(op, rewriter)
    if element(op).is_unsigned:
        b.like(ShiftRightLogicalOp, op.lhs, b.splat(array(op), k))
    else:
        magnitude = b.like(AbsOp, op.lhs)
        shifted = b.like(ShiftRightLogicalOp, magnitude, b.splat(array(op), k))
        _with_sign_of(b, op.lhs, shifted)
    b.done()


@rule(DivideOp, contract="rounding", needs=("enable_fast_math",), reads=(ExponentialOp,))
def divide_exponentials(op: DivideOp, rewriter: Rewriter) -> None:
    """exp(a) / exp(b) => exp(a - b)"""
    a, b = made_by(op.lhs, ExponentialOp), made_by(op.rhs, ExponentialOp)
    if a is not None and b is not None:
        new = Builder(op, rewriter)
        new.like(ExponentialOp, new.on(SubtractOp, a.operand, b.operand))
        new.done()


@rule(DivideOp, contract="rounding", needs=("enable_fast_math",), reads=(ExponentialOp,))
def divide_by_exponential(op: DivideOp, rewriter: Rewriter) -> None:
    """a / exp(b) => a * exp(-b)"""
    if (inner := made_by(op.rhs, ExponentialOp)) is not None:
        b = Builder(op, rewriter)
        b.like(MultiplyOp, op.lhs, b.on(ExponentialOp, b.on(NegateOp, inner.operand)))
        b.done()


@rule(DivideOp, contract="rounding", reads=(PowerOp,))
def divide_by_power(op: DivideOp, rewriter: Rewriter) -> None:
    """a / pow(b, c) => a * pow(b, -c), floats"""
    inner = made_by(op.rhs, PowerOp)
    if inner is not None and not is_integral(element(op)):
        b = Builder(op, rewriter)
        b.like(MultiplyOp, op.lhs, b.on(PowerOp, inner.lhs, b.on(NegateOp, inner.rhs)))
        b.done()


@rule(DivideOp, contract="rounding", reads=(SqrtOp,))
def divide_by_square_root(op: DivideOp, rewriter: Rewriter) -> None:
    """a / sqrt(b) => a * rsqrt(b)"""
    root = made_by(op.rhs, SqrtOp)
    if root is not None and has_one_user(root.output):
        b = Builder(op, rewriter)
        b.like(MultiplyOp, op.lhs, b.on(RsqrtOp, root.operand))
        b.done()


@rule(DivideOp, contract="rounding", reads=(RsqrtOp,))
def divide_by_reciprocal_square_root(op: DivideOp, rewriter: Rewriter) -> None:
    """a / rsqrt(b) => a * sqrt(b)"""
    root = made_by(op.rhs, RsqrtOp)
    if root is not None and has_one_user(root.output):
        b = Builder(op, rewriter)
        b.like(MultiplyOp, op.lhs, b.on(SqrtOp, root.operand))
        b.done()


def _reciprocal(literal: Literal) -> Literal:
    """1/C element by element, computed in the constant's type."""
    import numpy as np

    with np.errstate(all="ignore"):
        values = np.reciprocal(literal.array)
    shape = literal.shape
    assert isinstance(shape, ArrayShape)
    return Literal.from_array(shape, values.astype(literal.array.dtype))


@rule(DivideOp, contract="rounding", reads=(ConstantOp, BroadcastOp))
def divide_by_constant(op: DivideOp, rewriter: Rewriter) -> None:
    """a / C => a * (1 / C), floats and complex numbers, a not constant"""
    if is_integral(element(op)) or is_constant(op.lhs):
        return
    spread = made_by(op.rhs, BroadcastOp)
    literal = literal_of(op.rhs if spread is None else spread.operand)
    if literal is None:
        return
    b = Builder(op, rewriter)
    factor: Instruction = b.constant(_reciprocal(literal))
    if spread is not None:
        factor = b.broadcast(factor, spread.dimensions, array(spread))
    b.like(MultiplyOp, op.lhs, factor)
    b.done()


@rule(
    DivideOp,
    contract="rounding",
    needs=("executing_on_cpu", "enable_sink_broadcast"),
    reads=(BroadcastOp,),
)
def divide_by_broadcast(op: DivideOp, rewriter: Rewriter) -> None:
    """a / bc(b) => a * bc(1 / b), floats; b has one reader"""
    spread = made_by(op.rhs, BroadcastOp)
    if spread is None or not has_one_user(spread.output) or is_integral(element(op)):
        return
    if not has_one_user(spread.operand):
        return
    small = array(spread.operand)
    if element(op).is_complex or small.element_count >= array(op).element_count:
        return
    b = Builder(op, rewriter)
    inverse = b(DivideOp, b.splat(small, 1), spread.operand, shape=small)
    b.like(MultiplyOp, op.lhs, b.broadcast(inverse, spread.dimensions, array(spread)))
    b.done()


@rule(DivideOp, contract="rounding", reads=(DivideOp,))
def divide_quotient_by_quotient(op: DivideOp, rewriter: Rewriter) -> None:
    """(a / b) / (c / d) => (a * d) / (b * c), floats"""
    x, y = made_by(op.lhs, DivideOp), made_by(op.rhs, DivideOp)
    if x is not None and y is not None and not is_integral(element(op)):
        b = Builder(op, rewriter)
        b.like(DivideOp, b.like(MultiplyOp, x.lhs, y.rhs), b.like(MultiplyOp, x.rhs, y.lhs))
        b.done()


@rule(DivideOp, contract="rounding", reads=(DivideOp,))
def divide_quotient(op: DivideOp, rewriter: Rewriter) -> None:
    """(a / b) / c => a / (b * c), floats"""
    x = made_by(op.lhs, DivideOp)
    if x is not None and not is_integral(element(op)) and made_by(op.rhs, DivideOp) is None:
        b = Builder(op, rewriter)
        b.like(DivideOp, x.lhs, b.like(MultiplyOp, x.rhs, op.rhs))
        b.done()


@rule(DivideOp, contract="rounding", reads=(DivideOp,))
def divide_by_quotient(op: DivideOp, rewriter: Rewriter) -> None:
    """a / (b / c) => (a * c) / b, floats"""
    y = made_by(op.rhs, DivideOp)
    if y is not None and not is_integral(element(op)) and made_by(op.lhs, DivideOp) is None:
        b = Builder(op, rewriter)
        b.like(DivideOp, b.like(MultiplyOp, op.lhs, y.rhs), y.lhs)
        b.done()


@rule(DivideOp, contract="rounding", reads=(ConvertOp,))
def divide_converted_pred_by_scalar(op: DivideOp, rewriter: Rewriter) -> None:
    """convert(p) / bc(y) => bc(1 / y) * convert(p), p of pred, y a scalar, floats"""
    convert, spread = made_by(op.lhs, ConvertOp), is_scalar_broadcast(op.rhs)
    if convert is None or spread is None or is_integral(element(op)):
        return
    if element(convert.operand).name != "pred":
        return
    b = Builder(op, rewriter)
    one = b.scalar(element(op), 1)
    inverse = b.spread(b.on(DivideOp, one, spread.operand), array(op.rhs))
    b.like(MultiplyOp, inverse, convert.output)
    b.done()


@rule(RemainderOp, reads=(RemainderOp,))
def remainder_of_remainder(op: RemainderOp, rewriter: Rewriter) -> None:
    """(a % b) % b => a % b"""
    inner = made_by(op.lhs, RemainderOp)
    if inner is not None and inner.rhs is op.rhs:
        forward(op, rewriter, inner.output)


@rule(RemainderOp, reads=(IotaOp,))
def remainder_of_iota(op: RemainderOp, rewriter: Rewriter) -> None:
    """iota % N => iota, N no less than its dimension"""
    iota, count = made_by(op.lhs, IotaOp), splat_of(op.rhs)
    if iota is None or count is None or not element(op).is_integer:
        return
    size = array(iota).dimensions[iota.iota_dimension]
    if count >= size and _iota_fits(iota, size):
        forward(op, rewriter, op.lhs)


def _iota_fits(iota: IotaOp, past: int) -> bool:
    type_ = element(iota)
    return past <= 1 << (type_.bits - (1 if type_.is_signed else 0))


@rule(RemainderOp, reads=(AddOp,))
def remainder_of_shifted_iota(op: RemainderOp, rewriter: Rewriter) -> None:
    """(iota + N) % N => iota % N, where nothing overflows"""
    added, count = made_by(op.lhs, AddOp), splat_of(op.rhs)
    if added is None or count is None or not element(op).is_integer or count <= 0:
        return
    iota = made_by(added.lhs, IotaOp)
    if iota is None or splat_of(added.rhs) != count:
        return
    size = array(iota).dimensions[iota.iota_dimension]
    if _iota_fits(iota, size + count):
        b = Builder(op, rewriter)
        b.like(RemainderOp, iota, op.rhs)
        b.done()


@rule(RemainderOp, reads=(ConstantOp, BroadcastOp))
def remainder_by_power_of_two(op: RemainderOp, rewriter: Rewriter) -> None:
    """a % 2^k => a & (2^k - 1); select(a < 0, -(|a| & (2^k - 1)), |a| & (2^k - 1)), a signed"""
    k = _power_of_two(op.rhs)
    if k is None or array(op).is_dynamic:
        return
    b = Builder(op, rewriter)
    mask = b.splat(array(op), (1 << k) - 1)
    if element(op).is_unsigned:
        b.like(AndOp, op.lhs, mask)
    else:
        _with_sign_of(b, op.lhs, b.like(AndOp, b.like(AbsOp, op.lhs), mask))
    b.done()


RULES = (
    divide_by_one,
    divide_by_power_of_two,
    divide_exponentials,
    divide_by_exponential,
    divide_by_power,
    divide_by_square_root,
    divide_by_reciprocal_square_root,
    divide_by_constant,
    divide_converted_pred_by_scalar,
    divide_by_broadcast,
    divide_quotient_by_quotient,
    divide_quotient,
    divide_by_quotient,
    remainder_of_remainder,
    remainder_of_iota,
    remainder_of_shifted_iota,
    remainder_by_power_of_two,
)
