"""`gpu-map-to-grid`: which ops of a kernel are launched, in what order and how their work is divided."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from xdsl.ir import Operation, SSAValue

from mlirhlo.dialects.hlo.ops import ConstantOp
from mlirhlo.dialects.structured import (
    AssembleOp,
    ContractOp,
    FoldOp,
    GatherOp,
    KernelOp,
    LibraryOp,
    MapOp,
    RandomBitsOp,
    ReturnOp,
    ScanOp,
    ScatterOp,
    SelectAndScatterOp,
    SortOp,
    TopKOp,
    sizes_of,
)
from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.schedule.attributes import SCHEDULE, Schedule
from mlirhlo.lowering.schedule.scans import schedule_of_scan
from mlirhlo.lowering.schedule.scatters import schedule_of_scatter
from mlirhlo.lowering.schedule.sorts import schedule_of_sort
from mlirhlo.lowering.schedule.updates import updates_of

ELEMENTWISE = (MapOp, AssembleOp, GatherOp, FoldOp, ContractOp)
"""Ops that are computed element by element, where they are read if that is worth it."""
_KINDS: Mapping[type[Operation], str] = {
    LibraryOp: "library",
    RandomBitsOp: "random_bits",
    ScanOp: "scan",
    ScatterOp: "scatter",
    SelectAndScatterOp: "select_and_scatter",
    TopKOp: "top_k",
}
"""How the others are launched."""
_MEMORY_COST = 8
"""Of writing an element and reading it back, in instructions."""
_READ_COST = 4
"""Of reading it once more."""


def map_to_grid(kernel: KernelOp, gpu: GpuDevice, *, deterministic: bool = False) -> None:
    """Sets the schedules of a kernel's ops; leaves a kernel alone in which an op has one.

    `deterministic`: whether results must not depend on the order in which threads run.
    """
    if any(SCHEDULE in op.attributes for op in kernel.block.ops):
        return
    ops = [op for op in kernel.block.ops if not isinstance(op, ConstantOp | ReturnOp)]
    launched = _launched(kernel, ops)
    updates = updates_of(kernel, launched)
    number = 0
    group: list[Operation] = []
    """Ops of the launch before, where others may join it."""
    for op in ops:
        if op not in launched:
            continue
        kind = _KINDS.get(type(op), "elements")
        if op in updates:
            kind = "update"
        read = {value.owner for value in memory_inputs(op, lambda v: v.owner in launched)}
        is_joining = (
            kind == "elements"
            and bool(group)
            and sizes_of(group[0].results[0]) == sizes_of(op.results[0])
            and read.isdisjoint(group)
        )
        if is_joining:
            group.append(op)
        else:
            group = [op] if kind == "elements" else []
            number += 1
        schedule = Schedule(number - 1, kind)
        if isinstance(op, ScanOp):
            schedule = schedule_of_scan(op, number - 1, gpu)
        elif isinstance(op, ScatterOp):
            schedule = schedule_of_scatter(op, number - 1, deterministic=deterministic)
        elif isinstance(op, SortOp):
            schedule = schedule_of_sort(op, number - 1)
        op.attributes[SCHEDULE] = schedule.attribute()


def _launched(kernel: KernelOp, ops: list[Operation]) -> set[Operation]:
    """Ops whose results come to memory."""
    cost: dict[Operation, float] = {}
    for op in ops:
        inner = sum(cost.get(v.owner, 0) for v in op.operands if isinstance(v.owner, Operation))
        rounds = _rounds(op)
        cost[op] = (sum(len(r.block.ops) for r in op.regions) + 1 + inner) * rounds
    returned = set(kernel.results_returned)
    demand: dict[Operation, float] = dict.fromkeys(ops, 0)
    launched: set[Operation] = set()
    for op in reversed(ops):
        size = prod(sizes_of(op.results[0]))
        own = cost[op]
        is_read_whole = not isinstance(op, ELEMENTWISE) or not returned.isdisjoint(op.results)
        is_read_whole = is_read_whole or op in launched
        if is_read_whole or demand[op] * (own - _READ_COST) > 2 * size * (own + _MEMORY_COST):
            launched.add(op)
            evaluations: float = size
        else:
            evaluations = demand[op]
        for value in op.operands:
            owner = value.owner
            if isinstance(owner, Operation) and owner in demand:
                if isinstance(op, LibraryOp):
                    launched.add(owner)
                part = prod(sizes_of(value)) / size if size and isinstance(op, AssembleOp) else 1
                demand[owner] += evaluations * _rounds(op) * min(part, 1)
    return launched


def _rounds(op: Operation) -> int:
    """How often an op's body runs for an element of its result."""
    if isinstance(op, FoldOp):
        return prod(op.folded)
    if isinstance(op, ContractOp):
        return prod(op.contracted)
    if isinstance(op, SelectAndScatterOp | SortOp | TopKOp):
        return 64
    return 1


def memory_inputs(op: Operation, is_in_memory: Callable[[SSAValue], bool]) -> list[SSAValue]:
    """Values in memory that an op reads, itself or through ops computed where they are read."""
    found: dict[SSAValue, None] = {}
    seen: set[Operation] = set()
    stack = [op]
    while stack:
        for value in stack.pop().operands:
            owner = value.owner
            if is_in_memory(value):
                found[value] = None
            elif isinstance(owner, Operation) and owner not in seen:
                seen.add(owner)
                stack.append(owner)
    return list(found)
