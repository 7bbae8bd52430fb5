"""Custom calls: the registry, options, annotations, top-k, TPU and GPU targets."""

# ruff: noqa: E501  # lines of HLO

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import mlirhlo
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import CustomCallOp
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp.custom_calls import CUSTOM_CALLS, options_of, register_custom_call
from mlirhlo.interp.device_counts import machine_for
from mlirhlo.interp.engine import run_module
from mlirhlo.interp.machine import Machine


def call(
    target: str,
    result: str,
    parameters: Sequence[tuple[str, np.ndarray]],
    extra: str = "",
    config: object = None,
    computations: str = "",
    machine: Machine | None = None,
) -> list[np.ndarray]:
    lines = [f"  p{k} = {shape} parameter({k})" for k, (shape, _) in enumerate(parameters)]
    names = ", ".join(f"p{k}" for k in range(len(parameters)))
    if config is not None:
        extra += ", backend_config=" + (config if isinstance(config, str) else json.dumps(config))
    text = (
        f"HloModule m\n{computations}\nENTRY e {{\n"
        + "\n".join(lines)
        + f'\n  ROOT r = {result} custom-call({names}), custom_call_target="{target}"{extra}\n}}\n'
    )
    return run_module(parse_module(text), [a for _, a in parameters], check=True, machine=machine)


X = np.arange(6, dtype=np.float32).reshape(2, 3)
SOME = [
    ("f32[2,3]", X),
    ("f64[2,3,3]", np.ones((2, 3, 3))),
    ("s32[4]", np.ones(4, np.int32)),
    ("f32[]", np.array(1, np.float32)),
    ("c64[3,3]", np.ones((3, 3), np.complex64)),
    ("f32[2,4,2,8]", np.ones((2, 4, 2, 8), np.float32)),
    ("u8[0]", np.ones(0, np.uint8)),
]
"""Arrays that rarely fit."""


# ---------------------------------------------------------------- registry and options


def test_a_target_of_ones_own() -> None:
    def scale(op: Any, inputs: Sequence[Any], frame: Any) -> Any:
        return inputs[0] * np.float32(options_of(op)["alpha"])

    register_custom_call("test.scale", scale)
    try:
        (got,) = call("test.scale", "f32[2,3]", [("f32[2,3]", X)], config="{alpha = 2.5 : f32}")
        np.testing.assert_array_equal(got, X * 2.5)
    finally:
        del CUSTOM_CALLS["test.scale"]


def test_a_machine_may_have_its_own_meanings() -> None:
    machine = Machine(custom_calls={"mine": lambda op, inputs, frame: -inputs[0]})
    (got,) = call("mine", "f32[2,3]", [("f32[2,3]", X)], machine=machine)
    np.testing.assert_array_equal(got, -X)


def test_an_unknown_target_is_named() -> None:
    with pytest.raises(HloError) as caught:
        call("My.Kernel", "f32[2,3]", [("f32[2,3]", X)])
    assert caught.value.code == "HLO0350"
    assert "My.Kernel" in str(caught.value)
    assert caught.value.diagnostics[0].place is not None


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("triton_kernel_call_ffi", "Triton compiled"),
        ("__gpu$xla.gpu.triton", "Triton's own MLIR"),
        ("mosaic_gpu", "a Mosaic kernel for NVIDIA GPUs"),
    ],
)
def test_kernels_of_gpus_are_named(target: str, kind: str) -> None:
    with pytest.raises(HloError, match=kind) as caught:
        call(target, "f32[2,3]", [("f32[2,3]", X)])
    assert caught.value.code == "HLO0350"
    assert "register_custom_call" in str(caught.value)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_arrays_that_do_not_fit_any_target() -> None:
    """Whatever a known target is given: a value of its shape, or an error with a code."""
    rng = random.Random(0)
    refused = 0
    for target in sorted(CUSTOM_CALLS)[::2]:
        config = rng.choice(
            (None, '{lower = true, opaque = "ab"}', {"cudnn_fmha_backend_config": 3})
        )
        given = [rng.choice(SOME) for _ in range(rng.randint(0, 6))]
        results = [rng.choice(SOME)[0] for _ in range(rng.randint(1, 5))]
        result = results[0] if len(results) == 1 else f"({', '.join(results)})"
        try:
            call(target, result, given, config=config)
        except HloError as problem:
            refused += problem.code in ("HLO0308", "HLO0355")
    assert refused > 50


@pytest.mark.parametrize("target", ["xla_python_cpu_callback", "xla_ffi_python_cpu_callback"])
def test_python_callbacks_are_refused(target: str) -> None:
    with pytest.raises(HloError, match="Python process"):
        call(target, "f32[2,3]", [("f32[2,3]", X)])


def test_an_unknown_target_in_a_branch_not_taken_does_no_harm() -> None:
    module = parse_module(
        """HloModule m
bad { p = f32[2] parameter(0)
 ROOT r = f32[2] custom-call(p), custom_call_target="nobody" }
good { ROOT p = f32[2] parameter(0) }
ENTRY e { c = pred[] constant(false)
 p = f32[2] parameter(0)
 ROOT r = f32[2] conditional(c, p, p), true_computation=bad, false_computation=good }
"""
    )
    assert run_module(module, [np.ones(2, np.float32)])[0].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", {}),
        ('{"a":[1,{"x":null}]}', {"a": [1, {"x": None}]}),
        (
            '{u = 76 : ui8, f = 1.5 : f32, b = true, s = "k", l = [1 : i64, 2], d = array<i64: 3, 4>}',
            {"u": 76, "f": 1.5, "b": True, "s": "k", "l": [1, 2], "d": [3, 4]},
        ),
    ],
)
def test_options(text: str, want: object) -> None:
    config = f", backend_config={text}" if text else ""
    module = parse_module(
        f'HloModule m\nENTRY e {{ ROOT r = f32[] custom-call(), custom_call_target="t"{config} }}\n'
    )
    (op,) = HloModule(module).instructions
    assert options_of(op) == want


def test_keys_of_options_may_stand_without_quotes() -> None:
    text = '{"flag_configs": [{"type": "a: b", value: {"boolean_value" : true}}], n: 1}'
    custom = parse_module(
        "HloModule m\nENTRY %e () -> f32[] {\n  ROOT %c = f32[] custom-call(), "
        f'custom_call_target="t", backend_config={text}\n}}'
    )
    (op,) = [op for op in custom.walk() if isinstance(op, CustomCallOp)]
    flags = [{"type": "a: b", "value": {"boolean_value": True}}]
    assert options_of(op) == {"flag_configs": flags, "n": 1}


def test_options_that_cannot_be_read() -> None:
    with pytest.raises(HloError, match="HLO0355"):
        call("__cublas$gemm", "f32[2,2]", [("f32[2,3]", X), ("f32[2,3]", X)], config='"{{nonsense"')


# ---------------------------------------------------------------- annotations


@pytest.mark.parametrize(
    "target",
    [
        "Sharding",
        "annotate_device_placement",
        "MoveToHost",
        "MoveToDevice",
        "xla.sdy.FuncResultSharding",
    ],
)
def test_annotations_hand_their_operand_on(target: str) -> None:
    np.testing.assert_array_equal(call(target, "f32[2,3]", [("f32[2,3]", X)])[0], X)


def test_allocate_buffer_has_the_declared_shape() -> None:
    assert call("AllocateBuffer", "f32[2,3]", [])[0].shape == (2, 3)


# ---------------------------------------------------------------- top-k and TPU


LESS = "c { a = f32[] parameter(0)\n b = f32[] parameter(1)\n i = s32[] parameter(2)\n j = s32[] parameter(3)\n ROOT r = pred[] compare(a, b), direction=LT }"


def test_top_k_of_either_end() -> None:
    x = np.array([[1, np.nan, 3, 3, -0.0, 0.0]], np.float32)
    values, indices = call("TopK", "(f32[1,4], s32[1,4])", [("f32[1,6]", x)])
    assert indices.tolist() == [[1, 2, 3, 0]]
    values, indices = call(
        "TopK", "(f32[1,2], s32[1,2])", [("f32[1,6]", x)], ", called_computations={c}", None, LESS
    )
    assert indices.tolist() == [[4, 5]]
    assert np.signbit(values[0, 0])


def test_partial_reduce_fills_up() -> None:
    x = np.array([3, 1, 2], np.float32)
    got = call(
        "PartialReduce",
        "(f32[5], s32[5])",
        [("f32[3]", x), ("s32[3]", np.arange(3, dtype=np.int32)), ("f32[]", np.float32(9)), ("s32[]", np.int32(-1))],
        ", called_computations={c}",
        {"reduction_dim": 0, "recall_target": 0.9, "aggregate_to_topk": False},
        LESS,
    )  # fmt: skip
    assert got[0].tolist() == [1, 2, 3, 9, 9]
    assert got[1].tolist() == [1, 2, 0, -1, -1]


@pytest.mark.parametrize(
    ("shape", "half", "values"),
    [
        ("u64[3]", "u32[3]", np.array([0, 1 << 40, (1 << 64) - 1], np.uint64)),
        ("s64[3]", "u32[3]", np.array([-1, 1 << 40, -(1 << 63)], np.int64)),
        ("f64[3]", "f32[3]", np.array([1.0, -np.inf, 3.5 + 2.0**-30], np.float64)),
        ("c64[2]", "f32[2]", np.array([1 + 2j, -3j], np.complex64)),
    ],
)
def test_x64_halves_make_up_the_value(shape: str, half: str, values: np.ndarray) -> None:
    (low,) = call("X64SplitLow", half, [(shape, values)])
    (high,) = call("X64SplitHigh", half, [(shape, values)])
    (got,) = call("X64Combine", shape, [(half, low), (half, high)])
    np.testing.assert_array_equal(got, values)


def test_concat_bitcast() -> None:
    parts = [("f32[1,3]", X[:1]), ("f32[1,3]", X[1:])]
    np.testing.assert_array_equal(call("ConcatBitcast", "f32[2,3]", parts)[0], X)
    with pytest.raises(HloError, match="HLO0355"):
        call("ConcatBitcast", "f32[4,4]", parts)


# ---------------------------------------------------------------- GPU


def gemm_config(**fields: object) -> dict[str, object]:
    config: dict[str, object] = {
        "alpha_real": 1,
        "alpha_imag": 0,
        "beta": 0,
        "epilogue": "DEFAULT",
        "dot_dimension_numbers": {
            "lhs_contracting_dimensions": ["1"],
            "rhs_contracting_dimensions": ["1"],
            "lhs_batch_dimensions": [],
            "rhs_batch_dimensions": [],
        },
    }
    return {"gemm_backend_config": {**config, **fields}}


def gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


@pytest.mark.parametrize(
    ("epilogue", "activation"),
    [("DEFAULT", lambda x: x), ("RELU", lambda x: np.maximum(x, 0)), ("GELU", gelu), ("SILU", lambda x: x / (1 + np.exp(-x)))],
)  # fmt: skip
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("beta", [0, 0.5])
def test_gemm(epilogue: str, activation: Any, with_bias: bool, beta: float) -> None:
    y = (X[::-1] - 2).copy()
    c, bias = np.array([[1, -2], [3, 4]], np.float32), np.array([0.5, -40], np.float32)
    operands = [("f32[2,3]", X), ("f32[2,3]", y)]
    operands += [("f32[2,2]", c)] if beta else []
    operands += [("f32[2]", bias)] if with_bias else []
    name = epilogue if not with_bias else ("BIAS" if epilogue == "DEFAULT" else f"BIAS_{epilogue}")
    config = gemm_config(epilogue=name, beta=beta, alpha_real=2)
    got, workspace = call("__cublas$lt$matmul", "(f32[2,2], s8[64])", operands, "", config)
    want = 2 * X @ y.T + beta * c + (bias if with_bias else 0)
    np.testing.assert_allclose(got, activation(want), rtol=1e-6, atol=1e-6)
    assert workspace.shape == (64,)


def test_gemm_keeps_the_value_before_the_activation() -> None:
    config = gemm_config(epilogue="GELU_AUX")
    got = call(
        "__cublas$lt$matmul", "(f32[2,2], f32[2,2], s8[4])", [("f32[2,3]", X)] * 2, "", config
    )
    np.testing.assert_allclose(got[1], X @ X.T)
    np.testing.assert_allclose(got[0], gelu(X @ X.T), rtol=1e-6)


def test_f8_gemm_with_scales() -> None:
    import ml_dtypes

    x = X.astype(ml_dtypes.float8_e4m3fn)
    scales = [("f32[]", np.float32(0.5)), ("f32[]", np.float32(4))]
    operands = [("f8e4m3fn[2,3]", x), ("f8e4m3fn[2,3]", x), *scales]
    got = call("__cublas$lt$matmul$f8", "(bf16[2,2], s8[4])", operands, "", gemm_config())
    np.testing.assert_array_equal(got[0].astype(np.float32), 2 * X @ X.T)


def test_an_unknown_epilogue() -> None:
    with pytest.raises(HloError, match="SOMETHING"):
        call(
            "__cublas$gemm",
            "f32[2,2]",
            [("f32[2,3]", X)] * 2,
            "",
            gemm_config(epilogue="SOMETHING"),
        )


CONVOLUTIONS = [
    ("size=3x2 pad=1_1x0_1", 1),
    ("size=3x2 stride=2x1", 1),
    ("size=2x2 stride=1x2 pad=0_1x1_0 rhs_dilate=2x1", 2),
    ("size=3x2 stride=2x3 pad=2_1x1_1", 2),
    ("size=2x2 rhs_reversal=1x1", 1),
]


@pytest.mark.parametrize(("window", "groups"), CONVOLUTIONS)
def test_backward_convolutions_are_gradients(window: str, groups: int) -> None:
    """<conv(x, w), g> is linear in x and in w; the backward kinds are the derivatives."""
    rng = np.random.default_rng(0)
    sizes = [int(s) for s in window.split()[0].removeprefix("size=").split("x")]
    x = rng.normal(size=(2, 7, 6, 4)).astype(np.float32)
    w = rng.normal(size=(6, *sizes, 4 // groups)).astype(np.float32)
    labels = f", window={{{window}}}, dim_labels=b01f_o01i->b01f, feature_group_count={groups}"

    def name(a: np.ndarray) -> str:
        return f"f32[{','.join(map(str, a.shape))}]"

    plain = parse_module(
        f"HloModule m\nENTRY e {{ x = {name(x)} parameter(0)\n w = {name(w)} parameter(1)\n"
        f" ROOT r = convolution(x, w){labels} }}\n"
    )
    y = run_module(plain, [x, w])[0]
    forward = call(
        "__cudnn$convForward", f"({name(y)}, u8[0])", [(name(x), x), (name(w), w)], labels
    )
    np.testing.assert_array_equal(forward[0], y)
    g = rng.normal(size=y.shape).astype(np.float32)
    dx = call(
        "__cudnn$convBackwardInput", f"({name(x)}, u8[0])", [(name(g), g), (name(w), w)], labels
    )[0]
    dw = call(
        "__cudnn$convBackwardFilter", f"({name(w)}, u8[0])", [(name(x), x), (name(g), g)], labels
    )[0]
    want = float(np.sum(y.astype(np.float64) * g))
    assert np.sum(dx.astype(np.float64) * x) == pytest.approx(want, rel=1e-4)
    assert np.sum(dw.astype(np.float64) * w) == pytest.approx(want, rel=1e-4)
    # In another direction too.
    other = rng.normal(size=x.shape).astype(np.float32)
    moved = run_module(plain, [other, w])[0]
    assert np.sum(dx.astype(np.float64) * other) == pytest.approx(
        float(np.sum(moved.astype(np.float64) * g)), rel=1e-3, abs=1e-3
    )
    other = rng.normal(size=w.shape).astype(np.float32)
    moved = run_module(plain, [x, other])[0]
    assert np.sum(dw.astype(np.float64) * other) == pytest.approx(
        float(np.sum(moved.astype(np.float64) * g)), rel=1e-3, abs=1e-3
    )


def test_fused_convolution() -> None:
    x, w = np.ones((1, 3, 1), np.float32), np.full((2, 1, 1), -1, np.float32)
    w[1] = 2
    side, bias = np.full((1, 3, 2), 3, np.float32), np.array([1, 1], np.float32)
    config = {
        "cudnn_conv_backend_config": {
            "activation_mode": "kRelu",
            "conv_result_scale": 2,
            "side_input_scale": 0.5,
        }
    }
    operands = [("f32[1,3,1]", x), ("f32[2,1,1]", w), ("f32[2]", bias), ("f32[1,3,2]", side)]
    got = call(
        "__cudnn$convBiasActivationForward",
        "(f32[1,3,2], u8[0])",
        operands,
        ", window={size=1}, dim_labels=b0f_o0i->b0f",
        config,
    )[0]
    np.testing.assert_array_equal(got[0, 0], [0.5, 6.5])


def test_radix_sort_of_pairs() -> None:
    keys = np.array([[3, 1, 2, 1]], np.uint16)
    values = np.arange(4, dtype=np.int32).reshape(1, 4)
    operands = [("u16[1,4]", keys), ("s32[1,4]", values)]
    shape = "(u16[1,4], s32[1,4], u8[16])"
    got = call("__cub$DeviceRadixSort", shape, operands, "", {"descending": False})
    assert got[0].tolist() == [[1, 1, 2, 3]]
    assert got[1].tolist() == [[1, 3, 2, 0]]
    got = call("__cub$DeviceRadixSort", shape, operands, "", {"descending": True})
    assert got[1].tolist() == [[0, 2, 1, 3]]


# ---------------------------------------------------------------- linear algebra of XLA and TPUs


def test_compact_wy() -> None:
    rng = np.random.default_rng(0)
    from mlirhlo.interp.linear_algebra.linalg_factor import householder_product, qr_factor

    factors, taus = qr_factor(rng.normal(size=(6, 4)))
    y = np.tril(factors, -1) + np.eye(6, 4)
    m = ((np.triu(y.T @ y, 1) + np.eye(4)) * -taus).astype(np.float32)
    (w,) = call("CompactWyHelper", "f32[4,4]", [("f32[4,4]", m)])
    (q,) = householder_product(factors, taus)
    np.testing.assert_allclose(np.eye(6, 4) + y @ w @ y.T @ np.eye(6, 4), q, atol=1e-5)


def test_eigh_lu_and_pivots() -> None:
    rng = np.random.default_rng(1)
    a = rng.normal(size=(4, 4)).astype(np.float32)
    s = a + a.T
    poisoned = np.tril(s) + np.triu(np.full((4, 4), np.float32(7)), 1)
    v, w = call("Eigh", "(f32[4,4], f32[4])", [("f32[4,4]", poisoned)], "", '"1,1,100,1e-06"')
    np.testing.assert_allclose(v * w @ v.T, s, atol=1e-5)
    lu, pivots, rows = call("LuDecomposition", "(f32[4,4], s32[4], s32[4])", [("f32[4,4]", a)])
    np.testing.assert_allclose((np.tril(lu, -1) + np.eye(4)) @ np.triu(lu), a[rows], atol=1e-5)
    (again,) = call("cu_lu_pivots_to_permutation", "s32[4]", [("s32[4]", pivots)])
    np.testing.assert_array_equal(again, rows)


def test_invert_diagonal_blocks() -> None:
    a = np.tril(np.arange(1, 10, dtype=np.float32).reshape(1, 3, 3))
    (got,) = call("InvertDiagBlocksLowerTriangular", "f32[1,3,3]", [("f32[1,3,3]", a)])
    np.testing.assert_allclose(got @ a, np.eye(3)[None], atol=1e-6)


# ---------------------------------------------------------------- GSPMD's manual regions


def test_shards_by_tile_assignment() -> None:
    from mlirhlo.interp.engine import run_spmd

    module = parse_module(
        """HloModule m
ENTRY e {
  p = f32[4,2] parameter(0)
  s = f32[4,2] custom-call(p), custom_call_target="Sharding", sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}
  l = f32[2,2] custom-call(s), custom_call_target="SPMDFullToShardShape", sharding={manual}
  i = u32[] partition-id()
  f = f32[] convert(i)
  b = f32[2,2] broadcast(f), dimensions={}
  t = f32[2,2] multiply(l, b)
  ROOT r = f32[4,2] custom-call(t), custom_call_target="SPMDShardToFullShape", sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}
}
"""
    )
    machine = machine_for(module)
    assert machine.partitions == 4
    got = run_spmd(module, [[np.ones((4, 2), np.float32)]], machine=machine)
    for (result,) in got:
        assert result[:, 0].tolist() == [0, 0, 2, 2]


def test_cudnn_norm_forward_and_backward() -> None:
    rng = np.random.default_rng(0)
    x, dy = rng.normal(size=(2, 3, 5, 1)), rng.normal(size=(2, 3, 5, 1))
    x, dy = x.reshape(6, 5, 1, 1), dy.reshape(6, 5, 1, 1)
    scale, bias = rng.normal(size=(1, 5, 1, 1)), rng.normal(size=(1, 5, 1, 1))

    def f(x: np.ndarray, scale: np.ndarray, bias: np.ndarray) -> np.ndarray:
        mean, var = x.mean(1, keepdims=True), x.var(1, keepdims=True)
        return (x - mean) / np.sqrt(var + 1e-3) * scale + bias

    big, row, column = "f64[6,5,1,1]", "f64[1,5,1,1]", "f64[6,1,1,1]"
    given = [(big, x), (row, scale), (row, bias)]

    def config(kind: str) -> dict[str, object]:
        return {"cudnn_norm_backend_config": {"epsilon": 1e-3, "kind": kind}}

    y, workspace = call("__cudnn$norm", f"({big}, u8[8])", given, "", config("LAYER_FWD_INFER"))
    np.testing.assert_allclose(y, f(x, scale, bias))
    assert workspace.shape == (8,)
    shape = f"({big}, {column}, {column}, u8[0])"
    y, mean, factor, _ = call("__cudnn$norm", shape, given, "", config("LAYER_FWD_TRAIN"))
    given = [(big, x), (row, scale), (big, dy), (column, mean), (column, factor)]
    shape = f"({big}, {row}, {row}, u8[0])"
    got = call("__cudnn$norm", shape, given, "", config("LAYER_BWD"))
    step = 1e-6
    for number, gradient in enumerate(got[:3]):
        inputs = [x, scale, bias]
        direction = rng.normal(size=inputs[number].shape)
        inputs[number] = inputs[number] + step * direction
        change = np.sum((f(*inputs) - f(x, scale, bias)) * dy) / step
        assert change == pytest.approx(np.sum(gradient * direction), rel=1e-3, abs=1e-4)


def test_dynamic_arrays_come_apart_and_together() -> None:
    text = """HloModule m
ENTRY e {
  p = f32[4] parameter(0)
  n = s32[] parameter(1)
  d = f32[<=4] set-dimension-size(p, n), dimensions={0}
  s = (f32[4], s32[]) custom-call(d), custom_call_target="PadToStatic"
  x = f32[4] get-tuple-element(s), index=0
  size = s32[] get-tuple-element(s), index=1
  y = f32[4] negate(x)
  back = f32[<=4] custom-call(y, size), custom_call_target="SliceToDynamic"
  ROOT t = (f32[<=4], s32[]) tuple(back, size)
}
"""
    got = run_module(parse_module(text), [np.arange(4, dtype=np.float32), np.int32(3)], check=True)
    assert got[0].tolist() == [0, -1, -2]
    assert got[1] == 3


@pytest.mark.parametrize("batch", [False, True])
def test_scaled_products(batch: bool) -> None:
    """`__cublas$lt$matmul$mx` is a scaled-dot."""
    rng = np.random.default_rng(3)
    lead, dims = ((2,), '["0"]') if batch else ((), "[]")
    rank = len(lead) + 1
    lhs, rhs = (rng.normal(size=(*lead, *s)).astype("f4") for s in ((3, 8), (5, 8)))
    scales = [2.0 ** rng.integers(-3, 3, (*lead, *s)).astype("f4") for s in ((3, 2), (5, 4))]
    given = [lhs, rhs, *scales]

    def shape(array: Any) -> str:
        return f"f32[{','.join(map(str, array.shape))}]"

    result = f"f32[{','.join(map(str, (*lead, 3, 5)))}]"
    config = (
        '{"gemm_backend_config":{"alpha_real":1,"beta":0,"scale_mode":2,"dot_dimension_numbers":'
        f'{{"lhs_contracting_dimensions":["{rank}"],"rhs_contracting_dimensions":["{rank}"],'
        f'"lhs_batch_dimensions":{dims},"rhs_batch_dimensions":{dims}}}}}}}'
    )
    operands = ", ".join(f"{shape(a)} {name}" for a, name in zip(given, "abst", strict=True))
    module = mlirhlo.parse(
        f"({result}, s8[96]) custom-call({operands}), "
        f'custom_call_target="__cublas$lt$matmul$mx", backend_config={config}'
    )
    found = module(*given)[0]
    wide = [
        np.repeat(s, a.shape[-1] // s.shape[-1], -1) for a, s in zip(given, scales, strict=False)
    ]
    want = (lhs * wide[0]) @ np.swapaxes(rhs * wide[1], -1, -2)
    np.testing.assert_allclose(np.asarray(found), want, atol=1e-4)


def test_scales_that_do_not_fit_are_told() -> None:
    module = mlirhlo.parse(
        "f32[3,5] custom-call(f32[3,8] a, f32[5,8] b, f32[3,3] s, f32[5,4] t), "
        'custom_call_target="__cublas$lt$matmul$mx"'
    )
    with pytest.raises(HloError, match="HLO0355"):
        module(*(np.ones(s, "f4") for s in ((3, 8), (5, 8), (3, 3), (5, 4))))


SEED_CALL = 'custom-call(), custom_call_target="GetRngSeed"'


@pytest.mark.parametrize("seed", [0, 42, 2**63 + 5])
def test_the_seed_of_the_run(seed: int) -> None:
    module = mlirhlo.parse(f"u64[] {SEED_CALL}")
    assert run_module(module.op, (), machine=Machine(seed=seed)) == np.uint64(seed)
    assert np.asarray(mlirhlo.compile(module)()) == np.asarray(module())
    assert SEED_CALL in module.opt("constant_folding,algsimp,cse").as_text(), "it is no constant"


@pytest.mark.parametrize("shape", ["s32[]", "u64[1]", "(u64[])"])
def test_a_seed_of_another_kind_is_refused(shape: str) -> None:
    """By XLA:CPU too: no operands, a scalar, u64."""
    module = mlirhlo.parse(f"{shape} {SEED_CALL}")
    for run in (module, mlirhlo.compile(module)):
        with pytest.raises(HloError, match="HLO0355"):
            run()
