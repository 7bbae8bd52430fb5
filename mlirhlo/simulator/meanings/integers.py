"""Integer arithmetic and logic. Source: PTX ISA, "Integer Arithmetic Instructions", "Logic and Shift"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.simulator.assembler import Assembler, Run
from mlirhlo.simulator.lanes import Array, Lanes
from mlirhlo.simulator.types import DTYPES, is_signed

if TYPE_CHECKING:
    from mlirhlo.simulator.cohort import Cohort

from mlirhlo.simulator.meanings.registry import apply, elementwise, meaning


def wide_type(type_name: str) -> str:
    """The integer type of twice the width."""
    return f"{type_name[0]}{int(type_name[1:]) * 2}"


def saturate_s32(wide: Array) -> Array:
    """`.sat` of `.s32`."""
    return np.clip(wide, -(2**31), 2**31 - 1)


def add_or_subtract(assembler: Assembler) -> Run:
    """`add` and `sub` of integers, with saturation and carry."""
    type_name = assembler.type
    function = np.add if assembler.op.opcode == "add" else np.subtract
    if assembler.has("cc"):
        return _carrying(assembler, type_name, carry_in=False)
    if assembler.has("sat"):
        if type_name != "s32":
            raise assembler.no_meaning()
        return apply(
            assembler,
            type_name,
            lambda a, b: saturate_s32(function(a.astype(np.int64), b.astype(np.int64))),
        )
    if type_name in ("u16x2", "s16x2"):
        return packed(assembler, type_name[:3], function)
    return apply(assembler, type_name, function)


def packed(assembler: Assembler, element: str, function: Any, operands: int | None = None) -> Run:
    """`function` of both halves of registers of 32 bits."""
    count = assembler.count if operands is None else operands
    halves = [elementwise(*_halves(assembler, element, part, count, function)) for part in range(2)]

    def run(cohort: Cohort, lanes: Lanes) -> None:
        for half in halves:
            half(cohort, lanes)

    return run


def _halves(
    assembler: Assembler, element: str, part: int, count: int, function: Any
) -> tuple[Any, ...]:
    slots = [assembler.part(assembler.operands[i], element, part) for i in range(count)]
    return (slots[0], function, *slots[1:])


def _carrying(assembler: Assembler, type_name: str, *, carry_in: bool) -> Run:
    unsigned = "u" + type_name[1:]
    d, a, b = (assembler.source(i, unsigned) for i in range(3))
    flag = assembler.hidden("carry", "pred")
    keeps = assembler.has("cc")
    subtracts = assembler.op.opcode.startswith("sub")
    dtype = DTYPES[unsigned].type

    def run(cohort: Cohort, lanes: Lanes) -> None:
        slots = cohort.slots
        x, y = slots[a][lanes], slots[b][lanes]
        extra = slots[flag][lanes].astype(dtype) if carry_in else dtype(0)
        if subtracts:
            partial = x - y
            result = partial - extra
            carry = (x < y) | (partial < extra)
        else:
            partial = x + y
            result = partial + extra
            carry = (partial < x) | (result < partial)
        if keeps:
            slots[flag][lanes] = carry
        slots[d][lanes] = result

    return run


@meaning("addc", "subc")
def add_with_carry(assembler: Assembler) -> Run:
    """`a + b + carry`."""
    return _carrying(assembler, assembler.type, carry_in=True)


def high_half(a: Array, b: Array) -> Array:
    """The upper half of the product."""
    width = a.dtype.itemsize * 8
    if width <= 32:
        wide = np.dtype(f"{a.dtype.kind}{a.dtype.itemsize * 2}")
        result: Array = (a.astype(wide) * b.astype(wide) >> wide.type(width)).astype(a.dtype)
        return result
    x, y = a.view(np.uint64), b.view(np.uint64)
    mask, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    x0, x1, y0, y1 = x & mask, x >> shift, y & mask, y >> shift
    low = x0 * y0
    middle = x1 * y0 + (low >> shift)
    other = x0 * y1 + (middle & mask)
    high = x1 * y1 + (middle >> shift) + (other >> shift)
    if a.dtype.kind == "i":
        high = high - np.where(a < 0, y, np.uint64(0)) - np.where(b < 0, x, np.uint64(0))
    final: Array = high.view(a.dtype)
    return final


def multiply(assembler: Assembler) -> Run:
    """`mul.lo`, `.hi`, `.wide` of integers."""
    type_name = assembler.type
    if assembler.has("wide"):
        wide = wide_type(type_name)
        dtype = DTYPES[wide]
        a, b = (assembler.source(i, type_name) for i in (1, 2))
        return elementwise(
            assembler.dest(0, wide), lambda x, y: x.astype(dtype) * y.astype(dtype), a, b
        )
    return apply(assembler, type_name, high_half if assembler.has("hi") else np.multiply)


@meaning("mul24", "mad24")
def multiply_24(assembler: Assembler) -> Run:
    """Products of 24-bit integers: bits 0 to 31 or 16 to 47."""
    shift = 16 if assembler.has("hi") else 0
    signed = is_signed(assembler.type)

    def part(value: Array) -> Array:
        if signed:
            return value.astype(np.int64) << 40 >> 40
        return value.astype(np.int64) & 0xFFFFFF

    saturates = assembler.has("sat")

    def function(a: Array, b: Array, c: Array | None = None) -> Array:
        product = part(a) * part(b) >> shift
        product = product.astype(np.int32).astype(np.int64) if signed else product & 0xFFFFFFFF
        if c is not None:
            product = product + c
        return saturate_s32(product) if saturates else product.astype(a.dtype)

    return apply(assembler, assembler.type, function)


def multiply_add(assembler: Assembler) -> Run:
    """`mad.lo`, `.hi`, `.wide` of integers."""
    type_name = assembler.type
    if assembler.has("cc"):
        return _multiply_carrying(assembler, carry_in=False)
    if assembler.has("wide"):
        wide = wide_type(type_name)
        dtype = DTYPES[wide]
        a, b = (assembler.source(i, type_name) for i in (1, 2))
        return elementwise(
            assembler.dest(0, wide),
            lambda x, y, z: x.astype(dtype) * y.astype(dtype) + z,
            a,
            b,
            assembler.source(3, wide),
        )
    if assembler.has("hi"):
        if assembler.has("sat"):
            return apply(
                assembler,
                type_name,
                lambda a, b, c: saturate_s32(high_half(a, b).astype(np.int64) + c),
            )
        return apply(assembler, type_name, lambda a, b, c: high_half(a, b) + c)
    return apply(assembler, type_name, lambda a, b, c: a * b + c)


@meaning("madc")
def multiply_add_with_carry(assembler: Assembler) -> Run:
    """`a * b + c + carry`."""
    return _multiply_carrying(assembler, carry_in=True)


def _multiply_carrying(assembler: Assembler, *, carry_in: bool) -> Run:
    type_name = assembler.type
    unsigned = "u" + type_name[1:]
    d, c = assembler.dest(0, unsigned), assembler.source(3, unsigned)
    a, b = (assembler.source(i, type_name) for i in (1, 2))
    flag = assembler.hidden("carry", "pred")
    keeps, high = assembler.has("cc"), assembler.has("hi")
    dtype = DTYPES[unsigned].type

    def run(cohort: Cohort, lanes: Lanes) -> None:
        slots = cohort.slots
        x, y = slots[a][lanes], slots[b][lanes]
        product = (high_half(x, y) if high else x * y).view(dtype)
        partial = product + slots[c][lanes]
        result = partial + (slots[flag][lanes].astype(dtype) if carry_in else dtype(0))
        if keeps:
            slots[flag][lanes] = (partial < product) | (result < partial)
        slots[d][lanes] = result

    return run


@meaning("sad")
def sum_of_absolute_difference(assembler: Assembler) -> Run:
    """`c + |a - b|`."""
    return apply(
        assembler, assembler.type, lambda a, b, c: c + np.where(a > b, a - b, b - a).astype(a.dtype)
    )


def quotient(a: Array, b: Array) -> Array:
    """Division towards zero; all ones where the divisor is zero, as the hardware does."""
    if a.dtype.kind == "u":
        return np.where(b == 0, np.array(-1).astype(a.dtype), a // np.maximum(b, 1))
    unsigned = np.dtype(f"u{a.dtype.itemsize}")
    x, y = np.abs(a).view(unsigned), np.abs(b).view(unsigned)
    size = (x // np.maximum(y, 1)).view(a.dtype)
    return np.where(b == 0, np.array(-1, a.dtype), np.where((a < 0) != (b < 0), -size, size))


def remainder(a: Array, b: Array) -> Array:
    """`a - b * (a / b)`; `a` where the divisor is zero."""
    return np.where(b == 0, a, a - quotient(a, b) * b)


@meaning("rem")
def remainder_meaning(assembler: Assembler) -> Run:
    """`a % b` with the sign of `a`."""
    return apply(assembler, assembler.type, remainder)


LOGIC = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
}


@meaning("and", "or", "xor", "not")
def logic(assembler: Assembler) -> Run:
    """Bitwise logic; of predicates too."""
    return apply(assembler, assembler.type, LOGIC[assembler.op.opcode])


@meaning("cnot")
def c_not(assembler: Assembler) -> Run:
    """`a == 0`."""
    return apply(assembler, assembler.type, lambda a: a == 0)


def shift_left(a: Array, b: Array) -> Array:
    """`a << b`; 0 for shifts beyond the width."""
    width = a.dtype.itemsize * 8
    result = np.left_shift(a, np.minimum(b, width - 1).astype(a.dtype))
    final: Array = np.where(b >= width, a.dtype.type(0), result)
    return final


def shift_right(a: Array, b: Array) -> Array:
    """`a >> b`; shifts beyond the width leave the sign."""
    width = a.dtype.itemsize * 8
    result = np.right_shift(a, np.minimum(b, width - 1).astype(a.dtype))
    final: Array = result if a.dtype.kind == "i" else np.where(b >= width, a.dtype.type(0), result)
    return final


@meaning("shl", "shr")
def shift(assembler: Assembler) -> Run:
    """Shifts by an amount of 32 bits, clamped."""
    type_name = assembler.type
    function = shift_left if assembler.op.opcode == "shl" else shift_right
    a, b = assembler.source(1, type_name), assembler.source(2, "u32")
    return elementwise(assembler.dest(0, type_name), function, a, b)


@meaning("shf")
def funnel_shift(assembler: Assembler) -> Run:
    """A shift of two registers as one of 64 bits, of which one half is kept."""
    left, wraps = assembler.has("l"), assembler.has("wrap")

    def function(low: Array, high: Array, amount: Array) -> Array:
        both = (high.astype(np.uint64) << np.uint64(32)) | low
        count = (amount & np.uint32(31) if wraps else np.minimum(amount, 32)).astype(np.uint64)
        if left:
            return (both << count >> np.uint64(32)).astype(np.uint32)
        return (both >> count).astype(np.uint32)

    return apply(assembler, "u32", function)


@meaning("abs")
def absolute(assembler: Assembler) -> Run:
    """`|a|`."""
    from mlirhlo.simulator.meanings import floats

    if is_signed(assembler.type):
        return apply(assembler, assembler.type, np.abs)
    return floats.absolute(assembler)


@meaning("neg")
def negate(assembler: Assembler) -> Run:
    """`-a`."""
    from mlirhlo.simulator.meanings import floats

    if is_signed(assembler.type):
        return apply(assembler, assembler.type, np.negative)
    return floats.negate(assembler)


def minimum_or_maximum(assembler: Assembler) -> Run:
    """`min` and `max` of integers."""
    function = np.minimum if assembler.op.opcode == "min" else np.maximum
    type_name = assembler.type
    relu = assembler.has("relu")

    def relu_of(a: Array, b: Array) -> Array:
        return np.maximum(function(a, b), 0)

    if type_name in ("u16x2", "s16x2"):
        return packed(assembler, type_name[:3], relu_of if relu else function)
    return apply(assembler, type_name, relu_of if relu else function)
