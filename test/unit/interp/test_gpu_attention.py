"""cuDNN's attention, as JAX lowers it for CUDA, against the same attention without cuDNN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirhlo
from mlirhlo.diagnostics import HloError

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax._src.cudnn import fused_attention_stablehlo as fused  # noqa: E402

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

SHAPES = {"q": (2, 6, 4, 8), "k": (2, 10, 2, 8), "v": (2, 10, 2, 8)}
LENGTHS = {"query_seq_lengths": [6, 3], "key_value_seq_lengths": [4, 10]}


@pytest.fixture(autouse=True)
def a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX asks for cuDNN's version before it lowers."""
    monkeypatch.setattr(fused, "check_cudnn_version", lambda: 91300)
    monkeypatch.setattr(fused, "check_compute_capability", lambda capability: True)
    monkeypatch.setattr(fused, "check_is_flash_attention_fp8", lambda *_, **__: None)


def values(dtype: Any = jnp.bfloat16, **shapes: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(0)
    return [jnp.asarray(rng.normal(size=s), dtype) for s in {**SHAPES, **shapes}.values()]


def lowered(function: Callable[..., Any], *arguments: Any) -> mlirhlo.Module:
    text = jax.jit(function).trace(*arguments).lower(lowering_platforms=("cuda",)).as_text("hlo")
    assert "__cudnn$fmha" in text
    return mlirhlo.parse(text)


def compare(run: Callable[..., Any], *arguments: Any) -> None:
    """`run(implementation)` gives the function; by interpreter and machine code as by XLA."""
    wanted = jax.tree.leaves(run("xla")(*arguments))
    module = lowered(run("cudnn"), *arguments)
    given = [np.asarray(a) for a in arguments]
    for found in (module(*given), mlirhlo.compile(module)(*given)):
        results = found if isinstance(found, tuple) else (found,)
        assert len(results) == len(wanted)
        for got, want in zip(results, wanted, strict=True):
            got, want = (np.asarray(x).astype(np.float32) for x in (got, want))
            np.testing.assert_allclose(got, want, atol=0.03 * max(1, np.abs(want).max()))


@pytest.mark.parametrize(
    "options",
    [
        {"scale": 0.5},
        {"is_causal": True, "local_window_size": (3, 0)},
        {**LENGTHS, "is_causal": True},
    ],
)
def test_forward_and_backward(options: dict[str, Any]) -> None:
    options = {k: jnp.array(v) if k in LENGTHS else v for k, v in options.items()}

    def run(implementation: str) -> Any:
        def loss(q: Any, k: Any, v: Any) -> Any:
            made = jax.nn.dot_product_attention(
                q, k, v, implementation=implementation, **options
            ).astype(jnp.float32)
            return (made * jnp.cos(jnp.arange(made.size).reshape(made.shape))).sum(), made

        return jax.value_and_grad(loss, (0, 1, 2), has_aux=True)

    compare(run, *values())


@pytest.mark.parametrize("shape", [(2, 4, 6, 10), (1, 1, 6, 10)])
def test_bias_and_its_gradient(shape: tuple[int, ...]) -> None:
    def run(implementation: str) -> Any:
        def loss(q: Any, k: Any, v: Any, bias: Any) -> Any:
            made = jax.nn.dot_product_attention(q, k, v, bias, implementation=implementation)
            return (made.astype(jnp.float32) ** 2).sum(), made

        return jax.value_and_grad(loss, (0, 1, 2, 3), has_aux=True)

    compare(run, *values(jnp.float16, bias=shape))


def test_mask_as_bias() -> None:
    mask = jnp.asarray(np.random.default_rng(1).random((2, 1, 6, 10)) < 0.7)

    def run(implementation: str) -> Any:
        return lambda q, k, v: jax.nn.dot_product_attention(
            q, k, v, mask=mask, implementation=implementation
        )

    compare(run, *values())


@pytest.mark.parametrize("layout", ["BTNH", "BNTH"])
def test_statistics_and_layouts(layout: str) -> None:
    """The second result is the logarithm of the sum of exponentials."""
    q, k, v = values(k=(2, 10, 4, 8), v=(2, 10, 4, 8))
    turned = [x.swapaxes(1, 2) if layout == "BNTH" else x for x in (q, k, v)]

    def run(q: Any, k: Any, v: Any) -> Any:
        return fused.dot_product_attention(
            q, k, v, scale=0.25, mask_type=fused.MaskType.CAUSAL, qkv_layout=layout,
            return_residual=True,
        )  # fmt: skip

    o, stat = lowered(run, *turned)(*(np.asarray(x) for x in turned))
    scores = 0.25 * jnp.einsum("btnh,bsnh->bnts", q, k, preferred_element_type=jnp.float32)
    scores = jnp.where(jnp.tril(jnp.ones((6, 10), bool)), scores, -jnp.inf)
    sums = jax.nn.logsumexp(scores, axis=-1)
    np.testing.assert_allclose(stat, sums, atol=1e-5)
    want = jnp.einsum("bnts,bsnh->btnh", jnp.exp(scores - sums[..., None]), v.astype(jnp.float32))
    got = np.asarray(o).astype(np.float32)
    got = got.swapaxes(1, 2) if layout == "BNTH" else got
    np.testing.assert_allclose(got, want, atol=0.02)


def test_pages() -> None:
    """Keys and values in pages of 5 tokens, in another order."""
    q, k, v = values(k=(2, 10, 4, 8), v=(2, 10, 4, 8))
    table = np.array([[2, 0], [1, 3]], np.int32)
    pages = []
    for x in (k, v):
        made = np.zeros((4, 5, 4, 8), x.dtype)
        made[table.reshape(-1)] = np.asarray(x).reshape(4, 5, 4, 8)
        pages.append(made)
    lengths = np.array([6, 6], np.int32), np.array([7, 10], np.int32)

    def paged(q: Any, k: Any, v: Any, lq: Any, lk: Any, table: Any) -> Any:
        table = table.reshape(2, 1, 2, 1)
        return fused.paged_attention(q, k, v, lq, lk, table, table, scale=0.5)

    arguments = (np.asarray(q), *pages, *lengths, table)
    got = lowered(paged, *arguments)(*arguments)
    want = jax.nn.dot_product_attention(
        q, k, v, scale=0.5, query_seq_lengths=lengths[0], key_value_seq_lengths=lengths[1]
    )
    np.testing.assert_allclose(
        np.asarray(got).astype(np.float32), want.astype(jnp.float32), atol=0.02
    )


def test_packed_sequences() -> None:
    """Three segments in two rows: each by itself, forward and backward."""
    q, k, v = values(q=(2, 8, 2, 8), k=(2, 8, 2, 8), v=(2, 8, 2, 8))
    lengths = jnp.array([[3, 5], [6, -1]], jnp.int32)
    offsets = jnp.array([[0, 3, 8], [0, 6, -1]], jnp.int32)
    group = jnp.array([[0] * 3 + [1] * 5, [2] * 6 + [3] * 2])

    def weighted(made: Any) -> Any:
        made = made.astype(jnp.float32) * (group < 3)[..., None, None]
        return (made * jnp.cos(jnp.arange(made.size).reshape(made.shape))).sum(), made

    def packed(q: Any, k: Any, v: Any) -> Any:
        return weighted(
            fused.dot_product_attention(
                q, k, v, q_seqlen=lengths, kv_seqlen=lengths, q_offsets=offsets,
                kv_offsets=offsets, scale=0.3, mask_type=fused.MaskType.PADDING_CAUSAL,
            )
        )  # fmt: skip

    def plain(q: Any, k: Any, v: Any) -> Any:
        mask = (group[:, None, :, None] == group[:, None, None, :]) & (group < 3)[:, None, :, None]
        mask &= (group < 3)[:, None, None, :]
        return weighted(jax.nn.dot_product_attention(q, k, v, mask=mask, scale=0.3, is_causal=True))

    gradients = [jax.value_and_grad(f, (0, 1, 2), has_aux=True) for f in (packed, plain)]
    compare(lambda name: gradients[0 if name == "cudnn" else 1], q, k, v)


def test_dropout_and_what_does_not_fit() -> None:
    def run(q: Any, k: Any, v: Any) -> Any:
        return fused.dot_product_attention(q, k, v, dropout_rate=0.5, seed=1)

    given = values(k=(2, 10, 4, 8), v=(2, 10, 4, 8))
    module = lowered(run, *given)
    with pytest.raises(HloError, match="dropout takes random numbers") as problem:
        module(*map(np.asarray, given))
    assert problem.value.code == "HLO0355"
    text = (
        module.as_text()
        .replace('"dropout_rate": 0.5', '"dropout_rate": 0')
        .replace('"lhs_batch_dimensions": ["0", "2"]', '"lhs_batch_dimensions": ["0"]')
    )
    with pytest.raises(HloError, match="dimension_numbers do not fit"):
        mlirhlo.parse(text)(*map(np.asarray, given))


@pytest.mark.parametrize("causal", [False, True])
def test_eight_bits(causal: bool) -> None:
    """Factors that cancel give what attention of the same numbers without them gives, forward and backward."""
    rng = np.random.default_rng(0)
    shape = (2, 6, 4, 8)
    q, k, v, do = (jnp.asarray(rng.normal(size=shape), jnp.float8_e4m3fn) for _ in range(4))
    factors: dict[str, Any] = dict.fromkeys(fused.fp8_params_keys, 1.0)
    factors |= {"scale_s": 256.0, "descale_s": 1 / 256, "scale_dP": 64.0, "descale_dP": 1 / 64}
    factors |= {"descale_q": 0.5, "descale_k": 2.0, "scale_o": 4.0, "descale_o": 0.25}
    factors = {key: jnp.full((1, 1, 1, 1), x, jnp.float32) for key, x in factors.items()}

    def eight(q: Any, k: Any, v: Any) -> Any:
        return fused._dot_product_attention_fp8(
            q, k, v, factors, 0.1, causal, fused.AttentionLayout.BTNH.value, 91300
        )

    def plain(q: Any, k: Any, v: Any) -> Any:
        return jax.nn.dot_product_attention(q, k, v, scale=0.1, is_causal=causal)

    def gradient(q: Any, k: Any, v: Any, do: Any) -> Any:
        made, pull = jax.vjp(eight, q, k, v)
        return made, pull((do, *(jnp.zeros_like(x) for x in made[1:])))

    wide = [x.astype(jnp.float32) for x in (q, k, v, do)]
    want, pull = jax.vjp(plain, *wide[:3])
    results = lowered(gradient, q, k, v, do)(*map(np.asarray, (q, k, v, do)))
    o, of_p, of_o, dq, dk, dv = (np.asarray(x).astype(np.float32) for x in results)
    near: dict[str, Any] = {
        "atol": 0.1,
        "rtol": 0.1,
    }  # three bits of each number, several numbers a sum
    np.testing.assert_allclose(o / 4, want, **near)
    np.testing.assert_allclose(of_o.item(), np.abs(want).max(), rtol=0.02)
    assert 0 < of_p.item() <= 1
    # Real queries are half of what is given, real keys twice that.
    for got, wanted in zip((dq / 2, dk * 2, dv), pull(wide[3]), strict=True):
        np.testing.assert_allclose(got, wanted, **near)
