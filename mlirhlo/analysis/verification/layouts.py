"""Checks of layouts, wherever a shape can stand: results, attributes, the module's header."""

from __future__ import annotations

from functools import lru_cache

from mlirhlo.analysis.shape_inference.base import declare
from mlirhlo.dialects.hlo.attributes import kinds
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, BufferShape, Shape, leaves

declare(
    "instruction",
    c5="a layout names every dimension once",
    c6="tiles have positive sizes",
    c11="stored elements and prefixes have no negative size, splits name dimensions",
)


def layout_problem(shape: Shape) -> tuple[str, str] | None:
    """Constraint and message of what is wrong with a layout in `shape`; None if nothing is."""
    for index, leaf in leaves(shape):
        part = leaf.element if isinstance(leaf, BufferShape) else leaf
        if not isinstance(part, ArrayShape):
            continue
        where = f"{part} in part {{{','.join(map(str, index))}}}" if index else str(part)
        if (problem := _array_problem(part, where)) is not None:
            return problem
        if part.layout is not None and part.layout.physical_shape is not None:
            if (problem := layout_problem(part.layout.physical_shape)) is not None:
                return problem
    return None


def _array_problem(shape: ArrayShape, where: str) -> tuple[str, str] | None:
    layout, rank = shape.layout, shape.rank
    if layout is None:
        return None
    if sorted(layout.minor_to_major) != list(range(rank)):
        return "instruction_c5", f"the layout of {where} does not name every dimension once"
    if any(size == 0 for tile in layout.tiles for size in tile):
        return "instruction_c6", f"a tile of {where} has size 0"
    if layout.element_size_bits < 0:
        return "instruction_c11", f"elements of {where} have a negative size"
    if any(not 0 <= dim < rank for dim, _ in layout.split_configs):
        return "instruction_c11", f"a split of {where} names no dimension"
    return None


@lru_cache(maxsize=1024)
def shape_attributes(cls: type[Instruction]) -> tuple[str, ...]:
    """Properties of a class of instructions that hold shapes."""
    return tuple(
        attribute.property_name
        for attribute in cls.opcode.attributes
        if attribute.kind in (kinds.SHAPE, kinds.SHAPES)
    )
