"""Kinds `library` and `random_bits`: an instruction computed as a whole, by the loops of the CPU in one thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from xdsl.dialects import gpu, memref
from xdsl.dialects.builtin import FunctionType, IntegerAttr, MemRefType, StringAttr, TupleType, i8
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from mlirhlo.diagnostics import HloError, error
from mlirhlo.dialects.gpu import GLOBAL
from mlirhlo.dialects.hlo.build import create
from mlirhlo.dialects.hlo.ops import OP_CLASSES
from mlirhlo.dialects.interned import UNIT, integers32
from mlirhlo.dialects.quick import create_op, prepend
from mlirhlo.dialects.structured import LibraryOp, RandomBitsOp
from mlirhlo.lowering import target
from mlirhlo.lowering.builder import WORKSPACE, memref_of
from mlirhlo.lowering.gpu.builder import in_space
from mlirhlo.lowering.gpu.kernel import Launch
from mlirhlo.lowering.gpu.launches import Plan, launches
from mlirhlo.lowering.hlo_to_loops import builders
from mlirhlo.lowering.hlo_to_loops.helpers import helpers_of
from mlirhlo.lowering.schedule.attributes import Schedule

_ONES = integers32(1, 1, 1)


@launches("library")
def library(plan: Plan, ops: Sequence[LibraryOp], schedule: Schedule) -> None:
    """One launch of one thread."""
    del schedule
    for op in ops:
        _launch(plan, op.opcode.data, op.inputs, op.settings.data, op.outputs)


@launches("random_bits")
def random_bits(plan: Plan, ops: Sequence[RandomBitsOp], schedule: Schedule) -> None:
    """One launch of one thread."""
    del schedule
    for op in ops:
        settings = {"algorithm": op.algorithm}
        _launch(plan, "rng-bit-generator", [op.state], settings, (op.next_state, op.bits))


def _launch(
    plan: Plan,
    opcode: str,
    inputs: Sequence[SSAValue],
    settings: Mapping[str, Attribute],
    outputs: Sequence[SSAValue],
) -> None:
    operands = Block(arg_types=[v.type for v in inputs]).args
    types = [v.type for v in outputs]
    type_ = types[0] if len(types) == 1 else TupleType(cast(Any, types))
    instruction = create(OP_CLASSES[opcode], operands, type_, dict(settings))
    entry = f"{plan.name}_{len(plan.launches)}" if plan.launches else plan.name
    try:
        with target.using(target.GENERIC):
            function = builders.build_kernel(entry, instruction, {})
    except HloError as problem:
        why = problem.diagnostics[0].message
        raise error("HLO0802", f"`{opcode}` has no GPU code: {why}") from None
    helpers = helpers_of([function])
    if any(isinstance(op, FuncOp) and not op.body.blocks for op in helpers):
        raise error("HLO0802", f"`{opcode}` has no GPU code: it calls a library of the CPU")
    known = {_name(op) for op in plan.ops}
    plan.ops += [op for op in helpers if _name(op) not in known]
    numbers = [plan.numbers[v] for v in (*inputs, *outputs)]
    if (size := function.attributes.get(WORKSPACE)) is not None:
        bytes_ = cast("IntegerAttr[Any]", size).value.data
        numbers.append(plan.workspace(memref_of(i8, bytes_)))
    plan.ops.append(_kernel(function))
    one = (1, 1, 1)
    plan.launches.append(Launch(entry, one, one, tuple(numbers)))


def _name(op: Operation) -> str:
    symbol = op.properties.get("sym_name") or op.attributes["sym_name"]
    return cast(StringAttr, symbol).data


def _kernel(function: FuncOp) -> gpu.FuncOp:
    """A function of loops as a kernel. Its buffers may be anywhere; LLVM finds out where."""
    body = function.body.blocks[0]
    casts: list[memref.MemorySpaceCastOp] = []
    for at, argument in enumerate(tuple(body.args)):
        type_ = cast("MemRefType[Any]", argument.type)
        new = body.insert_arg(in_space(type_, GLOBAL), at)
        casts.append(create_op(memref.MemorySpaceCastOp, (new,), (type_,)))
        argument.replace_all_uses_with(casts[-1].results[0])
        body.erase_arg(argument)
    prepend(body, casts)
    return create_op(
        gpu.FuncOp,
        properties={
            "function_type": FunctionType.from_lists([a.type for a in body.args], ()),
            "kernel": UNIT,
        },
        regions=[function.detach_region(0)],
        attributes={
            "sym_name": function.sym_name,
            "gpu.known_block_size": _ONES,
            "gpu.known_grid_size": _ONES,
        },
    )
