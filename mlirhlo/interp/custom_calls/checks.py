"""Custom calls that compare their operands, as test programs have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.diagnostics import error
from mlirhlo.interp.closeness import disagreement
from mlirhlo.interp.custom_calls import computes
from mlirhlo.interp.ops.async_ops import zeros
from mlirhlo.interp.registry import Frame, Value

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.control_flow import CustomCallOp


@computes("check.expect_eq", "check.expect_almost_eq", "check.expect_close")
def check(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """Nothing, when the operands agree; else `HloError` HLO0360."""
    actual, expected = (np.asarray(value) for value in inputs)
    name = op.custom_call_target.removeprefix("check.")
    problem = disagreement(name, actual, expected)
    if problem is not None:
        raise error("HLO0360", f"%{op.instruction_name}: {problem}")
    return zeros(op.shape)
