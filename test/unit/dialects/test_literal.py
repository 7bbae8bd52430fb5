"""Literals: text to values and back, held against XLA's own reader and printer."""

from __future__ import annotations

import random
import re
import struct
from typing import cast

import ml_dtypes
import numpy as np
import oracle
import pytest
from hypothesis import given
from strategies.drawn import examples, several, strategy_of

from mlirhlo.debug.fuzz.generators.choices import Choices
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES, Kind
from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr, read_literal_with_shape
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape, array, parse_shape
from mlirhlo.dialects.hlo.syntax import SyntaxProblem, parse_all

ARRAY_TYPES = [t for t in PRIMITIVE_TYPES.values() if t.is_array]
FLOATS = [t for t in ARRAY_TYPES if t.kind is Kind.FLOAT]


def printed(question: str) -> str:
    """What this package makes of `shape|literal`."""
    shape, _, text = question.partition("|")
    try:
        literal = Literal.from_text(parse_shape(shape), text)
    except SyntaxProblem as problem:
        return f"ERROR {problem.message}"
    return f"{literal.shape}|{literal.to_text()}"


def agree(questions: list[str]) -> None:
    pytest.importorskip("jaxlib")
    for question, theirs in zip(questions, oracle.ask(questions, oracle.constant), strict=True):
        ours = printed(question)
        if theirs.startswith("ERROR"):
            assert ours.startswith("ERROR"), (question, ours, theirs)
            assert ours.removeprefix("ERROR ") in theirs, (question, ours, theirs)
        else:
            assert ours == theirs, question


VALID = """
f32[]|18446744073709551615
f32[]|-0.0
f32[]|3.40282351e38
f32[]|1e-50
f32[]|-.5
f32[]|1.e5
f32[]|nan(0x1234)
f32[]|-nan(0x400000)
f32[]|-nan(0x1)
f32[]|/*c*/1
f16[]|1.0004882821813
f16[]|65519
f16[]|nan(0x3ff)
bf16[]|1.00390625931
bf16[]|3.3961e38
f64[]|1e-400
f64[]|nan(0x8000000000000)
f64[]|nan(0x123456789)
f8e4m3fn[]|inf
f8e4m3fn[]|-inf
f8e4m3fn[]|460
f8e4m3fn[]|1.0625000000009095
f8e5m2[]|nan(0x1)
f8e4m3fnuz[]|nan
f8e4m3fnuz[]|-0.0
f8e8m0fnu[]|1.5
f8e8m0fnu[]|1.4999999999
f4e2m1fn[]|1e10
f4e2m1fn[]|nan
f6e3m2fn[]|1.3
pred[]|2
pred[]|-1
pred[3]|{true,0,5}
pred[2,2]|{{1,0},{0,1}}
s1[]|-1
u1[]|1
s4[3]|{-8,7,0}
u64[]|-1
u64[]|18446744073709551615
s64[]|18446744073709551615
s64[]|-9223372036854775808
c64[]|(1, -2.5)
c64[2]|{(1,2),(3,nan)}
c128[2,1]|{{(1,2)},{(-0.0,inf)}}
f32[2]|{1,,2}
f32[2]|{,1,2,}
s32[2,2]|{{1,2}{3,4},,}
s32[0]|{,,}
f32[2]|{1/*a*/2}
f32[2,0]|{{},{}}
f32[0]|{}
f32[0,2]|{}
f32[1,1,1]|{{{1}}}
s32[2,1,2,2]|{{{{1,2},{3,4}}},{{{5,6},{7,8}}}}
s32[1,2,2,0]|{{{{},{}},{{},{}}}}
s32[2,0,2,3]|{{},{}}
s32[2,2,0]|{{{},{}},{{},{}}}
f32[2,2]{0,1}|{{1,2},{3,4}}
f32[<=4]|{1,2,3,4}
(f32[],s32[2])|(1 {2,3})
((f32[],s32[]),f32[2])|((1,2),{1,2})
()|()
""".strip().splitlines()

INVALID = """
f32[]|1e40
f32[]|x
f32[]|(1,2)
f32[]|1 2
f32[]|{1}
f32[]|.5
f32[]|+1
f32[]|1e
f32[]|{...}
f32[]|nan(0x0)
f32[]|nan(0xffffff)
f32[]|nan(12)
f16[]|nan(0x400)
f16[]|65520
bf16[]|3.397e38
f64[]|1e400
f8e4m3fn[]|465
f8e4m3fn[]|nan(0x1)
f8e8m0fnu[]|0
s8[]|200
s8[]|1.5
s8[]|inf
s1[]|1
u4[]|16
u32[]|-1
u32[]|18446744073709551615
s64[]|-9223372036854775809
u64[]|18446744073709551616
s32[]|nan
pred[]|1.5
c64[]|1
c64[]|(1)
c64[]|(1 2)
c64[]|(1e40,0)
f32[2]|{1}
f32[2]|{1,2,3}
f32[2]|{{1,2}}
f32[2,2]|{1,2}
f32[2,2]|{{1,2},{3}}
f32[2,2]|{{1,2}}
f32[2,2]|{{1,2},{3,4},{5,6}}
f32[2,2]|{{1,2},3}
f32[2,2]|{{...},{1,2}}
f32[2]|{...,1}
f32[2]|{1,2
s32[2]|}
s32[2]|{1,2}}
(f32[],s32[2])|1
""".strip().splitlines()


@pytest.mark.oracle
@pytest.mark.parametrize("questions", [VALID, INVALID], ids=["valid", "invalid"])
def test_agrees_with_xla(questions: list[str]) -> None:
    agree(questions)


@pytest.mark.parametrize(
    ("question", "message"),
    [
        # XLA fills the rest with zeros, aborts, or copies a NaN into the other part.
        ("f32[2]|1", "expects nested array in rank 1, but sees 0"),
        ("f32[]|true", "expect floating point value for primitive type: F32"),
        ("token[]|1", "a constant cannot be a token"),
        ("(f32[],s32[2])|(1)", "expects the 1th element of 2"),
        ("s32[]|,3", "unexpected token type in a literal"),
        ("s32[2]|,{1,2}", "unexpected token type in a literal"),
        ("(s32[],s32[])|(1,,2)", "unexpected token type in a literal"),
        ("c64[]|(1,,2)", "unexpected token type in a literal"),
        ("c64[]|(1" + " " * 60 + "2)", "expect comma after real part of complex literal"),
        ("f32[?]|{1}", "a constant cannot have the unbounded shape"),
        ("f32[999999999999]|{1}", "expects 999999999999 elements in the []th element, but sees 1"),
    ],
)
def test_own_messages(question: str, message: str) -> None:
    assert message in printed(question)


TOKENS = (",", "{", "}", "(", ")", "1", "-1", "0", "1.5", "nan", "inf", "true", "...", "/*c*/")


def damaged(choose: Choices) -> str:
    """A right literal of a small shape, with a few tokens gone, doubled or put in."""
    size, name = choose.integer(0, 2), choose.pick(("s32", "f32", "c64", "pred"))
    scalar = "(1,-1)" if name == "c64" else "1"
    inner = "{" + ",".join([scalar] * 2) + "}"
    shape, text = choose.pick(
        (
            (f"{name}[]", scalar),
            (f"{name}[2]", inner),
            (f"{name}[{size},2]", "{" + ",".join([inner] * size) + "}"),
            (f"({name}[2],s32[])", f"({inner},1)"),
        )
    )
    tokens = re.findall(r"-?[0-9]+|.", text)
    for _ in range(choose.integer(0, 3)):
        at = choose.integer(0, len(tokens))
        tokens[at : at + choose.integer(0, 1)] = [choose.pick(TOKENS)] * choose.integer(0, 2)
    return f"{shape}|{' '.join(tokens)}"


LONE_COMMA = re.compile(r".*[|,]B,B(?:\)B)?".replace("B", r"(?: |/\*c\*/)*"))
"""XLA takes it for the value 0 of a scalar."""


@pytest.mark.oracle
@examples(12)
@given(strategy_of(several(damaged, 60)))
def test_damaged_literals(questions: list[str]) -> None:
    """Both refuse, or both understand the same."""
    for question, theirs in zip(questions, oracle.ask(questions, oracle.constant), strict=True):
        ours = printed(question)
        if theirs.startswith("ERROR"):
            assert ours.startswith("ERROR"), (question, ours, theirs)
        elif theirs == "CRASH":
            pass
        elif "..." in question:  # XLA makes values up
            assert not ours.startswith("ERROR"), (question, ours, theirs)
        elif not LONE_COMMA.fullmatch(question):
            assert ours == theirs, question


def signed_zeros(text: str) -> str:
    """`-0` so that XLA reads what it printed: it takes the integer token for +0."""
    return re.sub(r"-0(?=[,}])", "-0.0", text)


def test_minus_zero_is_read_as_it_was_printed() -> None:
    assert printed("f32[]|-0") == "f32[]|-0"
    assert printed("f32[1]|{-0}") == "f32[1]{0}|{-0}"
    assert printed("s32[]|-0") == "s32[]|0"


def test_nan_parts_stay_apart() -> None:
    assert printed("c64[]|(nan(0x5), 2)") == "c64[]|(nan(0x5), 2)"


@pytest.mark.oracle
@pytest.mark.parametrize("name", [t.name for t in FLOATS])
def test_rounding_agrees_with_xla(name: str) -> None:
    """Halfway points and their neighbours, of which one side is too near for f32."""
    type_ = PRIMITIVE_TYPES[name]
    random_ = random.Random(name)
    if type_.bits <= 16:
        words = np.arange(1 << type_.bits, dtype=np.uint8 if type_.bits <= 8 else np.uint16)
        with np.errstate(invalid="ignore"):
            values = np.unique(words.view(type_.dtype).astype(np.float64))
        values = values[np.isfinite(values)]
        picks = sorted(random_.sample(range(len(values) - 1), min(40, len(values) - 1)))
        middles = [(values[i] + values[i + 1]) / 2 for i in picks]
    else:
        middles = [random_.uniform(-1, 1) * 10.0 ** random_.randint(-40, 37) for _ in range(40)]
    texts = [repr(float(m * (1 + d))) for m in middles for d in (0.0, 2**-40, -(2**-40), 2**-30)]
    agree([f"{name}[]|{text}" for text in texts])


@pytest.mark.oracle
@pytest.mark.parametrize("name", [t.name for t in FLOATS if t.bits <= 16])
def test_every_value_prints_as_in_xla(name: str) -> None:
    type_ = PRIMITIVE_TYPES[name]
    words = np.arange(1 << type_.bits, dtype=np.uint8 if type_.bits <= 8 else np.uint16)
    ours = Literal.from_array(array(name, (len(words),)), words.view(type_.dtype))
    # XLA reads the smallest f8e8m0fnu, 2**-127, as 2**-126 though it prints it right.
    text = signed_zeros(ours.to_text()).replace("{5.9e-39, ", "{1.2e-38, ")
    agree([f"{ours.shape}|{text}"])
    again = Literal.from_text(ours.shape, ours.to_text())
    assert again.to_text() == ours.to_text()


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["f32", "f64", "c64", "c128"])
def test_random_bits_print_as_in_xla(name: str) -> None:
    type_ = PRIMITIVE_TYPES[name]
    data = random.Random(7).randbytes(3000 * type_.byte_size)
    if type_.is_complex:  # XLA copies a NaN real part into the imaginary one
        real = type_.real.dtype
        parts = np.frombuffer(data, real).copy()
        parts[np.isnan(parts)] = 1.5
        data = parts.tobytes()
    ours = Literal(array(name, (3000,)), data)
    agree([f"{ours.shape}|{ours.to_text()}"])
    assert Literal.from_text(ours.shape, ours.to_text()) == ours


@pytest.mark.parametrize("type_", ARRAY_TYPES, ids=str)
def test_vectorised_reading_agrees_with_strict(type_) -> None:
    """A text with a comment between braces goes the strict way, without it the vectorised one."""
    random_ = np.random.default_rng(3)
    if type_.bits < 8:
        words = random_.integers(0, 1 << type_.bits, (6, 4, 5), dtype=np.uint8)
        values = words.view(type_.dtype) if type_.kind is not Kind.PRED else words.astype(bool)
    elif type_.is_float or type_.is_complex:
        values = random_.normal(size=(6, 4, 5)).astype(type_.dtype)
        if type_.name == "f8e8m0fnu":
            values = np.abs(random_.normal(size=(6, 4, 5)) + 9).astype(type_.dtype)
        elif type_.real is type_:
            values[0, 0] = [-0.0, 0.0, 1, 2, np.nan if type_.bits > 8 else 3]
    else:
        limits = ml_dtypes.iinfo(type_.dtype)
        values = random_.integers(
            limits.min, limits.max, (6, 4, 5), dtype=type_.dtype, endpoint=True
        )
    literal = Literal.from_array(array(type_, (6, 4, 5)), values)
    text = literal.to_text()
    assert Literal.from_text(literal.shape, text) == literal
    assert Literal.from_text(literal.shape, text.replace("} }", "} /**/ }")) == literal
    assert Literal.from_text(literal.shape, text.replace(", ", ",\n ")) == literal


def test_vectorised_reading_leaves_the_odd_to_the_strict_way() -> None:
    shape = array("f32", (64,))
    for odd in ("-0", "-0.0", "18446744073709551615", "nan(0x5)", "-.5"):
        text = "{" + ", ".join([odd] * 64) + "}"
        want = Literal.from_text(array("f32"), odd).to_text()
        assert Literal.from_text(shape, text).to_text() == "{" + ", ".join([want] * 64) + "}"
    for bad in ("1_0", "+1", "infinity", "1e40", "٣", "0x10", "1 2"):
        with pytest.raises(SyntaxProblem):
            Literal.from_text(shape, "{" + ", ".join(["1"] * 63 + [bad]) + "}")


@pytest.mark.parametrize("sizes", ["1000000000000,0", "70000,0,3", "300,300,0", "0,1000000000000"])
def test_an_array_of_many_empty_rows_is_short_text_and_known(sizes: str) -> None:
    shape = cast(ArrayShape, parse_shape(f"f32[{sizes}]"))
    literal = Literal.from_array(shape, np.zeros(shape.dimensions, np.float32))
    assert len(literal.to_text()) < 10
    again = Literal.from_text(shape, literal.to_text())
    assert again == literal
    assert not again.is_elided


@pytest.mark.parametrize(
    ("shape", "text", "short", "essential"),
    [
        ("f32[10]", "{" + ", ".join("1234567890") + "}", None, "{...}"),
        ("f32[11]", "{" + ", ".join("1" * 11) + "}", "{...}", "1"),
        ("s32[11]", "{" + ", ".join("3" * 11) + "}", "{...}", "{" + ", ".join("3" * 11) + "}"),
        ("(f32[])", "( 1 )", "{...}", "{...}"),
        ("(s32[], s32[])", "( 1, 1 )", "{...}", "( 1, 1 )"),
        ("()", "(  )", "{...}", "(  )"),
        ("pred[]", "true", None, "1"),
        ("pred[2]", "{1, 0}", None, "{...}"),
        ("f32[]", "-0", None, "{...}"),
        ("c64[]", "(1, 0)", None, "1"),
        ("f32[0]", "{}", None, "0"),
    ],
)
def test_elision(shape: str, text: str, short: str | None, essential: str) -> None:
    literal = Literal.from_text(parse_shape(shape), text.replace("-0", "-0.0"))
    assert literal.to_text(large=True) == text
    assert literal.to_text(large=False) == (short or text)
    assert literal.to_essential_text() == essential


def test_elided_is_kept_and_has_no_value() -> None:
    literal = Literal.from_text(parse_shape("f32[20]"), "{...}")
    assert literal.is_elided
    assert literal.to_text() == "{...}"
    with pytest.raises(ValueError, match="elided"):
        _ = literal.array
    whole = Literal.from_text(parse_shape("(f32[2], s32[])"), "{...}")
    assert whole.is_elided
    assert str(parse_all(str(whole), read_literal_with_shape)) == str(whole)
    part = Literal.from_text(parse_shape("(f32[2], s32[])"), "({...}, 3)")
    assert part.is_elided
    assert not part.elements[1].is_elided


@pytest.mark.parametrize(
    "text",
    [
        "s32[2]{0} {1, 2}",
        "( s32[2]{0} {1, 2}, ( f32[] 3, pred[] true ), c64[] (1, 2), (  ) )",
        "f32[2,2]{0,1} { { 1, 2 }, { 3, 4 } }",
    ],
)
def test_with_shape(text: str) -> None:
    literal = parse_all(text, read_literal_with_shape)
    assert str(literal) == text
    assert parse_all(str(LiteralAttr(literal).data), read_literal_with_shape) == literal


def test_values_and_equality() -> None:
    literal = Literal.from_text(parse_shape("bf16[2,3]"), "{{1, 2, 3}, {4, 5, 6}}")
    assert literal.array.dtype == ml_dtypes.bfloat16
    assert literal.array.astype(int).tolist() == [[1, 2, 3], [4, 5, 6]]
    same = Literal.from_array(parse_shape("bf16[2,3]"), literal.array)
    assert same == literal
    assert hash(same) == hash(literal)
    assert literal != Literal.from_array(parse_shape("bf16[2,3]{0,1}"), literal.array)
    pair = Literal.tuple_of([literal, same])
    assert pair.shape == TupleShape((literal.shape, literal.shape))
    assert Literal.from_text(parse_shape("s4[]"), "-3").item() == -3
    assert Literal.from_text(parse_shape("c64[]"), "(1, 2)").item() == 1 + 2j
    assert Literal.from_text(parse_shape("f16[]"), "0.5").item() == 0.5
    quiet = Literal(array("f32"), struct.pack("<I", 0x7FC00000))
    assert quiet != Literal(array("f32"), struct.pack("<I", 0x7FC00001))


@pytest.mark.slow
def test_ten_megabytes_take_seconds() -> None:
    values = np.random.default_rng(1).normal(size=(1000, 1000)).astype(np.float32)
    literal = Literal.from_array(array("f32", (1000, 1000)), values)
    assert Literal.from_text(literal.shape, literal.to_text()) == literal
