"""`gpu-map-contractions`: products of matrices in tiles of shared memory and registers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from xdsl.ir import BlockArgument, Operation

from mlirhlo.dialects.hlo.element_types import (
    BF16,
    BY_MLIR,
    F8E4M3FN,
    F8E5M2,
    F16,
    F32,
    F64,
    S8,
    S32,
    U8,
    U32,
    PrimitiveType,
)
from mlirhlo.dialects.hlo.ops import ConstantOp, ConvertOp, ReducePrecisionOp
from mlirhlo.dialects.structured import AssembleOp, ContractOp, KernelOp, MapOp, identity_map
from mlirhlo.dialects.structured.base import yielded
from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.schedule.attributes import SCHEDULE, Schedule, element_of, schedule_of
from mlirhlo.lowering.schedule.factor_reads import plain_read
from mlirhlo.lowering.schedule.matrix_products import MatrixProduct, matrix_product_of
from mlirhlo.lowering.schedule.product_tiles import Sizes, quickest, tiles
from mlirhlo.lowering.schedule.tensor_maps import mapped_factor

_SIDE, _DEPTH, _WORK = 16, 8, 1 << 15
"""Fewer rows or columns, or terms, or products in all, are not worth tiles."""


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
        if contraction is not None and _is_large(matrix_product_of(contraction)):
            _pad_where_read(contraction)
            tile = _tiled(schedule, matrix_product_of(contraction), gpu, tf32=tf32)
            op.attributes[SCHEDULE] = tile.attribute()


def _pad_where_read(op: ContractOp) -> None:
    """Takes launches away that only pad a factor with zeros, which copies of tiles fill in."""
    for side, factor in enumerate(yielded(op.body)):
        if not isinstance(factor, BlockArgument):
            continue
        padding = op.inputs[factor.index].owner
        schedule = (
            padding.attributes.pop(SCHEDULE, None) if isinstance(padding, AssembleOp) else None
        )
        if schedule is None or not isinstance(padding, AssembleOp):
            continue
        is_alone = len(list(padding.output.uses)) == 1
        read = plain_read(op, side) if is_alone else None
        dims = matrix_product_of(op)
        if read is None or not any(
            group and read.width(op.space, group[-1]) for group in (dims.terms, dims.lines(side))
        ):
            padding.attributes[SCHEDULE] = schedule


def _tiled(schedule: Schedule, product: MatrixProduct, gpu: GpuDevice, *, tf32: bool) -> Schedule:
    format_ = matrix_format(product.op, gpu, tf32=tf32)
    is_rounded = format_ is not None
    factor = _factors(product.op)[0] if is_rounded else BY_MLIR[product.op.accumulator]
    rows, columns, terms, batch = (
        product.size(dims) for dims in (product.rows, product.columns, product.terms, product.batch)
    )
    if product.groups is not None:
        count = product.op.space[product.groups.group]
        batch, rows = batch * count, -(-rows // count)
    sizes = Sizes(batch, rows, columns, terms, factor.byte_size)
    kinds = ("tiles",) if format_ is None else ("mma", "wgmma")
    schedules = [
        tile
        for kind in kinds
        if kind != "wgmma" or _has_warp_groups(product, gpu)
        for tile in tiles(replace(schedule, kind=kind, format=format_ or ""), sizes, gpu)
    ]
    return quickest(schedules, sizes, gpu)


def _has_warp_groups(product: MatrixProduct, gpu: GpuDevice) -> bool:
    """Whether warp groups can multiply: copies by tensor maps bring both factors, as the units take them."""
    if gpu.capability != (9, 0):
        return False
    for side in (0, 1):
        factor = mapped_factor(product, side)
        size = element_of(yielded(product.op.body)[side]).byte_size
        if factor is None or element_of(factor.read.source).byte_size != size:
            return False
        if size > 4 or (size != 2 and not factor.across):
            return False
    return True


def _factors(op: ContractOp) -> list[PrimitiveType]:
    return [element_of(v) for v in yielded(op.body)]


def matrix_format(op: ContractOp, gpu: GpuDevice, *, tf32: bool) -> str | None:
    """What factors are rounded to for the matrix units, "" for nothing; None where there are no units for them."""
    first, second = _factors(op)
    accumulator = BY_MLIR[op.accumulator]
    if first is not second:
        return None
    if first in (S8, U8) and accumulator in (S32, U32):
        return ""
    if first is F64 and accumulator is F64:
        return ""
    if accumulator is not F32:
        return None
    if first in (BF16, F16) or (first in (F8E4M3FN, F8E5M2) and gpu.capability >= (8, 9)):
        return ""
    return "tf32" if first is F32 and (tf32 or _are_rounded(op)) else None


def _are_rounded(op: ContractOp) -> bool:
    """Whether a body rounds both factors to what tf32 holds, as bf16 and f16 do."""
    for value in yielded(op.body):
        match value.owner:
            case ConvertOp() as op_:
                is_rounded = element_of(op_.operand) in (BF16, F16)
            case ReducePrecisionOp() as op_:
                is_rounded = op_.exponent_bits <= 8 and op_.mantissa_bits <= 10
            case _:
                is_rounded = False
        if not is_rounded:
            return False
    return True


def _is_large(product: MatrixProduct) -> bool:
    rows, columns, terms = (product.size(d) for d in (product.rows, product.columns, product.terms))
    element = BY_MLIR[product.op.accumulator]
    return (
        min(rows, columns) >= _SIDE
        and terms >= _DEPTH
        and product.size(product.batch) * rows * columns * terms >= _WORK
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
