"""Computations that passes add to a module: functions of two scalars, and copies of others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, SymbolRefAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from mlirhlo.dialects.hlo.attributes.base import integer, symbol
from mlirhlo.dialects.hlo.build import append, close, make
from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.hlo.module import HloModule, holder
from mlirhlo.dialects.hlo.names import NameUniquer
from mlirhlo.dialects.hlo.ops import ComputationOp, FusionOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.rewrites.cloning import clone_instruction


def module_of(op: Operation) -> HloModule:
    """The module that holds `op`. Raises `ValueError` for an op outside of one."""
    here: Operation | None = op
    while here is not None and not isinstance(here, ModuleOp):
        here = here.parent_op()
    if here is None:
        raise ValueError("the instruction is in no module")
    return HloModule(here)


def called(op: Instruction, name: str) -> ComputationOp:
    """The computation `name` of the module that holds `op`."""
    return module_of(op).by_name()[name]


def add_computation(op: Instruction, name: str, block: Block, root: Instruction) -> SymbolRefAttr:
    """Puts the computation of `block` before the one of `op`, in its thread, under `name` or one like it."""
    module = module_of(op)
    free = NameUniquer(c.computation_name for c in module.computations).unique(name)
    here = op.parent_op()
    assert isinstance(here, ComputationOp)
    computation = close(free, block, root.output, here.thread_property)
    assert here.parent is not None
    here.parent.insert_op_before(computation, here)
    return symbol(free)


def add_rerooted(op: Instruction, computation: ComputationOp, root: SSAValue) -> SymbolRefAttr:
    """A copy of `computation` that returns `root`, one of its values; put as `add_computation` does."""
    values: dict[SSAValue, SSAValue] = {}
    block = Block()
    for inner in computation.instructions:
        if inner.output is not root and inner.output is computation.terminator.root:
            continue
        copy = clone_instruction(inner, values, inner.instruction_name)
        values[inner.output] = copy.output
        append(block, copy)
    last = values[root].owner
    assert isinstance(last, Instruction)
    return add_computation(op, computation.computation_name, block, last)


def binary_computation(op: Instruction, opcode: str, type_: PrimitiveType) -> SymbolRefAttr:
    """A computation `opcode` of two scalars of `type_`.

    One that is there already in the thread of `op` if any is, but for a fusion's, which nothing else may call.
    """
    module = module_of(op)
    thread = holder(op).thread
    for computation in module.computations:
        if (
            computation.thread == thread
            and _is_binary(computation, opcode, type_)
            and not isinstance(_first_caller(module, computation.computation_name), FusionOp)
        ):
            return symbol(computation.computation_name)
    scalar = ArrayShape(type_, ())
    block = Block()
    operands: list[Instruction] = []
    for number in range(2):
        parameter = make("parameter", (), scalar, {"parameter_number": integer(number)})
        append(block, parameter)
        operands.append(parameter)
    root = make(opcode, [p.output for p in operands], scalar, {})
    append(block, root)
    return add_computation(op, f"{opcode}_{type_.name}", block, root)


def _first_caller(module: HloModule, name: str) -> Instruction | None:
    return next(
        (op for op in module.instructions if op.calling_keys and name in op.called_computations),
        None,
    )


def _is_binary(computation: ComputationOp, opcode: str, type_: PrimitiveType) -> bool:
    root = computation.root
    parameters = computation.parameters
    return (
        root.opcode.name == opcode
        and computation.is_entry is None
        and len(parameters) == 2
        and tuple(root.operands) == tuple(p.output for p in parameters)
        and all(_is_scalar(part, type_) for part in (*parameters, root))
    )


def _is_scalar(op: Instruction, type_: PrimitiveType) -> bool:
    shape = op.shape
    return isinstance(shape, ArrayShape) and shape.element_type is type_ and not shape.dimensions


def rename_callees(instructions: Iterable[Instruction], names: Mapping[str, str]) -> None:
    """Lets instructions call other computations, by old names the new ones."""
    for op in instructions:
        for key in op.properties.keys() & set(op.calling_keys):
            op.properties[key] = _renamed(op.properties[key], names)


def _renamed(value: Attribute, names: Mapping[str, str]) -> Attribute:
    if isinstance(value, SymbolRefAttr):
        name = value.root_reference.data
        return symbol(names[name]) if name in names else value
    if isinstance(value, ArrayAttr):
        return ArrayAttr([_renamed(part, names) for part in cast("ArrayAttr[Attribute]", value)])
    return value
