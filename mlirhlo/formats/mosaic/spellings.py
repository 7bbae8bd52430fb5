"""How attributes are spelled inside pretty forms: `[1, 0]` for `array<i64: 1, 0>`, `<sum>`, `slt` …"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    Signedness,
    StringAttr,
    UnitAttr,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute

from mlirhlo.dialects.stablehlo.opaque import OpaqueAttr
from mlirhlo.dialects.tpu.attributes import ENUMS
from mlirhlo.formats.stablehlo.attribute_text import string_text
from mlirhlo.formats.stablehlo.scan import BAD_VALUE

if TYPE_CHECKING:
    from mlirhlo.formats.mosaic.printer import KernelPrinter
    from mlirhlo.formats.mosaic.reader import KernelReader


@dataclass(frozen=True, slots=True)
class Spelling:
    """How an attribute is read and printed; `text` gives None for what it cannot spell."""

    read: Callable[[KernelReader], Attribute]
    text: Callable[[KernelPrinter, Attribute], str | None]
    words: Sequence[str] = ()
    """The words it may begin with, where it is optional."""

    def begins(self, reader: KernelReader) -> bool:
        """Whether one of its words stands here."""
        before = reader.pos
        found = reader.optional_keyword() in self.words
        reader.pos = before
        return found


_CASE = re.compile(r"<([^<>]*)>")
_INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_FLOAT_PREDICATES = (
    "false",
    "oeq",
    "ogt",
    "oge",
    "olt",
    "ole",
    "one",
    "ord",
    "ueq",
    "ugt",
    "uge",
    "ult",
    "ule",
    "une",
    "uno",
    "true",
)
_ATOMICS = (
    *("xchg", "add", "sub", "_and", "nand", "_or", "_xor", "max", "min", "umax", "umin"),
    *("fadd", "fsub", "fmax", "fmin", "uinc_wrap", "udec_wrap"),
)
_ORDERINGS = (
    *("not_atomic", "unordered", "monotonic", "-"),
    *("acquire", "release", "acq_rel", "seq_cst"),
)
_ROUNDINGS = ("to_nearest_even", "downward", "upward", "toward_zero", "to_nearest_away")


def _integer(type_: IntegerType) -> Spelling:
    def read(reader: KernelReader) -> Attribute:
        at = reader.skip()
        value = reader.integer()
        if not -(1 << 63) <= value < 1 << 63 or value.bit_length() > type_.width.data:
            reader.fail(f"{value} does not fit into {type_}", at, code=BAD_VALUE)
        return IntegerAttr(value, type_)

    def text(printer: KernelPrinter, attribute: Attribute) -> str | None:
        del printer
        if not isinstance(attribute, IntegerAttr):
            return None
        return str(cast(Any, attribute).value.data)

    return Spelling(read, text)


def _word(reader: KernelReader, words: Sequence[str], type_: IntegerType) -> Attribute:
    at = reader.skip()
    word = reader.keyword()
    if word not in words:
        reader.fail(f"'{word}' is none of {', '.join(words)}", at, length=len(word), code=BAD_VALUE)
    return IntegerAttr(words.index(word), type_)


def _words(words: Sequence[str], type_: IntegerType) -> Spelling:
    def text(printer: KernelPrinter, attribute: Attribute) -> str | None:
        del printer
        if not isinstance(attribute, IntegerAttr):
            return None
        number: int = cast(Any, attribute).value.data
        return words[number] if 0 <= number < len(words) else None

    return Spelling(lambda reader: _word(reader, words, type_), text, words)


def _comma_list(reader: KernelReader, item: Callable[[], int]) -> list[int]:
    found: list[int] = []
    reader.need("[")
    if not reader.accept("]"):
        found.append(item())
        while reader.accept(","):
            found.append(item())
        reader.need("]")
    return found


def _array(element: IntegerType) -> Spelling:
    def read(reader: KernelReader) -> Attribute:
        at = reader.skip()
        item = reader.boolean if element == i1 else reader.integer
        found = _comma_list(reader, item)
        if any(int(value).bit_length() >= max(2, element.width.data) for value in found):
            reader.fail(f"a number here does not fit into {element}", at, code=BAD_VALUE)
        return DenseArrayBase.from_list(element, found)

    def text(printer: KernelPrinter, attribute: Attribute) -> str | None:
        del printer
        if not isinstance(attribute, DenseArrayBase):
            return None
        values: tuple[Any, ...] = cast(Any, attribute).get_values()
        shown = ("true" if v else "false" for v in values) if element == i1 else map(str, values)
        return f"[{', '.join(shown)}]"

    return Spelling(read, text)


def _read_list(reader: KernelReader) -> Attribute:
    return ArrayAttr([IntegerAttr(v, i64) for v in _comma_list(reader, reader.integer)])


def _list_text(printer: KernelPrinter, attribute: Attribute) -> str | None:
    return printer.attribute(attribute) if attribute.name == "array" else None


def _text_text(printer: KernelPrinter, attribute: Attribute) -> str | None:
    del printer
    return string_text(attribute.data) if isinstance(attribute, StringAttr) else None


def _bool_text(printer: KernelPrinter, attribute: Attribute) -> str | None:
    return printer.attribute(attribute) if attribute.name == "integer" else None


def _case(name: str) -> Spelling:
    """`<word>` for `#name<word>`."""

    def read(reader: KernelReader) -> Attribute:
        at = reader.skip()
        match = _CASE.match(reader.text, at)
        if match is None:
            reader.expected("'<' and a word")
        reader.pos = match.end()
        own = ENUMS.get(name)
        word = match[1].strip()
        if own is not None:
            # The compiler's own ops have kinds that the dialect has not.
            return own(word) if word in own.cases else OpaqueAttr(f"#{name}<{word}>")
        return reader.small_attribute(f"#{name}<{word}>", at)

    def text(printer: KernelPrinter, attribute: Attribute) -> str | None:
        shown = printer.attribute(attribute)
        prefix = f"#{name}"
        return shown.removeprefix(prefix) if shown.startswith(prefix) else None

    return Spelling(read, text)


def _flag_word(word: str) -> Spelling:
    """A word that stands there, or not."""

    def read(reader: KernelReader) -> Attribute:
        reader.need_word(word)
        return UnitAttr()

    return Spelling(read, lambda printer, attribute: word, (word,))


def _enum_word(dialect: str, mnemonic: str) -> Spelling:
    """`word` for `#dialect<mnemonic word>`."""

    def read(reader: KernelReader) -> Attribute:
        at = reader.skip()
        return reader.small_attribute(f"#{dialect}<{mnemonic} {reader.keyword()}>", at)

    def text(printer: KernelPrinter, attribute: Attribute) -> str | None:
        shown = printer.attribute(attribute)
        prefix = f"#{dialect}<{mnemonic} "
        return shown[len(prefix) : -1] if shown.startswith(prefix) else None

    return Spelling(read, text)


def _read_nested(reader: KernelReader) -> Attribute:
    found: list[Attribute] = []
    reader.need("[")
    while not reader.accept("]"):
        found.append(_read_list(reader))
        reader.accept(",")
    return ArrayAttr(found)


_MAP = re.compile(r"\([^()]*\) -> \([^()]*\)")


def _read_map(reader: KernelReader) -> Attribute:
    at = reader.skip()
    match = _MAP.match(reader.text, at)
    if match is None:
        reader.expected("a permutation: (d0, d1) -> (d1, d0)")
    reader.pos = match.end()
    return reader.small_attribute(f"affine_map<{match[0]}>", at)


def _map_text(printer: KernelPrinter, attribute: Attribute) -> str | None:
    del printer
    return str(attribute.data) if isinstance(attribute, AffineMapAttr) else None


def _quoted(words: Sequence[str], type_: IntegerType) -> Spelling:
    plain = _words(words, type_)

    def read(reader: KernelReader) -> Attribute:
        at = reader.skip()
        word = reader.string()
        if word not in words:
            reader.fail(f"'{word}' is none of {', '.join(words)}", at, code=BAD_VALUE)
        return IntegerAttr(words.index(word), type_)

    def text(printer: KernelPrinter, attribute: Attribute) -> str | None:
        found = plain.text(printer, attribute)
        return None if found is None else f'"{found}"'

    return Spelling(read, text)


_SPELLINGS: dict[str, Spelling] = {
    "i32": _integer(i32),
    "i64": _integer(i64),
    "nested": Spelling(_read_nested, _list_text),
    "map": Spelling(_read_map, _map_text),
    "atomic": _words(_ATOMICS, i64),
    "ordering": _words(_ORDERINGS, i64),
    "asm_dialect": _words(("att", "intel"), i64),
    "icmp": _quoted(_INTEGER_PREDICATES, i64),
    "si32": _integer(IntegerType(32, Signedness.SIGNED)),
    "i32s": _array(i32),
    "i64s": _array(i64),
    "flags": _array(i1),
    "list": Spelling(_read_list, _list_text),
    "text": Spelling(lambda reader: StringAttr(reader.string()), _text_text),
    "bool": Spelling(lambda reader: BoolAttr.from_bool(reader.boolean()), _bool_text),
    "attribute": Spelling(
        lambda reader: reader.attribute(), lambda printer, attribute: printer.attribute(attribute)
    ),
    "cmpi": _words(_INTEGER_PREDICATES, i64),
    "cmpf": _words(_FLOAT_PREDICATES, i64),
    "rounding": _words(_ROUNDINGS, i32),
}


@lru_cache(maxsize=1024)
def spelling(kind: str) -> Spelling:
    """The spelling of a kind in a pretty form."""
    first, _, rest = kind.partition(".")
    match first:
        case "case":
            return _case(rest)
        case "word":
            return _flag_word(rest)
        case "of":
            dialect, _, mnemonic = rest.partition(".")
            return _enum_word(dialect, mnemonic)
        case _:
            return _SPELLINGS[kind]
