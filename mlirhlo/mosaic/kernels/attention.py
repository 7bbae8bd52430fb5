"""Flash attention: softmax(q k^T) v by blocks, with a running maximum and sum."""

# Index maps are lambdas whose parameters have no stated type.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math

import numpy as np

from mlirhlo.mosaic.kernels.library import block_of, kernel, unfit
from mlirhlo.mosaic.language.call import KernelCall, kernel_call
from mlirhlo.mosaic.language.control import when
from mlirhlo.mosaic.language.elements import F32, I32
from mlirhlo.mosaic.language.functions.arithmetic import exp, maximum, where
from mlirhlo.mosaic.language.functions.products import dot_general
from mlirhlo.mosaic.language.functions.shapes import broadcasted_iota
from mlirhlo.mosaic.language.grid import num_programs, program_id
from mlirhlo.mosaic.language.refs import Ref
from mlirhlo.mosaic.language.scratch import MemorySpace
from mlirhlo.mosaic.language.specs import BlockSpec, CompilerParams, ShapeDtypeStruct

_LEAST = np.float32(-1e30)
"""Stands for minus infinity: differences of it are numbers."""


@kernel
def flash_attention(
    q: ShapeDtypeStruct,
    k: ShapeDtypeStruct,
    v: ShapeDtypeStruct,
    *,
    causal: bool = False,
    scale: float | None = None,
    block_q: int = 128,
    block_k: int = 128,
) -> KernelCall:
    """Attention of q [batch, heads, m, d] to k and v [batch, kv_heads, n, d].

    `heads` is a multiple of `kv_heads`: groups of heads share keys and values. `causal`: position i sees
    keys up to i. `scale` is 1 / sqrt(d) unless stated. Blocks divide m and n.
    """
    batch, heads, m, d = q.shape
    kv_heads, n = k.shape[1], k.shape[2]
    if k != v or k.shape[0] != batch or k.shape[3] != d or heads % kv_heads:
        raise unfit("flash_attention", f"q {list(q.shape)}, k {list(k.shape)}, v {list(v.shape)}")
    bq, bk = block_of(m, block_q, 8), block_of(n, block_k, 128)
    if m % bq or n % bk:
        raise unfit("flash_attention", f"blocks {bq} and {bk} do not divide {m} and {n}")
    group = heads // kv_heads
    factor = np.float32(1 / math.sqrt(d) if scale is None else scale)

    def flash_attention_kernel(
        q_ref: Ref, k_ref: Ref, v_ref: Ref, o_ref: Ref, max_ref: Ref, sum_ref: Ref, acc_ref: Ref
    ) -> None:
        at_q, at_k = program_id(2), program_id(3)

        @when(at_k == 0)
        def _() -> None:
            max_ref[...] = _LEAST
            sum_ref[...] = np.float32(0)
            acc_ref[...] = np.float32(0)

        # A block of keys all behind the last query adds nothing.
        @when(at_k * bk <= at_q * bq + (bq - 1) if causal else True)
        def _() -> None:
            scores = dot_general(
                q_ref[...], k_ref[...], (((1,), (1,)), ((), ())), preferred_element_type=F32
            )
            scores = scores * factor
            if causal:
                row = broadcasted_iota(I32, (bq, bk), 0) + at_q * bq
                column = broadcasted_iota(I32, (bq, bk), 1) + at_k * bk
                scores = where(row >= column, scores, _LEAST)
            before = max_ref[...]
            best = maximum(before, scores.max(axis=1, keepdims=True))
            weights = exp(scores - best)
            fade = exp(before - best)
            sum_ref[...] = sum_ref[...] * fade + weights.sum(axis=1, keepdims=True)
            max_ref[...] = best
            acc_ref[...] = acc_ref[...] * fade + dot_general(
                weights.astype(v_ref.dtype),
                v_ref[...],
                (((1,), (0,)), ((), ())),
                preferred_element_type=F32,
            )

        @when(at_k == num_programs(3) - 1)
        def _() -> None:
            o_ref[...] = (acc_ref[...] / sum_ref[...]).astype(o_ref.dtype)

    whole = BlockSpec((None, None, bq, d), lambda b, h, i, j: (b, h, i, 0))
    shared = BlockSpec((None, None, bk, d), lambda b, h, i, j: (b, h // group, j, 0))
    return kernel_call(
        flash_attention_kernel,
        q,
        grid=(batch, heads, m // bq, n // bk),
        in_specs=[whole, shared, shared],
        out_specs=whole,
        scratch_shapes=[MemorySpace.VMEM((bq, width), F32) for width in (1, 1, d)],
        name="flash_attention",
        compiler_params=CompilerParams(
            dimension_semantics=("parallel", "parallel", "parallel", "arbitrary")
        ),
    )
