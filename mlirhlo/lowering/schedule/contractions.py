"""`gpu-map-contractions`: products of matrices in tiles of shared memory and registers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.ir import BlockArgument, Operation, SSAValue

from mlirhlo.dialects.hlo.element_types import (
    BF16,
    BY_MLIR,
    F8E4M3FN,
    F8E5M2,
    F16,
    F32,
    S8,
    S32,
    U8,
    U32,
    PrimitiveType,
)
from mlirhlo.dialects.hlo.ops import ConstantOp, ReducePrecisionOp
from mlirhlo.dialects.structured import ContractOp, KernelOp, MapOp, identity_map, sizes_of
from mlirhlo.dialects.structured.base import yielded
from mlirhlo.lowering.gpu.affine import simplified
from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.schedule.attributes import SCHEDULE, Schedule, element_of, schedule_of
from mlirhlo.lowering.schedule.product_tiles import Product, tiled

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

    def lines(self, side: int) -> tuple[int, ...]:
        """Dimensions of rows or columns."""
        return self.columns if side else self.rows

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


def map_contractions(kernel: KernelOp, gpu: GpuDevice, *, tf32: bool = False) -> None:
    """Makes elementwise launches of large contractions, and of what is computed from them, launches of tiles.

    `tf32`: whether factors of f32 may be rounded to that format for the matrix units.
    """
    schedules = {op: schedule_of(op) for op in kernel.block.ops}
    launched = Counter(s.launch for s in schedules.values() if s is not None)
    for op, schedule in schedules.items():
        if schedule is None or schedule.kind != "elements" or launched[schedule.launch] > 1:
            continue
        contraction = contraction_below(op)
        if contraction is not None and _is_large(problem_of(contraction)):
            tile = _tiled(schedule, problem_of(contraction), gpu, tf32=tf32)
            op.attributes[SCHEDULE] = tile.attribute()


def _tiled(schedule: Schedule, problem: Problem, gpu: GpuDevice, *, tf32: bool) -> Schedule:
    format_ = _matrix_format(problem.op, gpu, tf32=tf32)
    factor = BY_MLIR[problem.op.accumulator]
    kind = "tiles"
    if format_ is not None:
        factor, kind = _factors(problem.op)[0], "mma"
    rows, columns, terms, batch = (
        problem.size(dims) for dims in (problem.rows, problem.columns, problem.terms, problem.batch)
    )
    product = Product(batch, rows, columns, terms, factor.byte_size)
    return tiled(replace(schedule, kind=kind, format=format_ or ""), product, gpu)


def _factors(op: ContractOp) -> list[PrimitiveType]:
    return [element_of(v) for v in yielded(op.body)]


def _matrix_format(op: ContractOp, gpu: GpuDevice, *, tf32: bool) -> str | None:
    """What factors are rounded to for the matrix units, "" for nothing; None where there are no units for them."""
    first, second = _factors(op)
    accumulator = BY_MLIR[op.accumulator]
    if first is not second:
        return None
    if first in (S8, U8) and accumulator in (S32, U32):
        return ""
    if accumulator is not F32:
        return None
    if first in (BF16, F16) or (first in (F8E4M3FN, F8E5M2) and gpu.capability >= (8, 9)):
        return ""
    return "tf32" if first is F32 and (tf32 or _are_rounded(op)) else None


def _are_rounded(op: ContractOp) -> bool:
    """Whether a body rounds both factors to what tf32 holds."""
    for value in yielded(op.body):
        owner = value.owner
        if not isinstance(owner, ReducePrecisionOp):
            return False
        if owner.exponent_bits > 8 or owner.mantissa_bits > 10:
            return False
    return True


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
