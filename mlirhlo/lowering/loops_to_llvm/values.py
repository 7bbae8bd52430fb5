"""What stands in the llvm dialect for values of the loops stage."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation, OpResult, SSAValue


class Values(dict[SSAValue, SSAValue]):
    """By the value of the loops stage. Constants are made when they are asked for first.

    Most of a kernel's constants are read in one of the functions it becomes, and in none of the others.
    """

    def __init__(self, make_constant: Callable[[Operation], SSAValue]) -> None:
        """`make_constant`: what stands for the result of an `arith.constant`."""
        super().__init__()
        self._make_constant = make_constant

    def __missing__(self, value: SSAValue) -> SSAValue:
        if type(value) is not OpResult or value.op.name != "arith.constant":
            raise KeyError(value)
        found = self[value] = self._make_constant(value.op)
        return found
