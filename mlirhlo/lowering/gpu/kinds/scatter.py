"""Kinds `scatter` and `select_and_scatter`.

The targets are copied first. Updates that may go to one element are combined at once where that is atomic and their
order says nothing, as of integers; else by one thread in their order, so that results are always the same. All others
run in parallel.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from math import prod
from typing import cast

from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineDimExpr

from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.structured import ScatterOp, sizes_of
from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.gpu.elements import array, index_of
from mlirhlo.lowering.gpu.launches import THREADS, LaunchBuilder, Plan, launches, stored_inputs
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places
from mlirhlo.lowering.schedule.attributes import Schedule
from mlirhlo.lowering.schedule.updates import is_result


@launches("scatter")
def scatter(plan: Plan, ops: Sequence[ScatterOp], schedule: Schedule) -> None:
    """A launch that copies the targets, and one that combines the updates."""
    del schedule
    for op in ops:
        begun = [begins_as_target(plan, op, number) for number in range(len(op.outputs))]
        if not all(begun):
            _copy_targets(plan, op, [number for number, is_done in enumerate(begun) if not is_done])
        if 0 not in op.space and 0 not in sizes_of(op.outputs[0]):
            _combine(plan, op)


def begins_as_target(plan: Plan, op: ScatterOp, number: int) -> bool:
    """Lets a result begin as its target, where that is an operand of the kernel that is read for nothing else."""
    target, result = op.targets[number], op.outputs[number]
    if not isinstance(target.owner, Block) or not target.has_one_use():
        return False
    if not is_result(result, plan.kernel):
        return False
    plan.begins_as(result, target)
    return True


def _copy_targets(plan: Plan, op: ScatterOp, numbers: Sequence[int]) -> None:
    sizes = sizes_of(op.outputs[0])
    count = prod(sizes)
    if not count:
        return
    targets, results = [op.targets[n] for n in numbers], [op.outputs[n] for n in numbers]
    b = plan.begin(stored_inputs(plan, targets), results)

    def body(index: SSAValue) -> None:
        at = b.e.unlinear(index, sizes)
        for value, target in zip(results, targets, strict=True):
            b.write(value, at, b.e.at(target, at))

    threads = min(THREADS, -(-count // 32) * 32)
    b.launch(b.each_thread(count, threads, body), threads)


_ATOMIC = {
    "add": ("addi", "addi"),
    "maximum": ("maxs", "maxu"),
    "minimum": ("mins", "minu"),
    "and": ("andi", "andi"),
    "or": ("ori", "ori"),
    "xor": ("xori", "xori"),
}
"""Kinds of atomic updates of signed and unsigned integers, by the opcode of the combiner."""


def atomic_kind(op: ScatterOp) -> str | None:
    """The atomic update that a combiner is; None for others, and for floats, whose sums depend on the order."""
    element = array(op.outputs[0]).element_type
    body = list(op.combiner.block.ops)
    if len(op.outputs) > 1 or not element.is_integer or element.bits not in (32, 64):
        return None
    if len(body) != 2 or set(body[0].operands) != set(op.combiner.block.args):
        return None
    kinds = _ATOMIC.get(cast(Instruction, body[0]).opcode.name)
    return None if kinds is None else kinds[not element.is_signed]


def parallel_dims(op: ScatterOp) -> list[int]:
    """Dimensions along which updates go to different elements, so that they may run in parallel: they alone say where
    in a dimension of the target without indices, or where in the windows of one start."""
    rank = len(op.space)
    if op.unique_indices is not None or atomic_kind(op) is not None:
        return list(range(rank))
    moves = [
        (dim in op.indexed, expr.position)
        for dim, expr in enumerate(op.offset_map.results)
        if isinstance(expr, AffineDimExpr)
    ]
    apart = {d for is_indexed, d in moves if not is_indexed}
    starts = {d for map_ in op.index_maps for expr in map_.results for d in expr.used_dims()}
    if all(op.space[d] == 1 for d in starts - apart):
        apart |= {d for _, d in moves}
    return [d for d in range(rank) if op.space[d] == 1 or d in apart]


def _combine(plan: Plan, op: ScatterOp) -> None:
    b = plan.begin(stored_inputs(plan, [*op.indices, *op.updates]), op.outputs)
    space = op.space
    parallel = parallel_dims(op)
    serial = [d for d in range(len(space)) if d not in parallel]
    count = prod(space[d] for d in parallel)

    def body(index: SSAValue) -> None:
        outer = b.e.unlinear(index, [space[d] for d in parallel])
        with ExitStack() as stack:
            at: list[Index] = [0] * len(space)
            for dim, value in zip(parallel, outer, strict=True):
                at[dim] = value
            for dim in serial:
                at[dim] = stack.enter_context(b.loop(0, space[dim], nonempty=True))
                stack.enter_context(b.e.scope())
            _update(b, op, at)

    threads = min(THREADS, -(-count // 32) * 32)
    b.launch(b.each_thread(count, threads, body), threads)


def _update(b: LaunchBuilder, op: ScatterOp, at: Sequence[Index]) -> None:
    """Combines one update into the results, if its indices are valid."""
    e, space = b.e, op.space
    target = list(e.mapped(op.offset_map, at, space))
    valid: SSAValue | None = None
    for value, map_, dim, limit in zip(
        op.indices, op.index_maps, op.indexed, op.largest, strict=True
    ):
        start = index_of(e, value, e.mapped(map_, at, space))
        test = b.cmpi("ule", start, b.index(limit))
        valid = test if valid is None else b.andi(valid, test)
        target[dim] = b.add(start, target[dim])

    def combine() -> None:
        places = [Coordinate(i) for i in target]
        kind = atomic_kind(op)
        if kind is not None and op.unique_indices is None:
            (update,) = e.at(op.updates[0], at)
            b.atomic(kind, update, b.memory[b.plan.numbers[op.outputs[0]]], target)
            return
        memory = [b.memory[b.plan.numbers[value]] for value in op.outputs]
        shapes = [array(value) for value in op.outputs]
        old = [Places(b, 0).load(m, s, places) for m, s in zip(memory, shapes, strict=True)]
        new = [e.at(value, at) for value in op.updates]
        for value, element in zip(op.outputs, e.body(op.combiner, [*old, *new]), strict=True):
            b.write(value, target, element)

    if valid is None:
        combine()
    else:
        with b.if_(valid), e.scope():
            combine()
