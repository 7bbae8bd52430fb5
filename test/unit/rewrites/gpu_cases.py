"""Left sides for the rules that hand products and convolutions to GPU libraries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unit.rewrites import algsimp_shape_cases
from unit.rewrites.rule_proofs import COMPLEX, FLOATS, WIDE, Case


def lines(*texts: str, types: Sequence[str] = ("f32",), **more: Any) -> Case:
    """One left side with shapes written out, of floats."""
    return algsimp_shape_cases.lines(*texts, types=types, **more)


OPERANDS = ("x: T[8,8]", "y: T[8,16]")
DOT = "T[8,16] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
CALL = (
    'T[8,16] custom-call(x, y), custom_call_target="{target}", backend_config='
    '{{"gemm_backend_config":{{"alpha_real":1,"beta":{beta},"dot_dimension_numbers":'
    '{{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["{rhs}"],'
    '"lhs_batch_dimensions":[],"rhs_batch_dimensions":[]}},"alpha_imag":0,"epilogue":"{epilogue}"}}}}'
)


def _call(
    target: str = "__cublas$lt$matmul", beta: int = 0, rhs: int = 0, epilogue: str = "DEFAULT"
) -> str:
    return "d = " + CALL.format(target=target, beta=beta, rhs=rhs, epilogue=epilogue)


GELU = (
    "s2 = T[8,16] multiply(d, d)",
    "s3 = T[8,16] multiply(s2, d)",
    "k = T[] constant(0.044715)",
    "kk = T[8,16] broadcast(k), dimensions={}",
    "p = T[8,16] multiply(kk, s3)",
    "a = T[8,16] add(d, p)",
    "q = T[] constant(0.7978845608028654)",
    "qq = T[8,16] broadcast(q), dimensions={}",
    "b = T[8,16] multiply(qq, a)",
    "t = T[8,16] tanh(b)",
    "one = T[] constant(1)",
    "ones = T[8,16] broadcast(one), dimensions={}",
    "c = T[8,16] add(t, ones)",
    "half = T[] constant(0.5)",
    "halves = T[8,16] broadcast(half), dimensions={}",
    "e = T[8,16] multiply(c, halves)",
)
GELU = tuple(line.replace("s2", "sq").replace("s3", "cu") for line in GELU)
ZEROS = ("z = T[] constant(0)", "zz = T[8,16] broadcast(z), dimensions={}")
F8 = ("x: f8e4m3fn[8,32]", "y: f8e5m2[16,32]", "s: f32[]", "t: f32[]")
F8_CALL = (
    _call("__cublas$lt$matmul$f8", rhs=1).replace("T[", "f32[").replace("(x, y)", "(x, y, s, t)")
)

SATURATED = (
    "u: f32[]",
    "b = f32[8,16] broadcast(u), dimensions={}",
    "m = f32[8,16] divide(d, b)",
    "lo = f32[] constant(-448)",
    "hi = f32[] constant(448)",
    "ll = f32[8,16] broadcast(lo), dimensions={}",
    "hh = f32[8,16] broadcast(hi), dimensions={}",
    "c = f32[8,16] clamp(ll, m, hh)",
    "e = f8e4m3fn[8,16] convert(c)",
)
MAXIMUM = (
    "f {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] maximum(a, b)\n}\n"
)

IMAGE = ("x: T[2,7,8,3]", "w: T[3,2,3,5]")
OUT = "T[2,7,8,5]"
WINDOW = "window={size=3x2 pad=1_1x0_1}, dim_labels=b01f_01io->b01f"
CONV = f"{OUT} convolution(x, w), {WINDOW}"


def _full(name: str, number: str) -> tuple[str, str]:
    return (
        f"{name} = T[] constant({number})",
        f"{name}{name} = {OUT} broadcast({name}), dimensions={{}}",
    )


def _called(operands: str, target: str = "__cudnn$convForward", side: int = 0) -> tuple[str, str]:
    config = f'"activation_mode":"kNone","conv_result_scale":1,"side_input_scale":{side}'
    return (
        (
            f'f = ({OUT}, u8[0]) custom-call({operands}), {WINDOW}, custom_call_target="{target}", '
            f'backend_config={{"cudnn_conv_backend_config":{{{config},"leakyrelu_alpha":0}}}}'
        ),
        f"c = {OUT} get-tuple-element(f), index=0",
    )


def _typed(
    type_: str, operands: str = "x, w", target: str = "__cudnn$convForward", mode: str = "kNone"
) -> tuple[str, str]:
    """A call that gives a result of a type."""
    call, part = _called(operands, target)
    return (
        call.replace("T[", f"{type_}[").replace("kNone", mode),
        part.replace("T[", f"{type_}["),
    )


SMALL = ("x: s8[2,7,8,3]", "w: s8[3,2,3,5]")
HALVES = (
    "x: f16[2,7,8,3]",
    "w: f16[3,2,3,5]",
    "xc = f32[2,7,8,3] convert(x)",
    "wc = f32[3,2,3,5] convert(w)",
)
LIMITS = (
    "ls = f32[] constant(-128)",
    "lo = f32[2,7,8,5] broadcast(ls), dimensions={}",
    "hs = f32[] constant(127)",
    "hi = f32[2,7,8,5] broadcast(hs), dimensions={}",
)
CALLED = (*IMAGE, *_called("x, w"))
POSITIVE = (*_full("z", "0"), "p = pred[2,7,8,5] compare(c, zz), direction=GT")

CASES: Mapping[str, Mapping[str, tuple[Case, ...]]] = {
    "cublas-gemm-rewriter": {
        "dot_by_cublas": (
            lines(*OPERANDS, DOT, types=(*FLOATS, *COMPLEX)),
            lines(*OPERANDS, DOT + ", operand_precision={highest,high}"),
            lines(
                "x: T[3,8,8]",
                "y: T[3,16,8]",
                "T[3,8,16] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, "
                "lhs_contracting_dims={2}, rhs_contracting_dims={2}",
                types=WIDE,
            ),
            lines("x: T[16,8]", "y: T[8]", DOT.replace("8,16]", "16]"), types=WIDE),
            lines("x: s8[8,8]", "y: s8[8,16]", DOT.replace("T[", "s32["), types=("f32",)),
            lines(*OPERANDS, DOT, options={"enable_cublaslt": False}, types=("f32",)),
            # Too small, and of a type that the library has not.
            lines("x: T[2,2]", "y: T[2,2]", DOT.replace("8,16", "2,2"), fires=False),
            lines(*OPERANDS, DOT, types=("s32", "u8"), fires=False),
        ),
        "constant_times_gemm": (
            lines(
                *OPERANDS,
                _call(),
                "k = T[] constant(2.5)",
                "b = T[8,16] broadcast(k), dimensions={}",
                "T[8,16] multiply(d, b)",
                types=(*WIDE, *COMPLEX),
            ),
            lines(
                *OPERANDS,
                _call(epilogue="RELU"),
                "k = T[] constant(2.5)",
                "b = T[8,16] broadcast(k), dimensions={}",
                "T[8,16] multiply(b, d)",
                fires=False,
            ),
        ),
        "gemm_plus_vector": (
            lines(
                *OPERANDS,
                "v: T[16]",
                _call(),
                "b = T[8,16] broadcast(v), dimensions={1}",
                "T[8,16] add(b, d)",
                types=WIDE,
            ),
            lines(
                *OPERANDS,
                "v: T[8]",
                _call(),
                "b = T[8,16] broadcast(v), dimensions={0}",
                "T[8,16] add(b, d)",
                fires=False,
            ),
        ),
        "gemm_plus_matrix": (
            lines(*OPERANDS, "m: T[8,16]", _call(), "T[8,16] add(d, m)", types=(*WIDE, *COMPLEX)),
            lines(
                *OPERANDS,
                "m: T[8,16]",
                _call("__cublas$gemm"),
                "n = T[8,16] negate(m)",
                "T[8,16] add(n, d)",
                types=WIDE,
            ),
            # A parameter may not be written over.
            lines(
                *OPERANDS, "m: T[8,16]", _call("__cublas$gemm"), "T[8,16] add(m, d)", fires=False
            ),
        ),
        "relu_of_gemm": (
            lines(*OPERANDS, _call(), *ZEROS, "T[8,16] maximum(d, zz)", types=WIDE),
            lines(
                *OPERANDS,
                _call(),
                "c = T[7,3] slice(d), slice={[0:7], [0:3]}",
                ZEROS[0],
                "zz = T[7,3] broadcast(z), dimensions={}",
                "T[7,3] maximum(zz, c)",
                types=WIDE,
            ),
            lines(*OPERANDS, _call(epilogue="GELU"), *ZEROS, "T[8,16] maximum(d, zz)", fires=False),
        ),
        "gelu_of_gemm": (
            lines(*OPERANDS, _call(), *GELU, "T[8,16] multiply(d, e)", types=WIDE),
            lines(
                *OPERANDS,
                _call(),
                *GELU,
                "g = T[8,16] multiply(d, e)",
                "T[8,16] subtract(g, d)",
                types=WIDE,
            ),
            lines(*OPERANDS, _call(), *GELU, "T[8,16] multiply(e, e)", fires=False),
        ),
        "dot_of_scaled_f8": (
            *(
                lines(
                    f"x: {a}[8,32]",
                    f"y: {b}[32,16]",
                    "s: f32[]",
                    "t: f32[]",
                    "xc = T[8,32] convert(x)",
                    "yc = T[32,16] convert(y)",
                    "ss = T[8,32] broadcast(s), dimensions={}",
                    "tt = T[32,16] broadcast(t), dimensions={}",
                    "xs = T[8,32] multiply(xc, ss)",
                    "ys = T[32,16] divide(yc, tt)",
                    DOT.replace("(x, y)", "(xs, ys)"),
                    positive=True,
                    fires=fires,
                )
                for a, b, fires in (
                    ("f8e4m3fn", "f8e5m2", True),
                    ("f8e4m3fn", "f8e4m3fn", True),
                    ("f8e5m2", "f8e5m2", False),
                )
            ),
            lines("x: f8e4m3fn[8,20]", "y: f8e4m3fn[20,16]", DOT),
            # What moves elements behind the scaling moves the f8.
            lines(
                "x: f8e4m3fn[2,20,8]",
                "y: f8e4m3fn[30,16]",
                "s: f32[]",
                "i j: s32[]",
                "xc = T[2,20,8] convert(x)",
                "yc = T[30,16] convert(y)",
                "ss = T[2,20,8] broadcast(s), dimensions={}",
                "xs = T[2,20,8] multiply(ss, xc)",
                "xr = T[40,8] reshape(xs)",
                "xt = T[8,40] transpose(xr), dimensions={1,0}",
                "zero = T[] constant(0)",
                "yp = T[50,16] pad(yc, zero), padding=10_10x0_0",
                "yd = T[40,16] dynamic-slice(yp, i, j), dynamic_slice_sizes={40,16}",
                DOT.replace("(x, y)", "(xt, yd)"),
                positive=True,
            ),
            lines(
                "x: f8e4m3fn[8,32]",
                "y: f8e4m3fn[16,16]",
                "yc = T[16,16] convert(y)",
                "xc = T[8,32] convert(x)",
                "one = T[] constant(1)",
                "yp = T[32,16] pad(yc, one), padding=8_8x0_0",
                DOT.replace("(x, y)", "(xc, yp)"),
                fires=False,
            ),
        ),
        "scale_of_f8_gemm": (
            lines(
                *F8,
                F8_CALL,
                "u: f32[]",
                "b = f32[8,16] broadcast(u), dimensions={}",
                "f32[8,16] divide(d, b)",
                positive=True,
            ),
            lines(
                *F8,
                F8_CALL,
                "u: f32[16]",
                "b = f32[8,16] broadcast(u), dimensions={1}",
                "f32[8,16] divide(d, b)",
                positive=True,
                fires=False,
            ),
        ),
        "f8_of_f8_gemm": (
            lines(
                *F8,
                F8_CALL,
                "u: f32[]",
                "b = f32[8,16] broadcast(u), dimensions={}",
                "m = f32[8,16] multiply(d, b)",
                "lo = f32[] constant(-448)",
                "hi = f32[] constant(448)",
                "ll = f32[8,16] broadcast(lo), dimensions={}",
                "hh = f32[8,16] broadcast(hi), dimensions={}",
                "c = f32[8,16] clamp(ll, m, hh)",
                "f8e4m3fn[8,16] convert(c)",
                positive=True,
            ),
            lines(
                *F8,
                F8_CALL,
                *SATURATED,
                "am = f32[8,16] abs(d)",
                "zero = f32[] constant(0)",
                "g = f32[] reduce(am, zero), dimensions={0,1}, to_apply=f",
                "(f8e4m3fn[8,16], f32[]) tuple(e, g)",
                positive=True,
                computations=MAXIMUM,
            ),
            # The greatest of a part, and something else read.
            lines(
                *F8,
                F8_CALL,
                *SATURATED,
                "am = f32[8,16] abs(d)",
                "zero = f32[] constant(0)",
                "g = f32[8] reduce(am, zero), dimensions={1}, to_apply=f",
                "(f8e4m3fn[8,16], f32[8]) tuple(e, g)",
                computations=MAXIMUM,
                fires=False,
            ),
            lines(
                *F8,
                F8_CALL,
                *SATURATED,
                "am = f32[8,16] negate(d)",
                "(f8e4m3fn[8,16], f32[8,16]) tuple(e, am)",
                fires=False,
            ),
            lines(*F8, F8_CALL, "f8e4m3fn[8,16] convert(d)", fires=False),
        ),
        "gemm_with_workspace": (
            lines(*OPERANDS, _call(), "T[8,16] negate(d)", types=WIDE),
            lines(*OPERANDS, _call("__cublas$gemm"), "T[8,16] negate(d)", types=WIDE),
        ),
    },
    "conv-rewriter": {
        "forward_convolution": (
            lines(*IMAGE, CONV, types=FLOATS),
            lines(
                "x: T[2,5,6]",
                "w: T[3,3,4]",
                "T[2,5,4] convolution(x, w), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f, "
                "feature_group_count=2",
            ),
            lines(*IMAGE, CONV.replace("pad=1_1x0_1", "pad=1_1x0_1 rhs_reversal=1x1")),
            # Integers that are read as f32, and others.
            lines(*SMALL, f"c = {CONV.replace('T[', 's32[')}", "f32[2,7,8,5] convert(c)"),
            lines(
                *SMALL, f"c = {CONV.replace('T[', 's32[')}", "s8[2,7,8,5] convert(c)", fires=False
            ),
            # One dimension reversed, and no numbers of the library's.
            lines(*IMAGE, CONV.replace("pad=1_1x0_1", "pad=1_1x0_1 rhs_reversal=1x0"), fires=False),
            lines(*IMAGE, CONV, types=("s32", "c64"), fires=False),
        ),
        "input_gradient": (
            lines(
                "x: T[2,7,8,5]",
                "w: T[3,2,3,5]",
                "v = T[3,2,3,5] reverse(w), dimensions={0,1}",
                "T[2,13,15,3] convolution(x, v), window={size=3x2 pad=1_1x0_1 lhs_dilate=2x2}, "
                "dim_labels=b01f_01oi->b01f",
                types=WIDE,
            ),
            lines(*IMAGE, CONV, fires=False),
        ),
        "filter_gradient": (
            lines(
                "x: T[2,7,8,3]",
                "y: T[2,7,8,5]",
                "T[3,3,2,5] convolution(x, y), window={size=7x8 pad=1_1x0_1}, "
                "dim_labels=f01b_i01o->b01f",
                types=WIDE,
            ),
            lines(*IMAGE, CONV, fires=False),
        ),
    },
    "cudnn-fused-convolution-rewriter": {
        "f32_of_integer_convolution": (
            lines(*SMALL, *_typed("s32"), "f32[2,7,8,5] convert(c)"),
            lines(*SMALL, *_typed("s32"), "f16[2,7,8,5] convert(c)", fires=False),
            lines(*CALLED, "f16[2,7,8,5] convert(c)", fires=False),
        ),
        "s8_of_convolution": (
            lines(
                *SMALL,
                *_typed("f32"),
                *LIMITS,
                "l = f32[2,7,8,5] clamp(lo, c, hi)",
                "s8[2,7,8,5] convert(l)",
            ),
            lines(
                *SMALL,
                "b: f32[5]",
                *_typed("f32", "x, w, b", "__cudnn$convBiasActivationForward", "kRelu"),
                *LIMITS,
                "l = f32[2,7,8,5] clamp(lo, c, hi)",
                "s8[2,7,8,5] convert(l)",
            ),
            lines(*SMALL, *_typed("f32"), "s8[2,7,8,5] convert(c)", fires=False),
            lines(
                *IMAGE,
                *_typed("f32"),
                *LIMITS,
                "l = f32[2,7,8,5] clamp(lo, c, hi)",
                "s8[2,7,8,5] convert(l)",
                fires=False,
            ),
        ),
        "f16_of_convolution": (
            lines(*HALVES, *_typed("f32", "xc, wc"), "f16[2,7,8,5] convert(c)"),
            lines(
                *HALVES,
                "k = f32[] constant(0.5)",
                "b = f32[5] broadcast(k), dimensions={}",
                *_typed("f32", "xc, wc, b", "__cudnn$convBiasActivationForward", "kRelu"),
                "f16[2,7,8,5] convert(c)",
            ),
            # A number that f16 has not, and operands of f32.
            lines(
                *HALVES,
                "k = f32[] constant(0.1)",
                "b = f32[5] broadcast(k), dimensions={}",
                *_typed("f32", "xc, wc, b", "__cudnn$convBiasActivationForward"),
                "f16[2,7,8,5] convert(c)",
                fires=False,
            ),
            lines(*IMAGE, *_typed("f32"), "f16[2,7,8,5] convert(c)", fires=False),
        ),
        "constant_times_convolution": (
            lines(*CALLED, *_full("k", "0.5"), f"{OUT} multiply(c, kk)", types=WIDE),
            lines(
                *CALLED, *_full("k", "0.5"), "y: T[2,7,8,5]", f"{OUT} multiply(c, y)", fires=False
            ),
        ),
        "convolution_plus_bias": (
            lines(
                *CALLED,
                "b: T[5]",
                f"v = {OUT} broadcast(b), dimensions={{3}}",
                f"{OUT} add(v, c)",
                types=WIDE,
            ),
            lines(*CALLED, *_full("k", "0.5"), f"{OUT} add(c, kk)", types=WIDE),
            lines(
                *CALLED,
                "b: T[8]",
                f"v = {OUT} broadcast(b), dimensions={{2}}",
                f"{OUT} add(v, c)",
                fires=False,
            ),
        ),
        "convolution_plus_side_input": (
            lines(*CALLED, f"y: {OUT}", f"{OUT} add(y, c)", types=WIDE),
            lines(*CALLED, f"{OUT} add(c, c)", fires=False),
        ),
        "scaled_side_input": (
            lines(
                *IMAGE,
                f"y: {OUT}",
                "b: T[5]",
                *_full("k", "0.25"),
                f"s = {OUT} multiply(kk, y)",
                *_called("x, w, b, s", "__cudnn$convBiasActivationForward", side=1),
                f"{OUT} negate(c)",
                types=WIDE,
            ),
            lines(*CALLED, f"{OUT} negate(c)", fires=False),
        ),
        "relu_of_convolution": (
            lines(*CALLED, *_full("z", "0"), f"{OUT} maximum(zz, c)", types=WIDE),
            lines(*CALLED, *_full("z", "1"), f"{OUT} maximum(zz, c)", fires=False),
        ),
        "relu6_of_convolution": (
            lines(
                *CALLED, *_full("z", "0"), *_full("k", "6"), f"{OUT} clamp(zz, c, kk)", types=WIDE
            ),
            lines(
                *CALLED, *_full("z", "0"), *_full("k", "5"), f"{OUT} clamp(zz, c, kk)", fires=False
            ),
        ),
        "elu_of_convolution": (
            lines(
                *CALLED,
                *POSITIVE,
                f"m = {OUT} exponential-minus-one(c)",
                f"{OUT} select(p, c, m)",
                types=WIDE,
            ),
            lines(
                *CALLED,
                *POSITIVE,
                f"m = {OUT} exponential(c)",
                f"{OUT} select(p, c, m)",
                fires=False,
            ),
        ),
        "leaky_relu_of_convolution": (
            lines(
                *CALLED,
                *POSITIVE,
                *_full("a", "0.125"),
                f"m = {OUT} multiply(aa, c)",
                f"{OUT} select(p, c, m)",
                types=WIDE,
            ),
            lines(
                *CALLED,
                *POSITIVE,
                *_full("a", "0.125"),
                f"m = {OUT} multiply(aa, c)",
                f"{OUT} select(p, m, c)",
                fires=False,
            ),
        ),
    },
}
