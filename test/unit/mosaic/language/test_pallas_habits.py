"""What people write around and in kernels of Pallas means the same here."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mlirhlo import mosaic as jax
from mlirhlo import mosaic as pl
from mlirhlo.diagnostics import HloError
from mlirhlo.mosaic import lax
from mlirhlo.mosaic import numpy as jnp
from mlirhlo.mosaic import tpu as pltpu

X = np.random.default_rng(0).normal(size=(32, 128)).astype(np.float32)
ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))
WHOLE = pl.BlockSpec(memory_space=pl.ANY)


def test_jit_around_and_within() -> None:
    @functools.partial(jax.jit, static_argnames=["rows"])
    def double(x: Any, rows: int = 8) -> Any:
        @jax.jit
        def twice(value: Any) -> Any:
            return value * 2

        def kernel(x_ref: Any, o_ref: Any) -> None:
            o_ref[...] = twice(x_ref[...])

        spec = pl.BlockSpec((rows, 128), lambda i: (i, 0))
        grid = (pl.cdiv(x.shape[0], rows),)
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        call = pl.pallas_call(
            kernel, shape, grid=grid, in_specs=[spec], out_specs=spec, interpret=True
        )
        return call(x)

    np.testing.assert_array_equal(double(X, rows=16), 2 * X)


def test_what_stands_around_a_kernel() -> None:
    """Padding to whole blocks, tables, a derivative's rule: as in the file of a Pallas kernel."""

    @functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
    def scaled(x: Any, block: int) -> Any:
        rows = x.shape[0]
        padded = jnp.pad(x, ((0, -rows % block), (0, 0)))
        table = jnp.multiply(jnp.arange(block)[:, None], jnp.ones((1, 128)))
        assert (table.dtype, jnp.zeros((2,)).dtype) == (np.float32, np.float32)

        def kernel(x_ref: Any, t_ref: Any, o_ref: Any) -> None:
            o_ref[...] = jnp.maximum(x_ref[...], 0) * t_ref[...]

        spec = pl.BlockSpec((block, 128), lambda i: (i, 0))
        call = pl.pallas_call(
            kernel,
            jax.ShapeDtypeStruct(padded.shape, padded.dtype),
            grid=(padded.shape[0] // block,),
            in_specs=[spec, pl.BlockSpec((block, 128), lambda i: (0, 0))],
            out_specs=spec,
        )
        return jnp.concatenate([call(padded, table)[:rows], jnp.zeros_like(x[:1])])

    scaled.defvjp(lambda x, block: (scaled(x, block), None), lambda block, _, d: (d,))
    found = jax.block_until_ready(scaled(X[:20], 8))
    wanted = np.maximum(X[:20], 0) * (np.arange(20) % 8)[:, None]
    np.testing.assert_allclose(found, np.concatenate([wanted, 0 * X[:1]]), rtol=1e-6)


def test_products_around_a_kernel() -> None:
    a, b = X[:8].astype(jnp.bfloat16), X[8:16].astype(jnp.bfloat16)
    found = jnp.einsum("md,nd->mn", a, b, preferred_element_type=jnp.float32, precision="highest")
    np.testing.assert_allclose(found, a.astype(np.float32) @ b.astype(np.float32).T, rtol=1e-5)


def test_methods_of_references() -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        assert len(x_ref) == 32
        o_ref.set(x_ref.get())
        o_ref.addupdate(x_ref.get())
        before = o_ref.swap(x_ref[...] * 5)
        o_ref.set(o_ref.get((0,)) + before[0], (0,))

    found = pl.pallas_call(kernel, X)(X)
    np.testing.assert_allclose(found[0], 7 * X[0], rtol=1e-6)
    np.testing.assert_allclose(found[1:], 5 * X[1:], rtol=1e-6)


def test_python_does_not_go_over_a_reference() -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        for row in x_ref:
            o_ref[...] = row

    with pytest.raises(HloError, match=r"HLO0724.*Python's for") as caught:
        pl.pallas_call(kernel, X).lower(X)
    assert "for row in x_ref" in str(caught.value)


def test_messages() -> None:
    said: list[str] = []

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...]
        pl.debug_print("step {} of {}", pl.program_id(0), pl.num_programs(0))
        pl.debug_print("first", x_ref[0, 0])
        jax.debug.print("row {}", x_ref[0:1, 0:2].astype(jnp.int32))

    pl.pallas_call(kernel, X, grid=(1,), interpret=pl.InterpretParams(log=said.append))(X * 0 + 3)
    assert said == ["step 0 of 1", "first 3.0", "row [[3 3]]"]


def test_a_vector_is_printed_alone() -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        pl.debug_print("{} and", x_ref[...])
        o_ref[...] = x_ref[...]

    with pytest.raises(HloError, match="does not end in its only"):
        pl.pallas_call(kernel, X).lower(X)


def test_copies_of_trees() -> None:
    def kernel(a: Any, b: Any, c: Any, d: Any) -> None:
        pltpu.sync_copy({"x": a, "y": b}, {"x": c, "y": d})

    found = pl.pallas_call(kernel, [X, X], in_specs=[WHOLE] * 2, out_specs=[WHOLE] * 2)(X, 2 * X)
    np.testing.assert_array_equal(found, [X, 2 * X])


def test_copies_replace() -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        pltpu.sync_copy(x_ref, o_ref, add=True)

    with pytest.raises(HloError, match=r"HLO0725.*adds"):
        pl.pallas_call(kernel, X).lower(X)


def _sums(x_ref: Any, o_ref: Any, sums: Any) -> None:
    sums[...] += x_ref[...]
    o_ref[...] = sums[...]


def _summing(**options: Any) -> Any:
    return pl.pallas_call(
        _sums,
        X,
        grid=(4,),
        in_specs=[ROWS],
        out_specs=ROWS,
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
        **options,
    )


def test_memory_that_begins_with_zeros() -> None:
    steps: list[Any] = []
    params = pltpu.InterpretParams(
        uninitialized_memory="zero", grid_point_recorder=lambda *at: steps.append(at)
    )
    wanted = X.reshape(4, 8, 128).cumsum(0).reshape(32, 128)
    np.testing.assert_allclose(_summing(interpret=params)(X), wanted, rtol=1e-5)
    assert steps == [((step,), 0) for step in range(4)]
    with pltpu.force_tpu_interpret_mode(params):
        np.testing.assert_allclose(_summing()(X), wanted, rtol=1e-5)
    with pytest.raises(HloError, match="HLO0731"):
        _summing()(X)


def _race(x_ref: Any, o_ref: Any, sem: Any) -> None:
    copy = pltpu.async_copy(x_ref, o_ref, sem)
    o_ref[0] = x_ref[0]
    copy.wait()


@pytest.mark.parametrize("detect", [True, False])
def test_races_are_looked_for(detect: bool) -> None:
    call = pl.pallas_call(
        _race,
        X,
        scratch_shapes=[pltpu.SemaphoreType.DMA],
        interpret=pltpu.InterpretParams(detect_races=detect),
    )
    if not detect:
        np.testing.assert_array_equal(call(X), X)
        return
    with pytest.raises(HloError, match="HLO0730"):
        call(X)


@pytest.mark.parametrize(
    "options", [{"out_of_bounds_reads": "uninitialized"}, {"dma_execution_mode": "late"}]
)
def test_what_the_simulator_does_not_do(options: dict[str, str]) -> None:
    with pytest.raises(HloError, match=r"HLO0726.*the simulator has no"):
        pltpu.InterpretParams(**options)  # type: ignore[arg-type]


def test_interpret_is_no_text() -> None:
    with pytest.raises(HloError, match=r"HLO0726.*interpret='yes'"):
        pl.pallas_call(_race, X, interpret="yes")


def test_the_limit_of_a_call_holds_with_other_parameters() -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...]

    big = np.ones((4096, 2048), np.float32)
    params = pltpu.CompilerParams(vmem_limit_bytes=100 << 20)
    call = pl.pallas_call(kernel, big, compiler_params=params, interpret=pl.InterpretParams())
    np.testing.assert_array_equal(call(big), big)


@pytest.mark.parametrize("platform", ["interpreter", "cpu"])
@pytest.mark.parametrize("count", [0, 1, 3, 4])
@pytest.mark.parametrize("serial", [False, True])
def test_pipelines_of_as_many_steps_as_the_kernel_finds(
    count: int, serial: bool, platform: str
) -> None:
    def kernel(count_ref: Any, x_ref: Any, _: Any, o_ref: Any) -> None:
        def body(x_block: Any, o_block: Any) -> None:
            o_block[...] = x_block[...] * 2 + pl.num_programs(0).astype(jnp.float32)

        pltpu.emit_pipeline(
            body, grid=(count_ref[0],), in_specs=[ROWS], out_specs=[ROWS], no_pipelining=serial
        )(x_ref, o_ref)

    call = pl.pallas_call(
        kernel,
        X,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1, in_specs=[WHOLE, WHOLE], out_specs=WHOLE
        ),
        input_output_aliases={2: 0},
        platform=platform,
    )
    wanted = np.concatenate([X[: 8 * count] * 2 + count, -X[8 * count :]])
    np.testing.assert_allclose(call(np.array([count], np.int32), X, -X), wanted, rtol=1e-6)


def test_cores_wait_for_each_other() -> None:
    def body(x_ref: Any, o_ref: Any, p_ref: Any, sem: Any) -> None:
        @pltpu.run_on_first_core("core")
        def first() -> None:
            pltpu.sync_copy(x_ref, o_ref)

        pltpu.core_barrier(sem, core_axis_name="core")
        when: Callable[..., Any] = pl.when(lax.axis_index("core") == 1)
        when(lambda: pltpu.sync_copy(o_ref, p_ref))

    call = pl.kernel(
        body,
        [X, X],
        mesh=pltpu.create_tensorcore_mesh("core", num_cores=2),
        scratch_types=[pltpu.SemaphoreType.REGULAR],
    )
    np.testing.assert_array_equal(call(X), [X, X])


def test_matrix_units_by_hand() -> None:
    rng = np.random.default_rng(1)
    w, x = (rng.normal(size=shape).astype(ml_dtypes.bfloat16) for shape in ((256, 256), (16, 256)))

    def kernel(x_ref: Any, w_ref: Any, o_ref: Any) -> None:
        pltpu.matmul_push_rhs(w_ref[...], 0, 0)
        pltpu.matmul_acc_lhs(0, x_ref[...], 0, load_staged_rhs=0)
        o_ref[...] = pltpu.matmul_pop(0, (16, 256), jnp.float32, 0)

    call = pl.pallas_call(kernel, jax.ShapeDtypeStruct((16, 256), jnp.float32))
    wanted = x.astype(np.float32) @ w.astype(np.float32)
    np.testing.assert_allclose(call(x, w), wanted, rtol=1e-3, atol=1e-3)
    call.lower(x, w).check("tpu7x")


def test_what_chips_have() -> None:
    info = pltpu.get_tpu_info("v6e")
    assert (info.generation, info.mxu_column_size, info.num_lanes) == (6, 256, 128)
    assert info.vmem_capacity_bytes == 128 << 20
    assert [info.get_sublane_tiling(t) for t in (jnp.float32, jnp.bfloat16, jnp.int8)] == [8, 8, 32]
    assert info.is_matmul_supported(jnp.int8, jnp.int8)
    assert not info.is_matmul_supported(jnp.int8, jnp.bfloat16)
    pair = pltpu.get_tpu_info_for_chip(pltpu.ChipVersion.TPU_V5P, 2)
    assert pair.is_megacore
    with pytest.raises(HloError, match="HLO0749"):
        pltpu.get_tpu_info_for_chip(pltpu.ChipVersion.TPU_V5E, 2)
    with pytest.raises(HloError, match="HLO0749"):
        pltpu.get_tpu_info("v9")


@pytest.mark.oracle
def test_chips_are_those_of_jax() -> None:
    pallas = pytest.importorskip("jax.experimental.pallas.tpu")
    for chip in pltpu.ChipVersion:
        wanted = pallas.get_tpu_info_for_chip(getattr(pallas.ChipVersion, chip.name), 1)
        found = pltpu.get_tpu_info_for_chip(chip, 1)
        for name in (
            *(
                "generation",
                "num_cores",
                "num_lanes",
                "num_sublanes",
                "mxu_column_size",
                "num_mxus",
            ),
            *(
                "vmem_capacity_bytes",
                "smem_capacity_bytes",
                "cmem_capacity_bytes",
                "num_accumulators",
            ),
            *("hbm_capacity_bytes", "mem_bw_bytes_per_second", "bf16_ops_per_second"),
            *("fp8_ops_per_second", "int4_ops_per_second", "is_lite", "is_split_chip"),
        ):
            assert getattr(found, name) == getattr(wanted, name), (chip, name)
        for dtype in (jnp.float32, jnp.bfloat16, jnp.int8, jnp.float8_e5m2):
            assert found.get_sublane_tiling(dtype) == wanted.get_sublane_tiling(dtype)
            for other in (jnp.float32, jnp.bfloat16, jnp.int8, jnp.float8_e5m2):
                assert found.is_matmul_supported(dtype, other) == wanted.is_matmul_supported(
                    dtype, other
                )


def test_programs_as_text() -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...]

    assert "tpu_custom_call" in pl.lower_as_mlir(pl.pallas_call(kernel, X), X)
    with pytest.raises(HloError, match=r"HLO0726.*no call of a kernel"):
        pl.lower_as_mlir(kernel, X)
    assert pl.strides_from_shape((2, 3, 4)) == (12, 4, 1)
    assert pl.empty_like({"x": X})["x"].shape == X.shape
