"""Which bytes of one member's operand another member of a collective reads, and which it folds for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, cast

from mlirhlo.lowering.cpu.collectives import (
    RAGGED,
    Chunks,
    base_of,
    block_elements,
    dimensions_of,
    group_size,
    operands_of,
    results_of,
)

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.base import Instruction
    from mlirhlo.dialects.hlo.shapes import ArrayShape


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes from `start` to `end` of an array."""

    start: int
    end: int


def read_part(
    op: Instruction, k: int, sources: Sequence[int], reader: int, owner: int
) -> Part | None:
    """What `reader` reads of the operand `k` of `owner`, by positions in the group; None for nothing.

    `sources`: by position, whose operands a member gets, where it is one member's.
    """
    shape, name, count = operands_of(op)[k], base_of(op), len(sources)
    whole = Part(0, size_of(shape))
    if name in ("collective-permute", "collective-broadcast"):
        return whole if sources[reader] == owner else None
    if name == "all-reduce":
        return _share(op, shape, reader, count, reads=True) if is_shared_out(op, k) else whole
    if name == "reduce-scatter":
        (dim,) = dimensions_of(op)
        return _nth(Chunks.of(results_of(op)[k], dim), reader, whole)
    if name == "all-to-all":
        if len(results_of(op)) > 1 or not dimensions_of(op):
            return whole if k == reader else None
        chunks = Chunks.of(results_of(op)[0], dimensions_of(op)[0])
        part = chunks.bytes // cast(int, group_size(op))
        return _nth(Chunks(chunks.outer, part), reader, whole)
    if name == RAGGED:
        return None if k in (1, 5) else whole  # the reader's own output, and what it expects
    return whole


def folded_part(op: Instruction, k: int, member: int, count: int) -> Part | None:
    """What a member folds for all; None for nothing, or where each folds for itself."""
    if base_of(op) != "all-reduce" or not is_shared_out(op, k):
        return None
    return _share(op, operands_of(op)[k], member, count, reads=False)


def is_shared_out(op: Instruction, k: int) -> bool:
    """Whether an operand of an all-reduce is of several blocks, which members fold for each other."""
    shape = operands_of(op)[k]
    return _block(op, shape) != size_of(shape)


def size_of(shape: ArrayShape) -> int:
    """Bytes of an array."""
    return prod(shape.dimensions) * shape.element_type.byte_size


def _block(op: Instruction, shape: ArrayShape) -> int:
    return block_elements(op, shape) * shape.element_type.byte_size


def _nth(chunks: Chunks, number: int, whole: Part) -> Part:
    """A part of the outermost dimension; of others all, which the reader picks from."""
    return whole if chunks.outer > 1 else Part(number * chunks.bytes, (number + 1) * chunks.bytes)


def _share(
    op: Instruction, shape: ArrayShape, member: int, count: int, *, reads: bool
) -> Part | None:
    """Blocks of a member's share. The last block of an array is read whole: it ends with the array."""
    size, block = size_of(shape), _block(op, shape)
    blocks = -(-size // block)
    first, last = (blocks * n // count for n in (member, member + 1))
    if first == last:
        return None
    start = first * block
    return Part(min(start, size - block) if reads else start, min(last * block, size))
