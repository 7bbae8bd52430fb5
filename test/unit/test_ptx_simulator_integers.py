"""Integer instructions of the PTX simulator against Python's integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ptx_kernels import apply

COUNT = 192
RANDOM = np.random.default_rng(0)


def signed(value: int, bits: int) -> int:
    """The low bits as a signed integer."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def numbers(bits: int, below: int | None = None) -> np.ndarray[Any, Any]:
    """Random bits, with the ends of the range and small numbers among them."""
    if below is not None:
        return RANDOM.integers(0, below, COUNT).astype(np.uint32)
    values = RANDOM.integers(0, 2**64 - 1, COUNT, dtype=np.uint64)
    values[:6] = [0, 1, 2**64 - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1, 3]
    values[6:40] &= np.uint64(31)
    return RANDOM.permutation(values).astype(f"u{bits // 8}")


def check(text: str, result: str, function: Callable[..., int], *kinds: str, **below: int) -> None:
    """Compares an instruction with a function of Python integers, for random operands."""
    operands = [
        (kind, numbers(int(kind[1:]), below.get(letter)))
        for kind, letter in zip(kinds, "abce", strict=False)
    ]
    found = apply(text, result, *operands)
    mask = (1 << found.dtype.itemsize * 8) - 1
    for lane, value in enumerate(found.tolist()):
        arguments = [
            signed(int(bits[lane]), int(kind[1:])) if kind[0] == "s" else int(bits[lane])
            for kind, bits in operands
        ]
        assert value == int(function(*arguments)) & mask, (text, arguments)


def quotient(a: int, b: int) -> int:
    """Division towards zero; all ones for a divisor of zero."""
    return -1 if b == 0 else abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)


SAME = {
    "add.{t} %d, %a, %b;": lambda a, b: a + b,
    "sub.{t} %d, %a, %b;": lambda a, b: a - b,
    "mul.lo.{t} %d, %a, %b;": lambda a, b: a * b,
    "div.{t} %d, %a, %b;": quotient,
    "rem.{t} %d, %a, %b;": lambda a, b: a - b * quotient(a, b) if b else a,
    "min.{t} %d, %a, %b;": min,
    "max.{t} %d, %a, %b;": max,
}


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("text", SAME)
def test_two_operands(text: str, kind: str) -> None:
    check(text.format(t=kind), kind, SAME[text], kind, kind)


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32", "u64", "s64"])
def test_products_and_sums(kind: str) -> None:
    bits, wide = int(kind[1:]), f"{kind[0]}{int(kind[1:]) * 2}"
    check(f"mul.hi.{kind} %d, %a, %b;", kind, lambda a, b: a * b >> bits, kind, kind)
    check(f"mad.lo.{kind} %d, %a, %b, %c;", kind, lambda a, b, c: a * b + c, kind, kind, kind)
    check(
        f"mad.hi.{kind} %d, %a, %b, %c;",
        kind,
        lambda a, b, c: (a * b >> bits) + c,
        kind,
        kind,
        kind,
    )
    check(f"sad.{kind} %d, %a, %b, %c;", kind, lambda a, b, c: c + abs(a - b), kind, kind, kind)
    if bits < 64:
        check(f"mul.wide.{kind} %d, %a, %b;", wide, lambda a, b: a * b, kind, kind)
        check(f"mad.wide.{kind} %d, %a, %b, %c;", wide, lambda a, b, c: a * b + c, kind, kind, wide)


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32", "u64", "s64"])
def test_shifts_and_comparisons(kind: str) -> None:
    bits = kind[1:]
    check(f"shr.{kind} %d, %a, %b;", kind, lambda a, b: a >> b, kind, "u32", b=80)
    check(f"shl.b{bits} %d, %a, %b;", kind, lambda a, b: a << b, kind, "u32", b=80)
    for name, function in {
        "eq": lambda a, b: a == b,
        "ne": lambda a, b: a != b,
        "lt": lambda a, b: a < b,
        "ge": lambda a, b: a >= b,
    }.items():
        check(f"setp.{name}.{kind} %p, %a, %b; selp.b32 %d, 1, 0, %p;", "u32", function, kind, kind)


def field(a: int, position: int, length: int, bits: int, *, keeps_sign: bool) -> int:
    """The pseudo-code of `bfe`."""
    a &= (1 << bits) - 1
    fill = a >> min(position + length - 1, bits - 1) & 1 if keeps_sign and length else 0
    return sum(
        ((a >> position + i & 1) if i < length and position + i < bits else fill) << i
        for i in range(bits)
    )


@pytest.mark.parametrize("bits", [32, 64])
def test_bits(bits: int) -> None:
    u, s = f"u{bits}", f"s{bits}"
    check(f"popc.b{bits} %d, %a;", "u32", int.bit_count, u)
    check(f"clz.b{bits} %d, %a;", "u32", lambda a: bits - a.bit_length(), u)
    check(f"brev.b{bits} %d, %a;", u, lambda a: int(f"{a:0{bits}b}"[::-1], 2), u)
    check(f"bfind.{u} %d, %a;", "u32", lambda a: a.bit_length() - 1, u)
    check(
        f"bfind.shiftamt.{s} %d, %a;",
        "u32",
        lambda a: bits - 1 - top if (top := (a if a >= 0 else ~a).bit_length() - 1) >= 0 else -1,
        s,
    )
    for kind in (u, s):
        check(
            f"bfe.{kind} %d, %a, %b, %c;",
            kind,
            lambda a, b, c, kind=kind: field(a, b, c, bits, keeps_sign=kind[0] == "s"),
            *(kind, "u32", "u32"),
            b=70,
            c=80,
        )

    def insert(a: int, b: int, position: int, length: int) -> int:
        for i in range(max(min(length, bits - position), 0)):
            b = b & ~(1 << position + i) | (a >> i & 1) << position + i
        return b

    check(f"bfi.b{bits} %d, %a, %b, %c, %e;", u, insert, u, u, "u32", "u32", c=70, e=80)


def test_words() -> None:
    def table(number: int) -> Callable[[int, int, int], int]:
        return lambda a, b, c: sum(
            (number >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1) & 1) << i
            for i in range(32)
        )

    for number in (0x80, 0xFE, 0x96, 0xE8, 0x1B):
        check(f"lop3.b32 %d, %a, %b, %c, {number};", "u32", table(number), "u32", "u32", "u32")

    def permuted(a: int, b: int, c: int) -> int:
        octets = (b << 32 | a).to_bytes(8, "little")
        result = 0
        for i in range(4):
            selector = c >> 4 * i & 15
            octet = octets[selector & 7]
            result |= ((0xFF if octet & 0x80 else 0) if selector & 8 else octet) << 8 * i
        return result

    check("prmt.b32 %d, %a, %b, %c;", "u32", permuted, "u32", "u32", "u32")
    check(
        "shf.l.wrap.b32 %d, %a, %b, %c;",
        "u32",
        lambda a, b, c: (b << 32 | a) << (c & 31) >> 32,
        "u32",
        "u32",
        "u32",
    )
    check(
        "shf.r.clamp.b32 %d, %a, %b, %c;",
        "u32",
        lambda a, b, c: (b << 32 | a) >> min(c, 32),
        "u32",
        "u32",
        "u32",
    )
    check(
        "add.cc.u32 %d, %a, %b; addc.u32 %d, %c, 0;",
        "u32",
        lambda a, b, c: c + (a + b >> 32),
        "u32",
        "u32",
        "u32",
    )
    check(
        "sub.cc.u32 %d, %a, %b; subc.u32 %d, %c, 0;",
        "u32",
        lambda a, b, c: c - (a < b),
        "u32",
        "u32",
        "u32",
    )
    check(
        "mad.lo.cc.u32 %d, %a, %b, %c; madc.hi.u32 %d, %a, %b, 0;",
        "u32",
        lambda a, b, c: a * b + c >> 32,
        "u32",
        "u32",
        "u32",
    )
    check(
        "add.sat.s32 %d, %a, %b;",
        "s32",
        lambda a, b: max(min(a + b, 2**31 - 1), -(2**31)),
        "s32",
        "s32",
    )

    def dot(a: int, b: int, c: int) -> int:
        return c + sum(signed(a >> 8 * i, 8) * (b >> 8 * i & 255) for i in range(4))

    check("dp4a.s32.u32 %d, %a, %b, %c;", "u32", dot, "u32", "u32", "u32")


@pytest.mark.parametrize("source", ["u8", "s8", "u16", "s32", "u64", "s64"])
@pytest.mark.parametrize("to", ["u8", "s8", "s16", "u32", "s32", "u64"])
def test_conversions(source: str, to: str) -> None:
    width, bits = int(source[1:]), int(to[1:])
    low, high = (0, 2**bits - 1) if to[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)

    def given(a: int) -> int:
        return signed(a, width) if source[0] == "s" else a & (1 << width) - 1

    def wrapped(a: int) -> int:
        return signed(given(a), bits) if to[0] == "s" else given(a) & (1 << bits) - 1

    register, result = f"u{max(width, 16)}", f"u{max(bits, 16)}"
    check(f"cvt.{to}.{source} %d, %a;", result, wrapped, register)
    check(
        f"cvt.sat.{to}.{source} %d, %a;", result, lambda a: max(low, min(high, given(a))), register
    )


def test_parts_of_registers() -> None:
    def octets(a: int) -> list[int]:
        return [a >> 8 * i & 255 for i in range(4)]

    def halves(a: int) -> list[int]:
        return [signed(a >> 16 * i, 16) for i in range(2)]

    def narrow(a: int) -> int:
        return max(-(2**15), min(2**15 - 1, a)) & 0xFFFF

    check(
        "vadd.s32.u32.s32 %d, %a.b1, %b.h1;",
        "s32",
        lambda a, b: octets(a)[1] + halves(b)[1],
        "u32",
        "u32",
    )
    check(
        "vabsdiff.u32.u32.u32.add %d, %a, %b, %c;",
        "u32",
        lambda a, b, c: abs(a - b) + c,
        "u32",
        "u32",
        "u32",
    )
    check(
        "vmad.s32.s32.u32.shr7 %d, %a.h0, %b.b2, %c;",
        "s32",
        lambda a, b, c: halves(a)[0] * octets(b)[2] + c >> 7,
        "u32",
        "u32",
        "s32",
    )
    check("vset.u32.u32.lt %d, %a, %b;", "u32", lambda a, b: a < b, "u32", "u32")
    check(
        "vabsdiff4.u32.u32.u32.add %d, %a, %b, %c;",
        "u32",
        lambda a, b, c: c + sum(abs(x - y) for x, y in zip(octets(a), octets(b), strict=True)),
        *("u32", "u32", "u32"),
    )
    check(
        "vadd2.s32.s32.s32.sat %d, %a, %b, %c;",
        "u32",
        lambda a, b, _: sum(
            narrow(x + y) << 16 * i
            for i, (x, y) in enumerate(zip(halves(a), halves(b), strict=True))
        ),
        *("u32", "u32", "u32"),
    )


def test_every_opcode_of_the_table_has_a_meaning_or_is_refused() -> None:
    from mlirhlo.dialects.ptx.table import FORMS
    from mlirhlo.simulator.meanings import MEANINGS

    textures = {"istypep", "suld", "suq", "sured", "sust", "tex", "tld4", "txq"}
    stacks = {"alloca", "stackrestore", "stacksave"}
    assert set(FORMS) - set(MEANINGS) == textures | stacks | {"tensormap"}
    assert set(MEANINGS) <= set(FORMS)
