"""Asking early for lines of arrays that are gathered: they stand anywhere, so that no processor sees what is
read next, but the numbers of the lines do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.structured import GatherOp, MapOp, identity_map
from mlirhlo.lowering.hlo_to_loops.cuts import Region
from mlirhlo.lowering.hlo_to_loops.elemental import Elements
from mlirhlo.lowering.hlo_to_loops.elements import physical_order
from mlirhlo.lowering.hlo_to_loops.kernel_frame import Frame
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places

_AHEAD_BYTES = 8 << 10
"""How many bytes of the results lie between what is asked for and what is computed."""
_LEAST_BYTES = 256
"""Of a line: while shorter ones are waited for, the processor goes on to the next by itself."""


class _AskingPlaces(Places):
    """Asks for the lines of arrays that vectors are read from, into the second cache; single elements, the
    numbers of lines, are read."""

    def load(
        self, buffer: SSAValue, shape: ArrayShape, place: Sequence[Coordinate]
    ) -> tuple[SSAValue, ...]:
        if not self.lanes:
            return super().load(buffer, shape, place)
        bases = [place[d].base for d in physical_order(shape)]
        # Complex numbers have one dimension more, of their parts.
        rank = len(cast("MemRefType[Any]", buffer.type).get_shape())
        self.b.prefetch(buffer, [*bases, *[0] * (rank - len(bases))], locality=2)
        return ()


@dataclass(frozen=True)
class GatheredLines:
    """What gathers read for lines of results further down."""

    elements: Elements
    place: tuple[Coordinate, ...]
    """Of the line, without the last dimension."""
    gathers: tuple[GatherOp, ...]

    @classmethod
    def of(
        cls, frame: Frame, numbers: Sequence[int], place: Sequence[Coordinate], region: Region
    ) -> GatheredLines | None:
        """Of a region of some results, at a place without their last dimension; None where no line that no
        cache holds is gathered."""
        outputs = [frame.outputs[n] for n in numbers]
        low, high = region[-1]
        bytes_ = (high - low) * max(map(frame.byte_size, outputs))
        gathers = tuple(_gathers(frame, outputs)) if place and bytes_ >= _LEAST_BYTES else ()
        if not gathers:
            return None
        b, (*outer, line), (_, end) = frame.b, place, region[-2]
        below = b.minimum(b.add(line.base, max(1, _AHEAD_BYTES // bytes_)), end - 1)
        elements = Elements(_AskingPlaces(b, frame.lanes), frame.buffers)
        return cls(elements, (*outer, replace(line, base=below)), gathers)

    def ask_for(self, along: Coordinate) -> None:
        """In a loop over lines' vectors: one of each."""
        inner = self.elements.scope()
        for op in self.gathers:
            inner.at(op.output, [*self.place, along])


def _gathers(frame: Frame, outputs: Sequence[SSAValue]) -> list[GatherOp]:
    """Those of lines of arrays in memory that elements of results are computed from, at their own places."""
    found: dict[GatherOp, None] = {}
    seen: set[SSAValue] = set(frame.operands)
    stack = list(outputs)
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        op = value.owner
        if isinstance(op, GatherOp):
            if _takes_far_lines(op, frame):
                found[op] = None
        elif isinstance(op, MapOp):
            own = identity_map(len(op.space))
            stack += [v for v, m in zip(op.inputs, op.index_maps, strict=True) if m == own]
    return list(found)


def _takes_far_lines(op: GatherOp, frame: Frame) -> bool:
    """Whether the last dimension is one of what is taken, side by side in memory, and the one before is not."""
    if op.source not in frame.operands or not frame.is_far(op.source):
        return False
    last = len(op.space) - 1
    used = {d for map_ in op.index_maps for d in map_.used_dims()}
    ends_in_line = op.offset_map.results[-1] == AffineExpr.dimension(last)
    return ends_in_line and last not in used and last - 1 in used
