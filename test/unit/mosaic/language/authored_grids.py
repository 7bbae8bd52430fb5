"""Small kernels in the language: grids, blocks, copies, pipelines, and functions made of others."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from unit.mosaic.language.cases import (
    F32,
    I32,
    case,
    like,
    numbers,
)

from mlirhlo import mosaic as pl
from mlirhlo.mosaic import lax
from mlirhlo.mosaic import numpy as jnp
from mlirhlo.mosaic import tpu as pltpu


def rows_of(block: int, width: int) -> Any:
    return pl.BlockSpec((block, width), lambda i: (i, 0))


@case(
    [numbers(20, 200)],
    like((20, 200)),
    lambda x: x + 1,
    grid=(3, 2),
    in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, j))],
    out_specs=pl.BlockSpec((8, 128), lambda i, j: (i, j)),
)
def ragged_blocks(x_ref, o_ref):
    o_ref[...] = x_ref[...] + 1.0


@case(
    [numbers(64, 128)],
    like((8, 128)),
    lambda x: x.reshape(8, 8, 128).sum(0),
    grid=(8,),
    in_specs=[rows_of(8, 128)],
    out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
)
def accumulated_output(x_ref, o_ref):
    @pl.when(pl.program_id(0) == 0)
    def _():
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] += x_ref[...]


@case(
    [numbers(4, 8, 128)],
    like((4, 8, 128)),
    lambda x: x[::-1] + np.arange(4)[:, None, None],
    grid=(("step", 4),),
    in_specs=[pl.BlockSpec((None, 8, 128), lambda i: (3 - i, 0, 0))],
    out_specs=pl.BlockSpec((None, 8, 128), lambda i: (i, 0, 0)),
    compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
)
def reversed_blocks(x_ref, o_ref):
    o_ref[...] = x_ref[...] + pl.program_id("step").astype(F32)


@case(
    [np.array([2, 0, 1], I32), numbers(4, 8, 128)],
    like((3, 8, 128)),
    lambda i, x: x[i],
    grid_spec=pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(3,),
        in_specs=[pl.BlockSpec((None, 8, 128), lambda i, at: (at[i], 0, 0))],
        out_specs=pl.BlockSpec((None, 8, 128), lambda i, at: (i, 0, 0)),
    ),
)
def prefetched_indices(at_ref, x_ref, o_ref):
    o_ref[...] = x_ref[...]


@case(
    [numbers(32, 128)],
    like((16, 128)),
    lambda x: np.concatenate([x[0:8], x[16:24]]),
    grid=(2,),
    in_specs=[pl.BlockSpec((pl.Element(8), pl.Element(128)), lambda i: (i * 16, 0))],
    out_specs=rows_of(8, 128),
)
def blocks_by_elements(x_ref, o_ref):
    o_ref[...] = x_ref[...]


@case(
    [numbers(16, 128)],
    like((16, 128)),
    lambda x: x * 2,
    input_output_aliases={0: 0},
    grid=(2,),
    in_specs=[rows_of(8, 128)],
    out_specs=rows_of(8, 128),
)
def in_place(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2.0


@case(
    [numbers(16, 128)],
    (like((16, 128)), like((16, 128))),
    lambda x: (x + 1, x * 2),
    grid=(2,),
    in_specs=[rows_of(8, 128)],
    out_specs=[rows_of(8, 128), rows_of(8, 128)],
)
def two_results(x_ref, a_ref, b_ref):
    a_ref[...], b_ref[...] = x_ref[...] + 1.0, x_ref[...] * 2.0


@case(
    [numbers(32, 128)],
    like((32, 128)),
    lambda x: x + 1,
    in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
    out_specs=pl.BlockSpec(memory_space=pl.ANY),
    scratch_shapes=[pltpu.VMEM((32, 128), F32), pltpu.SemaphoreType.DMA],
)
def copied_by_hand(x_ref, o_ref, buffer, sem):
    pltpu.async_copy(x_ref, buffer, sem).wait()
    buffer[...] += 1.0
    pltpu.sync_copy(buffer, o_ref)


@case(
    [numbers(32, 128)],
    like((32, 128)),
    lambda x: x,
    in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
    out_specs=pl.BlockSpec(memory_space=pl.ANY),
)
def scoped_copies(x_ref, o_ref):
    def body(buffer, sems):
        copies = [
            pltpu.make_async_copy(x_ref.at[pl.ds(i * 16, 16)], buffer.at[i], sems.at[i])
            for i in range(2)
        ]
        for copy in copies:
            copy.start()
        for copy in copies:
            copy.wait()
        for i in range(2):
            pltpu.sync_copy(buffer.at[i], o_ref.at[pl.ds(i * 16, 16)])

    pl.run_scoped(body, pltpu.VMEM((2, 16, 128), F32), pltpu.SemaphoreType.DMA((2,)))


@case(
    [numbers(64, 256), numbers(64, 256, seed=1)],
    like((64, 256)),
    lambda x, y: x * y,
    in_specs=[pl.BlockSpec(memory_space=pl.ANY)] * 2,
    out_specs=pl.BlockSpec(memory_space=pl.ANY),
)
def pipelined_product(x_ref, y_ref, o_ref):
    def body(x, y, o):
        o[...] = x[...] * y[...]

    spec = pl.BlockSpec((16, 128), lambda i, j: (i, j))
    pltpu.emit_pipeline(body, grid=(4, 2), in_specs=[spec, spec], out_specs=[spec])(
        x_ref, y_ref, o_ref
    )


@case(
    [numbers(64, 128)],
    like((16, 128)),
    lambda x: x.reshape(4, 16, 128).sum(0),
    in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
    out_specs=pl.BlockSpec(memory_space=pl.ANY),
    tolerance=1e-4,
    scratch_shapes=[pltpu.VMEM((16, 128), F32)],
)
def pipelined_sum(x_ref, o_ref, acc_ref):
    acc_ref[...] = jnp.zeros_like(acc_ref)

    def body(x):
        acc_ref[...] += x[...]

    pltpu.emit_pipeline(body, grid=(4,), in_specs=[pl.BlockSpec((16, 128), lambda i: (i, 0))])(
        x_ref
    )
    pltpu.sync_copy(acc_ref, o_ref)


@case(
    [numbers(40, 128)],
    like((40, 128)),
    lambda x: 2 * x,
    in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
    out_specs=pl.BlockSpec(memory_space=pl.ANY),
)
def pipelined_bounded_slices(x_ref, o_ref):
    def rows(i):
        # 16, 16 and the 8 that are left.
        return pl.ds(16 * i, jnp.minimum(16, 40 - 16 * i)), 0

    def body(x, o):
        o[...] = 2 * x[...]

    spec = pl.BlockSpec((pl.BoundedSlice(16), 128), rows)
    pltpu.emit_pipeline(body, grid=(3,), in_specs=[spec], out_specs=[spec])(x_ref, o_ref)


_GROUPS = np.array([0, 8, 8, 32, 40], I32)


@case(
    [_GROUPS, numbers(40, 128)],
    like((32, 128)),
    lambda offsets, x: np.repeat([x[a:b].sum(0) for a, b in pairwise(offsets)], 8, axis=0),
    in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pl.ANY)],
    out_specs=pl.BlockSpec(memory_space=pl.ANY),
    tolerance=1e-4,
)
def pipelined_groups(offsets_ref, x_ref, o_ref):
    def rows(i):
        return pl.ds(offsets_ref[i], offsets_ref[i + 1] - offsets_ref[i]), 0

    def body(x, o):
        group = pl.program_id(0)
        count = offsets_ref[group + 1] - offsets_ref[group]
        row = lax.broadcasted_iota(I32, (24, 128), 0)
        kept = jnp.where(row < count, x[...], 0.0)
        o[...] = jnp.broadcast_to(kept.sum(axis=0, keepdims=True), (8, 128))

    pltpu.emit_pipeline(
        body,
        grid=(4,),
        in_specs=[pl.BlockSpec((pl.BoundedSlice(24), 128), rows)],
        out_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
    )(x_ref, o_ref)


@case(
    [numbers(40, 128)],
    like((40, 128)),
    lambda x: np.pad(x, ((8, 0), (0, 0)))[:40] + x,
    in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
    out_specs=pl.BlockSpec(memory_space=pl.ANY),
)
def pipelined_padding(x_ref, o_ref):
    def body(x, o):
        row = lax.broadcasted_iota(I32, (16, 128), 0) + 8 * pl.program_id(0) - 8
        kept = jnp.where((row >= 0) & (row < 40), x[...], 0.0)
        o[...] = kept[:8] + kept[8:]

    windows = (pl.Element(16, (8, 8)), pl.Element(128))
    pltpu.emit_pipeline(
        body,
        grid=(5,),
        in_specs=[pl.BlockSpec(windows, lambda i: (8 * i, 0))],
        out_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
    )(x_ref, o_ref)


def _functions(x):
    return (
        np.sinh(x)
        + np.cosh(x)
        + np.log10(np.abs(x) + 1)
        + np.logaddexp(x, 0.5)
        + np.hypot(x, 2.0)
        + np.copysign(3.0, x)
    )


@case([numbers(16, 128)], like((16, 128)), _functions, tolerance=1e-4)
def derived_functions(x_ref, o_ref):
    x = x_ref[...]
    found = jnp.sinh(x) + jnp.cosh(x) + jnp.log10(jnp.abs(x) + 1) + jnp.logaddexp(x, 0.5)
    o_ref[...] = found + jnp.hypot(x, 2.0) + jnp.copysign(3.0, x)


@case(
    [numbers(16, 256)],
    [like((16, 1)), like((16, 1)), like((16, 1)), like((16, 1), I32)],
    lambda x: [
        x.var(1, keepdims=True),
        x.std(1, ddof=1, keepdims=True),
        np.ptp(x, 1, keepdims=True),
        np.count_nonzero(x > 0, 1, keepdims=True),
    ],
    tolerance=1e-4,
)
def derived_reductions(x_ref, var_ref, std_ref, ptp_ref, count_ref):
    x = x_ref[...]
    var_ref[...] = jnp.var(x, 1, keepdims=True)
    std_ref[...] = jnp.std(x, 1, ddof=1, keepdims=True)
    ptp_ref[...] = jnp.ptp(x, 1, keepdims=True)
    count_ref[...] = jnp.count_nonzero(x > 0, 1, keepdims=True)


@case(
    [numbers(16, 128)],
    [like((32, 256)), like((16, 128)), like((32, 128)), like((16, 128))],
    lambda x: [
        np.pad(x, ((8, 8), (0, 128)), constant_values=2.0),
        np.tril(x) - np.triu(x, 2),
        np.repeat(x, 2, 0),
        np.where(x > 1, 1, np.where(x < -1, -1, x)),
    ],
)
def derived_shapes(x_ref, padded_ref, triangles_ref, repeated_ref, chosen_ref):
    x = x_ref[...]
    padded_ref[...] = jnp.pad(x, ((8, 8), (0, 128)), constant_values=2.0)
    triangles_ref[...] = jnp.tril(x) - jnp.triu(x, 2)
    repeated_ref[...] = jnp.repeat(x, 2, 0)
    chosen_ref[...] = jnp.select([x > 1, x < -1], [1.0, -1.0], x)


@case(
    [numbers(16, 256)],
    [like((2, 16, 128)), like((16, 128)), like((16, 128))],
    lambda x: [x.reshape(16, 2, 128).transpose(1, 0, 2), x[:, 128:], np.clip(x[:, :128], -1, 1)],
)
def derived_lax(x_ref, split_ref, half_ref, clamped_ref):
    x = x_ref[...]
    split_ref[...] = pltpu.einshape("a(bc)->bac", x, c=128)
    half_ref[...] = lax.slice_in_dim(x, 128, 256, axis=1)
    half, _ = lax.scan(lambda carry, _: (carry + 0.0, None), x[:, :128], length=2)
    clamped_ref[...] = lax.clamp(-1.0, half, 1.0)


@case(
    [numbers(64, 128)],
    [like((64, 128)), like((64, 128))],
    lambda x: [2 * x, 4 * x],
    in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
    out_specs=[pl.BlockSpec(memory_space=pl.ANY)] * 2,
)
def pipelines_that_share_buffers(x_ref, between_ref, o_ref):
    def body(x, o):
        o[...] = 2 * x[...]

    spec = pl.BlockSpec((16, 128), lambda i: (i, 0))
    pipeline, make_allocations = pltpu.emit_pipeline_with_allocations(
        body, grid=(4,), in_specs=[spec], out_specs=[spec]
    )

    def twice(allocations):
        pipeline(x_ref, between_ref, allocations=allocations)
        pipeline(between_ref, o_ref, allocations=allocations)

    pl.run_scoped(twice, make_allocations(x_ref, o_ref))


@case(
    [np.array([4], I32)],
    like((2, 8, 128), I32),
    lambda s: None,
    in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM)],
)
def random_bits(seed_ref, o_ref):
    pltpu.prng_seed(seed_ref[0])
    o_ref[0] = pltpu.prng_random_bits((8, 128))
    o_ref[1] = pltpu.prng_random_bits((8, 128))


@case([numbers(8, 128)], like((8, 128)), lambda x: x)
def messages(x_ref, o_ref):
    pl.debug_print("the first element is {}", x_ref[0, 0])
    o_ref[...] = x_ref[...]


@case(
    [numbers(20, 200)],
    like((20, 1)),
    lambda x: x.sum(1, keepdims=True),
    tolerance=1e-4,
    grid=(3, 2),
    in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, j))],
    out_specs=pl.BlockSpec((8, 1), lambda i, j: (i, 0)),
)
def sums_of_ragged_rows(x_ref, o_ref):
    at = pl.program_id(1)
    column = lax.broadcasted_iota(I32, (8, 128), 1) + at * 128
    total = jnp.sum(jnp.where(column < 200, x_ref[...], 0.0), axis=1, keepdims=True)

    @pl.when(at == 0)
    def _():
        o_ref[...] = total

    @pl.when(at > 0)
    def _():
        o_ref[...] += total


def _kept(x: Any) -> Any:
    number = np.arange(8 * 128, dtype=np.uint32).reshape(8, 128) * np.uint32(2654435761)
    number ^= number >> np.uint32(16)
    return np.where(number < np.uint32(3 << 30), x * (4 / 3), 0)


@case([numbers(8, 128)], like((8, 128)), _kept)
def dropped_by_hash(x_ref, o_ref):
    number = lax.broadcasted_iota(np.uint32, (8, 128), 0) * np.uint32(128)
    number = (number + lax.broadcasted_iota(np.uint32, (8, 128), 1)) * np.uint32(2654435761)
    number = number ^ (number >> np.uint32(16))
    o_ref[...] = jnp.where(number < np.uint32(3 << 30), x_ref[...] * np.float32(4 / 3), 0.0)


@case([numbers(8, 128)], like((8, 128)), lambda x: np.where(np.arange(128) < 100, x, 0))
def stored_by_mask(x_ref, o_ref):
    o_ref[...] = jnp.zeros_like(o_ref)
    pltpu.store(o_ref, x_ref[...], mask=lax.broadcasted_iota(I32, (8, 128), 1) < 100)
