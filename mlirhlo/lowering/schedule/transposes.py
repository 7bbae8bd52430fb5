"""`gpu-map-transposes`: elementwise launches that read across the order of memory go through tiles of shared memory."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap

from mlirhlo.dialects.structured import KernelOp, MapOp, sizes_of
from mlirhlo.lowering.gpu.affine import simplified
from mlirhlo.lowering.schedule.attributes import SCHEDULE, Schedule, element_of, schedule_of
from mlirhlo.lowering.schedule.reads import reads_of

TILE = 32
_LEAST = 8
"""A shorter dimension is not worth a tile."""


def map_transposes(kernel: KernelOp) -> None:
    """Makes elementwise launches of one op that read across the order of memory launches of tiles."""
    found: list[tuple[MapOp, Schedule]] = []
    launched = [schedule_of(op) for op in kernel.block.ops]
    for op, schedule in zip(kernel.block.ops, launched, strict=True):
        if schedule is None or schedule.kind != "elements" or not isinstance(op, MapOp):
            continue
        if sum(s is not None and s.launch == schedule.launch for s in launched) == 1:
            found.append((op, schedule))
    for op, schedule in found:
        dims = [dim for _, _, dim in transposed_reads(op)]
        if dims:
            tiled = replace(schedule, kind="transpose", dimension=dims[0], threads=8 * TILE)
            op.attributes[SCHEDULE] = tiled.attribute()


def transposed_reads(op: MapOp) -> list[tuple[SSAValue, AffineMap, int]]:
    """Values read along a dimension that is not the last one, the map to their indices, and that dimension."""
    space = op.space
    last = len(space) - 1
    found: list[tuple[SSAValue, AffineMap, int]] = []
    for value, map_ in reads_of(op, frozenset()):
        if map_ is None or not map_.results or prod(sizes_of(value)) < TILE * TILE:
            continue
        results = [simplified(expr, space) for expr in map_.results]
        along = [d for d in range(last) if results[-1].factor(d) == 1 and space[d] >= _LEAST]
        is_across = results[-1].factor(last) == 0 and any(r.factor(last) != 0 for r in results)
        if not along or not is_across or space[last] < _LEAST:
            continue
        if any(r.factor(along[-1]) != 0 for r in results[:-1]):
            continue
        if not element_of(value).is_complex:
            found.append((value, map_, along[-1]))
    return found
