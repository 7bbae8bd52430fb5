"""Opcodes that make each element of one element of each operand."""

from __future__ import annotations

from mlirhlo.dialects.hlo.attributes import kinds as k
from mlirhlo.dialects.hlo.table.attributes import spec
from mlirhlo.dialects.hlo.table.columns import ALL, FIRST, PLAIN_NS, Extreme, Movement, Opcode


def _twin(name: str) -> str:
    return "stablehlo." + name.replace("-", "_")


def _unary(
    name: str,
    summary: str,
    *,
    accuracy: bool = False,
    flops: int = 1,
    data: slice | None = ALL,
    gives_real: bool = False,
    movement: Movement | None = None,
    element_ns: float = PLAIN_NS,
    is_root: bool = False,
    exact: bool = False,
    bitwise: bool = False,
    sees_width: bool = False,
    work: str = "",
    expands_complex: bool = False,
    newer: bool = False,
    stablehlo: str | None = None,
) -> Opcode:
    return Opcode(
        name,
        1,
        infers=True,
        elementwise=True,
        data=data,
        gives_real=gives_real,
        movement=movement,
        element_ns=element_ns,
        is_root=is_root,
        exact=exact,
        bitwise=bitwise,
        sees_width=sees_width,
        work=work,
        expands_complex=expands_complex,
        newer=newer,
        stablehlo=_twin(name) if stablehlo is None else stablehlo,
        accuracy=accuracy,
        transcendental=accuracy,
        flops=0 if accuracy else flops,
        summary=summary,
    )


def _binary(
    name: str,
    summary: str,
    *,
    commutes: bool = False,
    transcendental: bool = False,
    identity: Extreme | None = None,
    data: slice | None = ALL,
    element_ns: float = PLAIN_NS,
    exact: bool = False,
    idempotent: bool = False,
    bitwise: bool = False,
    sees_width: bool = False,
    work: str = "",
    stablehlo: str | None = None,
) -> Opcode:
    return Opcode(
        name,
        2,
        infers=True,
        elementwise=True,
        commutes=commutes or identity is not None,
        identity=identity,
        data=data,
        element_ns=element_ns,
        exact=exact,
        idempotent=idempotent,
        bitwise=bitwise,
        sees_width=sees_width,
        work=work,
        stablehlo=_twin(name) if stablehlo is None else stablehlo,
        transcendental=transcendental,
        flops=0 if transcendental else 1,
        summary=summary,
    )


ELEMENTWISE_ROWS: tuple[Opcode, ...] = (
    _unary(
        "abs", "|x|; of complex numbers the magnitude, a real number", gives_real=True, exact=True
    ),
    _unary("acos", "arc cosine", element_ns=1.0, accuracy=True, stablehlo="chlo.acos"),
    _unary(
        "acosh", "inverse hyperbolic cosine", element_ns=1.5, accuracy=True, stablehlo="chlo.acosh"
    ),
    _unary("asin", "arc sine", element_ns=1.0, accuracy=True, stablehlo="chlo.asin"),
    _unary(
        "asinh", "inverse hyperbolic sine", element_ns=1.5, accuracy=True, stablehlo="chlo.asinh"
    ),
    _unary("atan", "arc tangent", element_ns=1.0, accuracy=True, newer=True, stablehlo="chlo.atan"),
    _unary(
        "atanh", "inverse hyperbolic tangent", element_ns=1.0, accuracy=True, stablehlo="chlo.atanh"
    ),
    _unary("cbrt", "cube root", element_ns=1.0, is_root=True, accuracy=True, work="erf"),
    _unary("ceil", "least integer not below x"),
    Opcode(
        "convert",
        1,
        elementwise=True,
        flops=1,
        element_ns=0.02,
        exact=True,
        stablehlo=_twin("convert"),
        summary="x in another element type",
    ),
    _unary(
        "copy",
        "x, possibly in another layout",
        flops=0,
        movement=Movement.COPY,
        element_ns=0.0,
        exact=True,
        stablehlo="",
        work="transpose",
    ),
    _unary("cosine", "cos x, radians", element_ns=0.8, accuracy=True, work="trigonometric"),
    _unary("cosh", "hyperbolic cosine", element_ns=0.6, accuracy=True, stablehlo="chlo.cosh"),
    _unary("count-leading-zeros", "zero bits before the first one", sees_width=True),
    _unary(
        "erf", "error function", element_ns=0.6, accuracy=True, stablehlo="chlo.erf", work="erf"
    ),
    _unary(
        "exponential",
        "e**x",
        element_ns=0.3,
        accuracy=True,
        work="exponential",
        expands_complex=True,
    ),
    _unary("exponential-minus-one", "e**x - 1", element_ns=0.5, accuracy=True, work="exponential"),
    _unary("floor", "greatest integer not above x"),
    _unary(
        "imag", "imaginary part; 0 for real numbers", gives_real=True, element_ns=0.0, exact=True
    ),
    _unary("is-finite", "whether x is neither infinite nor NaN", data=None),
    _unary(
        "log",
        "natural logarithm",
        element_ns=0.4,
        accuracy=True,
        work="exponential",
        expands_complex=True,
    ),
    _unary(
        "log-plus-one",
        "log(1 + x)",
        element_ns=0.5,
        accuracy=True,
        work="exponential",
        expands_complex=True,
    ),
    _unary("logistic", "1 / (1 + e**-x)", element_ns=0.5, accuracy=True, work="exponential"),
    _unary("negate", "-x", exact=True),
    _unary("not", "bitwise complement; logical on pred", bitwise=True),
    _unary("popcnt", "one bits", sees_width=True),
    _unary("real", "real part", gives_real=True, element_ns=0.0, exact=True),
    _unary("round-nearest-afz", "nearest integer, halves away from zero"),
    _unary("round-nearest-even", "nearest integer, halves to even"),
    _unary("rsqrt", "1 / sqrt(x)", element_ns=0.4, is_root=True, accuracy=True, work="division"),
    _unary("sign", "-1, 0 or 1; x / |x| for complex numbers"),
    _unary("sine", "sin x, radians", element_ns=0.8, accuracy=True, work="trigonometric"),
    _unary("sinh", "hyperbolic sine", element_ns=0.6, accuracy=True, stablehlo="chlo.sinh"),
    _unary(
        "sqrt",
        "square root",
        element_ns=0.3,
        is_root=True,
        accuracy=True,
        work="division",
        expands_complex=True,
    ),
    _unary("tan", "tangent, radians", element_ns=1.0, accuracy=True, work="trigonometric"),
    _unary("tanh", "hyperbolic tangent", element_ns=0.5, accuracy=True, work="exponential"),
    _binary("add", "x + y; or on pred", identity=Extreme.ZERO),
    _binary(
        "and",
        "bitwise and; logical on pred",
        identity=Extreme.ALL_ONES,
        idempotent=True,
        bitwise=True,
    ),
    _binary(
        "atan2",
        "angle of the point (y, x)",
        element_ns=1.2,
        transcendental=True,
        work="trigonometric",
    ),
    _binary("complex", "x + i*y", data=None),
    Opcode(
        "compare",
        2,
        (
            spec("direction", k.DIRECTION, required=True),
            spec("type", k.COMPARISON_TYPE),
            spec("order", k.COMPARISON_ORDER, "PARTIAL", newer=True),
        ),
        infers=True,
        elementwise=True,
        flops=1,
        summary="x EQ|NE|GE|GT|LE|LT y, as pred",
    ),
    _binary(
        "divide",
        "x / y; integers truncate, x / 0 = -1, MIN / -1 = MIN",
        element_ns=0.3,
        work="division",
    ),
    _binary(
        "maximum",
        "greater of x and y; NaN wins",
        identity=Extreme.LEAST,
        exact=True,
        idempotent=True,
    ),
    _binary(
        "minimum",
        "lesser of x and y; NaN wins",
        identity=Extreme.GREATEST,
        exact=True,
        idempotent=True,
    ),
    _binary(
        "mulhi", "high half of the double-width product", commutes=True, stablehlo="chlo.mulhi"
    ),
    _binary("multiply", "x * y; and on pred", identity=Extreme.ONE),
    _binary(
        "or", "bitwise or; logical on pred", identity=Extreme.ZERO, idempotent=True, bitwise=True
    ),
    _binary("power", "x ** y", element_ns=2.0, transcendental=True, work="power"),
    _binary(
        "remainder",
        "x - y*trunc(x/y), the sign of x; x rem 0 = x",
        element_ns=2.0,
        work="remainder",
    ),
    _binary("shift-left", "x << y; 0 when y is the width or more"),
    _binary("shift-right-arithmetic", "x >> y with the sign; all sign when y is the width or more"),
    _binary(
        "shift-right-logical", "x >> y with zeros; 0 when y is the width or more", sees_width=True
    ),
    Opcode(
        "stochastic-convert",
        2,
        elementwise=True,
        flops=1,
        element_ns=0.3,
        summary="x in a narrower type, rounded by random bits y",
    ),
    _binary("subtract", "x - y"),
    _binary("xor", "bitwise exclusive or; logical on pred", identity=Extreme.ZERO, bitwise=True),
    Opcode(
        "clamp",
        3,
        infers=True,
        elementwise=True,
        data=ALL,
        flops=1,
        exact=True,
        stablehlo=_twin("clamp"),
        summary="min(max(x, low), high)",
    ),
    Opcode(
        "select",
        3,
        infers=True,
        elementwise=True,
        data=slice(1, None),
        movement=Movement.SELECT,
        exact=True,
        indices=FIRST,
        stablehlo=_twin("select"),
        flops=1,
        summary="x where the predicate holds, else y",
    ),
    Opcode(
        "reduce-precision",
        1,
        (
            spec("exponent_bits", k.INTEGER, required=True),
            spec("mantissa_bits", k.INTEGER, required=True),
        ),
        elementwise=True,
        flops=1,
        summary="x rounded to fewer exponent and mantissa bits, in its own type",
    ),
)
