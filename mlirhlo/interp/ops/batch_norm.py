"""Batch normalisation: inference, training, gradients. Computed in f64 and rounded once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.interp.ops.elementwise import element_type
from mlirhlo.interp.registry import Array, Frame, Program, Run, prepares

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.linear_algebra import (
        BatchNormGradOp,
        BatchNormInferenceOp,
        BatchNormTrainingOp,
    )


def _spread(vector: Array, rank: int, feature: int) -> Array:
    return vector.reshape([-1 if dim == feature else 1 for dim in range(rank)])


def _others(rank: int, feature: int) -> tuple[int, ...]:
    return tuple(dim for dim in range(rank) if dim != feature)


def _epsilon(op: BatchNormInferenceOp | BatchNormTrainingOp | BatchNormGradOp) -> float:
    """XLA keeps it in single precision, also where the operands are f64."""
    return float(np.float32(op.epsilon))


@prepares("batch-norm-inference")
def batch_norm_inference(op: BatchNormInferenceOp, program: Program) -> Run:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset."""
    epsilon, feature, dtype = _epsilon(op), op.feature_index, element_type(op).dtype

    def run(inputs: Sequence[Any], frame: Frame) -> Array:
        x, *vectors = (value.astype(np.float64) for value in inputs)
        scale, offset, mean, variance = (_spread(v, x.ndim, feature) for v in vectors)
        return ((x - mean) / np.sqrt(variance + epsilon) * scale + offset).astype(dtype)

    return run


def _mean(x: Array, axes: tuple[int, ...]) -> Array:
    """The mean over `axes`; NaN, without numpy's warning, where there is nothing to take it of."""
    return cast(Array, x.sum(axis=axes) / math.prod(x.shape[axis] for axis in axes))


@prepares("batch-norm-training")
def batch_norm_training(op: BatchNormTrainingOp, program: Program) -> Run:
    """Inference with the batch's own mean and (biased) variance, which are results too."""
    epsilon, feature, dtype = _epsilon(op), op.feature_index, element_type(op).dtype

    def run(inputs: Sequence[Any], frame: Frame) -> tuple[Array, ...]:
        x, scale, offset = (value.astype(np.float64) for value in inputs)
        axes = _others(x.ndim, feature)
        mean = _mean(x, axes)
        variance = _mean(np.square(x - _spread(mean, x.ndim, feature)), axes)
        spread = [_spread(v, x.ndim, feature) for v in (scale, offset, mean, variance)]
        result = (x - spread[2]) / np.sqrt(spread[3] + epsilon) * spread[0] + spread[1]
        return result.astype(dtype), mean.astype(dtype), variance.astype(dtype)

    return run


@prepares("batch-norm-grad")
def batch_norm_grad(op: BatchNormGradOp, program: Program) -> Run:
    """Gradients of batch-norm-training for operand, scale and offset.

    In the order in which XLA multiplies: sums are scaled, not what they are of, so that a variance of -epsilon,
    whose reciprocal root is infinite, makes NaN only where a whole sum is 0.
    """
    epsilon, feature, dtype = _epsilon(op), op.feature_index, element_type(op).dtype

    def run(inputs: Sequence[Any], frame: Frame) -> tuple[Array, ...]:
        x, scale, mean, variance, grad = (value.astype(np.float64) for value in inputs)
        axes = _others(x.ndim, feature)
        count = x.size // max(1, x.shape[feature])
        inverse = 1.0 / np.sqrt(variance + epsilon)
        centred = x - _spread(mean, x.ndim, feature)
        products, grad_offset = (grad * centred).sum(axis=axes), grad.sum(axis=axes)
        inner = (
            count * grad
            - _spread(grad_offset, x.ndim, feature)
            - centred * _spread(products * (inverse * inverse), x.ndim, feature)
        )
        grad_operand = _spread(scale * inverse / count, x.ndim, feature) * inner
        grad_scale = products * inverse
        return grad_operand.astype(dtype), grad_scale.astype(dtype), grad_offset.astype(dtype)

    return run
