"""Arrays with no elements: a kernel that reads blocks of them ends coded, or with the simulator's values."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import mlirhlo
from mlirhlo import mosaic as pl
from mlirhlo.diagnostics import HloError
from mlirhlo.mosaic import tpu as pltpu

ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))
WHOLE = pl.BlockSpec((8, 128), lambda i: (0, 0))
ONE_BUFFER = pl.BlockSpec((8, 128), lambda i: (i, 0), pipeline_mode=pl.Buffered(1))
PADDED = pl.BlockSpec((pl.Element(8, (4, 4)), pl.Element(128)), lambda i: (8 * i, 0))
ANYWHERE = pl.BlockSpec(memory_space=pl.ANY)
SPECS = {
    "rows": ROWS,
    "whole": WHOLE,
    "one buffer": ONE_BUFFER,
    "padded": PADDED,
    "anywhere": ANYWHERE,
    "none": None,
}


def add(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref[...] + y_ref[...]


def copy(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
    def body(buffer: Any) -> None:
        pltpu.sync_copy(y_ref.at[pl.ds(0, 8)], buffer)
        o_ref[...] = x_ref[...] + buffer[...]

    pl.run_scoped(body, pltpu.VMEM((8, 128), np.float32))


def outcome(run: Any) -> Any:
    """What a run gives: its values, or that it ends coded."""
    try:
        return np.asarray(run())
    except HloError:
        return None


CASES = [
    (x, y, grid, spec)
    for x, y, grid, spec in product(
        ((0, 128), (8, 128), (16, 128)), ((0, 128), (16, 128), (16, 0)), ((), (2,), (0,)), SPECS
    )
    if 0 in (*x, *y, *grid)
]


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(("x", "y", "grid", "spec"), CASES)
def test_both_platforms_agree(
    x: tuple[int, int], y: tuple[int, int], grid: tuple[int, ...], spec: str
) -> None:
    rows = ROWS if grid else None
    call = pl.kernel_call(
        copy if spec == "anywhere" else add,
        pl.ShapeDtypeStruct(x, np.float32),
        grid=grid,
        in_specs=[rows, SPECS[spec] if grid or spec == "anywhere" else None],
        out_specs=rows,
    )
    arrays = np.ones(x, np.float32), np.ones(y, np.float32)
    try:
        kernel = call.lower(*arrays)
    except HloError:
        return
    simulated = outcome(lambda: kernel(*arrays))
    compiled = outcome(lambda: kernel(*arrays, platform="cpu"))
    module = mlirhlo.parse(kernel.to_stablehlo())
    program = outcome(lambda: module(*arrays))
    executable = outcome(lambda: mlirhlo.compile(module)(*arrays))
    for got, expected in ((compiled, simulated), (executable, program)):
        assert (got is None) == (expected is None)
        if expected is not None:
            np.testing.assert_array_equal(got, expected)
