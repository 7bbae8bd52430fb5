"""Kernels for sm_90a, written in the language: a product of matrices, and attention.

    matmul(a, b, platform="cuda")
    flash_attention(q, k, v, causal=True)

One warp group copies by tensor maps, two others multiply. Buffers are swizzled, so that no access meets another in a
bank.
"""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mlirhlo.mosaic import gpu as plgpu
from mlirhlo.mosaic import lax
from mlirhlo.mosaic import numpy as jnp
from mlirhlo.mosaic.language.control import fori_loop, run_scoped, when
from mlirhlo.mosaic.language.faults import bad_shape
from mlirhlo.mosaic.language.indexing import ds
from mlirhlo.mosaic.language.specs import ShapeDtypeStruct

F32 = np.float32
GROUPS = 2
"""Warp groups that multiply."""
ROWS = 64
"""Rows of a result that a warp group holds at once."""


def _tiles(dtype: Any) -> tuple[Any, ...]:
    """Rows of 128 bytes, swizzled."""
    return plgpu.TilingTransform((8, 128 // np.dtype(dtype).itemsize)), plgpu.SwizzleTransform(128)


def matmul_kernel(
    m: int, n: int, k: int, dtype: Any, *, columns: int = 256, stages: int = 3, **options: Any
) -> Any:
    """The call `a[m,k] @ b[k,n]`, with sums of f32: tiles of 128 by `columns`, `stages` of 64 terms on their way.

    Neighbouring blocks compute tiles that share factors, which the cache of the device then has.
    """
    rows, terms = GROUPS * ROWS, 128 // np.dtype(dtype).itemsize
    _check((m, rows), (n, columns), (k, terms))
    tiles, down = _tiles(dtype), math.gcd(8, m // rows)

    def body(a: Any, b: Any, o: Any, o_s: Any) -> None:
        group, block = lax.axis_index("wg"), lax.axis_index("block")
        # Blocks go down `down` tiles, then to the next column of tiles.
        strip, inside = block // (down * (n // columns)), block % (down * (n // columns))
        i, j = strip * down + inside % down, inside // down
        mine = ds(group * ROWS, ROWS)

        def compute(pipeline: Callable[[Any], Any]) -> None:
            sums = pipeline(jnp.zeros((ROWS, columns), F32))
            where = ds(i * rows + group * ROWS, ROWS), ds(j * columns, columns)
            _store(sums.astype(dtype), o_s.at[mine], o.at[where])

        def step(_: Any, a_s: Any, b_s: Any, carry: Any) -> Any:
            return _product(carry, a_s.at[mine], b_s)

        plgpu.emit_pipeline_warp_specialized(
            step,
            grid=(k // terms,),
            memory_registers=40,
            in_specs=[
                plgpu.BlockSpec((rows, terms), lambda t: (i, t), transforms=tiles),
                plgpu.BlockSpec((terms, columns), lambda t: (t, j), transforms=tiles),
            ],
            max_concurrent_steps=stages,
            wg_axis="wg",
            num_compute_wgs=GROUPS,
            compute_context=compute,
        )(a, b)

    return plgpu.kernel(
        body,
        ShapeDtypeStruct((m, n), dtype),
        grid=(m // rows * (n // columns),),
        grid_names=("block",),
        num_threads=GROUPS + 1,
        thread_name="wg",
        scratch_types=[plgpu.SMEM((rows, columns), dtype, transforms=tiles)],
        name="matmul",
        **options,
    )


def matmul(a: Any, b: Any, *, columns: int = 256, stages: int = 3, **options: Any) -> Any:
    """`a @ b` of f16 or bf16; `options` are those of `kernel`."""
    (m, k), n = a.shape, b.shape[1]
    return matmul_kernel(m, n, k, a.dtype, columns=columns, stages=stages, **options)(a, b)


def flash_attention_kernel(
    heads: int,
    length: int,
    size: int,
    dtype: Any,
    *,
    keys_length: int | None = None,
    causal: bool = False,
    stages: int = 2,
    **options: Any,
) -> Any:
    """The call `softmax(q kᵀ / √size) v` of arrays `[heads, length, size]`; `causal` leaves out keys behind the query.

    A block has 128 queries, and goes over as many keys at once; with `causal` only over those that count.
    """
    rows = GROUPS * ROWS
    keys = length if keys_length is None else keys_length
    _check((length, rows), (keys, rows), (size, 64))
    if causal and keys != length:
        raise bad_shape(f"{length} queries and {keys} keys with causal: as many of both")
    blocks = length // rows
    scale = math.log2(math.e) / math.sqrt(size)

    def body(q: Any, k: Any, v: Any, o: Any, q_s: Any, k_s: Any, v_s: Any, *barriers: Any) -> None:
        q_full, k_full, v_full, empty = barriers
        group, block = lax.axis_index("wg"), lax.axis_index("block")
        # The queries that most keys count for come first.
        head, i = block // blocks, blocks - 1 - block % blocks
        steps = i + 1 if causal else keys // rows
        mine = ds(group * ROWS, ROWS)
        queries = (head, ds(i * rows + group * ROWS, ROWS))

        @when(group == GROUPS)
        def _() -> None:
            plgpu.set_max_registers(24, action="decrease")

            def copy(j: Any, _: Any) -> None:
                slot = j % stages
                when(j >= stages)(lambda: plgpu.barrier_wait(empty.at[slot]))
                part = (head, ds(j * rows, rows))
                plgpu.copy_gmem_to_smem(k.at[part], k_s.at[slot], k_full.at[slot])
                plgpu.copy_gmem_to_smem(v.at[part], v_s.at[slot], v_full.at[slot])

            fori_loop(0, steps, copy, None)

        def attend(j: Any, carry: Any, *, masked: bool) -> Any:
            out, top, total = carry
            slot = j % stages
            plgpu.barrier_wait(k_full.at[slot])
            scores = _product(jnp.zeros((ROWS, rows), F32), q_s.at[mine], k_s.at[slot].T) * scale
            if masked:
                scores = _masked(scores, group * ROWS)
            new, weights, shrunk = _weights(scores, top)
            total = total * shrunk + weights.sum(axis=1, keepdims=True)
            plgpu.barrier_wait(v_full.at[slot])
            out = _product(out * shrunk, weights.astype(dtype), v_s.at[slot])
            plgpu.barrier_arrive(empty.at[slot])
            return out, new, total

        @when(group != GROUPS)
        def _() -> None:
            plgpu.set_max_registers(240, action="increase")
            plgpu.copy_gmem_to_smem(q.at[queries], q_s.at[mine], q_full.at[group])
            plgpu.barrier_wait(q_full.at[group])
            plain = steps - 1 if causal else steps
            carry = fori_loop(0, plain, lambda j, c: attend(j, c, masked=False), _start(size))
            out, _, total = attend(plain, carry, masked=True) if causal else carry
            _store((out / total).astype(dtype), q_s.at[mine], o.at[queries])

    return plgpu.kernel(
        body,
        ShapeDtypeStruct((heads, length, size), dtype),
        grid=(heads * blocks,),
        grid_names=("block",),
        num_threads=GROUPS + 1,
        thread_name="wg",
        scratch_types=_attention_scratch(rows, size, dtype, stages),
        name="flash_attention",
        **options,
    )


def _attention_scratch(rows: int, size: int, dtype: Any, stages: int) -> list[Any]:
    """Queries, keys and values in shared memory, and the barriers: both filled, and emptied again."""
    tiles = _tiles(dtype)
    return [
        plgpu.SMEM((rows, size), dtype, transforms=tiles),
        plgpu.SMEM((stages, rows, size), dtype, transforms=tiles),
        plgpu.SMEM((stages, rows, size), dtype, transforms=tiles),
        plgpu.Barrier(num_barriers=GROUPS),
        plgpu.Barrier(num_barriers=stages),
        plgpu.Barrier(num_barriers=stages),
        plgpu.Barrier(num_arrivals=GROUPS, num_barriers=stages),
    ]


def _start(size: int) -> tuple[Any, Any, Any]:
    """Sums, greatest scores and totals before the first keys."""
    column = (ROWS, 1)
    least = jnp.full(column, -1e30, F32)
    return jnp.zeros((ROWS, size), F32), least, jnp.zeros(column, F32)


def _weights(scores: Any, top: Any) -> tuple[Any, Any, Any]:
    """The greatest scores so far, powers of two of scores below them, and what former sums shrink by."""
    new = jnp.maximum(top, scores.max(axis=1, keepdims=True))
    return new, jnp.exp2(scores - new), jnp.exp2(top - new)


def _masked(scores: Any, first: Any) -> Any:
    """Scores of queries from `first` on, without those of keys behind the query."""
    query = plgpu.broadcasted_iota(np.int32, scores.shape, 0) + first
    key = plgpu.broadcasted_iota(np.int32, scores.shape, 1)
    return jnp.where(query >= key, scores, -1e30)


def flash_attention(
    q: Any, k: Any, v: Any, *, causal: bool = False, stages: int = 2, **options: Any
) -> Any:
    """Attention of f16 or bf16 arrays `[heads, length, size]`; `options` are those of `kernel`."""
    heads, length, size = q.shape
    call = flash_attention_kernel(
        heads,
        length,
        size,
        q.dtype,
        keys_length=k.shape[1],
        causal=causal,
        stages=stages,
        **options,
    )
    return call(q, k, v)


def _product(sums: Any, a: Any, b: Any) -> Any:
    """`sums + a @ b`, when it has ended."""

    def scope(held: Any) -> Any:
        plgpu.wgmma(held, a, b)
        plgpu.wgmma_wait(0)
        return held[...]

    return run_scoped(scope, plgpu.ACC.init(sums))


def _store(value: Any, buffer: Any, target: Any) -> None:
    """Stores a value to global memory, by way of shared memory."""
    buffer[...] = value
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(buffer, target)
    plgpu.wait_smem_to_gmem(0)


def _check(*sizes: tuple[int, int]) -> None:
    """Raises `HloError` HLO0721 for a size that is no multiple of its part."""
    for size, part in sizes:
        if size % part:
            raise bad_shape(f"{size} is no multiple of {part}")
