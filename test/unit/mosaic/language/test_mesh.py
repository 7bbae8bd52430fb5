"""`pl.kernel` on a mesh of TensorCores, and the names that have no place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlirhlo import mosaic as pl
from mlirhlo.diagnostics import HloError
from mlirhlo.mosaic import lax
from mlirhlo.mosaic import tpu as pltpu

X = np.arange(32 * 128, dtype=np.float32).reshape(32, 128)


@pytest.mark.parametrize("cores", [1, 2])
def test_every_core_takes_its_rows(cores: int) -> None:
    mesh = pltpu.create_tensorcore_mesh("core", num_cores=cores)
    rows = 32 // cores

    @pl.kernel(
        out_type=pl.ShapeDtypeStruct(X.shape, X.dtype),
        mesh=mesh,
        scratch_types=[pltpu.VMEM((rows, 128), np.float32)],
    )
    def doubled(x_ref: Any, y_ref: Any, o_ref: Any, buffer: Any) -> None:
        assert lax.axis_size("core") == cores
        mine = pl.ds(lax.axis_index("core") * rows, rows)
        pltpu.sync_copy(x_ref.at[mine], buffer)
        buffer[...] = 2 * buffer[...]
        pltpu.sync_copy(buffer, o_ref.at[mine])

    kernel = doubled.lower(X, X)
    np.testing.assert_array_equal(kernel(X, X), 2 * X)
    np.testing.assert_array_equal(kernel(X, X, platform="cpu"), 2 * X)
    assert not kernel.fallbacks
    kernel.check("v5p")
    if cores == 2:
        with pytest.raises(HloError, match="core_parallel with 2 steps") as caught:
            kernel.check("v5e")
        assert caught.value.code == "HLO0747"
        return
    kernel.check("v5e")


@pytest.mark.parametrize("platform", ["interpreter", "cpu"])
@pytest.mark.parametrize("cores", [1, 2])
def test_kernels_on_the_state_around_them(cores: int, platform: str) -> None:
    mesh = pltpu.create_tensorcore_mesh("core", num_cores=cores)
    rows = 32 // cores

    def program(refs: Any) -> None:
        x_ref, y_ref = refs["x"], refs["y"]

        @pl.core_map(mesh, scratch_shapes=[pltpu.VMEM((rows, 128), np.float32)], platform=platform)
        def doubled(buffer: Any) -> None:
            mine = pl.ds(lax.axis_index("core") * rows, rows)
            pltpu.sync_copy(x_ref.at[mine], buffer)
            buffer[...] = 2 * buffer[...]
            pltpu.sync_copy(buffer, y_ref.at[mine])

        y_ref[0] += 1

        @pl.core_map(mesh, platform=platform)
        def _() -> None:
            def body(from_ref: Any, to_ref: Any) -> None:
                to_ref[...] = from_ref[...] + 1

            block = pl.BlockSpec((8, 128), lambda i: (i, 0))
            pltpu.emit_pipeline(
                body,
                grid=(4,),
                in_specs=[block],
                out_specs=[block],
                core_axis_name="core",
                dimension_semantics=("parallel",),
            )(y_ref, x_ref)

    before = X.copy()
    found = pl.run_state(program)({"x": X, "y": np.zeros_like(X)})
    want = 2 * X
    want[0] += 1
    np.testing.assert_array_equal(found["y"], want)
    np.testing.assert_array_equal(found["x"], want + 1)
    np.testing.assert_array_equal(X, before)


def test_references_around_kernels() -> None:
    """As JAX has them: made, used by the kernels that stand among them, frozen."""
    mesh = pltpu.create_tensorcore_mesh("core")
    x_ref, y_ref = pl.new_ref(X), pl.empty_ref(pl.ShapeDtypeStruct(X.shape, X.dtype))
    rows = pl.BlockSpec((8, 128), lambda i: (i, 0))

    def add(x: Any, y: Any) -> None:
        y[...] = x[...] + 1

    @pl.core_map(mesh)
    def first() -> None:
        pltpu.emit_pipeline(add, grid=(4,), in_specs=[rows], out_specs=[rows])(x_ref, y_ref)

    y_ref[0] = 5
    np.testing.assert_array_equal(y_ref[1:], X[1:] + 1)

    def swap(z: Any, o: Any, buffer: Any) -> None:
        pltpu.sync_copy(y_ref, o)
        pltpu.sync_copy(z, buffer)
        pltpu.sync_copy(buffer, y_ref)

    scratch = [pltpu.VMEM(X.shape, X.dtype)]
    old = pl.kernel(swap, pl.ShapeDtypeStruct(X.shape, X.dtype), mesh=mesh, scratch_types=scratch)(
        3 * X
    )
    assert old[0, 0] == 5
    np.testing.assert_array_equal(old[1:], X[1:] + 1)
    pl.kernel(lambda: pltpu.sync_copy(y_ref, x_ref), mesh=mesh, platform="cpu")()
    np.testing.assert_array_equal(pl.freeze(x_ref), 3 * X)
    for wrong in (lambda: x_ref[0], lambda: pl.freeze(X)):
        with pytest.raises(HloError, match="freeze") as caught:
            wrong()
        assert caught.value.code == "HLO0720"


COUNTS = pl.new_ref(np.zeros((8, 128), np.int32))


def test_a_reference_of_the_module_in_a_function_of_the_kernel() -> None:
    @pl.core_map(pltpu.create_tensorcore_mesh("core"))
    def counted() -> None:
        def scoped(buffer: Any) -> None:
            pltpu.sync_copy(COUNTS, buffer)
            buffer[...] += 1
            pltpu.sync_copy(buffer, COUNTS)

        pl.run_scoped(scoped, pltpu.VMEM((8, 128), np.int32))

    assert (COUNTS[...] == 1).all()
    with pytest.raises(HloError, match="never waited for") as caught:

        @pl.core_map(pltpu.create_tensorcore_mesh("core"))
        def forgets() -> None:
            pl.run_scoped(
                lambda buffer, sem: pltpu.async_copy(COUNTS, buffer, sem) and None,
                pltpu.VMEM((8, 128), np.int32),
                pltpu.SemaphoreType.DMA,
            )

    assert caught.value.diagnostics[0].notes
    assert "state.py" not in str(caught.value)


def test_core_map_is_of_a_state() -> None:
    with pytest.raises(HloError, match="no references around it") as caught:
        pl.core_map(pltpu.create_tensorcore_mesh("core"))(lambda: None)
    assert caught.value.code == "HLO0720"


def test_scratch_in_hbm_is_refused() -> None:
    def copied(x_ref: Any, o_ref: Any, between: Any) -> None:
        pltpu.sync_copy(x_ref, between)
        pltpu.sync_copy(between, o_ref)

    scratch = [pltpu.HBM((32, 128), np.float32)]
    call = pl.kernel_call(copied, X, in_specs=pl.ANY, out_specs=pl.ANY, scratch_shapes=scratch)
    np.testing.assert_array_equal(call(X), X)
    with pytest.raises(HloError, match="scratch between is in hbm") as caught:
        call.lower(X).check("v5e")
    assert caught.value.code == "HLO0742"


def test_a_core_parallel_dimension_has_all_cores() -> None:
    def kernel(o_ref: Any) -> None:
        o_ref[...] = o_ref[...] * 0

    for steps, generation in ((1, "v5p"), (2, "v4"), (4, "v5p")):
        rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
        call = pl.kernel_call(
            kernel,
            pl.ShapeDtypeStruct((8 * steps, 128), np.float32),
            grid=(steps,),
            out_specs=rows,
            compiler_params=pltpu.CompilerParams(dimension_semantics=("core_parallel",)),
        )
        with pytest.raises(HloError, match="core_parallel") as caught:
            call.lower().check(generation)
        assert caught.value.code == "HLO0747"


def test_other_meshes() -> None:
    with pytest.raises(HloError, match="TensorCores") as caught:
        pl.kernel(lambda x, o: None, X, mesh="x")
    assert caught.value.code == "HLO0726"


@pytest.mark.parametrize("name", [pl.Indirect, pl.get_global])
def test_what_has_no_place_says_what_to_do(name: Any) -> None:
    with pytest.raises(HloError, match="no place here") as caught:
        name(8)
    assert caught.value.code == "HLO0720"
    assert caught.value.diagnostics[0].help
