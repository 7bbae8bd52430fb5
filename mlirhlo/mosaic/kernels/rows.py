"""Kernels that work on whole rows: softmax, the normalisations, the greatest elements."""

# Index maps are lambdas whose parameters have no stated type.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

from mlirhlo.mosaic.kernels.library import block_of, kernel, rows_of, unfit
from mlirhlo.mosaic.language.call import KernelCall, kernel_call
from mlirhlo.mosaic.language.elements import F32, I32
from mlirhlo.mosaic.language.functions import ranking
from mlirhlo.mosaic.language.functions.arithmetic import exp, rsqrt, square
from mlirhlo.mosaic.language.grid import cdiv
from mlirhlo.mosaic.language.refs import Ref
from mlirhlo.mosaic.language.specs import BlockSpec, CompilerParams, ShapeDtypeStruct

_PARALLEL = CompilerParams(dimension_semantics=("parallel",))


def _matrix(name: str, x: ShapeDtypeStruct) -> tuple[int, int]:
    if len(x.shape) != 2:
        raise unfit(name, f"{list(x.shape)} is no matrix", "reshape it to rows")
    return x.shape[0], x.shape[1]


@kernel
def softmax(x: ShapeDtypeStruct, *, rows: int = 128) -> KernelCall:
    """The softmax of each row of x [m, n], in f32 on the way; `rows` at a time."""
    m, n = _matrix("softmax", x)
    block = block_of(m, rows, rows_of(x.dtype))

    def softmax_kernel(x_ref: Ref, o_ref: Ref) -> None:
        row = x_ref[...].astype(F32)
        shifted = exp(row - row.max(axis=1, keepdims=True))
        o_ref[...] = (shifted / shifted.sum(axis=1, keepdims=True)).astype(x.dtype)

    spec = BlockSpec((block, n), lambda i: (i, 0))
    return kernel_call(
        softmax_kernel,
        x,
        grid=(cdiv(m, block),),
        in_specs=[spec],
        out_specs=spec,
        name="softmax",
        compiler_params=_PARALLEL,
    )


@kernel
def layernorm(
    x: ShapeDtypeStruct,
    gamma: ShapeDtypeStruct,
    beta: ShapeDtypeStruct,
    *,
    eps: float = 1e-6,
    rows: int = 128,
) -> KernelCall:
    """Each row of x [m, n] with mean 0 and variance 1, times gamma [1, n], plus beta [1, n]."""
    m, n = _matrix("layernorm", x)
    if gamma.shape != (1, n) or beta.shape != (1, n):
        raise unfit(
            "layernorm", f"gamma {list(gamma.shape)} and beta {list(beta.shape)}", f"[1, {n}]"
        )
    block = block_of(m, rows, rows_of(x.dtype))

    def layernorm_kernel(x_ref: Ref, g_ref: Ref, b_ref: Ref, o_ref: Ref) -> None:
        row = x_ref[...].astype(F32)
        centred = row - row.mean(axis=1, keepdims=True)
        scale = rsqrt(square(centred).mean(axis=1, keepdims=True) + eps)
        o_ref[...] = (centred * scale * g_ref[...] + b_ref[...]).astype(x.dtype)

    spec = BlockSpec((block, n), lambda i: (i, 0))
    whole = BlockSpec((1, n), lambda i: (0, 0))
    return kernel_call(
        layernorm_kernel,
        x,
        grid=(cdiv(m, block),),
        in_specs=[spec, whole, whole],
        out_specs=spec,
        name="layernorm",
        compiler_params=_PARALLEL,
    )


@kernel
def rmsnorm(
    x: ShapeDtypeStruct, gamma: ShapeDtypeStruct, *, eps: float = 1e-6, rows: int = 128
) -> KernelCall:
    """Each row of x [m, n] over the root of its mean square, times gamma [1, n]."""
    m, n = _matrix("rmsnorm", x)
    if gamma.shape != (1, n):
        raise unfit("rmsnorm", f"gamma has shape {list(gamma.shape)}", f"[1, {n}]")
    block = block_of(m, rows, rows_of(x.dtype))

    def rmsnorm_kernel(x_ref: Ref, g_ref: Ref, o_ref: Ref) -> None:
        row = x_ref[...].astype(F32)
        scale = rsqrt(square(row).mean(axis=1, keepdims=True) + eps)
        o_ref[...] = (row * scale * g_ref[...]).astype(x.dtype)

    spec = BlockSpec((block, n), lambda i: (i, 0))
    return kernel_call(
        rmsnorm_kernel,
        x,
        grid=(cdiv(m, block),),
        in_specs=[spec, BlockSpec((1, n), lambda i: (0, 0))],
        out_specs=spec,
        name="rmsnorm",
        compiler_params=_PARALLEL,
    )


@kernel
def top_k(x: ShapeDtypeStruct, *, k: int, rows: int = 64) -> KernelCall:
    """The k greatest elements of each row of x [m, n] in f32, falling, and their places as i32.

    Of equal elements the first comes first.
    """
    m, n = _matrix("top_k", x)
    if x.dtype != F32 or not 1 <= k <= n:
        raise unfit(
            "top_k", f"the {k} greatest of rows of {n} elements in {x.dtype}", "f32, k <= n"
        )
    block = block_of(m, rows, 8)

    def top_k_kernel(x_ref: Ref, v_ref: Ref, p_ref: Ref) -> None:
        v_ref[...], p_ref[...] = ranking.top_k(x_ref[...], k)

    spec = BlockSpec((block, k), lambda i: (i, 0))
    return kernel_call(
        top_k_kernel,
        (ShapeDtypeStruct((m, k), F32), ShapeDtypeStruct((m, k), I32)),
        grid=(cdiv(m, block),),
        in_specs=[BlockSpec((block, n), lambda i: (i, 0))],
        out_specs=[spec, spec],
        name="top_k",
        compiler_params=_PARALLEL,
    )
