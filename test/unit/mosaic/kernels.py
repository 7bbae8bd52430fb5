"""Kernels in Pallas, as the tests lower and run them; imports jax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

KERNELS: dict[str, Callable[[bool], tuple[Callable[..., Any], list[Any]]]] = {}
"""By name: from "interpreted by JAX" to a function of arrays and the arrays."""


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Lists a kernel under its function's name."""
    KERNELS[function.__name__] = function
    return function


def numbers(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Any:
    """Random elements."""
    generator = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iu":
        return generator.integers(-20, 20, shape).astype(dtype)
    return generator.normal(size=shape).astype(dtype)


def like(*shape: int, dtype: Any = jnp.float32) -> Any:
    """The type of a result."""
    return jax.ShapeDtypeStruct(shape, dtype)


def whole(body: Any, out: Any, *inputs: Any, interpret: bool, **more: Any) -> Any:
    """A kernel without a grid."""
    call = pl.pallas_call(body, out_shape=out, interpret=interpret, **more)
    return call, list(inputs)


@kernel
def ragged_edges(interpret: bool) -> Any:
    def body(x, o):
        o[...] = x[...] * 2 + 1

    call = pl.pallas_call(
        body,
        out_shape=like(20, 200),
        grid=(3, 2),
        in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((8, 128), lambda i, j: (i, j)),
        interpret=interpret,
    )
    return call, [numbers(20, 200)]


@kernel
def matmul_bf16_accumulator(interpret: bool) -> Any:
    def body(x, y, o, acc):
        @pl.when(pl.program_id(2) == 0)
        def _():
            acc[...] = jnp.zeros_like(acc)

        acc[...] += jnp.dot(x[...], y[...], preferred_element_type=jnp.float32)

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _():
            o[...] = jnp.maximum(acc[...], 0).astype(o.dtype)

    call = pl.pallas_call(
        body,
        out_shape=like(64, 256, dtype=jnp.bfloat16),
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=0,
            grid=(2, 2, 3),
            in_specs=[
                pl.BlockSpec((32, 128), lambda i, j, k: (i, k)),
                pl.BlockSpec((128, 128), lambda i, j, k: (k, j)),
            ],
            out_specs=pl.BlockSpec((32, 128), lambda i, j, k: (i, j)),
            scratch_shapes=[pltpu.VMEM((32, 128), jnp.float32)],
        ),
        interpret=interpret,
    )
    return call, [numbers(64, 384, dtype=jnp.bfloat16), numbers(384, 256, dtype=jnp.bfloat16)]


@kernel
def int8_product(interpret: bool) -> Any:
    def body(x, y, o):
        o[...] = lax.dot_general(
            x[...], y[...], (((1,), (1,)), ((), ())), preferred_element_type=jnp.int32
        )

    return whole(
        body,
        like(32, 64, dtype=jnp.int32),
        numbers(32, 128, dtype=np.int8),
        numbers(64, 128, dtype=np.int8, seed=1),
        interpret=interpret,
    )


@kernel
def batched_product(interpret: bool) -> Any:
    def body(x, y, o):
        o[...] = lax.dot_general(
            x[...], y[...], (((2,), (1,)), ((0,), (0,))), precision=lax.Precision.HIGHEST
        )

    return whole(body, like(2, 8, 128), numbers(2, 8, 32), numbers(2, 32, 128), interpret=interpret)


@kernel
def product_of_transposed(interpret: bool) -> Any:
    def body(x, y, o):
        o[...] = lax.dot_general(x[...], y[...], (((0,), (0,)), ((), ())))

    return whole(body, like(16, 128), numbers(32, 16), numbers(32, 128), interpret=interpret)


@kernel
def dynamic_slices(interpret: bool) -> Any:
    def body(n, x, o):
        start = pl.multiple_of(n[0] * 8, 8)
        o[...] = x[pl.ds(start, 8), :] + x[0:8, :]
        o[pl.ds(n[1], 1), :] = x[pl.ds(n[1], 1), :]

    return whole(
        body,
        like(8, 128),
        np.array([2, 3], np.int32),
        numbers(32, 128),
        interpret=interpret,
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pltpu.VMEM)],
    )


@kernel
def loops(interpret: bool) -> Any:
    def body(x, o):
        def add(i, total):
            return total + x[pl.ds(i * 8, 8), :]

        total = lax.fori_loop(0, 4, add, jnp.zeros((8, 128), jnp.float32))

        def goes_on(state):
            return state[0] < 5

        def halve(state):
            return state[0] + 1, state[1] * 0.5

        o[...] = lax.while_loop(goes_on, halve, (jnp.int32(0), total))[1]

    return whole(body, like(8, 128), numbers(32, 128), interpret=interpret)


@kernel
def branches(interpret: bool) -> Any:
    def body(x, o):
        i = pl.program_id(0)
        o[...] = lax.switch(
            i % 3, [lambda v: v + 1, lambda v: v * 2, lambda v: -v], x[...]
        ) + lax.cond(i > 2, lambda: 10.0, lambda: 0.0)

    call = pl.pallas_call(
        body,
        out_shape=like(40, 128),
        grid=(5,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        interpret=interpret,
    )
    return call, [numbers(40, 128)]


@kernel
def scalar_prefetch(interpret: bool) -> Any:
    def body(rows, scale, x, o):
        o[...] = x[...] * scale[pl.program_id(0)].astype(jnp.float32)

    call = pl.pallas_call(
        body,
        out_shape=like(32, 128),
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=2,
            grid=(4,),
            in_specs=[pl.BlockSpec((8, 128), lambda i, rows, scale: (rows[i], 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i, rows, scale: (i, 0)),
        ),
        interpret=interpret,
    )
    return call, [
        np.array([3, 0, 2, 2], np.int32),
        np.array([1, -2, 3, 4], np.int32),
        numbers(32, 128),
    ]


@kernel
def copies_and_semaphores(interpret: bool) -> Any:
    def body(x, o, buffer, sems):
        def start(i):
            return pltpu.make_async_copy(x.at[pl.ds(i * 8, 8)], buffer.at[i % 2], sems.at[i % 2])

        start(0).start()

        def step(i, total):
            @pl.when(i + 1 < 4)
            def _():
                start(i + 1).start()

            start(i).wait()
            return total + buffer[i % 2]

        o[...] = lax.fori_loop(0, 4, step, jnp.zeros((8, 128), jnp.float32))

    return whole(
        body,
        like(8, 128),
        numbers(32, 128),
        interpret=interpret,
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        scratch_shapes=[pltpu.VMEM((2, 8, 128), jnp.float32), pltpu.SemaphoreType.DMA((2,))],
    )


@kernel
def reductions(interpret: bool) -> Any:
    def body(x, o):
        v = x[...]
        o[0:1, :] = jnp.sum(v, axis=0, keepdims=True)
        o[1:2, :] = jnp.max(v, axis=0, keepdims=True)
        o[2:3, :] = jnp.min(v, axis=0, keepdims=True)
        o[3:4, :] = jnp.broadcast_to(jnp.mean(v), (1, 128))
        o[4:8, :] = jnp.broadcast_to(jnp.sum(v, axis=1, keepdims=True)[:4], (4, 128))

    return whole(body, like(8, 128), numbers(16, 128), interpret=interpret)


@kernel
def places_of_extremes(interpret: bool) -> Any:
    def body(x, o):
        o[0:1, :] = jnp.argmax(x[...], axis=0).astype(jnp.int32)[None, :]
        o[1:2, :] = jnp.argmin(x[...], axis=0).astype(jnp.int32)[None, :]

    return whole(body, like(2, 128, dtype=jnp.int32), numbers(16, 128), interpret=interpret)


@kernel
def shapes(interpret: bool) -> Any:
    def body(x, o):
        v = x[...]
        t = jnp.transpose(v, (1, 0))
        joined = jnp.concatenate([t[:64], t[64:] * 2], axis=0)
        o[...] = joined.reshape(16, 8, 8).reshape(128, 8) + jnp.broadcast_to(v[:, 0], (128, 8))

    return whole(body, like(128, 8), numbers(8, 128), interpret=interpret)


@kernel
def masks(interpret: bool) -> Any:
    def body(x, o):
        rows = lax.broadcasted_iota(jnp.int32, (16, 128), 0)
        lanes = lax.broadcasted_iota(jnp.int32, (16, 128), 1)
        keep = (rows * 8 >= lanes) & ~(lanes == 5)
        o[...] = jnp.where(keep, x[...], -jnp.inf)

    return whole(body, like(16, 128), numbers(16, 128), interpret=interpret)


@kernel
def narrow_types(interpret: bool) -> Any:
    def body(x, y, o, p):
        o[...] = (x[...].astype(jnp.float32) * 0.37).astype(jnp.bfloat16) + y[...]
        p[...] = jnp.clip(jnp.round(y[...].astype(jnp.float32) * 50), -128, 127).astype(jnp.int8)

    out = (like(32, 128, dtype=jnp.bfloat16), like(32, 128, dtype=jnp.int8))
    return whole(
        body,
        out,
        numbers(32, 128, dtype=np.int8),
        numbers(32, 128, dtype=jnp.bfloat16),
        interpret=interpret,
    )


@kernel
def integer_arithmetic(interpret: bool) -> Any:
    def body(x, y, o):
        a, b = x[...], y[...]
        d = jnp.where(b == 0, 7, b)
        o[...] = (
            lax.div(a, d)
            + lax.rem(a, d) * 3
            + (a // d)
            + ((a << 3) ^ (b >> 1) | (a & 12))
            + lax.shift_right_logical(a, jnp.full_like(a, 28))
            + lax.population_count(a)
            + lax.clz(b)
            + jnp.minimum(jnp.abs(a), jnp.maximum(b, -3))
        )

    return whole(
        body,
        like(8, 128, dtype=jnp.int32),
        numbers(8, 128, dtype=np.int32),
        numbers(8, 128, dtype=np.int32, seed=5),
        interpret=interpret,
    )


@kernel
def functions(interpret: bool) -> Any:
    def body(x, o):
        v = x[...]
        p = jnp.abs(v) + 0.5
        o[...] = (
            jnp.exp(v) + jnp.log(p) + jnp.tanh(v) + lax.rsqrt(p) + jnp.sqrt(p) + jnp.sin(v)
            + jnp.cos(v) + lax.erf(v) + lax.logistic(v) + jnp.floor(v) + jnp.ceil(v)
            + jnp.sign(v) + p**1.5 + v**3 + jnp.log1p(p) + jnp.exp2(v) + lax.round(v)
            + jnp.where(jnp.isfinite(1 / (v - v[0, 0])), 1.0, 2.0) + pl.reciprocal(p)
            + jnp.arctan2(v, p) + jnp.tan(v * 0.1)
        )  # fmt: skip

    return whole(body, like(8, 128), numbers(8, 128), interpret=interpret)


@kernel
def aliased(interpret: bool) -> Any:
    def body(x, y, o):
        o[...] = x[...] + y[...]

    call = pl.pallas_call(
        body,
        out_shape=like(32, 128),
        grid=(2,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))] * 2,
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        input_output_aliases={1: 0},
        interpret=interpret,
    )
    return call, [numbers(32, 128), numbers(32, 128, seed=3)]


@kernel
def squeezed_blocks(interpret: bool) -> Any:
    def body(x, o):
        o[...] = x[...].T

    call = pl.pallas_call(
        body,
        out_shape=like(3, 128, 16),
        grid=(3,),
        in_specs=[pl.BlockSpec((None, 16, 128), lambda i: (i, 0, 0))],
        out_specs=pl.BlockSpec((None, 128, 16), lambda i: (2 - i, 0, 0)),
        interpret=interpret,
    )
    return call, [numbers(3, 16, 128)]


@kernel
def accumulated_output(interpret: bool) -> Any:
    def body(x, o):
        @pl.when(pl.program_id(1) == 0)
        def _():
            o[...] = jnp.zeros_like(o)

        o[...] += x[...]

    call = pl.pallas_call(
        body,
        out_shape=like(16, 128),
        grid=(2, 3),
        in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((8, 128), lambda i, j: (i, 0)),
        interpret=interpret,
    )
    return call, [numbers(16, 384)]


@kernel
def dynamic_grid(interpret: bool) -> Any:
    def body(x, o):
        o[...] = x[...] + pl.num_programs(0).astype(jnp.float32)

    def call(n, x):
        return pl.pallas_call(
            body,
            out_shape=like(32, 128),
            grid=(n,),
            in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
            interpret=interpret,
        )(x)

    return call, [np.int32(3), numbers(32, 128)]


@kernel
def rolled(interpret: bool) -> Any:
    def body(n, x, o):
        roll = jnp.roll if interpret else pltpu.roll
        o[...] = roll(x[...], 3, 1) + roll(x[...], n[0], 0)

    return whole(
        body,
        like(16, 128),
        np.array([5], np.int32),
        numbers(16, 128),
        interpret=interpret,
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pltpu.VMEM)],
    )


@kernel
def scalars_in_smem(interpret: bool) -> Any:
    def body(n, o):
        def step(i, carry):
            a, b = carry
            o[i] = a + n[i]
            return b, a + b

        lax.fori_loop(0, 10, step, (jnp.int32(0), jnp.int32(1)))

    return whole(
        body,
        like(10, dtype=jnp.int32),
        np.arange(10, dtype=np.int32),
        interpret=interpret,
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM)],
        out_specs=pl.BlockSpec(memory_space=pltpu.SMEM),
    )


@kernel
def strided_rows(interpret: bool) -> Any:
    def body(x, o):
        o[...] = x[pl.ds(1, 8, 3), :]

    return whole(body, like(8, 128), numbers(32, 128), interpret=interpret)


@kernel
def unsigned_and_predicates(interpret: bool) -> Any:
    def body(x, p, o, q):
        o[...] = jnp.where(p[...], x[...] // 3, x[...] >> 2)
        q[...] = x[...] > 100

    out = (like(8, 128, dtype=jnp.uint32), like(8, 128, dtype=jnp.bool_))
    x = np.random.default_rng(0).integers(0, 1 << 32, (8, 128)).astype(np.uint32)
    return whole(body, out, x, numbers(8, 128) > 0, interpret=interpret)


@kernel
def memory_in_a_scope(interpret: bool) -> Any:
    def body(x, o):
        def inner(buffer):
            buffer[...] = x[...] * 3
            o[...] = buffer[...] + 1

        pl.run_scoped(inner, pltpu.VMEM((8, 128), jnp.float32))

    return whole(body, like(8, 128), numbers(8, 128), interpret=interpret)


@kernel
def float8(interpret: bool) -> Any:
    def body(x, o):
        o[...] = (x[...].astype(jnp.float32) * 1.5).astype(jnp.float8_e5m2)

    x = numbers(32, 128).astype(jnp.float8_e4m3fn)
    return whole(body, like(32, 128, dtype=jnp.float8_e5m2), x, interpret=interpret)
