"""Rules of abs, exponential, log, sqrt, rsqrt and power."""

from __future__ import annotations

from mlirhlo.dialects.hlo.attributes.base import string
from mlirhlo.dialects.hlo.element_types import PRED
from mlirhlo.dialects.hlo.ops import (
    AbsOp,
    CompareOp,
    ComplexOp,
    ConvertOp,
    DivideOp,
    ExponentialOp,
    LogOp,
    MultiplyOp,
    PowerOp,
    RsqrtOp,
    SelectOp,
    SqrtOp,
)
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    element,
    forward,
    is_all,
    is_integral,
    made_by,
    options_of,
    typed,
)
from mlirhlo.rewrites.algsimp.facts import non_negative
from mlirhlo.rewrites.rules import Rewriter, rule


@rule(AbsOp, contract="zeros")
def abs_of_non_negative(op: AbsOp, rewriter: Rewriter) -> None:
    """|x| => x, x known not to be negative"""
    if non_negative(op.operand):
        forward(op, rewriter, op.operand)


@rule(ExponentialOp)
def exponential_of_zero(op: ExponentialOp, rewriter: Rewriter) -> None:
    """exp(0) => 1"""
    if is_all(op.operand, 0) and not array(op).is_dynamic:
        b = Builder(op, rewriter)
        b.splat(array(op), 1)
        b.done()


@rule(LogOp, contract="rounding", needs=("enable_fast_math",), reads=(ExponentialOp,))
def log_of_exponential(op: LogOp, rewriter: Rewriter) -> None:
    """log(exp(a)) => a"""
    if (inner := made_by(op.operand, ExponentialOp)) is not None:
        forward(op, rewriter, inner.operand)


@rule(LogOp, contract="rounding", needs=("enable_fast_math",), reads=(PowerOp,))
def log_of_power(op: LogOp, rewriter: Rewriter) -> None:
    """log(pow(a, b)) => select(b == 0, 0, b * log(|a|))"""
    inner = made_by(op.operand, PowerOp)
    if inner is None or array(op).is_dynamic:
        return
    b = Builder(op, rewriter)
    zero, shape = b.splat(array(op), 0), typed(array(op), PRED)
    base = inner.lhs if element(op).is_complex else b.like(AbsOp, inner.lhs).output
    product = b.like(MultiplyOp, inner.rhs, b.like(LogOp, base))
    none = b(CompareOp, inner.rhs, zero, shape=shape, direction=string("EQ"))
    b.like(SelectOp, none, zero, product)
    b.done()


@rule(LogOp, contract="rounding", needs=("enable_fast_math",))
def log_of_root(op: LogOp, rewriter: Rewriter) -> None:
    """log(sqrt(a)) => 0.5 * log(a); log(rsqrt(a)) => -0.5 * log(a)"""
    inner = op.operand.owner
    if not isinstance(inner, (SqrtOp, RsqrtOp)) or array(op).is_dynamic:
        return
    b = Builder(op, rewriter)
    half = b.splat(array(op), 0.5 if isinstance(inner, SqrtOp) else -0.5)
    b.like(MultiplyOp, half, b.like(LogOp, inner.operand))
    b.done()


@rule(SqrtOp, contract="rounding", reads=(MultiplyOp,))
def sqrt_of_square(op: SqrtOp, rewriter: Rewriter) -> None:
    """sqrt(a * a) => |a|, a not complex; with fast math, or on CPUs, where XLA always does it"""
    options = options_of(rewriter)
    if not (options.enable_fast_math or options.executing_on_cpu):
        return
    square = made_by(op.operand, MultiplyOp)
    if square is not None and square.lhs is square.rhs and not element(op).is_complex:
        b = Builder(op, rewriter)
        b.like(AbsOp, square.lhs)
        b.done()


@rule(SqrtOp, contract="rounding", needs=("enable_fast_math",), reads=(MultiplyOp,))
def sqrt_of_complex_square(op: SqrtOp, rewriter: Rewriter) -> None:
    """sqrt(a * a) => convert(|a|), a complex(r, 0)"""
    # XLA does so for every complex number, and gives 1 for the root of i * i, which is i.
    square = made_by(op.operand, MultiplyOp)
    if square is None or square.lhs is not square.rhs:
        return
    whole = made_by(square.lhs, ComplexOp)
    if whole is None or not is_all(whole.inputs[1], 0):
        return
    b = Builder(op, rewriter)
    magnitude = b(AbsOp, square.lhs, shape=array(whole.inputs[0]))
    b.like(ConvertOp, magnitude)
    b.done()


@rule(RsqrtOp, contract="rounding", reads=(PowerOp,))
def rsqrt_of_power_minus_two(op: RsqrtOp, rewriter: Rewriter) -> None:
    """rsqrt(pow(a, -2)) => a, a known not to be negative"""
    power = made_by(op.operand, PowerOp)
    if power is not None and is_all(power.rhs, -2) and non_negative(power.lhs):
        forward(op, rewriter, power.lhs)


@rule(RsqrtOp, contract="rounding", reads=(DivideOp,))
def rsqrt_of_reciprocal(op: RsqrtOp, rewriter: Rewriter) -> None:
    """rsqrt(1 / a) => sqrt(a), a known not to be negative"""
    quotient = made_by(op.operand, DivideOp)
    if quotient is not None and is_all(quotient.lhs, 1) and non_negative(quotient.rhs):
        b = Builder(op, rewriter)
        b.like(SqrtOp, quotient.rhs)
        b.done()


@rule(PowerOp)
def power_zero(op: PowerOp, rewriter: Rewriter) -> None:
    """pow(a, 0) => 1"""
    if is_all(op.rhs, 0) and not array(op).is_dynamic:
        b = Builder(op, rewriter)
        b.splat(array(op), 1)
        b.done()


@rule(PowerOp)
def power_one(op: PowerOp, rewriter: Rewriter) -> None:
    """pow(a, 1) => a"""
    if is_all(op.rhs, 1):
        forward(op, rewriter, op.lhs)


@rule(PowerOp, contract="rounding", needs=("enable_fast_math",), reads=(ExponentialOp,))
def power_of_exponential(op: PowerOp, rewriter: Rewriter) -> None:
    """pow(exp(a), b) => exp(a * b)"""
    if (inner := made_by(op.lhs, ExponentialOp)) is not None:
        b = Builder(op, rewriter)
        b.like(ExponentialOp, b.like(MultiplyOp, inner.operand, op.rhs))
        b.done()


@rule(PowerOp, contract="rounding")
def power_two(op: PowerOp, rewriter: Rewriter) -> None:
    """pow(a, 2) => a * a"""
    if is_all(op.rhs, 2):
        b = Builder(op, rewriter)
        b.like(MultiplyOp, op.lhs, op.lhs)
        b.done()


@rule(PowerOp, contract="rounding")
def power_three(op: PowerOp, rewriter: Rewriter) -> None:
    """pow(a, 3) => a * (a * a)"""
    if is_all(op.rhs, 3):
        b = Builder(op, rewriter)
        b.like(MultiplyOp, op.lhs, b.like(MultiplyOp, op.lhs, op.lhs))
        b.done()


@rule(PowerOp, contract="rounding")
def power_minus_one(op: PowerOp, rewriter: Rewriter) -> None:
    """pow(a, -1) => 1 / a"""
    if is_all(op.rhs, -1) and not is_integral(element(op)) and not array(op).is_dynamic:
        b = Builder(op, rewriter)
        b.like(DivideOp, b.splat(array(op), 1), op.lhs)
        b.done()


@rule(PowerOp, contract="rounding")
def power_half(op: PowerOp, rewriter: Rewriter) -> None:
    """pow(a, 0.5) => sqrt(a), a known not to be negative"""
    if is_all(op.rhs, 0.5) and non_negative(op.lhs):
        b = Builder(op, rewriter)
        b.like(SqrtOp, op.lhs)
        b.done()


RULES = (
    abs_of_non_negative,
    exponential_of_zero,
    log_of_exponential,
    log_of_power,
    log_of_root,
    sqrt_of_square,
    sqrt_of_complex_square,
    rsqrt_of_power_minus_two,
    rsqrt_of_reciprocal,
    power_zero,
    power_one,
    power_of_exponential,
    power_two,
    power_three,
    power_minus_one,
    power_half,
)
