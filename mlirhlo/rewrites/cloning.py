"""Copying instructions and computations."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Block, SSAValue

from mlirhlo.dialects.hlo.build import append, create
from mlirhlo.dialects.hlo.module import set_source, source_of
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp, ReturnOp


def clone_instruction(
    op: Instruction, values: Mapping[SSAValue, SSAValue], name: str | None = None
) -> Instruction:
    """A detached copy of `op` whose operands are mapped through `values`."""
    operands = [values.get(v, v) for v in op.operands]
    copy = create(type(op), operands, op.results[0].type, dict(op.properties), name)
    copy.properties.pop("proto_id", None)
    copy.attributes.update(op.attributes)
    if (source := source_of(op)) is not None:
        set_source(copy, *source)
    return copy


def clone_computation(
    computation: ComputationOp, name: str, suffix: str = "clone"
) -> ComputationOp:
    """A copy called `name`; its instructions are called `old.suffix`, as XLA's clones are."""
    values: dict[SSAValue, SSAValue] = {}
    block = Block()
    for op in computation.instructions:
        old = op.instruction_name
        copy = clone_instruction(op, values, f"{old}.{suffix}" if old else None)
        values[op.output] = copy.output
        append(block, copy)
    block.add_op(ReturnOp(values[computation.terminator.root]))
    copied = ComputationOp(name, block)
    for key, value in computation.properties.items():
        if key not in ("sym_name", "is_entry", "proto_id"):
            copied.properties[key] = value
    return copied
