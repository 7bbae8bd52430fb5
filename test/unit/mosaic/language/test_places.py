"""Errors name the reference, the devices and the spec that are wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlirhlo import mosaic as pl
from mlirhlo.diagnostics import HloError
from mlirhlo.mosaic import lax
from mlirhlo.mosaic import tpu as pltpu

X = np.ones((32, 128), np.float32)


def copy(x_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref[...]


@pytest.mark.parametrize(
    ("index_map", "said"),
    [(lambda i, j: (i, 0), "is given 1 indices"), (lambda i: (i, 0, 0), "gives 3 numbers")],
)
def test_a_wrong_index_map_points_at_its_spec(index_map: Any, said: str) -> None:
    rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
    wrong = pl.BlockSpec((8, 128), index_map)
    here = wrong.place
    with pytest.raises(HloError, match=said) as caught:
        pl.kernel_call(copy, X, grid=(4,), in_specs=[rows], out_specs=wrong)(X)
    assert here is not None
    assert caught.value.diagnostics[0].place == here
    assert "BlockSpec((8, 128), index_map)" in str(here.source_line)
    assert wrong == pl.BlockSpec((8, 128), index_map)


def test_an_access_outside_names_the_reference() -> None:
    def outside(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[pl.ds(pl.program_id(0) * 8 + 1, 8), :]

    whole = pl.BlockSpec((32, 128), lambda i: (0, 0))
    rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
    call = pl.kernel_call(outside, X, grid=(4,), in_specs=[whole], out_specs=rows)
    with pytest.raises(HloError, match=r"HLO0702.*x_ref, of shape \[32, 128\]"):
        call(X)


def test_a_race_between_devices_names_them() -> None:
    def kernel(x_ref: Any, o_ref: Any, buffer: Any, sent: Any, arrived: Any) -> None:
        other = 1 - lax.axis_index("x")
        barrier = pltpu.get_barrier_semaphore()
        pl.semaphore_signal(barrier, 1, device_id=other)
        pl.semaphore_wait(barrier, 1)
        send = pltpu.make_async_remote_copy(x_ref, buffer, sent, arrived, device_id=other)
        send.start()
        buffer[...] = x_ref[...]
        send.wait()
        o_ref[...] = buffer[...]

    call = pl.kernel_call(
        kernel,
        X,
        mesh={"x": 2},
        scratch_shapes=[pltpu.VMEM((32, 128), np.float32), *[pltpu.SemaphoreType.DMA] * 2],
        compiler_params=pltpu.CompilerParams(collective_id=0),
    )
    with pytest.raises(HloError, match="HLO0730") as caught:
        call(np.stack([X, X]))
    message = caught.value.diagnostics[0].message
    assert "buffer of device" in message
    assert "of device" in message.partition(": ")[2]


@pytest.mark.parametrize("platform", ["interpreter", "cpu"])
def test_a_grid_without_its_bound_ends_coded(platform: str) -> None:
    rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
    call = pl.kernel_call(copy, X, grid=(np.array(4, np.int32),), in_specs=[rows], out_specs=rows)
    kernel = call.lower(X)
    assert np.array_equal(kernel(np.int32(4), X, platform=platform), X)
    for operands in (
        (),
        (X,),
        (np.float32(4), X),
        (np.array([4], np.int32), X),
        (np.int32(4), X, X),
    ):
        with pytest.raises(HloError, match="HLO0726"):
            kernel(*operands, platform=platform)
