"""Quantized programs, converted and run: values against the specification's formulas in numpy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from mlirhlo.diagnostics import HloError
from mlirhlo.formats.stablehlo import parse_module, print_module
from mlirhlo.interp.engine import Interpreter
from mlirhlo.rewrites.stablehlo_quant_to_math import legalize_quantized
from mlirhlo.rewrites.stablehlo_to_hlo import convert_to_hlo

Array = Any


@dataclass(frozen=True)
class Kind:
    """A quantized element type, and numpy's idea of it."""

    text: str
    dtype: str
    low: int
    high: int
    scales: Sequence[float]
    zeros: Sequence[int]
    axis: int | None = None

    def shaped(self, values: Sequence[float], rank: int) -> Array:
        shape = [1] * rank
        if self.axis is not None:
            shape[self.axis] = len(values)
        return np.array(values, np.float64).reshape(shape)

    def quantize(self, x: Array) -> Array:
        x = np.asarray(x, np.float64)
        moved = x / self.shaped(self.scales, x.ndim) + self.shaped(self.zeros, x.ndim)
        return np.round(np.clip(moved, self.low, self.high)).astype(self.dtype)

    def dequantize(self, q: Array) -> Array:
        return (q - self.shaped(self.zeros, q.ndim)) * self.shaped(self.scales, q.ndim)


def kind(
    storage: str,
    *pairs: tuple[float, int],
    axis: int | None = None,
    span: str = "",
    to: str = "f32",
) -> Kind:
    signed = not storage.startswith("u")
    bits = int(storage[1:])
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    if span:
        low, high = map(int, span.split(":"))
    spelled = ", ".join(f"{s!r}:{z}" for s, z in pairs)
    where = "" if axis is None else f":{axis}"
    body = f"{{{spelled}}}" if axis is not None else spelled
    limits = f"<{span}>" if span else ""
    text = f"!quant.uniform<{storage}{limits}:{to}{where}, {body}>"
    dtype = f"{'int' if signed else 'uint'}{bits}"
    return Kind(text, dtype, low, high, [s for s, _ in pairs], [z for _, z in pairs], axis)


# Scales are powers of two where results have to be exact in f32.
HALF = kind("i8", (0.5, 3))
EIGHTH = kind("i8", (0.125, -9))
BYTE = kind("u8", (0.25, 100))
SHORT = kind("i16", (0.0625, 40))
NARROW = kind("i8", (0.5, 0), span="-16:15")
WIDE = kind("i32", (0.25, 7))
ROWS = kind("i8", (0.5, 3), (0.25, -4), (2.0, 0), axis=1)
ALL = (HALF, EIGHTH, BYTE, SHORT, NARROW, WIDE, ROWS)


def program(given: Sequence[str], result: str, body: str) -> str:
    arguments = ", ".join(f"%a{i}: {t}" for i, t in enumerate(given))
    return f"func.func @main({arguments}) -> {result} {{\n{body}\nreturn %r : {result}\n}}"


def run(text: str, *arguments: Array) -> Array:
    found = Interpreter(convert_to_hlo(parse_module(text))).run(arguments)
    return np.asarray(found)


def one(op: str, given: Sequence[str], result: str, attributes: str = "") -> str:
    names = ", ".join(f"%a{i}" for i in range(len(given)))
    body = f"%r = stablehlo.{op} {names}{attributes} : ({', '.join(given)}) -> {result}"
    return program(given, result, body)


def stored(kind: Kind, shape: Sequence[int], seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    return rng.integers(max(kind.low, -500), min(kind.high, 500), shape).astype(kind.dtype)


@pytest.mark.parametrize("kind", ALL, ids=lambda k: k.text)
def test_quantize(kind: Kind) -> None:
    x = np.array([[0.0, -0.125, 0.375], [1.25, 1e9, -1e9], [7.75, -3.3, 0.25]], np.float32)
    if kind is WIDE:
        x = np.clip(x, -1e6, 1e6)
    text = one("uniform_quantize", ["tensor<3x3xf32>"], f"tensor<3x3x{kind.text}>")
    found = run(text, x)
    np.testing.assert_array_equal(found, kind.quantize(x))
    assert found.dtype == kind.dtype


def test_quantize_rounds_half_to_even() -> None:
    text = one("uniform_quantize", ["tensor<6xf32>"], f"tensor<6x{kind('i8', (1.0, 0)).text}>")
    found = run(text, np.array([0.5, 1.5, 2.5, -0.5, -1.5, 127.5], np.float32))
    assert found.tolist() == [0, 2, 2, 0, -2, 127]


@pytest.mark.parametrize("kind", ALL, ids=lambda k: k.text)
def test_dequantize(kind: Kind) -> None:
    q = stored(kind, (5, 3))
    text = one("uniform_dequantize", [f"tensor<5x3x{kind.text}>"], "tensor<5x3xf32>")
    found = run(text, q)
    np.testing.assert_array_equal(found, kind.dequantize(q).astype(np.float32))
    assert found.dtype == np.float32


@pytest.mark.parametrize("target", ALL, ids=lambda k: k.text)
@pytest.mark.parametrize("source", [HALF, BYTE, ROWS], ids=lambda k: k.text)
def test_requantize(source: Kind, target: Kind) -> None:
    q = stored(source, (5, 3))
    given = [f"tensor<5x3x{source.text}>"]
    found = run(one("uniform_quantize", given, f"tensor<5x3x{target.text}>"), q)
    np.testing.assert_array_equal(found, target.quantize(source.dequantize(q)))


OPS: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
}


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(
    "kinds",
    [(HALF, HALF, HALF), (BYTE, BYTE, BYTE), (EIGHTH, EIGHTH, HALF), (NARROW, NARROW, NARROW)],
    ids=lambda k: k[0].text,
)
def test_binary(op: str, kinds: tuple[Kind, Kind, Kind]) -> None:
    left, right, result = kinds
    a, b = stored(left, (4, 3), 1), stored(right, (4, 3), 2)
    given = [f"tensor<4x3x{left.text}>", f"tensor<4x3x{right.text}>"]
    found = run(one(op, given, f"tensor<4x3x{result.text}>"), a, b)
    if op == "add" and left is not result:  # each operand is rounded to the result's scale
        a, b = result.quantize(left.dequantize(a)), result.quantize(right.dequantize(b))
        left = right = result
    want = result.quantize(OPS[op](left.dequantize(a), right.dequantize(b)))
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("op", ["abs", "negate", "floor", "ceil", "sign"])
def test_unary(op: str) -> None:
    functions = {"abs": np.abs, "negate": np.negative, "floor": np.floor, "ceil": np.ceil}
    q = stored(HALF, (40,))
    text = one(op, [f"tensor<40x{HALF.text}>"], f"tensor<40x{EIGHTH.text}>")
    want = functions.get(op, np.sign)(HALF.dequantize(q))
    np.testing.assert_array_equal(run(text, q), EIGHTH.quantize(want))


def test_compare_looks_at_numbers() -> None:
    a, b = stored(HALF, (50,), 1), stored(BYTE, (50,), 2)
    given = [f"tensor<50x{HALF.text}>", f"tensor<50x{BYTE.text}>"]
    body = f"%r = stablehlo.compare LT, %a0, %a1 : ({', '.join(given)}) -> tensor<50xi1>"
    found = run(program(given, "tensor<50xi1>", body), a, b)
    np.testing.assert_array_equal(found, HALF.dequantize(a) < BYTE.dequantize(b))


@pytest.mark.parametrize("right", [EIGHTH, kind("i8", (0.125, 0), (0.5, 2), axis=1)])
@pytest.mark.parametrize("result", [WIDE, kind("i8", (64.0, -3)), kind("i16", (1.0, 11))])
def test_dot(right: Kind, result: Kind) -> None:
    a, b = stored(HALF, (4, 7), 1), stored(right, (7, 2), 2)
    given = [f"tensor<4x7x{HALF.text}>", f"tensor<7x2x{right.text}>"]
    text = one("dot_general", given, f"tensor<4x2x{result.text}>", ", contracting_dims = [1] x [0]")
    found = run(text, a, b)
    want = result.quantize(HALF.dequantize(a) @ right.dequantize(b))
    np.testing.assert_array_equal(found, want)


def test_dot_of_batches_by_axis() -> None:
    right = kind("i8", (0.125, 0), (0.5, 2), (1.0, 1), axis=2)
    a, b = stored(HALF, (2, 4, 7), 1), stored(right, (2, 7, 3), 2)
    given = [f"tensor<2x4x7x{HALF.text}>", f"tensor<2x7x3x{right.text}>"]
    numbers = ", batching_dims = [0] x [0], contracting_dims = [2] x [1]"
    text = one("dot_general", given, f"tensor<2x4x3x{WIDE.text}>", numbers)
    want = WIDE.quantize(HALF.dequantize(a) @ right.dequantize(b))
    np.testing.assert_array_equal(run(text, a, b), want)


def test_dot_sums_more_than_floats_hold() -> None:
    """Three hundred thousand products of 127 * 127 need more than the 24 bits of an f32."""
    unit = kind("i8", (1.0, 0))
    result = kind("i32", (1.0, 0))
    count = 100_001
    a = np.full((1, count), 127, np.int8)
    a[0, 0] = 126
    given = [f"tensor<1x{count}x{unit.text}>", f"tensor<{count}x1x{unit.text}>"]
    text = one("dot_general", given, f"tensor<1x1x{result.text}>", ", contracting_dims = [1] x [0]")
    assert run(text, a, a.T).tolist() == [[(count - 1) * 127 * 127 + 126 * 126]]


def test_hybrid_dot() -> None:
    x = np.arange(12, dtype=np.float32).reshape(4, 3) / 4
    b = stored(HALF, (3, 2))
    given = ["tensor<4x3xf32>", f"tensor<3x2x{HALF.text}>"]
    text = one("dot_general", given, "tensor<4x2xf32>", ", contracting_dims = [1] x [0]")
    np.testing.assert_array_equal(run(text, x, b), x @ HALF.dequantize(b).astype(np.float32))


def test_convolution_pads_with_the_number_zero() -> None:
    right = kind("i8", (0.5, 1), (0.25, -2), axis=2)
    a, b = stored(HALF, (1, 5, 2), 1), stored(right, (3, 2, 2), 2)
    given = f"(tensor<1x5x2x{HALF.text}>, tensor<3x2x2x{right.text}>) -> tensor<1x5x2x{WIDE.text}>"
    body = (
        "%r = stablehlo.convolution(%a0, %a1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],"
        " window = {pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}"
        f" : {given}"
    )
    types = [f"tensor<1x5x2x{HALF.text}>", f"tensor<3x2x2x{right.text}>"]
    found = run(program(types, f"tensor<1x5x2x{WIDE.text}>", body), a, b)
    x = np.pad(HALF.dequantize(a), ((0, 0), (1, 1), (0, 0)))
    w = right.dequantize(b)
    want = np.stack([np.einsum("bwi,wio->bo", x[:, at : at + 3], w) for at in range(5)], 1)
    np.testing.assert_array_equal(found, WIDE.quantize(want))


def test_reduction_adds_with_the_zero_point() -> None:
    q = np.array([[5, 6, 7], [3, 4, 100]], np.int8)
    scalar = f"tensor<{HALF.text}>"
    body = f"""
      %c = "stablehlo.constant"() {{value = dense<3> : tensor<i8>}} : () -> {scalar}
      %r = "stablehlo.reduce"(%a0, %c) ({{
      ^bb0(%x: {scalar}, %y: {scalar}):
        %s = stablehlo.add %x, %y : {scalar}
        stablehlo.return %s : {scalar}
      }}) {{dimensions = array<i64: 1>}} : (tensor<2x3x{HALF.text}>, {scalar}) -> tensor<2x{HALF.text}>
    """
    found = run(program([f"tensor<2x3x{HALF.text}>"], f"tensor<2x{HALF.text}>", body), q)
    np.testing.assert_array_equal(found, HALF.quantize(HALF.dequantize(q).sum(1)))


def test_blocks() -> None:
    text = "!quant.uniform<i8:f32:{0:2, 1:1}, {{1.0:1, 2.0:2, 4.0:3}, {0.5, 0.25:-1, 8.0:5}}>"
    q = np.arange(12, dtype=np.int8).reshape(4, 3)
    scales = np.repeat(np.array([[1.0, 2, 4], [0.5, 0.25, 8]]), 2, 0)
    zeros = np.repeat(np.array([[1, 2, 3], [0, -1, 5]]), 2, 0)
    found = run(one("uniform_dequantize", [f"tensor<4x3x{text}>"], "tensor<4x3xf32>"), q)
    np.testing.assert_array_equal(found, ((q - zeros) * scales).astype(np.float32))
    back = run(one("uniform_quantize", ["tensor<4x3xf32>"], f"tensor<4x3x{text}>"), found)
    np.testing.assert_array_equal(back, q)


def test_expressed_in_bf16() -> None:
    import ml_dtypes

    target = kind("i8", (0.5, 3), to="bf16")
    x = np.array([1.0, -2.25, 300.0], ml_dtypes.bfloat16)
    text = one("uniform_quantize", ["tensor<3xbf16>"], f"tensor<3x{target.text}>")
    assert run(text, x).tolist() == [5, -2, 127]


@pytest.mark.parametrize(
    "place",
    ["<{value = dense<[3, -1]> : tensor<2xi8>}>", "{value = dense<[3, -1]> : tensor<2xi8>}"],
)
def test_constants_are_what_is_stored(place: str) -> None:
    result = f"tensor<2x{HALF.text}>"
    text = program([], result, f"%r = stablehlo.constant() {place} : () -> {result}")
    assert run(text).tolist() == [3, -1]


def test_signatures_calls_and_loops_are_of_what_is_stored() -> None:
    q = f"tensor<2x{HALF.text}>"
    text = f"""
    func.func private @twice(%x: {q}) -> {q} {{
      %0 = stablehlo.add %x, %x : {q}
      return %0 : {q}
    }}
    func.func @main(%x: {q}, %n: tensor<i32>) -> {q} {{
      %0 = func.call @twice(%x) : ({q}) -> {q}
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %1:2 = stablehlo.while(%i = %zero, %y = %0) : tensor<i32>, {q}
      cond {{
        %c = stablehlo.constant dense<2> : tensor<i32>
        %p = stablehlo.compare LT, %i, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      }} do {{
        %c = stablehlo.constant dense<1> : tensor<i32>
        %j = stablehlo.add %i, %c : tensor<i32>
        %z = stablehlo.negate %y : {q}
        stablehlo.return %j, %z : tensor<i32>, {q}
      }}
      return %1#1 : {q}
    }}
    """
    module = parse_module(text)
    assert legalize_quantized(module)
    assert "quant" not in print_module(module)
    found = run(text, np.array([5, -2], np.int8), np.int32(0))
    assert found.tolist() == [7, -7]


def test_unknown_sizes_are_refused_with_a_code() -> None:
    type_ = f"tensor<?x{HALF.text}>"
    module = parse_module(one("add", [type_, type_], type_))
    with pytest.raises(HloError) as caught:
        legalize_quantized(module)
    assert caught.value.diagnostics[0].code == "HLO0423"


def test_programs_without_quantized_types_stay() -> None:
    module = parse_module(one("add", ["tensor<2xf32>"] * 2, "tensor<2xf32>"))
    before = print_module(module)
    assert not legalize_quantized(module)
    assert print_module(module) == before
