"""Reads types. Each spelling is read once and kept."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from xdsl.dialects import builtin
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    ComplexType,
    FunctionType,
    IndexType,
    IntegerType,
    NoneAttr,
    Signedness,
    TensorType,
    TupleType,
    UnrankedTensorType,
)
from xdsl.ir import Attribute

from mlirhlo.formats.stablehlo.reader_base import ReaderBase
from mlirhlo.formats.stablehlo.scan import BAD_VALUE

NAMED_TYPES: Mapping[str, Attribute] = {
    "index": IndexType(),
    "none": builtin.NoneType(),
    "f16": builtin.f16,
    "bf16": builtin.bf16,
    "f32": builtin.f32,
    "f64": builtin.f64,
    "f80": builtin.Float80Type(),
    "f128": builtin.Float128Type(),
    "tf32": builtin.FloatTF32Type(),
    "f8E5M2": builtin.Float8E5M2Type(),
    "f8E4M3": builtin.Float8E4M3Type(),
    "f8E4M3FN": builtin.Float8E4M3FNType(),
    "f8E5M2FNUZ": builtin.Float8E5M2FNUZType(),
    "f8E4M3FNUZ": builtin.Float8E4M3FNUZType(),
    "f8E4M3B11FNUZ": builtin.Float8E4M3B11FNUZType(),
    "f8E3M4": builtin.Float8E3M4Type(),
    "f8E8M0FNU": builtin.Float8E8M0FNUType(),
    "f6E2M3FN": builtin.Float6E2M3FNType(),
    "f6E3M2FN": builtin.Float6E3M2FNType(),
    "f4E2M1FN": builtin.Float4E2M1FNType(),
}
"""Types that are one word."""

_INTEGER_TYPE = re.compile(r"([su]?)i([0-9]{1,8})\Z")
_PLAIN = re.compile(
    r"(?:tensor|vector)<[0-9x?]*[A-Za-z][A-Za-z0-9]*>|[a-z][A-Za-z0-9]*(?![A-Za-z0-9_$.<])"
)
_SIZE = re.compile(r"[ \t]*(\?|[0-9]{1,19})[ \t]*x")
_MAX_WIDTH = 1 << 24
_SIGNS = {"": Signedness.SIGNLESS, "s": Signedness.SIGNED, "u": Signedness.UNSIGNED}
_INTERNED: dict[str, Attribute] = {}
"""Types that are spelled without names of other dialects, by their spelling."""


def named_type(word: str) -> Attribute | None:
    """The type one word means."""
    known = NAMED_TYPES.get(word)
    if known is not None:
        return known
    match = _INTEGER_TYPE.match(word)
    if match is None or not 0 <= int(match[2]) < _MAX_WIDTH:
        return None
    return IntegerType(int(match[2]), _SIGNS[match[1]])


class TypeReader(ReaderBase):
    """The part of the reader that reads types."""

    def optional_type(self) -> Attribute | None:
        """A type, if one begins here."""
        start = self.skip()
        match = _PLAIN.match(self.text, start)
        if match is not None:
            spelled = match[0]
            known = _INTERNED.get(spelled)
            if known is None:
                if spelled[-1] == ">":
                    known = self._type_by_parts()
                    if known is None or self.pos != match.end():
                        return known
                else:
                    known = named_type(spelled)
                    if known is None:
                        return None
                if len(_INTERNED) > 1 << 16:
                    _INTERNED.clear()
                _INTERNED[spelled] = known
            self.pos = match.end()
            return known
        return self._type_by_parts()

    def type(self) -> Attribute:
        """A type."""
        found = self.optional_type()
        return found if found is not None else self.expected("a type")

    def _type_by_parts(self) -> Attribute | None:
        start = self.skip()
        first = self.text[start : start + 1]
        if first == "!":
            return self.dialect_type()
        if first == "(":
            return self.function_type()
        word = self.optional_keyword()
        match word:
            case None:
                return None
            case "tensor" if self.accept("<"):
                return self._tensor()
            case "tuple" if self.accept("<"):
                types: list[Attribute] = []
                if not self.accept(">"):
                    types.append(self.type())
                    while self.accept(","):
                        types.append(self.type())
                    self.need(">")
                return TupleType(ArrayAttr(cast(Any, types)))
            case "complex" if self.accept("<"):
                element = self.type()
                self.need(">")
                if not isinstance(element, IntegerType | IndexType) and not self.is_float(element):
                    self.fail(f"no complex numbers of {element}", start, code=BAD_VALUE)
                return ComplexType(cast(Any, element))
            case "vector" | "memref" if self.at("<"):
                self.pos = start
                return self.foreign_type()
            case _:
                known = named_type(word)
                if known is None:
                    self.pos = start
                return known

    @staticmethod
    def is_float(type_: Attribute) -> bool:
        """Whether a type is one of the float types."""
        return isinstance(type_, builtin.AnyFloat)

    def _tensor(self) -> Attribute:
        """What follows `tensor<`."""
        start = self.pos
        if self.accept("*"):
            self.need("x")
            element = self.type()
            self.need(">")
            return UnrankedTensorType(element)
        sizes: list[int] = []
        self.skip()
        while (match := _SIZE.match(self.text, self.pos)) is not None:
            size = DYNAMIC_INDEX if match[1] == "?" else int(match[1])
            if size >= 1 << 63:
                self.fail("this size does not fit into 64 bits", self.pos, code=BAD_VALUE)
            sizes.append(size)
            self.pos = match.end()
        element = self.type()
        if isinstance(element, TensorType | TupleType | FunctionType | UnrankedTensorType):
            self.fail(f"no tensors of {element}", start, code=BAD_VALUE)
        encoding: Attribute = NoneAttr()
        if self.accept(","):
            encoding = self.attribute()
        self.need(">")
        return tensor_type(element, sizes, encoding)

    def type_list(self) -> list[Attribute]:
        """`(type, …)`."""
        self.need("(")
        types: list[Attribute] = []
        if self.accept(")"):
            return types
        types.append(self.type())
        while self.accept(","):
            types.append(self.type())
        self.need(")")
        return types

    def function_types(self) -> tuple[list[Attribute], list[Attribute]]:
        """`(type, …) -> type` or `(type, …) -> (type, …)`."""
        inputs = self.type_list()
        self.need("->")
        if self.at("("):
            return inputs, self.type_list()
        return inputs, [self.type()]

    def function_type(self) -> FunctionType:
        """A function type as an attribute."""
        inputs, outputs = self.function_types()
        return function_type(inputs, outputs)


def tensor_type(element: Attribute, sizes: list[int], encoding: Attribute) -> Attribute:
    """A ranked tensor type."""
    type_: TensorType[Attribute] = TensorType(element, sizes, encoding)
    object.__setattr__(type_, "_sizes", tuple(sizes))
    return type_


def function_type(inputs: list[Attribute], outputs: list[Attribute]) -> FunctionType:
    """A function type."""
    return FunctionType(ArrayAttr(inputs), ArrayAttr(outputs))
