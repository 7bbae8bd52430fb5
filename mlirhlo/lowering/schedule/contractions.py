"""`gpu-map-contractions`: products of matrices in tiles of shared memory and registers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, cast

from xdsl.ir import BlockArgument, Operation, SSAValue

from mlirhlo.dialects.hlo.element_types import BF16, BY_MLIR, F16, F32
from mlirhlo.dialects.hlo.ops import ConstantOp
from mlirhlo.dialects.structured import ContractOp, KernelOp, MapOp, identity_map, sizes_of
from mlirhlo.dialects.structured.base import yielded
from mlirhlo.lowering.gpu.affine import simplified
from mlirhlo.lowering.schedule.attributes import SCHEDULE, schedule_of

_SIDE, _DEPTH, _WORK = 16, 8, 1 << 15
"""Fewer rows or columns, or terms, or products in all, are not worth tiles."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A contraction as products of matrices: which dimensions of its space are what."""

    op: ContractOp
    batch: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    terms: tuple[int, ...]

    def size(self, dims: Sequence[int]) -> int:
        """Elements along dimensions of the space."""
        return prod(self.op.space[d] for d in dims)

    def is_minor(self, side: int, dims: Sequence[int]) -> bool:
        """Whether neighbours along the last of these dimensions are neighbours in what a factor reads."""
        if not dims:
            return False
        for number in inputs_of_factor(self.op, side):
            results = self.op.index_maps[number].results
            if results and simplified(results[-1], self.op.space).factor(dims[-1]) not in (0, None):
                return True
        return False


def problem_of(op: ContractOp) -> Problem:
    """The matrices of a contraction: rows belong to the first factor alone, columns to the second."""
    rank = len(sizes_of(op.output))
    used = [
        {
            d
            for n in inputs_of_factor(op, side)
            for e in op.index_maps[n].results
            for d in e.used_dims()
        }
        for side in (0, 1)
    ]
    rows = tuple(d for d in range(rank) if d in used[0] and d not in used[1])
    columns = tuple(d for d in range(rank) if d in used[1] and d not in used[0])
    batch = tuple(d for d in range(rank) if d not in rows and d not in columns)
    return Problem(op, batch, rows, columns, tuple(range(rank, len(op.space))))


def inputs_of_factor(op: ContractOp, side: int) -> list[int]:
    """Numbers of the inputs that a factor is computed from."""
    found: dict[int, None] = {}
    stack: list[SSAValue] = [yielded(op.body)[side]]
    while stack:
        value = stack.pop()
        if isinstance(value, BlockArgument):
            found[value.index] = None
        else:
            assert isinstance(value.owner, Operation)
            stack += value.owner.operands
    return sorted(found)


def map_contractions(kernel: KernelOp) -> None:
    """Makes elementwise launches of large contractions, and of what is computed from them, launches of tiles."""
    schedules = {op: schedule_of(op) for op in kernel.block.ops}
    launched = Counter(s.launch for s in schedules.values() if s is not None)
    for op, schedule in schedules.items():
        if schedule is None or schedule.kind != "elements" or launched[schedule.launch] > 1:
            continue
        found = contraction_below(op)
        if found is not None and _is_large(problem_of(found)):
            kind, threads = ("mma", 128) if _has_units(found) else ("tiles", 256)
            op.attributes[SCHEDULE] = replace(schedule, kind=kind, threads=threads).attribute()


def _has_units(op: ContractOp) -> bool:
    """Whether there are matrix units for the types of a contraction."""
    factors = {BY_MLIR[cast(Any, v.type).element_type] for v in yielded(op.body)}
    return factors in ({BF16}, {F16}) and BY_MLIR[op.accumulator] is F32


def _is_large(problem: Problem) -> bool:
    rows, columns, terms = (problem.size(d) for d in (problem.rows, problem.columns, problem.terms))
    element = BY_MLIR[problem.op.accumulator]
    return (
        min(rows, columns) >= _SIDE
        and terms >= _DEPTH
        and problem.size(problem.batch) * rows * columns * terms >= _WORK
        and not element.is_complex
        and element.bits >= 32
    )


def contraction_below(op: Operation) -> ContractOp | None:
    """The contraction that an op is, or whose elements a map reads at its own indices; no other one below it."""
    if isinstance(op, ContractOp):
        return op
    if not isinstance(op, MapOp):
        return None
    same = identity_map(len(op.space))
    found: ContractOp | None = None
    stack: list[MapOp] = [op]
    while stack:
        reader = stack.pop()
        for value, map_ in zip(reader.inputs, reader.index_maps, strict=True):
            owner = value.owner
            if not isinstance(owner, Operation) or isinstance(owner, ConstantOp):
                continue
            if SCHEDULE in owner.attributes:
                continue
            is_same = map_ == same and reader.space == op.space
            if isinstance(owner, ContractOp) and is_same and found in (None, owner):
                found = owner
            elif isinstance(owner, MapOp) and (is_same or not _has_contraction(owner)):
                stack.append(owner)
            elif _has_contraction(owner):
                return None
    return found


def _has_contraction(op: Operation) -> bool:
    if isinstance(op, ContractOp):
        return True
    return any(
        isinstance(v.owner, Operation)
        and SCHEDULE not in v.owner.attributes
        and _has_contraction(v.owner)
        for v in op.operands
    )
