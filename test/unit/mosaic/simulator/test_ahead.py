"""Blocks are chosen a step ahead: kernels whose bodies change what their index maps read."""

from __future__ import annotations

import logging
from itertools import product
from typing import Any

import numpy as np
import pytest

from mlirhlo import mosaic as pl
from mlirhlo.mosaic import tpu as pltpu

BLOCKS = 5


def expected(grid: tuple[int, ...], chosen: Any, writes: Any, buffers: int) -> list[int]:
    """The block that each step sees, by the pipeline's own rule."""
    state, seen = list(chosen), []
    steps = range(int(np.prod(grid)))
    ahead = state[0]
    for step in steps:
        seen.append(ahead if buffers > 1 else state[step])
        ahead = state[step + 1] if step + 1 in steps else 0
        at, value = writes[step]
        state[at] = value
    return seen


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("platform", ["interpreter", "cpu"])
@pytest.mark.parametrize("seed", range(6))
def test_as_the_pipeline_reads(seed: int, platform: str, caplog: pytest.LogCaptureFixture) -> None:
    rng = np.random.default_rng(seed)
    grid: tuple[int, ...] = ((6,), (2, 3), (3, 1, 2))[seed % 3]
    buffers = 1 + seed % 2
    count = int(np.prod(grid))
    chosen = rng.integers(0, BLOCKS, count).astype(np.int32)
    writes = np.stack([rng.integers(0, count, count), rng.integers(0, BLOCKS, count)], 1)

    def number(indices: Any) -> Any:
        found: Any = 0
        for index, size in zip(indices, grid, strict=True):
            found = found * size + index
        return found

    def kernel(chosen_ref: Any, writes_ref: Any, x_ref: Any, o_ref: Any) -> None:
        step = number([pl.program_id(dim) for dim in range(len(grid))])
        chosen_ref[writes_ref[step, 0]] = writes_ref[step, 1]
        o_ref[...] = x_ref[...]

    def block(*arguments: Any) -> Any:
        return (arguments[-2][number(arguments[:-2])], 0, 0)

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=2,
        grid=grid,
        in_specs=[pl.BlockSpec((None, 8, 128), block, pipeline_mode=pl.Buffered(buffers))],
        out_specs=pl.BlockSpec((None, 8, 128), lambda *a: (number(a[:-2]), 0, 0)),
    )
    x = np.broadcast_to(np.arange(BLOCKS, dtype=np.float32)[:, None, None], (BLOCKS, 8, 128))
    call = pl.pallas_call(kernel, pl.ShapeDtypeStruct((count, 8, 128), np.float32), grid_spec=spec)
    arrays = chosen, writes.astype(np.int32), np.ascontiguousarray(x)
    with caplog.at_level(logging.WARNING), pl.default_platform(platform):
        got = call(*arrays)[:, 0, 0]
    assert list(got) == expected(grid, chosen, writes, buffers)
    told = [record for record in caplog.records if "HLO0755" in record.getMessage()]
    assert len(told) == (buffers > 1)


def test_what_index_maps_do_not_read_may_change(caplog: pytest.LogCaptureFixture) -> None:
    def kernel(count_ref: Any, x_ref: Any, o_ref: Any) -> None:
        count_ref[0] = count_ref[0] + 1
        o_ref[...] = x_ref[...] * count_ref[0].astype(np.float32)

    rows = pl.BlockSpec((8, 128), lambda i, _: (i, 0))
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(3,), in_specs=[rows], out_specs=rows
    )
    x = np.ones((24, 128), np.float32)
    call = pl.pallas_call(kernel, x, grid_spec=spec)
    for platform in ("interpreter", "cpu"):
        with pl.default_platform(platform):
            assert list(call(np.zeros(1, np.int32), x)[::8, 0]) == [1, 2, 3]
    assert not caplog.records


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(("fixed", "platform"), list(product((0, 1), ("interpreter", "cpu"))))
def test_a_block_that_no_dimension_of_the_grid_chooses(fixed: int, platform: str) -> None:
    """One buffer: the block is looked for in each step."""

    def kernel(chosen_ref: Any, x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...]
        chosen_ref[fixed] = 2

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(3,),
        in_specs=[pl.BlockSpec((8, 128), lambda i, r: (r[0], 0), pipeline_mode=pl.Buffered(1))],
        out_specs=pl.BlockSpec((8, 128), lambda i, r: (i, 0)),
    )
    x = np.repeat(np.arange(3, dtype=np.float32), 8)[:, None] * np.ones((1, 128), np.float32)
    call = pl.pallas_call(kernel, x, grid_spec=spec, platform=platform)
    assert list(call(np.zeros(2, np.int32), x)[::8, 0]) == ([0, 2, 2] if fixed == 0 else [0, 0, 0])
