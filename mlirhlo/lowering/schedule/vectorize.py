"""`gpu-vectorize`: threads of elementwise launches compute neighbours, of 16 bytes at most, where reads allow it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from xdsl.ir import Operation, SSAValue

from mlirhlo.dialects.structured import KernelOp, MapOp, sizes_of
from mlirhlo.lowering.gpu.affine import simplified
from mlirhlo.lowering.schedule.attributes import SCHEDULE, element_of, schedule_of
from mlirhlo.lowering.schedule.reads import reads_of

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
    maps = [op for op in ops if isinstance(op, MapOp)]
    sizes = sizes_of(ops[0].results[0])
    if len(maps) < len(ops) or not sizes:
        return 1
    launch = frozenset(ops)
    arrays: list[SSAValue] = [value for op in ops for value in op.results]
    last = len(sizes) - 1
    for op in maps:
        for value, map_ in reads_of(op, launch):
            if map_ is None:
                return 1
            arrays.append(value)
            factors = [simplified(expr, sizes).factor(last) for expr in map_.results]
            if any(f != 0 for f in factors[:-1]) or (factors and factors[-1] not in (0, 1)):
                return 1
    widest = max(element_of(v).bits for v in arrays)
    width = BYTES * 8 // max(widest, 8)
    while width > 1 and (sizes[-1] % width or prod(sizes) // width < THREADS):
        width //= 2
    return width
