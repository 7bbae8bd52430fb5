"""Kernels for sm_100a, with tensor memory."""

from __future__ import annotations

from unit.mosaic_gpu.gpu_case import F16, F32, TILES, Case, Types, random

from mlirhlo import mosaic as pl
from mlirhlo.mosaic import gpu as plgpu

DONE = plgpu.Barrier(orders_tensor_core=True)


def tensor_matmul() -> Case:
    """Tiles by tensor maps, sums in tensor memory, the result by a copy."""

    def body(a, b, o, a_s, b_s, out, acc, arrived, done):
        for step in range(2):
            terms = pl.ds(step * 64, 64)
            plgpu.copy_gmem_to_smem(a.at[:, terms], a_s, arrived)
            plgpu.copy_gmem_to_smem(b.at[terms], b_s, arrived)
            plgpu.barrier_wait(arrived)
            plgpu.tcgen05_mma(acc, a_s, b_s, done, accumulate=step > 0)
            plgpu.barrier_wait(done)
        found = plgpu.async_load_tmem(acc)
        plgpu.wait_load_tmem()
        out[...] = found.astype(F16)
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(out, o)
        plgpu.wait_smem_to_gmem(0)

    call = plgpu.kernel(
        body,
        Types((128, 64), F16),
        scratch_types=[
            plgpu.SMEM((128, 64), F16, transforms=TILES),
            plgpu.SMEM((64, 64), F16, transforms=TILES),
            plgpu.SMEM((128, 64), F16, transforms=TILES),
            plgpu.TMEM((128, 64), F32),
            plgpu.Barrier(num_arrivals=2),
            DONE,
        ],
    )
    arrays = [random(128, 128, dtype=F16), random(128, 64, dtype=F16)]
    return Case(call, arrays, lambda a, b: a.astype(F32) @ b.astype(F32), 5e-3, "b200")


def tensor_sums() -> Case:
    """Sums that a warp group begins, scales and reduces; the right factor is transposed."""

    def body(a, b, o, rows, a_s, b_s, acc, arrived, done):
        plgpu.async_store_tmem(acc, 1.0)
        plgpu.commit_tmem()
        plgpu.copy_gmem_to_smem(a, a_s, arrived)
        plgpu.copy_gmem_to_smem(b, b_s, arrived)
        plgpu.barrier_wait(arrived)
        plgpu.tcgen05_mma(acc, a_s, plgpu.transpose_ref(b_s, (1, 0)))
        plgpu.tcgen05_commit_arrive(done)
        plgpu.barrier_wait(done)
        found = plgpu.async_load_tmem(acc)
        plgpu.wait_load_tmem()
        plgpu.async_store_tmem(acc, found * 2)
        plgpu.commit_tmem()
        doubled = plgpu.async_load_tmem(acc)
        plgpu.wait_load_tmem()
        o[...] = doubled
        rows[...] = doubled.sum(axis=1)

    call = plgpu.kernel(
        body,
        [Types((128, 48), F32), Types((128,), F32)],
        scratch_types=[
            plgpu.SMEM((128, 64), F16, transforms=TILES),
            plgpu.SMEM((48, 64), F16, transforms=TILES),
            plgpu.TMEM((128, 48), F32),
            plgpu.Barrier(num_arrivals=2),
            DONE,
        ],
    )

    def expected(a, b):
        sums = 2 * (1 + a.astype(F32) @ b.astype(F32).T)
        return [sums, sums.sum(1)]

    return Case(
        call, [random(128, 64, dtype=F16), random(48, 64, dtype=F16)], expected, 1e-3, "b200"
    )
