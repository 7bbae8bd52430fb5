"""Element-wise instructions: one result element from the operand elements at its place."""

from __future__ import annotations

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops.base import Instruction, instruction, int_property, str_property


@instruction("abs")
class AbsOp(Instruction):
    """|x|; of complex numbers the magnitude, a real number."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("acos")
class AcosOp(Instruction):
    """Arc cosine."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("acosh")
class AcoshOp(Instruction):
    """Inverse hyperbolic cosine."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("add")
class AddOp(Instruction):
    """x + y; or on pred."""

    @property
    def lhs(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]

    @property
    def rhs(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]


@instruction("and")
class AndOp(Instruction):
    """Bitwise and; logical on pred."""

    @property
    def lhs(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]

    @property
    def rhs(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]


@instruction("asin")
class AsinOp(Instruction):
    """Arc sine."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("asinh")
class AsinhOp(Instruction):
    """Inverse hyperbolic sine."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("atan")
class AtanOp(Instruction):
    """Arc tangent."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("atan2")
class Atan2Op(Instruction):
    """Angle of the point (y, x)."""

    @property
    def lhs(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]

    @property
    def rhs(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]


@instruction("atanh")
class AtanhOp(Instruction):
    """Inverse hyperbolic tangent."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("cbrt")
class CbrtOp(Instruction):
    """Cube root."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("ceil")
class CeilOp(Instruction):
    """Least integer not below x."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


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
class CompareOp(Instruction):
    """x EQ|NE|GE|GT|LE|LT y, as pred."""

    direction = str_property()
    comparison_type = str_property(key="type")
    order = str_property("PARTIAL")

    @property
    def lhs(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]

    @property
    def rhs(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]


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
class ConvertOp(Instruction):
    """x in another element type."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("copy")
class CopyOp(Instruction):
    """x, possibly in another layout."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("cosh")
class CoshOp(Instruction):
    """Hyperbolic cosine."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("cosine")
class CosineOp(Instruction):
    """cos x, radians."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("count-leading-zeros")
class CountLeadingZerosOp(Instruction):
    """Zero bits before the first one."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("divide")
class DivideOp(Instruction):
    """x / y; integers truncate, x / 0 = -1, MIN / -1 = MIN."""

    @property
    def lhs(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]

    @property
    def rhs(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]


@instruction("erf")
class ErfOp(Instruction):
    """Error function."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("exponential")
class ExponentialOp(Instruction):
    """e**x."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("exponential-minus-one")
class ExponentialMinusOneOp(Instruction):
    """e**x - 1."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("floor")
class FloorOp(Instruction):
    """Greatest integer not above x."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("imag")
class ImagOp(Instruction):
    """Imaginary part; 0 for real numbers."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("is-finite")
class IsFiniteOp(Instruction):
    """Whether x is neither infinite nor NaN."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("log")
class LogOp(Instruction):
    """Natural logarithm."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("log-plus-one")
class LogPlusOneOp(Instruction):
    """log(1 + x)."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("logistic")
class LogisticOp(Instruction):
    """1 / (1 + e**-x)."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("maximum")
class MaximumOp(Instruction):
    """Greater of x and y; NaN wins."""

    @property
    def lhs(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]

    @property
    def rhs(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]


@instruction("minimum")
class MinimumOp(Instruction):
    """Lesser of x and y; NaN wins."""

    @property
    def lhs(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]

    @property
    def rhs(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]


@instruction("mulhi")
class MulhiOp(Instruction):
    """High half of the double-width product."""

    @property
    def lhs(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]

    @property
    def rhs(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]


@instruction("multiply")
class MultiplyOp(Instruction):
    """x * y; and on pred."""

    @property
    def lhs(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]

    @property
    def rhs(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]


@instruction("negate")
class NegateOp(Instruction):
    """-x."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("not")
class NotOp(Instruction):
    """Bitwise complement; logical on pred."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("or")
class OrOp(Instruction):
    """Bitwise or; logical on pred."""

    @property
    def lhs(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]

    @property
    def rhs(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]


@instruction("popcnt")
class PopcntOp(Instruction):
    """One bits."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("power")
class PowerOp(Instruction):
    """x ** y."""

    @property
    def lhs(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]

    @property
    def rhs(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]


@instruction("real")
class RealOp(Instruction):
    """Real part."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("reduce-precision")
class ReducePrecisionOp(Instruction):
    """x rounded to fewer exponent and mantissa bits, in its own type."""

    exponent_bits = int_property()
    mantissa_bits = int_property()

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("remainder")
class RemainderOp(Instruction):
    """x - y*trunc(x/y), the sign of x; x rem 0 = x."""

    @property
    def lhs(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]

    @property
    def rhs(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]


@instruction("round-nearest-afz")
class RoundNearestAfzOp(Instruction):
    """Nearest integer, halves away from zero."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("round-nearest-even")
class RoundNearestEvenOp(Instruction):
    """Nearest integer, halves to even."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("rsqrt")
class RsqrtOp(Instruction):
    """1 / sqrt(x)."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


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


@instruction("shift-left")
class ShiftLeftOp(Instruction):
    """x << y; 0 when y is the width or more."""

    @property
    def lhs(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]

    @property
    def rhs(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]


@instruction("shift-right-arithmetic")
class ShiftRightArithmeticOp(Instruction):
    """x >> y with the sign; all sign when y is the width or more."""

    @property
    def lhs(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]

    @property
    def rhs(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]


@instruction("shift-right-logical")
class ShiftRightLogicalOp(Instruction):
    """x >> y with zeros; 0 when y is the width or more."""

    @property
    def lhs(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]

    @property
    def rhs(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]


@instruction("sign")
class SignOp(Instruction):
    """-1, 0 or 1; x / |x| for complex numbers."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("sine")
class SineOp(Instruction):
    """sin x, radians."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("sinh")
class SinhOp(Instruction):
    """Hyperbolic sine."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("sqrt")
class SqrtOp(Instruction):
    """Square root."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("stochastic-convert")
class StochasticConvertOp(Instruction):
    """x in a narrower type, rounded by random bits y."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]

    @property
    def random(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]


@instruction("subtract")
class SubtractOp(Instruction):
    """x - y."""

    @property
    def lhs(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]

    @property
    def rhs(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]


@instruction("tan")
class TanOp(Instruction):
    """Tangent, radians."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("tanh")
class TanhOp(Instruction):
    """Hyperbolic tangent."""

    @property
    def operand(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]


@instruction("xor")
class XorOp(Instruction):
    """Bitwise exclusive or; logical on pred."""

    @property
    def lhs(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]

    @property
    def rhs(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]
