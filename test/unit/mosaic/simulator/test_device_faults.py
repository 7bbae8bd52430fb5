"""What devices do wrong together: exchanged copies, barriers, schedules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.mosaic.simulator.test_faults import DMA, X, check, fault, like, lines_of

from mlirhlo import mosaic as pl
from mlirhlo.diagnostics import HloError
from mlirhlo.mosaic import kernels
from mlirhlo.mosaic import numpy as jnp
from mlirhlo.mosaic import tpu as pltpu
from mlirhlo.mosaic.interpreter import InterpretParams


def test_devices_that_wait_for_each_other() -> None:
    def body(x_ref, o_ref, sem):
        me = pl.axis_index("x")
        pl.semaphore_wait(sem, 1)  # wait
        pl.semaphore_signal(sem, 1, device_id=(1 - me,))
        o_ref[...] = x_ref[...]

    error = fault(
        body, np.stack([X, X]), mesh={"x": 2}, scratch_shapes=[pltpu.SemaphoreType.REGULAR]
    )
    check(error, body, "HLO0703", "wait", "wait")


def remote(with_barrier: bool) -> Any:
    def body(x_ref, o_ref, send, recv):
        me = pl.axis_index("x")
        o_ref[...] = jnp.zeros_like(o_ref)  # write
        if with_barrier:
            barrier = pltpu.get_barrier_semaphore()
            pl.semaphore_signal(barrier, 1, device_id=(1 - me,))
            pl.semaphore_wait(barrier, 1)
        copy = pltpu.make_async_remote_copy(x_ref, o_ref, send, recv, device_id=(1 - me,))
        copy.start()  # copy
        copy.wait()

    call = pl.kernel_call(
        body,
        like(32, 128),
        mesh={"x": 2},
        scratch_shapes=[DMA, DMA],
        compiler_params=pltpu.CompilerParams(collective_id=1),
    )
    return call, body


def test_a_remote_copy_is_exchanged() -> None:
    call, _ = remote(with_barrier=True)
    for seed in range(3):
        call.interpret = InterpretParams(random_seed=seed, dma_execution_mode="random")
        assert np.array_equal(call(np.stack([X, -X])), np.stack([-X, X]))


def test_a_remote_copy_without_a_barrier_races_with_the_other_device() -> None:
    call, body = remote(with_barrier=False)
    call.interpret = InterpretParams(dma_execution_mode="eager")
    with pytest.raises(HloError) as caught:
        call(np.stack([X, -X]))
    lines = lines_of(body)
    (found,) = caught.value.diagnostics
    assert found.code == "HLO0730"
    assert found.place is not None
    assert {found.place.line, found.notes[0][1].line if found.notes[0][1] else 0} == {
        lines["copy"],
        lines["write"],
    }


@pytest.mark.parametrize("mode", ["on_wait", "eager", "random"])
def test_ring_all_gather(mode: str) -> None:
    shards = np.random.default_rng(0).normal(size=(4, 8, 128)).astype(np.float32)
    for seed in range(3):
        params = InterpretParams(dma_execution_mode=mode, random_seed=seed)
        got = kernels.ring_all_gather(shards, mesh={"x": 4}, interpret=params)
        assert all(np.array_equal(one, shards) for one in got)


def test_one_seed_is_one_schedule() -> None:
    def order(seed: int) -> list[str]:
        lines: list[str] = []

        def body(o_ref):
            pl.debug_print("{}", pl.program_id(0))
            o_ref[...] = jnp.zeros_like(o_ref)

        pl.kernel_call(
            body,
            like(64, 128),
            grid=(8,),
            out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
            compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
            interpret=InterpretParams(random_seed=seed, log=lines.append),
        )()
        return lines

    assert order(0) == [str(i) for i in range(8)]
    assert order(3) == order(3) != order(0)
    assert sorted(order(3)) == order(0)
