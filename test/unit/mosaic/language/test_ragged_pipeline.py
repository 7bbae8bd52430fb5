"""`emit_pipeline` on arrays that its blocks do not divide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlirhlo import mosaic as pl
from mlirhlo.diagnostics import HloError
from mlirhlo.mosaic import tpu as pltpu

HBM = pl.BlockSpec(memory_space=pl.ANY)


def piped(shape: tuple[int, ...], spec: pl.BlockSpec, grid: tuple[int, ...]) -> Any:
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)

    def kernel(x_hbm: Any, o_hbm: Any) -> None:
        def body(x_ref: Any, o_ref: Any) -> None:
            o_ref[...] = x_ref[...] * 2.0

        pltpu.emit_pipeline(body, grid=grid, in_specs=[spec], out_specs=spec)(x_hbm, o_hbm)

    return x, pl.kernel_call(kernel, x, in_specs=[HBM], out_specs=HBM)


@pytest.mark.parametrize(
    ("shape", "block", "grid"),
    [
        ((40, 256), (16, 128), (3, 2)),
        ((36, 300), (16, 128), (3, 3)),
        ((20, 128), (16, 128), (2, 1)),
    ],
)
@pytest.mark.parametrize("mode", ["on_wait", "eager"])
def test_the_last_block_is_cut(shape: Any, block: Any, grid: Any, mode: str) -> None:
    x, call = piped(shape, pl.BlockSpec(block, lambda i, j: (i, j)), grid)
    call.interpret = pl.InterpretParams(dma_execution_mode=mode)
    np.testing.assert_array_equal(call(x), 2 * x)


def test_a_block_that_stays_while_another_moves() -> None:
    """The rows' block is cut first, the lanes' second."""
    x = np.arange(40 * 256, dtype=np.float32).reshape(40, 256)
    y = np.arange(256, dtype=np.float32).reshape(1, 256)

    def kernel(x_hbm: Any, y_hbm: Any, o_hbm: Any) -> None:
        def body(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
            o_ref[...] = x_ref[...] + y_ref[...]

        rows = pl.BlockSpec((16, 256), lambda i: (i, 0))
        whole = pl.BlockSpec((1, 256), lambda i: (0, 0))
        pltpu.emit_pipeline(body, grid=(3,), in_specs=[rows, whole], out_specs=rows)(
            x_hbm, y_hbm, o_hbm
        )

    call = pl.kernel_call(kernel, x, in_specs=[HBM, HBM], out_specs=HBM)
    np.testing.assert_array_equal(call(x, y), x + y)
    call.lower(x, y).check("v5e")


def test_elements_are_counted_where_asked() -> None:
    spec = pl.BlockSpec((pl.Element(8), pl.Element(128)), lambda i, j: (8 * i, 0))
    x, call = piped((40, 128), spec, (5, 1))
    np.testing.assert_array_equal(call(x), 2 * x)


def test_a_block_larger_than_its_array() -> None:
    x, call = piped((40, 128), pl.BlockSpec((64, 128), lambda i, j: (i, j)), (3, 1))
    with pytest.raises(HloError, match="no larger than its array") as caught:
        call(x)
    assert caught.value.code == "HLO0726"
