"""Sorts that XLA:GPU hands to CUB: `__cub$DeviceRadixSort…`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.dialects.hlo.shapes import TupleShape
from mlirhlo.interp.custom_calls import computes, options_of
from mlirhlo.interp.custom_calls.top_k import order_keys
from mlirhlo.interp.ops.async_ops import zeros
from mlirhlo.interp.registry import Array, Frame, Value

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.control_flow import CustomCallOp


@computes(
    "__cub$DeviceRadixSort",
    "__cub$DeviceRadixSortUnassignedScratchSize",
    "__cub$DeviceRadixSortWithoutScratch",
    "xla.gpu.ext.cub_sort_keys",
    "xla.gpu.ext.cub_sort_pairs",
)
def radix_sort(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """Keys, and values that go along, sorted along the last dimension by the keys' total order;
    then the workspace.
    """
    keys: Any = order_keys(cast(Array, inputs[0]))
    descending = bool(options_of(op).get("descending", False))
    # Complement, not negation: equal keys keep their order either way.
    order = np.argsort(~keys if descending else keys, axis=-1, kind="stable")
    results = tuple(np.take_along_axis(value, order, axis=-1) for value in inputs)
    if not isinstance(op.shape, TupleShape):
        return results[0]
    return (*results, *map(zeros, op.shape.elements[len(results) :]))
