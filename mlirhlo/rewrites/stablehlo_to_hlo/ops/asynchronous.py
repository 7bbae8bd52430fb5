"""Collectives and slices that begin here and end there: `async_start` and `async_done`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.ir import Operation, SSAValue

from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import TupleShape
from mlirhlo.dialects.hlo.table import OPCODES, STARTED
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.rewrites.stablehlo_to_hlo.attributes import boolean
from mlirhlo.rewrites.stablehlo_to_hlo.core import (
    HANDLERS,
    Body,
    calls,
    lowers,
    result_shape,
    signature,
)
from mlirhlo.rewrites.stablehlo_to_hlo.problems import problem

_OWN = frozenset(
    "stablehlo." + start.removesuffix("-start").replace("-", "_")
    for start in STARTED
    if OPCODES[start].collective
)
"""Ops whose beginning is an instruction of its own, not an `async-start` of a computation."""


@lowers("stablehlo.async_start")
def async_start(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`all-gather-start` and the like, or `async-start` of what the region computes."""
    block = op.regions[0].block
    inner = block.first_op
    operands = body.inputs(op)
    if inner is not None and inner.name in _OWN and len(operands) == len(inner.operands) == 1:
        body.values[block.args[0]] = operands[0]
        (value,) = HANDLERS[inner.name](inner, body)
        return (_begun(value, body),)
    region = body.exporter.region(op, op.regions[0], single=True)
    shapes = TupleShape(tuple(shape_of(operand.type) for operand in operands))
    shape = TupleShape((shapes, signature(region).result))
    return (body.emit("async-start", operands, shape, {"calls": calls(region)}),)


def _begun(value: SSAValue, body: Body) -> SSAValue:
    """Replaces the collective that was emitted last by its beginning."""
    whole = cast(Instruction, value.owner)
    operands, shape = list(whole.operands), shape_of(value.type)
    opcode = whole.opcode.name
    properties = dict(whole.properties)
    if opcode == "all-gather":
        properties["constrain_layout"] = boolean(True)
    if opcode != "all-reduce":
        shape = TupleShape((shape_of(operands[0].type), shape))
    body.ops.remove(whole)
    whole.detach()
    whole.erase()
    return body.emit(f"{opcode}-start", operands, shape, properties)


@lowers("stablehlo.async_done")
def async_done(op: Operation, body: Body) -> Sequence[SSAValue]:
    """The end of whatever was begun."""
    (start,) = body.inputs(op)
    owner = start.owner
    opcode = owner.opcode.name if isinstance(owner, Instruction) else ""
    if not opcode.endswith("-start"):
        raise problem("HLO0422", op, "its operand is not the result of an async_start")
    done = f"{opcode.removesuffix('-start')}-done"
    return (body.emit(done, (start,), result_shape(op)),)
