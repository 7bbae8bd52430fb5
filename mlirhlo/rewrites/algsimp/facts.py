"""What can be proved about values: non-negative, identical."""

from __future__ import annotations

import math

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops import (
    AbsOp,
    BroadcastOp,
    ConstantOp,
    ExponentialOp,
    IotaOp,
    MaximumOp,
    MinimumOp,
    MultiplyOp,
    PowerOp,
    RsqrtOp,
    SelectOp,
    SqrtOp,
)
from mlirhlo.rewrites.algsimp.common import array, element, splat_of

_DEEPEST = 16
"""How far operands are followed; a chain that long is no pattern people write."""


def non_negative(value: SSAValue, depth: int = 0) -> bool:
    """Whether `value >= 0` is known of real numbers. A NaN may be called non-negative, as in XLA.

    Products of signed integers overflow, so they are not; -0.0 is not.
    """
    owner, type_ = value.owner, element(value)
    if depth > _DEEPEST or type_.is_complex:
        return False

    def known(part: SSAValue) -> bool:
        return non_negative(part, depth + 1)

    match owner:
        case MultiplyOp():
            return owner.lhs is owner.rhs and not type_.is_signed
        case ExponentialOp():
            return True
        case IotaOp():
            size = array(value).dimensions[owner.iota_dimension]
            return type_.is_unsigned or (type_.is_signed and size <= 1 << (type_.bits - 1))
        case AbsOp():
            return not type_.is_signed or known(owner.operand)
        case SqrtOp() | RsqrtOp():
            return positive(owner.operand, depth + 1)
        case BroadcastOp():
            return known(owner.operand)
        case SelectOp():
            return known(owner.on_true) and known(owner.on_false)
        case MinimumOp():
            return known(owner.lhs) and known(owner.rhs)
        case MaximumOp():
            return known(owner.lhs) or known(owner.rhs)
        case PowerOp():
            return not type_.is_signed and known(owner.lhs)
        case ConstantOp():
            number = splat_of(value) if not array(value).dimensions else None
            return number is not None and number >= 0 and math.copysign(1.0, number) > 0
        case _:
            return False


def positive(value: SSAValue, depth: int = 0) -> bool:
    """Whether `value > 0` is known of real numbers."""
    owner, type_ = value.owner, element(value)
    if depth > _DEEPEST or type_.is_complex:
        return False
    match owner:
        case AbsOp() | SqrtOp() | RsqrtOp() | BroadcastOp():
            return positive(owner.operand, depth + 1)
        case ConstantOp():
            number = splat_of(value) if not array(value).dimensions else None
            return number is not None and number > 0
        case _:
            return False


def is_float(value: SSAValue) -> bool:
    """Whether elements are real floating point numbers."""
    return element(value).is_float
