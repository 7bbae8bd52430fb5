"""One-instruction modules: each instruction with parameters in place of what it reads."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue

from mlirhlo.dialects.hlo.attributes.base import integer, string
from mlirhlo.dialects.hlo.build import append, create, make
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS, Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp, ReturnOp
from mlirhlo.dialects.hlo.table import CONTROL_FLOW
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.rewrites.cloning import clone_computation


def candidates(module: HloModule) -> Iterator[Instruction]:
    """The instructions worth looking at alone: those of the entry and of the computations that run
    as a whole (loops, branches, calls), but not the inside of fusions and reducers."""
    by_name = module.by_name()
    seen: set[str] = set()
    ahead = deque([module.entry.computation_name])
    while ahead:
        name = ahead.popleft()
        if name in seen:
            continue
        seen.add(name)
        for op in by_name[name].instructions:
            if op.opcode.name in CONTROL_FLOW or op.opcode.name == "async-start":
                ahead += op.called_computations
            elif not op.opcode.free:
                yield op


def isolate(module: HloModule, op: Instruction) -> ModuleOp:
    """A module whose entry is `op` on parameters; the computations it calls come along."""
    by_name = module.by_name()
    block = Block()
    values: dict[SSAValue, SSAValue] = {}
    for value in op.inputs:
        if value not in values:
            number = len(values)
            parameter = make(
                "parameter",
                (),
                shape_of(value.type),
                {"parameter_number": integer(number)},
                name=f"p{number}",
            )
            append(block, parameter)
            values[value] = parameter.output
    properties = {k: v for k, v in op.properties.items() if k != CONTROL_PREDECESSORS}
    operands = [values[value] for value in op.inputs]
    copy = create(type(op), operands, op.output.type, properties, op.instruction_name)
    append(block, copy)
    block.add_op(ReturnOp(copy.output))
    needed: list[str] = []
    _collect(op, by_name, needed)
    parts = [_copied(by_name[name]) for name in needed]
    taken = {part.computation_name for part in parts}
    new = ModuleOp(
        [*parts, ComputationOp("main" if "main" not in taken else "isolated", block, is_entry=True)]
    )
    view = HloModule(new)
    new.properties["sym_name"] = string(f"{module.name}.{op.instruction_name}")
    for key in ("replica_count", "num_partitions"):
        view.set(key, module.get(key))
    return new


def _copied(computation: ComputationOp) -> ComputationOp:
    copy = clone_computation(computation, computation.computation_name)
    for old, new in zip(computation.instructions, copy.instructions, strict=True):
        new.instruction_name = old.instruction_name
    return copy


def _collect(op: Instruction, by_name: dict[str, ComputationOp], needed: list[str]) -> None:
    for name in op.called_computations:
        if name not in needed:
            for inner in by_name[name].instructions:
                _collect(inner, by_name, needed)
            needed.append(name)
