"""Calls of GPU libraries that `library-call-expander` writes out."""

from __future__ import annotations

from collections.abc import Mapping

from unit.rewrites.gpu_cases import lines
from unit.rewrites.rule_proofs import COMPLEX, FLOATS, WIDE, Case


def _config(epilogue: str = "DEFAULT", **more: object) -> str:
    numbers = '"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]'
    rest = "".join(f',"{key}":{value}' for key, value in more.items())
    return (
        f'backend_config={{"gemm_backend_config":{{"dot_dimension_numbers":{{{numbers}}},'
        f'"epilogue":"{epilogue}"{rest}}}}}'
    )


def _product(
    shape: str,
    reads: str = "x, y",
    target: str = "lt$matmul",
    epilogue: str = "DEFAULT",
    **more: object,
) -> str:
    config = _config(epilogue, **more)
    return f'{shape} custom-call({reads}), custom_call_target="__cublas${target}", {config}'


_PAIR = ("x: T[5,7]", "y: T[7,4]")
_OUT = "(T[5,4], s8[64])"
_BATCHES = (
    '(T[2,5,4], s8[0]) custom-call(x, y), custom_call_target="__cublas$gemm", backend_config='
    '{"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["2"],'
    '"rhs_contracting_dimensions":["2"],"lhs_batch_dimensions":["0"],"rhs_batch_dimensions":["0"]},'
    '"precision_config":{"operand_precision":["HIGHEST","HIGHEST"]}}}'
)


def _convolution(target: str, shape: str, reads: str, labels: str, **config: object) -> str:
    text = ",".join(
        f'"{k}":"{v}"' if isinstance(v, str) else f'"{k}":{v}' for k, v in config.items()
    )
    return (
        f"{shape} custom-call({reads}), {labels}, custom_call_target="
        f'"__cudnn${target}", backend_config={{"cudnn_conv_backend_config":{{{text}}}}}'
    )


_LABELS = "window={size=3x2 stride=2x1 pad=1_1x0_1 rhs_dilate=1x2}, dim_labels=b01f_01io->b01f"
_IMAGE, _FILTER, _RESULT = "T[2,7,8,4]", "T[3,2,4,6]", "T[2,4,7,6]"
_GROUPS = _LABELS + ", feature_group_count=2"

_SYRK = 'custom_call_target="cusolver_syrk_ffi", api_version=API_VERSION_TYPED_FFI'

CASES: Mapping[str, Mapping[str, tuple[Case, ...]]] = {
    "library-call-expander": {
        "factor_of_a_library": (
            lines("a: T[4,3]", "c: T[4,4]", "s t: T[]", f"T[4,4] custom-call(a, c, s, t), {_SYRK}"),
            lines(
                "x: T[2,6,4]",
                '(T[2,6,4], s32[2,4], s32[2,6]) custom-call(x), custom_call_target="LuDecomposition"',
                types=WIDE,
            ),
            lines(
                "x: T[2,6,4]",
                '(T[2,6,4], s32[2,4]) custom-call(x), custom_call_target="LuDecomposition"',
                types=WIDE,
                fires=False,
            ),
        ),
        "product_of_a_library": (
            lines(*_PAIR, _product(_OUT), types=(*FLOATS, *COMPLEX)),
            lines(*_PAIR, _product("T[5,4]", target="gemm", alpha_real=0.5), types=WIDE),
            lines(*_PAIR, "c: T[5,4]", _product(_OUT, "x, y, c", beta=1), types=FLOATS),
            lines(*_PAIR, "c: T[5,4]", _product(_OUT, "x, y, c", alpha_real=2, beta=-0.5)),
            *(
                lines(*_PAIR, "b: T[4]", _product(_OUT, "x, y, b", epilogue=f"BIAS{word}"))
                for word in ("", "_RELU", "_GELU", "_SILU")
            ),
            lines(*_PAIR, _product("(T[5,4], T[5,4], s8[8])", epilogue="GELU_AUX")),
            lines(
                *("x: f8e4m3fn[5,16]", "y: f8e5m2[16,4]", "s t: f32[]"),
                _product("(bf16[5,4], s8[8])", "x, y, s, t", "lt$matmul$f8"),
                positive=True,
            ),
            lines(
                *("x: f8e4m3fn[5,16]", "y: f8e4m3fn[16,4]", "s t u: f32[]"),
                _product(
                    "(f8e4m3fn[5,4], f32[], s8[8])", "x, y, s, t, u", "lt$matmul$f8", damax_output=1
                ),
                positive=True,
            ),
            lines("x: s8[5,8]", "y: s8[8,4]", _product("(s32[5,4], s8[8])", target="gemm")),
            lines("x: T[2,5,3]", "y: T[2,4,3]", _BATCHES, types=WIDE),
            lines(*_PAIR, _product(_OUT, epilogue="TANH"), fires=False),
            lines(*_PAIR, "c: T[5,4]", _product(_OUT, "x, y, c"), fires=False),
        ),
        "convolution_of_a_library": (
            lines(
                f"x: {_IMAGE}",
                f"w: {_FILTER}",
                _convolution("convForward", f"({_RESULT}, u8[0])", "x, w", _LABELS),
                types=FLOATS,
            ),
            lines(
                f"x: {_IMAGE}",
                "w: T[3,2,2,6]",
                _convolution("convForward", f"({_RESULT}, u8[0])", "x, w", _GROUPS),
            ),
            *(
                lines(
                    f"x: {_IMAGE}",
                    f"w: {_FILTER}",
                    "b: T[6]",
                    f"s: {_RESULT}",
                    _convolution(
                        "convBiasActivationForward",
                        f"({_RESULT}, u8[0])",
                        "x, w, b, s",
                        _LABELS,
                        activation_mode=mode,
                        conv_result_scale=0.5,
                        side_input_scale=2,
                        leakyrelu_alpha=0.25,
                    ),
                )
                for mode in ("kNone", "kRelu", "kRelu6", "kElu", "kLeakyRelu", "kSigmoid", "kTanh")
            ),
            lines(
                "x: s8[2,7,8,4]",
                "w: s8[3,2,4,6]",
                "b: f32[6]",
                _convolution(
                    "convBiasActivationForward",
                    "(s8[2,4,7,6], u8[0])",
                    "x, w, b",
                    _LABELS,
                    conv_result_scale=0.01,
                ),
            ),
            *(
                lines(
                    f"y: {_RESULT}",
                    f"w: {filters}",
                    _convolution("convBackwardInput", f"({_IMAGE}, u8[0])", "y, w", labels),
                    types=WIDE,
                )
                for filters, labels in (
                    (_FILTER, _LABELS),
                    ("T[3,2,2,6]", _GROUPS),
                    (_FILTER, _LABELS.replace("rhs_dilate", "rhs_reversal=1x1 rhs_dilate")),
                )
            ),
            *(
                lines(
                    f"x: {_IMAGE}",
                    f"y: {_RESULT}",
                    _convolution("convBackwardFilter", f"({filters}, u8[0])", "x, y", labels),
                    types=WIDE,
                )
                for filters, labels in (
                    (_FILTER, _LABELS),
                    ("T[3,2,2,6]", _GROUPS),
                    (_FILTER, _LABELS.replace("rhs_dilate", "rhs_reversal=1x1 rhs_dilate")),
                )
            ),
            lines(
                f"x: {_IMAGE}",
                f"w: {_FILTER}",
                _convolution(
                    "convForward", f"({_RESULT}, u8[0])", "x, w", _LABELS, activation_mode="kSwish"
                ),
                fires=False,
            ),
        ),
        "system_of_a_library": (
            lines(
                "a: T[3,3]",
                "b: T[3,2]",
                '(T[3,2], s8[32]) custom-call(a, b), custom_call_target="__cublas$triangularSolve", '
                'backend_config={"left_side":true,"lower":true,"unit_diagonal":true,'
                '"transpose_a":"TRANSPOSE"}',
                types=WIDE,
            ),
            lines("a: T[3]", 'T[3] custom-call(a), custom_call_target="other"', fires=False),
        ),
        "sort_of_a_library": (
            lines(
                "k: T[3,8]",
                "v: s32[3,8]",
                "(T[3,8], s32[3,8], u8[16]) custom-call(k, v), custom_call_target="
                '"__cub$DeviceRadixSort", backend_config={"descending":true}',
                types=("f32", "s32", "u8"),
            ),
            lines(
                "k: T[16]",
                "(T[16], u8[16]) custom-call(k), custom_call_target="
                '"__cub$DeviceRadixSortWithoutScratch", backend_config={"descending":false}',
                types=("f32", "u16"),
            ),
            lines("a: T[3]", 'T[3] custom-call(a), custom_call_target="other"', fires=False),
        ),
    },
}
