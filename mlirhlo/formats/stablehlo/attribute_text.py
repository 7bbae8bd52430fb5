"""Attributes and types as MLIR prints them; every one is printed once and remembered."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects import builtin
from xdsl.dialects.builtin import (
    ArrayAttr,
    ComplexType,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    DictionaryAttr,
    FloatAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    NoneAttr,
    Signedness,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    TupleType,
    UnitAttr,
    UnrankedTensorType,
)
from xdsl.ir import Attribute
from xdsl.printer import Printer as XdslPrinter

from mlirhlo.dialects.stablehlo.elements import DenseAttr, array_of, dense, dtype_of
from mlirhlo.dialects.stablehlo.float_text import F64, format_of, text_of
from mlirhlo.dialects.stablehlo.locations import is_location, location_body

if TYPE_CHECKING:
    from mlirhlo.formats.stablehlo.aliases import Aliases

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_$.]*\Z")
_SPECIAL = re.compile(r"[^ !#-\[\]-~]")


def string_text(value: str) -> str:
    """A string in quotes."""
    if _SPECIAL.search(value) is None:
        return f'"{value}"'
    parts: list[str] = []
    for octet in value.encode("utf-8", "surrogateescape"):
        if octet == 0x5C:
            parts.append("\\\\")
        elif 0x20 <= octet < 0x7F and octet != 0x22:
            parts.append(chr(octet))
        else:
            parts.append(f"\\{octet:02X}")
    return f'"{"".join(parts)}"'


def symbol_text(name: str) -> str:
    """`@name`, quoted where it has to be."""
    return f"@{name}" if _BARE.match(name) else f"@{string_text(name)}"


def key_text(name: str) -> str:
    """A name in a dictionary."""
    return name if _BARE.match(name) else string_text(name)


class AttributeTexts:
    """Prints attributes and types."""

    def __init__(self, aliases: Aliases | None = None) -> None:
        self._texts: dict[Attribute, str] = {}
        self._by_id: dict[int, tuple[Attribute, str]] = {}
        self._aliases = aliases

    def text(self, attribute: Attribute) -> str:
        """An attribute or type; by its alias if it has one."""
        known = self._by_id.get(id(attribute))
        if known is not None:
            return known[1]
        text = self._texts.get(attribute)
        if text is None:
            alias = self._aliases.name_of(attribute) if self._aliases is not None else None
            text = alias if alias is not None else self.spelled(attribute)
            if len(text) < 1024:
                self._texts[attribute] = text
        if len(text) < 1024:
            self._by_id[id(attribute)] = (attribute, text)
        return text

    def dictionary(self, entries: dict[str, Attribute]) -> str:
        """`{name = attribute, …}`, sorted by name."""
        parts: list[str] = []
        for name in sorted(entries):
            value = entries[name]
            key = key_text(name)
            parts.append(key if isinstance(value, UnitAttr) else f"{key} = {self.text(value)}")
        return f"{{{', '.join(parts)}}}"

    def location(self, place: Attribute) -> str:
        """`loc(…)`, by its alias if it has one."""
        alias = self._aliases.name_of(place) if self._aliases is not None else None
        return f"loc({alias})" if alias is not None else self.spelled_location(place)

    def spelled_location(self, place: Attribute) -> str:
        """`loc(…)`; the places in it by their aliases."""
        return f"loc({location_body(place, self._inner_place)})"

    def _inner_place(self, attribute: Attribute) -> str:
        alias = self._aliases.name_of(attribute) if self._aliases is not None else None
        if alias is not None:
            return alias
        if is_location(attribute):
            return location_body(attribute, self._inner_place)
        return self.text(attribute)

    def spelled(self, attribute: Attribute) -> str:
        """An attribute or type in full; those in it by their aliases."""
        match attribute:
            case TensorType():
                return self._tensor(attribute)
            case IntegerType():
                sign = {Signedness.SIGNED: "s", Signedness.UNSIGNED: "u"}
                return f"{sign.get(attribute.signedness.data, '')}i{attribute.width.data}"
            case IndexType():
                return "index"
            case ComplexType():
                return f"complex<{self.text(attribute.element_type)}>"
            case TupleType():
                return f"tuple<{self._list(attribute.types.data)}>"
            case FunctionType():
                return self._function(attribute)
            case UnrankedTensorType():
                return f"tensor<*x{self.text(attribute.element_type)}>"
            case builtin.NoneType():
                return "none"
            case StringAttr():
                return string_text(attribute.data)
            case IntegerAttr():
                return self._integer(attribute)
            case FloatAttr():
                return self._float(attribute)
            case UnitAttr():
                return "unit"
            case ArrayAttr():
                return f"[{', '.join([self._entry(a) for a in attribute.data])}]"
            case DictionaryAttr():
                return self.dictionary(dict(attribute.data))
            case SymbolRefAttr():
                names = [attribute.root_reference, *attribute.nested_references.data]
                return "::".join(symbol_text(n.data) for n in names)
            case DenseAttr():
                return f"{attribute.literal()} : {self.text(attribute.type)}"
            case DenseIntOrFPElementsAttr():
                return self.spelled(dense(array_of(attribute), attribute.type))
            case DenseArrayBase():
                return self._array(attribute)
            case DenseResourceAttr():
                handle = key_text(attribute.resource_handle.data)
                return f"dense_resource<{handle}> : {self.text(attribute.type)}"
            case _ if is_location(attribute):
                return self.spelled_location(attribute)
            case _:
                return self._foreign(attribute)

    def _entry(self, attribute: Attribute) -> str:
        """An attribute in a list, where i64 and f64 go without saying."""
        match attribute:
            case IntegerAttr() if attribute.type == builtin.i64:
                return str(attribute.value.data)
            case FloatAttr() if attribute.type == builtin.f64:
                return number_text(attribute.value.data, builtin.f64)
            case _:
                return self.text(attribute)

    def _list(self, attributes: Any) -> str:
        return ", ".join([self.text(a) for a in attributes])

    def _tensor(self, type_: TensorType[Attribute]) -> str:
        sizes = "".join(["?x" if d.data < 0 else f"{d.data}x" for d in type_.shape.data])
        encoding = "" if isinstance(type_.encoding, NoneAttr) else f", {self.text(type_.encoding)}"
        return f"tensor<{sizes}{self.text(type_.element_type)}{encoding}>"

    def _function(self, type_: FunctionType) -> str:
        outputs = type_.outputs.data
        shown = self._list(outputs)
        if len(outputs) != 1 or isinstance(outputs[0], FunctionType):
            shown = f"({shown})"
        return f"({self._list(type_.inputs.data)}) -> {shown}"

    def _integer(self, attribute: IntegerAttr[Any]) -> str:
        type_ = attribute.type
        value = attribute.value.data
        if type_ == builtin.i1:
            return "true" if value else "false"
        return f"{value} : {self.text(type_)}"

    def _float(self, attribute: FloatAttr[Any]) -> str:
        value = attribute.value.data
        return f"{number_text(value, attribute.type)} : {self.text(attribute.type)}"

    def _array(self, attribute: DenseArrayBase[Any]) -> str:
        values = attribute.get_values()
        element = attribute.elt_type
        head = f"array<{self.text(element)}"
        if not values:
            return f"{head}>"
        if isinstance(element, IntegerType):
            is_flag = element == builtin.i1
            shown = [("true" if v else "false") if is_flag else str(v) for v in values]
        else:
            shown = [number_text(cast(float, v), element) for v in values]
        return f"{head}: {', '.join(shown)}>"

    def _foreign(self, attribute: Attribute) -> str:
        stream = io.StringIO()
        printer = _Inner(self, attribute, stream)
        printer.print_attribute(attribute)
        return stream.getvalue()


def number_text(value: float, type_: Attribute) -> str:
    """A number of a float type."""
    import numpy as np

    if isinstance(type_, builtin.Float64Type):
        array = np.array([value], np.float64)
        return text_of(value, int(array.view(np.uint64)[0]), F64)
    dtype = dtype_of(type_)
    array = np.array([value], np.float64).astype(dtype)
    bits = int(array.view(np.dtype(f"u{dtype.itemsize}"))[0])
    return text_of(float(array.astype(np.float64)[0]), bits, format_of(dtype))


class _Inner(XdslPrinter):
    """xDSL's printer for one attribute of a dialect; the attributes in it are ours to print."""

    def __init__(self, texts: AttributeTexts, outer: Attribute, stream: io.StringIO) -> None:
        super().__init__(stream=stream)
        self._own_texts = texts
        self._outer = outer

    def print_attribute(self, attribute: Attribute) -> None:
        """The outermost attribute by xDSL's rules, others by ours."""
        if attribute is self._outer:
            super().print_attribute(attribute)
        else:
            self.print_string(self._own_texts.text(attribute))
