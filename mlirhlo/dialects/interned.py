"""Attributes that lowerings make over and over, one object for each value.

xDSL verifies an attribute whenever one is made, which costs more than all else that is done for an op.
"""

from __future__ import annotations

import functools
from typing import Any

from xdsl.dialects.builtin import (
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
    i1,
    i32,
    i64,
)

_MOST = 1 << 14
"""Of each kind: more are made anew."""

UNIT = UnitAttr()
"""Present."""


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


def integer(number: int, type_: Any) -> Any:
    """A number of any integer type or `index`."""
    if type_ == i64:
        return integer64(number)
    if type_ == i32:
        return integer32(number)
    if type_ == i1:
        return (_FALSE, _TRUE)[number & 1]
    return IntegerAttr(number, type_)


_FALSE, _TRUE = IntegerAttr(0, i1), IntegerAttr(1, i1)
