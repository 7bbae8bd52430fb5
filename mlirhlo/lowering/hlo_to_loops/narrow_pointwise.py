"""Elementwise kernels whose last dimension is shorter than a vector: points, pixels, pairs of keys.

Lanes go along the dimension before it. All columns of a vector of rows are computed together, so that what
they share is computed once, and put side by side by shuffles: they are neighbours in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.hlo_to_loops.cuts import Region, regions
from mlirhlo.lowering.hlo_to_loops.elemental import Elements
from mlirhlo.lowering.hlo_to_loops.elements import to_memory
from mlirhlo.lowering.hlo_to_loops.elementwise_convert import element_type
from mlirhlo.lowering.hlo_to_loops.kernel_frame import Frame
from mlirhlo.lowering.hlo_to_loops.merging import sizes_of
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places
from mlirhlo.lowering.hlo_to_loops.pointwise import share_places
from mlirhlo.lowering.hlo_to_loops.transposes import side_by_side

_MOST = 4
"""Columns."""
ROWS = 1 << 12
"""Rows that are worked on by one thread, where there are no dimensions around them."""


def is_narrow(outputs: Sequence[SSAValue], lanes: int) -> bool:
    """Whether the results of a computation are narrow and at least a vector long, all of one shape."""
    sizes = sizes_of(outputs[0])
    return (
        len(sizes) > 1
        and sizes[-1] <= _MOST
        and sizes[-2] >= max(lanes, 2)
        and all(sizes_of(v) == sizes and not element_type(v).is_complex for v in outputs)
    )


def narrow_kernel(frame: Frame, piece: int = ROWS) -> FuncOp:
    """The kernel of results that are narrow, `piece` rows a part where there are no dimensions around them."""
    share_places(frame)
    found = regions(frame.outputs, frame.operands, frame.lanes, -2)
    for region in dict.fromkeys(tuple(r[:-1]) for r in found):
        share = prod(high - low for low, high in region) / prod(sizes_of(frame.outputs[0])[:-1])
        _rows(frame, region, frame.work * share, piece)
    return frame.b.finish()


def _rows(frame: Frame, region: Region, work: float, piece: int) -> None:
    """Rows of a region of the dimensions but the last: vectors of them, then the rest under a mask."""
    b, lanes = frame.b, frame.lanes
    *outer, (low, high) = region
    sizes = [end - begin for begin, end in outer]
    rest = (high - low) % lanes
    piece = high - low if outer else piece
    pieces = -(-(high - low) // piece)

    def block(e: Elements, number: Index, row: Index, count: int | None = None) -> None:
        found = Places(b, 0).unlinear(Coordinate(number), sizes)
        place = [
            Coordinate(b.add(c.base, begin), 0, None, 1, (begin, end))
            for c, (begin, end) in zip(found, outer, strict=True)
        ]
        _block(frame, e, [*place, Coordinate(row, 1, None, gcd(low, lanes), (low, high))], count)

    with b.parallel(prod(sizes) * pieces, work=work) as number:
        first = b.add(b.mul(b.rem(number, pieces), piece), low)
        last: Index = high - rest
        if pieces > 1:
            last = b.minimum(b.add(first, piece), last)
        e = Elements(Places(b, lanes), frame.buffers)
        with b.loop(first, last, lanes) as row:
            block(e.scope(), b.div(number, pieces), row)
    if rest:
        with b.parallel(prod(sizes), work=work * rest / (high - low)) as number:
            mask = b.mask(b.index(rest), lanes)
            block(Elements(Places(b, lanes, mask), frame.buffers), number, high - rest, rest)


def _block(frame: Frame, e: Elements, rows: Sequence[Coordinate], count: int | None) -> None:
    """A vector of rows, or `count` of them: all are computed before any is stored."""
    b, lanes = frame.b, frame.lanes
    width = sizes_of(frame.outputs[0])[-1]
    columns = [Coordinate(at, 0, None, 1, (at, at + 1)) for at in range(width)]
    found = [[e.at(v, [*rows, column])[0] for column in columns] for v in frame.outputs]
    base = [c.base for c in rows]
    for number, (output, values) in enumerate(zip(frame.outputs, found, strict=True)):
        element = element_type(output)
        together = side_by_side(b, [to_memory(b, v, element) for v in values])
        for at, vector in enumerate(together):
            left = lanes if count is None else count * width - at * lanes
            if left > 0:
                mask = b.mask(b.index(left), lanes) if left < lanes else None
                b.vector_store(vector, frame.targets[number], [*base, at * lanes], mask)
