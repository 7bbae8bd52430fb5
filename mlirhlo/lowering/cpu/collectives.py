"""Which collectives machine code runs, and in which steps.

A collective is a step that publishes this device's buffers, waits until the others of its group have done so, and
moves data out of their memory; a pair of a start and a done is two such steps, with what stands between them running
meanwhile. What is left to Python: arrays of dynamic size, layouts that differ between operand and result, permutes in
place, and roots that are only known at run time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import cast

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo import build
from mlirhlo.dialects.hlo.attributes.base import integer, integers, symbol
from mlirhlo.dialects.hlo.attributes.groups import ReplicaGroups
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import AllGatherOp, AllReduceOp, ComputationOp, ParameterOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.dialects.hlo.table import Movement, opcodes
from mlirhlo.dialects.interned import UNIT
from mlirhlo.dialects.quick import module_of, new_block
from mlirhlo.lowering.hlo_to_loops.builders import build_kernel
from mlirhlo.lowering.hlo_to_loops.kernels import computed, outputs_of
from mlirhlo.lowering.memory_order import physical_order
from mlirhlo.lowering.plan.steps import Buffer, Tree, leaves
from mlirhlo.rewrites.cloning import copy_computation
from mlirhlo.rewrites.control_flow.map_inline import MapInlinePass
from mlirhlo.rewrites.passes import Trace

BLOCK_BYTES = 16 << 10
"""Of an array folded at once: it stays in a core's first cache."""

IDS = frozenset({"partition-id", "replica-id"})
FOLDS = frozenset({"all-reduce", "reduce-scatter"})
RAGGED = "ragged-all-to-all"
MOVES = opcodes(lambda row: row.movement is Movement.EXCHANGE and not row.is_asynchronous)


def base_of(op: Instruction) -> str:
    """The opcode of a collective, without `-start`."""
    return op.opcode.name.removesuffix("-start")


def dimensions_of(op: Instruction) -> Sequence[int]:
    """The dimensions that a collective names."""
    return cast("AllGatherOp", op).dimensions


def reducer_of(op: Instruction) -> str:
    """The computation that a collective folds with."""
    return cast("AllReduceOp", op).to_apply


@dataclass(frozen=True, slots=True)
class Chunks:
    """An array in memory as `outer` rows of `bytes`, along the dimension that is gathered or scattered."""

    outer: int
    bytes: int

    @staticmethod
    def of(shape: ArrayShape, dim: int) -> Chunks:
        """Rows of the dimension `dim` and all that is minor to it."""
        order = physical_order(shape)
        at = order.index(dim)
        outer = prod(shape.dimensions[d] for d in order[:at])
        inner = prod(shape.dimensions[d] for d in order[at:])
        return Chunks(outer, inner * shape.element_type.byte_size)


def block_elements(op: Instruction, shape: ArrayShape) -> int:
    """Elements of an operand that are folded at once: of a reduce-scatter, within a row."""
    each = shape.element_type.byte_size
    most = prod(shape.dimensions)
    if base_of(op) == "reduce-scatter":
        (dim,) = dimensions_of(op)
        most = Chunks.of(results_of(op)[0], dim).bytes // each
    return min(most, BLOCK_BYTES // each)


def operands_of(op: Instruction) -> list[ArrayShape]:
    """The arrays that a collective takes; a buffer may be that of another shape, behind a bitcast."""
    return [cast(ArrayShape, shape) for shape in op.input_shapes]


def results_of(op: Instruction) -> list[ArrayShape]:
    """The arrays that a collective gives, of a start those that its done gives."""
    shape = op.shape
    if op.opcode.name in ("all-gather-start", "collective-permute-start"):
        shape = cast(TupleShape, shape).elements[1]
    parts = shape.elements if isinstance(shape, TupleShape) else (shape,)
    return [part for part in parts if isinstance(part, ArrayShape)]


def group_size(op: Instruction) -> int | None:
    """Devices in each group, where the instruction lists groups of one size."""
    groups = getattr(op, "replica_groups", None)
    return None if groups is None else cast("ReplicaGroups", groups).group_size


def is_native(op: Instruction, operands: Sequence[Tree], result: Tree) -> bool:
    """Whether machine code runs a collective."""
    name = base_of(op)
    if name in IDS:
        return isinstance(result, Buffer)
    if name not in FOLDS | MOVES or getattr(op, "has_dynamic_root", False):
        return False
    if getattr(op, "slice_sizes", ()):
        return False
    if name == "all-to-all" and not isinstance(op.shape, TupleShape) and not group_size(op):
        return False
    if name == RAGGED:
        return _has_whole_rows(op)
    given, gives = [b for t in operands for b in leaves(t)], results_of(op)
    whole = not any(isinstance(t, tuple) for t in operands)
    if not given or not whole or len(given) != len(operands) or len(given) != len(gives):
        return False
    if len(list(leaves(result))) != len(gives):
        return False
    return all(
        not have.is_dynamic
        and physical_order(have) == physical_order(want)
        and have.element_type == want.element_type
        for have, want in zip(operands_of(op), gives, strict=True)
    )


def _has_whole_rows(op: Instruction) -> bool:
    """Whether the slices of a ragged all-to-all are of rows that lie side by side, at numbers that code reads."""
    rows, output, *numbers = operands_of(op)
    (result,) = results_of(op)
    same_order = physical_order(output) == physical_order(result)
    return (
        same_order
        and all(shape.dimensions and not shape.is_dynamic for shape in (rows, output, *numbers))
        and all(physical_order(shape)[0] == 0 for shape in (rows, result))
        and physical_order(rows) == physical_order(result)
        and rows.element_type == output.element_type == result.element_type
        and all(n.element_type.name in ("s32", "s64") and len(n.dimensions) == 1 for n in numbers)
    )


def fold_kernel(
    name: str, op: Instruction, shape: ArrayShape, computations: Mapping[str, ComputationOp]
) -> FuncOp | None:
    """The kernel that folds two blocks of an operand element by element; None where there is none."""
    block_shape = ArrayShape(shape.element_type, (block_elements(op, shape),))
    block = new_block()
    operands = [
        build.make("parameter", [], block_shape, {"parameter_number": integer(n)}, name=f"p{n}")
        for n in range(2)
    ]
    to_apply = reducer_of(op)
    mapped = build.make(
        "map", operands, block_shape, {"dimensions": integers((0,)), "to_apply": symbol(to_apply)}
    )
    for each in (*operands, mapped):
        build.append(block, each)
    entry = build.close("folded", block, mapped.output, {"is_entry": UNIT})
    module = HloModule(module_of([*_reached(to_apply, computations), entry]))
    MapInlinePass().run(module, Trace())
    (root,) = [op for op in entry.instructions if op.output is entry.root.output]
    parameters: list[SSAValue] = [p.output for p in operands]
    try:
        if list(root.inputs) == parameters and root.opcode.name != "map":
            return build_kernel(name, root, module.by_name())
        return computed(name, outputs_of(root.output), parameters)
    except HloError as problem:
        if problem.code != "HLO0432":
            raise
        return None


def _reached(name: str, computations: Mapping[str, ComputationOp]) -> list[ComputationOp]:
    """Copies of a computation and of all that it calls, callees first."""
    found: dict[str, ComputationOp] = {}

    def visit(called: str) -> None:
        if called in found:
            return
        for op in computations[called].instructions:
            for inner in op.called_computations:
                visit(inner)
        found[called] = copy_computation(computations[called])

    visit(name)
    return list(found.values())


def lone_collective(callee: ComputationOp) -> Instruction | None:
    """The collective that a computation consists of, on its parameters in order."""
    inside = [op for op in callee.instructions if not isinstance(op, ParameterOp)]
    if len(inside) != 1 or inside[0].opcode.name not in FOLDS | MOVES:
        return None
    given = [p.output for p in callee.parameters]
    return inside[0] if list(inside[0].inputs) == given else None


def start_of(op: Instruction) -> Instruction | None:
    """The start that a done belongs to."""
    while op.inputs:
        owner = op.inputs[0].owner
        if not isinstance(owner, Instruction):
            return None
        if owner.opcode.name.endswith("-start"):
            return owner
        op = owner
    return None
