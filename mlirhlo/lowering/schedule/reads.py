"""Through which index maps a launch reads memory."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap

from mlirhlo.dialects.hlo.ops import ConstantOp
from mlirhlo.dialects.structured import FoldOp, MapOp, identity_map
from mlirhlo.lowering.schedule.attributes import SCHEDULE


def reads_of(
    op: MapOp | FoldOp, launch: frozenset[Operation]
) -> Iterator[tuple[SSAValue, AffineMap | None]]:
    """The values that a map or fold reads from memory, itself or through maps that are computed where they are
    read, and the map from its space to their indices; None for what is read through an op that is no map.

    `launch`: ops that are computed with it.
    """
    stack: list[tuple[MapOp | FoldOp, AffineMap]] = [(op, identity_map(len(op.space)))]
    while stack:
        reader, outer = stack.pop()
        for value, map_ in zip(reader.inputs, reader.index_maps, strict=True):
            composed = map_.compose(outer)
            owner = value.owner
            if isinstance(owner, ConstantOp):
                continue
            if not isinstance(owner, Operation) or (
                SCHEDULE in owner.attributes and owner not in launch
            ):
                yield value, composed
            elif isinstance(owner, MapOp):
                stack.append((owner, composed))
            else:
                yield value, None
