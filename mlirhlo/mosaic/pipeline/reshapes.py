"""The layouts of reshapes: those that move nothing first, then those of tiles that fold."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mlirhlo.dialects.tpu.values import LANES, SUBLANES, VectorLayout
from mlirhlo.mosaic.pipeline.layouts import native_tiling

if TYPE_CHECKING:
    from collections.abc import Iterator

    Pair = tuple[VectorLayout, VectorLayout]


def reshape(have: VectorLayout, before: tuple[int, ...], after: tuple[int, ...]) -> Pair | None:
    """The layouts of the operand and of the result of a reshape of a vector that lies in `have`.

    None where there is no plan: then both are native.
    """
    rows, lanes = have.tiled_dimensions(before)
    candidates = [replace(have, implicit=dims) for dims in _implicit(after)]
    for wanted in candidates:
        if wanted.tiled_dimensions(after) == (rows, lanes):
            return have, wanted
    for wanted in candidates:
        found = _folded(have, (rows, lanes), wanted, wanted.tiled_dimensions(after))
        if found is not None:
            return found
    whole = native_tiling(have.bits)
    if after[-2:] == (lanes, 1) and have.bits == 32:
        # Lanes become rows of one lane, which all lanes hold.
        return replace(have, tiling=whole), VectorLayout(32, (0, None), whole)
    return None


def _implicit(after: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The dimensions that a layout of that shape may have put back, the plain ones first."""
    return [*([()] if len(after) > 1 else []), *([(-2,), (-1,)] if after else [])]


def _folded(
    have: VectorLayout, old: tuple[int, int], wanted: VectorLayout, new: tuple[int, int]
) -> Pair | None:
    """Rows fold where tiles have few enough of them, lanes where rows lie one after another."""
    (rows, lanes), (new_rows, new_lanes) = old, new
    packing = 32 // have.bits
    register = SUBLANES * LANES * packing
    for tiling in _tilings(have.tiling[0], packing):
        height = tiling[0]
        is_long = height == 1 and lanes % register == 0 and new_lanes % register == 0
        if (lanes == new_lanes or is_long) and rows % height == 0 and new_rows % height == 0:
            offsets = (0, have.offsets[1])
            return (
                replace(have, offsets=offsets, tiling=tiling),
                replace(wanted, offsets=offsets, tiling=tiling),
            )
    if lanes == new_lanes or lanes % LANES or new_lanes % LANES:
        return None
    whole = native_tiling(have.bits)
    count = max(lanes, new_lanes) // LANES
    height = max(whole[0] // count, 1)
    if LANES not in (lanes, new_lanes) or (height > 1 and height * count != whole[0]):
        return None
    # Rows that are folded alone may be ragged: those of other boxes do not follow them.
    narrow, wide = (new_rows, rows) if new_lanes == LANES else (rows, new_rows)
    if rows * lanes != new_rows * new_lanes and (narrow % whole[0] or wide % height):
        return None
    if height == 1 and (narrow % whole[0] or max(lanes, new_lanes) % register):
        return None
    if 1 < height < packing:
        return None
    tiling = (1, LANES * packing) if height == 1 else (height, LANES)
    first, second = (tiling, whole) if new_lanes == LANES else (whole, tiling)
    return (
        replace(have, offsets=(0, 0), tiling=first),
        replace(wanted, offsets=(0, 0), tiling=second),
    )


def _tilings(rows: int, packing: int) -> Iterator[tuple[int, int]]:
    """Tiles of ever fewer rows; a row of narrow elements alone goes on for several lanes' widths."""
    while rows >= packing and rows > 1:
        yield rows, LANES
        rows //= 2
    yield 1, LANES * packing
