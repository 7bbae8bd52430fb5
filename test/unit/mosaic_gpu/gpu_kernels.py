"""Kernels in the language of GPUs, with operands and what they compute."""

from __future__ import annotations

from typing import Any

import numpy as np
from unit.mosaic_gpu.gpu_case import F16, F32, TILES, Case, Types, random
from unit.mosaic_gpu.gpu_cluster_kernels import cluster_sums, multicast_copy, multicast_matmul
from unit.mosaic_gpu.gpu_persistent_kernels import (
    atomic_bits,
    cluster_scan,
    layer_norm_matmul,
    persistent_matmul,
    persistent_specialised_matmul,
    shared_buffers,
)
from unit.mosaic_gpu.gpu_tensor_kernels import tensor_matmul, tensor_sums

from mlirhlo import mosaic as pl
from mlirhlo.mosaic import gpu as plgpu
from mlirhlo.mosaic import lax
from mlirhlo.mosaic import numpy as jnp


def add() -> Case:
    def body(x, y, o, xs, ys, arrived):
        rows = pl.ds(lax.axis_index("i") * 64, 64)
        plgpu.copy_gmem_to_smem(x.at[rows], xs, arrived)
        plgpu.copy_gmem_to_smem(y.at[rows], ys, arrived)
        plgpu.barrier_wait(arrived)
        xs[...] = xs[...] + ys[...]
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(xs, o.at[rows])
        plgpu.wait_smem_to_gmem(0)

    call = plgpu.kernel(
        body,
        Types((128, 64), F32),
        grid=(2,),
        grid_names=("i",),
        scratch_types=[plgpu.SMEM((64, 64), F32)] * 2 + [plgpu.Barrier(num_arrivals=2)],
    )
    return Case(call, [random(128, 64)] * 2, lambda x, y: x + y, 0)


def softmax() -> Case:
    def body(x, o, xs, arrived):
        plgpu.copy_gmem_to_smem(x, xs, arrived)
        plgpu.barrier_wait(arrived)
        v = xs[...]
        e = jnp.exp(v - v.max(axis=1, keepdims=True))
        o[...] = e / e.sum(axis=1, keepdims=True)

    call = plgpu.kernel(
        body, Types((64, 64), F32), scratch_types=[plgpu.SMEM((64, 64), F32), plgpu.Barrier()]
    )

    def expected(x):
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    return Case(call, [random(64, 64)], expected)


def layernorm() -> Case:
    def body(x, gamma, o):
        v = x[...]
        mean = v.mean(axis=1, keepdims=True)
        centred = v - mean
        variance = (centred * centred).mean(axis=1, keepdims=True)
        o[...] = centred / jnp.sqrt(variance + 1e-6) * gamma[...].reshape(1, 32)

    call = plgpu.kernel(body, Types((64, 32), F32))

    def expected(x, gamma):
        c = x - x.mean(1, keepdims=True)
        return c / np.sqrt((c * c).mean(1, keepdims=True) + 1e-6) * gamma

    return Case(call, [random(64, 32), random(32)], expected)


def column_sums() -> Case:
    def body(x, o):
        o[...] = x[...].sum(axis=0)

    return Case(plgpu.kernel(body, Types((32,), F32)), [random(128, 32)], lambda x: x.sum(0), 1e-4)


def total() -> Case:
    def body(x, o):
        v = x[...]
        o[0] = v.sum()
        o[1] = v.max()

    return Case(
        plgpu.kernel(body, Types((2,), F32)),
        [random(1024)],
        lambda x: np.array([x.sum(), x.max()]),
        1e-4,
    )


def matmul() -> Case:
    """wgmma with a pipeline of copies by tensor maps."""

    def body(a, b, o, os):
        i, j = lax.axis_index("m"), lax.axis_index("n")

        def scope(acc):
            def step(_, a_s, b_s):
                plgpu.wgmma(acc, a_s, b_s)
                plgpu.wgmma_wait(0)

            plgpu.emit_pipeline(
                step,
                grid=(4,),
                in_specs=[
                    plgpu.BlockSpec((64, 64), lambda k: (i, k), transforms=TILES),
                    plgpu.BlockSpec((64, 64), lambda k: (k, j), transforms=TILES),
                ],
                max_concurrent_steps=2,
            )(a, b)
            return acc[...]

        os[...] = pl.run_scoped(scope, plgpu.ACC((64, 64))).astype(F16)
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(os, o.at[pl.ds(i * 64, 64), pl.ds(j * 64, 64)])
        plgpu.wait_smem_to_gmem(0)

    call = plgpu.kernel(
        body,
        Types((128, 128), F16),
        grid=(2, 2),
        grid_names=("m", "n"),
        scratch_types=[plgpu.SMEM((64, 64), F16, transforms=TILES)],
    )
    product = lambda a, b: (a.astype(F32) @ b.astype(F32)).astype(F16)  # noqa: E731
    return Case(call, [random(128, 256, dtype=F16), random(256, 128, dtype=F16)], product, 2e-2)


def transposed_matmul() -> Case:
    """Both factors have their terms side by side."""

    def body(a, b, o, a_s, b_s, arrived):
        plgpu.copy_gmem_to_smem(a, a_s, arrived)
        plgpu.copy_gmem_to_smem(b, b_s, arrived)
        plgpu.barrier_wait(arrived)

        def scope(acc):
            plgpu.wgmma(acc, a_s, b_s.T)
            plgpu.wgmma_wait(0)
            return acc[...]

        o[...] = pl.run_scoped(scope, plgpu.ACC((128, 32)))

    call = plgpu.kernel(
        body,
        Types((128, 32), F32),
        scratch_types=[
            plgpu.SMEM((128, 128), F16, transforms=TILES),
            plgpu.SMEM((32, 128), F16, transforms=TILES),
            plgpu.Barrier(num_arrivals=2),
        ],
    )
    return Case(
        call,
        [random(128, 128, dtype=F16), random(32, 128, dtype=F16)],
        lambda a, b: a.astype(F32) @ b.astype(F32).T,
        1e-3,
    )


def specialised_matmul() -> Case:
    """A warp group copies, two others multiply."""

    def body(a, b, o):
        wg = lax.axis_index("wg")

        def compute(pipeline):
            def scope(acc):
                pipeline_of["acc"] = acc
                pipeline(None)
                o[pl.ds(wg * 64, 64), :] = acc[...]

            pl.run_scoped(scope, plgpu.ACC((64, 64)))

        pipeline_of: dict[str, Any] = {}

        def step(_, a_s, b_s):
            plgpu.wgmma(pipeline_of["acc"], a_s.at[pl.ds(wg * 64, 64)], b_s)
            plgpu.wgmma_wait(0)

        plgpu.emit_pipeline_warp_specialized(
            step,
            grid=(4,),
            memory_registers=40,
            in_specs=[
                plgpu.BlockSpec((128, 64), lambda k: (0, k), transforms=TILES),
                plgpu.BlockSpec((64, 64), lambda k: (k, 0), transforms=TILES),
            ],
            max_concurrent_steps=2,
            wg_axis="wg",
            num_compute_wgs=2,
            compute_context=compute,
        )(a, b)

    call = plgpu.kernel(body, Types((128, 64), F32), num_threads=3, thread_name="wg")
    return Case(
        call,
        [random(128, 256, dtype=F16), random(256, 64, dtype=F16)],
        lambda a, b: a.astype(F32) @ b.astype(F32),
        1e-3,
    )


def flash_attention() -> Case:
    """A warp group copies keys and values, another has the queries."""
    length, size, block = 256, 64, 64

    def body(q, k, v, o, qs, q_arrived):
        wg = lax.axis_index("wg")
        rows = pl.ds(lax.axis_index("i") * 64, 64)

        def compute(pipeline):
            plgpu.copy_gmem_to_smem(q.at[rows], qs, q_arrived)
            plgpu.barrier_wait(q_arrived)
            start = (
                jnp.zeros((64, size), F32),
                jnp.full((64, 1), -1e30, F32),
                jnp.zeros((64, 1), F32),
            )
            acc, _, total = pipeline(start)
            o[rows, :] = acc / total

        def step(_, k_s, v_s, carry):
            acc, top, total = carry

            def scores(s):
                plgpu.wgmma(s, qs, k_s.T)
                plgpu.wgmma_wait(0)
                return s[...]

            s = pl.run_scoped(scores, plgpu.ACC((64, block))) * (size**-0.5)
            new = jnp.maximum(top, s.max(axis=1, keepdims=True))
            p = jnp.exp(s - new)
            scale = jnp.exp(top - new)

            def values(held):
                plgpu.wgmma(held, p.astype(F16), v_s)
                plgpu.wgmma_wait(0)
                return held[...]

            acc = pl.run_scoped(values, plgpu.ACC.init(acc * scale))
            return acc, new, total * scale + p.sum(axis=1, keepdims=True)

        plgpu.emit_pipeline_warp_specialized(
            step,
            grid=(length // block,),
            memory_registers=40,
            in_specs=[plgpu.BlockSpec((block, size), lambda j: (j, 0), transforms=TILES)] * 2,
            max_concurrent_steps=2,
            wg_axis="wg",
            num_compute_wgs=1,
            compute_context=compute,
        )(k, v)
        del wg

    call = plgpu.kernel(
        body,
        Types((128, size), F32),
        grid=(2,),
        grid_names=("i",),
        num_threads=2,
        thread_name="wg",
        scratch_types=[plgpu.SMEM((64, size), F16, transforms=TILES), plgpu.Barrier()],
    )

    def expected(q, k, v):
        s = q.astype(F32) @ k.astype(F32).T * size**-0.5
        p = np.exp(s - s.max(1, keepdims=True))
        return p / p.sum(1, keepdims=True) @ v.astype(F32)

    arrays = [random(128, size, dtype=F16)] + [random(length, size, dtype=F16) for _ in range(2)]
    return Case(call, arrays, expected, 5e-3)


def histogram() -> Case:
    """Counts in shared memory by atomic additions of two warp groups."""

    def body(x, o, counts, met):
        wg = lax.axis_index("wg")

        @pl.when(wg == 0)
        def _():
            counts[...] = jnp.zeros((128,), np.int32)

        plgpu.barrier_arrive(met)
        plgpu.barrier_wait(met)
        mask = (x[pl.ds(wg * 128, 128)] > 0).astype(np.int32)
        plgpu.atomic_add(counts, mask)
        plgpu.barrier_arrive(met)
        plgpu.barrier_wait(met)

        @pl.when(wg == 0)
        def _():
            o[...] = counts[...]

    call = plgpu.kernel(
        body,
        Types((128,), np.int32),
        num_threads=2,
        thread_name="wg",
        scratch_types=[plgpu.SMEM((128,), np.int32), plgpu.Barrier(num_arrivals=2)],
    )
    return Case(call, [random(256)], lambda x: (x.reshape(2, 128) > 0).sum(0).astype(np.int32), 0)


def scaled_copy() -> Case:
    """A pipeline that reads and writes, over the rows that are this block's."""

    def body(x, o):
        block = lax.axis_index("i")

        def step(_, xs, os):
            os[...] = xs[...] * 2.0

        plgpu.emit_pipeline(
            step,
            grid=(4,),
            in_specs=[plgpu.BlockSpec((64, 32), lambda k: (4 * block + k, 0))],
            out_specs=[plgpu.BlockSpec((64, 32), lambda k: (4 * block + k, 0))],
            max_concurrent_steps=2,
        )(x, o)

    call = plgpu.kernel(body, Types((512, 32), F32), grid=(2,), grid_names=("i",))
    return Case(call, [random(512, 32)], lambda x: 2 * x, 0)


def shared_tiles() -> Case:
    """`nd_loop`: three blocks share eight tiles, in the order of a snake."""

    def body(x, o):
        @plgpu.nd_loop((8,), collective_axes="i")
        def _(info):
            r, c = plgpu.planar_snake(info.index[0], (4, 2), 0, 2)
            where = pl.ds(r * 64, 64), pl.ds(c * 32, 32)
            o[where] = jnp.tanh(x[where])

    call = plgpu.kernel(body, Types((256, 64), F32), grid=(3,), grid_names=("i",))
    return Case(call, [random(256, 64)], np.tanh, 1e-5)


CASES = {
    one.__name__: one
    for one in (
        add,
        softmax,
        layernorm,
        column_sums,
        total,
        matmul,
        transposed_matmul,
        specialised_matmul,
        flash_attention,
        cluster_sums,
        multicast_copy,
        multicast_matmul,
        tensor_matmul,
        tensor_sums,
        histogram,
        scaled_copy,
        shared_tiles,
        persistent_matmul,
        persistent_specialised_matmul,
        layer_norm_matmul,
        cluster_scan,
        shared_buffers,
        atomic_bits,
    )
}
