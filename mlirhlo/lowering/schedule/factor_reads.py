"""Factors of contractions that stand in memory as they are multiplied: what asynchronous copies can bring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineMap

from mlirhlo.dialects.hlo.ops import ConstantOp
from mlirhlo.dialects.structured import AssembleOp, ContractOp, MapOp, sizes_of
from mlirhlo.dialects.structured.base import yielded
from mlirhlo.dialects.structured.dense import DYNAMIC
from mlirhlo.lowering.gpu.affine import simplified
from mlirhlo.lowering.schedule.attributes import SCHEDULE, element_of
from mlirhlo.lowering.schedule.group_ranges import factors_of

LEAST_BYTES, MOST_BYTES = 4, 16
"""That one copy moves."""


@dataclass(frozen=True, slots=True)
class FactorRead:
    """Elements of a factor in memory: `source` at the results of `map` of the contraction's indices, less `offsets`."""

    source: SSAValue
    map: AffineMap
    offsets: tuple[int, ...]
    padded: tuple[int, ...]
    """Dimensions of the source in which an index may lie outside; elements there are zeros."""

    def width(self, space: Sequence[int], dim: int) -> int:
        """How many neighbours along a dimension of the space one copy can move; 0 for none."""
        size = element_of(self.source).byte_size
        width = MOST_BYTES // size
        while width * size > LEAST_BYTES and not self._are_together(space, dim, width):
            width //= 2
        is_copied = width == 1 or self._are_together(space, dim, width)
        return width if is_copied and width * size >= LEAST_BYTES else 0

    def _are_together(self, space: Sequence[int], dim: int, width: int) -> bool:
        """Whether `width` neighbours along a dimension are as many bytes of memory, and start at a multiple of them."""
        if width == 1:
            return True
        if not self.map.results or space[dim] % width:
            return False
        if sizes_of(self.source)[-1] % width or self.offsets[-1] % width:
            return False
        *outer, last = (simplified(e, space) for e in self.map.results)
        if any(total.factor(dim) != 0 for total in outer) or last.factor(dim) != 1:
            return False
        factors = sorted(factor % width for _, factor in last.terms)
        return last.constant % width == 0 and factors == [0] * (len(factors) - 1) + [1]


def plain_read(op: ContractOp, side: int) -> FactorRead | None:
    """The read of a factor that is an array in memory, moved about and padded with zeros at most."""
    factor = factors_of(op)[side]
    if not isinstance(factor, BlockArgument):
        return None
    value, map_ = op.inputs[factor.index], op.index_maps[factor.index]
    padding = _padding(value)
    offsets: tuple[int, ...] = (0,) * len(map_.results)
    padded: tuple[int, ...] = ()
    if padding is not None:
        value, offsets, padded = padding
    while isinstance(value.owner, MapOp) and SCHEDULE not in value.owner.attributes:
        moved = value.owner
        is_movement = len(moved.inputs) == 1 and isinstance(yielded(moved.body)[0], BlockArgument)
        if not is_movement or padding is not None:
            return None
        (value,), (inner,) = moved.inputs, moved.index_maps
        map_ = inner.compose(map_)
        offsets = (0,) * len(map_.results)
    element = element_of(value)
    if not _is_in_memory(value) or element.is_complex or element.bits not in (8, 16, 32, 64):
        return None
    return FactorRead(value, map_, offsets, padded)


def _is_in_memory(value: SSAValue) -> bool:
    return not isinstance(value.owner, Operation) or SCHEDULE in value.owner.attributes


def _padding(value: SSAValue) -> tuple[SSAValue, tuple[int, ...], tuple[int, ...]] | None:
    """What a value pads with zeros, from which offsets on, and in which dimensions."""
    op = value.owner
    if not isinstance(op, AssembleOp) or SCHEDULE in op.attributes or len(op.pieces) != 1:
        return None
    (piece,), (offsets,), (strides,) = op.pieces, op.piece_offsets, op.piece_strides
    if DYNAMIC in offsets or set(strides) != {1} or not _is_zero(op.fill):
        return None
    whole = sizes_of(op.output)
    padded = tuple(
        dim
        for dim, (n, all_, start) in enumerate(zip(sizes_of(piece), whole, offsets, strict=True))
        if n != all_ or start
    )
    return piece, tuple(offsets), padded


def _is_zero(value: SSAValue | None) -> bool:
    if value is None:
        return True
    owner = value.owner
    if not isinstance(owner, ConstantOp) or owner.literal is None:
        return False
    return not owner.literal.array.tobytes().strip(b"\0")
