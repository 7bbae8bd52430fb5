"""Copying instructions and computations."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.build import append, close, create
from mlirhlo.dialects.hlo.module import HloModule, set_source, source_of
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp, ReturnOp
from mlirhlo.dialects.quick import module_of, new_block, operands_of


def clone_instruction(
    op: Instruction, values: Mapping[SSAValue, SSAValue], name: str | None = None
) -> Instruction:
    """A detached copy of `op` whose operands are mapped through `values`."""
    operands = [values.get(v, v) for v in operands_of(op)]
    (result,) = op.results
    copy = create(type(op), operands, result.type, dict(op.properties), name)
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
    block = new_block()
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


def copy_computation(computation: ComputationOp, *, keep_ids: bool = False) -> ComputationOp:
    """A detached copy with the same names, several times as quick as `computation.clone()`.

    `keep_ids`: its instructions have the ids of a proto that the others have.
    """
    values: dict[SSAValue, SSAValue] = {}
    block = new_block()
    for op in computation.instructions:
        copy = clone_instruction(op, values, op.instruction_name)
        if keep_ids and "proto_id" in op.properties:
            copy.properties["proto_id"] = op.properties["proto_id"]
        values[op.output] = copy.output
        append(block, copy)
    properties = {k: v for k, v in computation.properties.items() if k != "sym_name"}
    root = values[computation.terminator.root]
    return close(computation.computation_name, block, root, properties)


def clone_module(module: ModuleOp) -> ModuleOp:
    """A copy with the same names and ids, several times as quick as `module.clone()`."""
    computations = [copy_computation(c, keep_ids=True) for c in HloModule(module).computations]
    return module_of(computations, dict(module.attributes), module.sym_name)
