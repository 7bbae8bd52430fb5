"""Bit fields, counts and permutations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mlirhlo.dialects.ptx import Immediate
from mlirhlo.simulator.assembler import Assembler, Run
from mlirhlo.simulator.lanes import Array, Lanes
from mlirhlo.simulator.meanings.registry import apply, elementwise, meaning
from mlirhlo.simulator.types import DTYPES, is_signed

if TYPE_CHECKING:
    from mlirhlo.simulator.cohort import Cohort


@meaning("popc")
def population_count(assembler: Assembler) -> Run:
    """Bits that are set."""
    return elementwise(
        assembler.dest(0, "u32"), np.bitwise_count, assembler.source(1, "u" + assembler.type[1:])
    )


def highest_bit(a: Array) -> Array:
    """Position of the highest set bit of unsigned integers; -1 if there is none."""
    value, position = a.astype(np.uint64), np.zeros(len(a), np.int32)
    for step in (32, 16, 8, 4, 2, 1):
        large = value >> np.uint64(step) != 0
        position += np.where(large, step, 0).astype(np.int32)
        value = np.where(large, value >> np.uint64(step), value)
    return np.where(a == 0, np.int32(-1), position)


@meaning("clz")
def leading_zeros(assembler: Assembler) -> Run:
    """Zeros above the highest set bit."""
    width = int(assembler.type[1:])
    return elementwise(
        assembler.dest(0, "s32"),
        lambda a: width - 1 - highest_bit(a),
        assembler.source(1, f"u{width}"),
    )


@meaning("bfind")
def find_bit(assembler: Assembler) -> Run:
    """Position of the highest bit that is not the sign, or the shift that would bring it to the top."""
    type_name = assembler.type
    width, signed, shifts = int(type_name[1:]), is_signed(type_name), assembler.has("shiftamt")

    def function(a: Array) -> Array:
        value = np.where(a < 0, ~a, a) if signed else a
        position = highest_bit(value.view(f"u{width // 8}"))
        if shifts:
            return np.where(position < 0, np.int32(-1), width - 1 - position)
        return position

    return elementwise(assembler.dest(0, "s32"), function, assembler.source(1, type_name))


@meaning("fns")
def find_nth_set(assembler: Assembler) -> Run:
    """Position of the n-th set bit from a base; -1 (all ones) if there is none."""
    sources = (assembler.source(1, "u32"), assembler.source(2, "u32"), assembler.source(3, "s32"))

    def function(mask: Array, base: Array, offset: Array) -> Array:
        bits = (mask[:, None] >> np.arange(32, dtype=np.uint32)) & 1
        position = np.arange(32)
        result = np.full(len(mask), -1, np.int32)
        for lane in range(len(mask)):
            start, count = int(base[lane]), int(offset[lane])
            inside = position >= start if count >= 0 else position <= start
            found = np.flatnonzero(bits[lane].astype(bool) & inside)
            found = found if count >= 0 else found[::-1]
            if count == 0:
                result[lane] = start if start < 32 and bits[lane, start] else -1
            elif len(found) >= abs(count):
                result[lane] = found[abs(count) - 1]
        return result

    return elementwise(assembler.dest(0, "s32"), function, *sources)


@meaning("brev")
def reverse(assembler: Assembler) -> Run:
    """Bits in reverse order."""
    width = int(assembler.type[1:])

    def function(a: Array) -> Array:
        octets = np.ascontiguousarray(a).view(np.uint8).reshape(-1, width // 8)
        bits = np.unpackbits(octets, axis=1, bitorder="little")[:, ::-1]
        return np.packbits(bits, axis=1, bitorder="little").view(f"u{width // 8}")[:, 0]

    return apply(assembler, f"u{width}", function)


def _mask(count: Array, dtype: np.dtype[np.unsignedinteger]) -> Array:
    width = dtype.itemsize * 8
    ones = (dtype.type(1) << np.minimum(count, width - 1).astype(dtype)) - dtype.type(1)
    return np.where(count >= width, np.array(-1).astype(dtype), ones)


@meaning("bfe")
def extract_field(assembler: Assembler) -> Run:
    """A field of `len` bits from `pos`, extended by zeros or by its sign."""
    type_name = assembler.type
    width, signed = int(type_name[1:]), is_signed(type_name)
    unsigned = DTYPES[f"u{width}"]

    def function(a: Array, pos: Array, length: Array) -> Array:
        pos, length = pos & np.uint32(0xFF), length & np.uint32(0xFF)
        shifted = np.where(
            pos >= width, unsigned.type(0), a >> np.minimum(pos, width - 1).astype(unsigned)
        )
        mask = _mask(length, unsigned)
        field = shifted & mask
        if signed:
            top = np.minimum(pos.astype(np.int64) + length - 1, width - 1)
            sign = (a >> np.maximum(top, 0).astype(unsigned)) & unsigned.type(1)
            negative = (length != 0) & (sign != 0)
            beyond = _mask(
                np.maximum(np.minimum(length, width - np.minimum(pos, width)), 0), unsigned
            )
            field = np.where(negative, (field & beyond) | ~beyond, field & beyond)
        result: Array = field
        return result

    sources = (
        assembler.source(1, f"u{width}"),
        assembler.source(2, "u32"),
        assembler.source(3, "u32"),
    )
    return elementwise(assembler.dest(0, f"u{width}"), function, *sources)


@meaning("bfi")
def insert_field(assembler: Assembler) -> Run:
    """The low `len` bits of a put into b at `pos`."""
    width = int(assembler.type[1:])
    unsigned = DTYPES[f"u{width}"]

    def function(a: Array, b: Array, pos: Array, length: Array) -> Array:
        pos, length = pos & np.uint32(0xFF), length & np.uint32(0xFF)
        shift = np.minimum(pos, width - 1).astype(unsigned)
        mask = np.where(pos >= width, unsigned.type(0), _mask(length, unsigned) << shift)
        result: Array = (b & ~mask) | (a << shift & mask)
        return result

    sources = (
        *(assembler.source(i, f"u{width}") for i in (1, 2)),
        *(assembler.source(i, "u32") for i in (3, 4)),
    )
    return elementwise(assembler.dest(0, f"u{width}"), function, *sources)


@meaning("bmsk")
def bit_mask(assembler: Assembler) -> Run:
    """`width` ones from position `pos`; both clamped to 32 or taken modulo 32."""
    clamps = assembler.has("clamp")

    def function(pos: Array, width: Array) -> Array:
        if not clamps:
            pos, width = pos & np.uint32(31), width & np.uint32(31)
        ones = _mask(width, np.dtype(np.uint32)).astype(np.uint64)
        return np.where(pos >= 32, 0, ones << np.minimum(pos, 32).astype(np.uint64)).astype(
            np.uint32
        )

    return apply(assembler, "u32", function)


@meaning("szext")
def extend(assembler: Assembler) -> Run:
    """The low bits of a, extended by their sign or by zeros."""
    signed, clamps = is_signed(assembler.type), assembler.has("clamp")

    def function(a: Array, count: Array) -> Array:
        count = np.minimum(count, 32) if clamps else count & np.uint32(31)
        mask = _mask(count, np.dtype(np.uint32))
        if not signed:
            return a & mask
        top = (a >> np.maximum(count.astype(np.int64) - 1, 0).astype(np.uint32)) & np.uint32(1)
        return np.where((count > 0) & (top != 0), a | ~mask, a & mask)

    return apply(assembler, "u32", function)


@meaning("lop3")
def three_way_logic(assembler: Assembler) -> Run:
    """Any function of three bits, by its table of eight."""
    operands = assembler.operands
    table_at = 4
    immediate = operands[table_at]
    if not isinstance(immediate, Immediate):
        raise assembler.wrong("the table has to be a constant")
    table = immediate.value & 0xFF

    def function(a: Array, b: Array, c: Array) -> Array:
        result = np.zeros_like(a)
        for minterm in range(8):
            if table >> minterm & 1:
                result |= (
                    (a if minterm & 4 else ~a)
                    & (b if minterm & 2 else ~b)
                    & (c if minterm & 1 else ~c)
                )
        return result

    sources = [assembler.source(i, "b32") for i in (1, 2, 3)]
    combine = assembler.one_of("or", "and")
    if not combine:
        return elementwise(assembler.dest(0, "b32"), function, *sources)
    d, p = (
        assembler.value(one, kind)
        for one, kind in zip(assembler.parts(0), ("b32", "pred"), strict=True)
    )
    q, negated = assembler.condition(5)

    def run(cohort: Cohort, lanes: Lanes) -> None:
        slots = cohort.slots
        result = function(*(slots[one][lanes] for one in sources))
        other = slots[q][lanes] ^ negated
        slots[d][lanes] = result
        slots[p][lanes] = (result != 0) | other if combine == "or" else (result != 0) & other

    return run


@meaning("prmt")
def permute(assembler: Assembler) -> Run:
    """Bytes of two registers picked by four selectors."""
    mode = assembler.one_of("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")

    def selectors(control: Array) -> list[Array]:
        c = control & np.uint32(3)
        match mode:
            case "":
                return [control >> np.uint32(4 * i) & np.uint32(15) for i in range(4)]
            case "f4e":
                return [c + np.uint32(i) for i in range(4)]
            case "b4e":
                return [c - np.uint32(i) & np.uint32(7) for i in range(4)]
            case "rc8":
                return [c] * 4
            case "ecl":
                return [np.maximum(c, np.uint32(i)) for i in range(4)]
            case "ecr":
                return [np.minimum(c, np.uint32(i)) for i in range(4)]
            case _:
                return [(c & np.uint32(1)) * np.uint32(2) + np.uint32(i & 1) for i in range(4)]

    def function(a: Array, b: Array, control: Array) -> Array:
        both = a.astype(np.uint64) | b.astype(np.uint64) << np.uint64(32)
        result = np.zeros(len(a), np.uint64)
        for i, selector in enumerate(selectors(control)):
            octet = both >> (selector & np.uint32(7)).astype(np.uint64) * np.uint64(8) & np.uint64(
                0xFF
            )
            sign = np.where(octet & np.uint64(0x80) != 0, np.uint64(0xFF), np.uint64(0))
            octet = np.where(selector & np.uint32(8) != 0, sign, octet)
            result |= octet << np.uint64(8 * i)
        return result.astype(np.uint32)

    return apply(assembler, "u32", function)


@meaning("dp4a", "dp2a")
def dot_product(assembler: Assembler) -> Run:
    """Products of bytes (or of halves and bytes) added up."""
    type_a, type_b = assembler.types[0], assembler.types[1]
    signed_a, signed_b = is_signed(type_a), is_signed(type_b)
    two, high = assembler.op.opcode == "dp2a", assembler.has("hi")

    def elements(value: Array, signed: bool, width: int) -> Array:
        kind = "i" if signed else "u"
        return (
            np.ascontiguousarray(value)
            .view(f"{kind}{width}")
            .reshape(len(value), -1)
            .astype(np.int64)
        )

    def function(a: Array, b: Array, c: Array) -> Array:
        x = elements(a, signed_a, 2 if two else 1)
        y = elements(b, signed_b, 1)
        if two:
            y = y[:, 2:] if high else y[:, :2]
        result: Array = (c.astype(np.int64) + (x * y).sum(axis=1)).astype(np.uint32)
        return result

    return apply(assembler, "u32", function)
