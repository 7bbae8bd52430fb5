"""What kernels of public projects use beside the common names: each as Pallas has it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mlirhlo import mosaic as pl
from mlirhlo.diagnostics import HloError
from mlirhlo.mosaic import lax, nn
from mlirhlo.mosaic import numpy as jnp
from mlirhlo.mosaic import tpu as pltpu

F32 = np.float32
ROWS = pl.ShapeDtypeStruct((8, 128), F32)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(8, 128)).astype(F32)
Y = RNG.normal(size=(8, 128)).astype(F32)


def both(kernel: Callable[..., Any], out: Any, *arrays: Any, **more: Any) -> Any:
    """The result of the simulator, which that of machine code equals."""
    found = pl.kernel_call(kernel, out, **more)(*arrays)
    compiled = pl.kernel_call(kernel, out, **more, platform="cpu")(*arrays)
    np.testing.assert_allclose(compiled, found, rtol=1e-5, atol=1e-5)
    return found


@pytest.mark.parametrize("spelling", [pl.RevisitMode.ANY, "any"])
def test_the_grid_returns_to_blocks_and_finds_what_it_left(spelling: Any) -> None:
    def body(x_ref: Any, o_ref: Any) -> None:
        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...]

    x = RNG.normal(size=(24, 384)).astype(F32)
    found = both(
        body,
        pl.ShapeDtypeStruct((8, 384), F32),
        x,
        grid=(3, 3),
        in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec(
            (8, 128), lambda i, j: (0, j), pipeline_mode=pl.Buffered(1, revisit=spelling)
        ),
    )
    np.testing.assert_allclose(found, x.reshape(3, 8, 384).sum(0), rtol=1e-6)


def test_what_a_revisited_block_never_held_is_told() -> None:
    def body(o_ref: Any) -> None:
        o_ref[...] += 1.0

    spec = pl.BlockSpec(
        (8, 128), lambda i, j: (0, j), pipeline_mode=pl.Buffered(1, revisit=pl.RevisitMode.ANY)
    )
    call = pl.kernel_call(body, pl.ShapeDtypeStruct((8, 256), F32), grid=(2, 2), out_specs=spec)
    with pytest.raises(HloError) as caught:
        call()
    assert caught.value.code == "HLO0731"


def test_one_of_several_references() -> None:
    def body(*refs: Any) -> None:
        *inputs, o_ref = refs

        def scoped(sems: Any) -> None:
            @pl.loop(0, 3)
            def _(i: Any) -> None:
                source = pl.select_ref(i, *inputs).at[pl.ds(0, 8)]
                sem = pl.select_ref(i, sems.at[0], sems.at[1], sems.at[0])
                pltpu.async_copy(source, o_ref.at[pl.ds(i * 8, 8)], sem, priority=1).wait()

        pl.run_scoped(scoped, pltpu.SemaphoreType.DMA((2,)))

    arrays = [RNG.normal(size=(16, 128)).astype(F32) for _ in range(3)]
    out = pl.ShapeDtypeStruct((24, 128), F32)
    found = both(body, out, *arrays, in_specs=pl.ANY, out_specs=pl.ANY)
    np.testing.assert_array_equal(found, np.concatenate([array[:8] for array in arrays]))
    for generation in ("v5e", "v6e"):
        pl.kernel_call(body, out, in_specs=pl.ANY, out_specs=pl.ANY).lower(*arrays).check(
            generation
        )


def test_loads_and_stores_by_a_chosen_reference() -> None:
    def body(n_ref: Any, x_ref: Any, y_ref: Any, a_ref: Any, b_ref: Any) -> None:
        a_ref[...] = b_ref[...] = jnp.zeros((8, 128))
        pl.select_ref(n_ref[0], a_ref, b_ref)[...] = pl.select_ref(n_ref[0], x_ref, y_ref)[...]
        assert pl.select_ref(0, x_ref, y_ref) is x_ref

    call = pl.kernel_call(body, [ROWS, ROWS], in_specs=[pltpu.SMEM, pltpu.VMEM, pltpu.VMEM])
    first, second = call(np.array([1], np.int32), X, Y)
    np.testing.assert_array_equal(first, 0 * X)
    np.testing.assert_array_equal(second, Y)


def test_references_of_several_kinds_are_no_choice() -> None:
    def body(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
        o_ref[...] = pl.select_ref(0, x_ref, y_ref)[...]

    with pytest.raises(HloError, match="one kind") as caught:
        pl.kernel_call(body, ROWS)(X, X[:4])
    assert caught.value.code == "HLO0725"


def test_operands_in_trees() -> None:
    def body(scalars: Any, refs: Any, o_ref: Any) -> None:
        offset, (times, nothing) = scalars
        assert nothing is None
        here, there = refs["here"], refs["there"]
        o_ref["sum"][...] = here[...] + there[0][...] + offset[0]
        o_ref["product"][...] = here[...] * there[0][...] * times[0]

    specs = {name: pl.BlockSpec((8, 128), lambda i, _: (0, 0)) for name in ("sum", "product")}
    call = pl.kernel_call(
        body,
        {"sum": ROWS, "product": ROWS},
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(2,),
            in_specs=[
                {
                    "here": pl.BlockSpec((8, 128), lambda i, s: (s[1][0][0] - 3, 0)),
                    "there": [pl.BlockSpec((8, 128), lambda i, s: (0, 0))],
                }
            ],
            out_specs=specs,
        ),
    )
    scalars = (np.array([2], np.int32), (np.array([3], np.int32), None))
    found = call(scalars, {"here": X, "there": [Y]})
    np.testing.assert_allclose(found["sum"], X + Y + 2, rtol=1e-6)
    np.testing.assert_allclose(found["product"], X * Y * 3, rtol=1e-6)


def test_lists_of_numbers_are_arrays() -> None:
    def body(s_ref: Any, o_ref: Any) -> None:
        o_ref[...] = jnp.full((8, 128), s_ref[1], jnp.float32)

    call = pl.kernel_call(body, ROWS, in_specs=[pltpu.SMEM])
    np.testing.assert_array_equal(call(np.array([1, 2], np.float32)), np.full((8, 128), 2, F32))


def test_views_of_words_in_other_rows() -> None:
    def body(x_ref: Any, o_ref: Any) -> None:
        lines = x_ref.reshape(-1, 128)
        o_ref[...] = jnp.concat([lines[at::4] for at in (2, 0, 3, 1)], axis=-1)

    x = RNG.normal(size=(16, 1, 512)).astype(F32)
    out = pl.ShapeDtypeStruct((16, 512), F32)
    found = both(body, out, x)
    lines = x.reshape(-1, 128)
    np.testing.assert_array_equal(found, np.concatenate([lines[a::4] for a in (2, 0, 3, 1)], -1))
    pl.kernel_call(body, out).lower(x).check("v5e")


def test_a_semaphore_that_nothing_is_added_to() -> None:
    def body(o_ref: Any, sem: Any) -> None:
        pl.semaphore_signal(sem, 0)
        pl.semaphore_wait(sem, 0)
        o_ref[...] = jnp.ones((8, 128))

    call = pl.kernel_call(body, ROWS, scratch_shapes=[pltpu.SemaphoreType.REGULAR])
    np.testing.assert_array_equal(call(), np.ones((8, 128)))


def test_loops_with_what_they_carry() -> None:
    def body(x_ref: Any, o_ref: Any) -> None:
        @pl.loop(0, 4, init_carry=x_ref[...])
        def last(i: Any, carry: Any) -> Any:
            return carry + i.astype(jnp.float32)

        @pl.with_scoped(pltpu.VMEM((8, 128), jnp.float32))
        def doubled(times: float, buffer: Any) -> Any:
            buffer[...] = last * times
            return buffer[...]

        with pl.named_scope("store"):
            o_ref[...] = doubled(2.0)

    np.testing.assert_allclose(both(body, ROWS, X), 2 * (X + 6), rtol=1e-6)


def test_numbers_types_and_shapes() -> None:
    assert jnp.issubdtype(jnp.bfloat16, jnp.floating)
    assert jnp.issubdtype(jnp.int4, jnp.signedinteger)
    assert not jnp.issubdtype(jnp.uint8, jnp.signedinteger)
    assert jnp.issubdtype(np.float32, np.float32)
    assert float(jnp.finfo(jnp.float8_e4m3fn).max) == 448
    assert jnp.iinfo(jnp.int8).min == -128
    assert [pl.next_power_of_2(n) for n in (0, 1, 5, 8)] == [1, 1, 8, 8]
    assert pl.align_to(13, 8) == 16
    with pytest.raises(ValueError, match="negative"):
        pl.next_power_of_2(-1)

    def body(x_ref: Any, o_ref: Any) -> None:
        assert jnp.shape(x_ref) == (2, 128, 8)
        one, other = jnp.unstack(x_ref[...])
        total = jnp.array(0, dtype=jnp.int32)
        total += 3
        o_ref[...] = one.mT + other.swapaxes(0, 1) + jnp.asarray(total, jnp.float32)

    x = RNG.normal(size=(2, 128, 8)).astype(F32)
    np.testing.assert_allclose(both(body, ROWS, x), x[0].T + x[1].T + 3, rtol=1e-6)


def test_sums_of_another_type() -> None:
    def body(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = jnp.sum(x_ref[...], axis=1, dtype=jnp.float32, keepdims=True)

    x = RNG.integers(0, 9, (8, 128)).astype(np.int32)
    found = both(body, pl.ShapeDtypeStruct((8, 1), F32), x)
    np.testing.assert_array_equal(found, x.sum(1, keepdims=True))


def test_four_bits_without_a_sign() -> None:
    def body(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...].astype(jnp.int32)

    x = (np.arange(1024).reshape(8, 128) % 16).astype(ml_dtypes.uint4)
    found = both(body, pl.ShapeDtypeStruct((8, 128), np.int32), x)
    np.testing.assert_array_equal(found, np.arange(1024).reshape(8, 128) % 16)


def test_pairs_in_words_without_a_sign() -> None:
    def body(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
        words = pltpu.pack_elementwise([x_ref[...], y_ref[...]], packed_dtype=jnp.bfloat16)
        o_ref[...] = words

    found = both(body, pl.ShapeDtypeStruct((8, 128), np.uint32), X, Y)
    low, high = (v.astype(ml_dtypes.bfloat16).view(np.uint16).astype(np.uint32) for v in (X, Y))
    np.testing.assert_array_equal(found, low | high << 16)


def test_a_pipeline_with_scratch_and_trees() -> None:
    def inner(operands: Any, o_ref: Any, sums: Any) -> None:
        k = pl.program_id(1)

        @pl.when(k == 0)
        def _() -> None:
            sums[...] = jnp.zeros_like(sums)

        sums[...] += jnp.dot(
            operands["a"][...], operands["b"][...], precision=lax.Precision.HIGHEST
        )

        @pl.when(k == pl.num_programs(1) - 1)
        def _() -> None:
            o_ref[...] = sums[...]

    def body(a_ref: Any, b_ref: Any, o_ref: Any, sums: Any) -> None:
        pltpu.emit_pipeline(
            inner,
            grid=(2, 2),
            in_specs=(
                {
                    "a": pl.BlockSpec((16, 128), lambda i, k: (i, k)),
                    "b": pl.BlockSpec((128, 128), lambda i, k: (k, 0)),
                },
            ),
            out_specs=pl.BlockSpec((16, 128), lambda i, k: (i, 0)),
            dimension_semantics=(pltpu.PARALLEL, pltpu.ARBITRARY),
        )({"a": a_ref, "b": b_ref}, o_ref, scratches=[sums])

    a = RNG.normal(size=(32, 256)).astype(F32)
    b = RNG.normal(size=(256, 128)).astype(F32)
    more: Any = {
        "in_specs": pl.ANY,
        "out_specs": pl.ANY,
        "scratch_shapes": [pltpu.VMEM((16, 128), F32)],
    }
    found = both(body, pl.ShapeDtypeStruct((32, 128), F32), a, b, **more)
    np.testing.assert_allclose(found, a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("cores", [1, 2])
def test_cores_share_a_pipeline(cores: int) -> None:
    x = RNG.normal(size=(64, 128)).astype(F32)

    def inner(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] + pl.program_id(0).astype(jnp.float32)

    def body(x_ref: Any, o_ref: Any) -> None:
        rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
        pltpu.emit_pipeline(
            inner,
            grid=(8,),
            in_specs=rows,
            out_specs=rows,
            core_axis_name="core",
            dimension_semantics=("parallel",),
        )(x_ref, o_ref)

    mesh = pltpu.create_tensorcore_mesh("core", num_cores=cores)
    kernel = pl.kernel(body, pl.ShapeDtypeStruct(x.shape, F32), mesh=mesh).lower(x)
    wanted = x + np.repeat(np.arange(8), 8)[:, None]
    np.testing.assert_allclose(kernel(x), wanted, rtol=1e-6)


def test_cores_that_share_nothing() -> None:
    def body(x_ref: Any, o_ref: Any) -> None:
        rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
        pltpu.emit_pipeline(
            lambda a, b: None, grid=(8,), in_specs=rows, out_specs=rows, core_axis_name="core"
        )(x_ref, o_ref)

    mesh = pltpu.create_tensorcore_mesh("core", num_cores=2)
    x = np.zeros((64, 128), F32)
    with pytest.raises(HloError, match="share no dimension") as caught:
        pl.kernel(body, pl.ShapeDtypeStruct(x.shape, F32), mesh=mesh)(x)
    assert caught.value.code == "HLO0726"


def of_rows(function: Callable[[Any], Any]) -> Any:
    """A function of one vector, in a kernel, on the simulator and as machine code."""

    def body(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = function(x_ref[...] * 4)

    return both(body, ROWS, X)


def test_softmax_gelu_and_one_hot() -> None:
    x = X.astype(np.float64) * 4
    shares = np.exp(x - x.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    np.testing.assert_allclose(of_rows(nn.softmax), shares, atol=1e-6)
    np.testing.assert_allclose(of_rows(nn.log_softmax), np.log(shares), atol=1e-4)
    tanh = x * 0.5 * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(of_rows(nn.gelu), tanh, atol=1e-5)
    np.testing.assert_allclose(of_rows(nn.silu), x / (1 + np.exp(-x)), atol=1e-5)
    sums = np.log(np.exp(x).sum(1, keepdims=True))
    found = of_rows(lambda v: nn.logsumexp(v, axis=1, keepdims=True) + 0 * v)
    np.testing.assert_allclose(found, sums + 0 * x, atol=1e-5)

    def body(i_ref: Any, o_ref: Any) -> None:
        o_ref[...] = nn.one_hot(i_ref[...][:, 0], 128)

    places = RNG.integers(0, 128, (8, 1)).astype(np.int32)
    np.testing.assert_array_equal(both(body, ROWS, places), np.eye(128, dtype=F32)[places[:, 0]])


def test_what_the_compiler_is_told() -> None:
    def body(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...]

    rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
    params = pltpu.CompilerParams(
        dimension_semantics=(pltpu.GridDimensionSemantics.PARALLEL,),
        has_side_effects=pltpu.SideEffectType.DATAFLOW_SIDE_EFFECTING,
        shape_invariant_numerics=False,
    )
    call = pl.kernel_call(
        body, ROWS, grid=(1,), in_specs=[rows], out_specs=rows, compiler_params=params
    )
    text = call.lower(X).to_stablehlo()
    assert 'xla_allow_dce_side_effecting_op = "true"' in text
    assert "has_side_effect = true" in text
    assert "shape_invariant_numerics\\22: false" in text
    assert "dimension_semantics<parallel>" in call.lower(X).as_text()
    np.testing.assert_array_equal(call(X), X)
    pure = pltpu.CompilerParams(has_side_effects=pltpu.SideEffectType.PURE)
    quiet = pl.kernel_call(body, ROWS, compiler_params=pure).lower(X).to_stablehlo()
    assert "side_effect" not in quiet
    assert "shape_invariant" not in quiet


def test_all_modules_are_under_one_name() -> None:
    code = """
from mlirhlo import mosaic as jax
assert jax.numpy.tanh and jax.lax.rsqrt and jax.nn.silu and jax.tpu.VMEM and jax.ShapeDtypeStruct
try:
    jax.softmax
except AttributeError as problem:
    assert "it is in mlirhlo.mosaic.nn" in str(problem), problem
"""
    subprocess.run([sys.executable, "-c", code], check=True)


ELEMENTWISE = [
    "celu",
    "elu",
    "gelu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softmax",
    "softplus",
    "squareplus",
    "standardize",
    "swish",
]


@pytest.mark.oracle
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_as_jax_nn(name: str) -> None:
    jax = pytest.importorskip("jax")
    wanted = np.asarray(getattr(jax.nn, name)(X * 4))
    np.testing.assert_allclose(of_rows(getattr(nn, name)), wanted, rtol=2e-5, atol=2e-5)


@pytest.mark.oracle
def test_names_of_jax_nn_with_arguments() -> None:
    jax = pytest.importorskip("jax")
    for of in (
        lambda n, x: n.gelu(x, approximate=False),
        lambda n, x: n.celu(x, 0.5),
        lambda n, x: n.elu(x, 0.5),
        lambda n, x: n.softmax(x, axis=0, where=x > 0),
        lambda n, x: n.standardize(x, axis=0),
        lambda n, x: n.leaky_relu(x, 0.2),
        lambda n, x: n.logsumexp(x, axis=0, keepdims=True) + x,
        lambda n, x: n.glu(x, axis=0)[:1] + x,
    ):
        wanted = np.asarray(of(jax.nn, jax.numpy.asarray(X * 4)))
        np.testing.assert_allclose(of_rows(lambda v, of=of: of(nn, v)), wanted, atol=2e-5)
