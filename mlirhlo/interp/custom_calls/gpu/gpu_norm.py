"""Layer norms that XLA:GPU hands to cuDNN: `__cudnn$norm`.

y = (x - mean) * norm_factor * scale + bias, with norm_factor = 1 / sqrt(variance + epsilon), over
the dimensions in which the scale is as large as x. Training also gives mean and norm factor; the
backward kind gives the gradients of x, scale and bias.
Source: XLA's norm-rewriter and the `cudnn_norm_backend_config` fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.interp.custom_calls import computes, unfit
from mlirhlo.interp.custom_calls.gpu.gpu_gemm import config_of
from mlirhlo.interp.ops.async_ops import zeros
from mlirhlo.interp.registry import Frame, Value

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.control_flow import CustomCallOp


@computes("__cudnn$norm")
def norm(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """Inference and training: x, scale, bias; backward: x, scale, dy, mean, norm factor.

    Raises HLO0355.
    """
    config = config_of(op, "cudnn_norm_backend_config")
    kind = str(config.get("kind", "LAYER_FWD_INFER"))
    wide = [np.asarray(value).astype(np.float64) for value in inputs]
    x, scale = wide[0], wide[1]
    if scale.ndim != x.ndim:
        raise unfit(op, "scale and operand have different ranks")
    axes = tuple(dim for dim in range(x.ndim) if scale.shape[dim] == x.shape[dim] and dim > 0)
    others = tuple(dim for dim in range(x.ndim) if dim not in axes)
    if kind == "LAYER_BWD":
        if len(wide) < 5:
            raise unfit(op, "the backward kind has five operands")
        dy, mean, factor = wide[2], wide[3], wide[4]
        normed = (x - mean) * factor
        inner = dy * scale
        dx = factor * (
            inner
            - np.mean(inner, axis=axes, keepdims=True)
            - normed * np.mean(inner * normed, axis=axes, keepdims=True)
        )
        dscale = np.sum(dy * normed, axis=others, keepdims=True)
        results = [dx, dscale, np.sum(dy, axis=others, keepdims=True)]
    elif kind in ("LAYER_FWD_INFER", "LAYER_FWD_TRAIN"):
        mean = np.mean(x, axis=axes, keepdims=True)
        variance = np.mean((x - mean) ** 2, axis=axes, keepdims=True)
        factor = 1 / np.sqrt(variance + float(config.get("epsilon", 0)))
        results = [(x - mean) * factor * scale + (wide[2] if len(wide) > 2 else 0)]
        results += [mean, factor] if kind == "LAYER_FWD_TRAIN" else []
    else:
        raise unfit(op, f"kind {kind!r} is not known")
    if not isinstance(op.shape, TupleShape):
        return results[0].astype(cast(ArrayShape, op.shape).element_type.dtype)
    parts = op.shape.elements
    values: list[Value] = [
        value.reshape(part.dimensions).astype(part.element_type.dtype)
        for value, part in zip(results, parts, strict=False)
        if isinstance(part, ArrayShape)
    ]
    return (*values, *map(zeros, parts[len(values) :]))
