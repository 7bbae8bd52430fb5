"""Bytes divided by a constant: products that are exact for all of them."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest

import mlirhlo
from mlirhlo.lowering import target
from mlirhlo.lowering.builder.byte_quotients import inverse_parts

PROGRAM = """
ENTRY e {{
  x = {type}[256] parameter(0)
  f = f32[256] convert(x)
  c = f32[] constant({divisor})
  b = f32[256] broadcast(c), dimensions={{}}
  ROOT q = f32[256] divide(f, b)
}}
"""
DIVISORS = (
    255.0,
    3.0,
    127.5,
    58.395,
    0.229,
    1e-30,
    1e30,
    -255.0,
    1.0,
    256.0,
    float("nan"),
    float("inf"),
)


def f32(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


@pytest.mark.parametrize("divisor", DIVISORS)
@pytest.mark.parametrize("type_", ["u8", "s8"])
def test_quotients_are_those_of_the_interpreter(type_: str, divisor: float) -> None:
    module = mlirhlo.parse(PROGRAM.format(type=type_, divisor=divisor))
    x = np.arange(256).astype(np.uint8).view(np.uint8 if type_ == "u8" else np.int8)
    found, expected = mlirhlo.compile(module, cached=False)(x), module(x)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def test_parts_are_right_or_none() -> None:
    """In exact arithmetic: sums of two products of 32 and 24 bits fit an f64 after one of them is rounded."""
    draw = random.Random(7)
    x = np.arange(256, dtype=np.float32)
    passed = 0
    for _ in range(300):
        divisor = f32(draw.uniform(1, 2) * 2.0 ** draw.randrange(-50, 50))
        parts = inverse_parts(divisor)
        if parts is None:
            continue
        passed += 1
        high, low = map(np.float32, parts)
        assert float(high) == parts[0]
        assert float(low) == parts[1]
        total = x.astype(np.longdouble) * np.longdouble(high) + (x * low).astype(np.longdouble)
        np.testing.assert_array_equal(total.astype(np.float32), x / np.float32(divisor))
    assert passed > 200


@pytest.mark.parametrize("divisor", [0.0, -3.0, 2.0**-100, 2.0**100, float("nan"), float("inf")])
def test_divisors_without_parts(divisor: float) -> None:
    assert inverse_parts(divisor) is None


@pytest.mark.parametrize(
    ("type_", "divides"), [("u8", False), ("s8", False), ("u16", True), ("f16", True)]
)
def test_bytes_alone_are_multiplied(type_: str, divides: bool) -> None:
    from mlirhlo.lowering.cpu.compiler import lower

    module = mlirhlo.parse(PROGRAM.format(type=type_, divisor=255))
    with target.using(target.AVX512):
        assert ("fdiv" in lower(module.op).text) == divides
    with target.using(target.GENERIC):  # no instruction multiplies and adds
        assert "fdiv" in lower(module.op).text
