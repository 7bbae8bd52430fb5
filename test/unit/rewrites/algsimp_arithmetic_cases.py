"""Left sides for rules of `algsimp` about products, quotients, extremes, powers and choices."""

from __future__ import annotations

from collections.abc import Mapping

from unit.rewrites.algsimp_cases import FAST, POSITIVE, XY, X, binary, identity, spread
from unit.rewrites.rule_proofs import (
    ALL,
    COMPLEX,
    FLOATS,
    INTEGERS,
    NUMBERS,
    PRED,
    REAL,
    SIGNED,
    WIDE,
    Case,
)

XYZ = "x y z: T[S]\n"
XYZW = "x y z w: T[S]\n"


def nested(first: str, opcode: str, second: str = "") -> str:
    """`op(f(x), g(y))`, or `op(x, g(y))` without the first."""
    a = f"a = T[S] {first}(x)\n" if first else "a = T[S] copy(x)\n"
    b = f"b = T[S] {second}(y)\n" if second else "b = T[S] copy(y)\n"
    return XY + a + b + f"T[S] {opcode}(a, b)"


CASES: Mapping[str, tuple[Case, ...]] = {
    "divide_by_one": (
        Case(binary("divide", 1), NUMBERS),
        Case(binary("divide", 1, left=True), WIDE, fires=False),
    ),
    "divide_by_power_of_two": (
        *(Case(binary("divide", c), INTEGERS) for c in (1, 2, 64)),
        Case(binary("divide", 3), INTEGERS, fires=False),
        Case(binary("divide", 2), WIDE, fires=False),
    ),
    "divide_exponentials": (Case(nested("exponential", "divide", "exponential"), WIDE),),
    "divide_by_exponential": (Case(nested("", "divide", "exponential"), WIDE),),
    "divide_by_power": (
        Case(XYZ + "p = T[S] power(y, z)\nT[S] divide(x, p)", WIDE, positive=True),
        Case(XYZ + "p = T[S] power(y, z)\nT[S] divide(x, p)", SIGNED, fires=False),
    ),
    "divide_by_square_root": (
        Case(nested("", "divide", "sqrt"), WIDE, positive=True),
        Case(XY + "s = T[S] sqrt(y)\nd = T[S] divide(x, s)\nT[S] add(d, s)", WIDE, fires=False),
    ),
    "divide_by_reciprocal_square_root": (Case(nested("", "divide", "rsqrt"), WIDE, positive=True),),
    "divide_by_constant": (
        Case(binary("divide", 3), (*FLOATS, *COMPLEX)),
        Case("x: T[2]\nc = T[2] constant({3, 0.5})\nT[2] divide(x, c)", FLOATS, ("2",)),
        Case(binary("divide", 3), INTEGERS, fires=False),
    ),
    "divide_by_broadcast": (
        Case(
            "x: T[2,3]\ny: T[3]\nb = T[2,3] broadcast(y), dimensions={1}\nT[2,3] divide(x, b)",
            WIDE,
            ("",),
        ),
        Case(
            "x: T[2,3]\ny: T[3]\nb = T[2,3] broadcast(y), dimensions={1}\nd = T[2,3] divide(x, b)\n"
            "(T[2,3], T[3]) tuple(d, y)",
            WIDE,
            ("",),
            fires=False,
        ),
    ),
    "divide_converted_pred_by_scalar": (
        Case(
            "p: pred[S]\ny: T[]\nb = T[S] broadcast(y), dimensions={}\n"
            "c = T[S] convert(p)\nT[S] divide(c, b)",
            WIDE,
        ),
    ),
    "divide_quotient_by_quotient": (
        Case(
            XYZW + "a = T[S] divide(x, y)\nb = T[S] divide(z, w)\nT[S] divide(a, b)",
            WIDE,
        ),
        Case(
            XYZW + "a = T[S] divide(x, y)\nb = T[S] divide(z, w)\nT[S] divide(a, b)",
            SIGNED,
            fires=False,
        ),
    ),
    "divide_quotient": (
        Case(XYZ + "a = T[S] divide(x, y)\nT[S] divide(a, z)", WIDE),
        Case(XYZ + "a = T[S] divide(x, y)\nT[S] divide(a, z)", INTEGERS, fires=False),
    ),
    "divide_by_quotient": (
        Case(XYZ + "a = T[S] divide(y, z)\nT[S] divide(x, a)", WIDE),
        Case(XYZ + "a = T[S] divide(y, z)\nT[S] divide(x, a)", INTEGERS, fires=False),
    ),
    "remainder_of_remainder": (
        Case(XY + "a = T[S] remainder(x, y)\nT[S] remainder(a, y)", INTEGERS),
        Case(XY + "a = T[S] remainder(x, y)\nT[S] remainder(a, x)", INTEGERS, fires=False),
    ),
    "remainder_of_iota": tuple(
        Case(
            f"i = T[4] iota(), iota_dimension=0\nc0 = T[] constant({n})\n"
            "c = T[4] broadcast(c0), dimensions={}\nT[4] remainder(i, c)",
            INTEGERS,
            ("4",),
            fires=n >= 4,
        )
        for n in (3, 4, 7)
    ),
    "remainder_of_shifted_iota": (
        Case(
            "i = T[9] iota(), iota_dimension=0\nc0 = T[] constant(5)\n"
            "c = T[9] broadcast(c0), dimensions={}\na = T[9] add(i, c)\nT[9] remainder(a, c)",
            INTEGERS,
            ("9",),
        ),
        Case(
            "i = T[100] iota(), iota_dimension=0\nc0 = T[] constant(100)\n"
            "c = T[100] broadcast(c0), dimensions={}\na = T[100] add(i, c)\nT[100] remainder(a, c)",
            ("s8",),
            ("",),
            fires=False,
        ),
    ),
    "remainder_by_power_of_two": (
        *(Case(binary("remainder", c), INTEGERS) for c in (1, 2, 64)),
        Case(binary("remainder", 6), INTEGERS, fires=False),
    ),
    "extreme_of_same": (
        Case(X + "T[S] maximum(x, x)", REAL),
        Case(X + "T[S] minimum(x, x)", REAL),
        Case(XY + "T[S] minimum(x, y)", REAL, fires=False),
    ),
    "extreme_of_end": (
        *identity("maximum", "-inf", FLOATS),
        *identity("minimum", "inf", FLOATS),
        *identity("maximum", -128, ("s8",)),
        *identity("minimum", 4294967295, ("u32",)),
        Case(binary("maximum", "inf"), FLOATS, fires=False),
        Case(
            binary("maximum", "-inf"), FLOATS, options={"minmax_propagate_nan": False}, fires=False
        ),
    ),
    "extreme_of_extreme_of_same": (
        *(
            Case(XY + f"m = T[S] {o}(x, y)\nT[S] {o}({how})", REAL)
            for o in ("maximum", "minimum")
            for how in ("m, x", "m, y", "x, m", "y, m")
        ),
        Case(XY + "m = T[S] minimum(x, y)\nT[S] maximum(m, x)", REAL, fires=False),
    ),
    "maximum_of_minimum": tuple(
        Case(
            X + spread(lo, "l") + spread(hi, "h") + "m = T[S] minimum(x, h)\nT[S] maximum(m, l)",
            REAL,
            fires=lo < hi,
        )
        for lo, hi in ((1, 6), (6, 1))
    ),
    "minimum_of_maximum": tuple(
        Case(
            X + spread(lo, "l") + spread(hi, "h") + "m = T[S] maximum(x, l)\nT[S] minimum(h, m)",
            REAL,
            fires=lo < hi,
        )
        for lo, hi in ((1, 6), (6, 1))
    ),
    "extreme_of_clamp": tuple(
        Case(
            X
            + spread(1, "l")
            + spread(6, "h")
            + f"m = T[S] clamp(l, x, h)\nT[S] {opcode}(m, {end})",
            REAL,
            fires=fires,
        )
        for opcode, end, fires in (
            ("maximum", "l", True),
            ("minimum", "h", True),
            ("minimum", "l", False),
        )
    ),
    "extreme_of_monotone": (
        *(
            Case(nested(f, o, f), WIDE)
            for f in ("cbrt", "erf", "logistic", "tanh")
            for o in ("maximum", "minimum")
        ),
        Case(nested("sine", "maximum", "sine"), WIDE, fires=False),
    ),
    "clamp_of_clamp": (
        Case(XYZ + "c = T[S] clamp(x, y, z)\nT[S] clamp(x, c, z)", REAL),
        Case(XYZ + "c = T[S] clamp(x, y, z)\nT[S] clamp(z, c, x)", REAL, fires=False),
    ),
    "clamp_of_device_id": (
        Case(
            "i = u32[] replica-id()\nl = u32[] constant(0)\nh = u32[] constant(9)\n"
            "u32[] clamp(l, i, h)",
            ("u32",),
            ("",),
            header=", replica_count=4",
        ),
        Case(
            "i = u32[] replica-id()\nl = u32[] constant(0)\nh = u32[] constant(2)\n"
            "u32[] clamp(l, i, h)",
            ("u32",),
            ("",),
            header=", replica_count=4",
            fires=False,
        ),
    ),
    "multiply_one": (
        *identity("multiply", 1, NUMBERS),
        Case(binary("multiply", 2), NUMBERS, fires=False),
    ),
    "multiply_zero": (
        *identity("multiply", 0, INTEGERS),
        Case(binary("multiply", 0), FLOATS, fires=False),
    ),
    "multiply_negations": (
        Case(nested("negate", "multiply", "negate"), (*REAL, *COMPLEX)),
        Case(nested("negate", "multiply"), FLOATS, fires=False),
    ),
    "multiply_magnitude_by_itself": (
        Case(X + POSITIVE + "T[S] multiply(a, a)", (*FLOATS, *SIGNED)),
        Case(X + "a = R[S] abs(x)\nR[S] multiply(a, a)", COMPLEX, fires=False),
    ),
    "multiply_by_converted_pred": (
        Case("x: T[S]\np: pred[S]\nc = T[S] convert(p)\nT[S] multiply(x, c)", NUMBERS),
        Case("x: T[S]\np: pred[S]\nc = T[S] convert(p)\nT[S] multiply(c, x)", NUMBERS),
        Case("x: f32[S]\np: s8[S]\nc = f32[S] convert(p)\nf32[S] multiply(x, c)", fires=False),
    ),
    "multiply_of_multiply_of_constants": tuple(
        Case(
            X + spread(3) + spread(2, "d") + f"a = T[S] multiply({a})\nT[S] multiply({b})",
            NUMBERS,
        )
        for a, b in (("x, c", "a, d"), ("c, x", "d, a"))
    ),
    "multiply_of_scaled": (
        Case(
            XY + spread(3) + spread(2, "d") + "a = T[S] multiply(x, c)\nb = T[S] multiply(y, d)\n"
            "T[S] multiply(a, b)",
            NUMBERS,
        ),
        Case(X + spread(3) + "a = T[S] multiply(x, c)\nT[S] multiply(a, a)", WIDE, fires=False),
    ),
    "multiply_scaled_by_broadcast": (
        Case(
            "x: T[2,3]\ny: T[3]\nc0 = T[] constant(3)\nc = T[2,3] broadcast(c0), dimensions={}\n"
            "b = T[2,3] broadcast(y), dimensions={1}\na = T[2,3] multiply(x, c)\n"
            "T[2,3] multiply(a, b)",
            NUMBERS,
            ("",),
        ),
    ),
    "multiply_exponentials": (Case(nested("exponential", "multiply", "exponential"), WIDE),),
    "multiply_square_roots": (
        Case(X + POSITIVE + "s = T[S] sqrt(a)\nT[S] multiply(s, s)", FLOATS),
        Case(X + "s = T[S] sqrt(x)\nT[S] multiply(s, s)", FLOATS, fires=False),
    ),
    "multiply_reciprocal_square_roots": (
        Case(X + POSITIVE + "s = T[S] rsqrt(a)\nT[S] multiply(s, s)", FLOATS),
        Case(X + "s = T[S] rsqrt(x)\nT[S] multiply(s, s)", FLOATS, fires=False),
    ),
    "negate_of_negate": (
        Case(X + "n = T[S] negate(x)\nT[S] negate(n)", NUMBERS),
        Case(X + "T[S] negate(x)", NUMBERS, fires=False),
    ),
    "select_of_same": (
        Case("p: pred[S]\nx: T[S]\nT[S] select(p, x, x)", ALL),
        Case("p: pred[S]\nx y: T[S]\nT[S] select(p, x, y)", ALL, fires=False),
    ),
    "select_by_constant": tuple(
        Case(
            XY + f"c0 = pred[] constant({c})\nc = pred[S] broadcast(c0), dimensions={{}}\n"
            "T[S] select(c, x, y)",
            ALL,
        )
        for c in ("true", "false")
    ),
    "select_by_not": (
        Case("p: pred[S]\nx y: T[S]\nn = pred[S] not(p)\nT[S] select(n, x, y)", ALL),
    ),
    "select_true_or_false": tuple(
        Case(X + spread(a, "t") + spread(b, "f") + "T[S] select(x, t, f)", PRED, fires=a != b)
        for a, b in (("true", "false"), ("false", "true"), ("true", "true"))
    ),
    "select_of_compared_preds": tuple(
        Case(XY + f"c = pred[S] compare(x, y), direction={d}\npred[S] select(c, x, y)", PRED)
        for d in ("EQ", "NE", "LT", "LE", "GT", "GE")
    ),
    "select_of_update": (
        Case(
            "p: pred[]\nx: T[5]\nu: T[2]\ni: s32[]\nd = T[5] dynamic-update-slice(x, u, i)\n"
            "T[5] select(p, x, d)",
            REAL,
            ("",),
        ),
        Case(
            "p: pred[5]\nx: T[5]\nu: T[2]\ni: s32[]\nd = T[5] dynamic-update-slice(x, u, i)\n"
            "T[5] select(p, x, d)",
            REAL,
            ("",),
        ),
    ),
    "subtract_from_itself": (
        Case(X + "T[S] subtract(x, x)", INTEGERS),
        Case(X + "T[S] subtract(x, x)", FLOATS, options=FAST),
        Case(X + "T[S] subtract(x, x)", FLOATS, fires=False),
    ),
    "subtract_zero": (
        Case(binary("subtract", 0), NUMBERS),
        Case(binary("subtract", 0, left=True), NUMBERS, fires=False),
    ),
    "subtract_constant": (
        Case(binary("subtract", 3), NUMBERS),
        Case("x: T[2]\nc = T[2] constant({3, 4})\nT[2] subtract(x, c)", REAL, ("2",)),
        Case(XY + "T[S] subtract(x, y)", REAL, fires=False),
    ),
    "subtract_difference": (
        Case(XY + "d = T[S] subtract(x, y)\nT[S] subtract(x, d)", INTEGERS),
        Case(XY + "d = T[S] subtract(x, y)\nT[S] subtract(x, d)", FLOATS, fires=False),
    ),
    "subtract_sum": (
        Case(XY + "d = T[S] add(x, y)\nT[S] subtract(x, d)", INTEGERS),
        Case(XY + "d = T[S] add(y, x)\nT[S] subtract(x, d)", WIDE, options=FAST),
    ),
    "subtract_from_sum": (
        Case(XY + "d = T[S] add(x, y)\nT[S] subtract(d, x)", INTEGERS),
        Case(XY + "d = T[S] add(x, y)\nT[S] subtract(d, y)", INTEGERS),
    ),
    "exponential_of_zero": (
        Case(spread(0) + "T[S] exponential(c)", (*FLOATS, *COMPLEX)),
        Case(X + "T[S] exponential(x)", WIDE, fires=False),
    ),
    "log_of_exponential": (Case(X + "e = T[S] exponential(x)\nT[S] log(e)", WIDE),),
    "log_of_power": (Case(XY + "e = T[S] power(x, y)\nT[S] log(e)", WIDE, positive=True),),
    "log_of_root": (
        Case(X + "e = T[S] sqrt(x)\nT[S] log(e)", WIDE, positive=True),
        Case(X + "e = T[S] rsqrt(x)\nT[S] log(e)", WIDE, positive=True),
    ),
    "sqrt_of_square": (
        Case(X + "e = T[S] multiply(x, x)\nT[S] sqrt(e)", WIDE, options=FAST),
        Case(X + "e = T[S] multiply(x, x)\nT[S] sqrt(e)", WIDE, options={"executing_on_cpu": True}),
        Case(X + "e = T[S] multiply(x, x)\nT[S] sqrt(e)", WIDE, fires=False),
    ),
    "sqrt_of_complex_square": (
        *(
            Case(
                f"x y: {real}[S]\n"
                f"c = {real}[] constant({number})\n"
                f"z = {real}[S] broadcast(c), dimensions={{}}\n"
                f"a = T[S] complex(x, {imaginary})\ne = T[S] multiply(a, a)\nT[S] sqrt(e)",
                (type_,),
                options=FAST,
                fires=fires,
            )
            for real, type_ in (("f32", "c64"), ("f64", "c128"))
            for number, imaginary, fires in (("0", "z", True), ("1", "z", False), ("0", "y", False))
        ),
    ),
    "rsqrt_of_power_minus_two": (
        Case(X + POSITIVE + spread(-2) + "p = T[S] power(a, c)\nT[S] rsqrt(p)", WIDE),
        Case(X + spread(-2) + "p = T[S] power(x, c)\nT[S] rsqrt(p)", WIDE, fires=False),
    ),
    "rsqrt_of_reciprocal": (
        Case(X + POSITIVE + spread(1) + "p = T[S] divide(c, a)\nT[S] rsqrt(p)", WIDE),
        Case(X + spread(1) + "p = T[S] divide(c, x)\nT[S] rsqrt(p)", WIDE, fires=False),
    ),
    "power_zero": (Case(binary("power", 0), (*FLOATS, *SIGNED)),),
    "power_one": (Case(binary("power", 1), FLOATS),),
    "power_of_exponential": (Case(XY + "e = T[S] exponential(x)\nT[S] power(e, y)", WIDE),),
    "power_two": (Case(binary("power", 2), (*FLOATS, *SIGNED)),),
    "power_three": (Case(binary("power", 3), (*FLOATS, *SIGNED)),),
    "power_minus_one": (
        Case(binary("power", -1), FLOATS),
        Case(binary("power", -1), SIGNED, fires=False),
    ),
    "power_half": (
        Case(X + POSITIVE + spread(0.5) + "T[S] power(a, c)", FLOATS),
        Case(binary("power", 0.5), FLOATS, fires=False),
    ),
}
