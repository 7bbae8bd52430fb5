"""Asking early for lines of arrays that are gathered: they stand anywhere, so that no processor sees what is
read next, but the numbers of the lines do."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops import GatherOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.lowering.hlo_to_loops.cuts import Region
from mlirhlo.lowering.hlo_to_loops.elemental import Elements
from mlirhlo.lowering.hlo_to_loops.elements import physical_order
from mlirhlo.lowering.hlo_to_loops.kernel_frame import Frame
from mlirhlo.lowering.hlo_to_loops.merging import arrays_in, sizes_of
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
        op = cast(Instruction, value.owner)
        if isinstance(op, GatherOp):
            if _takes_far_lines(op, frame, frame.operands):
                found[op] = None
        elif op.opcode.elementwise:
            stack += [v for v in op.inputs if sizes_of(v) == sizes_of(value)]
    return list(found)


def _takes_far_lines(op: GatherOp, frame: Frame, operands: Collection[SSAValue]) -> bool:
    """Whether the last dimension is one of what is taken, side by side in memory, and the one before is not."""
    if op.operand not in operands or not frame.is_far(op.operand):
        return False
    last, offsets = len(sizes_of(op.output)) - 1, op.offset_dims
    aside = {*op.collapsed_slice_dims, *op.operand_batching_dims}
    shape = arrays_in(op.operand)[0]
    taken = [d for d in range(len(shape.dimensions)) if d not in aside]
    return last in offsets and last - 1 not in offsets and taken[-1] == physical_order(shape)[-1]
