"""Two TensorCores of a device: who takes which step, what they share, races between them."""

from __future__ import annotations

import itertools
import tracemalloc
from random import Random
from typing import Any

import numpy as np
import pytest

from mlirhlo import mosaic as pl
from mlirhlo.diagnostics import HloError
from mlirhlo.mosaic import numpy as jnp
from mlirhlo.mosaic import tpu as pltpu
from mlirhlo.mosaic.interpreter import steps
from mlirhlo.mosaic.interpreter.steps import cores_of, share_of
from mlirhlo.mosaic.interpreter.world import World

X = np.arange(32 * 128, dtype=np.float32).reshape(32, 128)
TWO = pl.InterpretParams(num_cores_or_threads=2)
HBM = pl.BlockSpec(memory_space=pl.ANY)
ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))


def params(*words: str, **more: Any) -> Any:
    return pltpu.CompilerParams(dimension_semantics=words, **more)


@pytest.mark.parametrize(
    ("bounds", "semantics", "shares"),
    [
        ((4, 3), ("parallel", "arbitrary"), [[(0, 2), (0, 3)], [(2, 4), (0, 3)]]),
        ((5,), ("parallel",), [[(0, 2)], [(2, 5)]]),
        ((1, 4), ("parallel", "parallel"), [[(0, 1), (0, 2)], [(0, 1), (2, 4)]]),
        ((4,), ("arbitrary",), [[(0, 4)], None]),
        ((2, 3), ("core_parallel", "arbitrary"), [[(0, 1), (0, 3)], [(1, 2), (0, 3)]]),
        ((), (), [[], None]),
    ],
)
def test_who_takes_which_step(bounds: Any, semantics: Any, shares: Any) -> None:
    found = [share_of(bounds, semantics, core, 2) for core in range(2)]
    assert found == [(share and [range(*one) for one in share]) or share for share in shares]


def test_as_many_cores_as_a_dimension_of_cores_has() -> None:
    assert cores_of((2, 8), ("core_parallel", "arbitrary"), 1) == 2
    assert cores_of((8,), ("parallel",), 2) == 2
    assert cores_of((), (), 1) == 1


@pytest.mark.parametrize("seed", [0, 3])
def test_a_parallel_dimension_is_split(seed: int) -> None:
    """Each core has its own scratch memory: it counts the steps of its core."""

    def kernel(x_ref: Any, o_ref: Any, n_ref: Any, count: Any) -> None:
        @pl.when(pl.program_id(1) == 0)
        def _() -> None:
            count[0] = 0

        count[0] += 1
        o_ref[...] = x_ref[...] * 2.0
        n_ref[...] = jnp.full((8, 128), count[0], np.int32)

    block = pl.BlockSpec((8, 128), lambda i, j: (2 * i + j, 0))
    call = pl.kernel_call(
        kernel,
        [X, pl.ShapeDtypeStruct((32, 128), np.int32)],
        grid=(2, 2),
        in_specs=[block],
        out_specs=[block, block],
        scratch_shapes=[pltpu.SMEM((1,), np.int32)],
        compiler_params=params("parallel", "arbitrary"),
        interpret=pl.InterpretParams(num_cores_or_threads=2, random_seed=seed),
    )
    doubled, counts = call(X)
    np.testing.assert_array_equal(doubled, 2 * X)
    assert counts[::8, 0].tolist() == [1, 2, 1, 2]


def test_two_cores_are_faster_and_share_a_memory() -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] * 2.0

    x = np.zeros((8192, 128), np.float32)
    spec = pl.BlockSpec((512, 128), lambda i: (i, 0))
    call = pl.kernel_call(
        kernel, x, grid=(16,), in_specs=[spec], out_specs=spec, compiler_params=params("parallel")
    )
    kernel_ = call.lower(x)
    alone = kernel_.timeline(x, generation="v5p")
    both = kernel_.timeline(x, generation="v5p", options=TWO)
    assert [core.moved for core in both.cores] == [{"in": x.nbytes // 2, "out": x.nbytes // 2}] * 2
    assert both.cores[0].now == both.cores[1].now
    # Latencies overlap; bandwidth is halved.
    assert 0.5 < both.cycles / alone.cycles < 0.9


def test_an_output_block_of_two_cores_is_a_race() -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...]

    call = pl.kernel_call(
        kernel,
        pl.ShapeDtypeStruct((8, 128), np.float32),
        grid=(4,),
        in_specs=[ROWS],
        out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
        compiler_params=params("parallel"),
        interpret=TWO,
    )
    with pytest.raises(HloError, match=r"a race in o_ref: .*core [01].*core [01]") as caught:
        call(X)
    assert caught.value.code == "HLO0730"
    assert "test_cores.py" in str(caught.value)


def exchange(signals: bool, waits: bool = True) -> Any:
    """Core 0 copies to HBM, core 1 from there."""

    def kernel(x_hbm: Any, o_hbm: Any, t_hbm: Any, buffer: Any, done: Any, ready: Any) -> None:
        core = pl.program_id(0)

        @pl.when(core == 0)
        def _() -> None:
            buffer[...] = jnp.full((32, 128), 3.0, np.float32)
            pltpu.async_copy(buffer, t_hbm, done).wait()
            if signals:
                pl.semaphore_signal(ready, 1, core_index=1)

        @pl.when(core == 1)
        def _() -> None:
            if waits:
                pl.semaphore_wait(ready, 1)
            pltpu.async_copy(t_hbm, o_hbm, done).wait()

    return pl.kernel_call(
        kernel,
        [X, X],
        grid=(2,),
        in_specs=[HBM],
        out_specs=[HBM, HBM],
        scratch_shapes=[
            pltpu.VMEM((32, 128), np.float32),
            pltpu.SemaphoreType.DMA,
            pltpu.SemaphoreType.REGULAR,
        ],
        compiler_params=params("core_parallel"),
    )


def test_a_signal_orders_cores() -> None:
    found, _ = exchange(signals=True)(X)
    np.testing.assert_array_equal(found, np.full_like(X, 3.0))


@pytest.mark.parametrize("seed", range(4))
def test_cores_that_are_not_ordered_race(seed: int) -> None:
    call = exchange(signals=False, waits=False)
    call.interpret = pl.InterpretParams(random_seed=seed)
    with pytest.raises(HloError) as caught:
        call(X)
    # Whoever comes first: memory that nobody wrote, or a race.
    assert caught.value.code in ("HLO0730", "HLO0731")


def test_a_core_that_is_not_signalled_is_named() -> None:
    with pytest.raises(HloError) as caught:
        exchange(signals=False)(X)
    assert caught.value.code == "HLO0703"


def test_a_core_that_does_not_run() -> None:
    def kernel(x_ref: Any, o_ref: Any, ready: Any) -> None:
        o_ref[...] = x_ref[...]
        pl.semaphore_signal(ready, 1, core_index=1)

    call = pl.kernel_call(kernel, X, scratch_shapes=[pltpu.SemaphoreType.REGULAR])
    with pytest.raises(HloError, match="core 1 is none of those that run: 1 of each device"):
        call(X)


def test_what_is_known_of_copies_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of copies of the same elements are remembered as a few."""
    worlds: list[World] = []
    run = World.run

    def kept(world: World, bodies: Any) -> None:
        run(world, bodies)
        worlds.append(world)

    monkeypatch.setattr(World, "run", kept)

    def kernel(x_hbm: Any, o_ref: Any, buffer: Any, sem: Any) -> None:
        @pl.loop(0, 100)
        def _(step: Any) -> None:
            copy = pltpu.make_async_copy(x_hbm.at[pl.ds(8 * (step % 2), 8)], buffer, sem)
            copy.start()
            copy.wait()

        o_ref[...] = buffer[...]

    call = pl.kernel_call(
        kernel,
        X,
        grid=(4,),
        in_specs=[HBM],
        out_specs=ROWS,
        scratch_shapes=[pltpu.VMEM((8, 128), np.float32), pltpu.SemaphoreType.DMA],
        compiler_params=params("parallel"),
        interpret=TWO,
    )
    assert np.array_equal(call(X), np.tile(X[8:16], (4, 1)))
    memories = worlds[0].memories.values()
    assert max(len(memory.flights) for memory in memories) <= 4
    assert max(len(memory.touches) for memory in memories) <= 8


@pytest.mark.parametrize("count", [0, 1, 2, 6, 97])
def test_a_random_order_of_steps_has_each_once(count: int) -> None:
    orders = {
        tuple(steps._Shuffled.of(range(count), Random(seed)))  # pyright: ignore[reportPrivateUsage]
        for seed in range(20)
    }
    assert all(sorted(order) == list(range(count)) for order in orders)
    assert len(orders) > min(count, 2) // 2


def test_a_random_order_of_a_long_grid_is_not_listed() -> None:
    tracemalloc.start()
    order = steps._Shuffled.of(range(10**9), Random(1))  # pyright: ignore[reportPrivateUsage]
    assert len(set(itertools.islice(order, 1000))) == 1000
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
