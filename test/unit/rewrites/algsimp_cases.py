"""Left sides for every rule of `algsimp` about single elements; others in `algsimp_shape_cases`."""

from __future__ import annotations

from collections.abc import Mapping

from unit.rewrites.rule_proofs import (
    ALL,
    COMPLEX,
    FLOATS,
    INTEGERS,
    NUMBERS,
    PRED,
    REAL,
    SIGNED,
    UNSIGNED,
    WIDE,
    Case,
)

XY = "x y: T[S]\n"
X = "x: T[S]\n"
NOT_EMPTY = ("", "1", "61", "2,3")
FLAT = ("2", "7")
FAST = {"enable_fast_math": True}


def spread(value: object, name: str = "c") -> str:
    """Lines for an array `name` of equal constants."""
    return f"{name}0 = T[] constant({value})\n{name} = T[S] broadcast({name}0), dimensions={{}}\n"


def binary(opcode: str, value: object, *, left: bool = False) -> str:
    """`x op c`, or `c op x`."""
    operands = "c, x" if left else "x, c"
    return X + spread(value) + f"T[S] {opcode}({operands})"


def identity(opcode: str, value: object, types: tuple[str, ...]) -> tuple[Case, ...]:
    """A neutral or absorbing constant on either side, and another one."""
    return (
        Case(binary(opcode, value), types),
        Case(binary(opcode, value, left=True), types),
        Case(X + f"c = T[] constant({value})\nT[] {opcode}(x, c)", types, ("",)),
    )


POSITIVE = "a = T[S] abs(x)\n"

CASES: Mapping[str, tuple[Case, ...]] = {
    "abs_of_non_negative": (
        Case(X + POSITIVE + "T[S] abs(a)", FLOATS),
        Case(X + "m = T[S] multiply(x, x)\nT[S] abs(m)", FLOATS),
        Case(X + "m = T[S] exponential(x)\nT[S] abs(m)", WIDE),
        Case("m = s32[5] iota(), iota_dimension=0\ns32[5] abs(m)", ("s32",), ("5",)),
        Case(X + spread(0) + "m = T[S] maximum(x, c)\nT[S] abs(m)", (*WIDE, *SIGNED)),
        Case(X + "T[S] abs(x)", WIDE, fires=False),
        Case(X + "m = T[S] multiply(x, x)\nT[S] abs(m)", SIGNED, fires=False),
    ),
    "add_zero": (
        *identity("add", 0, NUMBERS),
        Case(binary("add", 1), NUMBERS, fires=False),
        Case(
            "x: f32[4]\ny: f32[]\nb = f32[4] broadcast(y), dimensions={}\n"
            "c0 = f32[] constant(0)\nc = f32[4] broadcast(c0), dimensions={}, metadata={}\n"
            "f32[4] add(x, c), control-predecessors={b}",
            fires=False,
        ),
    ),
    "add_constant_goes_right": (
        Case("x: T[]\nc = T[] constant(3)\nT[] add(c, x)", NUMBERS, ("",)),
        Case("x: T[]\nc = T[] constant(3)\nT[] add(x, c)", NUMBERS, ("",), fires=False),
    ),
    "add_of_add_of_constants": (
        Case(X + spread(3) + spread(2, "d") + "a = T[S] add(x, c)\nT[S] add(a, d)", NUMBERS),
        Case(
            "x: T[2]\nc = T[2] constant({1, 2})\nd = T[2] constant({4, 5})\n"
            "a = T[2] add(x, c)\nT[2] add(a, d)",
            REAL,
            ("2",),
        ),
        Case(XY + spread(2) + "a = T[S] add(x, y)\nT[S] add(a, c)", WIDE, fires=False),
    ),
    "add_of_constant_minus": (
        Case(X + spread(3) + spread(2, "d") + "a = T[S] subtract(c, x)\nT[S] add(a, d)", NUMBERS),
        Case(
            "x: T[]\nc = T[] constant(3)\nd = T[] constant(2)\n"
            "a = T[] subtract(c, x)\nT[] add(a, d)",
            NUMBERS,
            ("",),
        ),
        Case(
            X + spread(3) + spread(2, "d") + "a = T[S] subtract(x, c)\nT[S] add(a, d)",
            WIDE,
            fires=False,
        ),
    ),
    "add_of_difference": (
        Case(XY + "d = T[S] subtract(y, x)\nT[S] add(x, d)", INTEGERS),
        Case(XY + "d = T[S] subtract(y, x)\nT[S] add(d, x)", INTEGERS),
        Case(XY + "d = T[S] subtract(y, x)\nT[S] add(d, x)", WIDE, options=FAST),
        Case(XY + "d = T[S] subtract(y, x)\nT[S] add(d, x)", WIDE, fires=False),
    ),
    "add_of_update_of_zeros": (
        Case(
            "x: T[5]\nu: T[2]\ni: s32[]\nc0 = T[] constant(0)\nc = T[5] broadcast(c0), dimensions={}\n"
            "d = T[5] dynamic-update-slice(c, u, i)\nT[5] add(x, d)",
            INTEGERS,
            ("5",),
        ),
    ),
    "add_of_products_with_a_common_factor": (
        Case(
            "x y z: T[S]\na = T[S] multiply(x, z)\nb = T[S] multiply(z, y)\nT[S] add(a, b)",
            INTEGERS,
        ),
        Case(
            XY + spread(-4) + "a = T[S] multiply(x, c)\nb = T[S] multiply(y, c)\nT[S] add(a, b)",
            WIDE,
        ),
        Case(
            XY + spread(3) + "a = T[S] multiply(x, c)\nb = T[S] multiply(y, c)\nT[S] add(a, b)",
            WIDE,
            fires=False,
        ),
        Case(
            XY + spread(3) + "a = T[S] multiply(x, c)\nb = T[S] multiply(y, c)\nT[S] add(a, b)",
            WIDE,
            options={"enable_floats_are_real": True},
        ),
    ),
    "and_true": (
        *identity("and", "true", PRED),
        Case(binary("and", 1), INTEGERS, fires=False),
    ),
    "and_zero": (
        *identity("and", 0, (*INTEGERS, *PRED)),
        Case(binary("and", 1), INTEGERS, fires=False),
    ),
    "and_of_upper_bounds": tuple(
        Case(
            "x: s32[]\nc = s32[] constant(5)\nd = s32[] constant(3)\n"
            f"a = pred[] compare({a}\nb = pred[] compare(x, d), direction=LT\npred[] and(a, b)",
            ("s32",),
            ("",),
            fires=fires,
        )
        for a, fires in (
            ("x, c), direction=LT", True),
            ("c, x), direction=GT", True),
            ("x, c), direction=LE", False),
        )
    ),
    "or_true": (*identity("or", "true", PRED), Case(binary("or", 1), INTEGERS, fires=False)),
    "or_zero": (
        *identity("or", 0, (*INTEGERS, *PRED)),
        Case(binary("or", 1), INTEGERS, fires=False),
    ),
    "xor_of_same": (
        Case(X + "T[S] xor(x, x)", (*INTEGERS, *PRED)),
        Case(XY + "T[S] xor(x, y)", INTEGERS, fires=False),
    ),
    "xor_zero": (
        *identity("xor", 0, (*INTEGERS, *PRED)),
        Case(binary("xor", 1), INTEGERS, fires=False),
    ),
    "not_of_not": (
        Case(X + "n = T[S] not(x)\nT[S] not(n)", (*INTEGERS, *PRED)),
        Case(X + "T[S] not(x)", INTEGERS, fires=False),
    ),
    "compare_unsigned_with_zero": tuple(
        Case(X + spread(0) + f"pred[S] compare({how}", types, fires=fires)
        for how, types, fires in (
            ("x, c), direction=LT", UNSIGNED, True),
            ("x, c), direction=GE", UNSIGNED, True),
            ("c, x), direction=GT", UNSIGNED, True),
            ("c, x), direction=LE", UNSIGNED, True),
            ("x, c), direction=GT", UNSIGNED, False),
            ("x, c), direction=LT", SIGNED, False),
        )
    ),
    "compare_non_negative_with_zero": tuple(
        Case(X + spread(0) + POSITIVE + f"pred[S] compare({how}", FLOATS, fires=fires)
        for how, fires in (
            ("a, c), direction=LT", True),
            ("a, c), direction=GE", True),
            ("c, a), direction=GT", True),
            ("c, a), direction=LE", True),
            ("x, c), direction=LT", False),
        )
    ),
    "compare_integer_with_itself": (
        *(
            Case(X + f"pred[S] compare(x, x), direction={d}", INTEGERS)
            for d in ("EQ", "NE", "LT", "LE", "GT", "GE")
        ),
        Case(X + "pred[S] compare(x, x), direction=EQ", FLOATS, fires=False),
    ),
    "compare_pred_with_constant": tuple(
        Case(X + spread(c) + f"pred[S] compare({how}), direction={d}", PRED, fires=fires)
        for c, how, d, fires in (
            ("false", "x, c", "NE", True),
            ("true", "x, c", "EQ", True),
            ("true", "c, x", "EQ", True),
            ("true", "x, c", "NE", False),
        )
    ),
    "compare_select_of_one_and_zero": tuple(
        Case(
            XY
            + f"p = pred[S] compare(x, y), direction={d}\n"
            + "i = s32[] constant(1)\none = s32[S] broadcast(i), dimensions={}\n"
            + "o = s32[] constant(0)\nzero = s32[S] broadcast(o), dimensions={}\n"
            + "s = s32[S] select(p, one, zero)\npred[S] compare(s, zero), direction=NE",
            (*FLOATS, *INTEGERS),
            fires=d == "GE",
        )
        for d in ("GE", "GT")
    ),
    "compare_maximum_with_its_operand": tuple(
        Case(XY + f"m = T[S] maximum({m})\npred[S] compare({how}", REAL, fires=fires)
        for m, how, fires in (
            ("x, y", "m, x), direction=GT", True),
            ("y, x", "m, x), direction=GT", True),
            ("y, x", "m, x), direction=GE", False),
        )
    ),
    "compare_operand_with_its_minimum": tuple(
        Case(XY + f"m = T[S] minimum({m})\npred[S] compare({how}", REAL, fires=fires)
        for m, how, fires in (
            ("x, y", "x, m), direction=GT", True),
            ("y, x", "x, m), direction=GT", True),
            ("y, x", "m, x), direction=GT", False),
        )
    ),
    "complex_of_its_parts": (
        Case(X + "a = R[S] real(x)\nb = R[S] imag(x)\nT[S] complex(a, b)", COMPLEX),
        Case(X + "a = R[S] real(x)\nb = R[S] imag(x)\nT[S] complex(b, a)", COMPLEX, fires=False),
    ),
    "real_of_complex": (
        Case("a b: R[S]\nz = T[S] complex(a, b)\nR[S] real(z)", COMPLEX),
        Case("x: T[S]\nR[S] real(x)", COMPLEX, fires=False),
    ),
    "imag_of_complex": (
        Case("a b: R[S]\nz = T[S] complex(a, b)\nR[S] imag(z)", COMPLEX),
        Case("x: T[S]\nR[S] imag(x)", COMPLEX, fires=False),
    ),
    "real_of_real": (Case(X + "T[S] real(x)", FLOATS),),
    "imag_of_real": (Case(X + "T[S] imag(x)", FLOATS),),
    "convert_to_same_type": (
        Case(X + "T[S] convert(x)", ALL),
        Case(X + "s16[S] convert(x)", ("f32", "s32"), fires=False),
    ),
    "convert_there_and_back": (
        Case(X + "w = f32[S] convert(x)\nT[S] convert(w)", ("bf16", "f16", "f8e5m2")),
        Case(X + "w = f64[S] convert(x)\nT[S] convert(w)", ("bf16", "f16", "f32")),
        Case(X + "w = f16[S] convert(x)\nT[S] convert(w)", ("f8e5m2fnuz", "f8e4m3fnuz")),
        Case(X + "w = f32[S] convert(x)\nT[S] convert(w)", ("f8e8m0fnu",)),
        Case(X + "w = f16[S] convert(x)\nT[S] convert(w)", ("f8e8m0fnu",), fires=False),
        Case(X + "w = s32[S] convert(x)\nT[S] convert(w)", ("s8", "u8", "s16")),
        Case(X + "w = s64[S] convert(x)\nT[S] convert(w)", ("u32", "s32")),
        Case(X + "w = f16[S] convert(x)\nT[S] convert(w)", ("f32", "bf16"), fires=False),
        Case(X + "w = u32[S] convert(x)\nT[S] convert(w)", ("s8",), fires=False),
    ),
    "convert_of_constant": (
        Case("c = f32[3] constant({1.5, nan, -inf})\nT[3] convert(c)", ("bf16", "f16"), ("3",)),
        Case("c = bf16[] constant(2)\nT[] convert(c)", ("f32",), ("",), fires=False),
    ),
    "convert_of_widened_arithmetic": tuple(
        Case(
            XY + f"a = {wide}[S] convert(x)\nb = {wide}[S] convert(y)\n"
            f"m = {wide}[S] {opcode}(a, b)\nT[S] convert(m)",
            types,
            fires=fires,
        )
        for opcode, wide, types, fires in (
            ("add", "s32", ("s8", "s16"), True),
            ("subtract", "u32", ("u8", "u16"), True),
            ("multiply", "s64", ("s32",), True),
            ("divide", "u32", ("u8",), True),
            ("remainder", "u64", ("u32",), True),
            ("divide", "s32", ("s8",), False),
            ("add", "f32", ("bf16",), False),
        )
    ),
    "bitcast_convert_to_same_type": (
        Case(X + "T[S] bitcast-convert(x)", (*FLOATS, *INTEGERS)),
        Case(X + "u32[S] bitcast-convert(x)", ("f32",), fires=False),
    ),
    "bitcast_convert_of_bitcast_convert": (
        Case(X + "b = s32[S] bitcast-convert(x)\nu32[S] bitcast-convert(b)", ("f32",)),
        Case("x: T[2]\nb = u8[2,4] bitcast-convert(x)\nf32[2] bitcast-convert(b)", ("s32",), ("",)),
    ),
    "bitcast_convert_of_concatenate": (
        Case(
            XY.replace("[S]", "[3]")
            + "a = u32[3] bitcast-convert(x)\nb = u32[3] bitcast-convert(y)\n"
            "c = u32[6] concatenate(a, b), dimensions={0}\nT[6] bitcast-convert(c)",
            ("f32", "s32"),
            ("3",),
        ),
    ),
    "reduce_precision_to_own_widths": tuple(
        Case(X + f"T[S] reduce-precision(x), exponent_bits={e}, mantissa_bits={m}", (t,), fires=f)
        for t, e, m, f in (
            ("f32", 8, 23, True),
            ("bf16", 8, 7, True),
            ("f16", 5, 10, True),
            ("f64", 11, 52, True),
            ("f32", 8, 7, False),
        )
    ),
}
