"""Rules of multiply and negate."""

from __future__ import annotations

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops import (
    AbsOp,
    AddOp,
    BroadcastOp,
    ConstantOp,
    ConvertOp,
    DivideOp,
    ExponentialOp,
    Instruction,
    MultiplyOp,
    NegateOp,
    RsqrtOp,
    SelectOp,
    SqrtOp,
)
from mlirhlo.rewrites.algsimp.arithmetic.add import (
    both_constants,
    is_constant_or_spread,
    scalars_of,
)
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
    made_by,
    options_of,
    same_array,
)
from mlirhlo.rewrites.algsimp.facts import non_negative
from mlirhlo.rewrites.rules import Rewriter, rule


@rule(MultiplyOp, contract="zeros", reads=(ConstantOp, BroadcastOp))
def multiply_one(op: MultiplyOp, rewriter: Rewriter) -> None:
    """x * 1 => x"""
    if is_all(op.rhs, 1):
        forward(op, rewriter, op.lhs)
    elif is_all(op.lhs, 1):
        forward(op, rewriter, op.rhs)


@rule(MultiplyOp, contract="zeros", reads=(ConstantOp, BroadcastOp))
def multiply_zero(op: MultiplyOp, rewriter: Rewriter) -> None:
    """x * 0 => 0, integers"""
    if not is_integral(element(op)) and not options_of(rewriter).enable_fast_math:
        return
    if is_all(op.rhs, 0):
        forward(op, rewriter, op.rhs)
    elif is_all(op.lhs, 0):
        forward(op, rewriter, op.lhs)


@rule(MultiplyOp, reads=(NegateOp,))
def multiply_negations(op: MultiplyOp, rewriter: Rewriter) -> None:
    """(-a) * (-b) => a * b"""
    a, b = made_by(op.lhs, NegateOp), made_by(op.rhs, NegateOp)
    if a is not None and b is not None:
        new = Builder(op, rewriter)
        new.like(MultiplyOp, a.operand, b.operand)
        new.done()


@rule(MultiplyOp, reads=(AbsOp,))
def multiply_magnitude_by_itself(op: MultiplyOp, rewriter: Rewriter) -> None:
    """|a| * |a| => a * a, a not complex"""
    magnitude = made_by(op.lhs, AbsOp)
    if magnitude is None or op.lhs is not op.rhs or element(magnitude.operand).is_complex:
        return
    b = Builder(op, rewriter)
    b.like(MultiplyOp, magnitude.operand, magnitude.operand)
    b.done()


@rule(MultiplyOp, contract="finite", reads=(ConvertOp,))
def multiply_by_converted_pred(op: MultiplyOp, rewriter: Rewriter) -> None:
    """x * convert(p) => select(p, x, 0), p of pred"""
    for x, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        convert = made_by(other, ConvertOp)
        if convert is None or element(convert.operand).name != "pred" or array(op).is_dynamic:
            continue
        b = Builder(op, rewriter)
        b.like(SelectOp, convert.operand, x, b.splat(array(op), 0))
        b.done()
        return


def _scaled(value: SSAValue) -> tuple[SSAValue, SSAValue] | None:
    """`x` and `C` of `x * C` or `C * x`, C a constant or a broadcast of one, x neither."""
    product = made_by(value, MultiplyOp)
    if product is None:
        return None
    for x, c in ((product.lhs, product.rhs), (product.rhs, product.lhs)):
        if is_constant_or_spread(c) and not is_constant_or_spread(x):
            return x, c
    return None


def _product(b: Builder, c: SSAValue, d: SSAValue) -> Instruction:
    """`c * d`, of scalars where both are broadcasts of scalars."""
    scalars = scalars_of(c, d)
    if scalars is None:
        return b.on(MultiplyOp, c, d)
    return b.spread(b.on(MultiplyOp, *scalars), array(c))


@rule(MultiplyOp, contract="rounding", reads=(MultiplyOp,))
def multiply_of_multiply_of_constants(op: MultiplyOp, rewriter: Rewriter) -> None:
    """(a * C1) * C2 => a * (C1 * C2)"""
    for inner, c in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        scaled = _scaled(inner) if is_constant_or_spread(c) else None
        if scaled is None or not both_constants(scaled[1], c):
            continue
        b = Builder(op, rewriter)
        b.like(MultiplyOp, scaled[0], _product(b, scaled[1], c))
        b.done()
        return


@rule(MultiplyOp, contract="rounding", reads=(MultiplyOp,))
def multiply_of_scaled(op: MultiplyOp, rewriter: Rewriter) -> None:
    """(a * C1) * (b * C2) => (a * b) * (C1 * C2), nobody else reading the products"""
    if not (has_one_user(op.lhs) and has_one_user(op.rhs)):
        return
    a = _scaled(op.lhs)
    b = None if a is None else _scaled(op.rhs)
    if a is None or b is None or not both_constants(a[1], b[1]):
        return
    new = Builder(op, rewriter)
    product = new.like(MultiplyOp, a[0], b[0])
    new.like(MultiplyOp, product, _product(new, a[1], b[1]))
    new.done()


@rule(MultiplyOp, contract="rounding", reads=(MultiplyOp,))
def multiply_scaled_by_broadcast(op: MultiplyOp, rewriter: Rewriter) -> None:
    """(a * bc(C)) * bc(b) => a * bc(b * C), C a scalar constant"""
    inner, spread = made_by(op.lhs, MultiplyOp), made_by(op.rhs, BroadcastOp)
    if inner is None or spread is None or is_constant(spread.operand):
        return
    scale = is_scalar_broadcast(inner.rhs)
    if scale is None or not is_constant(scale.operand) or not same_array(inner.lhs, op):
        return
    small = array(spread.operand)
    if small.element_count >= array(op).element_count:
        return
    b = Builder(op, rewriter)
    factor = b.on(MultiplyOp, spread.operand, b.spread(scale.operand, small))
    b.like(MultiplyOp, inner.lhs, b.broadcast(factor, spread.dimensions, array(op.rhs)))
    b.done()


@rule(MultiplyOp, contract="rounding", needs=("enable_fast_math",), reads=(ExponentialOp,))
def multiply_exponentials(op: MultiplyOp, rewriter: Rewriter) -> None:
    """exp(a) * exp(b) => exp(a + b)"""
    a, b = made_by(op.lhs, ExponentialOp), made_by(op.rhs, ExponentialOp)
    if a is not None and b is not None:
        new = Builder(op, rewriter)
        new.like(ExponentialOp, new.on(AddOp, a.operand, b.operand))
        new.done()


@rule(MultiplyOp, contract="rounding", reads=(SqrtOp,))
def multiply_square_roots(op: MultiplyOp, rewriter: Rewriter) -> None:
    """sqrt(x) * sqrt(x) => x, x not negative"""
    root = made_by(op.lhs, SqrtOp)
    if root is not None and op.lhs is op.rhs and non_negative(root.operand):
        forward(op, rewriter, root.operand)


@rule(MultiplyOp, contract="rounding", reads=(RsqrtOp,))
def multiply_reciprocal_square_roots(op: MultiplyOp, rewriter: Rewriter) -> None:
    """rsqrt(x) * rsqrt(x) => 1 / x, x not negative"""
    root = made_by(op.lhs, RsqrtOp)
    if root is None or op.lhs is not op.rhs or not non_negative(root.operand):
        return
    if array(op).is_dynamic:
        return
    b = Builder(op, rewriter)
    b.like(DivideOp, b.splat(array(op), 1), root.operand)
    b.done()


@rule(NegateOp, reads=(NegateOp,))
def negate_of_negate(op: NegateOp, rewriter: Rewriter) -> None:
    """-(-x) => x"""
    if (inner := made_by(op.operand, NegateOp)) is not None:
        forward(op, rewriter, inner.operand)


RULES = (
    multiply_one,
    multiply_zero,
    multiply_negations,
    multiply_magnitude_by_itself,
    multiply_by_converted_pred,
    multiply_of_multiply_of_constants,
    multiply_of_scaled,
    multiply_scaled_by_broadcast,
    multiply_exponentials,
    multiply_square_roots,
    multiply_reciprocal_square_roots,
    negate_of_negate,
)
