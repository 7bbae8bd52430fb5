"""Views of references, copies and semaphores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirhlo.dialects.tpu.types import SemaphoreType
from mlirhlo.dialects.tpu.values import LANES, SUBLANES
from mlirhlo.mosaic.target.divisible import constant_of, is_divisible
from mlirhlo.mosaic.target.memory import tiles_of_indices
from mlirhlo.mosaic.target.rules import ALIGNMENT, SHAPE, SYNC, Question, Refusal, refuses
from mlirhlo.mosaic.target.tiling import (
    element_name,
    is_semaphore,
    shape_in,
    space_of,
    width_in_bits,
)

if TYPE_CHECKING:
    from xdsl.ir import Operation


@refuses("tpu.memref_slice")
def slices_are_of_tiles(op: Operation, question: Question) -> Refusal | None:
    """Offsets and sizes in tiled dimensions are multiples of the tile, or the whole dimension."""
    source, result = op.operands[0].type, op.results[0].type
    if is_semaphore(source) or space_of(source) not in ("vmem", "any", "hbm"):
        return None
    shape, sizes = shape_in(source), shape_in(result)
    bits = width_in_bits(element_name(source))
    for dim, tile in tiles_of_indices(shape, bits).items():
        if dim >= len(sizes):
            continue
        offset, size = op.operands[1 + dim], sizes[dim]
        if size == shape[dim] and constant_of(offset) == 0:
            continue
        is_row = dim == len(shape) - 2
        # Rows of words are reached singly, and all of them where they are one register wide.
        if is_row and bits == 32 and (size == 1 or shape[-1] <= LANES):
            continue
        if not is_divisible(offset, tile):
            return Refusal(
                ALIGNMENT,
                f"the offset in dimension {dim} is not provably a multiple of the tile ({tile})",
                f"slice at multiples of {tile}, or promise it with tpu.assume_multiple",
            )
        least = 32 // bits if is_row and tile > SUBLANES else tile
        if size >= 0 and size % least:
            return Refusal(
                ALIGNMENT,
                f"the size {size} in dimension {dim} is no multiple of {least}",
                f"take a multiple of {least}, or the whole dimension",
            )
    return None


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
    """The minor dimension stays, and rows move in whole tiles."""
    before, after = shape_in(op.operands[0].type), shape_in(op.results[0].type)
    if len(before) < 2 or len(after) < 2:
        return Refusal(SHAPE, "references of rank 1 are not reshaped", "keep two dimensions")
    if before[-1] != after[-1]:
        return Refusal(
            SHAPE,
            f"the last dimension changes from {before[-1]} to {after[-1]}",
            "keep the last dimension",
        )
    bits = width_in_bits(element_name(op.operands[0].type))
    tile = tiles_of_indices(before, bits)[len(before) - 2]
    if before[-2] != after[-2] and (before[-2] % tile or after[-2] % tile):
        return Refusal(
            SHAPE,
            f"rows change from {before[-2]} to {after[-2]}, and not in whole tiles of {tile}",
            f"make both a multiple of {tile}",
        )
    return None
