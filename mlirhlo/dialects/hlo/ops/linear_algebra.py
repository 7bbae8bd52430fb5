"""Products, solvers, transforms and batch normalisation."""

from __future__ import annotations

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.dimensions import (
    ConvolutionDimensionNumbers,
    SparsityConfig,
    Window,
)
from mlirhlo.dialects.hlo.attributes.header import RawText
from mlirhlo.dialects.hlo.ops.base import (
    Binary,
    Instruction,
    Unary,
    bool_property,
    float_property,
    instruction,
    int_property,
    ints_property,
    str_property,
    value_property,
    words_property,
)


@instruction("batch-norm-grad")
class BatchNormGradOp(Unary):
    """Gradients of batch-norm-training."""

    epsilon = float_property()
    feature_index = int_property()

    @property
    def scale(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]

    @property
    def mean(self) -> SSAValue:
        """Operand 2."""
        return self._operands[2]

    @property
    def variance(self) -> SSAValue:
        """Operand 3."""
        return self._operands[3]

    @property
    def grad_output(self) -> SSAValue:
        """Operand 4."""
        return self._operands[4]


@instruction("batch-norm-inference")
class BatchNormInferenceOp(Unary):
    """(x - mean) / sqrt(variance + epsilon) * scale + offset."""

    epsilon = float_property()
    feature_index = int_property()

    @property
    def scale(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]

    @property
    def offset(self) -> SSAValue:
        """Operand 2."""
        return self._operands[2]

    @property
    def mean(self) -> SSAValue:
        """Operand 3."""
        return self._operands[3]

    @property
    def variance(self) -> SSAValue:
        """Operand 4."""
        return self._operands[4]


@instruction("batch-norm-training")
class BatchNormTrainingOp(Unary):
    """Batch-norm-inference with the batch's own mean and variance."""

    epsilon = float_property()
    feature_index = int_property()

    @property
    def scale(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]

    @property
    def offset(self) -> SSAValue:
        """Operand 2."""
        return self._operands[2]


@instruction("cholesky")
class CholeskyOp(Unary):
    """Triangular L with L * adjoint(L) = A."""

    lower = bool_property()


_NOT_DENSE = frozenset({"block_scaling_config", "sparsity", "sparsity_config"})


def _is_dense(op: Instruction) -> bool:
    return len(op.inputs) == 2 and _NOT_DENSE.isdisjoint(op.properties)


@instruction("convolution")
class ConvolutionOp(Binary):
    """Sums of products of a sliding, dilated, grouped window."""

    window = value_property(Window)
    dim_labels = value_property(ConvolutionDimensionNumbers)
    feature_group_count = int_property(1)
    batch_group_count = int_property(1)
    convolution_kind = str_property("unset")
    operand_precision = words_property()
    sparsity_config = value_property(SparsityConfig)
    block_scaling_config = value_property(RawText)

    @property
    def is_dense(self) -> bool:
        """Whether it multiplies two operands as they are, without block scales and sparsity."""
        return _is_dense(self)


@instruction("dot")
class DotOp(Binary):
    """Sums of products over contracting dimensions, batched."""

    lhs_batch_dims = ints_property()
    lhs_contracting_dims = ints_property()
    rhs_batch_dims = ints_property()
    rhs_contracting_dims = ints_property()
    operand_precision = words_property()
    algorithm = str_property("unset")
    block_scaling_config = value_property(RawText)

    @property
    def is_dense(self) -> bool:
        """Whether it multiplies two operands as they are, without block scales and sparsity."""
        return _is_dense(self)


@instruction("fft")
class FftOp(Unary):
    """Discrete Fourier transform of the last dimensions."""

    fft_type = str_property()
    fft_length = ints_property()


@instruction("ragged-dot")
class RaggedDotOp(Binary):
    """Dot in which groups of rows meet different right-hand sides."""

    lhs_batch_dims = ints_property()
    lhs_contracting_dims = ints_property()
    rhs_batch_dims = ints_property()
    rhs_contracting_dims = ints_property()
    lhs_ragged_dims = ints_property()
    rhs_group_dims = ints_property()
    operand_precision = words_property()

    @property
    def group_sizes(self) -> SSAValue:
        """Operand 2."""
        return self._operands[2]


@instruction("scaled-dot")
class ScaledDotOp(Instruction):
    """Dot of operands multiplied by block scales."""

    lhs_batch_dims = ints_property()
    lhs_contracting_dims = ints_property()
    rhs_batch_dims = ints_property()
    rhs_contracting_dims = ints_property()
    operand_precision = words_property()
    block_scaling_config = value_property(RawText)

    @property
    def lhs(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]

    @property
    def lhs_scale(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]

    @property
    def rhs(self) -> SSAValue:
        """Operand 2."""
        return self._operands[2]

    @property
    def rhs_scale(self) -> SSAValue:
        """Operand 3."""
        return self._operands[3]


@instruction("triangular-solve")
class TriangularSolveOp(Instruction):
    """x with op(a) * x = b, or x * op(a) = b."""

    left_side = bool_property()
    lower = bool_property()
    unit_diagonal = bool_property()
    transpose_a = str_property()

    @property
    def a(self) -> SSAValue:
        """Operand 0."""
        return self._operands[0]

    @property
    def b(self) -> SSAValue:
        """Operand 1."""
        return self._operands[1]
