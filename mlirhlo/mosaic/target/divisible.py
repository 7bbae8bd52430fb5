"""What is known to divide an index: the prover behind every check of alignment.

It follows the operations the real compiler follows, to a bounded depth: constants, sums, products,
differences, minima, casts, selections, induction variables, and promises (`tpu.assume_multiple`).
"""

from __future__ import annotations

from math import gcd

from xdsl.ir import BlockArgument, Operation, SSAValue

from mlirhlo.mosaic.attributes import attribute_of, integer_of, integers, name_of

_DEPTH = 32
"""How far the prover follows operands."""
_CASTS = frozenset(
    {"arith.index_cast", "arith.index_castui", "arith.extsi", "arith.extui", "arith.trunci"}
)
_BOTH = frozenset({"arith.addi", "arith.subi", "arith.minsi", "arith.maxsi", "arith.remsi"})


def constant_of(value: SSAValue) -> int | None:
    """The integer that a value is, through casts and arithmetic of constants; None if not known."""
    op = value.owner
    if not isinstance(op, Operation):
        return None
    name = name_of(op)
    if name == "arith.constant":
        stated = attribute_of(op, "value")
        try:
            found = integers(stated) if stated is not None else ()
        except (TypeError, ValueError):
            return None
        return found[0] if len(found) == 1 else None
    if name in _CASTS or name == "tpu.assume_multiple":
        return constant_of(op.operands[0])
    if name in ("arith.addi", "arith.subi", "arith.muli"):
        left, right = constant_of(op.operands[0]), constant_of(op.operands[1])
        if left is None or right is None:
            return None
        if name == "arith.muli":
            return left * right
        return left + right if name == "arith.addi" else left - right
    return None


def is_divisible(value: SSAValue, divisor: int, depth: int = _DEPTH) -> bool:
    """Whether `divisor` provably divides `value`."""
    if divisor == 1:
        return True
    if depth == 0 or divisor == 0:
        return False
    known = constant_of(value)
    if known is not None:
        return known % divisor == 0
    op = value.owner
    if not isinstance(op, Operation):
        return _induction(value, divisor, depth)
    name = name_of(op)
    if name in _CASTS:
        return is_divisible(op.operands[0], divisor, depth - 1)
    if name == "tpu.assume_multiple":
        return integer_of(op, "multiple", 1) % divisor == 0 or is_divisible(
            op.operands[0], divisor, depth - 1
        )
    if name == "arith.muli":
        return _product(op.operands[0], op.operands[1], divisor, depth)
    if name in _BOTH:
        return all(is_divisible(operand, divisor, depth - 1) for operand in op.operands)
    if name in ("arith.divsi", "arith.divui"):
        by = constant_of(op.operands[1])
        return by is not None and by > 0 and is_divisible(op.operands[0], divisor * by, depth - 1)
    if name == "arith.shli":
        by = constant_of(op.operands[1])
        if by is None or not 0 <= by < 32:
            return False
        return is_divisible(op.operands[0], divisor // gcd(divisor, 1 << by), depth - 1)
    if name == "arith.andi":
        by = constant_of(op.operands[1])
        return by is not None and divisor & (divisor - 1) == 0 and by % divisor == 0
    if name == "arith.select":
        return all(is_divisible(operand, divisor, depth - 1) for operand in op.operands[1:])
    return False


def _product(left: SSAValue, right: SSAValue, divisor: int, depth: int) -> bool:
    for factor, other in ((left, right), (right, left)):
        known = constant_of(factor)
        if known is not None:
            return is_divisible(other, divisor // gcd(divisor, known), depth - 1)
    return is_divisible(left, divisor, depth - 1) or is_divisible(right, divisor, depth - 1)


def _induction(value: SSAValue, divisor: int, depth: int) -> bool:
    """Whether a loop's variable, by its lower bound and its step, is divisible."""
    if not isinstance(value, BlockArgument) or value.index:
        return False
    loop = value.owner.parent_op()
    if loop is None or name_of(loop) != "scf.for":
        return False
    return all(is_divisible(loop.operands[at], divisor, depth - 1) for at in (0, 2))
