"""Products of matrices, solvers, transforms."""

from __future__ import annotations

from mlirhlo.dialects.hlo.attributes import kinds as k
from mlirhlo.dialects.hlo.table.attributes import (
    BATCH_NORM,
    BLOCK_SCALING,
    DOT,
    PRECISION,
    WINDOW,
    spec,
)
from mlirhlo.dialects.hlo.table.columns import Arity, Layouts, Opcode

LINEAR_ALGEBRA_ROWS: tuple[Opcode, ...] = (
    Opcode(
        "batch-norm-grad",
        5,
        BATCH_NORM,
        infers=True,
        own_type=True,
        summary="gradients of batch-norm-training",
    ),
    Opcode(
        "batch-norm-inference",
        5,
        BATCH_NORM,
        infers=True,
        own_type=True,
        summary="(x - mean) / sqrt(variance + epsilon) * scale + offset",
    ),
    Opcode(
        "batch-norm-training",
        3,
        BATCH_NORM,
        infers=True,
        own_type=True,
        summary="batch-norm-inference with the batch's own mean and variance",
    ),
    Opcode(
        "cholesky",
        1,
        (spec("lower", k.BOOLEAN, "false"),),
        infers=True,
        library=True,
        layouts=Layouts.ALIKE,
        summary="triangular L with L * adjoint(L) = A",
    ),
    Opcode(
        "convolution",
        Arity.ANY,
        (
            WINDOW,
            spec("dim_labels", k.DIM_LABELS, required=True),
            spec("feature_group_count", k.INTEGER, "1"),
            spec("batch_group_count", k.INTEGER, "1"),
            spec("convolution_kind", k.CONVOLUTION_KIND, "unset"),
            PRECISION,
            spec("sparsity_config", k.SPARSITY_CONFIG),
            BLOCK_SCALING,
        ),
        infers=True,
        contracts=True,
        library=True,
        summary="sums of products of a sliding, dilated, grouped window",
    ),
    Opcode(
        "dot",
        Arity.ANY,
        (*DOT, PRECISION, spec("algorithm", k.DOT_ALGORITHM, "unset"), BLOCK_SCALING),
        infers=True,
        contracts=True,
        library=True,
        summary="sums of products over contracting dimensions, batched",
    ),
    Opcode(
        "fft",
        1,
        (
            spec("fft_type", k.FFT_TYPE, required=True),
            spec("fft_length", k.INTEGERS, required=True),
        ),
        infers=True,
        library=True,
        own_type=True,
        layouts=Layouts.ALIKE,
        summary="discrete Fourier transform of the last dimensions",
    ),
    Opcode(
        "ragged-dot",
        3,
        (
            *DOT,
            spec("lhs_ragged_dims", k.INTEGERS, "{}"),
            spec("rhs_group_dims", k.INTEGERS, "{}"),
            PRECISION,
        ),
        infers=True,
        contracts=True,
        library=True,
        summary="dot in which groups of rows meet different right-hand sides",
    ),
    Opcode(
        "scaled-dot",
        4,
        (*DOT, PRECISION, BLOCK_SCALING),
        infers=True,
        contracts=True,
        library=True,
        summary="dot of operands multiplied by block scales",
    ),
    Opcode(
        "triangular-solve",
        2,
        (
            spec("left_side", k.BOOLEAN, "false"),
            spec("lower", k.BOOLEAN, "false"),
            spec("unit_diagonal", k.BOOLEAN, "false"),
            spec("transpose_a", k.TRANSPOSE, required=True),
        ),
        infers=True,
        library=True,
        own_type=True,
        layouts=Layouts.ALIKE,
        summary="x with op(a) * x = b, or x * op(a) = b",
    ),
)
