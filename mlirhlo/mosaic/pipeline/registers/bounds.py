"""What of a register is the vector's: the sublanes to load and store, and masks of the rest.

Source: what the TPU compiler writes for vectors of every shape, element and place in a tile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IntegerType

from mlirhlo.dialects.tpu.registers import explicit_shape
from mlirhlo.dialects.tpu.values import LANES, SUBLANES
from mlirhlo.mosaic.pipeline.building import attribute
from mlirhlo.mosaic.pipeline.registers.state import (
    Registers,
    grid_of,
    mask_type,
    packing_of,
    typed,
)
from mlirhlo.mosaic.target.tiling import shape_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Attribute, Operation, SSAValue

    from mlirhlo.dialects.tpu.values import VectorLayout


@dataclass(frozen=True, slots=True)
class Bounds:
    """The elements of a vector in one of its registers: a box of rows and lanes through its tiles."""

    layout: VectorLayout
    rows: tuple[int, int]
    """In each tile."""
    lanes: tuple[int, int]
    """Through all tiles side by side; of a layout of single rows, through all of the register."""

    @property
    def is_row(self) -> bool:
        """Whether the layout is of single rows, which go through sublanes one after another."""
        return self.layout.tiling[0] == 1

    @property
    def varies_by_sublane(self) -> bool:
        """Whether a sublane is none of the vector's."""
        low, high = self.lanes
        if self.is_row:
            most = self.layout.lanes_a_register
            return (low, high) != (0, most) and (low >= LANES or high < most - LANES)
        side = self.layout.tiles_a_register
        uses_all = low < LANES and -(-high // LANES) == side
        return not uses_all or self.rows != (0, self.layout.tiling[0])

    @property
    def varies_by_lane(self) -> bool:
        """Whether a sublane has lanes that are none of the vector's."""
        if self.is_row:
            return self.lanes != (0, self.layout.lanes_a_register)
        return any(end % LANES for end in self.lanes)

    @property
    def varies_by_element(self) -> bool:
        """Whether a word has elements that are none of the vector's."""
        packing = packing_of(self.layout)
        if self.is_row:
            return any(end % (LANES * packing) for end in self.lanes) and packing > 1
        return any(end % packing for end in self.rows)

    @property
    def is_whole(self) -> bool:
        """Whether all of the register is the vector's."""
        return not (self.varies_by_sublane or self.varies_by_lane or self.varies_by_element)

    def sublanes(self) -> tuple[bool, ...]:
        """The sublanes that have something of the vector's."""
        packing = packing_of(self.layout)
        low, high = self.lanes
        if self.is_row:
            first, last = low // packing // LANES, -(-high // packing // LANES)
            return tuple(first <= at < last for at in range(SUBLANES))
        height = SUBLANES // self.layout.tiles_a_register
        rows = range(self.rows[0] // packing, -(-self.rows[1] // packing))
        tiles = range(low // LANES, -(-high // LANES))
        return tuple(at // height in tiles and at % height in rows for at in range(SUBLANES))

    def mask(self, state: Registers) -> SSAValue:
        """A mask of the vector's elements: of words where that is enough."""
        if self.is_row:
            return self._row_mask(state)
        packing = packing_of(self.layout)
        side, height = self.layout.tiles_a_register, self.layout.tiling[0]
        type_ = mask_type(packing if self.varies_by_element else 1)
        if self.is_whole:
            return state.splat("true", type_)
        first, last = self.lanes[0] // LANES, -(-self.lanes[1] // LANES)
        rows = (self.rows[0] // packing, -(-self.rows[1] // packing))
        found: SSAValue | None = None
        for tile in range(first, last):
            begin = tile * (SUBLANES // side)
            low = self.lanes[0] % LANES if tile == first else 0
            high = (self.lanes[1] - 1) % LANES + 1 if tile == last - 1 else LANES
            one = state.box((begin + rows[0], begin + rows[1]), (low, high), type_)
            if self.varies_by_element:
                top = tile * height + self.rows[0] if self.rows[0] % packing else 0
                end = tile * height + self.rows[1]
                ends = {
                    "from": attribute(f"{top} : i32"),
                    "to": attribute(
                        f"{end if self.rows[1] % packing else SUBLANES * packing} : i32"
                    ),
                }
                part = state.emit("tpu.create_subelement_mask", (), type_, ends)
                one = state.emit("arith.andi", (one, part), type_)
            found = one if found is None else state.emit("arith.ori", (one, found), type_)
        assert found is not None
        return found

    def _row_mask(self, state: Registers) -> SSAValue:
        """Counts of all elements of a register, or of its words, compared with both ends."""
        packing, lanes = packing_of(self.layout), self.lanes
        if not self.varies_by_element:
            packing, lanes = 1, (lanes[0] // packing, lanes[1] // packing)
        # Elements narrower than halves of words are counted as such, in several parts.
        wide = min(packing, 2)
        type_ = typed(IntegerType(32 // wide), wide)
        ends = [state.splat(str(end), type_) for end in lanes]
        order = "0, 1" if wide == 1 else "0, 2, 1"
        dims = {"dimensions": attribute(f"array<i32: {order}>")}
        counts = [state.emit("tpu.iota", (), type_, dims)]
        for part in range(1, packing // wide):
            begin = state.splat(str(part * wide * SUBLANES * LANES), type_)
            counts.append(state.emit("arith.ori", (counts[0], begin), type_))
        masks: list[SSAValue] = []
        for count in counts:
            sides = [
                state.emit(
                    "arith.cmpi", (count, end), mask_type(wide), {"predicate": attribute(kind)}
                )
                for end, kind in zip(ends, ("5 : i64", "2 : i64"), strict=True)
            ]
            masks.append(state.emit("arith.andi", sides, mask_type(wide)))
        if len(masks) == 1:
            return masks[0]
        places = {"positions": attribute(f"array<i32: {', '.join(map(str, range(len(masks))))}>")}
        return state.emit("tpu.pack_vmsk", masks, mask_type(packing), places)


def bounds_of(
    layout: VectorLayout, type_: Attribute, index: Sequence[int], op: Operation
) -> Bounds:
    """The bounds of the register at an index of the grid of a vector type."""
    grid = grid_of(layout, type_, op).shape
    shape = explicit_shape(layout, shape_in(type_))
    assert shape is not None
    slices = (layout.tiling[0], layout.lanes_a_register)
    spans: list[tuple[int, int]] = []
    for at, size in enumerate(slices):
        start, number = layout.offsets[at], index[at - 2]
        low, high = 0, size
        if start is not None:
            low = start if number == 0 else 0
            if number == grid[at - 2] - 1:
                high = (start + shape[at - 2] - 1) % size + 1
        spans.append((low, high))
    return Bounds(layout, spans[0], spans[1])
