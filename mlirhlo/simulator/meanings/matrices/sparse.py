"""Sparse products of a warp: `mma.sp`, whose A holds half of its numbers and says in metadata which.

Of each group of four numbers (of two of 32 bits, of four pairs of 4 bits) half are stored, with two bits each for their
index. A word of metadata has 16 bits for row g and 16 for row g + 8 where numbers have 16 or 32 bits, else 32 bits of
one row. The threads of a quartet that have it are named by the selector.
Source: PTX ISA, "mma.sp"; the order of words as CUTLASS arranges metadata.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mlirhlo.diagnostics import Diagnostic
from mlirhlo.dialects.ptx import Immediate
from mlirhlo.simulator.access import place_at
from mlirhlo.simulator.assembler import Assembler, Run
from mlirhlo.simulator.lanes import WARP, Array, Lanes
from mlirhlo.simulator.meanings.collectives import collective
from mlirhlo.simulator.meanings.matrices.matrix import (
    ACCUMULATORS,
    BITS,
    ELEMENT,
    SHAPE,
    gather_a,
    gather_b,
    gather_c,
    scatter_d,
    unpacked,
    words_of,
    write_elements,
)

if TYPE_CHECKING:
    from mlirhlo.simulator.cohort import Cohort

_ROWS = 16


def sparse_product(assembler: Assembler) -> Run:
    """D = A B + C with a sparse A."""
    shape = next((match for one in assembler.modifiers if (match := SHAPE.fullmatch(one))), None)
    kinds = [one for one in assembler.modifiers if ELEMENT.fullmatch(one)]
    if shape is None or len(kinds) < 4 or assembler.has("block_scale"):
        raise assembler.no_meaning()
    depth = int(shape.groups()[2])
    to, type_a, type_b, type_c = kinds[-4:]
    d = [assembler.value(one, ACCUMULATORS[to]) for one in assembler.parts(0)]
    a = [assembler.value(one, "b32") for one in assembler.parts(1)]
    b = [assembler.value(one, "b32") for one in assembler.parts(2)]
    c = [assembler.value(one, ACCUMULATORS[type_c]) for one in assembler.parts(3)]
    width = BITS.get(type_a, 8)
    expected = _ROWS * depth // 2 * width // (WARP * 32)
    if len(a) != expected:
        raise assembler.wrong(f"A has {len(a)} registers; {expected} expected")
    metadata, selector = assembler.source(4, "b32"), assembler.operands[5]
    number = selector.value if isinstance(selector, Immediate) else 0
    groups = depth // {32: 2, 4: 8}.get(width, 4)
    threads = groups // 4  # of a quartet, that have metadata
    if not 0 <= number < 4 // threads:
        raise assembler.wrong(f"no threads have selector {number} for this shape")
    finite, is_ordered = assembler.has("satfinite"), assembler.has("sp::ordered_metadata")

    def body(cohort: Cohort, lanes: Lanes) -> None:
        words = words_of(cohort, lanes, [metadata])[:, :, 0].reshape(-1, 8, 4)
        chosen = words[:, :, number * threads : (number + 1) * threads]
        indices = _indices(chosen, groups, by_halves=width >= 16)
        if is_ordered:
            _check_order(cohort, indices)
        stored = gather_a(words_of(cohort, lanes, a), _ROWS, type_a)
        left = _spread(stored, indices, depth, width)
        right = gather_b(words_of(cohort, lanes, b), type_b)
        add = gather_c(unpacked(words_of(cohort, lanes, c), type_c), _ROWS)
        total = np.matmul(left, right.transpose(0, 2, 1)) + add
        write_elements(cohort, lanes, d, scatter_d(total), to, saturates=finite)

    return collective(assembler, None, body)


def _indices(words: Array, groups: int, *, by_halves: bool) -> Array:
    """The two indices of each group: warps × rows × groups × 2. `words`: warps × 8 quartets × threads."""
    count = len(words)
    if by_halves:
        halves = words.astype("<u4").view("<u2").reshape(count, 8, -1, 2)
        rows: Array = halves.transpose(0, 3, 1, 2)
        per_word = 4
    else:
        rows = words.reshape(count, 8, -1, 2).transpose(0, 3, 1, 2)
        per_word = 8
    bits = rows.reshape(count, _ROWS, -1).astype(np.int64)
    parts = bits[..., None] >> 4 * np.arange(per_word) & 15
    nibbles = parts.reshape(count, _ROWS, groups)
    return np.stack([nibbles & 3, nibbles >> 2], axis=-1)


def _spread(stored: Array, indices: Array, depth: int, width: int) -> Array:
    """A with zeros where nothing is stored."""
    count, _, groups, _ = indices.shape
    if width == 32:
        # One of two numbers, each of which counts as two halves.
        places, held = indices[..., :1] >> 1, stored.reshape(count, _ROWS, groups, 1, 1)
    else:
        places, held = indices, stored.reshape(count, _ROWS, groups, 2, -1)
    slots = 2 if width == 32 else 4
    whole = np.zeros((count, _ROWS, groups, slots, held.shape[-1]), stored.dtype)
    np.put_along_axis(whole, places[..., None], held, axis=3)
    return whole.reshape(count, _ROWS, depth)


def _check_order(cohort: Cohort, indices: Array) -> None:
    if (indices[..., 0] < indices[..., 1]).all():
        return
    cohort.launch.finding(
        ("metadata", cohort.pc),
        Diagnostic(
            "HLO0786",
            "mma.sp::ordered_metadata: the two indices of a group do not ascend",
            place_at(cohort),
            help="order them, or use mma.sp",
        ),
    )
