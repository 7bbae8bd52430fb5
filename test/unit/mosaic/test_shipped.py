"""TPU kernels that come with JAX: run, through the stages, and as machine code, against JAX's own references."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import mlirhlo
from mlirhlo.mosaic.decode import config_of, read_kernel
from mlirhlo.mosaic.fast import program_of
from mlirhlo.mosaic.interpreter import Kernel
from mlirhlo.mosaic.pipeline import run_pipeline
from mlirhlo.mosaic.target import GENERATIONS, check_target

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from unit.mosaic.kernels import numbers  # noqa: E402
from unit.mosaic.test_pallas import lowered  # noqa: E402

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

SHIPPED: dict[str, Callable[[], tuple[Callable[..., Any], list[Any], Callable[..., Any]]]] = {}
"""By name: the function with the kernel, its arrays, and the reference."""


def shipped(make: Any) -> Any:
    SHIPPED[make.__name__] = make
    return make


def library(name: str) -> Any:
    return import_module(f"jax.experimental.pallas.ops.tpu.{name}")


@shipped
def flash_attention() -> Any:
    found = library("flash_attention")
    sizes = found.BlockSizes(block_q=128, block_k_major=128, block_k=128, block_b=1)
    arrays = [numbers(1, 2, 256, 128, seed=seed) for seed in range(3)]
    return (
        lambda q, k, v: found.flash_attention(q, k, v, causal=True, block_sizes=sizes),
        arrays,
        lambda q, k, v: found.mha_reference(q, k, v, None, None, causal=True),
    )


@shipped
def splash_attention() -> Any:
    kernels = library("splash_attention.splash_attention_kernel")
    masks = library("splash_attention.splash_attention_mask")
    mask = masks.MultiHeadMask([masks.CausalMask((256, 256))] * 2)
    sizes = kernels.BlockSizes(block_q=128, block_kv=128, block_kv_compute=128)
    attend = kernels.make_splash_mha_single_device(mask, block_sizes=sizes)

    def reference(q: Any, k: Any, v: Any) -> Any:
        logits = jnp.einsum("hqd,hkd->hqk", q, k, precision="highest")
        logits = jnp.where(np.tril(np.ones((256, 256), bool)), logits, -np.inf)
        return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(logits), v, precision="highest")

    return attend, [numbers(2, 256, 128, seed=seed) * 0.3 for seed in range(3)], reference


@shipped
def grouped_matmul() -> Any:
    """Its grid has a bound that is an operand."""
    gmm = library("megablox.gmm").gmm
    sizes = np.array([30, 98, 0, 128], np.int32)
    return (
        lambda a, b, n: gmm(a, b, n, preferred_element_type=jnp.float32, tiling=(128, 128, 128)),
        [numbers(256, 128), numbers(4, 128, 256), sizes],
        lambda a, b, n: jax.lax.ragged_dot(a, b, n, precision="highest"),
    )


@shipped
def ragged_paged_attention() -> Any:
    """References reshaped, read as words, and by rows at a distance."""
    kernels = library("ragged_paged_attention.kernel")
    lengths = np.array([40, 64, 17, 0], np.int32)
    pages = np.arange(16, dtype=np.int32).reshape(4, 4)
    queries = np.array([0, 10, 42, 47, 47], np.int32)
    arrays = [
        numbers(64, 8, 128, dtype=jnp.bfloat16) * jnp.bfloat16(0.2),
        numbers(16, 16, 4, 128, dtype=jnp.bfloat16),
        lengths,
        pages,
        queries,
        np.array([3], np.int32),
    ]

    def reference(*_: Any) -> Any:
        return kernels.ref_ragged_paged_attention(*map(jnp.asarray, arrays), sliding_window=20)

    def attend(*given: Any) -> Any:
        return kernels.ragged_paged_attention(
            *given, num_kv_pages_per_block=2, num_queries_per_block=16, sliding_window=20
        )[:47]

    return attend, arrays, reference


@pytest.mark.parametrize("name", SHIPPED)
def test_runs_as_its_reference_in_every_way(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, arrays, reference = SHIPPED[name]()
    module = mlirhlo.parse(lowered(function, arrays))
    wanted = np.asarray(reference(*arrays), np.float32)
    limit = 3e-2 if arrays[0].dtype.itemsize == 2 else 2e-5
    scale = np.abs(wanted).max()

    def check() -> None:
        got = np.asarray(module(*arrays), np.float32)
        np.testing.assert_allclose(got / scale, wanted / scale, rtol=limit, atol=limit)

    check()
    compiled: list[str] = []

    def run(self: Kernel, inputs: Any, results: Any, **more: Any) -> Any:
        given, made = (
            [(tuple(shape), spelled(np.dtype(dtype))) for shape, dtype in group]
            for group in ([(np.shape(one), one.dtype) for one in inputs], results)
        )
        body = self.op.parent_op()
        assert isinstance(body, ModuleOp)
        text = program_of(body, given, made, more.get("aliases"))
        found = mlirhlo.compile(mlirhlo.parse(text))(*inputs)
        compiled.append(text)
        return found if isinstance(found, tuple | list) else [found]

    with monkeypatch.context() as patched:
        patched.setattr(Kernel, "run", run)
        check()
    assert compiled


def spelled(dtype: np.dtype[Any]) -> str:
    names = {"float32": "f32", "bfloat16": "bf16", "int32": "i32", "int8": "i8"}
    return names[dtype.name]


@pytest.mark.parametrize("name", SHIPPED)
def test_goes_through_the_stages_and_onto_every_chip(name: str) -> None:
    function, arrays, _ = SHIPPED[name]()
    module = mlirhlo.parse(lowered(function, arrays))
    calls = [op for op in module.hlo.op.walk() if op.name == "hlo.custom_call"]
    options = import_module("mlirhlo.interp.custom_calls").options_of
    bodies = [config_of(options(op), name).body for op in calls]
    assert bodies
    for body in bodies:
        kernel = read_kernel(body, name)
        for generation in GENERATIONS:
            assert check_target(kernel, generation).is_accepted
        run_pipeline(kernel)
