"""Left sides for the rules of the expanders that write calls, products and loops."""

from __future__ import annotations

from collections.abc import Mapping

from unit.rewrites.algsimp_shape_cases import lines
from unit.rewrites.rule_proofs import COMPLEX, REAL, WIDE, Case

POSITIVE = (
    "x: T[2,4,4]",
    "n = T[] constant(8)",
    "nn = T[4,4] broadcast(n), dimensions={}",
    "i = s32[4,4] iota(), iota_dimension=0",
    "j = s32[4,4] iota(), iota_dimension=1",
    "e = pred[4,4] compare(i, j), direction=EQ",
    "z = T[] constant(0)",
    "zz = T[4,4] broadcast(z), dimensions={}",
    "d = T[4,4] select(e, nn, zz)",
    "dd = T[2,4,4] broadcast(d), dimensions={1,2}",
    "a = T[2,4,4] add(x, dd)",
)
"""A matrix with large numbers on its diagonal."""
LOWER = "T[2,4,4] cholesky(a), lower=true"


def _states(data: str, algorithm: str, numbers: int = 2) -> Case:
    body = f"(u64[{numbers}], {data}) rng-bit-generator(s), algorithm={algorithm}"
    return lines(f"s: u64[{numbers}]", body, types=("f32",))


def _solve(sizes: str, left: bool, lower: bool, kind: str, unit: bool = False) -> Case:
    flags = f"left_side={left}, lower={lower}, unit_diagonal={unit}".lower()
    body = f"T[{sizes}] triangular-solve(a, b), {flags}, transpose_a={kind}"
    return lines(f"b: T[{sizes}]", *POSITIVE, body, types=(*WIDE, *COMPLEX))


COMBINE = "f {\n  a = T[] parameter(0)\n  b = T[] parameter(1)\n  ROOT s = T[] add(a, b)\n}\n"

SIZES = "s = s32[3] constant({2, 0, 4})"

CASES: Mapping[str, Mapping[str, tuple[Case, ...]]] = {
    "rng-bit-generator-expander": {
        "threefry_bits": (
            *(
                _states(d, "rng_three_fry")
                for d in ("u32[3,5]", "u32[4,3]", "u32[]", "u64[3]", "s8[7]", "f32[2]", "u16[0,2]")
            ),
            lines(
                "s: u64[2]",
                "(u64[2], u32[3]) rng-bit-generator(s), algorithm=rng_philox",
                types=("f32",),
                fires=False,
            ),
        ),
        "philox_bits": (
            *(_states(d, "rng_philox") for d in ("u32[3,5]", "u64[3]", "s32[]", "f16[7]", "u8[0]")),
            _states("u32[6]", "rng_philox", 3),
            _states("u64[5]", "rng_default", 3),
        ),
    },
    "bitcast_dtypes_expander": {
        "bitcast_convert_to_narrow": (
            lines("x: u64[3]", "u32[3,2] bitcast-convert(x)", types=("f32",)),
            lines("x: f64[]", "s8[8] bitcast-convert(x)", types=("f32",)),
            lines("x: f32[2]", "bf16[2,2] bitcast-convert(x)", types=("f32",)),
            lines("x: f32[2]", "s32[2] bitcast-convert(x)", types=("f32",), fires=False),
        ),
        "bitcast_convert_to_wide": (
            lines("x: u32[3,2]", "u64[3] bitcast-convert(x)", types=("f32",)),
            lines("x: s8[8]", "f64[] bitcast-convert(x)", types=("f32",)),
            lines("x: f16[0,2]", "u32[0] bitcast-convert(x)", types=("f32",)),
        ),
    },
    "cholesky_expander": {
        "cholesky_by_columns": (
            lines(
                *POSITIVE,
                "t = T[2,4,4] transpose(a), dimensions={0,2,1}",
                "p = T[2,4,4] dot(a, t), lhs_batch_dims={0}, rhs_batch_dims={0}, "
                "lhs_contracting_dims={2}, rhs_contracting_dims={1}",
                "l = T[2,4,4] cholesky(p), lower=true",
                "u = T[2,4,4] cholesky(p), lower=false",
                "T[2,4,4] subtract(l, u)",
                types=WIDE,
            ),
            lines("x: T[1,1]", "T[1,1] cholesky(x), lower=true", types=WIDE, positive=True),
            # Without a factor: NaN everywhere.
            lines(*POSITIVE, "m = T[2,4,4] negate(a)", LOWER.replace("(a)", "(m)"), types=WIDE),
        )
    },
    "triangular_solve_expander": {
        "triangular_solve_by_substitution": (
            _solve("2,4,3", True, True, "NO_TRANSPOSE"),
            _solve("2,4,3", True, False, "NO_TRANSPOSE", True),
            _solve("2,4,3", True, True, "TRANSPOSE"),
            _solve("2,4,1", True, False, "ADJOINT"),
            _solve("2,3,4", False, True, "NO_TRANSPOSE"),
            _solve("2,3,4", False, False, "ADJOINT"),
            _solve("2,1,4", False, True, "TRANSPOSE"),
            lines(
                "a: T[0,0]",
                "b: T[0,3]",
                "T[0,3] triangular-solve(a, b), left_side=true, transpose_a=NO_TRANSPOSE",
                types=WIDE,
            ),
        )
    },
    "qr_expander": {
        "qr_by_reflections": (
            lines(
                "x: T[2,4,3]",
                '(T[2,4,3], T[2,3]) custom-call(x), custom_call_target="Qr"',
                types=(*WIDE, *COMPLEX),
            ),
            lines(
                "x: T[2,3]", '(T[2,3], T[2]) custom-call(x), custom_call_target="Qr"', types=WIDE
            ),
            lines(
                "x: T[2,3]", '(T[2,3], T[2]) custom-call(x), custom_call_target="Lq"', fires=False
            ),
        ),
        "product_of_reflectors": (
            lines(
                "x: T[2,4,3]",
                "t: T[2,3]",
                "h = T[] constant(0.25)",
                "hh = T[2,4,3] broadcast(h), dimensions={}",
                "y = T[2,4,3] multiply(x, hh)",
                'T[2,4,3] custom-call(y, t), custom_call_target="ProductOfElementaryHouseholderReflectors"',
                types=(*WIDE, *COMPLEX),
            ),
        ),
    },
    "eigh_expander": {
        "eigh_by_rotations": (
            # Vectors are free up to their sign or phase: magnitudes are compared.
            *(
                lines(
                    f"x: T[{n},{n}]",
                    f'q = (T[{n},{n}], R[{n}]) custom-call(x), custom_call_target="Eigh", '
                    f'backend_config="{lower},1,100,1e-{digits}"',
                    f"v = T[{n},{n}] get-tuple-element(q), index=0",
                    f"w = R[{n}] get-tuple-element(q), index=1",
                    f"a = R[{n},{n}] abs(v)",
                    f"(R[{n},{n}], R[{n}]) tuple(a, w)",
                    types=types,
                )
                for n, lower, digits, types in (
                    (4, 1, 14, ("f64", "c128")),
                    (3, 0, 14, ("f64", "c128")),
                    (1, 1, 6, ("f32",)),
                    (2, 1, 7, ("f32",)),
                )
            ),
        )
    },
    "fft-expander": {
        "transform_of_long_lines": (
            lines(
                "x: c64[2,1030]",
                "c64[2,1030] fft(x), fft_type=IFFT, fft_length={1030}",
                types=("f32",),
            ),
            lines(
                "x: f32[1025]", "c64[513] fft(x), fft_type=RFFT, fft_length={1025}", types=("f32",)
            ),
            lines(
                "x: c64[1024]",
                "c64[1024] fft(x), fft_type=FFT, fft_length={1024}",
                types=("f32",),
                fires=False,
            ),
        ),
    },
    "lapack-expander": {
        "routine_of_a_library": (
            lines(
                "x: T[2,4,3]",
                '(T[2,4,3], T[2,3]) custom-call(x), custom_call_target="cusolver_geqrf_ffi"',
                types=(*WIDE, *COMPLEX),
            ),
            lines(
                "x: T[2,3]",
                '(T[2,3], T[3]) custom-call(x), custom_call_target="cusolver_geqrf_ffi"',
                types=WIDE,
                fires=False,
            ),
            lines(
                "x: T[4,3]",
                "t: T[3]",
                "c: T[4,2]",
                "h = T[] constant(0.25)",
                "hh = T[4,3] broadcast(h), dimensions={}",
                "y = T[4,3] multiply(x, hh)",
                'q = T[4,3] custom-call(y, t), custom_call_target="cusolver_orgqr_ffi"',
                'p = T[4,2] custom-call(y, t, c), custom_call_target="cusolver_ormqr_ffi", '
                "backend_config={left = true, transpose = true}",
                "(T[4,3], T[4,2]) tuple(q, p)",
                types=("f64", "c128"),
            ),
            lines(
                "x: T[3,3]",
                'q = (T[3,3], R[3], s32[]) custom-call(x), custom_call_target="cusolver_syevd_ffi", '
                "backend_config={uplo = 85 : ui8}",
                "v = T[3,3] get-tuple-element(q), index=0",
                "w = R[3] get-tuple-element(q), index=1",
                "a = R[3,3] abs(v)",
                "(R[3,3], R[3]) tuple(a, w)",
                types=("f64", "c128"),
            ),
            lines(
                "x: T[2,3]",
                "q = (T[2,3], R[2], T[2,2], T[2,3], s32[]) custom-call(x), "
                'custom_call_target="cusolver_gesdd_ffi", backend_config={mode = 83 : ui8}',
                "w = R[2] get-tuple-element(q), index=1",
                "u = T[2,2] get-tuple-element(q), index=2",
                "a = R[2,2] abs(u)",
                "(R[2,2], R[2]) tuple(a, w)",
                types=("f32", "c64"),
            ),
        )
    },
    "convolution-canonicalization": {
        "convolution_of_other_order": (
            lines(
                "x: T[2,4,7,6]",
                "w: T[5,4,2,2]",
                "T[2,5,4,3] convolution(x, w), window={size=2x2 stride=2x2 pad=0_1x0_0}, "
                "dim_labels=bf01_oi01->bf01",
                types=(*WIDE, "s32", "c64"),
            ),
            lines(
                "x: T[2,7,4]",
                "w: T[3,2,6]",
                "T[6,7,2] convolution(x, w), window={size=3 pad=1_1}, dim_labels=b0f_0io->f0b, "
                "feature_group_count=2",
                types=WIDE,
            ),
            lines(
                "x: T[2,7,4]",
                "w: T[3,4,6]",
                "T[2,7,6] convolution(x, w), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f",
                fires=False,
            ),
        )
    },
    "convolution-features-last": {
        "space_is_last": (
            lines(
                "x: T[2,9,8,7]",
                "w: T[17,9,3,2]",
                "T[2,17,4,6] convolution(x, w), window={size=3x2 stride=2x1 pad=1_1x0_0}, "
                "dim_labels=bf01_oi01->bf01",
                types=(*WIDE, "s32", "c64"),
            ),
            lines(
                "x: T[3,128,9]",
                "g: T[3,16,9]",
                "T[16,128,3] convolution(x, g), window={size=9 pad=1_1}, dim_labels=fb0_io0->fb0",
                types=WIDE,
            ),
            lines(
                "x: T[16,9,3]",
                "w: T[9,20,2]",
                "T[5,16,20] convolution(x, w), window={size=2 pad=0_3 lhs_dilate=2 rhs_dilate=3 "
                "rhs_reversal=1}, dim_labels=bf0_io0->0bf",
                types=WIDE,
            ),
            lines(
                "x: T[2,7,16]",
                "w: T[3,16,16]",
                "T[2,7,16] convolution(x, w), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f",
                fires=False,
            ),
        )
    },
    "stochastic_convert_decomposer": {
        "stochastic_convert_to_integers": (
            *(
                lines(
                    f"x: {x}[61]",
                    f"u: {r}[61]",
                    f"{t}[61] stochastic-convert(x, u)",
                    types=("f32",),
                )
                for x, r in (("f32", "u32"), ("f64", "u64"), ("f16", "u16"), ("bf16", "u16"))
                for t in ("s8", "s32", "s64")
            ),
            lines(
                "x: f32[4]",
                "u: u32[4]",
                "bf16[4] stochastic-convert(x, u)",
                types=("f32",),
                fires=False,
            ),
        )
    },
    "reduce-window-rewriter": {
        "running_reduction": (
            *(
                lines(
                    f"x: T[{sizes}]",
                    f"z = T[] constant({init})",
                    f"T[{sizes}] reduce-window(x, z), window={window}, to_apply=f",
                    types=types,
                    computations=COMBINE.replace("add", opcode),
                    options={"base_length": 4},
                )
                for sizes, window, opcode, init, types in (
                    ("10", "{size=10 pad=9_0}", "add", 0, (*WIDE, "s32")),
                    ("10", "{size=10 pad=0_9}", "add", 0, (*WIDE, "s32")),
                    ("3,9", "{size=1x9 pad=0_0x8_0}", "multiply", 1, (*WIDE, "u8")),
                    ("22,2", "{size=22x1 pad=21_0x0_0}", "maximum", "-inf", WIDE),
                    ("8", "{size=8 pad=0_7}", "minimum", "inf", WIDE),
                )
            ),
            # The initial value counts, and there is nothing to split.
            *(
                lines(
                    "x: T[2,10]",
                    f"z = T[] constant({init})",
                    f"T[2,10] reduce-window(x, z), window={window}, to_apply=f",
                    types=("f32",),
                    computations=COMBINE,
                    options={"base_length": base},
                    fires=False,
                )
                for window, init, base in (
                    ("{size=1x10 pad=0_0x9_0}", 1, 4),
                    ("{size=1x10 pad=0_0x9_0}", 0, 10),
                    ("{size=1x3 pad=0_0x1_1}", 0, 4),
                )
            ),
        ),
        "reduce_window_of_vector": (
            lines(
                "x: T[10]",
                "z: T[]",
                "T[4] reduce-window(x, z), window={size=3 stride=3 pad=1_1}, to_apply=f",
                types=REAL,
                computations=COMBINE,
            ),
            lines(
                "x: T[10,2]",
                "z: T[]",
                "T[4,2] reduce-window(x, z), window={size=3x1 stride=3x1 pad=1_1x0_0}, to_apply=f",
                computations=COMBINE,
                fires=False,
            ),
        ),
    },
    "ragged_dot_rewriter": {
        "ragged_rows": (
            lines(
                "x: T[7,4]",
                "w: T[3,4,5]",
                SIZES,
                "T[7,5] ragged-dot(x, w, s), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
                "lhs_ragged_dims={0}, rhs_group_dims={0}",
                types=(*WIDE, "c64"),
            ),
            lines(
                "x: T[2,7,4]",
                "w: T[2,4,3,5]",
                SIZES,
                "T[2,7,5] ragged-dot(x, w, s), lhs_batch_dims={0}, rhs_batch_dims={0}, "
                "lhs_contracting_dims={2}, rhs_contracting_dims={1}, lhs_ragged_dims={1}, "
                "rhs_group_dims={2}",
                types=WIDE,
            ),
            lines(
                "x: T[4,7]",
                "w: T[7,5]",
                SIZES,
                "T[3,4,5] ragged-dot(x, w, s), lhs_contracting_dims={1}, rhs_contracting_dims={0}, "
                "lhs_ragged_dims={1}",
                types=("f32",),
                fires=False,
            ),
        ),
        "ragged_contracting": (
            lines(
                "x: T[4,7]",
                "w: T[7,5]",
                SIZES,
                "T[3,4,5] ragged-dot(x, w, s), lhs_contracting_dims={1}, rhs_contracting_dims={0}, "
                "lhs_ragged_dims={1}",
                types=WIDE,
            ),
        ),
    },
}
