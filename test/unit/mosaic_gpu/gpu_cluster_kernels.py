"""Kernels whose blocks work in clusters."""

from __future__ import annotations

import numpy as np
from unit.mosaic_gpu.gpu_case import F16, F32, TILES, Case, Types, random

from mlirhlo import mosaic as pl
from mlirhlo.mosaic import gpu as plgpu
from mlirhlo.mosaic import lax


def cluster_sums() -> Case:
    """Blocks of a cluster add up what each has summed."""

    def body(x, o, part, ready):
        rank = lax.axis_index("c")
        part[...] = x[pl.ds(rank * 64, 64), :].sum(axis=0)
        plgpu.barrier_arrive(ready)
        plgpu.barrier_wait(ready)

        @pl.when(rank == 0)
        def _():
            total = part[...]
            for peer in range(1, 4):
                total = total + plgpu.cluster_ref(part, {"c": peer})[...]
            o[...] = total

    call = plgpu.kernel(
        body,
        Types((128,), F32),
        cluster=(4,),
        cluster_names=("c",),
        scratch_types=[plgpu.SMEM((128,), F32), plgpu.ClusterBarrier(collective_axes=("c",))],
    )
    return Case(call, [random(256, 128)], lambda x: x.sum(0), 1e-4)


def multicast_copy() -> Case:
    """Each of four blocks copies a quarter of a tile to all of them, twice."""

    def body(x, o, tile, arrived, read):
        rank = lax.axis_index("c")
        for step in range(2):
            plgpu.copy_gmem_to_smem(x.at[step], tile, arrived, collective_axes="c")
            plgpu.barrier_wait(arrived)
            o[rank, step] = tile[...] * 2
            plgpu.barrier_arrive(read)
            plgpu.barrier_wait(read)

    call = plgpu.kernel(
        body,
        Types((4, 2, 64, 32), F32),
        cluster=(4,),
        cluster_names=("c",),
        scratch_types=[
            plgpu.SMEM((64, 32), F32),
            plgpu.Barrier(),
            plgpu.ClusterBarrier(collective_axes=("c",)),
        ],
    )
    return Case(call, [random(2, 64, 32)], lambda x: np.stack([2 * x] * 4), 0)


def multicast_matmul() -> Case:
    """Blocks of a row of a cluster share a tile of the left factor, those of a column one of the right."""

    def body(a, b, o, sa, sb, acc, arrived):
        i, j = lax.axis_index("i"), lax.axis_index("j")
        rows, columns = pl.ds(i * 64, 64), pl.ds(j * 64, 64)
        plgpu.copy_gmem_to_smem(a.at[rows], sa, arrived, collective_axes="j")
        plgpu.copy_gmem_to_smem(b.at[:, columns], sb, arrived, collective_axes=("i",))
        plgpu.barrier_wait(arrived)
        plgpu.wgmma(acc, sa, sb)
        plgpu.wgmma_wait(0)
        o[rows, columns] = acc[...]

    call = plgpu.kernel(
        body,
        Types((128, 128), F32),
        cluster=(2, 2),
        cluster_names=("i", "j"),
        scratch_types=[
            plgpu.SMEM((64, 64), F16, transforms=TILES),
            plgpu.SMEM((64, 64), F16, transforms=TILES),
            plgpu.ACC((64, 64)),
            plgpu.Barrier(num_arrivals=2),
        ],
    )
    arrays = [random(128, 64, dtype=F16), random(64, 128, dtype=F16)]
    return Case(call, arrays, lambda a, b: a.astype(F32) @ b.astype(F32), 1e-4)
