"""The builtin dialect's binary encoding of attributes and locations.

Source: MLIR's BuiltinDialectBytecode; the number of a code is its place in that list.
"""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    BytesAttr,
    CallSiteLoc,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    DictionaryAttr,
    FileLineColLoc,
    FloatAttr,
    FusedLoc,
    IndexType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    NameLoc,
    NoneAttr,
    Signedness,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute, TypeAttribute

from mlirhlo.dialects.stablehlo.elements import DenseAttr
from mlirhlo.dialects.stablehlo.locations import (
    FileRange,
    FileRangeLoc,
    call_loc,
    file_loc,
    fused_loc,
    is_location,
    name_loc,
)
from mlirhlo.formats.bytecode import dense
from mlirhlo.formats.bytecode.attributes import (
    DenseStringElementsAttr,
    DistinctAttr,
    SparseElementsAttr,
)
from mlirhlo.formats.bytecode.codec import Sink, Source
from mlirhlo.formats.bytecode.floats import bits_of, float_of, float_width

(
    ARRAY,
    DICTIONARY,
    STRING,
    STRING_WITH_TYPE,
    FLAT_SYMBOL,
    SYMBOL,
    TYPE,
    UNIT,
    INTEGER,
    FLOAT,
    CALL_SITE,
    FILE_LINE_COL,
    FUSED,
    FUSED_WITH_METADATA,
    NAME,
    UNKNOWN,
    DENSE_RESOURCE,
    DENSE_ARRAY,
    DENSE_ELEMENTS,
    DENSE_STRINGS,
    SPARSE,
    DISTINCT,
    FILE_RANGE,
) = range(23)

_UNIT = UnitAttr()
_UNKNOWN = UnknownLoc()


def integer_width(type_: Attribute) -> int | None:
    """Bits of an integer of that type_, None for what is no integer type_."""
    if isinstance(type_, IntegerType):
        return cast("IntegerType", type_).width.data
    return 64 if isinstance(type_, IndexType) else None


# ---------------------------------------------------------------- reading


def read(source: Source) -> Attribute:
    """Decodes an attribute or location."""
    code = source.varint()
    match code:
        case 0:
            return ArrayAttr(source.attributes())
        case 1:
            return DictionaryAttr(dict(source.many(lambda: _named(source))))
        case 2:
            return StringAttr(source.string())
        case 3:
            text = StringAttr(source.string())
            source.type()  # xDSL's strings have no type
            return text
        case 4:
            return SymbolRefAttr(source.string_attribute())
        case 5:
            return _symbol(source)
        case 6:
            return source.type()
        case 7:
            return _UNIT
        case 8:
            return _integer(source)
        case 9:
            return _float(source)
        case 10 | 11 | 12 | 13 | 14 | 15 | 22:
            return _location(code, source)
        case 16:
            type_ = source.type()
            made = cast("Any", DenseResourceAttr)(StringAttr(source.resource()), type_)
            return cast("Attribute", made)
        case 17:
            return _dense_array(source)
        case 18:
            return read_dense(source)
        case 19:
            return _strings(source)
        case 20:
            return SparseElementsAttr(source.type(), source.attribute(), source.attribute())
        case 21:
            return DistinctAttr(IntAttr(source.cursor.pos), source.attribute())
        case _:
            raise source.problem(f"the builtin dialect has no attribute of code {code}")


def _named(source: Source) -> tuple[str, Attribute]:
    return source.string_attribute().data, source.attribute()


def _symbol(source: Source) -> Attribute:
    root = source.string_attribute()
    nested: list[StringAttr] = []
    for reference in source.attributes():
        if not isinstance(reference, SymbolRefAttr):
            raise source.problem(f"a symbol is expected, this is {reference}")
        nested.append(reference.root_reference)
    return SymbolRefAttr(root, nested)


def _integer(source: Source) -> Attribute:
    type_ = source.type()
    width = integer_width(type_)
    if width is None or not width:
        raise source.problem(f"an integer of type {type_} cannot be")
    return integer_of(source.bits(width), type_)


def is_unsigned(type_: Attribute) -> bool:
    """Whether a type is an unsigned integer."""
    return (
        isinstance(type_, IntegerType)
        and cast("IntegerType", type_).signedness.data is Signedness.UNSIGNED
    )


def integer_of(value: int, type_: Attribute) -> Attribute:
    """The attribute of a value given as unsigned bits."""
    width = integer_width(type_)
    assert width is not None
    if not is_unsigned(type_) and value >> (width - 1):
        value -= 1 << width
    return cast("Attribute", cast("Any", IntegerAttr)(value, type_))


def _float(source: Source) -> Attribute:
    type_ = source.type()
    width = float_width(type_)
    if width is None:
        raise source.problem(f"a number of type {type_} cannot be")
    return FloatAttr(float_of(source.bits(width), type_), cast("Any", type_))


def _location(code: int, source: Source) -> Attribute:
    match code:
        case 10:
            return call_loc(_place(source), _place(source))
        case 11:
            name = source.string_attribute().data
            return file_loc(name, source.varint(), source.varint())
        case 12:
            return fused_loc(source.many(lambda: _place(source)), None)
        case 13:
            places = source.many(lambda: _place(source))
            return fused_loc(places, source.attribute())
        case 14:
            name, child = source.string_attribute().data, _place(source)
            return name_loc(name, None if isinstance(child, UnknownLoc) else child)
        case 15:
            return _UNKNOWN
        case _:
            name = source.string_attribute().data
            return _stretch(name, source.many(source.varint), source)


def _stretch(name: str, numbers: list[int], source: Source) -> Attribute:
    """A stretch of a file from line; line, column; these and end column; or end line before it."""
    if len(numbers) > 4:
        raise source.problem(f"a stretch of a file has {len(numbers)} numbers")
    if len(numbers) < 3:
        line, column = (*numbers, 0, 0)[:2]
        return file_loc(name, line, column)
    line, column, *end = numbers
    end_line, end_column = end if len(end) == 2 else (line, end[0])
    return FileRangeLoc(FileRange(name, line, column, end_line, end_column))


def _place(source: Source) -> Attribute:
    value = source.attribute()
    if not is_location(value):
        raise source.problem(f"a location is expected, this is {value}")
    return value


def _dense_array(source: Source) -> Attribute:
    type_ = source.type()
    size = source.varint()
    data = source.blob()
    width = integer_width(type_) or float_width(type_)
    if width is None or not isinstance(type_, TypeAttribute):
        raise source.problem(f"an array of {type_} cannot be")
    if len(data) != size * ((width + 7) // 8):
        raise source.problem(f"{len(data)} bytes do not make {size} elements of {type_}")
    return cast("Attribute", cast("Any", DenseArrayBase)(type_, BytesAttr(data)))


def read_dense(source: Source) -> Attribute:
    """Decodes type and buffer of dense elements."""
    type_ = source.type()
    try:
        return dense.from_buffer(type_, source.blob())
    except dense.BadElements as problem:
        raise source.problem(str(problem)) from None


def _strings(source: Source) -> Attribute:
    type_ = source.type()
    is_splat = source.varint()
    try:
        count = 1 if is_splat else dense.element_count(type_)
    except dense.BadElements as problem:
        raise source.problem(str(problem)) from None
    source.cursor.check(count)
    values = [StringAttr(source.string()) for _ in range(count)]
    return DenseStringElementsAttr(type_, ArrayAttr(values), IntAttr(is_splat))


# ---------------------------------------------------------------- writing


def write(value: Attribute, sink: Sink) -> bool:
    """Encodes an attribute or location; False for what has no binary encoding."""
    match value:
        case StringAttr():
            sink.varint(STRING)
            sink.string(value.data)
        case IntegerAttr():
            width = integer_width(value.type)
            if width is None:
                return False
            sink.varint(INTEGER)
            sink.type(value.type)
            sink.bits(value.value.data, width)
        case ArrayAttr():
            sink.varint(ARRAY)
            sink.attributes(value.data)
        case DictionaryAttr():
            sink.varint(DICTIONARY)
            sink.varint(len(value.data))
            for key in sorted(value.data):
                sink.attribute(StringAttr(key))
                sink.attribute(value.data[key])
        case SymbolRefAttr():
            nested = value.nested_references.data
            sink.varint(SYMBOL if nested else FLAT_SYMBOL)
            sink.attribute(value.root_reference)
            if nested:
                sink.attributes([SymbolRefAttr(name) for name in nested])
        case UnitAttr():
            sink.varint(UNIT)
        case FloatAttr():
            width = float_width(value.type)
            if width is None:
                return False
            sink.varint(FLOAT)
            sink.type(cast("Attribute", value.type))
            sink.bits(bits_of(value.value.data, value.type), width)
        case DenseArrayBase():
            data = value.data.data
            sink.varint(DENSE_ARRAY)
            sink.type(cast("Attribute", value.elt_type))
            sink.varint(len(data) // dense.element_size(cast("Attribute", value.elt_type)))
            sink.blob(data)
        case DenseAttr() | DenseIntOrFPElementsAttr():
            write_dense(value, sink, DENSE_ELEMENTS)
        case DenseResourceAttr():
            sink.varint(DENSE_RESOURCE)
            sink.type(cast("Attribute", value.type))
            sink.resource(value.resource_handle.data)
        case DenseStringElementsAttr():
            sink.varint(DENSE_STRINGS)
            sink.type(value.type)
            sink.varint(value.is_splat.data)
            for text in value.values.data:
                sink.string(text.data)
        case SparseElementsAttr():
            sink.varint(SPARSE)
            sink.type(value.type)
            sink.attribute(value.indices)
            sink.attribute(value.values)
        case DistinctAttr():
            sink.varint(DISTINCT)
            sink.attribute(value.value)
        case _:
            return _write_location(value, sink) or _write_type_attribute(value, sink)
    return True


def write_dense(value: Attribute, sink: Sink, code: int) -> None:
    """Encodes type and buffer of dense elements."""
    found = dense.raw_of(value)
    assert found is not None
    shaped, raw = found
    sink.varint(code)
    sink.type(shaped)
    sink.blob(dense.to_buffer(shaped, raw))


def _write_type_attribute(value: Attribute, sink: Sink) -> bool:
    if not isinstance(value, TypeAttribute):
        return False
    sink.varint(TYPE)
    sink.type(value)
    return True


def _write_location(value: Attribute, sink: Sink) -> bool:
    match value:
        case UnknownLoc():
            sink.varint(UNKNOWN)
        case FileLineColLoc():
            sink.varint(FILE_LINE_COL)
            sink.attribute(value.filename)
            sink.varint(value.line.data)
            sink.varint(value.column.data)
        case NameLoc():
            sink.varint(NAME)
            sink.attribute(value.desc)
            child = value.location
            sink.attribute(_UNKNOWN if isinstance(child, NoneAttr) else child)
        case CallSiteLoc():
            sink.varint(CALL_SITE)
            sink.attribute(value.callee)
            sink.attribute(value.caller)
        case FusedLoc():
            has_metadata = not isinstance(value.metadata, NoneAttr)
            sink.varint(FUSED_WITH_METADATA if has_metadata else FUSED)
            sink.attributes(cast("ArrayAttr[Attribute]", value.locations).data)
            if has_metadata:
                sink.attribute(value.metadata)
        case FileRangeLoc():
            data = value.data
            sink.varint(FILE_RANGE)
            sink.attribute(StringAttr(data.file))
            sink.varint(3 if data.line == data.end_line else 4)
            sink.varint(data.line)
            sink.varint(data.column)
            if data.line != data.end_line:
                sink.varint(data.end_line)
            sink.varint(data.end_column)
        case _:
            return False
    return True
