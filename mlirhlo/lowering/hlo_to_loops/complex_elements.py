"""Instructions on complex elements: sums and products in their own type, all else in f64."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from xdsl.ir import SSAValue

from mlirhlo.lowering.builder import FunctionBuilder
from mlirhlo.lowering.hlo_to_loops import complex_arithmetic as arithmetic
from mlirhlo.lowering.hlo_to_loops.complex_functions import FUNCTIONS
from mlirhlo.lowering.hlo_to_loops.elements import Value
from mlirhlo.lowering.hlo_to_loops.math_numbers import Numbers, extended, rounded

Function: TypeAlias = "Callable[[FunctionBuilder, Sequence[Value]], Value]"


def _by_parts(function: Callable[..., SSAValue]) -> Function:
    def emit(b: FunctionBuilder, operands: Sequence[Value]) -> Value:
        return tuple(function(b, *parts) for parts in zip(*operands, strict=True))

    return emit


def _multiply(b: FunctionBuilder, operands: Sequence[Value]) -> Value:
    x, y = ((v[0], v[1]) for v in operands)
    return arithmetic.multiply(Numbers(b, x[0].type), x, y)


def _by_real_part(predicate: str) -> Function:
    """The first of equal ones."""

    def emit(b: FunctionBuilder, operands: Sequence[Value]) -> Value:
        x, y = operands
        mask = b.cmpf(predicate, x[0], y[0])
        return tuple(b.select(mask, p, q) for p, q in zip(x, y, strict=True))

    return emit


def _in_double(function: Callable[..., tuple[SSAValue, ...]]) -> Function:
    def emit(b: FunctionBuilder, operands: Sequence[Value]) -> Value:
        wide = [(extended(b, x), extended(b, y)) for x, y in operands]
        n = Numbers(b, wide[0][0].type)
        parts = function(n, *wide)
        if operands[0][0].type == n.type:
            return parts
        return tuple(rounded(b, part) for part in parts)

    return emit


def _in_double_or_plainly(
    function: Callable[..., tuple[SSAValue, ...]], plain: Callable[..., tuple[SSAValue, ...]]
) -> Function:
    """`plain` for narrower parts: their squares neither overflow nor vanish in f64."""
    in_double, plainly = _in_double(function), _in_double(plain)

    def emit(b: FunctionBuilder, operands: Sequence[Value]) -> Value:
        return (plainly if Numbers(b, operands[0][0].type).is_f32 else in_double)(b, operands)

    return emit


def _size(b: FunctionBuilder, operands: Sequence[Value]) -> Value:
    """In f32 alone where the processor helps with roots."""
    (x,) = operands
    n = Numbers(b, x[0].type)
    if not n.is_f32:
        return (arithmetic.size(n, (x[0], x[1])),)
    if n.can_estimate_roots:
        return (arithmetic.narrow_size(n, (x[0], x[1])),)
    wide = extended(b, x[0]), extended(b, x[1])
    return (rounded(b, arithmetic.plain_size(Numbers(b, wide[0].type), wide)),)


COMPLEX: Mapping[str, Function] = {
    "add": _by_parts(FunctionBuilder.addf),
    "subtract": _by_parts(FunctionBuilder.subf),
    "negate": _by_parts(FunctionBuilder.negf),
    "multiply": _multiply,
    "maximum": _by_real_part("oge"),
    "minimum": _by_real_part("ole"),
    "abs": _size,
    **{name: _in_double(function) for name, function in FUNCTIONS.items()},
    "divide": _in_double_or_plainly(arithmetic.divide, arithmetic.plain_divide),
    "sign": _in_double_or_plainly(arithmetic.sign, arithmetic.plain_sign),
}
"""By opcode: of the elements of the operands; `abs` gives one value."""
