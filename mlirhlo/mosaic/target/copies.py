"""Views of references, copies and semaphores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.ir import Operation

from mlirhlo.dialects.tpu.types import SemaphoreType
from mlirhlo.dialects.tpu.values import LANES, SUBLANES
from mlirhlo.mosaic.attributes import name_of
from mlirhlo.mosaic.target.divisible import constant_of, is_divisible
from mlirhlo.mosaic.target.memory import tiles_of_indices
from mlirhlo.mosaic.target.rules import ALIGNMENT, SHAPE, SYNC, Question, Refusal, refuses
from mlirhlo.mosaic.target.tiling import (
    element_name,
    is_semaphore,
    rows_of_tile,
    shape_in,
    space_of,
    width_in_bits,
)
from mlirhlo.mosaic.target.views import (
    has_gaps,
    layout_of,
    layout_through,
    squeezed_dimensions,
)

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from mlirhlo.mosaic.target.generations import Generation


@refuses("tpu.memref_slice")
def slices_are_of_tiles(op: Operation, question: Question) -> Refusal | None:
    """Offsets and sizes in tiled dimensions are multiples of the tile, or the whole dimension.

    Rows and lanes that stay within one tile of the other dimension are reached by the word.
    """
    source, result = op.operands[0].type, op.results[0].type
    if is_semaphore(source) or space_of(source) not in ("vmem", "any", "hbm"):
        return None
    shape, sizes = shape_in(source), shape_in(result)
    bits = width_in_bits(element_name(source))
    rank, packing = len(shape), 32 // bits
    for dim, tile in tiles_of_indices(shape, bits).items():
        if dim >= len(sizes):
            continue
        offset, size = op.operands[1 + dim], sizes[dim]
        if size == shape[dim] and constant_of(offset) == 0:
            continue
        if dim == rank - 2:
            step = _row_step(offset, size, tile, packing, shape[-1] <= LANES)
        elif rank == 1:
            step = 1 if packing == 1 else tile
        else:
            step = 1 if shape[-1] <= LANES or _is_in_one_tile(op, shape, sizes, bits) else tile
        if not is_divisible(offset, step):
            return Refusal(
                ALIGNMENT,
                f"the offset in dimension {dim} is not provably a multiple of the tile ({step})",
                f"slice at multiples of {step}, or promise it with tpu.assume_multiple",
            )
        least = packing if dim == rank - 2 and tile > SUBLANES else step
        if size >= 0 and size % least:
            return Refusal(
                ALIGNMENT,
                f"the size {size} in dimension {dim} is no multiple of {least}",
                f"take a multiple of {least}, or the whole dimension",
            )
    return None


def _row_step(offset: SSAValue, size: int, tile: int, packing: int, is_narrow: bool) -> int:
    """What the offset of a slice of rows is a multiple of: packed rows where the array is one tile
    wide or the slice known to be in one tile, the size where it is a part of a tile, half a tile
    where the offset is known, else the tile."""
    known = constant_of(offset)
    if is_narrow or (known is not None and 0 <= size <= tile - known % tile):
        return packing if size < 0 or size % packing == 0 else tile
    half = max(tile // 2, 1)
    if known is not None and size >= 0 and size % half == 0:
        return half
    if packing <= size <= tile and size & (size - 1) == 0:
        return size
    return tile


def _is_in_one_tile(
    op: Operation, shape: tuple[int, ...], sizes: tuple[int, ...], bits: int
) -> bool:
    """Whether the rows of a slice are known ones of one tile."""
    if sizes[-1] > LANES:
        return False
    first, tile = constant_of(op.operands[len(shape) - 1]), rows_of_tile(shape[-2], bits)
    return first is not None and 0 <= sizes[-2] <= tile - first % tile


@refuses("tpu.enqueue_dma")
def copies_move_whole_words(op: Operation, question: Question) -> Refusal | None:
    """A part of a row is copied in the words of the generation's memory."""
    step = question.generation.copied_lanes
    for operand in op.operands:
        part = operand.owner
        while isinstance(part, Operation) and name_of(part) == "tpu.memref_squeeze":
            part = part.operands[0].owner
        if not isinstance(part, Operation) or name_of(part) != "tpu.memref_slice":
            continue
        shape, sizes = shape_in(part.operands[0].type), shape_in(part.results[0].type)
        if is_semaphore(part.operands[0].type) or not shape:
            continue
        offset, size = part.operands[len(shape)], sizes[-1]
        known = constant_of(offset)
        if size == shape[-1] and known == 0:
            continue
        start = _start_step(part, known, question.generation)
        if question.generation.number >= 7 and known != 0:
            step = LANES
        if size % step or not is_divisible(offset, start):
            return Refusal(
                ALIGNMENT,
                f"a copy moves {step} lanes at once, and this one takes {size} at "
                f"{'an unknown offset' if known is None else known} of rows of {shape[-1]}",
                f"copy multiples of {LANES} at multiples of {LANES}, or whole rows",
            )
    return None


def _start_step(part: Operation, known: int | None, generation: Generation) -> int:
    """What the first lane of a copied part is a multiple of."""
    bits = width_in_bits(element_name(part.operands[0].type))
    if generation.copied_lanes == LANES or known == 0:
        return 1 if known == 0 else LANES
    if generation.number >= 7:
        return LANES
    # Of unknown lanes the compiler follows the bits of packed elements only.
    return generation.copied_lanes if known is not None else LANES if bits == 32 else 256 // bits


@refuses("tpu.enqueue_dma")
def copies_count_on_dma_semaphores(op: Operation, question: Question) -> Refusal | None:
    """Before v5p and v6e a copy cannot signal a plain semaphore."""
    if question.generation.counts_copies_on_plain_semaphores:
        return None
    for operand in op.operands:
        element = getattr(operand.type, "element_type", None)
        if isinstance(element, SemaphoreType):
            return Refusal(
                SYNC, "a copy signals a !tpu.dma_semaphore here", "make it a !tpu.dma_semaphore"
            )
    return None


@refuses("tpu.memref_reshape")
def reshapes_keep_tiles(op: Operation, question: Question) -> Refusal | None:
    """Arrays without gaps are reshaped: rows by whole tiles, words also into other lines of registers."""
    before, after = shape_in(op.operands[0].type), shape_in(op.results[0].type)
    layout = None if space_of(op.operands[0].type) == "smem" else layout_of(op.operands[0])
    if layout is None or layout_through(op, layout) is not None:
        return None
    if has_gaps(layout, before):
        return Refusal(
            SHAPE,
            "there are gaps between the rows of the reference: it is a part, or its rows "
            "do not fill tiles",
            "reshape the whole reference and take the part of that, or make its rows fill tiles",
        )
    if before[-1] != after[-1]:
        return Refusal(
            SHAPE,
            f"the last dimension changes from {before[-1]} to {after[-1]}",
            f"keep it, or have 32-bit elements in rows of {LANES}",
        )
    tile, (old, new) = (
        layout.tiles[0][0],
        (shape[-2] if len(shape) > 1 else 1 for shape in (before, after)),
    )
    return Refusal(
        SHAPE,
        f"rows change from {old} to {new}, and not in whole tiles of {tile}",
        f"make both a multiple of {tile}",
    )


@refuses("tpu.memref_squeeze")
def squeezed_rows_are_not_padded(op: Operation, question: Question) -> Refusal | None:
    """A dimension goes where the tile has one row of it."""
    layout = None if space_of(op.operands[0].type) == "smem" else layout_of(op.operands[0])
    if layout is None or layout_through(op, layout) is not None:
        return None
    before, after = shape_in(op.operands[0].type), shape_in(op.results[0].type)
    tile = (1,) * (len(before) - len(layout.tiles[0])) + layout.tiles[0]
    gone = squeezed_dimensions(before, after) or ()
    dim = next((dim for dim in gone if tile[dim] != 1), len(before) - 1)
    return Refusal(
        SHAPE,
        f"dimension {dim} is padded to the {tile[dim]} of a tile, and squeezed",
        "keep it, or have it in front of the last two dimensions",
    )
