"""JAX's TPU kernels, moved over by their imports alone, against the same kernels in Pallas' TPU interpreter."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mlirhlo import mosaic as pl
from mlirhlo.mosaic import tpu as pltpu
from mlirhlo.mosaic.sharding import Mesh

jax = pytest.importorskip("jax")

from unit.mosaic import jax_kernels  # noqa: E402  (reads the jax package)

pytestmark = [pytest.mark.oracle, pytest.mark.slow]


@dataclass(frozen=True)
class Side:
    """One of the two that are compared: where its kernels are, and what its arrays are."""

    load: Callable[[str], Any]
    array: Callable[[Any], Any]


_RANDOM = np.random.default_rng(7)
_DRAWN = [_RANDOM.normal(size=1 << 20).astype(np.float32)]


def floats(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Any:
    return np.roll(_DRAWN[0], 7919 * seed)[: int(np.prod(shape))].reshape(shape).astype(dtype)


def matmul(side: Side, dtype: Any, out: Any) -> Any:
    x, y = (floats(64, 256, seed=1) * 3).astype(dtype), (floats(256, 256, seed=2) * 3).astype(dtype)
    run = side.load("matmul").matmul
    return run(side.array(x), side.array(y), block_shape=(32, 128), block_k=128, out_dtype=out)


def flash(
    side: Side, *, bias: bool, segments: bool, blocks: tuple[int, ...], **options: Any
) -> Any:
    m = side.load("flash_attention")
    q, k, v = (side.array(floats(2, 1, 256, 128, seed=s)) for s in range(3))
    ab = side.array(floats(2, 1, 256, 256, seed=5)) if bias else None
    ids = side.array(np.repeat(np.arange(2, dtype=np.int32), 128)[None].repeat(2, 0))
    return m.flash_attention(
        q,
        k,
        v,
        ab,
        m.SegmentIds(ids, ids) if segments else None,
        block_sizes=m.BlockSizes(*blocks),
        **options,
    )


def flash_backward(side: Side) -> Any:
    m = side.load("flash_attention")
    q, k, v, do = (side.array(floats(1, 2, 256, 128, seed=s)) for s in range(4))
    blocks = m.BlockSizes.get_default(1, 2, 256, 256, 128)
    options = (False, True, 0.1, blocks, False)
    impl = m._flash_attention_impl
    out, *sums = impl(q, k, v, None, None, True, True, 0.1, 1, 128, 128, 128, False)
    return out, *m._flash_attention_bwd(*options, (q, k, v, None, None, out, *sums), do)[:3]


def paged(side: Side, dtype: Any = np.float32, heads: int = 8, **options: Any) -> Any:
    run = side.load("paged_attention.paged_attention_kernel").paged_attention
    lengths = np.array([20, 61, 0, 33], np.int32)
    pages = np.random.default_rng(1).permutation(16).reshape(4, 4).astype(np.int32)
    q = floats(4, heads, 128, dtype=dtype)
    k, v = (floats(2, 16, 16, 128, dtype=dtype, seed=s) for s in (1, 2))
    out = run(*map(side.array, (q, k, v, lengths, pages)), pages_per_compute_block=2, **options)
    return np.asarray(out)[[0, 1, 3]]  # nobody writes the result of a sequence of no length


def paged_quantized(side: Side) -> Any:
    m = side.load("paged_attention.paged_attention_kernel")
    q = side.load("paged_attention.quantization_utils")
    k, v = (q.quantize_to_int8(side.array(floats(2, 8, 32, 128, seed=s))) for s in (1, 2))
    lengths, pages = np.array([40, 70], np.int32), np.arange(8, dtype=np.int32).reshape(2, 4)
    given = map(side.array, (lengths, pages))
    return m.paged_attention(side.array(floats(2, 8, 128)), k, v, *given, pages_per_compute_block=2)


def ragged(side: Side, dtype: Any = np.float32, **options: Any) -> Any:
    run = side.load("ragged_paged_attention.kernel").ragged_paged_attention
    pages = np.random.default_rng(2).permutation(15)[:12].reshape(3, 4).astype(np.int32)
    arrays = (
        floats(32, 4, 128, dtype=dtype),
        floats(16, 8, 4, 128, dtype=dtype, seed=1),
        np.array([20, 30, 0], np.int32),
        pages,
        np.array([0, 10, 32, 32], np.int32),
        np.array([2], np.int32),
    )
    blocks = {"num_kv_pages_per_block": 2, "num_queries_per_block": 16}
    return run(*map(side.array, arrays), **blocks, **options)


def gmm(side: Side, sizes: tuple[int, ...] = (30, 100, 0, 126), **options: Any) -> Any:
    run = side.load("megablox.gmm").gmm
    transposed = options.get("transpose_rhs", False)
    rhs = floats(4, 128, 256, seed=1)
    rhs = np.ascontiguousarray(rhs.swapaxes(1, 2)) if transposed else rhs
    if options.pop("existing", False):
        options["existing_out"] = side.array(floats(256, 256, seed=3))
    if (first := options.pop("first_group", None)) is not None:
        options["group_offset"] = side.array(np.array(first, np.int32))
        rhs = rhs[:2]
    given = map(side.array, (floats(256, 128), rhs, np.array(sizes, np.int32)))
    return run(*given, **options)


def tgmm(side: Side, sizes: tuple[int, ...]) -> Any:
    run = side.load("megablox.gmm").tgmm
    given = (floats(128, 256), floats(256, 128, seed=1), np.array(sizes, np.int32))
    return run(*map(side.array, given))


def splash(
    side: Side, kind: str, *, is_mqa: bool = False, segments: bool = False, **options: Any
) -> Any:
    m = side.load("splash_attention.splash_attention_kernel")
    masks = side.load("splash_attention.splash_attention_mask")
    shape = (256, 256)
    mask = {
        "causal": lambda: masks.CausalMask(shape),
        "local": lambda: masks.LocalMask(shape, (64, 32), 0),
        "numpy": lambda: masks.NumpyMask(
            np.tril(floats(*shape, seed=9) < 1.5) | np.eye(256, dtype=bool)
        ),
        "full": lambda: masks.FullMask(shape),
    }[kind]()
    make = m.make_splash_mqa_single_device if is_mqa else m.make_splash_mha_single_device
    blocks = m.BlockSizes(128, 128, 128, 128, 128, 128, 128, 128)
    kernel = make(masks.MultiHeadMask([mask] * 2), block_sizes=blocks, **options)
    q, k, v = (side.array(floats(2, 256, 128, seed=s) / 4) for s in range(3))
    ids = side.array(np.repeat(np.arange(2, dtype=np.int32), 128))
    given = (m.SegmentIds(ids, ids),) if segments else ()
    return kernel(q, *((k[0], v[0]) if is_mqa else (k, v)), *given)


def splash_backward(side: Side) -> Any:
    m = side.load("splash_attention.splash_attention_kernel")
    masks = side.load("splash_attention.splash_attention_mask")
    blocks = m.BlockSizes(128, 128, 128, 128, 128, 128, 128, 128)
    mask = masks.MultiHeadMask([masks.CausalMask((256, 256))] * 2)
    kernel = m.make_splash_mha_single_device(mask, block_sizes=blocks)
    q, k, v, do = (side.array(floats(2, 256, 128, seed=s) / 4) for s in range(4))
    infos = kernel.fwd_mask_info, kernel.dq_mask_info, kernel.dkv_mask_info
    value = m.DEFAULT_MASK_VALUE
    out, kept = m._splash_attention_fwd(
        *infos,
        q,
        k,
        v,
        None,
        None,
        False,
        value,
        False,
        blocks,
        None,
        kernel.kwargs["mask_function"],
    )
    rest = (False, value, False, blocks, None, kernel.kwargs["mask_function"], None, False)
    return out, *m._splash_attention_bwd(*rest, kept, do)[3:6]


F32, BF16 = np.float32, ml_dtypes.bfloat16
CASES: dict[str, Callable[[Side], Any]] = {
    "matmul_f32": lambda s: matmul(s, F32, None),
    "matmul_bf16": lambda s: matmul(s, BF16, F32),
    "matmul_s8": lambda s: matmul(s, np.int8, np.int32),
    "flash": lambda s: flash(s, bias=False, segments=False, blocks=(128, 128, 128, 1)),
    "flash_causal": lambda s: flash(
        s, bias=True, segments=True, blocks=(128, 256, 128, 2), causal=True, sm_scale=0.125
    ),
    "flash_one_step": lambda s: flash(s, bias=True, segments=True, blocks=(128, 256, 256, 1)),
    "flash_backward": flash_backward,
    "paged": paged,
    "paged_steps": lambda s: paged(s, inline_seq_dim=False, attn_logits_soft_cap=2.0),
    "paged_groups_of_8": lambda s: paged(s, BF16, heads=16),
    "paged_quantized": paged_quantized,
    "ragged": ragged,
    "ragged_options": lambda s: ragged(s, sm_scale=0.2, sliding_window=7, soft_cap=2.0),
    "ragged_bf16": lambda s: ragged(s, BF16),
    "gmm": gmm,
    "gmm_transposed": lambda s: gmm(s, transpose_rhs=True, tiling=(64, 128, 128)),
    "gmm_existing": lambda s: gmm(s, existing=True),
    "gmm_shard": lambda s: gmm(s, first_group=1),
    "tgmm": lambda s: tgmm(s, (30, 100, 0, 126)),
    "tgmm_aligned": lambda s: tgmm(s, (128, 0, 128, 0)),
    "splash_causal": lambda s: splash(s, "causal"),
    "splash_local_segments": lambda s: splash(s, "local", segments=True),
    "splash_numpy": lambda s: splash(s, "numpy", attn_logits_soft_cap=3.0),
    "splash_full_mqa": lambda s: splash(s, "full", is_mqa=True),
    "splash_residuals": lambda s: splash(s, "causal", save_residuals=True),
    "splash_backward": splash_backward,
}


def leaves(tree: Any) -> list[Any]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def pallas(name: str) -> ModuleType:
    return importlib.import_module(f"jax.experimental.pallas.ops.tpu.{name}")


def references(name: str) -> list[Any]:
    """What the package's own reference gives; Pallas' interpreters do not take this kernel."""
    module = pallas("ragged_paged_attention.kernel")
    run = "ragged_paged_attention"
    blocks = ("num_kv_pages_per_block", "num_queries_per_block")

    def reference(*arrays: Any, **options: Any) -> Any:
        kept = {name: value for name, value in options.items() if name not in blocks}
        return module.ref_ragged_paged_attention(*arrays, **kept)

    known = SimpleNamespace(**{run: reference})
    return leaves(CASES[name](Side(lambda _: known, jax.numpy.asarray)))


@cache
def in_pallas(name: str) -> list[Any]:
    from jax.experimental import pallas as theirs
    from jax.experimental.pallas import tpu

    if name.startswith("ragged"):
        return references(name)
    if name.startswith("paged"):
        with tpu.force_tpu_interpret_mode():
            return leaves(CASES[name](Side(pallas, jax.numpy.asarray)))
    call = theirs.pallas_call
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(theirs, "pallas_call", lambda *a, **o: call(*a, **{**o, "interpret": True}))
        return leaves(CASES[name](Side(pallas, jax.numpy.asarray)))


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], ModuleType]:
    folder: Path = tmp_path_factory.mktemp("moved")
    return lambda name: jax_kernels.load(name, folder)


@pytest.mark.parametrize("platform", ["interpreter", "cpu"])
@pytest.mark.parametrize("name", sorted(CASES))
def test_as_pallas_interprets_it(
    name: str, platform: str, moved: Callable[[str], ModuleType]
) -> None:
    with pl.default_platform(platform):
        got = leaves(CASES[name](Side(moved, np.asarray)))
    expected = in_pallas(name)
    assert len(got) == len(expected)
    for mine, theirs in zip(got, expected, strict=True):
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
        step = 2.0**-6 if theirs.dtype.itemsize == 2 else 1e-4
        step = 0 if theirs.dtype.kind in "iu" else step
        np.testing.assert_allclose(
            mine.astype(np.float64), theirs.astype(np.float64), rtol=step, atol=step * 2
        )


@pytest.mark.parametrize("platform", ["interpreter", "cpu"])
def test_all_gather(platform: str, moved: Callable[[str], ModuleType]) -> None:
    x = floats(4 * 16, 128)
    mesh = Mesh(np.arange(4), ("x",))
    with pl.default_platform(platform):
        assert np.array_equal(moved("all_gather").all_gather(x, mesh=mesh, axis_name="x"), x)


def test_two_cores_share_the_heads(moved: Callable[[str], ModuleType]) -> None:
    """`megacore_mode`: each core prefetches for itself."""
    side = Side(moved, np.asarray)
    with pltpu.force_tpu_interpret_mode(pl.InterpretParams(num_cores_or_threads=2)):
        got = paged(side, megacore_mode="kv_head")
    assert np.array_equal(got, paged(side))
