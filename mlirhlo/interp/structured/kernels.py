"""Runs a kernel: a function for every op, `@computes` its class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.ir import Operation, SSAValue

from mlirhlo.dialects.hlo.ops.control_flow import ConstantOp
from mlirhlo.dialects.structured import KernelOp, ReturnOp
from mlirhlo.interp.registry import Array
from mlirhlo.interp.structured.bodies import Bodies
from mlirhlo.interp.values import value_of_literal

Meaning: TypeAlias = "Callable[[Any, Sequence[Array], Bodies], Sequence[Array]]"

_MEANINGS: dict[type[Operation], Meaning] = {}


def computes(cls: type[Operation]) -> Callable[[Meaning], Meaning]:
    """Decorator: the function gives the results of an op of a class, of its operands' arrays."""

    def register(function: Meaning) -> Meaning:
        _MEANINGS[cls] = function
        return function

    return register


def meanings() -> dict[type[Operation], Meaning]:
    """All of them, by class."""
    from mlirhlo.interp.structured import dense, indexed, ordered

    del dense, indexed, ordered
    return _MEANINGS


def run_kernel(kernel: KernelOp, arrays: Sequence[Array]) -> list[Array]:
    """The arrays that a kernel computes from arrays in memory order (numpy's own, row-major).

    Raises `HloError` HLO0792 for an index out of bounds, HLO0301 for an elided constant.
    """
    bodies, known = Bodies(kernel), meanings()
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
            results = known[type(op)](op, [values[value] for value in op.operands], bodies)
            values.update(zip(op.results, results, strict=True))
            for operand in op.operands:
                reads[operand] -= 1
                if not reads[operand]:
                    values.pop(operand, None)
    raise AssertionError("a kernel ends in structured.return")
