"""Loops and branches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from xdsl.dialects import scf
from xdsl.dialects.builtin import i32
from xdsl.ir import Block, Operation, Region, SSAValue

from mlirhlo.dialects.quick import append, create_op, new_block, region_of
from mlirhlo.lowering.builder import INDEX
from mlirhlo.lowering.mosaic_gpu.fragments import Fragment, squeezed
from mlirhlo.lowering.mosaic_gpu.shared import OPERATION
from mlirhlo.lowering.mosaic_gpu.writer import Writer
from mlirhlo.mosaic.attributes import integers_of


def _flat(values: Sequence[Any]) -> list[SSAValue]:
    found: list[SSAValue] = []
    for value in values:
        found += value.registers if isinstance(value, Fragment) else [value]
    return found


def _rebuilt(like: Sequence[Any], registers: Sequence[SSAValue]) -> list[Any]:
    found: list[Any] = []
    rest = list(registers)
    for value in like:
        if isinstance(value, Fragment):
            count = len(value.registers)
            found.append(replace(value, registers=rest[:count]))
            rest = rest[count:]
        else:
            found.append(rest.pop(0))
    return found


def _carried(w: Writer, values: Sequence[SSAValue]) -> list[Any]:
    return [w.fragment(v) if squeezed(v.type) else w.values[v] for v in values]


def _for(w: Writer, op: Operation) -> Sequence[Any]:
    b = w.b
    lower, upper, step = (w.values[v] for v in op.operands[:3])
    source = op.regions[0].blocks[0]
    initial = _carried(w, op.operands[3:])
    registers = _flat(initial)
    block = new_block([i32, *(r.type for r in registers)])
    outer, b.block = b.block, block
    w.values[source.args[0]] = block.args[0]
    for argument, value in zip(source.args[1:], _rebuilt(initial, block.args[1:]), strict=True):
        w.values[argument] = value
    w.block(source)
    last: Any = source.last_op
    append(b.block, create_op(scf.YieldOp, _flat(_carried(w, last.operands))))
    b.block = outer
    types = [r.type for r in registers]
    made = create_op(scf.ForOp, [lower, upper, step, *registers], types, regions=[region_of(block)])
    append(outer, made)
    return _rebuilt(initial, made.results)


def _ended(w: Writer, op: Operation, region: Region) -> list[Any]:
    """Writes a region of an operation; its results, as the operation's are held."""
    if not region.blocks:
        return []
    source = region.blocks[0]
    w.block(source)
    last: Any = source.last_op
    found = _carried(w, last.operands) if last is not None else []
    return [
        w.held(v, w.layout(r)) if isinstance(v, Fragment) else v
        for v, r in zip(found, op.results, strict=False)
    ]


def _if(w: Writer, op: Operation) -> Sequence[Any]:
    then, other = op.regions
    branches = (lambda: _ended(w, op, then), lambda: _ended(w, op, other))
    return _branch(w, w.values[op.operands[0]], branches)


def _branch(
    w: Writer, condition: SSAValue, branches: Sequence[Callable[[], Sequence[Any]]]
) -> Sequence[Any]:
    """What is written by one or the other."""
    b = w.b
    outer = b.block
    blocks, like = list[Block](), list[Any]()
    for write in branches:
        block = new_block()
        b.block = block
        like = list(write())
        append(b.block, create_op(scf.YieldOp, _flat(like)))
        blocks.append(block)
    b.block = outer
    types = [r.type for r in _flat(like)]
    made = create_op(scf.IfOp, [condition], types, regions=[region_of(x) for x in blocks])
    append(outer, made)
    return _rebuilt(like, made.results)


def _switch(w: Writer, op: Operation) -> Sequence[Any]:
    """One case after another, as branches within branches."""
    default, *regions = op.regions
    cases = integers_of(op, "cases") or ()
    return _chosen(
        w, op, w.to_index(w.values[op.operands[0]]), [*zip(cases, regions, strict=True)], default
    )


def _chosen(
    w: Writer, op: Operation, number: SSAValue, cases: Sequence[Any], default: Region
) -> Sequence[Any]:
    if not cases:
        return _ended(w, op, default)
    b = w.b
    (case, region), *rest = cases
    return _branch(
        w,
        b.cmpi("eq", number, b.constant(case, INDEX)),
        (lambda: _ended(w, op, region), lambda: _chosen(w, op, number, rest, default)),
    )


OPERATIONS: Mapping[str, OPERATION] = {
    "scf.for": _for,
    "scf.if": _if,
    "scf.index_switch": _switch,
}
"""What writes each operation."""
