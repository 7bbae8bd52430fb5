"""More kernels in Pallas: views of references, blocks of all kinds, narrow elements."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from unit.mosaic.kernels import kernel, like, numbers, whole

ANYWHERE = pl.BlockSpec(memory_space=pl.ANY)


@kernel
def overlapping_blocks(interpret: bool) -> Any:
    def body(x, o):
        o[...] = x[0:8, :] + x[8:16, :]

    call = pl.pallas_call(
        body,
        out_shape=like(24, 128),
        grid=(3,),
        in_specs=[pl.BlockSpec((pl.Element(16), pl.Element(128)), lambda i: (i * 8, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        interpret=interpret,
    )
    return call, [numbers(32, 128)]


@kernel
def counting_semaphore(interpret: bool) -> Any:
    def body(x, o, s):
        pl.semaphore_signal(s, 3)
        pl.semaphore_wait(s, 2)
        o[...] = x[...] + pl.semaphore_read(s).astype(jnp.float32)
        pl.semaphore_wait(s, 1)

    return whole(
        body,
        like(8, 128),
        numbers(8, 128),
        interpret=interpret,
        scratch_shapes=[pltpu.SemaphoreType.REGULAR],
    )


@kernel
def reference_seen_as_narrower_rows(interpret: bool) -> Any:
    def body(x, o):
        o[...] = x.bitcast(jnp.bfloat16)[2:10, :]

    # Both halves of these are small numbers.
    x = np.repeat(numbers(8, 128), 1).astype(jnp.bfloat16).view(np.uint16).astype(np.uint32)
    words = ((x << 16) | x[::-1]).view(np.float32).reshape(8, 128)
    return whole(body, like(8, 128, dtype=jnp.bfloat16), words, interpret=interpret)


@kernel
def reference_reshaped(interpret: bool) -> Any:
    def body(x, o):
        o[...] = x.reshape(16, 128)[8:16, :]

    return whole(body, like(8, 128), numbers(2, 8, 128), interpret=interpret)


@kernel
def masked_store(interpret: bool) -> Any:
    def body(x, o):
        lanes = lax.broadcasted_iota(jnp.int32, (8, 128), 1)
        o[...] = jnp.zeros((8, 128), jnp.float32)
        pltpu.store(o.at[...], x[...], mask=lanes < 50)

    return whole(body, like(8, 128), numbers(8, 128), interpret=interpret)


@kernel
def gather_in_rows(interpret: bool) -> Any:
    def body(x, i, o):
        o[...] = jnp.take_along_axis(x[...], i[...], axis=1)

    index = np.random.default_rng(0).integers(0, 128, (8, 128)).astype(np.int32)
    return whole(body, like(8, 128), numbers(8, 128), index, interpret=interpret)


@kernel
def strided_store(interpret: bool) -> Any:
    def body(x, o):
        o[...] = jnp.zeros_like(o)
        o[pl.ds(1, 8, 2), :] = x[...]

    return whole(body, like(24, 128), numbers(8, 128), interpret=interpret)


@kernel
def four_bit_integers(interpret: bool) -> Any:
    def body(x, o):
        o[...] = x[...].astype(jnp.int32) * 2

    x = np.random.default_rng(0).integers(-8, 8, (64, 128)).astype(jnp.int4)
    return whole(body, like(64, 128, dtype=jnp.int32), x, interpret=interpret)


@kernel
def results_anywhere(interpret: bool) -> Any:
    def body(x, o, p, sem):
        copy = pltpu.make_async_copy(x, o, sem)
        copy.start()
        copy.wait()
        pltpu.sync_copy(x.at[0:8], p)

    return whole(
        body,
        (like(16, 128), like(8, 128)),
        numbers(16, 128),
        interpret=interpret,
        in_specs=[ANYWHERE],
        out_specs=(ANYWHERE, ANYWHERE),
        scratch_shapes=[pltpu.SemaphoreType.DMA],
    )


@kernel
def sixteen_bit_integers(interpret: bool) -> Any:
    def body(x, o):
        o[...] = ((x[...] + 3) & 127) - x[...]

    x = numbers(16, 128, dtype=np.int16) * 900
    return whole(body, like(16, 128, dtype=jnp.int16), x, interpret=interpret)


@kernel
def activations(interpret: bool) -> Any:
    def body(x, o):
        v = x[...]
        o[...] = jax.nn.softmax(v, axis=-1) + jax.nn.gelu(v) + jax.nn.silu(v)

    return whole(body, like(2, 8, 128), numbers(2, 8, 128), interpret=interpret)


@kernel
def predicates(interpret: bool) -> Any:
    def body(x, p, o):
        a, b = x[...] > 0, p[...]
        anywhere = jnp.any(a & b).astype(jnp.float32) + jnp.all(~a | b).astype(jnp.float32)
        o[...] = (a ^ b).astype(jnp.float32) + anywhere

    flags = numbers(8, 128, seed=2) > 0
    return whole(body, like(8, 128), numbers(8, 128), flags, interpret=interpret)


@kernel
def nested_loops(interpret: bool) -> Any:
    def body(n, x, o):
        o[...] = jnp.zeros_like(o)

        def goes_on(state):
            return state[0] < n[0]

        def row(state):
            at, scale = state
            inner = lax.fori_loop(0, at, lambda j, a: a + j.astype(jnp.float32), scale)
            o[pl.ds(at, 1), :] = x[pl.ds(at, 1), :] * inner
            return at + 1, scale * 2

        lax.while_loop(goes_on, row, (jnp.int32(0), jnp.float32(1)))

    return whole(
        body,
        like(8, 128),
        np.array([5], np.int32),
        numbers(8, 128),
        interpret=interpret,
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pltpu.VMEM)],
    )
