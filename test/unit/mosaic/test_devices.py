"""Kernels that send to other devices, in programs of several: the devices meet in the call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirhlo
from mlirhlo import mosaic as pl
from mlirhlo.diagnostics import HloError
from mlirhlo.interp import Machine, run_spmd
from mlirhlo.mosaic import lax
from mlirhlo.mosaic import numpy as jnp
from mlirhlo.mosaic import tpu as pltpu

COUNT = 4
F32 = np.float32
X = np.random.default_rng(0).normal(size=(COUNT, 8, 128)).astype(F32)


def all_reduced(pl: Any, pltpu: Any, jnp: Any, lax: Any, call: Any) -> Any:
    """The sum over a ring: each device passes on what it got, where its neighbour has room for it."""
    neighbour = lambda by: (lax.rem(lax.axis_index("x") + by + COUNT, COUNT),)  # noqa: E731

    def body(x_ref, o_ref, slots, here, sent, came, room, held):
        step = pl.program_id(0)
        slot = lax.rem(step, 2)

        def pass_on(source: Any, to: Any) -> Any:
            return pltpu.make_async_remote_copy(
                source, slots.at[to], sent, came, device_id=neighbour(1)
            )

        @pl.when(step == 0)
        def _() -> None:
            barrier = pltpu.get_barrier_semaphore()
            for by in (-1, 1):
                pl.semaphore_signal(barrier, 1, device_id=neighbour(by))
            pl.semaphore_wait(barrier, 2)
            o_ref[...] = jnp.zeros_like(o_ref)
            first = pass_on(x_ref, slot)
            first.start()
            first.wait()

        pl.semaphore_signal(room, 1, device_id=neighbour(-1))
        local = pltpu.make_async_copy(slots.at[slot], held, here)
        local.start()
        pl.semaphore_wait(room, 1)
        remote = pass_on(slots.at[slot], 1 - slot)
        remote.start()
        local.wait()
        o_ref[...] += held[...]
        remote.wait()

    return call(
        body,
        out_shape=(shaped(pl, (8, 128)), shaped(pl, (2, 8, 128))),
        grid=(COUNT,),
        in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)],
        out_specs=(pl.BlockSpec(memory_space=pltpu.VMEM), pl.BlockSpec(memory_space=pl.ANY)),
        scratch_shapes=[
            *[pltpu.SemaphoreType.DMA] * 3,
            pltpu.SemaphoreType.REGULAR,
            pltpu.VMEM((8, 128), F32),
        ],
        compiler_params=pltpu.CompilerParams(collective_id=0),
    )


def shaped(pl: Any, shape: tuple[int, ...]) -> Any:
    if hasattr(pl, "ShapeDtypeStruct"):
        return pl.ShapeDtypeStruct(shape, F32)
    import jax

    return jax.ShapeDtypeStruct(shape, F32)


def ours() -> Any:
    return all_reduced(
        pl, pltpu, jnp, lax, lambda *a, **k: pl.kernel_call(*a, **k, mesh={"x": COUNT})
    )


def test_devices_meet_in_the_call() -> None:
    call = ours()
    wanted = np.broadcast_to(X.sum(0), X.shape)
    np.testing.assert_allclose(call(X)[0], wanted, rtol=1e-5, atol=1e-5)
    module = mlirhlo.parse(call.lower(pl.ShapeDtypeStruct((8, 128), F32)).to_stablehlo())
    for device in run_spmd(
        module.hlo.op, [[shard] for shard in X], machine=Machine(partitions=COUNT)
    ):
        np.testing.assert_allclose(device[0], X.sum(0), rtol=1e-5, atol=1e-5)


def test_what_is_wrong_on_one_device_stops_all() -> None:
    def body(x_ref: Any, o_ref: Any, sent: Any, came: Any) -> None:
        there = lax.axis_index("x") + 1  # the last device has no neighbour
        copy = pltpu.make_async_remote_copy(x_ref, o_ref, sent, came, device_id=(there,))
        copy.start()
        copy.wait()

    call = pl.kernel_call(
        body,
        pl.ShapeDtypeStruct((8, 128), F32),
        in_specs=pl.ANY,
        out_specs=pl.ANY,
        scratch_shapes=[pltpu.SemaphoreType.DMA] * 2,
        mesh={"x": COUNT},
    )
    module = mlirhlo.parse(call.lower(pl.ShapeDtypeStruct((8, 128), F32)).to_stablehlo())
    with pytest.raises(HloError, match="device 4") as caught:
        run_spmd(module.hlo.op, [[shard] for shard in X], machine=Machine(partitions=COUNT))
    assert caught.value.code == "HLO0702"


@pytest.mark.oracle
@pytest.mark.parametrize("platform", ["interpreter", "cpu"])
def test_a_program_of_pallas_over_four_devices(platform: str) -> None:
    jax = pytest.importorskip("jax")
    from jax.experimental import pallas
    from jax.experimental.pallas import tpu
    from jax.sharding import AbstractMesh, AxisType, PartitionSpec

    call = all_reduced(pallas, tpu, jax.numpy, jax.lax, pallas.pallas_call)
    mesh = AbstractMesh((COUNT,), ("x",), axis_types=(AxisType.Auto,))
    spec = PartitionSpec("x")
    program = jax.shard_map(
        lambda x: call(x[0])[0][None], mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False
    )
    text = jax.jit(program).trace(X).lower(lowering_platforms=("tpu",)).as_text()
    module = mlirhlo.parse(text)
    found = module(X) if platform == "interpreter" else mlirhlo.compile(module)(X)
    (result,) = found if isinstance(found, tuple | list) else [found]
    wanted = np.broadcast_to(X.sum(0), X.shape)
    np.testing.assert_allclose(np.asarray(result), wanted, rtol=1e-5, atol=1e-5)
