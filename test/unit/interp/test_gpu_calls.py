"""Targets of JAX's GPU plugins and of XLA:GPU against a plain computation of the same meaning."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mlirhlo
from mlirhlo.diagnostics import HloError

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.experimental import rnn, sparse  # noqa: E402
from jax.experimental.sparse import _lowerings as sparse_lowerings  # noqa: E402

pytestmark = pytest.mark.oracle


def lowered(function: Callable[..., Any], *arguments: Any, target: str) -> mlirhlo.Module:
    text = jax.jit(function).trace(*arguments).lower(lowering_platforms=("cuda",)).as_text("hlo")
    assert f'"{target}"' in text
    return mlirhlo.parse(text)


def arrays(value: Any) -> list[Any]:
    return [np.asarray(v) for v in (value if isinstance(value, tuple) else (value,))]


def check(module: mlirhlo.Module, arguments: Any, wanted: Any, within: float = 1e-5) -> None:
    """Interpreter and machine code give what is wanted."""
    for run in (module, mlirhlo.compile(module)):
        got = arrays(run(*map(np.asarray, arguments)))
        assert len(got) == len(wanted)
        for a, b in zip(got, wanted, strict=True):
            assert a.dtype == np.asarray(b).dtype
            np.testing.assert_allclose(*(_wide(x) for x in (a, b)), atol=within, rtol=within)


def _wide(x: Any) -> Any:
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


# ---------------------------------------------------------------- linear algebra


def systems(dtype: type) -> list[list[Any]]:
    rng = np.random.default_rng(0)
    found = []
    for kind in range(4):
        low, mid, high = (rng.normal(size=(3, 6)) for _ in range(3))
        if kind == 1:
            low, mid = low * 0, mid * (np.arange(6) != 3)
        if kind == 2:  # an eigenvalue taken off: inverse iteration
            full = np.diag(mid[0]) + np.diag(low[0, 1:], 1) + np.diag(low[0, 1:], -1)
            mid, low = mid - np.linalg.eigvalsh(full)[2], np.roll(low, 0)
            high = np.roll(low, -1, axis=-1)
        if kind == 3:
            low, mid, high = low * 0, mid * 0, high * 0
        right = rng.normal(size=(3, 6, 2))
        found.append([x.astype(dtype) for x in (low, mid, high, right)])
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_perturbed_tridiagonal_systems(dtype: type) -> None:
    """By jaxlib's own routine, bit for bit nearly: solutions of singular systems are large."""

    def solve(*given: Any) -> Any:
        return jax.lax.linalg.tridiagonal_solve(*given, perturb_singular=True)

    for given in systems(dtype):
        want = jax.jit(solve)(*given)
        text = jax.jit(solve).lower(*given).as_text("hlo")
        for module in (
            mlirhlo.parse(text),
            lowered(solve, *given, target="cu_tridiagonal_solve_perturbed"),
        ):
            got = np.asarray(module(*given))
            scale = np.abs(want).max(axis=1, keepdims=True)
            np.testing.assert_allclose(got / scale, want / scale, atol=2e-3)


@pytest.mark.slow
def test_symmetric_product() -> None:
    rng = np.random.default_rng(0)
    a, c = (rng.normal(size=s).astype(np.float32) for s in ((2, 4, 3), (2, 4, 4)))

    def product(a: Any, c: Any) -> Any:
        return jax.lax.linalg.symmetric_product(a, c, alpha=2.0, beta=0.5, symmetrize_output=True)

    module = lowered(product, a, c, target="cusolver_syrk_ffi")
    check(module, (a, c), [jax.jit(product)(a, c)])


# ---------------------------------------------------------------- sparse matrices


class Descriptors:
    """Descriptors as jaxlib's plugin packs them: no GPU is asked for the size of its workspace."""

    def __getattr__(self, name: str) -> Callable[..., tuple[int, bytes]]:
        def build(*given: Any) -> tuple[int, bytes]:
            numbers = [int(n) for n in given if not isinstance(n, (np.dtype, type))]
            rows, columns, *rest = numbers
            matrix = struct.pack("<7i", 0, 2, rows, columns, rest[0], 1, 0)
            if "matvec" in name:
                return 8, matrix + struct.pack("<5i", 0, columns, 0, rows, rest[1])
            if "matmat" in name:
                return 8, matrix + bytes(40) + struct.pack("<i", rest[2])
            return 8, matrix

        return build


@pytest.fixture
def descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_lowerings, "_get_module", lambda prefix: Descriptors())


@pytest.mark.usefixtures("descriptors")
@pytest.mark.parametrize("kind", ["coo", "csr"])
def test_sparse_products(kind: str) -> None:
    rng = np.random.default_rng(0)
    full = rng.normal(size=(300, 5)).astype(np.float32) * (rng.random((300, 5)) < 0.5)
    made = getattr(sparse, kind.upper()).fromdense(
        jnp.asarray(full), nse=int(np.count_nonzero(full)) + 9
    )
    parts = (made.data, made.row, made.col) if kind == "coo" else (
        made.data, made.indices, made.indptr,
    )  # fmt: skip
    for transpose in (False, True):
        for width in ((), (3,)):
            x = rng.normal(size=((300 if transpose else 5), *width)).astype(np.float32)
            primitive = getattr(sparse_lowerings, f"{kind}_sp{'mm' if width else 'mv'}_p")

            def product(*given: Any, p: Any = primitive, t: bool = transpose) -> Any:
                return p.bind(*given, transpose=t, shape=(300, 5))

            target = f"cusparse_{kind}_{'matmat' if width else 'matvec'}_ffi"
            module = lowered(product, *parts, x, target=target)
            check(module, (*parts, x), [(full.T if transpose else full) @ x], 1e-4)


def sparse_call(target: str, result: str, given: str) -> mlirhlo.Module:
    return mlirhlo.parse(
        f'({result}, s8[8]) custom-call({given}), custom_call_target="{target}", '
        'api_version=API_VERSION_TYPED_FFI, backend_config={opaque = "\\00\\80"}'
    )


@pytest.mark.parametrize("vendor", ["cu", "hip"])
def test_sparse_and_dense(vendor: str) -> None:
    rng = np.random.default_rng(0)
    full = (rng.normal(size=(4, 6)) * (rng.random((4, 6)) < 0.4)).astype(np.float32)
    for kind, last in (("coo", 9), ("csr", 5)):
        made = getattr(sparse, kind.upper()).fromdense(jnp.asarray(full), nse=9)
        parts = (made.data, made.row, made.col) if kind == "coo" else (
            made.data, made.indices, made.indptr,
        )  # fmt: skip
        shapes = f"f32[9], s32[9], s32[{last}]"
        to = sparse_call(f"{vendor}sparse_{kind}_fromdense_ffi", shapes, "f32[4,6] x")
        *got, _ = arrays(to(full))
        used = np.count_nonzero(full)
        for a, b in zip(got, parts, strict=True):
            count = last if b.shape[0] == 5 else used
            np.testing.assert_array_equal(a[:count], b[:count])
        named = ", ".join(f"{s} a{k}" for k, s in enumerate(shapes.split(", ")))
        back = sparse_call(f"{vendor}sparse_{kind}_todense_ffi", "f32[4,6]", named)
        np.testing.assert_array_equal(arrays(back(*map(np.asarray, parts)))[0], full)


def test_sparse_solve() -> None:
    rng = np.random.default_rng(0)
    full = (rng.normal(size=(6, 6)) * (rng.random((6, 6)) < 0.5) + 3 * np.eye(6)).astype("f4")
    made = sparse.CSR.fromdense(jnp.asarray(full))
    b = rng.normal(size=6).astype("f4")
    given = (made.data, made.indices, made.indptr, b)
    module = lowered(sparse.linalg.spsolve, *given, target="cusolver_csrlsvqr_ffi")
    check(module, given, [np.linalg.solve(full, b)])


# ---------------------------------------------------------------- recurrent networks


def network(target: str, result: str, given: list[Any], both: bool, **changed: Any) -> Any:
    """A call of an LSTM of 3 inputs, 4 hidden, 2 layers, 2 sequences of 5 steps."""
    opaque = struct.pack("<iiiiifiiqq", 3, 4, 2, 2, 5, changed.get("dropout", 0.0), both, 1, 8, 8)
    text = "".join(f"\\{byte:02X}" for byte in opaque)
    types = {np.dtype("f4"): "f32", np.dtype("i4"): "s32"}
    named = ", ".join(
        f"{types[a.dtype]}[{','.join(map(str, a.shape))}] a{k}" for k, a in enumerate(given)
    )
    return mlirhlo.parse(
        f'({result}) custom-call({named}), custom_call_target="{target}", '
        f'api_version=API_VERSION_TYPED_FFI, backend_config={{opaque = "{text}"}}'
    )


@pytest.mark.slow
def test_lstm() -> None:
    """Forward and backward against JAX's reference; MIOpen's weights stand in another order."""
    rng = np.random.default_rng(0)
    both, ways = True, 2
    lengths = jnp.array([5, 3], jnp.int32)
    x, h, c = (
        jnp.asarray(rng.normal(size=s), jnp.float32)
        for s in ((2, 5, 3), (2 * ways, 2, 4), (2 * ways, 2, 4))
    )
    count = rnn.get_num_params_in_lstm(3, 4, 2, both)
    w = jnp.asarray(rng.normal(size=count) * 0.4, jnp.float32)

    def reference(x: Any, h: Any, c: Any, w: Any) -> Any:
        parts = rnn.unpack_lstm_weights(w, 3, 4, 2, both)
        return rnn.lstm_ref(x, h, c, *parts, lengths, 3, 4, 2, 0.0, both)

    def both_ways(gradients: Any, *given: Any) -> Any:
        made, pull = jax.vjp(reference, *given)
        return made, pull(gradients)

    gradients = [
        jnp.asarray(rng.normal(size=s), jnp.float32) for s in ((2, 5, 4 * ways), h.shape, c.shape)
    ]
    wanted, pulled = jax.jit(both_ways)(tuple(gradients), x, h, c, w)
    state = f"f32[{2 * ways},2,4]"
    given = [np.asarray(v) for v in (x, h, c, w, lengths)]
    result = f"f32[2,5,{4 * ways}], {state}, {state}, f32[8], f32[8]"
    forward = network("cudnn_rnn_ffi", result, given, both)
    y, *_ = got = arrays(forward(*given))
    for a, b in zip(got[:3], wanted, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)

    before = [np.asarray(v) for v in (*gradients, x, h, c, w, y, np.zeros(8, "f4"))]
    before += [np.zeros(count, "f4"), np.asarray(lengths)]
    result = f"f32[2,5,3], {state}, {state}, f32[{count}], f32[8]"
    backward = network("cudnn_rnn_bwd_ffi", result, before, both)
    for a, b in zip(arrays(backward(*before))[:4], pulled, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)

    cells = rnn.unpack_lstm_weights(w, 3, 4, 2, both)
    swapped = [
        np.concatenate([np.split(np.asarray(m), 4)[k] for k in (0, 1, 3, 2)]).reshape(-1)
        for pair in (0, 2)
        for layer in range(2 * ways)
        for m in (cells[pair][layer], cells[pair + 1][layer])
    ]
    given[3] = np.concatenate(swapped)
    result = f"f32[2,5,{4 * ways}], {state}, {state}, f32[8], f32[8]"
    other = network("hipdnn_rnn_ffi", result, given, both)
    np.testing.assert_allclose(arrays(other(*given))[0], y, atol=1e-6)


def test_lstm_with_dropout_is_refused() -> None:
    given = [np.zeros((2, 5, 3), "f4"), *[np.zeros((2, 2, 4), "f4")] * 2]
    given += [np.zeros(rnn.get_num_params_in_lstm(3, 4, 2, False), "f4"), np.array([5, 3], "i4")]
    result = "f32[2,5,4], f32[2,2,4], f32[2,2,4], f32[8], f32[8]"
    module = network("cudnn_rnn_ffi", result, given, False, dropout=0.5)
    with pytest.raises(HloError, match="dropout takes random numbers"):
        module(*given)


# ---------------------------------------------------------------- blocks with scales


def test_block_scaled_dot() -> None:
    """As JAX asks for it, and as XLA hands it to cuDNN: scales in tiles."""
    rng = np.random.default_rng(0)
    e4m3, e8m0 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu
    a, b = (rng.normal(size=(2, n, 64)).astype(e4m3) for n in (5, 7))
    scales = [np.exp2(rng.integers(-3, 3, (2, n, 2))).astype(e8m0) for n in (5, 7)]

    def product(a: Any, b: Any, sa: Any, sb: Any) -> Any:
        return jax.nn.scaled_matmul(a, b, sa, sb, preferred_element_type=jnp.float32)

    module = lowered(product, a, b, *scales, target="__op$block_scaled_dot")
    wide = [
        x.astype("f4") * np.repeat(s.astype("f4"), 32, axis=-1)
        for x, s in zip((a, b), scales, strict=True)
    ]
    want = np.einsum("bmk,bnk->bmn", *wide)
    check(module, (a, b, *scales), [want])

    tiles = []
    for scale in scales:
        padded = np.ones((2, 128, 4), e8m0)
        padded[:, : scale.shape[1], :2] = scale
        turned = padded.reshape(2, 1, 4, 32, 1, 4).transpose(0, 1, 4, 3, 2, 5)
        tiles.append(turned.reshape(2, 128, 4))
    call = mlirhlo.parse(
        "(f32[2,5,7], u8[16]) custom-call(f8e4m3fn[2,5,64] a, f8e4m3fn[2,7,64] b, "
        'f8e8m0fnu[2,128,4] s, f8e8m0fnu[2,128,4] t), custom_call_target="__cudnn$blockScaledDot"'
    )
    np.testing.assert_allclose(arrays(call(a, b, *tiles))[0], want, rtol=1e-6)


# ---------------------------------------------------------------- convolutions with a graph


CONVOLUTION = "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_o01i->b01f"
GRAPHS = {
    "1:[f32]conv();": ("", "f32", "c"),
    "1:[f32]conv();2:[f32]scale(1);3:[f32]add(2);4:[f8e4m3fn]relu(3);5:[f32]amax(3);": (
        "f32[] s, f32[2,6,6,4] z", "f8e4m3fn", "relu(c * s + z)",
    ),
    "1:[f32]conv();2:[f32]invscale(1);3:[f8e4m3fn]scale(2);": (
        "f32[] s, f32[] t", "f8e4m3fn", "c / s * t",
    ),
}  # fmt: skip


@pytest.mark.parametrize("graph", GRAPHS)
def test_convolution_with_a_graph(graph: str) -> None:
    more, type_, formula = GRAPHS[graph]
    amax = "amax" in graph
    config = f'{{"cudnn_conv_backend_config": {{"serialized_graph": "{graph}"}}}}'
    operands = ", ".join(filter(None, ("f8e4m3fn[2,6,6,3] x, f8e4m3fn[4,3,3,3] w", more)))
    result = f"{type_}[2,6,6,4], {'f32[], ' if amax else ''}u8[0]"
    module = mlirhlo.parse(
        f"({result}) custom-call({operands}), {CONVOLUTION}, "
        f'custom_call_target="__cudnn$convForwardGraph", backend_config={config}'
    )
    plain = mlirhlo.parse(
        f"f32[2,6,6,4] convolution(f8e4m3fn[2,6,6,3] x, f8e4m3fn[4,3,3,3] w), {CONVOLUTION}"
    )
    rng = np.random.default_rng(0)
    given: list[Any] = [
        (rng.normal(size=s) * 4).astype(ml_dtypes.float8_e4m3fn)
        for s in ((2, 6, 6, 3), (4, 3, 3, 3))
    ]
    c = np.asarray(plain(*given))
    s, t = np.float32(0.5), np.float32(9)
    z = rng.normal(size=c.shape).astype("f4")
    given += {"": [], "f32[] s, f32[] t": [s, t]}.get(more, [s, z])
    want = {"c": c, "c / s * t": c / s * t}.get(formula, np.maximum(c * s + z, 0))
    got, *others, _ = arrays(module(*given))
    if type_ != "f32":
        want = np.clip(want, -448, 448).astype(ml_dtypes.float8_e4m3fn).astype("f4")
    np.testing.assert_allclose(got.astype("f4"), want, rtol=1e-6)
    if amax:
        np.testing.assert_allclose(others[0], np.abs(c * s + z).max(), rtol=1e-6)


def test_graph_that_is_not_known() -> None:
    module = mlirhlo.parse(
        f"(f32[2,6,6,4], u8[0]) custom-call(f32[2,6,6,3] x, f32[4,3,3,3] w), {CONVOLUTION}, "
        'custom_call_target="__cudnn$convForwardGraph", backend_config={"cudnn_conv_backend_config":'
        '{"serialized_graph":"1:[f32]conv();2:[f32]swirl(1);"}}'
    )
    with pytest.raises(HloError, match="'swirl' of its graph") as problem:
        module(np.zeros((2, 6, 6, 3), "f4"), np.zeros((4, 3, 3, 3), "f4"))
    assert problem.value.code == "HLO0355"


def test_convolution_of_vectors() -> None:
    """int8 features in vectors of 32, as XLA writes them, against the same without vectors."""
    text = """HloModule m

ENTRY e {
  x = s8[2,6,6,64] parameter(0)
  a = s8[2,6,6,2,32] bitcast(x)
  at = s8[2,2,6,6,32] transpose(a), dimensions={0,3,1,2,4}
  w = s8[64,3,3,64] parameter(1)
  b = s8[64,3,3,2,32] bitcast(w)
  bt = s8[64,2,3,3,32] transpose(b), dimensions={0,3,1,2,4}
  bias = f32[64] parameter(2)
  r = (s8[64,2,3,3,32], f32[64]) custom-call(bt, bias), custom_call_target="__cudnn$convReorderFilterAndBias"
  f = s8[64,2,3,3,32] get-tuple-element(r), index=0
  g = f32[64] get-tuple-element(r), index=1
  c = (s8[2,2,6,6,32], u8[8]) custom-call(at, f, g), window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01, custom_call_target="__cudnn$convBiasActivationForward", backend_config={"cudnn_conv_backend_config":{"activation_mode":"kRelu","conv_result_scale":0.0625}}
  y = s8[2,2,6,6,32] get-tuple-element(c), index=0
  z = s8[2,6,6,2,32] transpose(y), dimensions={0,2,3,1,4}
  ROOT o = s8[2,6,6,64] bitcast(z)
}"""  # noqa: E501
    plain = """(s8[2,6,6,64], u8[8]) custom-call(s8[2,6,6,64] x, s8[64,3,3,64] w, f32[64] bias),
 window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_o01i->b01f, custom_call_target="__cudnn$convBiasActivationForward",
 backend_config={"cudnn_conv_backend_config":{"activation_mode":"kRelu","conv_result_scale":0.0625}}"""
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-2, 3, s).astype("i1") for s in ((2, 6, 6, 64), (64, 3, 3, 64)))
    bias = rng.normal(size=64).astype("f4")
    want = arrays(mlirhlo.parse(plain.replace("\n", ""))(x, w, bias))[0]
    assert want.any()
    np.testing.assert_array_equal(mlirhlo.parse(text)(x, w, bias), want)


# ---------------------------------------------------------------- products of groups


@pytest.mark.parametrize("beta", [0, 1])
def test_grouped_products(beta: int) -> None:
    """`__cublas$lt$groupedMatmul` against JAX's ragged dot."""
    rng = np.random.default_rng(0)
    lhs, rhs, c = (rng.normal(size=s).astype("f4") for s in ((8, 5), (3, 5, 4), (8, 4)))
    sizes = np.array([3, 0, 4], "i4")
    config = """{"grouped_gemm_backend_config":{"gemm_backend_config":{"alpha_real":1,"beta":BETA},
"ragged_dot_dimension_numbers":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],
"rhs_contracting_dimensions":["1"],"lhs_batch_dimensions":[],"rhs_batch_dimensions":[]},
"lhs_ragged_dimensions":["0"],"rhs_group_dimensions":["0"]}}}""".replace("BETA", str(beta))
    more = ", f32[8,4] c" if beta else ""
    module = mlirhlo.parse(
        f"(f32[8,4], s8[96]) custom-call(f32[8,5] lhs, f32[3,5,4] rhs, s32[3] sizes{more}), "
        f'custom_call_target="__cublas$lt$groupedMatmul", backend_config={config}'
    )
    given = [lhs, rhs, sizes, *([c] if beta else [])]
    want = np.asarray(jax.lax.ragged_dot(lhs, rhs, sizes)) + beta * c
    np.testing.assert_allclose(arrays(module(*given))[0], want, atol=1e-5)
