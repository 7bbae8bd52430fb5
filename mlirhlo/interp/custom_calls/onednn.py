"""`__onednn$softmax`: what XLA:CPU made of softmax with oneDNN, 2024 and 2025.

Source: the calls in modules that TensorFlow 2.16 and jaxlib 0.4.30 optimised.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.interp.custom_calls import computes, options_of, unfit
from mlirhlo.interp.registry import Frame, Value

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.control_flow import CustomCallOp


@computes("__onednn$softmax")
def softmax(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """Softmax along `softmax_axis`, the last dimension in earlier versions, which do not say it.

    Types: floats; computed in f64, rounded once. Raises `HloError` HLO0355 for an axis there is not.
    """
    config = options_of(op).get("onednn_softmax_config")
    # JSON of a proto leaves out what is 0.
    axis = -1 if config is None else int(config.get("softmax_axis", 0))
    is_one = len(inputs) == 1 and not np.iscomplexobj(inputs[0])
    if not is_one or not -1 <= axis < inputs[0].ndim or not inputs[0].ndim:
        raise unfit(op, f"takes an array of floats with a dimension {axis}")
    array = inputs[0].astype(np.float64)
    with np.errstate(all="ignore"):
        powers = np.exp(array - array.max(axis=axis, keepdims=True, initial=-np.inf))
        result = powers / powers.sum(axis=axis, keepdims=True)
    return result.astype(inputs[0].dtype)
