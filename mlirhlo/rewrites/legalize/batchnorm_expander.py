"""`batchnorm_expander`: batch normalisation by sums, products and a reciprocal square root."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.ops import (
    AddOp,
    BatchNormGradOp,
    BatchNormInferenceOp,
    BatchNormTrainingOp,
    ConvertOp,
    DivideOp,
    GetDimensionSizeOp,
    Instruction,
    MultiplyOp,
    ReduceOp,
    RsqrtOp,
    SubtractOp,
    TupleOp,
)
from mlirhlo.dialects.hlo.shapes import ArrayShape, leaves
from mlirhlo.rewrites.algsimp.common import Builder, array
from mlirhlo.rewrites.computations import binary_computation
from mlirhlo.rewrites.legalize.expander import ExpanderPass
from mlirhlo.rewrites.rules import Rewriter, Rule, rule

_Normalisation = BatchNormInferenceOp | BatchNormTrainingOp | BatchNormGradOp


class _Parts:
    """What the three expansions share, for an operand `x` and its feature dimension."""

    def __init__(self, op: _Normalisation, rewriter: Rewriter) -> None:
        self.op = op
        self.b = Builder(op, rewriter)
        self.x = op.inputs[0]
        self.shape = array(self.x)
        self.feature = op.feature_index
        self.others = tuple(d for d in range(self.shape.rank) if d != self.feature)

    def spread(self, vector: SSAValue | Instruction) -> Instruction:
        """A value a feature, at every element."""
        return self.b.broadcast(vector, (self.feature,), self.shape)

    def sum(self, value: SSAValue | Instruction) -> Instruction:
        """Sums over all dimensions but the feature's."""
        type_ = self.shape.element_type
        return self.b(
            ReduceOp,
            value,
            self.b.scalar(type_, 0),
            shape=array(self.op.inputs[1]),
            dimensions=integers(self.others),
            to_apply=binary_computation(self.op, "add", type_),
        )

    def count(self) -> Instruction:
        """Elements a feature, as a value a feature; counted when running where sizes are dynamic."""
        vector = array(self.op.inputs[1])
        total = 1
        for dim in self.others:
            total *= self.shape.dimensions[dim]
        if not any(self.shape.is_dynamic_dimension(d) for d in self.others):
            return self.b.splat(vector, total)
        scalar = ArrayShape(PRIMITIVE_TYPES["s32"], ())
        size: Instruction | None = None
        for dim in self.others:
            found = self.b(GetDimensionSizeOp, self.x, shape=scalar, dimensions=integers((dim,)))
            size = found if size is None else self.b.on(MultiplyOp, size, found)
        assert size is not None
        converted = self.b(ConvertOp, size, shape=ArrayShape(vector.element_type, ()))
        return self.b.spread(converted, vector)

    def reciprocal(self, variance: SSAValue | Instruction) -> Instruction:
        """1 / sqrt(variance + epsilon), a value a feature."""
        import numpy as np

        # XLA keeps it in single precision, also where the operands are f64.
        epsilon = self.b.splat(array(variance), float(np.float32(self.op.epsilon)))
        return self.b.on(RsqrtOp, self.b.on(AddOp, variance, epsilon))

    def normalised(
        self,
        mean: SSAValue | Instruction,
        variance: SSAValue | Instruction,
        scale: SSAValue,
        offset: SSAValue,
    ) -> Instruction:
        """(x - mean) * (reciprocal * scale) + offset."""
        on = self.b.on
        centred = on(SubtractOp, self.x, self.spread(mean))
        factor = on(MultiplyOp, self.spread(self.reciprocal(variance)), self.spread(scale))
        return on(AddOp, on(MultiplyOp, centred, factor), self.spread(offset))

    def done(self, *results: Instruction) -> None:
        """Replaces by one result, or a tuple of several."""
        if len(results) > 1:
            self.b(TupleOp, *results, shape=self.op.shape)
        self.b.done()


def _is_of_one_type(op: _Normalisation) -> bool:
    """Whether no value is rounded where it is handed over."""
    shapes = (*op.input_shapes, *(leaf for _, leaf in leaves(op.shape)))
    return len({s.element_type for s in shapes if isinstance(s, ArrayShape)}) == 1


@rule(BatchNormInferenceOp, contract="rounding", needs=("rewrite_inference",))
def batch_norm_inference(op: BatchNormInferenceOp, rewriter: Rewriter) -> None:
    """batch-norm-inference(x, …) => (x - mean) * rsqrt(variance + epsilon) * scale + offset"""
    if not _is_of_one_type(op):
        return
    parts = _Parts(op, rewriter)
    _, scale, offset, mean, variance = op.inputs
    parts.done(parts.normalised(mean, variance, scale, offset))


@rule(BatchNormTrainingOp, contract="rounding", needs=("rewrite_training",))
def batch_norm_training(op: BatchNormTrainingOp, rewriter: Rewriter) -> None:
    """batch-norm-training(x, …) => inference, mean = sum(x) / n, variance = sum(x * x) / n - mean²"""
    if not _is_of_one_type(op):
        return
    parts = _Parts(op, rewriter)
    on = parts.b.on
    count = parts.count()
    mean = on(DivideOp, parts.sum(op.inputs[0]), count)
    squares = on(DivideOp, parts.sum(on(MultiplyOp, op.inputs[0], op.inputs[0])), count)
    variance = on(SubtractOp, squares, on(MultiplyOp, mean, mean))
    result = parts.normalised(mean, variance, op.inputs[1], op.inputs[2])
    parts.done(result, mean, variance)


@rule(BatchNormGradOp, contract="rounding", needs=("rewrite_grad",))
def batch_norm_grad(op: BatchNormGradOp, rewriter: Rewriter) -> None:
    """batch-norm-grad(x, scale, mean, variance, dy) => the gradients of x, scale and offset by two sums"""
    if not _is_of_one_type(op):
        return
    parts = _Parts(op, rewriter)
    on, spread = parts.b.on, parts.spread
    _, scale, mean, variance, grad = op.inputs
    centred = on(SubtractOp, parts.x, spread(mean))
    reciprocal = parts.reciprocal(variance)
    offset_grad = parts.sum(grad)
    products = parts.sum(on(MultiplyOp, grad, centred))
    scale_grad = on(MultiplyOp, products, reciprocal)
    count = parts.count()
    # n * dy - sum(dy) - (x - mean) * sum(dy * (x - mean)) / (variance + epsilon)
    per_square = on(MultiplyOp, products, on(MultiplyOp, reciprocal, reciprocal))
    inner = on(SubtractOp, on(MultiplyOp, spread(count), grad), spread(offset_grad))
    inner = on(SubtractOp, inner, on(MultiplyOp, centred, spread(per_square)))
    factor = on(DivideOp, on(MultiplyOp, scale, reciprocal), count)
    parts.done(on(MultiplyOp, spread(factor), inner), scale_grad, offset_grad)


@dataclass(frozen=True)
class BatchNormExpanderPass(ExpanderPass):
    """Writes batch normalisation by sums, products and a reciprocal square root.

    Before and after:

        %n = f32[2,3] batch-norm-inference(%x, %scale, %offset, %mean, %variance), epsilon=0.1, feature_index=1
          =>   %n = f32[2,3] add(multiply(subtract(%x, …), …), …)

    The variance of training is that of one pass over the operand, as XLA's: rounding may make it negative.
    Normalisations with values of several types stay: `declared-types` gives them one.
    Source: reference of the passes, "BatchNormExpander".
    """

    name = "batchnorm_expander"
    exact: ClassVar[bool] = False
    rules: ClassVar[tuple[Rule, ...]] = (
        batch_norm_inference,
        batch_norm_training,
        batch_norm_grad,
    )

    rewrite_training: bool = True
    """Expands batch-norm-training."""
    rewrite_inference: bool = True
    """Expands batch-norm-inference."""
    rewrite_grad: bool = True
    """Expands batch-norm-grad."""
