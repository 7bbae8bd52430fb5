"""Attributes that lowerings make over and over, one object for each value.

xDSL verifies an attribute whenever one is made, which costs more than all else that is done for an op.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, cast

from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    NoneAttr,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    VectorType,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute

_MOST = 1 << 14
"""Of each kind: more are made anew."""

UNIT = UnitAttr()
"""Present."""
NONE = NoneAttr()
"""Absent: of an encoding, a layout, a memory space."""


@functools.lru_cache(_MOST)
def integer64(number: int) -> IntegerAttr[IntegerType]:
    """An i64."""
    return IntegerAttr(number, i64)


@functools.lru_cache(_MOST)
def integer32(number: int) -> IntegerAttr[IntegerType]:
    """An i32."""
    return IntegerAttr(number, i32)


@functools.lru_cache(_MOST)
def integers64(*numbers: int) -> DenseArrayBase[Any]:
    """An array of i64."""
    return DenseArrayBase.from_list(i64, numbers)


@functools.lru_cache(_MOST)
def integers32(*numbers: int) -> DenseArrayBase[Any]:
    """An array of i32."""
    return DenseArrayBase.from_list(i32, numbers)


@functools.lru_cache(_MOST)
def string(text: str) -> StringAttr:
    """A text."""
    return StringAttr(text)


def dictionary(entries: Mapping[str, Attribute]) -> DictionaryAttr:
    """What is said of a thing by words alone."""
    if all(type(value) is UnitAttr for value in entries.values()):
        return _words(*entries)
    return DictionaryAttr(entries)


@functools.lru_cache(_MOST)
def _words(*words: str) -> DictionaryAttr:
    return DictionaryAttr(dict.fromkeys(words, UNIT))


@functools.lru_cache(_MOST)
def symbol_ref(name: str) -> SymbolRefAttr:
    """The name of a function or global."""
    return SymbolRefAttr(name)


def integer(number: int, type_: Any) -> Any:
    """A number of any integer type or `index`."""
    if type_ is i64 or type_ == i64:
        return integer64(number)
    if type_ is i32 or type_ == i32:
        return integer32(number)
    if type_ is i1 or type_ == i1:
        return (_FALSE, _TRUE)[number & 1]
    return IntegerAttr(number, type_)


def number(text: str, type_: Any) -> Any:
    """A number, as Python writes it, of any type of numbers; of a vector in every lane."""
    key = text, id(type_)
    found = _NUMBERS.get(key)
    if found is None:
        if len(_NUMBERS) >= _MOST:
            _NUMBERS.clear()
        found = _NUMBERS[key] = type_, _number(text, type_)
    return found[1]


_NUMBERS: dict[tuple[str, int], tuple[Any, Any]] = {}
"""By the text and the identity of the type, which stands beside the number: hashing a type takes longer
than all else."""


@functools.lru_cache(_MOST)
def each(texts: tuple[str, ...], type_: Any) -> Any:
    """A vector of floats, as Python writes them."""
    return DenseIntOrFPElementsAttr.from_list(type_, [float(text) for text in texts])


@functools.lru_cache(_MOST)
def _number(text: str, type_: Any) -> Any:
    if isinstance(type_, VectorType):
        element = cast("VectorType[Attribute]", type_).element_type
        value = number(text, element)
        data = value.value.data
        return DenseIntOrFPElementsAttr.from_list(cast(Any, type_), [data])
    if isinstance(type_, IntegerType | IndexType):
        return integer(int(text), type_)
    return FloatAttr(float(text), type_)


_FALSE, _TRUE = IntegerAttr(0, i1), IntegerAttr(1, i1)
