"""Reducers that keep one end of the entry computation: instructions before a position, or those behind it.

Whether such a module still meets a condition mostly changes once along the positions, so they are searched by halves.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp

from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import ParameterOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import TokenShape, TupleShape

_LEAVES = frozenset({"parameter", "constant"})


def positions(module: ModuleOp) -> int:
    """How many positions there are: one behind each instruction of the entry."""
    return sum(1 for _ in HloModule(module).entry.instructions)


def keep_before(module: ModuleOp, position: int) -> None:
    """Makes the values at `position` that later instructions read the result of the entry."""
    entry = HloModule(module).entry
    instructions = list(entry.instructions)
    kept = instructions[:position]
    live = _live(kept, set(instructions[position:]), entry.root)
    if len(live) == 1:
        set_root(module, live[0])
        return
    values = [op.results[0] for op in live]
    root = make("tuple", values, TupleShape(tuple(op.shape for op in live)), name="cut")
    entry.block.insert_op_before(root, entry.terminator)
    set_root(module, root)


def keep_behind(module: ModuleOp, position: int) -> None:
    """Replaces values from before `position` that later instructions read by parameters."""
    entry = HloModule(module).entry
    instructions = list(entry.instructions)
    behind = set(instructions[position:])
    for op in _live(instructions[:position], behind, None):
        value = op.results[0]
        parameter = as_parameter(module, op)
        value.replace_uses_with_if(parameter.results[0], lambda use: use.operation in behind)


def _live(
    kept: Sequence[Instruction], later: set[Instruction], root: Instruction | None
) -> list[Instruction]:
    return [
        op
        for op in kept
        if op.opcode.name not in _LEAVES
        and not isinstance(op.shape, TokenShape)
        and (op is root or any(use.operation in later for use in op.results[0].uses))
    ]


def set_root(module: ModuleOp, root: Instruction) -> None:
    """Makes an instruction of the entry its result; what is nobody's any more stays to be removed."""
    view = HloModule(module)
    view.entry.terminator.operands = [root.results[0]]
    forget_signature(view)


def as_parameter(module: ModuleOp, op: Instruction) -> ParameterOp:
    """A new parameter of the entry with the shape of `op`, before all other instructions."""
    view = HloModule(module)
    entry = view.entry
    number = integer(len(entry.parameters))
    name = op.instruction_name
    parameter = make(
        "parameter", (), op.shape, {"parameter_number": number}, name=f"{name}.p" if name else None
    )
    first = entry.block.first_op
    assert first is not None
    entry.block.insert_op_before(parameter, first)
    forget_signature(view)
    assert isinstance(parameter, ParameterOp)
    return parameter


def forget_signature(view: HloModule) -> None:
    """Drops what the header says of parameters and results that have changed."""
    for key in (
        *("entry_computation_layout", "input_output_alias", "buffer_donor"),
        *("allow_spmd_sharding_propagation_to_parameters",),
        "allow_spmd_sharding_propagation_to_output",
    ):
        view.set(key, None)
