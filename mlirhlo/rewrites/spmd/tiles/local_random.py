"""Random numbers on tiles."""

from __future__ import annotations

from typing import cast

from mlirhlo.dialects.hlo import element_types as et
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.rewrites.spmd.reducers import sole
from mlirhlo.rewrites.spmd.tiles.local import Leaf, Work, handles


@handles("rng")
def rng(work: Work) -> list[Leaf]:
    """Every device draws its own numbers; where several have one tile, the first one's go to all."""
    emit = work.emit
    operands = [work.value(k) for k in range(len(work.operands))]
    shape = cast(ArrayShape, work.op.shape)
    placement = work.placement(work.factors.results[0])
    value = emit.like(work.op, operands, work.local_result(), work.op.properties)
    shared = work.grid.rest((*placement.used, *work.manual))
    if not shared:
        return work.parts(value)
    first = emit.compare(emit.coordinate(work.grid, shared), emit.constant(0, et.S32), "EQ")
    opcode, nothing = sole(shape.element_type)
    value = emit.select(first, value, emit.constant(nothing, shape.element_type))
    joined = emit.module.binary(opcode, shape.element_type)
    value = emit.all_reduce(value, work.grid, shared, joined)
    return work.parts(value)
