"""Constants as arrays, and attributes as values."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import DenseArrayBase, TensorType, f32, i64
from xdsl.ir import Attribute

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects import chlo
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.stablehlo import OP_CLASSES, ROWS, attributes
from mlirhlo.dialects.stablehlo.elements import DenseAttr, array_of, dense, to_xdsl
from mlirhlo.dialects.stablehlo.float_text import F32, float_text, text_of
from mlirhlo.dialects.stablehlo.rows import KINDS
from mlirhlo.dialects.stablehlo.structs import EnumAttr, StructAttr
from mlirhlo.formats.stablehlo import parse_module, print_module
from mlirhlo.formats.stablehlo.attribute_text import AttributeTexts

ARRAYS = [t for t in PRIMITIVE_TYPES.values() if t.is_array and t.mlir is not None]


def _read(text: str) -> Attribute:
    return parse_module(f"module attributes {{a.b = {text}}} {{}}").attributes["a.b"]


def _text(attribute: Attribute) -> str:
    return AttributeTexts().text(attribute)


@pytest.mark.parametrize("row", ARRAYS, ids=lambda row: row.name)
def test_arrays_come_back(row: Any) -> None:
    for shape in ((), (3,), (2, 3), (0, 2), (11, 10)):
        count = int(np.prod(shape))
        values = (np.arange(count) % 3 - (0 if row.is_unsigned or row.name == "pred" else 1)) % 2
        array = values.astype(row.dtype).reshape(shape)
        attribute = dense(array, TensorType(row.mlir, shape))
        assert array_of(attribute).tobytes() == array.tobytes()
        assert _read(_text(attribute)) == attribute


def test_equal_elements_are_kept_once() -> None:
    type_ = TensorType(f32, [1000, 1000])
    one = dense(np.float32(2), type_)
    many = dense(np.full((1000, 1000), 2, np.float32), type_)
    assert one == many == _read("dense<2.0> : tensor<1000x1000xf32>")
    assert len(one.data.raw) == 4
    assert array_of(one).shape == (1000, 1000)
    assert not array_of(one).flags.writeable


def test_shapes_that_differ_are_refused() -> None:
    with pytest.raises(HloError, match="HLO0036"):
        dense(np.zeros(3), TensorType(f32, [2]))


def test_elided_constants_have_no_array() -> None:
    with pytest.raises(HloError, match="HLO0037"):
        array_of(_read("dense_resource<__elided__> : tensor<2xf32>"))


def test_dense_arrays_and_constants_of_xdsl_have_arrays_too() -> None:
    assert array_of(DenseArrayBase.from_list(i64, [1, -2])).tolist() == [1, -2]
    for text in ("dense<[1, -2]> : tensor<2xi8>", "dense<[true, false]> : tensor<2xi1>"):
        ours = _read(text)
        assert isinstance(ours, DenseAttr)
        theirs = to_xdsl(ours)
        assert array_of(theirs).tolist() == array_of(ours).tolist()
        assert _text(theirs) == text


@given(st.floats(width=32))
@settings(max_examples=300, deadline=None)
def test_floats_read_back_as_they_were(value: float) -> None:
    bits = int(np.float32(value).view(np.uint32))
    text = text_of(value, bits, F32)
    read = _read(f"dense<{text}> : tensor<f32>")
    assert int(array_of(read).view(np.uint32)) == bits


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(max_examples=300, deadline=None)
def test_doubles_read_back_as_they_were(value: float) -> None:
    text = float_text(value)
    number = array_of(_read(f"dense<{text}> : tensor<f64>"))
    assert number.tobytes() == np.float64(value).tobytes()


_STRUCTS = [
    cls
    for cls in (*attributes.ATTRIBUTES, *chlo.attributes.ATTRIBUTES)
    if issubclass(cls, StructAttr) and cls is not attributes.ConvDimensionNumbersAttr
]
_SIZES = st.lists(st.integers(0, 2**62), max_size=4).map(tuple)


@given(st.sampled_from(_STRUCTS), st.data())
@settings(max_examples=200, deadline=None)
def test_structures_read_back_as_they_were(cls: Any, data: st.DataObject) -> None:
    values = {
        field.name: data.draw(st.integers(0, 2**62) if field.type == "int" else _SIZES)
        for field in fields(cls.value_class)
    }
    attribute = cls(cls.value_class(**values))
    assert _read(_text(attribute)) == attribute


@given(st.permutations(range(4)), st.permutations(range(4)), st.permutations(range(4)))
@settings(max_examples=50, deadline=None)
def test_convolution_numbers_read_back(lhs: list[int], kernel: list[int], out: list[int]) -> None:
    numbers = attributes.ConvDimensionNumbers(
        *(lhs[0], lhs[1], tuple(lhs[2:])),
        *(kernel[0], kernel[1], tuple(kernel[2:])),
        *(out[0], out[1], tuple(out[2:])),
    )
    attribute = attributes.ConvDimensionNumbersAttr(numbers)
    assert _read(_text(attribute)) == attribute


def test_words_read_back() -> None:
    for cls in (*attributes.ATTRIBUTES, *chlo.attributes.ATTRIBUTES):
        if issubclass(cls, EnumAttr):
            for word in cls.cases:
                attribute = cls(word)
                assert _read(_text(attribute)) == attribute


@given(
    st.text(max_size=12) | st.binary(max_size=8).map(lambda b: b.decode("utf-8", "surrogateescape"))
)
@settings(max_examples=200, deadline=None)
def test_strings_and_names_read_back(text: str) -> None:
    from xdsl.dialects.builtin import StringAttr, SymbolRefAttr

    for attribute in (StringAttr(text), SymbolRefAttr(text)):
        shown = AttributeTexts().text(attribute)
        assert shown.isascii()
        assert _read(shown) == attribute


def test_rows_name_kinds_that_exist() -> None:
    classes = {cls.__name__ for cls in (*attributes.ATTRIBUTES, *chlo.attributes.ATTRIBUTES)}
    for row in (*ROWS.values(), *chlo.ROWS.values()):
        for own in row.properties:
            assert own.kind in KINDS or own.kind in classes, (row.name, own)


def test_accessors_follow_the_row() -> None:
    text = (
        "func.func @f(%a: tensor<4xf32>, %i: tensor<4x1xi32>) -> tensor<4xf32> {\n"
        '  %0 = "stablehlo.scatter"(%a, %i, %a) <{scatter_dimension_numbers = #stablehlo.scatter<'
        "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({\n"
        "  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n    stablehlo.return %y : tensor<f32>\n"
        "  }) : (tensor<4xf32>, tensor<4x1xi32>, tensor<4xf32>) -> tensor<4xf32>\n"
        "  return %0 : tensor<4xf32>\n}\n"
    )
    module = parse_module(text)
    op: Any = next(o for o in module.walk() if o.name == "stablehlo.scatter")
    assert isinstance(op, OP_CLASSES["stablehlo.scatter"])
    assert [len(op.inputs), len(op.updates)] == [1, 1]
    assert op.scatter_indices is op.operands[1]
    assert op.scatter_dimension_numbers.data.index_vector_dim == 1
    assert op.unique_indices is None
    with pytest.raises(AttributeError):
        _ = op.no_such_thing


def test_xdsl_itself_reads_and_verifies_the_generic_form() -> None:
    from xdsl.context import Context
    from xdsl.parser import Parser
    from xdsl.universe import Universe

    context = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        context.register_dialect(name, factory)
    text = (
        '"func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xi1>, sym_name = "f"}> ({\n'
        "^bb0(%a: tensor<4xf32>):\n"
        '  %0 = "stablehlo.compare"(%a, %a) {comparison_direction ='
        " #stablehlo<comparison_direction LT>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>\n"
        '  "func.return"(%0) : (tensor<4xi1>) -> ()\n}) : () -> ()\n'
    )
    module = Parser(context, text).parse_module()
    module.verify()
    assert "stablehlo.compare LT, %arg0, %arg0 :" in print_module(module)
