"""Small kernels in the language: parts of what people write for transformers, scans, sorts and rings."""

from __future__ import annotations

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
