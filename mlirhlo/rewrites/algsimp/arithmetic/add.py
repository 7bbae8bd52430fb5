"""Rules of add."""

from __future__ import annotations

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.hlo.ops import (
    AddOp,
    BroadcastOp,
    ConstantOp,
    DynamicSliceOp,
    DynamicUpdateSliceOp,
    MultiplyOp,
    SubtractOp,
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
    splat_of,
)
from mlirhlo.rewrites.rules import Rewriter, rule


@rule(AddOp, contract="zeros", reads=(ConstantOp, BroadcastOp))
def add_zero(op: AddOp, rewriter: Rewriter) -> None:
    """x + 0 => x"""
    if is_all(op.rhs, 0):
        forward(op, rewriter, op.lhs)
    elif is_all(op.lhs, 0):
        forward(op, rewriter, op.rhs)


@rule(AddOp, reads=(ConstantOp,))
def add_constant_goes_right(op: AddOp, rewriter: Rewriter) -> None:
    """C + x => x + C"""
    if is_constant(op.lhs) and not is_constant(op.rhs):
        b = Builder(op, rewriter)
        b.like(AddOp, op.rhs, op.lhs)
        b.done()


def both_constants(a: SSAValue, b: SSAValue) -> bool:
    """Whether both are constants, or both broadcasts of scalar constants."""
    return is_constant_or_spread(a) and type(a.owner) is type(b.owner) and is_constant_or_spread(b)


def is_constant_or_spread(value: SSAValue) -> bool:
    """Whether the value is a constant, or the broadcast of a scalar constant."""
    owner = value.owner
    if type(owner) is not BroadcastOp:
        return type(owner) is ConstantOp
    return type(owner.operand.owner) is ConstantOp and not array(owner.operand).dimensions


def scalars_of(a: SSAValue, b: SSAValue) -> tuple[SSAValue, SSAValue] | None:
    """The scalars that `a` and `b` are broadcasts of."""
    x, y = is_scalar_broadcast(a), is_scalar_broadcast(b)
    return (x.operand, y.operand) if x is not None and y is not None else None


@rule(AddOp, contract="rounding", reads=(AddOp,))
def add_of_add_of_constants(op: AddOp, rewriter: Rewriter) -> None:
    """(x + C1) + C2 => x + (C1 + C2)"""
    inner = made_by(op.lhs, AddOp)
    if inner is None or is_constant(inner.lhs) or not both_constants(inner.rhs, op.rhs):
        return
    b = Builder(op, rewriter)
    scalars = scalars_of(inner.rhs, op.rhs)
    if scalars is None:
        b.like(AddOp, inner.lhs, b.on(AddOp, inner.rhs, op.rhs))
    else:
        b.like(AddOp, inner.lhs, b.spread(b.on(AddOp, *scalars), array(op.rhs)))
    b.done()


@rule(AddOp, contract="rounding", reads=(SubtractOp,))
def add_of_constant_minus(op: AddOp, rewriter: Rewriter) -> None:
    """(C1 - x) + C2 => (C1 + C2) - x"""
    inner = made_by(op.lhs, SubtractOp)
    if inner is None or is_constant(inner.rhs) or not both_constants(inner.lhs, op.rhs):
        return
    b = Builder(op, rewriter)
    scalars = scalars_of(inner.lhs, op.rhs)
    if scalars is None:
        b.like(SubtractOp, b.on(AddOp, inner.lhs, op.rhs), inner.rhs)
    else:
        b.like(SubtractOp, b.spread(b.on(AddOp, *scalars), array(op.rhs)), inner.rhs)
    b.done()


@rule(AddOp, contract="rounding", reads=(SubtractOp,))
def add_of_difference(op: AddOp, rewriter: Rewriter) -> None:
    """x + (y - x) => y"""
    if not is_integral(element(op)) and not options_of(rewriter).enable_fast_math:
        return
    for x, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        difference = made_by(other, SubtractOp)
        if difference is not None and difference.rhs is x:
            forward(op, rewriter, difference.lhs)
            return


@rule(AddOp, reads=(DynamicUpdateSliceOp,))
def add_of_update_of_zeros(op: AddOp, rewriter: Rewriter) -> None:
    """x + dynamic-update-slice(bc(0), u, i) => dynamic-update-slice(x, dynamic-slice(x, i) + u, i)"""
    for x, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        dus = made_by(other, DynamicUpdateSliceOp)
        if dus is None or dus.control_predecessors or not same_array(x, op):
            continue
        target, update, *starts = dus.inputs
        if not isinstance(target.owner, BroadcastOp) or not is_all(target, 0):
            continue
        if array(x).is_dynamic or array(update).is_dynamic:
            continue
        sizes = array(update).dimensions
        b = Builder(op, rewriter)
        old = b(
            DynamicSliceOp, x, *starts, shape=array(update), dynamic_slice_sizes=integers(sizes)
        )
        b.like(DynamicUpdateSliceOp, x, b.on(AddOp, old, update), *starts)
        b.done()
        return


def _is_power_of_two(type_: PrimitiveType, value: SSAValue) -> bool:
    import math

    number = splat_of(value)
    return type_.is_float and bool(number) and abs(math.frexp(number)[0]) == 0.5


@rule(AddOp, contract="rounding", reads=(MultiplyOp,))
def add_of_products_with_a_common_factor(op: AddOp, rewriter: Rewriter) -> None:
    """x*c + y*c => (x + y)*c"""
    first, second = made_by(op.lhs, MultiplyOp), made_by(op.rhs, MultiplyOp)
    if first is None or second is None or first is second:
        return
    if not (has_one_user(first.output) and has_one_user(second.output)):
        return
    type_ = element(op)
    for c, x in ((first.lhs, first.rhs), (first.rhs, first.lhs)):
        for d, y in ((second.lhs, second.rhs), (second.rhs, second.lhs)):
            if c is not d:
                continue
            real = options_of(rewriter).enable_floats_are_real
            if not (type_.is_integer or real or _is_power_of_two(type_, c)):
                continue
            b = Builder(op, rewriter)
            b.like(MultiplyOp, b.on(AddOp, x, y), c)
            b.done()
            return


RULES = (
    add_zero,
    add_constant_goes_right,
    add_of_add_of_constants,
    add_of_constant_minus,
    add_of_difference,
    add_of_update_of_zeros,
    add_of_products_with_a_common_factor,
)
