"""Reads attributes. What belongs to a dialect is read by the dialect, once for each spelling."""

from __future__ import annotations

import re
import struct
from typing import Any, cast

from xdsl.dialects import builtin
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DenseResourceAttr,
    DictionaryAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.attributes.base import FALSE, TRUE, integer, integers, string
from mlirhlo.dialects.stablehlo.attributes import FormerTypeExtensionsAttr, TypeExtensionsAttr
from mlirhlo.dialects.stablehlo.elements import dtype_of, integer_width, is_unsigned
from mlirhlo.dialects.stablehlo.opaque import OpaqueAttr, OpaqueType
from mlirhlo.formats.stablehlo.foreign import Bridge
from mlirhlo.formats.stablehlo.reader_dense import DenseReader
from mlirhlo.formats.stablehlo.reader_locations import LocationReader
from mlirhlo.formats.stablehlo.scan import BAD_VALUE, UNKNOWN

_NUMBER = re.compile(r"-?(?:0x[0-9A-Fa-f]+|[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?|[0-9]+)")
_DIALECT_NAME = re.compile(r"[#!]([A-Za-z_][A-Za-z0-9_$]*(?:\.[A-Za-z0-9_$.\-]+)?|[0-9]+)")
_ALIAS_NAME = re.compile(r"[#!]([A-Za-z0-9_$.\-]+)")
_BRACKETS = re.compile(r'[<>\[\](){}]|->|"(?:[^"\\\n]|\\.)*+"?')
_PAIRS = {"<": ">", "[": "]", "(": ")", "{": "}"}
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_$.]*")
_ARRAY_TYPES = (i64, i32, i1, i8, i16, builtin.f32, builtin.f64)
_KEPT = 4096
"""Longest spelling of a dialect's attribute that is kept."""

_INTS = re.compile(r"array<i64(?:: (-?[0-9]{1,18}(?:, -?[0-9]{1,18})*))?>")


class AttributeReader(LocationReader, DenseReader):
    """The part of the reader that reads attributes."""

    spelled: dict[str, Attribute]
    """Attributes and types of dialects by their spelling."""

    def optional_attribute(self) -> Attribute | None:
        """An attribute, if one begins here."""
        start = self.skip()
        first = self.text[start : start + 1]
        if first == '"':
            return self._string()
        if first == "#":
            return self.dialect_attribute()
        if first == "[":
            return ArrayAttr(self.attribute_list())
        if first == "{":
            return DictionaryAttr(self.dictionary())
        if first == "@":
            return self.symbol_reference()
        if first == "-" or first.isdigit():
            return self._number()
        if first in "!(":
            return self.optional_type() if first else None
        if first == "a" and (match := _INTS.match(self.text, start)) is not None:
            self.pos = match.end()
            return integers(tuple(map(int, match[1].split(", "))) if match[1] else ())
        word = self.optional_keyword()
        match word:
            case None:
                return None
            case "true":
                return TRUE
            case "false":
                return FALSE
            case "unit":
                return UnitAttr()
            case "dense" if self.at("<"):
                return self.dense()
            case "array" if self.at("<"):
                return self._array()
            case "dense_resource" if self.accept("<"):
                return self._resource()
            case "loc" if self.at("("):
                self.pos = start
                return self.optional_location()
            case "affine_map" | "affine_set" | "strided" | "opaque":
                self.pos = start
                return self.foreign_attribute()
            case "sparse" | "distinct":
                return self._opaque_builtin(start)
            case _:
                self.pos = start
                return self.optional_type()

    def attribute_list(self) -> list[Attribute]:
        """`[attribute, …]`."""
        self.need("[")
        found: list[Attribute] = []
        if self.accept("]"):
            return found
        found.append(self.attribute())
        while self.accept(","):
            found.append(self.attribute())
        self.need("]")
        return found

    def dictionary(self) -> dict[str, Attribute]:
        """`{name = attribute, name, "name" = attribute}`."""
        self.need("{")
        found: dict[str, Attribute] = {}
        if self.accept("}"):
            return found
        while True:
            start = self.skip()
            match = _KEY.match(self.text, start)
            if match is not None:
                key = match[0]
                self.pos = match.end()
            else:
                key = self.string()
            if key in found:
                self.fail(f"'{key}' stands twice in this dictionary", start, length=len(key))
            found[key] = self.attribute() if self.accept("=") else UnitAttr()
            if not self.accept(","):
                break
        self.need("}")
        return found

    def optional_dictionary(self) -> dict[str, Attribute]:
        """A dictionary, if one begins here."""
        return self.dictionary() if self.at("{") else {}

    def symbol_reference(self) -> SymbolRefAttr:
        """`@name` or `@outer::@inner`."""
        names = [self.symbol()]
        while self.accept("::"):
            names.append(self.symbol())
        return SymbolRefAttr(names[0], names[1:])

    def _string(self) -> Attribute:
        text = self.string()
        if self.at(":") and not self.at("::"):
            self.need(":")
            type_ = self.type()
            return OpaqueAttr(f"{StringAttr(text)} : {type_}")
        return string(text)

    def _number(self) -> Attribute:
        start = self.pos
        match = _NUMBER.match(self.text, start)
        if match is None:
            self.expected("a number")
        if len(match[0]) > 4000:
            self.fail("this number has too many digits", start, code=BAD_VALUE)
        self.pos = match.end()
        text = match[0]
        type_: Attribute | None = None
        if self.at(":") and not self.at("::"):
            self.need(":")
            type_ = self.type()
        return self._typed_number(text, type_, start)

    def _typed_number(self, text: str, type_: Attribute | None, start: int) -> Attribute:
        if type_ is not None and self.is_float(type_):
            if "x" in text:
                return float_of_bits(int(text, 16), type_)
            if "." not in text:
                self.fail(f"write this {type_} with a point: {text}.", start, length=len(text))
            return FloatAttr(float(text), cast(Any, type_))
        if "." in text:
            if type_ is not None:
                self.fail(f"{text} is no {type_}", start, length=len(text), code=BAD_VALUE)
            return FloatAttr(float(text), builtin.f64)
        value = int(text, 0) if "x" in text else int(text)
        if type_ is None or type_ == i64:
            if not -(1 << 63) <= value < 1 << 64:
                self.fail(f"{text} does not fit into i64", start, code=BAD_VALUE)
            return integer(value - (1 << 64) if value >= 1 << 63 else value)
        if not isinstance(type_, IntegerType | IndexType):
            self.fail(f"{text} is no {type_}", start, length=len(text), code=BAD_VALUE)
        number_type = cast(Attribute, type_)
        width = integer_width(number_type) or 64
        unsigned = is_unsigned(number_type)
        if not (0 if unsigned else -(1 << max(width - 1, 0))) <= value < 1 << width:
            self.fail(f"{text} does not fit into {type_}", start, code=BAD_VALUE)
        if width == 1 and not unsigned:
            return TRUE if value else FALSE
        if not unsigned and value >= 1 << (width - 1):
            value -= 1 << width
        return IntegerAttr(value, cast(Any, type_))

    def _array(self) -> Attribute:
        """What follows `array`."""
        start = self.pos
        self.need("<")
        type_ = self.type()
        if type_ not in _ARRAY_TYPES:
            self.fail(f"no arrays of {type_}", start, code=BAD_VALUE)
        values: list[Any] = []
        if self.accept(":"):
            while True:
                values.append(self._array_entry(type_, start))
                if not self.accept(","):
                    break
        self.need(">")
        if type_ == i64:
            return integers(tuple(values))
        return DenseArrayBase.from_list(cast(Any, type_), values)

    def _array_entry(self, type_: Attribute, start: int) -> Any:
        if integer_width(type_) == 1:
            return int(self.boolean())
        match = _NUMBER.match(self.text, self.skip())
        if match is None:
            self.expected("a number")
        self.pos = match.end()
        attribute = self._typed_number(match[0], type_, start)
        return cast(Any, attribute).value.data

    def _resource(self) -> Attribute:
        word = self.optional_word()
        handle = word if word is not None else self.string()
        self.need(">")
        self.need(":")
        return DenseResourceAttr(StringAttr(handle), cast(Any, self.type()))

    def _opaque_builtin(self, start: int) -> Attribute:
        """Builtin attributes that are kept as they are spelled: sparse constants, distinct ones."""
        if self.accept("["):
            self.integer()
            self.need("]")
        self._balanced("<", self.skip())
        text = self.text[start : self.pos]
        if self.accept(":"):
            text += f" : {self.type()}"
        return OpaqueAttr(text)

    # ------------------------------------------------------------ dialects

    def dialect_attribute(self) -> Attribute:
        """`#alias`, `#dialect.name<…>` or `#dialect<…>`."""
        return self._of_dialect("#")

    def dialect_type(self) -> Attribute:
        """`!alias`, `!dialect.name<…>` or `!dialect<…>`."""
        return self._of_dialect("!")

    def _of_dialect(self, mark: str) -> Attribute:
        start = self.skip()
        match = _DIALECT_NAME.match(self.text, start)
        if match is None:
            self.expected("a name")
        self.pos = end = match.end()
        has_body = self.text.startswith("<", end)
        if not has_body and (alias := _ALIAS_NAME.match(self.text, start)) is not None:
            known = self.alias(alias[0], start)
            if known is not None:
                self.pos = alias.end()
                return known
            if "." not in match[1]:
                self.fail(
                    f"no alias '{alias[0]}' is defined", start, length=len(alias[0]), code=UNKNOWN
                )
        if has_body:
            end = self._balanced("<", end)
        spelled = self.text[start:end]
        known = self.spelled.get(spelled)
        if known is None:
            self.pos = start
            known = self._new_of_dialect(mark, match[1], spelled)
            stopped = self.pos
            self.pos = end
            if stopped != end and stopped != self.skip():
                self.fail(f"this does not belong to {mark}{match[1]}")
            if len(spelled) < _KEPT and not ("#" in spelled[1:] and self.has_aliases):
                self.spelled[spelled] = known
        self.pos = end
        return known

    def _new_of_dialect(self, mark: str, name: str, spelled: str) -> Attribute:
        full = name
        if "." not in name:
            inner = _KEY.match(self.text, self.pos + 2 + len(name))
            full = f"{name}.{inner[0] if inner is not None else '?'}"
        is_type = mark == "!"
        get = self.ctx.get_optional_type if is_type else self.ctx.get_optional_attr
        if get(full) is None:
            dialect = name.partition(".")[0]
            if dialect in ("stablehlo", "chlo", "quant"):
                self.fail(
                    f"{dialect} has no {'type' if is_type else 'attribute'} '{full}'",
                    self.pos,
                    length=len(name) + 1,
                    code=UNKNOWN,
                )
            self.pos += len(spelled)
            return OpaqueType(spelled) if is_type else OpaqueAttr(spelled)
        found = self.foreign_type() if is_type else self.foreign_attribute()
        if isinstance(found, FormerTypeExtensionsAttr):
            return TypeExtensionsAttr(found.data)
        return found

    def _balanced(self, opening: str, start: int) -> int:
        """Position after the bracket that closes the one at `start`; goes there."""
        if not self.text.startswith(opening, start):
            self.expected(f"'{opening}'")
        open_: list[str] = []
        for match in _BRACKETS.finditer(self.text, start):
            token = match[0]
            if token in _PAIRS:
                open_.append(_PAIRS[token])
            elif token in (">", "]", ")", "}"):
                if not open_ or open_.pop() != token:
                    self.fail(f"unexpected '{token}'", match.start())
                if not open_:
                    self.pos = match.end()
                    return self.pos
        return self.fail("this bracket is not closed", start)

    def foreign_attribute(self) -> Attribute:
        """An attribute that xDSL's parser and the dialect's own code read."""
        return self._foreign(is_type=False)

    def foreign_type(self) -> Attribute:
        """A type that xDSL's parser and the dialect's own code read."""
        return self._foreign(is_type=True)

    def _foreign(self, *, is_type: bool) -> Attribute:
        with Bridge.over(cast(Any, self)) as bridge:
            return bridge.own_type() if is_type else bridge.own_attribute()

    # ------------------------------------------------------------ aliases

    has_aliases: bool = False
    alias_places: dict[str, int]
    """Where the definition of each alias begins, after its `=`."""
    aliases: dict[str, Attribute | None]
    """Aliases that have been read; None while one is being read."""

    def alias(self, name: str, at: int) -> Attribute | None:
        """What an alias stands for; None where no such alias is defined."""
        if name in self.aliases:
            known = self.aliases[name]
            if known is None:
                self.fail(f"alias '{name}' is defined by itself", at, length=len(name))
            return known
        place = self.alias_places.get(name)
        if place is None:
            return None
        before = self.pos
        self.aliases[name] = None
        self.pos = place
        found = self.alias_value(name)
        self.pos = before
        return found

    def alias_value(self, name: str) -> Attribute:
        """Reads what stands after `#name =` and remembers it."""
        value = self.type() if name[0] == "!" else self.attribute()
        self.aliases[name] = value
        return value

    def checked(self, make: Any, start: int) -> Any:
        """What `make()` returns; what xDSL finds wrong with it becomes a diagnostic."""
        try:
            return make()
        except VerifyException as problem:
            self.fail(str(problem).strip().splitlines()[-1], start, code=BAD_VALUE)
        except HloError:
            raise


def float_of_bits(bits: int, type_: Attribute) -> Attribute:
    """The number of a float type that has these bits."""
    import numpy as np

    dtype = dtype_of(type_)
    raw = (bits & ((1 << 8 * dtype.itemsize) - 1)).to_bytes(dtype.itemsize, "little")
    if dtype.itemsize == 8:
        return FloatAttr(struct.unpack("<d", raw)[0], cast(Any, type_))
    return FloatAttr(float(np.frombuffer(raw, dtype).astype(np.float64)[0]), cast(Any, type_))
