"""Rules of maximum, minimum and clamp."""

from __future__ import annotations

from typing import Any

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import (
    CbrtOp,
    ClampOp,
    ErfOp,
    LogisticOp,
    MaximumOp,
    MinimumOp,
    PartitionIdOp,
    ReplicaIdOp,
    TanhOp,
)
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    element,
    forward,
    is_all,
    is_scalar_broadcast,
    literal_of,
    made_by,
    options_of,
    same_array,
    splat_of,
)
from mlirhlo.rewrites.rules import Rewriter, rule

_Extreme = MaximumOp | MinimumOp


@rule(MaximumOp, MinimumOp)
def extreme_of_same(op: _Extreme, rewriter: Rewriter) -> None:
    """max(x, x) => x; min(x, x) => x"""
    if op.lhs is op.rhs:
        forward(op, rewriter, op.lhs)


def _ends(type_: PrimitiveType) -> tuple[int, int]:
    """Lowest and highest number of an integer type or pred."""
    if type_.is_signed:
        return -(1 << (type_.bits - 1)), (1 << (type_.bits - 1)) - 1
    return 0, (1 << type_.bits) - 1


def is_end(value: SSAValue, high: bool) -> bool:
    """Whether every element is known to be the highest (lowest) value of its type."""
    type_ = element(value)
    if type_.is_complex or (number := splat_of(value)) is None:
        return False
    # XLA asks for infinity of floats; their largest finite number is kept, an infinity passes it.
    if type_.is_float:
        return bool(number == (float("inf") if high else float("-inf")))
    return bool(number == _ends(type_)[high])


@rule(MaximumOp, MinimumOp)
def extreme_of_end(op: _Extreme, rewriter: Rewriter) -> None:
    """max(x, lowest) => x; min(x, highest) => x"""
    if element(op).is_float and not options_of(rewriter).minmax_propagate_nan:
        return
    high = isinstance(op, MinimumOp)
    if is_end(op.rhs, high):
        forward(op, rewriter, op.lhs)
    elif is_end(op.lhs, high):
        forward(op, rewriter, op.rhs)


@rule(MaximumOp, MinimumOp, contract="zeros")
def extreme_of_extreme_of_same(op: _Extreme, rewriter: Rewriter) -> None:
    """max(max(x, y), x or y) => max(x, y); max(x, max(x, y)) => max(x, y); as well min"""
    for inner, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        owner = made_by(inner, type(op))
        if owner is None or other not in (owner.lhs, owner.rhs):
            continue
        if inner is op.rhs and other is owner.rhs and other is not owner.lhs:
            b = Builder(op, rewriter)
            b.like(type(op), owner.rhs, owner.lhs)
            b.done()
        else:
            forward(op, rewriter, inner)
        return


@rule(MaximumOp, contract="zeros")
def maximum_of_minimum(op: MaximumOp, rewriter: Rewriter) -> None:
    """max(lo, min(x, hi)) => clamp(lo, x, hi), lo < hi scalar constants, broadcast"""
    for lo, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        inner = made_by(other, MinimumOp)
        if inner is None:
            continue
        for x, hi in ((inner.lhs, inner.rhs), (inner.rhs, inner.lhs)):
            if _clamp(op, rewriter, lo, x, hi):
                return


@rule(MinimumOp, contract="zeros")
def minimum_of_maximum(op: MinimumOp, rewriter: Rewriter) -> None:
    """min(hi, max(x, lo)) => clamp(lo, x, hi), lo < hi scalar constants, broadcast"""
    for hi, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        inner = made_by(other, MaximumOp)
        if inner is None:
            continue
        for x, lo in ((inner.lhs, inner.rhs), (inner.rhs, inner.lhs)):
            if _clamp(op, rewriter, lo, x, hi):
                return


def _scalar_constant(value: SSAValue) -> Any:
    spread = is_scalar_broadcast(value)
    literal = literal_of(value if spread is None else spread.operand)
    return None if literal is None or array(literal_value(value)).dimensions else literal.item()


def literal_value(value: SSAValue) -> SSAValue:
    """What a scalar broadcast broadcasts, or the value itself."""
    spread = is_scalar_broadcast(value)
    return value if spread is None else spread.operand


def _clamp(op: _Extreme, rewriter: Rewriter, lo: SSAValue, x: SSAValue, hi: SSAValue) -> bool:
    low, high = _scalar_constant(lo), _scalar_constant(hi)
    if low is None or high is None or isinstance(low, (bool, complex)) or not low < high:
        return False
    b = Builder(op, rewriter)
    b.like(ClampOp, lo, x, hi)
    b.done()
    return True


@rule(MaximumOp, MinimumOp, contract="zeros")
def extreme_of_clamp(op: _Extreme, rewriter: Rewriter) -> None:
    """max(lo, clamp(lo, x, hi)) => clamp(lo, x, hi); min(hi, clamp(lo, x, hi)) => the same"""
    for end, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        inner = made_by(other, ClampOp)
        if inner is None:
            continue
        low, high = splat_of(inner.low), splat_of(inner.high)
        mine = inner.low if isinstance(op, MaximumOp) else inner.high
        if mine is end and low is not None and high is not None and low <= high:
            forward(op, rewriter, inner.output)
            return


_MONOTONE = (CbrtOp, ErfOp, LogisticOp, TanhOp)


@rule(MaximumOp, MinimumOp, contract="rounding")
def extreme_of_monotone(op: _Extreme, rewriter: Rewriter) -> None:
    """max(f(x), f(y)) => f(max(x, y)), f one of cbrt, erf, logistic, tanh; as well min"""
    x, y = op.lhs.owner, op.rhs.owner
    if not isinstance(x, _MONOTONE) or not isinstance(y, _MONOTONE) or type(x) is not type(y):
        return
    if element(x.operand) is not element(op):
        return
    b = Builder(op, rewriter)
    kept = {k: v for k, v in x.properties.items() if k == "result_accuracy"}
    if kept != {k: v for k, v in y.properties.items() if k == "result_accuracy"}:
        return
    b.like(type(x), b.like(type(op), x.operand, y.operand), **kept)
    b.done()


@rule(ClampOp, reads=(ClampOp,))
def clamp_of_clamp(op: ClampOp, rewriter: Rewriter) -> None:
    """clamp(a, clamp(a, x, b), b) => clamp(a, x, b)"""
    inner = made_by(op.operand, ClampOp)
    if inner is not None and inner.low is op.low and inner.high is op.high:
        forward(op, rewriter, inner.output)


@rule(ClampOp)
def clamp_of_device_id(op: ClampOp, rewriter: Rewriter) -> None:
    """clamp(0, partition-id, C) => partition-id, where C is no less than the last one"""
    owner, most = op.operand.owner, splat_of(op.high)
    if not isinstance(owner, (PartitionIdOp, ReplicaIdOp)) or not is_all(op.low, 0):
        return
    module = op.parent_op()
    while module is not None and module.parent_op() is not None:
        module = module.parent_op()
    if module is None or most is None or not same_array(op, op.operand):
        return
    view = HloModule(module)  # type: ignore[arg-type]
    count = view.num_partitions if isinstance(owner, PartitionIdOp) else view.replica_count
    if count != 1 and count <= most + 1:
        forward(op, rewriter, op.operand)


RULES = (
    extreme_of_same,
    extreme_of_end,
    extreme_of_extreme_of_same,
    maximum_of_minimum,
    minimum_of_maximum,
    extreme_of_clamp,
    extreme_of_monotone,
    clamp_of_clamp,
    clamp_of_device_id,
)
