"""Small kernels in the language: parts of what people write for transformers, scans, sorts and rings."""

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

ANY = pl.BlockSpec(memory_space=pl.ANY)
SMEM = pl.BlockSpec(memory_space=pltpu.SMEM)


def _masked(x: Any) -> Any:
    chosen = x > 0.3
    return (
        x.sum(1, keepdims=True, where=chosen, initial=3),
        x.max(0, keepdims=True, where=chosen, initial=-1),
        x.mean(1, keepdims=True, where=chosen),
        (x > 2).any(1, keepdims=True, where=chosen).astype(I32),
        (x > 0.5).all(0, keepdims=True, where=chosen).astype(I32),
    )


@case(
    [numbers(16, 256)],
    (like((16, 1)), like((1, 256)), like((16, 1)), like((16, 1), I32), like((1, 256), I32)),
    _masked,
)
def masked_reductions(x_ref, sum_ref, max_ref, mean_ref, any_ref, all_ref):
    x = x_ref[...]
    chosen = x > 0.3
    sum_ref[...] = jnp.sum(x, axis=1, keepdims=True, where=chosen, initial=3.0)
    max_ref[...] = x.max(axis=0, keepdims=True, where=chosen, initial=-1.0)
    mean_ref[...] = jnp.mean(x, axis=1, keepdims=True, where=chosen)
    any_ref[...] = jnp.any(x > 2, axis=1, keepdims=True, where=chosen).astype(I32)
    all_ref[...] = jnp.all(x > 0.5, axis=0, keepdims=True, where=chosen).astype(I32)


def _ranked(x: Any, y: Any) -> Any:
    places = np.argsort(-x, 1, kind="stable")[:, :5], np.argsort(-y, 0, kind="stable")[:3]
    return (
        np.take_along_axis(x, places[0], 1),
        places[0].astype(I32),
        np.take_along_axis(y, places[1], 0),
        places[1].astype(I32),
    )


_TIED = np.round(numbers(8, 128))
_TIED[0], _TIED[1, 5] = -np.inf, np.inf


@case(
    [_TIED, numbers(16, 128, dtype=I32)],
    (like((8, 5)), like((8, 5), I32), like((3, 128), I32), like((3, 128), I32)),
    _ranked,
)
def ranked(x_ref, y_ref, v_ref, p_ref, w_ref, q_ref):
    v_ref[...], p_ref[...] = lax.top_k(x_ref[...], 5)
    w_ref[...], q_ref[...] = lax.top_k(y_ref[...], 3, axis=0)


@case(
    [numbers(16, 128)],
    (like((16, 128)), like((3,), I32)),
    lambda x: (np.stack([np.roll(x[i], 3 + 2 * i) for i in range(16)]), [3, 1, 0]),
    not_on=("v4",),  # No rotation of rows by different amounts.
    out_specs=[pl.BlockSpec(), SMEM],
    scratch_shapes=[pltpu.SemaphoreType.REGULAR((2,))],
)
def counted_semaphores(x_ref, o_ref, s_ref, sem):
    pl.semaphore_signal(sem.at[1], 3)
    pl.semaphore_wait(sem.at[1], 2, decrement=False)
    s_ref[0] = pl.semaphore_read(sem.at[1])
    pl.semaphore_wait(sem.at[1], 2)
    s_ref[1] = pl.semaphore_read(sem.at[1])
    s_ref[2] = pl.semaphore_read(sem.at[0])
    pl.semaphore_wait(sem.at[1], 1)
    pltpu.touch(x_ref)
    o_ref[...] = pltpu.roll(x_ref[...], 3, 1, stride=2, stride_axis=0)


@case(
    [numbers(16, 256)],
    like((8, 256)),
    lambda x: x[:8] + x[8:],
    in_specs=[ANY],
    out_specs=ANY,
)
def pipelined_one_by_one(x_hbm, o_hbm):
    def body(x_ref, o_ref):
        @pl.when(pl.program_id(1) == 0)
        def _():
            o_ref[...] = jnp.zeros((8, 128), F32)

        o_ref[...] += x_ref[...]

    pltpu.emit_pipeline(
        body,
        grid=(2, 2),
        in_specs=[pl.BlockSpec((8, 128), lambda i, j: (j, i))],
        out_specs=[pl.BlockSpec((8, 128), lambda i, j: (0, i))],
        no_pipelining=True,
        trace_scopes=False,
    )(x_hbm, o_hbm)


def _softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


PAGE, HEADS = 16, 8


def _paged(lengths: Any, table: Any, q: Any, k: Any, v: Any) -> Any:
    found: list[Any] = []
    for length, pages, rows in zip(lengths, table, q.astype(np.float64), strict=True):
        keys, values = (a[pages].reshape(-1, 128)[:length] for a in (k, v))
        found.append(_softmax(rows @ keys.T) @ values)
    return np.stack(found)


@case(
    [
        np.array([37, 5], I32),
        np.array([[7, 2, 11, 0], [3, 3, 3, 3]], I32),
        numbers(2, HEADS, 128) * F32(0.1),
        numbers(12, PAGE, 128),
        numbers(12, PAGE, 128, seed=1),
    ],
    like((2, HEADS, 128)),
    _paged,
    tolerance=1e-3,
    grid_spec=pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=2,
        grid=(2,),
        in_specs=[pl.BlockSpec((None, HEADS, 128), lambda b, *_: (b, 0, 0)), ANY, ANY],
        out_specs=pl.BlockSpec((None, HEADS, 128), lambda b, *_: (b, 0, 0)),
        scratch_shapes=[
            pltpu.VMEM((2, PAGE, 128), F32),
            pltpu.VMEM((2, PAGE, 128), F32),
            pltpu.SemaphoreType.DMA((2, 2)),
            pltpu.VMEM((HEADS, 1), F32),
            pltpu.VMEM((HEADS, 1), F32),
            pltpu.VMEM((HEADS, 128), F32),
        ],
    ),
)
def paged_attention(
    len_ref, table_ref, q_ref, k_hbm, v_hbm, o_ref, k_ref, v_ref, sems, best_ref, sum_ref, acc_ref
):
    row = pl.program_id(0)
    best_ref[...] = jnp.full_like(best_ref, -1e30)
    sum_ref[...] = jnp.zeros_like(sum_ref)
    acc_ref[...] = jnp.zeros_like(acc_ref)
    count = pl.cdiv(len_ref[row], PAGE)

    def copies(at, slot):
        page = table_ref[row, at]
        keys = pltpu.make_async_copy(k_hbm.at[page], k_ref.at[slot], sems.at[0, slot])
        return keys, pltpu.make_async_copy(v_hbm.at[page], v_ref.at[slot], sems.at[1, slot])

    @pl.when(count > 0)
    def _():
        for copy in copies(0, 0):
            copy.start()

    def step(at, _):
        slot = lax.rem(at, 2)

        @pl.when(at + 1 < count)
        def _():
            for copy in copies(at + 1, 1 - slot):
                copy.start()

        for copy in copies(at, slot):
            copy.wait()
        numbers = (((1,), (1,)), ((), ()))
        scores = lax.dot_general(q_ref[...], k_ref[slot], numbers, preferred_element_type=F32)
        place = at * PAGE + lax.broadcasted_iota(I32, scores.shape, 1)
        scores = jnp.where(place < len_ref[row], scores, -1e30)
        best = jnp.maximum(best_ref[...], scores.max(axis=1, keepdims=True))
        weights, fade = jnp.exp(scores - best), jnp.exp(best_ref[...] - best)
        sum_ref[...] = sum_ref[...] * fade + weights.sum(axis=1, keepdims=True)
        best_ref[...] = best
        acc_ref[...] = acc_ref[...] * fade + jnp.dot(weights, v_ref[slot])
        return 0

    lax.fori_loop(0, count, step, 0)
    o_ref[...] = acc_ref[...] / sum_ref[...]


GROUP_ENDS = np.array([0, 20, 32, 64], I32)
GROUPS, TILES = (np.array(x, I32) for x in ([0, 0, 1, 2, 2], [0, 1, 1, 2, 3]))


@case(
    [GROUP_ENDS, GROUPS, TILES, numbers(64, 128), numbers(3, 128, 128)],
    like((64, 128)),
    lambda ends, groups, tiles, x, w: np.concatenate(
        [x[a:b] @ w[g] for g, (a, b) in enumerate(pairwise(ends))]
    ),
    tolerance=1e-3,
    grid_spec=pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=3,
        grid=(5,),
        in_specs=[
            pl.BlockSpec((16, 128), lambda t, ends, groups, tiles: (tiles[t], 0)),
            pl.BlockSpec((None, 128, 128), lambda t, ends, groups, tiles: (groups[t], 0, 0)),
        ],
        out_specs=pl.BlockSpec((16, 128), lambda t, ends, groups, tiles: (tiles[t], 0)),
    ),
)
def grouped_matmul(ends_ref, groups_ref, tiles_ref, x_ref, w_ref, o_ref):
    step = pl.program_id(0)
    group = groups_ref[step]
    rows = tiles_ref[step] * 16 + lax.broadcasted_iota(I32, (16, 128), 0)
    mine = (rows >= ends_ref[group]) & (rows < ends_ref[group + 1])
    pltpu.store(o_ref, jnp.dot(x_ref[...], w_ref[...]), mask=mine)


def _scanned(x: Any, dt: Any, a: Any, b: Any, c: Any) -> Any:
    state, found = np.zeros(a.shape), []
    for t in range(len(x)):
        state = np.exp(dt[t] * a) * state + dt[t] * x[t] * b[t][:, None]
        found.append((state * c[t][:, None]).sum(0))
    return np.array(found)


@case(
    [
        numbers(16, 128),
        np.abs(numbers(16, 128, seed=1)) * F32(0.1),
        -np.abs(numbers(8, 128)),
        numbers(16, 8),
        numbers(16, 8, seed=1),
    ],
    like((16, 128)),
    _scanned,
    tolerance=1e-4,
    grid=(2,),
    in_specs=[
        pl.BlockSpec((8, 128), lambda i: (i, 0)),
        pl.BlockSpec((8, 128), lambda i: (i, 0)),
        pl.BlockSpec((8, 128), lambda i: (0, 0)),
        pl.BlockSpec((8, 8), lambda i: (i, 0)),
        pl.BlockSpec((8, 8), lambda i: (i, 0)),
    ],
    out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
    scratch_shapes=[pltpu.VMEM((8, 128), F32)],
)
def selective_scan(x_ref, dt_ref, a_ref, b_ref, c_ref, o_ref, state_ref):
    @pl.when(pl.program_id(0) == 0)
    def _():
        state_ref[...] = jnp.zeros_like(state_ref)

    def step(t, _):
        row = pl.ds(t, 1)
        dt = dt_ref[row, :]
        new = (dt * x_ref[row, :]) * jnp.transpose(b_ref[row, :])
        state_ref[...] = jnp.exp(dt * a_ref[...]) * state_ref[...] + new
        o_ref[row, :] = jnp.sum(
            state_ref[...] * jnp.transpose(c_ref[row, :]), axis=0, keepdims=True
        )
        return 0

    lax.fori_loop(0, 8, step, 0)


@case([numbers(8, 128)], like((8, 128)), lambda x: np.sort(x, 1))
def bitonic_sort(x_ref, o_ref):
    values = x_ref[...]
    lane = lax.broadcasted_iota(I32, values.shape, 1)
    run = 2
    while run <= 128:
        apart = run // 2
        while apart:
            is_low = (lane & apart) == 0
            other = jnp.where(
                is_low, pltpu.roll(values, 128 - apart, 1), pltpu.roll(values, apart, 1)
            )
            takes_less = is_low == ((lane & run) == 0)
            values = jnp.where(takes_less, jnp.minimum(values, other), jnp.maximum(values, other))
            apart //= 2
        run *= 2
    o_ref[...] = values


_TURNS = np.stack([np.exp(-2j * np.pi * (np.arange(16) % (1 << s)) / (2 << s)) for s in range(4)])
TWIDDLES = np.repeat(_TURNS[..., None], 128, 2)


def _transformed(real: Any, imaginary: Any, *_: Any) -> Any:
    found = np.fft.fft(real + 1j * imaginary, axis=0)
    return found.real, found.imag


@case(
    [
        numbers(16, 128),
        numbers(16, 128, seed=1),
        TWIDDLES.real.astype(F32),
        TWIDDLES.imag.astype(F32),
    ],
    (like((16, 128)), like((16, 128))),
    _transformed,
    tolerance=1e-4,
)
def butterflies(real_ref, imaginary_ref, cos_ref, sin_ref, p_ref, q_ref):
    order = [int(f"{row:04b}"[::-1], 2) for row in range(16)]
    real, imaginary = (
        jnp.concatenate([ref[row : row + 1] for row in order], axis=0)
        for ref in (real_ref, imaginary_ref)
    )
    rows = lax.broadcasted_iota(I32, (16, 128), 0)
    for stage in range(4):
        apart = 1 << stage
        is_low = (rows & apart) == 0
        cos, sin = cos_ref[stage], sin_ref[stage]
        turned = real * cos - imaginary * sin, real * sin + imaginary * cos
        real, imaginary = (
            jnp.where(
                is_low, part + pltpu.roll(other, 16 - apart, 0), pltpu.roll(part, apart, 0) - other
            )
            for part, other in zip((real, imaginary), turned, strict=True)
        )
    p_ref[...], q_ref[...] = real, imaginary


def _entropy(labels: Any, x: Any) -> Any:
    total = np.log(np.exp(x.astype(np.float64)).sum(1, keepdims=True))
    return total - np.take_along_axis(x, labels, 1)


@case(
    [np.array([[0], [299], [128], [127], [255], [256], [7], [200]], I32), numbers(8, 300)],
    like((8, 1)),
    _entropy,
    tolerance=1e-4,
    grid=(3,),
    in_specs=[
        pl.BlockSpec((8, 1), lambda j: (0, 0)),
        pl.BlockSpec((8, 128), lambda j: (0, j)),
    ],
    out_specs=pl.BlockSpec((8, 1), lambda j: (0, 0)),
    scratch_shapes=[pltpu.VMEM((8, 1), F32)] * 3,
)
def cross_entropy(labels_ref, x_ref, o_ref, best_ref, sum_ref, hit_ref):
    step = pl.program_id(0)

    @pl.when(step == 0)
    def _():
        best_ref[...] = jnp.full_like(best_ref, -jnp.inf)
        sum_ref[...] = jnp.zeros_like(sum_ref)
        hit_ref[...] = jnp.zeros_like(hit_ref)

    column = step * 128 + lax.broadcasted_iota(I32, (8, 128), 1)
    x = jnp.where(column < 300, x_ref[...], -jnp.inf)
    best = jnp.maximum(best_ref[...], x.max(axis=1, keepdims=True))
    fade = jnp.exp(best_ref[...] - best)
    sum_ref[...] = sum_ref[...] * fade + jnp.exp(x - best).sum(axis=1, keepdims=True)
    best_ref[...] = best
    hit_ref[...] += x.sum(axis=1, keepdims=True, where=column == labels_ref[...])

    @pl.when(step == 2)
    def _():
        o_ref[...] = jnp.log(sum_ref[...]) + best_ref[...] - hit_ref[...]


@case(
    [np.array([5, 19, 0, 3, 3, 11, 7, 2], I32), numbers(20, 1, 128)],
    like((8, 1, 128)),
    lambda rows, table: table[rows],
    grid_spec=pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(),
        in_specs=[ANY],
        out_specs=pl.BlockSpec(),
        scratch_shapes=[pltpu.SemaphoreType.DMA((3,))],
    ),
)
def gathered_rows(rows_ref, table_hbm, o_ref, sems):
    def copy(at):
        source, target = table_hbm.at[pl.ds(rows_ref[at], 1)], o_ref.at[pl.ds(at, 1)]
        return pltpu.make_async_copy(source, target, sems.at[lax.rem(at, 3)])

    for first in range(3):
        copy(jnp.int32(first)).start()

    def step(at, _):
        copy(at).wait()

        @pl.when(at + 3 < 8)
        def _():
            copy(at + 3).start()

        return 0

    lax.fori_loop(0, 8, step, 0)


@case(
    [numbers(2, 3, 16, 128).astype(F32)],
    (like((3, 16, 2, 128)), like((16, 768))),
    lambda x: (x.transpose(1, 2, 0, 3), x.transpose(2, 0, 1, 3).reshape(16, 768)),
)
def turned_heads(x_ref, o_ref, m_ref):
    o_ref[...] = jnp.transpose(x_ref[...], (1, 2, 0, 3))
    m_ref[...] = jnp.concatenate([x_ref[i, j] for i in range(2) for j in range(3)], axis=-1)
