"""`wmma`: matrices of a warp whose fragments have no documented layout.

Here the elements stand row by row over the lanes and their registers; where a fragment has more registers than
the matrix needs (A and B of `.f16`), the elements are repeated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mlirhlo.simulator import lanes as sets
from mlirhlo.simulator.access import (
    TRANSLATIONS,
    Index,
    addresses,
    check_states,
    mark_written,
    space_of,
)
from mlirhlo.simulator.assembler import Assembler, Run
from mlirhlo.simulator.lanes import WARP, Array, Lanes
from mlirhlo.simulator.meanings.collectives import collective
from mlirhlo.simulator.meanings.halves import to_f16
from mlirhlo.simulator.meanings.matrices.matrix import ELEMENT, SHAPE, elements, unpacked, words_of
from mlirhlo.simulator.meanings.registry import meaning
from mlirhlo.simulator.types import DTYPES

if TYPE_CHECKING:
    from mlirhlo.simulator.cohort import Cohort

SIZES = {"f16": 2, "bf16": 2, "tf32": 4, "f32": 4, "s32": 4, "s8": 1, "u8": 1, "f64": 8}


@meaning("wmma")
def wmma(assembler: Assembler) -> Run:
    """Loads, products and stores."""
    shape = next((match for one in assembler.modifiers if (match := SHAPE.fullmatch(one))), None)
    kinds = [one for one in assembler.modifiers if ELEMENT.fullmatch(one)]
    if shape is None or any(one not in SIZES for one in kinds):
        raise assembler.no_meaning()
    m, n, k = (int(one) for one in shape.groups())
    if assembler.has("mma"):
        return _product(assembler, m, n, k, kinds)
    which = assembler.one_of("a", "b", "c", "d")
    extent = {"a": (m, k), "b": (k, n)}.get(which, (m, n))
    return _transfer(assembler, extent, kinds[0], stores=assembler.has("store"))


def _slots(assembler: Assembler, index: int, type_name: str) -> list[int]:
    return [
        assembler.value(one, "b64" if type_name == "f64" else "b32")
        for one in assembler.parts(index)
    ]


def _transfer(
    assembler: Assembler, extent: tuple[int, int], type_name: str, *, stores: bool
) -> Run:
    slots = _slots(assembler, 1 if stores else 0, type_name)
    address = addresses(assembler, assembler.operands[0 if stores else 1])
    space = space_of(assembler)
    size = SIZES[type_name]
    stride = assembler.source(2, "u32") if assembler.count > 2 else None
    by_columns = assembler.has("col")
    dtype = np.dtype(f"u{size}")
    word = DTYPES["b64" if type_name == "f64" else "b32"]
    rows, columns = np.indices(extent)
    outer, inner = (columns, rows) if by_columns else (rows, columns)
    default = extent[0] if by_columns else extent[1]

    def places(cohort: Cohort, lanes: Lanes) -> tuple[Index, Array]:
        """Positions of all elements of each warp's matrix, and for each the lane that stands for its warp."""
        first = sets.indices(lanes)[::WARP]
        base = address(cohort, first)
        steps = (
            np.full(len(first), default)
            if stride is None
            else cohort.slots[stride][first].astype(np.int64)
        )
        offsets = (outer.reshape(-1) * steps[:, None] + inner.reshape(-1)) * size
        readers = np.repeat(first, offsets.shape[1])
        values = (base[:, None] + offsets).reshape(-1)
        return TRANSLATIONS[space](cohort, readers, values, size), readers

    def load(cohort: Cohort, lanes: Lanes) -> None:
        index, readers = places(cohort, lanes)
        check_states(cohort, readers, index, size, write=False)
        if cohort.races is not None:
            cohort.races.read(index, size, readers)
        matrix = cohort.arena.view(dtype)[index // size].reshape(len(readers) // outer.size, -1)
        words = np.ascontiguousarray(matrix).view(word)
        repeats = WARP * len(slots) // words.shape[1]
        fragments = np.tile(words, (1, repeats)).reshape(-1, len(slots))
        for number, slot in enumerate(slots):
            cohort.slots[slot][lanes] = fragments[:, number]

    def store(cohort: Cohort, lanes: Lanes) -> None:
        index, readers = places(cohort, lanes)
        check_states(cohort, readers, index, size, write=True)
        words = np.ascontiguousarray(words_of(cohort, lanes, slots)).reshape(-1, WARP * len(slots))
        cohort.arena.view(dtype)[index // size] = words.view(dtype)[:, : outer.size].reshape(-1)
        mark_written(cohort, index, size)
        cohort.progressed()
        if cohort.races is not None:
            cohort.races.write(index, size, readers, lambda lost: np.ones(len(lost), np.bool_))

    return collective(assembler, None, store if stores else load)


def _product(assembler: Assembler, m: int, n: int, k: int, kinds: list[str]) -> Run:
    to, type_c = kinds[0], kinds[-1]
    type_a, type_b = (kinds[1], kinds[2]) if len(kinds) == 4 else ("f16", "f16")
    d, a, b, c = (
        _slots(assembler, index, kind) for index, kind in enumerate((to, type_a, type_b, type_c))
    )
    finite = assembler.has("satfinite")

    def matrix(
        cohort: Cohort, lanes: Lanes, slots: list[int], name: str, rows: int, columns: int
    ) -> Array:
        words = np.ascontiguousarray(words_of(cohort, lanes, slots)).reshape(-1, WARP * len(slots))
        if name in ("f32", "s32"):
            values = words.view(DTYPES[name])
        elif name == "f16" and slots is c:
            values = unpacked(words, "f16")
        else:
            values = elements(words, name)
        result: Array = (
            values[:, : rows * columns]
            .reshape(-1, rows, columns)
            .astype(np.int64 if name in ("s8", "u8", "s32") else np.float64)
        )
        return result

    def body(cohort: Cohort, lanes: Lanes) -> None:
        left = matrix(cohort, lanes, a, type_a, m, k)
        right = matrix(cohort, lanes, b, type_b, k, n)
        total = np.matmul(left, right) + matrix(cohort, lanes, c, type_c, m, n)
        flat = total.reshape(len(total), -1)
        if to == "f16":
            packed = np.ascontiguousarray(to_f16(flat)).view(np.uint32)
        elif to == "s32":
            flat = np.clip(flat, -(2**31), 2**31 - 1) if finite else flat
            packed = (flat & 0xFFFFFFFF).astype(np.uint32)
        else:
            packed = (
                flat.astype(np.float32).view(np.uint32) if to == "f32" else flat.view(np.uint64)
            )
        packed = packed.reshape(-1, len(d))
        for number, slot in enumerate(d):
            cohort.slots[slot][lanes] = packed[:, number]

    return collective(assembler, None, body)
