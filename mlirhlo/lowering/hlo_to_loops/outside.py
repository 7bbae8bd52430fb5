"""Calls of functions outside of the module (`lowering/routines.py`) from kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, FunctionType, IntegerType, MemRefType, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Region, SSAValue

from mlirhlo.diagnostics import error
from mlirhlo.dialects.quick import create_op
from mlirhlo.lowering import routines
from mlirhlo.lowering.builder import FunctionBuilder
from mlirhlo.lowering.hlo_to_loops.helpers import call_helpers


class Outside:
    """What a kernel calls outside; `finish` says so in its attributes."""

    def __init__(self, b: FunctionBuilder) -> None:
        self.b = b
        self._builders: dict[str, Callable[[], FuncOp]] = {}

    def call(self, symbol: str, operands: Sequence[SSAValue]) -> None:
        """Calls a function that takes buffers of any size, and numbers, by their addresses and values.

        Raises `HloError` HLO0432 where there is none.
        """
        if routines.address(symbol) is None:
            raise error("HLO0432", f"no library of this NumPy has the function {symbol}")
        values = [_of_any_size(self.b, v) for v in operands]
        self.b.call(symbol, values)
        self._builders[symbol] = partial(declaration, symbol, [v.type for v in values])

    def finish(self, function: FuncOp) -> FuncOp:
        """The function, with what it calls."""
        call_helpers(function, self._builders)
        return function


def declaration(
    name: str, inputs: Sequence[Attribute], outputs: Sequence[Attribute] = ()
) -> FuncOp:
    """A function of which only the type is known."""
    return create_op(
        FuncOp,
        properties={
            "sym_name": StringAttr(name),
            "function_type": FunctionType.from_lists(inputs, outputs),
            "sym_visibility": StringAttr("private"),
        },
        regions=[Region()],
    )


def _of_any_size(b: FunctionBuilder, value: SSAValue) -> SSAValue:
    type_ = cast("MemRefType[Any] | IntegerType", value.type)
    if not isinstance(type_, MemRefType) or type_.get_shape() == (DYNAMIC_INDEX,):
        return value
    return b.emit(memref.CastOp, [value], MemRefType(type_.element_type, [DYNAMIC_INDEX]))
