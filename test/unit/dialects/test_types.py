"""Shapes, their text, and their MLIR types."""

import pytest

from mlirhlo.dialects.hlo.element_types import BY_NUMBER, PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.shapes import (
    ArrayShape,
    TupleShape,
    array,
    compatible,
    default_layout,
    leaves,
    parse_shape,
    subshape,
)
from mlirhlo.dialects.hlo.syntax import SyntaxProblem
from mlirhlo.dialects.hlo.types import shape_of, type_of

SHAPES = [
    "f32[]",
    "f32[4,3]{1,0}",
    "f32[4,3]{0,1}",
    "bf16[8,128]{1,0:T(8,128)(2,1)S(1)}",
    "s4[16]{0:E(4)}",
    "f32[2,<=3,?]{2,1,0}",
    "f32[]{:S(1)}",
    "pred[2]{0:T(*,128)L(2)#(u32)*(u64)E(1)S(3)SC(0:1,2)M(4)}",
    "f32[2]{0:T(2)#(s32)*(s64)}",
    "()",
    "(f32[2]{0}, (s32[], token[]), opaque[])",
    "(f32[], f32[], f32[], f32[], f32[], /*index=5*/f32[])",
    "b(f32[8]{0})",
    "token[]",
    "opaque[]",
]


@pytest.mark.parametrize("text", SHAPES)
def test_text_and_type_round_trip(text: str) -> None:
    shape = parse_shape(text)
    assert str(shape) == text
    assert shape_of(type_of(shape)) == shape
    fresh = type_of(shape).clone() if hasattr(type_of(shape), "clone") else type_of(shape)
    assert shape_of(fresh) == shape


@pytest.mark.parametrize("name", [n for n, t in PRIMITIVE_TYPES.items() if t.is_array])
def test_every_element_type_has_numpy_mlir_and_number(name: str) -> None:
    type_ = PRIMITIVE_TYPES[name]
    assert BY_NUMBER[type_.number] is type_
    shape = array(type_, [2, 3])
    assert shape_of(type_of(shape)) == shape
    assert type_.dtype.itemsize == type_.byte_size


def test_missing_layouts_are_row_major() -> None:
    shape = parse_shape("f32[4,3]")
    assert isinstance(shape, ArrayShape)
    assert shape.layout == default_layout(2)


def test_equal_shapes_share_their_type() -> None:
    assert type_of(array("f32", [4])) is type_of(parse_shape("f32[4]{0}"))


def test_leaves_and_subshape_agree() -> None:
    shape = parse_shape("(f32[2]{0}, (s32[], token[]), ())")
    assert [(i, str(s)) for i, s in leaves(shape)] == [
        ((0,), "f32[2]{0}"),
        ((1, 0), "s32[]"),
        ((1, 1), "token[]"),
    ]
    for index, leaf in leaves(shape):
        assert subshape(shape, index) is leaf
    with pytest.raises(IndexError):
        subshape(shape, (0, 0))


def test_compatible_ignores_layouts_and_bounds() -> None:
    assert compatible(parse_shape("f32[2,3]{0,1}"), parse_shape("f32[2,<=3]{1,0}"))
    assert not compatible(parse_shape("f32[2,3]"), parse_shape("f32[3,2]"))
    assert not compatible(parse_shape("(f32[2])"), parse_shape("f32[2]"))
    assert compatible(parse_shape("f32[?]"), parse_shape("f32[7]"))


@pytest.mark.parametrize(
    "text, message",
    [
        ("f33[2]", "expects a primitive type"),
        ("f32[2", "expects"),
        ("f32[-1]", "negative"),
        ("f32[2]{1,0}", "Dimensions size is 1, but minor to major size is 2."),
        ("token[2]", "takes no dimensions"),
        ("b(b(f32[2]))", "a buffer holds an array"),
        ("f32[2]{0:#(f32)}", "are integers, found 'f32'"),
        ("f32[2]{0:*(pred)}", "are integers"),
        ("f32[2]{0:T(-128)}", "at least 0, or .*, found -128"),
        ("f32[2]{0:L(0)}", "at least 1, found 0"),
        ("f32[2]{0:P(f32[2])}", "sparse arrays"),
        ("f32[2,3]{1,0:D(X,C)}", r"level type \(D, C or S\), found 'X'"),
        ("(" * 5000, "nested deeper"),
        ("f32[2] f32[3]", "unexpected text"),
        ("f32[99999999999999999999999]", "64 bits"),
        ("f32[2,2]{1,0,}", "expects an integer"),
    ],
)
def test_bad_shapes_say_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(SyntaxProblem, match=message):
        parse_shape(text)


def test_level_types_are_read_and_dropped() -> None:
    assert str(parse_shape("f32[2,3]{1,0:D(D,C+~)T(2)}")) == "f32[2,3]{1,0:T(2)}"


def test_tuples_know_their_elements() -> None:
    shape = parse_shape("(f32[], s32[])")
    assert isinstance(shape, TupleShape)
    assert len(shape.elements) == 2
