"""Products of matrices: tiles, sums in f32, and what is done with a tile before it is stored."""

# Index maps are lambdas whose parameters have no stated type.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlirhlo.mosaic.kernels.library import block_of, kernel, rows_of, unfit
from mlirhlo.mosaic.language.call import KernelCall, kernel_call
from mlirhlo.mosaic.language.control import when
from mlirhlo.mosaic.language.elements import BF16, F32, DTypeLike, as_dtype
from mlirhlo.mosaic.language.functions.arithmetic import erf, logistic, maximum, tanh
from mlirhlo.mosaic.language.functions.products import dot
from mlirhlo.mosaic.language.grid import num_programs, program_id
from mlirhlo.mosaic.language.refs import Ref
from mlirhlo.mosaic.language.scratch import MemorySpace
from mlirhlo.mosaic.language.specs import BlockSpec, CompilerParams, ShapeDtypeStruct
from mlirhlo.mosaic.language.value import Value

EPILOGUES: dict[str, Callable[[Value], Value]] = {
    "relu": lambda x: maximum(x, 0.0),
    "gelu": lambda x: x * (erf(x * np.float32(np.sqrt(0.5))) + 1.0) * 0.5,
    "silu": lambda x: x * logistic(x),
    "tanh": tanh,
}
"""What a tile may go through before it is stored, by name."""


def _whole_blocks(name: str, what: str, size: int, block: int) -> None:
    if size % block:
        raise unfit(
            name,
            f"dimension {what} of size {size} is not cut evenly by blocks of {block}",
            "rows beyond the end would be summed; pad the operands, or choose another block",
        )


@kernel
def matmul(
    x: ShapeDtypeStruct,
    y: ShapeDtypeStruct,
    *bias: ShapeDtypeStruct,
    block: tuple[int, int, int] = (256, 256, 512),
    epilogue: str | Callable[[Value], Value] | None = None,
    out_dtype: DTypeLike = None,
    precision: Any = None,
) -> KernelCall:
    """x [m, k] times y [k, n], plus a bias [1, n] if there is one, through the `epilogue`.

    Sums are f32; the result has the type of x, or `out_dtype`. `block` is (m, n, k); k has to be cut
    evenly, m and n may be ragged.
    """
    (m, k), n = x.shape, y.shape[1]
    if y.shape[0] != k or (bias and bias[0].shape != (1, n)):
        raise unfit("matmul", f"{list(x.shape)} times {list(y.shape)}")
    bm, bn = block_of(m, block[0], rows_of(x.dtype)), block_of(n, block[1], 128)
    bk = block_of(k, block[2], 128)
    _whole_blocks("matmul", "k", k, bk)
    dtype = x.dtype if out_dtype is None else as_dtype(out_dtype)
    finish = EPILOGUES[epilogue] if isinstance(epilogue, str) else epilogue

    def matmul_kernel(x_ref: Ref, y_ref: Ref, *rest: Ref) -> None:
        *b_ref, o_ref, sum_ref = rest
        step = program_id(2)

        @when(step == 0)
        def _() -> None:
            sum_ref[...] = np.float32(0)

        sum_ref[...] += dot(x_ref[...], y_ref[...], preferred_element_type=F32, precision=precision)

        @when(step == num_programs(2) - 1)
        def _() -> None:
            tile = sum_ref[...]
            if b_ref:
                tile = tile + b_ref[0][...].astype(F32)
            if finish is not None:
                tile = finish(tile)
            o_ref[...] = tile.astype(dtype)

    specs = [
        BlockSpec((bm, bk), lambda i, j, step: (i, step)),
        BlockSpec((bk, bn), lambda i, j, step: (step, j)),
    ]
    if bias:
        specs.append(BlockSpec((1, bn), lambda i, j, _: (0, j)))
    return kernel_call(
        matmul_kernel,
        ShapeDtypeStruct((m, n), dtype),
        grid=(-(-m // bm), -(-n // bn), k // bk),
        in_specs=specs,
        out_specs=BlockSpec((bm, bn), lambda i, j, _: (i, j)),
        scratch_shapes=[MemorySpace.VMEM((bm, bn), F32)],
        name="matmul",
        compiler_params=CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
    )


@kernel
def quantised_matmul(
    x: ShapeDtypeStruct,
    weights: ShapeDtypeStruct,
    scales: ShapeDtypeStruct,
    *,
    block: tuple[int, int, int] = (256, 256, 512),
) -> KernelCall:
    """x [m, k] times weights [k, n] in int8 (or int4), times scales [1, n] in f32, one a column.

    Weights are widened to bf16 on the chip, tile by tile; sums are f32; the result has the type of x.
    """
    (m, k), n = x.shape, weights.shape[1]
    if weights.shape[0] != k or scales != ShapeDtypeStruct((1, n), F32):
        raise unfit(
            "quantised_matmul",
            f"{list(x.shape)} times {list(weights.shape)} with scales {list(scales.shape)}",
            "scales are f32 of shape [1, n]",
        )
    bm, bn = block_of(m, block[0], rows_of(x.dtype)), block_of(n, block[1], 128)
    bk = block_of(k, block[2], 128)
    _whole_blocks("quantised_matmul", "k", k, bk)

    def quantised_matmul_kernel(
        x_ref: Ref, w_ref: Ref, s_ref: Ref, o_ref: Ref, sum_ref: Ref
    ) -> None:
        step = program_id(2)

        @when(step == 0)
        def _() -> None:
            sum_ref[...] = np.float32(0)

        weight = w_ref[...].astype(BF16)
        sum_ref[...] += dot(x_ref[...].astype(BF16), weight, preferred_element_type=F32)

        @when(step == num_programs(2) - 1)
        def _() -> None:
            o_ref[...] = (sum_ref[...] * s_ref[...]).astype(x.dtype)

    return kernel_call(
        quantised_matmul_kernel,
        ShapeDtypeStruct((m, n), x.dtype),
        grid=(-(-m // bm), -(-n // bn), k // bk),
        in_specs=[
            BlockSpec((bm, bk), lambda i, j, step: (i, step)),
            BlockSpec((bk, bn), lambda i, j, step: (step, j)),
            BlockSpec((1, bn), lambda i, j, _: (0, j)),
        ],
        out_specs=BlockSpec((bm, bn), lambda i, j, _: (i, j)),
        scratch_shapes=[MemorySpace.VMEM((bm, bn), F32)],
        name="quantised_matmul",
        compiler_params=CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
    )
