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


@pytest.mark.parametrize("name", [pl.core_map, pl.run_state, pl.Indirect, pltpu.BufferedRef])
def test_what_has_no_place_says_what_to_do(name: Any) -> None:
    with pytest.raises(HloError, match="no place here") as caught:
        name(8)
    assert caught.value.code == "HLO0720"
    assert caught.value.diagnostics[0].help
