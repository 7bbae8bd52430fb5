"""Kernels whose blocks run a pipeline for several tiles, share memory between stages, or scan over a cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
from unit.mosaic_gpu.gpu_case import F16, F32, TILES, Case, Types, random

from mlirhlo import mosaic as pl
from mlirhlo.mosaic import gpu as plgpu
from mlirhlo.mosaic import lax
from mlirhlo.mosaic import numpy as jnp

_SPECS = {"transforms": TILES}
_FACTORS = [random(128, 256, dtype=F16), random(256, 192, dtype=F16)]


def _wide_product(a, b):
    return a.astype(F32) @ b.astype(F32)


def _blocks(i: Any, j: Any) -> list[Any]:
    """Blocks of both factors along the terms."""
    return [
        plgpu.BlockSpec((64, 64), lambda k: (i, k), **_SPECS),
        plgpu.BlockSpec((64, 64), lambda k: (k, j), **_SPECS),
    ]


def persistent_matmul() -> Case:
    """Four blocks share six tiles; each tile is a pipeline of two stages."""

    def body(a, b, o, os):
        @plgpu.nd_loop((2, 3), collective_axes="sm")
        def _(info):
            i, j = info.index

            def scope(acc):
                def step(_, a_s, b_s):
                    plgpu.wgmma(acc, a_s, b_s)
                    plgpu.wgmma_wait(0)

                specs = _blocks(i, j)
                plgpu.emit_pipeline(step, grid=(4,), in_specs=specs, max_concurrent_steps=2)(a, b)
                return plgpu.wgmma_accumulator_load(acc, wait_n=0)

            os[...] = pl.run_scoped(scope, plgpu.ACC((64, 64))).astype(F16)
            plgpu.commit_smem()
            plgpu.copy_smem_to_gmem(os, o.at[pl.ds(i * 64, 64), pl.ds(j * 64, 64)])
            plgpu.wait_smem_to_gmem(0, wait_read_only=True)

        plgpu.wait_smem_to_gmem(0)

    call = plgpu.kernel(
        body,
        Types((128, 192), F16),
        grid=(4,),
        grid_names=("sm",),
        scratch_types=[plgpu.SMEM((64, 64), F16, **_SPECS)],
    )
    return Case(call, _FACTORS, _wide_product, 3e-2)


def persistent_specialised_matmul() -> Case:
    """The same with a warp group that copies."""

    def body(a, b, o):
        @plgpu.nd_loop((2, 3), collective_axes="sm")
        def _(info):
            i, j = info.index
            sums: dict[str, Any] = {}

            def compute(pipeline):
                def scope(acc):
                    sums["acc"] = acc
                    pipeline(None)
                    o[pl.ds(i * 64, 64), pl.ds(j * 64, 64)] = acc[...]

                pl.run_scoped(scope, plgpu.ACC((64, 64)))

            def step(_, a_s, b_s):
                plgpu.wgmma(sums["acc"], a_s, b_s)
                plgpu.wgmma_wait(0)

            plgpu.emit_pipeline_warp_specialized(
                step,
                grid=(4,),
                memory_registers=40,
                in_specs=_blocks(i, j),
                max_concurrent_steps=2,
                wg_axis="wg",
                num_compute_wgs=1,
                compute_context=compute,
            )(a, b)

    call = plgpu.kernel(
        body,
        Types((128, 192), F32),
        grid=(4,),
        grid_names=("sm",),
        num_threads=2,
        thread_name="wg",
    )
    return Case(call, _FACTORS, _wide_product, 1e-3)


def layer_norm_matmul() -> Case:
    """Rows are normalised in front of a product, and what follows it is computed on its sums."""

    def body(x, gamma, w, bias, o, rows, columns, out, arrived):
        i, j = lax.axis_index("m"), lax.axis_index("n")
        plgpu.copy_gmem_to_smem(w.at[:, pl.ds(j * 64, 64)], columns, arrived)
        v = plgpu.load(x, (pl.ds(i * 64, 64), slice(None))).astype(F32)
        centred = v - jnp.mean(v, axis=1, keepdims=True)
        scale = lax.rsqrt(jnp.mean(centred * centred, axis=1, keepdims=True) + 1e-5)
        rows[...] = (centred * scale * gamma[...]).astype(F16)
        plgpu.commit_smem()
        plgpu.barrier_wait(arrived)

        def scope(acc):
            plgpu.wgmma(acc, rows, columns)
            plgpu.wgmma_wait(0)
            return acc[...]

        sums = pl.run_scoped(scope, plgpu.ACC((64, 64))) + bias[pl.ds(j * 64, 64)]
        out[...] = (sums * jnp.tanh(sums)).astype(F16)
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(out, o.at[pl.ds(i * 64, 64), pl.ds(j * 64, 64)])
        plgpu.wait_smem_to_gmem(0)

    call = plgpu.kernel(
        body,
        Types((128, 128), F16),
        grid=(2, 2),
        grid_names=("m", "n"),
        scratch_types={
            "rows": plgpu.SMEM((64, 128), F16, **_SPECS),
            "columns": plgpu.SMEM((128, 64), F16, **_SPECS),
            "out": plgpu.SMEM((64, 64), F16, **_SPECS),
            "arrived": plgpu.Barrier(),
        },
    )

    def expected(x, gamma, w, bias):
        centred = x.astype(F32) - x.astype(F32).mean(1, keepdims=True)
        rows = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * gamma
        sums = rows.astype(F16).astype(F32) @ w.astype(F32) + bias
        return sums * np.tanh(sums)

    weights = (random(128, 130, dtype=F16)[:, :128] / 11).astype(F16)
    return Case(
        call, [random(128, 128, dtype=F16), random(128), weights, random(128)], expected, 2e-2
    )


def cluster_scan() -> Case:
    """Prefix sums of what each block has summed, in steps of one and two blocks."""

    def body(x, o, part, ready):
        rank = lax.axis_index("c")
        part[...] = jnp.broadcast_to(jnp.sum(x[pl.ds(rank * 128, 128)]), (128,))
        for distance in (1, 2):
            plgpu.barrier_arrive(ready)
            plgpu.barrier_wait(ready)
            before = plgpu.cluster_ref(part, {"c": jnp.maximum(rank - distance, 0)})[...]
            sums = jnp.where(rank >= distance, part[...] + before, part[...])
            plgpu.barrier_arrive(ready)
            plgpu.barrier_wait(ready)
            part[...] = sums
        o[pl.ds(rank * 128, 128)] = part[...]

    call = plgpu.kernel(
        body,
        Types((512,), F32),
        cluster=(4,),
        cluster_names=("c",),
        scratch_types=[plgpu.SMEM((128,), F32), plgpu.ClusterBarrier(collective_axes=("c",))],
    )
    return Case(
        call, [random(512)], lambda x: np.repeat(np.cumsum(x.reshape(4, 128).sum(1)), 128), 1e-4
    )


def shared_buffers() -> Case:
    """A tile, then two in its memory; two copies in one group, of which the second only where a predicate holds."""
    tile = plgpu.SMEM((64, 32), F32)

    def body(x, o, buffers, arrived):
        first, (left, right) = buffers
        plgpu.griddepcontrol_wait()

        @plgpu.dynamic_scheduling_loop(grid_names=("i",))
        def _(info):
            (i,) = info.index
            rows = pl.ds(i * 64, 64)
            plgpu.copy_gmem_to_smem(x.at[rows], first, arrived)
            plgpu.barrier_wait(arrived)
            held = first[...]
            plgpu.commit_smem()
            left[...], right[...] = held * 2, held * 3
            plgpu.commit_smem()
            plgpu.copy_smem_to_gmem(left, o.at[0, rows], commit_group=False)
            plgpu.copy_smem_to_gmem(right, o.at[i, rows], predicate=i == 1, commit_group=False)
            plgpu.commit_smem_to_gmem_group()
            plgpu.wait_smem_to_gmem(0)

        @pl.when(lax.axis_index("i") == 0)
        def _():
            o[1, pl.ds(0, 64)] = x[pl.ds(0, 64)]

        plgpu.griddepcontrol_launch_dependents()

    call = plgpu.kernel(
        body,
        Types((2, 128, 32), F32),
        grid=(2,),
        grid_names=("i",),
        scratch_types=[plgpu.RefUnion(tile, [tile, tile]), plgpu.Barrier()],
    )

    def expected(x):
        return np.stack([2 * x, np.concatenate([x[:64], 3 * x[64:]])])

    return Case(call, [random(128, 32)], expected, 0)


def atomic_bits() -> Case:
    """Every atomic update of shared memory but the addition."""
    names = ("and", "or", "xor", "min", "max")

    def body(x, o, held):
        for number, name in enumerate(names):
            held[...] = x[0]
            plgpu.commit_smem()
            getattr(plgpu, f"atomic_{name}")(held, x[1])
            plgpu.commit_smem()
            o[number] = held[...]
            plgpu.commit_smem()

    call = plgpu.kernel(
        body, Types((5, 128), np.int32), scratch_types=[plgpu.SMEM((128,), np.int32)]
    )
    numbers = np.random.default_rng(0).integers(-99, 99, (2, 128)).astype(np.int32)

    def expected(x):
        a, b = x
        return np.stack([a & b, a | b, a ^ b, np.minimum(a, b), np.maximum(a, b)])

    return Case(call, [numbers], expected, 0)
