"""The fields of pretty forms that show a property."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IntegerAttr,
    SymbolRefAttr,
    TensorType,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute

from mlirhlo.dialects.hlo.attributes.base import boolean, integer, integers, ints, string
from mlirhlo.dialects.stablehlo import attributes as stablehlo
from mlirhlo.dialects.stablehlo.elements import array_of, dense
from mlirhlo.dialects.stablehlo.op_classes import TableOp
from mlirhlo.dialects.stablehlo.structs import EnumAttr, TextualAttr, spell_ints
from mlirhlo.formats.stablehlo.foreign import Bridge
from mlirhlo.formats.stablehlo.scan import BAD_VALUE

if TYPE_CHECKING:
    from mlirhlo.formats.stablehlo.printer import Printer
    from mlirhlo.formats.stablehlo.reader import Reader
    from mlirhlo.formats.stablehlo.templates import Draft


@dataclass(frozen=True, slots=True)
class FieldForm:
    """How a field is read into a draft, and printed."""

    read: Callable[[Reader, str, Draft], None]
    text: Callable[[Printer, TableOp, list[str]], str]
    shows: Callable[[str], list[str]] = lambda name: name.split("+")
    """The properties a field shows, from its name in the template."""


def _one(
    read: Callable[[Reader, str, Draft], Attribute], text: Callable[[Printer, Any], str]
) -> FieldForm:
    """A field of one property."""

    def read_into(reader: Reader, name: str, draft: Draft) -> None:
        draft.properties[name] = read(reader, name, draft)

    def show(printer: Printer, op: TableOp, names: list[str]) -> str:
        return text(printer, op.properties[names[0]])

    return FieldForm(read_into, show)


def read_ints(reader: Reader) -> tuple[int, ...]:
    """`[1, 2]`."""
    reader.need("[")
    found: list[int] = []
    if reader.accept("]"):
        return ()
    found.append(reader.integer())
    while reader.accept(","):
        found.append(reader.integer())
    reader.need("]")
    for number in found:
        if not -(1 << 63) <= number < 1 << 63:
            reader.fail(f"{number} does not fit into 64 bits", code=BAD_VALUE)
    return tuple(found)


def _read_i64(reader: Reader, name: str, draft: Draft) -> Attribute:
    del name, draft
    number = reader.integer()
    if not -(1 << 63) <= number < 1 << 63:
        reader.fail(f"{number} does not fit into 64 bits", code=BAD_VALUE)
    return integer(number)


def _read_i32(reader: Reader, name: str, draft: Draft) -> Attribute:
    del name, draft
    number = reader.integer()
    if not -(1 << 31) <= number < 1 << 32:
        reader.fail(f"{number} does not fit into 32 bits", code=BAD_VALUE)
    return IntegerAttr(number, i32)


_WORDS: dict[str, type[EnumAttr]] = {
    cls.__name__: cls
    for cls in (
        stablehlo.ComparisonDirectionAttr,
        stablehlo.ComparisonTypeAttr,
        stablehlo.FftTypeAttr,
        stablehlo.RngAlgorithmAttr,
        stablehlo.RngDistributionAttr,
    )
}
_INTERNED: dict[tuple[type[EnumAttr], str], EnumAttr] = {}


def _word(reader: Reader, cls: type[EnumAttr]) -> EnumAttr:
    at = reader.skip()
    word = reader.keyword()
    known = _INTERNED.get((cls, word))
    if known is None:
        if word not in cls.cases:
            what = cls.name.rpartition(".")[2]
            reader.fail(
                f"{what} is one of {', '.join(cls.cases)}, not '{word}'", at, length=len(word)
            )
        known = _INTERNED[cls, word] = cls(word)
    return known


def _read_word(reader: Reader, name: str, draft: Draft) -> Attribute:
    return _word(reader, _WORDS[draft.row.by_name[name].kind])


def _read_words(reader: Reader, name: str, draft: Draft) -> Attribute:
    del name, draft
    reader.need("[")
    found: list[EnumAttr] = []
    if not reader.accept("]"):
        found.append(_word(reader, stablehlo.PrecisionAttr))
        while reader.accept(","):
            found.append(_word(reader, stablehlo.PrecisionAttr))
        reader.need("]")
    return ArrayAttr(found)


def _words_text(printer: Printer, value: Any) -> str:
    del printer
    return f"[{', '.join(cast(EnumAttr, v).data for v in value.data)}]"


def _read_symbol(reader: Reader, name: str, draft: Draft) -> Attribute:
    del name, draft
    return string(reader.symbol())


def _symbol_text(printer: Printer, value: Any) -> str:
    return printer.symbol_text(
        value.root_reference.data if isinstance(value, SymbolRefAttr) else value.data
    )


# ---------------------------------------------------------------- dot_general


def _read_dot(reader: Reader, name: str, draft: Draft) -> Attribute:
    del name, draft
    batching: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    contracting = batching
    if reader.accept_word("batching_dims"):
        batching = _read_cross(reader)
        reader.need(",")
    reader.need_word("contracting_dims")
    contracting = _read_cross(reader)
    return stablehlo.DotDimensionNumbersAttr(
        stablehlo.DotDimensionNumbers(batching[0], batching[1], contracting[0], contracting[1])
    )


def _read_cross(reader: Reader) -> tuple[tuple[int, ...], tuple[int, ...]]:
    reader.need("=")
    lhs = read_ints(reader)
    reader.need("x")
    return lhs, read_ints(reader)


def _dot_text(printer: Printer, value: Any) -> str:
    del printer
    data: stablehlo.DotDimensionNumbers = value.data
    text = (
        f"contracting_dims = {spell_ints(data.lhs_contracting_dimensions)}"
        f" x {spell_ints(data.rhs_contracting_dimensions)}"
    )
    if data.lhs_batching_dimensions or data.rhs_batching_dimensions:
        text = (
            f"batching_dims = {spell_ints(data.lhs_batching_dimensions)}"
            f" x {spell_ints(data.rhs_batching_dimensions)}, {text}"
        )
    return text


def _read_short(reader: Reader, name: str, draft: Draft) -> Attribute:
    del name, draft
    if reader.at("#"):
        return reader.attribute()
    with Bridge.over(reader) as bridge:
        return stablehlo.DotAlgorithmAttr(stablehlo.DotAlgorithmAttr.parse_parameter(bridge))


# ---------------------------------------------------------------- convolution


def _read_conv(reader: Reader, name: str, draft: Draft) -> Attribute:
    del name, draft
    with Bridge.over(reader) as bridge:
        numbers = stablehlo.parse_conv_dimension_numbers(bridge)
    return stablehlo.ConvDimensionNumbersAttr(numbers)


WINDOW = {
    "stride": "window_strides",
    "pad": "padding",
    "lhs_dilate": "lhs_dilation",
    "rhs_dilate": "rhs_dilation",
    "reverse": "window_reversal",
}
"""What the parts of a window are called in the pretty form."""


def _read_window(reader: Reader, name: str, draft: Draft) -> None:
    del name
    reader.need("{")
    if reader.accept("}"):
        return
    while True:
        at = reader.skip()
        word = reader.keyword()
        own = WINDOW.get(word)
        if own is None or own in draft.properties:
            reader.fail(f"a window has no '{word}' here", at, length=len(word))
        reader.need("=")
        if word == "pad":
            draft.properties[own] = _read_pairs(reader)
        elif word == "reverse":
            draft.properties[own] = DenseArrayBase.from_list(i1, _read_flags(reader))
        else:
            draft.properties[own] = integers(read_ints(reader))
        if not reader.accept(","):
            break
    reader.need("}")


def _read_pairs(reader: Reader) -> Attribute:
    import numpy as np

    at = reader.skip()
    reader.need("[")
    pairs: list[tuple[int, ...]] = []
    if not reader.accept("]"):
        pairs.append(read_ints(reader))
        while reader.accept(","):
            pairs.append(read_ints(reader))
        reader.need("]")
    if any(len(pair) != 2 for pair in pairs):
        reader.fail("padding has two numbers for each dimension", at, code=BAD_VALUE)
    type_ = TensorType(i64, [len(pairs), 2])
    return dense(np.array(pairs, np.int64).reshape(len(pairs), 2), type_)


def _read_flags(reader: Reader) -> list[int]:
    reader.need("[")
    found: list[int] = []
    while not reader.accept("]"):
        number = reader.optional_integer()
        found.append(int(reader.boolean()) if number is None else int(number != 0))
        if not reader.accept(","):
            reader.need("]")
            break
    return found


def _window_text(printer: Printer, op: TableOp, names: list[str]) -> str:
    del names
    parts: list[str] = []
    for word, own in WINDOW.items():
        value = op.properties.get(own)
        if value is None:
            continue
        if word == "pad":
            shown = str(array_of(value).tolist())
        elif word == "reverse":
            flags = cast("DenseArrayBase[Any]", value).get_values()
            shown = f"[{', '.join('true' if v else 'false' for v in flags)}]"
        else:
            shown = spell_ints(ints(value))
        parts.append(f"{word} = {shown}")
    del printer
    return f"{{{', '.join(parts)}}}"


# ---------------------------------------------------------------- slice, reduce_precision

_BITS = re.compile(r"e([0-9]{1,9})m([0-9]{1,9})")


def _read_bits(reader: Reader, name: str, draft: Draft) -> None:
    match = _BITS.match(reader.text, reader.skip())
    if match is None:
        reader.expected("exponent and mantissa bits, such as e5m10")
    reader.pos = match.end()
    for own, digits in zip(name.split("+"), match.groups(), strict=True):
        draft.properties[own] = IntegerAttr(int(digits), i32)


def _bits_text(printer: Printer, op: TableOp, names: list[str]) -> str:
    del printer
    exponent, mantissa = (cast("IntegerAttr[Any]", op.properties[n]).value.data for n in names)
    return f"e{exponent}m{mantissa}"


def _read_ranges(reader: Reader, name: str, draft: Draft) -> None:
    reader.need("[")
    starts: list[int] = []
    limits: list[int] = []
    strides: list[int] = []
    while not reader.accept("]"):
        starts.append(reader.integer())
        reader.need(":")
        limits.append(reader.integer())
        strides.append(reader.integer() if reader.accept(":") else 1)
        if not reader.accept(","):
            reader.need("]")
            break
    for own, numbers in zip(name.split("+"), (starts, limits, strides), strict=True):
        if any(not -(1 << 63) <= n < 1 << 63 for n in numbers):
            reader.fail("these bounds do not fit into 64 bits", code=BAD_VALUE)
        draft.properties[own] = integers(tuple(numbers))


def _ranges_text(printer: Printer, op: TableOp, names: list[str]) -> str:
    del printer
    starts, limits, strides = (ints(op.properties[n]) for n in names)
    parts = [
        f"{start}:{limit}" + (f":{stride}" if stride != 1 else "")
        for start, limit, stride in zip(starts, limits, strides, strict=False)
    ]
    return f"[{', '.join(parts)}]"


def _number_text(printer: Printer, value: Any) -> str:
    del printer
    return str(value.value.data)


def _text(printer: Printer, value: Any) -> str:
    return printer.attribute(value)


def _data_text(printer: Printer, value: Any) -> str:
    del printer
    return cast("EnumAttr", value).data


def _spelled_text(printer: Printer, value: Any) -> str:
    del printer
    return cast("TextualAttr[Any]", value).spelled()


FIELDS = {
    "bits": FieldForm(_read_bits, _bits_text),
    "bool": _one(lambda r, n, d: boolean(r.boolean()), _text),
    "conv": _one(_read_conv, lambda p, v: str(v.data)),
    "dot": _one(_read_dot, _dot_text),
    "i32": _one(_read_i32, _number_text),
    "i64": _one(_read_i64, _number_text),
    "ints": _one(lambda r, n, d: integers(read_ints(r)), lambda p, v: spell_ints(ints(v))),
    "ranges": FieldForm(_read_ranges, _ranges_text),
    "short": _one(_read_short, _spelled_text),
    "str": _one(lambda r, n, d: string(r.string()), _text),
    "symbol": _one(_read_symbol, _symbol_text),
    "window": FieldForm(_read_window, _window_text, lambda name: list(WINDOW.values())),
    "word": _one(_read_word, _data_text),
    "words": _one(_read_words, _words_text),
}
"""Fields by the kind after the colon in templates."""
