"""Tiles of arrays in the memory of TPUs, as XLA:TPU assigns them with the layout.

The two most minor dimensions are cut into tiles of 8 by 128 elements, fewer rows where there are fewer, to a power
of 2. A row holds words of 32 bits: of narrower elements 2 or 4 rows share one, which the second tile says. A
vector is cut into tiles of 128 words, up to 1024 elements of a long one. Source: dumps of XLA:TPU.
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.ir import Attribute

from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.order import instruction_list
from mlirhlo.dialects.hlo.shapes import ArrayShape, Layout, Shape, TupleShape, default_layout
from mlirhlo.dialects.hlo.types import shape_of, type_of

LANES = 128
SUBLANES = 8
LONGEST = 1024
"""Elements of the largest tile of a vector."""


def tiles_of(shape: ArrayShape) -> tuple[tuple[int, ...], ...]:
    """Tiles of an array in the order of dimensions that it has."""
    packed = max(32 // max(shape.element_type.bits, 8), 1)
    order = (shape.layout or default_layout(shape.rank)).minor_to_major
    inner = ((packed, 1),) if packed > 1 else ()
    if shape.rank == 0:
        return ((LANES * packed,),)
    if shape.rank == 1:
        tiles = _power(-(-shape.dimensions[0] // LANES))
        tile = max(min(tiles * LANES, LONGEST), LANES * packed)
        return ((tile,), (LANES,), *inner) if inner else ((tile,),)
    rows = max(min(_power(shape.dimensions[order[1]]), SUBLANES), packed)
    return ((rows, LANES), *inner)


def _power(number: int) -> int:
    """The least power of 2 that is not less; 1 for nothing."""
    return 1 << max(number - 1, 0).bit_length()


def tiled(shape: Shape) -> Shape:
    """The shape with its arrays in tiles; one that is so already is given back."""
    if isinstance(shape, TupleShape):
        parts = tuple(map(tiled, shape.elements))
        return shape if all(map(_is, parts, shape.elements)) else TupleShape(parts)
    if not isinstance(shape, ArrayShape):
        return shape
    layout = shape.layout or default_layout(shape.rank)
    tiles = tiles_of(shape)
    return shape if layout.tiles == tiles else shape.with_layout(replace(layout, tiles=tiles))


def _is(a: Shape, b: Shape) -> bool:
    return a is b


def write_tiles(module: HloModule) -> bool:
    """Puts all arrays into tiles, those of the header too where it says none; whether any was not."""
    changed = False
    known: dict[int, tuple[Attribute, Attribute]] = {}
    """A type, by its id, and what it becomes."""
    for computation in module.computations:
        for op in instruction_list(computation):
            output = op.results[0]
            type_ = output.type
            pair = known.get(id(type_))
            if pair is None:
                shape = shape_of(type_)
                wanted = tiled(shape)
                pair = type_, type_ if wanted is shape else type_of(wanted)
                known[id(type_)] = pair
            if pair[1] is not type_:
                output._type = pair[1]  # pyright: ignore[reportPrivateUsage]
                changed = True
    have = module.program_layout
    parameters, result = tuple(map(_completed, have.parameters)), _completed(have.result)
    if (*parameters, result) != (*have.parameters, have.result):
        module.set_program_layout(parameters, result)
        changed = True
    return changed


def _completed(shape: Shape) -> Shape:
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(map(_completed, shape.elements)))
    if not isinstance(shape, ArrayShape):
        return shape
    layout: Layout | None = shape.layout
    return shape if layout is not None and layout.tiles else tiled(shape)
