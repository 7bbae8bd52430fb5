"""Bounds checks in the loops stage, for the debugging mode.

Before every access of a buffer whose size is known stands a test that all elements it touches (of
masked ones those that are picked) are inside of it; where they are not, `mlirhlo_violation(site)` is called
and the access goes to the buffer's start instead. `add_checks` changes the module and returns what the
sites are.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, cast

from xdsl.dialects import arith as xarith
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    FunctionType,
    MemRefType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    i1,
    i64,
)
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue

from mlirhlo.dialects import arith
from mlirhlo.dialects.quick import create_op
from mlirhlo.lowering.builder import INDEX, FunctionBuilder, Index, lanes_of

VIOLATION = "mlirhlo_violation"
"""Function outside: `(site)`."""

_WITH_OFFSETS = frozenset({"vector.gather", "vector.scatter"})
_MASKED = _WITH_OFFSETS | {"vector.maskedload", "vector.maskedstore"}
_BUFFER_AT = {
    "memref.load": 0,
    "memref.store": 1,
    "vector.load": 0,
    "vector.store": 1,
    **dict.fromkeys(_MASKED, 0),
}
"""Which operand the buffer is; indices follow."""


def add_checks(module: ModuleOp) -> list[str]:
    """Puts a check before every access; the sites by number: function, op and buffer."""
    sites: list[str] = []
    for function in list(module.body.block.ops):
        if isinstance(function, FuncOp) and function.body.blocks:
            checker = _Checker(function, sites)
            for op in list(function.body.walk()):
                if op.name in _BUFFER_AT:
                    checker.access(op)
            checker.finish()
    if sites:
        module.body.block.add_op(
            create_op(
                FuncOp,
                properties={
                    "sym_name": StringAttr(VIOLATION),
                    "function_type": FunctionType.from_lists([i64], []),
                    "sym_visibility": StringAttr("private"),
                },
                regions=[Region()],
            )
        )
    return sites


class _Checker:
    def __init__(self, function: FuncOp, sites: list[str]) -> None:
        self.function = function
        self.sites = sites
        self.b = FunctionBuilder("checks", [])

    def finish(self) -> None:
        """Constants go where all checks see them."""
        first = self.function.body.blocks[0].first_op
        assert first is not None
        heads = self.b._heads  # pyright: ignore[reportPrivateUsage]
        self.function.body.blocks[0].insert_ops_before(heads, first)

    def access(self, op: Operation) -> None:
        """Puts the check before an access."""
        at = _BUFFER_AT[op.name]
        buffer = op.operands[at]
        type_ = cast("MemRefType[Any]", buffer.type)
        sizes = type_.get_shape()
        if DYNAMIC_INDEX in sizes:
            return
        indices = list(op.operands[at + 1 : at + 1 + len(sizes)])
        b = self.b
        b.block = Block()
        good = self._is_inside(op, sizes, indices)
        site = b.constant(len(self.sites), i64)
        bad = b.emit(xarith.XOrIOp, (good, b.constant(1, i1)), i1)
        with b.if_(bad):
            b.effect(CallOp, [site], {"callee": SymbolRefAttr(VIOLATION)})
        self.sites.append(f"{self.function.sym_name.data}: {op.name} of {type_}")
        zero = b.constant(0, INDEX)
        safe = [b.select(good, index, zero) for index in indices]
        self._pick_nothing(op, good)
        parent = op.parent
        assert parent is not None
        made = list(b.block.ops)
        for inner in made:
            inner.detach()
        parent.insert_ops_before(made, op)
        for number, index in enumerate(safe):
            op.operands[at + 1 + number] = index

    def _pick_nothing(self, op: Operation, good: SSAValue) -> None:
        """Masked accesses that are not inside touch nothing."""
        if op.name in _MASKED:
            mask = op.operands[-2]
            picked = self.b.andi(mask, self.b.broadcast(good, lanes_of(mask.type)))
            op.operands[len(op.operands) - 2] = picked

    def _is_inside(
        self, op: Operation, sizes: Sequence[int], indices: Sequence[SSAValue]
    ) -> SSAValue:
        """Whether the numbers of all elements, in the order of memory, are those of the buffer."""
        b = self.b
        start: Index = 0
        for size, index in zip(sizes, indices, strict=True):
            start = b.add(b.mul(start, size), index)
        first, total = b.index(start), prod(sizes)
        lanes = _lanes(op)
        if op.name in _MASKED:
            mask = op.operands[-2]
            moved = op.operands[-3] if op.name in _WITH_OFFSETS else b.steps(lanes)
            places = b.addi(b.broadcast(first, lanes), moved)
            outside = b.andi(mask, b.cmpi("uge", places, b.constant(total, places.type)))
            wide = b.cast(arith.ExtUIOp, outside, i64)
            return b.cmpi("eq", b.reduce("or", wide), b.constant(0, i64))
        return b.cmpi("ult", first, b.constant(max(total - lanes + 1, 0), INDEX))


def _lanes(op: Operation) -> int:
    return next((n for v in (*op.results, *op.operands) if (n := lanes_of(v.type))), 1)
