"""Element-wise instructions: one result element from the operand elements at its place."""

from __future__ import annotations

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops.base import (
    Binary,
    Instruction,
    Unary,
    instruction,
    int_property,
    str_property,
)


@instruction("abs")
class AbsOp(Unary):
    """|x|; of complex numbers the magnitude, a real number."""


@instruction("add")
class AddOp(Binary):
    """x + y; or on pred."""


@instruction("and")
class AndOp(Binary):
    """Bitwise and; logical on pred."""


@instruction("cbrt")
class CbrtOp(Unary):
    """Cube root."""


@instruction("ceil")
class CeilOp(Unary):
    """Least integer not below x."""


@instruction("clamp")
class ClampOp(Instruction):
    """Min(max(x, low), high)."""

    @property
    def low(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]

    @property
    def operand(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]

    @property
    def high(self) -> SSAValue:
        """Operand 2."""
        return self._operands[2]


@instruction("compare")
class CompareOp(Binary):
    """x EQ|NE|GE|GT|LE|LT y, as pred."""

    direction = str_property()
    comparison_type = str_property(key="type")
    order = str_property("PARTIAL")


@instruction("complex")
class ComplexOp(Instruction):
    """x + i*y."""

    @property
    def real(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]

    @property
    def imag(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]


@instruction("convert")
class ConvertOp(Unary):
    """x in another element type."""


@instruction("copy")
class CopyOp(Unary):
    """x, possibly in another layout."""


@instruction("count-leading-zeros")
class CountLeadingZerosOp(Unary):
    """Zero bits before the first one."""


@instruction("divide")
class DivideOp(Binary):
    """x / y; integers truncate, x / 0 = -1, MIN / -1 = MIN."""


@instruction("erf")
class ErfOp(Unary):
    """Error function."""


@instruction("exponential")
class ExponentialOp(Unary):
    """e**x."""


@instruction("exponential-minus-one")
class ExponentialMinusOneOp(Unary):
    """e**x - 1."""


@instruction("floor")
class FloorOp(Unary):
    """Greatest integer not above x."""


@instruction("imag")
class ImagOp(Unary):
    """Imaginary part; 0 for real numbers."""


@instruction("log")
class LogOp(Unary):
    """Natural logarithm."""


@instruction("logistic")
class LogisticOp(Unary):
    """1 / (1 + e**-x)."""


@instruction("maximum")
class MaximumOp(Binary):
    """Greater of x and y; NaN wins."""


@instruction("minimum")
class MinimumOp(Binary):
    """Lesser of x and y; NaN wins."""


@instruction("multiply")
class MultiplyOp(Binary):
    """x * y; and on pred."""


@instruction("negate")
class NegateOp(Unary):
    """-x."""


@instruction("not")
class NotOp(Unary):
    """Bitwise complement; logical on pred."""


@instruction("or")
class OrOp(Binary):
    """Bitwise or; logical on pred."""


@instruction("power")
class PowerOp(Binary):
    """x ** y."""


@instruction("real")
class RealOp(Unary):
    """Real part."""


@instruction("reduce-precision")
class ReducePrecisionOp(Unary):
    """x rounded to fewer exponent and mantissa bits, in its own type."""

    exponent_bits = int_property()
    mantissa_bits = int_property()


@instruction("remainder")
class RemainderOp(Binary):
    """x - y*trunc(x/y), the sign of x; x rem 0 = x."""


@instruction("rsqrt")
class RsqrtOp(Unary):
    """1 / sqrt(x)."""


@instruction("select")
class SelectOp(Instruction):
    """x where the predicate holds, else y."""

    @property
    def predicate(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]

    @property
    def on_true(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]

    @property
    def on_false(self) -> SSAValue:
        """Operand 2."""
        return self._operands[2]


@instruction("shift-right-logical")
class ShiftRightLogicalOp(Binary):
    """x >> y with zeros; 0 when y is the width or more."""


@instruction("sign")
class SignOp(Unary):
    """-1, 0 or 1; x / |x| for complex numbers."""


@instruction("sqrt")
class SqrtOp(Unary):
    """Square root."""


@instruction("stochastic-convert")
class StochasticConvertOp(Unary):
    """x in a narrower type, rounded by random bits y."""

    @property
    def random(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]


@instruction("subtract")
class SubtractOp(Binary):
    """x - y."""


@instruction("tanh")
class TanhOp(Unary):
    """Hyperbolic tangent."""


@instruction("xor")
class XorOp(Binary):
    """Bitwise exclusive or; logical on pred."""
