"""Matrices of a warp: `ldmatrix`, `stmatrix`, `movmatrix`, `mma`.

Fragments of all shapes follow one rule. With g = lane / 4 and t = lane % 4, register i of A holds the word
t + 4 * (i / 2) of row g + 8 * (i % 2) (or t + 4 * i of row g, when there are eight rows), register i of B the
word t + 4 * i of column g, and element i of C column 2 * t + i % 2 of row g + 8 * (i / 2); a word is 32 bits
along k, or one double. Source: PTX ISA, "Matrix multiply-accumulate operation using mma instruction".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mlirhlo.simulator import lanes as sets
from mlirhlo.simulator.access import check_states, located, mark_written, space_of
from mlirhlo.simulator.assembler import Assembler, Run
from mlirhlo.simulator.formats import decode
from mlirhlo.simulator.lanes import WARP, Array, Lanes
from mlirhlo.simulator.meanings.collectives import collective
from mlirhlo.simulator.meanings.halves import to_f16
from mlirhlo.simulator.meanings.registry import meaning

if TYPE_CHECKING:
    from mlirhlo.simulator.cohort import Cohort

LANE = np.arange(WARP)
GROUP, MEMBER = LANE // 4, LANE % 4

BITS = {"f64": 64, "tf32": 32, "f16": 16, "bf16": 16, "s4": 4, "u4": 4, "b1": 1}
SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
ELEMENT = re.compile(r"[fsub]\d+|tf32|bf16|e[2345]m[123]")


def words_of(cohort: Cohort, lanes: Lanes, slots: Sequence[int]) -> Array:
    """Registers of whole warps, as warps × lanes × registers."""
    return np.stack([cohort.slots[one][lanes] for one in slots], axis=1).reshape(
        -1, WARP, len(slots)
    )


def elements(words: Array, name: str) -> Array:
    """The values in the words of a last axis, as doubles or integers; that axis grows."""
    if name == "f64":
        return words.view(np.float64)
    if name == "b32":
        return words
    if name == "tf32":
        return decode(words, "tf32")
    if name in ("s4", "u4"):
        parts = (words[..., None] >> (np.arange(8, dtype=np.uint32) * np.uint32(4))) & np.uint32(15)
        values = parts.astype(np.int64)
        values = np.where(values > 7, values - 16, values) if name == "s4" else values
        result: Array = values.reshape(*words.shape[:-1], -1)
        return result
    if name == "b1":
        return np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=-1, bitorder="little")
    octets = np.ascontiguousarray(words)
    if name in ("f16", "bf16"):
        return decode(octets.view(np.uint16), name)
    if name in ("s8", "u8"):
        return octets.view(np.int8 if name == "s8" else np.uint8).astype(np.int64)
    return decode(octets.view(np.uint8), name)


def gather_a(words: Array, rows: int, name: str) -> Array:
    """A as warps × rows × k."""
    count = words.shape[2]
    tall = rows == 16
    matrix = np.zeros((len(words), rows, 4 * (count // 2 if tall else count)), words.dtype)
    for register in range(count):
        row = GROUP + (8 * (register % 2) if tall else 0)
        matrix[:, row, MEMBER + 4 * (register // 2 if tall else register)] = words[:, :, register]
    return elements(matrix, name)


def gather_b(words: Array, name: str) -> Array:
    """B as warps × columns × k."""
    matrix = np.zeros((len(words), 8, 4 * words.shape[2]), words.dtype)
    for register in range(words.shape[2]):
        matrix[:, GROUP, MEMBER + 4 * register] = words[:, :, register]
    return elements(matrix, name)


def gather_c(values: Array, rows: int) -> Array:
    """C, from warps × lanes × elements."""
    matrix = np.zeros((len(values), rows, 8), values.dtype)
    for index in range(values.shape[2]):
        matrix[:, GROUP + 8 * (index // 2), 2 * MEMBER + index % 2] = values[:, :, index]
    return matrix


def scatter_d(matrix: Array) -> Array:
    """D as warps × lanes × elements."""
    count = matrix.shape[1] // 4
    return np.stack(
        [matrix[:, GROUP + 8 * (i // 2), 2 * MEMBER + i % 2] for i in range(count)], axis=2
    )


ACCUMULATORS = {"f32": "f32", "s32": "s32", "f64": "f64", "f16": "b32"}


@meaning("mma")
def multiply_accumulate(assembler: Assembler) -> Run:
    """D = A B + C; products are exact, their sum is rounded once."""
    if assembler.has("sp", "sp::ordered_metadata"):
        from mlirhlo.simulator.meanings.matrices.sparse import sparse_product

        return sparse_product(assembler)
    shape = next((match for one in assembler.modifiers if (match := SHAPE.fullmatch(one))), None)
    if shape is None or assembler.has("block_scale"):
        raise assembler.no_meaning()
    rows, columns, depth = (int(one) for one in shape.groups())
    kinds = [one for one in assembler.modifiers if ELEMENT.fullmatch(one)]
    to, type_a, type_b, type_c = kinds[-4:] if len(kinds) >= 4 else ("f32", *kinds, "f32")[:4]
    if columns != 8 or ((rows, depth) == (8, 4) and type_a == "f16"):
        raise assembler.no_meaning()
    word = "b64" if type_a == "f64" else "b32"
    d = [assembler.value(one, ACCUMULATORS[to]) for one in assembler.parts(0)]
    a = [assembler.value(one, word) for one in assembler.parts(1)]
    b = [assembler.value(one, word) for one in assembler.parts(2)]
    c = [assembler.value(one, ACCUMULATORS[type_c]) for one in assembler.parts(3)]
    expected = rows * depth * BITS.get(type_a, 8) // (WARP * (64 if type_a == "f64" else 32))
    if len(a) != expected:
        raise assembler.wrong(f"A has {len(a)} registers; {expected} expected")
    product = _product(assembler, type_a)
    finite = assembler.has("satfinite")

    def body(cohort: Cohort, lanes: Lanes) -> None:
        left = gather_a(words_of(cohort, lanes, a), rows, type_a)
        right = gather_b(words_of(cohort, lanes, b), type_b)
        add = gather_c(unpacked(words_of(cohort, lanes, c), type_c), rows)
        total = product(left, right) + add
        write_elements(cohort, lanes, d, scatter_d(total), to, saturates=finite)

    return collective(assembler, None, body)


def _product(assembler: Assembler, type_a: str) -> Callable[[Array, Array], Array]:
    if type_a == "b1":
        combine = np.bitwise_and if assembler.has("and") else np.bitwise_xor
        return lambda a, b: combine(a[:, :, None, :], b[:, None, :, :]).sum(axis=3, dtype=np.int64)
    return lambda a, b: np.matmul(a, b.transpose(0, 2, 1))


def unpacked(values: Array, type_name: str) -> Array:
    """Accumulators as doubles or integers; halves stand in pairs."""
    if type_name == "f16":
        return np.ascontiguousarray(values).view(np.float16).astype(np.float64)
    return values.astype(np.int64 if type_name == "s32" else np.float64)


def write_elements(
    cohort: Cohort,
    lanes: Lanes,
    slots: Sequence[int],
    values: Array,
    type_name: str,
    *,
    saturates: bool,
) -> None:
    """Writes accumulators, given as warps × lanes × elements."""
    values = values.reshape(-1, values.shape[2])
    if type_name == "f16":
        packed = np.ascontiguousarray(to_f16(values)).view(np.uint32)
    elif type_name == "s32":
        packed = (
            np.clip(values, -(2**31), 2**31 - 1)
            if saturates
            else values.astype(np.uint64).astype(np.uint32).view(np.int32)
        )
    else:
        packed = values.astype(np.float32) if type_name == "f32" else values
    for number, slot in enumerate(slots):
        cohort.slots[slot][lanes] = packed[:, number]


@meaning("ldmatrix")
def load_matrix(assembler: Assembler) -> Run:
    """Loads one, two or four matrices of 8 × 8 halves; lane 8 j + r names row r of matrix j."""
    if not assembler.has("m8n8") or assembler.type != "b16":
        raise assembler.no_meaning()
    slots = [assembler.value(one, "b32") for one in assembler.parts(0)]
    locate = located(assembler, assembler.operands[1], space_of(assembler), 16)
    transposes, count = assembler.has("trans"), len(slots)

    def body(cohort: Cohort, lanes: Lanes) -> None:
        numbers = sets.indices(lanes)
        naming = numbers[numbers % WARP < 8 * count]
        index = locate(cohort, naming)
        check_states(cohort, naming, index, 16, write=False)
        if cohort.figures is not None:
            cohort.figures.count_shared(index, 16, naming, write=False)
        if cohort.races is not None:
            cohort.races.read(index, 16, naming)
        rows = cohort.arena.view(np.dtype(np.uint16), 8)[index // 16].reshape(-1, count, 8, 8)
        for number, slot in enumerate(slots):
            cohort.slots[slot][lanes] = _words(rows[:, number], transposes=transposes)

    return collective(assembler, None, body)


def _words(matrix: Array, *, transposes: bool) -> Array:
    """The register of each lane, of matrices of 8 × 8 halves."""
    if transposes:
        matrix = matrix.transpose(0, 2, 1)
    low = matrix[:, GROUP, 2 * MEMBER].astype(np.uint32)
    high = matrix[:, GROUP, 2 * MEMBER + 1].astype(np.uint32)
    return (low | high << np.uint32(16)).reshape(-1)


def _matrix(words: Array, *, transposes: bool) -> Array:
    """The opposite of `_words`."""
    words = words.reshape(-1, WARP)
    matrix = np.zeros((len(words), 8, 8), np.uint16)
    matrix[:, GROUP, 2 * MEMBER] = words & np.uint32(0xFFFF)
    matrix[:, GROUP, 2 * MEMBER + 1] = words >> np.uint32(16)
    return matrix.transpose(0, 2, 1) if transposes else matrix


@meaning("stmatrix")
def store_matrix(assembler: Assembler) -> Run:
    """Stores matrices as `ldmatrix` loads them."""
    if not assembler.has("m8n8") or assembler.type != "b16":
        raise assembler.no_meaning()
    slots = [assembler.value(one, "b32") for one in assembler.parts(1)]
    locate = located(assembler, assembler.operands[0], space_of(assembler), 16)
    transposes, count = assembler.has("trans"), len(slots)

    def body(cohort: Cohort, lanes: Lanes) -> None:
        numbers = sets.indices(lanes)
        naming = numbers[numbers % WARP < 8 * count]
        index = locate(cohort, naming)
        check_states(cohort, naming, index, 16, write=True)
        rows = np.stack(
            [_matrix(cohort.slots[one][lanes], transposes=transposes) for one in slots], axis=1
        )
        cohort.arena.view(np.dtype(np.uint16), 8)[index // 16] = rows.reshape(-1, 8)
        mark_written(cohort, index, 16)
        cohort.progressed()
        if cohort.figures is not None:
            cohort.figures.count_shared(index, 16, naming, write=True)
        if cohort.races is not None:
            cohort.races.write(index, 16, naming, lambda lost: np.ones(len(lost), np.bool_))

    return collective(assembler, None, body)


@meaning("movmatrix")
def transpose_matrix(assembler: Assembler) -> Run:
    """Transposes a matrix of 8 × 8 halves across the registers of a warp."""
    d, a = assembler.dest(0, "b32"), assembler.source(1, "b32")

    def body(cohort: Cohort, lanes: Lanes) -> None:
        matrix = _matrix(cohort.slots[a][lanes], transposes=True)
        cohort.slots[d][lanes] = _words(matrix, transposes=False)

    return collective(assembler, None, body)
