"""Runs a kernel, op by op."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops.control_flow import ConstantOp
from mlirhlo.dialects.structured import KernelOp, ReturnOp
from mlirhlo.interp.registry import Array
from mlirhlo.interp.structured import dense, indexed, ordered
from mlirhlo.interp.structured.bodies import Bodies
from mlirhlo.interp.structured.registry import MEANINGS
from mlirhlo.interp.values import value_of_literal

assert dense
assert indexed
assert ordered


def run_kernel(kernel: KernelOp, arrays: Sequence[Array]) -> list[Array]:
    """The arrays that a kernel computes from arrays in memory order (numpy's own, row-major).

    Raises `HloError` HLO0792 for an index out of bounds, HLO0301 for an elided constant.
    """
    bodies = Bodies(kernel)
    values: dict[SSAValue, Array] = dict(zip(kernel.block.args, arrays, strict=True))
    reads = dict[SSAValue, int]()
    for op in kernel.block.ops:
        for operand in op.operands:
            reads[operand] = reads.get(operand, 0) + 1
    with np.errstate(all="ignore"):
        for op in kernel.block.ops:
            if isinstance(op, ReturnOp):
                return [np.asarray(values[value], order="C") for value in op.operands]
            if isinstance(op, ConstantOp):
                assert op.literal is not None
                values[op.output] = cast(Array, value_of_literal(op.literal))
                continue
            results = MEANINGS[type(op)](op, [values[value] for value in op.operands], bodies)
            values.update(zip(op.results, results, strict=True))
            for operand in op.operands:
                reads[operand] -= 1
                if not reads[operand]:
                    values.pop(operand, None)
    raise AssertionError("a kernel ends in structured.return")
