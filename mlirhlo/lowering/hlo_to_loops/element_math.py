"""Elementary functions of real elements: which function, in which precision.

f64 is computed in f64. f32 is computed in f32 where that is fast and exact enough (`exp`, `expm1`,
`log`, `log1p`, `tanh`, `logistic`, `erf`), elsewhere in f64 with polynomials as short as f32 allows.
f16, bf16 and smaller floats are computed as f32 and rounded.

Greatest errors in units of the last place, tested against mpmath over all exponents:

| function | f32 | f64 | | function | f32 | f64 |
| --- | --- | --- | --- | --- | --- | --- |
| exponential | 1.1 | 1.1 | | sine, cosine | 0.6 | 1 |
| exponential-minus-one | 2 | 2 | | tan | 0.6 | 2.5 |
| log | 1 | 1 | | asin | 0.6 | 2.5 |
| log-plus-one | 1.5 | 1.5 | | acos | 0.6 | 1.5 |
| tanh | 2.5 | 2.5 | | atan, atan2 | 0.6 | 2 |
| logistic | 2.5 | 2.5 | | sinh, cosh | 0.6 | 2 |
| erf | 1.5 | 2 | | asinh, atanh | 0.6 | 2.5 |
| power | 0.6 | 1.2 | | acosh | 0.6 | 3 |
| cbrt | 0.6 | 1 | | | | |

remainder is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from xdsl.dialects.builtin import Float64Type
from xdsl.ir import SSAValue

from mlirhlo.lowering.builder import FunctionBuilder, element_of
from mlirhlo.lowering.hlo_to_loops import math_exponential as exponential
from mlirhlo.lowering.hlo_to_loops import math_logarithm as logarithm
from mlirhlo.lowering.hlo_to_loops import math_others as others
from mlirhlo.lowering.hlo_to_loops import math_trigonometry as trigonometry
from mlirhlo.lowering.hlo_to_loops.math_numbers import Numbers, extended, rounded

Function: TypeAlias = "Callable[..., SSAValue]"
"""Numbers and operands to a result."""


def _own(function: Function) -> Function:
    """Computed in the type of its operands."""

    def emit(b: FunctionBuilder, *operands: SSAValue) -> SSAValue:
        return function(Numbers(b, operands[0].type), *operands)

    return emit


def _in_double(function: Function) -> Function:
    """f32 is computed in f64 and rounded."""

    def emit(b: FunctionBuilder, *operands: SSAValue) -> SSAValue:
        if isinstance(element_of(operands[0].type), Float64Type):
            return function(Numbers(b, operands[0].type), *operands)
        wide = [extended(b, x) for x in operands]
        return rounded(b, function(Numbers(b, wide[0].type, single=True), *wide))

    return emit


FUNCTIONS: Mapping[str, Function] = {
    "exponential": _own(exponential.exp),
    "exponential-minus-one": _own(exponential.expm1),
    "log": _own(logarithm.log),
    "log-plus-one": _own(logarithm.log1p),
    "tanh": _own(exponential.tanh),
    "logistic": _own(exponential.logistic),
    "erf": _own(others.erf),
    "sine": _in_double(trigonometry.sine),
    "cosine": _in_double(trigonometry.cosine),
    "tan": _in_double(trigonometry.tan),
    "asin": _in_double(trigonometry.asin),
    "acos": _in_double(trigonometry.acos),
    "atan": _in_double(trigonometry.atan),
    "atan2": _in_double(trigonometry.atan2),
    "sinh": _in_double(exponential.sinh),
    "cosh": _in_double(exponential.cosh),
    "asinh": _in_double(logarithm.asinh),
    "acosh": _in_double(logarithm.acosh),
    "atanh": _in_double(logarithm.atanh),
    "cbrt": _in_double(logarithm.cbrt),
    "power": _in_double(logarithm.power),
    "remainder": _in_double(others.remainder),
}
"""By opcode: of a builder and f32 or f64 operands."""
