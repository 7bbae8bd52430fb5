"""What slices of bounded size take; kernels with them are among the authored ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlirhlo import mosaic as pl
from mlirhlo.diagnostics import HloError
from mlirhlo.mosaic import numpy as jnp
from mlirhlo.mosaic import tpu as pltpu

HBM = pl.BlockSpec(memory_space=pl.ANY)
X = np.random.default_rng(0).normal(size=(40, 128)).astype(np.float32)


def piped(spec: pl.BlockSpec, out: pl.BlockSpec, grid: int) -> Any:
    def body(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] * 2.0

    def kernel(x_hbm: Any, o_hbm: Any) -> None:
        run = pltpu.emit_pipeline(body, grid=(grid,), in_specs=[spec], out_specs=out)
        run(x_hbm, o_hbm)

    return pl.kernel_call(kernel, X, in_specs=[HBM], out_specs=HBM)


@pytest.mark.parametrize("mode", ["on_wait", "eager"])
def test_slices_of_sizes_known_when_it_runs(mode: str) -> None:
    def rows(i: Any) -> Any:
        # 16, 16 and the 8 that are left.
        return pl.ds(16 * i, jnp.minimum(16, 40 - 16 * i)), 0

    spec = pl.BlockSpec((pl.BoundedSlice(16), 128), rows)
    call = piped(spec, spec, 3)
    call.interpret = pl.InterpretParams(dma_execution_mode=mode)
    np.testing.assert_array_equal(call(X), 2 * X)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (pl.BlockSpec((pl.BoundedSlice(16), 128), lambda i: (i, 0)), "takes pl.ds"),
        (pl.BlockSpec((16, 128), lambda i: (pl.ds(i, 8), 0)), "takes pl.ds"),
        (pl.BlockSpec((pl.BoundedSlice(16), 128)), "no index map"),
    ],
)
def test_slices_that_do_not_fit(spec: pl.BlockSpec, problem: str) -> None:
    call = piped(spec, pl.BlockSpec((16, 128), lambda i: (i, 0)), 2)
    with pytest.raises(HloError, match=problem) as caught:
        call(X)
    assert caught.value.code == "HLO0726"


def test_calls_move_blocks_of_one_size() -> None:
    spec = pl.BlockSpec((pl.BoundedSlice(8), 128), lambda i: (pl.ds(8 * i, 8), 0))
    call = pl.kernel_call(lambda x, o: None, X, grid=(5,), in_specs=[spec], out_specs=spec)
    with pytest.raises(HloError, match="emit_pipeline move slices") as caught:
        call(X)
    assert caught.value.code == "HLO0726"


def test_sizes_that_cut_tiles_are_refused_where_they_are() -> None:
    spec = pl.BlockSpec((pl.BoundedSlice(16), 128), lambda i: (pl.ds(8 * i, i + 3), 0))
    with pytest.raises(HloError, match="multiple of 8") as caught:
        piped(spec, spec, 2)(X)
    assert caught.value.code == "HLO0702"


def test_loads_have_sizes_that_python_knows() -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[pl.ds(0, pl.program_id(0) + 1)]

    rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
    with pytest.raises(HloError, match="fixed size") as caught:
        pl.kernel_call(kernel, X, grid=(5,), in_specs=[rows], out_specs=rows)(X)
    assert caught.value.code == "HLO0724"
