"""What stands around kernels under JAX's names, and what kernels take in more forms: scalars, no results, None."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirhlo
from mlirhlo import mosaic as jax
from mlirhlo import mosaic as pl
from mlirhlo.diagnostics import HloError
from mlirhlo.mosaic import lax, nn, random, tree
from mlirhlo.mosaic import numpy as jnp
from mlirhlo.mosaic import tpu as pltpu
from mlirhlo.mosaic.sharding import Mesh, PartitionSpec

PLATFORMS = pytest.mark.parametrize("platform", ["interpreter", "cpu"])
X = np.arange(8 * 128, dtype=np.float32).reshape(8, 128)


@PLATFORMS
def test_a_kernel_without_results(platform: str) -> None:
    def kernel(x_ref: Any) -> None:
        x_ref[...] = x_ref[...] + 1

    for empty in ((), []):
        assert pl.kernel_call(kernel, empty, platform=platform)(X) == empty
    program = mlirhlo.parse(pl.kernel_call(kernel, ()).lower(X).to_stablehlo())
    assert program(X) == ()
    assert mlirhlo.compile(program)(X) == ()


@PLATFORMS
@pytest.mark.parametrize("spec", [None, pl.BlockSpec(memory_space=pltpu.SMEM)])
def test_scalars_in_smem(spec: Any, platform: str) -> None:
    def kernel(a_ref: Any, x_ref: Any, o_ref: Any, s_ref: Any) -> None:
        assert a_ref.shape == s_ref.shape == ()
        o_ref[...] = x_ref[...] * a_ref[...]
        s_ref[()] = a_ref[()] + 1

    types = pl.ShapeDtypeStruct.like(X), pl.ShapeDtypeStruct((), np.float32)
    call = pl.kernel_call(
        kernel, types, in_specs=[spec, None], out_specs=(None, spec), platform=platform
    )
    product, more = call(np.float32(2), X)
    assert np.array_equal(product, 2 * X)
    assert np.shape(more) == ()
    assert more == 3


def test_a_scalar_in_vmem_is_refused() -> None:
    spec = pl.BlockSpec(memory_space=pltpu.VMEM)
    with pytest.raises(HloError, match=r"HLO0726.*a_ref is a scalar in vmem"):
        pl.kernel_call(lambda a_ref, o_ref: None, X, in_specs=[spec])(np.float32(1))


@PLATFORMS
def test_none_is_an_empty_leaf(platform: str) -> None:
    def kernel(
        n: Any, n_ref: Any, x_ref: Any, pair: Any, o_ref: Any, p_ref: Any, s: Any, t: Any
    ) -> None:
        assert n is None
        assert p_ref is None
        assert s is None
        assert pair["b"] is None
        t[...] = x_ref[...] + n_ref[0].astype(np.float32)
        o_ref[...] = t[...] + pair["a"][...]

    rows = pl.BlockSpec((8, 128), lambda i, a, b: (i + b[0] if a is None else -1, 0))
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=2,
        grid=(2,),
        in_specs=[rows, {"a": rows, "b": None}],
        out_specs=[rows, None],
        scratch_shapes=[None, pltpu.VMEM((8, 128), np.float32)],
    )
    x = np.concatenate([X, X])
    call = pl.pallas_call(
        kernel, [pl.ShapeDtypeStruct.like(x), None], grid_spec=spec, platform=platform
    )
    found, nothing = call(None, np.zeros(1, np.int32), x, {"a": x, "b": None})
    assert nothing is None
    assert np.array_equal(found, 2 * x)


@PLATFORMS
def test_functions_of_coordinates_and_parts(platform: str) -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        v = x_ref[...]
        across, down = jnp.meshgrid(jnp.arange(128), jnp.arange(8))
        slopes = jnp.gradient(v)
        diagonal = jnp.diag(v[:, :8], 1)
        matrix = jnp.diag(diagonal, -1)
        twice = jax.vmap(lambda row: row * 2)(v)
        also = jax.vmap(lambda row, w: row * w, in_axes=(1, None), out_axes=1)(v[:, :8], 2.0)
        sums = jnp.vectorize(lambda row: row.sum(), signature="(n)->()")(v)
        plain = jnp.vectorize(lambda p, q: p + q)(v, v)
        assert jnp.result_type(v, 1.0) == np.float32
        assert jnp.result_type(jnp.bfloat16, np.int32) == jnp.bfloat16
        parts = (across + down).astype(v.dtype) + slopes[0] + slopes[1] + twice + plain
        o_ref[...] = parts + sums[:, None] + matrix.sum() + diagonal.sum() + also.sum()

    across, down = np.meshgrid(np.arange(128), np.arange(8))
    slopes, diagonal = np.gradient(X), np.diag(X[:, :8], 1)
    expected = across + down + slopes[0] + slopes[1] + 4 * X + X.sum(1)[:, None]
    expected += 2 * diagonal.sum() + 2 * X[:, :8].sum()
    np.testing.assert_allclose(pl.kernel_call(kernel, X, platform=platform)(X), expected, rtol=1e-6)


def test_memory_and_semaphores_by_type() -> None:
    def kernel(x_ref: Any, o_ref: Any, buffer: Any, copied: Any, more: Any) -> None:
        assert more.shape == (2,)
        copy = pltpu.make_async_copy(x_ref, buffer, copied)
        copy.start()
        copy.wait()
        o_ref[...] = buffer[...]

    scratch = [
        pl.MemoryRef(pl.ShapeDtypeStruct.like(X), pltpu.VMEM),
        pltpu.SEMAPHORE((), pltpu.dma_semaphore),
        pltpu.SEMAPHORE((2,), pl.semaphore),
    ]
    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    call = pl.kernel_call(kernel, X, in_specs=[anywhere], scratch_shapes=scratch)
    assert np.array_equal(call(X), X)
    assert pl.empty_ref_like(scratch[0])[...].shape == X.shape
    assert isinstance(pltpu.VMEM((8,), np.float32), pl.MemoryRef)
    assert str(pltpu.CoreType.TC) == "tc"


def test_functions_on_arrays() -> None:
    with jax.named_scope("around"):
        exact = np.exp(X - X.max(-1, keepdims=True))
    np.testing.assert_allclose(nn.softmax(X), exact / exact.sum(-1, keepdims=True), rtol=1e-5)
    assert lax.fori_loop(0, 3, lambda i, c: c + i, 0) == 3
    assert lax.while_loop(lambda c: c < 10, lambda c: 2 * c, 1) == 16
    assert lax.cond(X[0, 0] > 0, lambda: 1, lambda: 2) == 2
    carry, sums = lax.scan(lambda c, v: (c + v, c + v), np.float32(0), X[:, 0])
    assert carry == X[:, 0].sum()
    assert np.array_equal(sums, np.cumsum(X[:, 0]))
    product = lax.dot_general(X, X, (((1,), (1,)), ((), ())))
    np.testing.assert_allclose(product, X @ X.T, rtol=1e-6)
    ids = lax.broadcast_in_dim(np.arange(8, dtype=np.int32), (2, 8, 4), (1,))
    assert np.array_equal(ids[1, :, 3], np.arange(8))
    assert np.array_equal(lax.dynamic_slice(X, (7, 1), (2, 2)), X[6:, 1:3])
    assert np.array_equal(jax.vmap(lambda a, b: a @ b, (0, None))(X[None], X.T)[0], X @ X.T)
    assert jnp.sort(X, axis=1).dtype == np.float32
    assert jnp.arange(3).dtype == np.int32
    assert jnp.int8(np.float32([300, -3.5, np.nan])).tolist() == [127, -3, 0]
    assert jnp.float32 == np.float32
    assert np.dtype(jnp.bfloat16) == jnp.bfloat16
    assert isinstance(X, jax.Array)
    repeated = jnp.repeat(np.arange(3), np.array([2, 0, 1]), total_repeat_length=5)
    assert repeated.tolist() == [0, 0, 2, 2, 2]


def test_trees_of_classes() -> None:
    @tree.register_pytree_node_class
    class Pair:
        def __init__(self, a: Any, b: Any) -> None:
            self.a, self.b = a, b

        def tree_flatten(self) -> tuple[Any, Any]:
            return (self.a,), self.b

        @classmethod
        def tree_unflatten(cls, b: Any, values: Any) -> Any:
            (a,) = values
            return cls(a, b)

    doubled = tree.map(lambda v: 2 * v, {"x": Pair(3, "name"), "y": None})
    assert (doubled["x"].a, doubled["x"].b, doubled["y"]) == (6, "name", None)


def test_a_function_on_the_shards_of_devices() -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] * (lax.axis_index("y") + 1).astype(np.float32)

    def local(x: Any) -> tuple[Any, Any]:
        found = pl.kernel_call(kernel, pl.ShapeDtypeStruct.like(x))(x)
        return found, lax.psum(x, "x") + lax.axis_size("y") * lax.all_gather(x, "y").sum(0)

    mesh = Mesh(np.arange(4).reshape(2, 2), ("x", "y"))
    split = PartitionSpec(("x", "y"))
    run = jax.shard_map(local, mesh=mesh, in_specs=split, out_specs=(split, split))
    x = np.arange(32 * 128, dtype=np.float32).reshape(32, 128)
    scaled, joined = run(x)
    parts = x.reshape(2, 2, 8, 128)
    assert np.array_equal(scaled, (parts * np.array([1, 2])[:, None, None]).reshape(x.shape))
    expected = parts.sum(0, keepdims=True) + 2 * parts.sum(1, keepdims=True)
    np.testing.assert_allclose(joined, expected.reshape(x.shape), rtol=1e-6)
    with pytest.raises(HloError, match=r"HLO0726.*split 4 times"):
        run(x[:30])


@pytest.mark.oracle
def test_keys_draw_what_jax_draws() -> None:
    theirs = pytest.importorskip("jax").random
    mine, key = random.key(42), theirs.key(42)
    assert np.array_equal(random.split(mine, 3), theirs.key_data(theirs.split(key, 3)))
    assert np.array_equal(random.fold_in(mine, 7), theirs.key_data(theirs.fold_in(key, 7)))
    assert np.array_equal(random.bits(mine, (5, 3)), theirs.bits(key, (5, 3)))
    assert np.array_equal(random.uniform(mine, (5, 300)), theirs.uniform(key, (5, 300)))
    assert np.array_equal(random.randint(mine, (50,), -5, 99), theirs.randint(key, (50,), -5, 99))
    drawn = random.normal(mine, (50, 30)), theirs.normal(key, (50, 30))
    np.testing.assert_allclose(*drawn, rtol=1e-5, atol=1e-6)
