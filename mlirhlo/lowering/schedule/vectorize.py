"""`gpu-vectorize`: threads of elementwise launches compute neighbours, of 16 bytes at most, where reads allow it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap

from mlirhlo.dialects.hlo.ops import ConstantOp
from mlirhlo.dialects.structured import GatherOp, KernelOp, MapOp, identity_map, sizes_of
from mlirhlo.lowering.schedule.attributes import SCHEDULE, element_of, schedule_of
from mlirhlo.lowering.schedule.reads import linear_index, minor_dimension

BYTES = 16
"""That a thread reads or writes at once."""
THREADS = 1024
"""Fewer are not worth it."""


def vectorize(kernel: KernelOp) -> None:
    """Sets the vector widths of the elementwise launches that have none."""
    groups: dict[int, list[Operation]] = {}
    for op in kernel.block.ops:
        schedule = schedule_of(op)
        if schedule is not None and schedule.kind == "elements" and not schedule.vector:
            groups.setdefault(schedule.launch, []).append(op)
    for ops in groups.values():
        width = _width(ops)
        for op in ops if width > 1 else ():
            schedule = schedule_of(op)
            assert schedule is not None
            op.attributes[SCHEDULE] = replace(schedule, vector=width).attribute()


def _width(ops: Sequence[Operation]) -> int:
    sizes = sizes_of(ops[0].results[0])
    if not all(isinstance(op, MapOp | GatherOp) for op in ops) or not sizes:
        return 1
    launch = frozenset(ops)
    arrays: list[SSAValue] = [value for op in ops for value in op.results]
    dim = minor_dimension(sizes)
    for op in ops:
        for value, map_ in _reads(op, identity_map(len(sizes)), launch):
            if map_ is None:
                return 1
            arrays.append(value)
            if linear_index(map_, sizes_of(value), sizes).factor(dim) not in (0, 1):
                return 1
    widest = max(element_of(v).bits for v in arrays)
    width = BYTES * 8 // max(widest, 8)
    while width > 1 and (sizes[dim] % width or prod(sizes) // width < THREADS):
        width //= 2
    return width


def _reads(
    op: Operation, outer: AffineMap, launch: frozenset[Operation]
) -> Iterator[tuple[SSAValue, AffineMap | None]]:
    """What an op reads of memory, and the map from a space to its indices, or to where they are beside what indices
    that stand in memory add; None where that is not so of the last dimension."""
    match op:
        case MapOp():
            inputs = list(zip(op.inputs, op.index_maps, strict=True))
        case GatherOp() if len(sizes_of(op.source)) - 1 not in op.indexed:
            own = zip(op.indices, op.index_maps, strict=True)
            inputs = [*own, (op.source, op.offset_map)]
        case _:
            yield op.results[0], None
            return
    for value, map_ in inputs:
        owner, composed = value.owner, map_.compose(outer)
        if isinstance(owner, ConstantOp):
            continue
        if not isinstance(owner, Operation) or (
            SCHEDULE in owner.attributes and owner not in launch
        ):
            yield value, composed
        else:
            yield from _reads(owner, composed, launch)
