"""Kinds of attribute values: how one is read from HLO text, and what it is in the IR.

A row of the opcode table names the kind of each attribute; the reader, the printer, the MLIR form
and the docs get the syntax from here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    f64,
)
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition

from mlirhlo.dialects.hlo.attributes.aliasing import OutputOperandAliasesAttr
from mlirhlo.dialects.hlo.attributes.annotations import (
    FrontendAttributesAttr,
    MetadataAttr,
    OriginAttr,
    ResultAccuracyAttr,
    StatisticsAttr,
    format_g,
)
from mlirhlo.dialects.hlo.attributes.base import (
    TextAttr,
    bool_of,
    boolean,
    int_of,
    integer,
    integers,
    ints,
    str_of,
    string,
    symbol,
    symbols_of,
)
from mlirhlo.dialects.hlo.attributes.dimensions import (
    ConvolutionDimensionNumbersAttr,
    PaddingAttr,
    SliceAttr,
    SparsityConfigAttr,
    WindowAttr,
)
from mlirhlo.dialects.hlo.attributes.groups import ReplicaGroupsAttr
from mlirhlo.dialects.hlo.attributes.header import BooleansAttr, RawTextAttr, read_raw_braces
from mlirhlo.dialects.hlo.attributes.sharding import Sharding, ShardingAttr, read_sharding
from mlirhlo.dialects.hlo.literal import LiteralAttr
from mlirhlo.dialects.hlo.shapes import Shape, read_shape
from mlirhlo.dialects.hlo.syntax import Cursor, SyntaxProblem, braces, is_json_dictionary, quote
from mlirhlo.dialects.hlo.types import shape_of, type_of


@dataclass(frozen=True, slots=True)
class AttrKind:
    """How values of one kind are read from HLO text and written back."""

    name: str
    """For documentation and messages."""
    attribute: type[Attribute]
    """Class of the IR attribute."""
    read: Callable[[Cursor], Attribute]
    """Reads a value; raises `SyntaxProblem`."""
    write: Callable[[Attribute], str]
    """Text of a value, as XLA prints it."""
    names_computations: bool = False
    """Whether values are references to computations (never memoised, resolved by the reader)."""


def text_kind(attribute: type[TextAttr[Any]]) -> AttrKind:
    """The kind of a `TextAttr` class."""
    read = attribute.read
    return AttrKind(
        attribute.name.removeprefix("hlo."),
        attribute,
        lambda cursor: attribute(read(cursor)),
        lambda value: str(cast("Data[Any]", value).data),
    )


def _integer_lists(cursor: Cursor) -> tuple[tuple[int, ...], ...]:
    return cursor.items("{", "}", cursor.integers)


class _IntegerListsValue(tuple[tuple[int, ...], ...]):
    def __str__(self) -> str:
        return "{" + ",".join(map(braces, self)) + "}"


def _read_integer_lists(cursor: Cursor) -> _IntegerListsValue:
    return _IntegerListsValue(_integer_lists(cursor))


@irdl_attr_definition
class IntegerListsAttr(TextAttr[tuple[tuple[int, ...], ...]]):
    """`{{0,1},{2,3}}`."""

    name = "hlo.integer_lists"
    read = _read_integer_lists

    @staticmethod
    def of(lists: tuple[tuple[int, ...], ...]) -> IntegerListsAttr:
        """From a tuple of tuples."""
        return IntegerListsAttr(_IntegerListsValue(lists))


@dataclass(frozen=True, slots=True)
class Domain:
    """`{kind="sharding", entry={…}, exit={…}}`; in protos entry and exit are crossed."""

    entry: Sharding
    exit: Sharding

    def __str__(self) -> str:
        return f'{{kind="sharding", entry={self.entry}, exit={self.exit}}}'


def read_domain(cursor: Cursor) -> Domain:
    """Reads a domain; blanks or commas between entries. Raises `SyntaxProblem`."""
    cursor.expect("{")
    sides: dict[str, Sharding] = {}
    while not cursor.accept("}"):
        start = cursor.skip()
        key = cursor.word("kind, entry or exit")
        cursor.expect("=")
        if key == "kind":
            if cursor.string() != "sharding":
                raise SyntaxProblem(start, 'only domains of kind "sharding" exist')
        elif key in ("entry", "exit"):
            sides[key] = read_sharding(cursor)
        else:
            raise SyntaxProblem(
                start,
                f'unexpected attribute "{key}". Allowed attributes: entry, exit, kind',
                len(key),
            )
        cursor.accept(",")
    if sides.keys() != {"entry", "exit"}:
        raise cursor.problem("a domain needs entry and exit")
    return Domain(sides["entry"], sides["exit"])


@irdl_attr_definition
class DomainAttr(TextAttr[Domain]):
    """A `Domain`."""

    name = "hlo.domain"
    read = read_domain


def words(name: str, *allowed: str, ignore_case: bool = False) -> AttrKind:
    """One of a fixed set of words, kept as a string attribute in its canonical spelling."""
    table = {word.lower() if ignore_case else word: word for word in allowed}

    def read(cursor: Cursor) -> Attribute:
        start = cursor.skip()
        word = cursor.word(f"one of {', '.join(allowed)}")
        found = table.get(word.lower() if ignore_case else word)
        if found is None:
            raise SyntaxProblem(
                start, f"expects {name} but sees: {word}; one of {', '.join(allowed)}", len(word)
            )
        return string(found)

    return AttrKind(name, StringAttr, read, str_of)


def _read_float(cursor: Cursor) -> Attribute:
    return FloatAttr(cursor.number(), f64)


def _read_bytes(cursor: Cursor) -> Attribute:
    return string(cursor.json_dictionary() if cursor.peek("{") else cursor.string())


def _write_bytes(value: Attribute) -> str:
    text = str_of(value)
    return text if is_json_dictionary(text) else quote(text)


def _read_computation(cursor: Cursor) -> Attribute:
    return symbol(cursor.name())


def _read_computations(cursor: Cursor) -> Attribute:
    if not cursor.peek("{"):
        return ArrayAttr([symbol(cursor.name())])
    return ArrayAttr([symbol(name) for name in cursor.items("{", "}", cursor.name)])


@functools.lru_cache(maxsize=4096)
def shape_attribute(shape: Shape) -> Attribute:
    """A shape as an attribute: its MLIR type."""
    return type_of(shape)


def _read_shapes(cursor: Cursor) -> Attribute:
    return ArrayAttr([type_of(s) for s in cursor.items("{", "}", lambda: read_shape(cursor))])


INTEGERS = AttrKind(
    "integers", DenseArrayBase, lambda c: integers(c.integers()), lambda v: braces(ints(v))
)
INTEGER_LISTS = AttrKind(
    "integer_lists",
    IntegerListsAttr,
    lambda c: IntegerListsAttr(IntegerListsAttr.read(c)),
    lambda v: str(cast(IntegerListsAttr, v).data),
)
INTEGER = AttrKind("integer", IntegerAttr, lambda c: integer(c.integer()), lambda v: str(int_of(v)))
BOOLEAN = AttrKind(
    "boolean",
    IntegerAttr,
    lambda c: boolean(c.boolean()),
    lambda v: "true" if bool_of(v) else "false",
)
FLOAT = AttrKind(
    "float", FloatAttr, _read_float, lambda v: format_g(cast("FloatAttr[Any]", v).value.data)
)
STRING = AttrKind("string", StringAttr, lambda c: string(c.string()), lambda v: quote(str_of(v)))
BYTES = AttrKind("bytes", StringAttr, _read_bytes, _write_bytes)
"""Opaque bytes: printed bare when they are one JSON dictionary, else quoted."""
COMPUTATION = AttrKind(
    "computation",
    SymbolRefAttr,
    _read_computation,
    lambda v: "%" + symbols_of(v)[0],
    names_computations=True,
)
COMPUTATIONS = AttrKind(
    "computations",
    ArrayAttr,
    _read_computations,
    lambda v: "{" + ", ".join("%" + name for name in symbols_of(v)) + "}",
    names_computations=True,
)
SHAPE = AttrKind(
    "shape", Attribute, lambda c: shape_attribute(read_shape(c)), lambda v: str(shape_of(v))
)
SHAPES = AttrKind(
    "shapes",
    ArrayAttr,
    _read_shapes,
    lambda v: "{" + ", ".join(str(shape_of(t)) for t in cast("ArrayAttr[Attribute]", v).data) + "}",
)
_PRECISION = words("precision", "default", "high", "highest", ignore_case=True)


def _read_precisions(cursor: Cursor) -> Attribute:
    return ArrayAttr(cursor.items("{", "}", lambda: _PRECISION.read(cursor)))


PRECISIONS = AttrKind(
    "precisions",
    ArrayAttr,
    _read_precisions,
    lambda v: "{" + ",".join(str_of(p) for p in cast("ArrayAttr[Attribute]", v).data) + "}",
)

WINDOW = text_kind(WindowAttr)
OPTIONAL_WINDOW = replace(WINDOW, name="optional window")
"""A window whose presence counts: `window={}` is not the same as no window."""
PADDING = text_kind(PaddingAttr)
SLICE = text_kind(SliceAttr)
DIM_LABELS = text_kind(ConvolutionDimensionNumbersAttr)
SPARSITY_CONFIG = text_kind(SparsityConfigAttr)
REPLICA_GROUPS = text_kind(ReplicaGroupsAttr)
SHARDING = text_kind(ShardingAttr)
DOMAIN = text_kind(DomainAttr)
OUTPUT_OPERAND_ALIASES = text_kind(OutputOperandAliasesAttr)
LITERAL = text_kind(LiteralAttr)
METADATA = text_kind(MetadataAttr)
FRONTEND_ATTRIBUTES = text_kind(FrontendAttributesAttr)
STATISTICS = text_kind(StatisticsAttr)
ORIGIN = text_kind(OriginAttr)
RESULT_ACCURACY = text_kind(ResultAccuracyAttr)
BOOLEANS = text_kind(BooleansAttr)
RAW = AttrKind(
    "raw",
    RawTextAttr,
    lambda cursor: RawTextAttr(read_raw_braces(cursor)),
    lambda v: str(cast(RawTextAttr, v).data),
)
RAW_OR_WORD = text_kind(RawTextAttr)

DIRECTION = words("comparison direction", "EQ", "NE", "GE", "GT", "LE", "LT")
COMPARISON_TYPE = words("comparison type", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED")
COMPARISON_ORDER = words("comparison order", "PARTIAL", "TOTAL")
FFT_TYPE = words("fft type", "FFT", "IFFT", "RFFT", "IRFFT")
FUSION_KIND = words("fusion kind", "kLoop", "kInput", "kOutput", "kCustom")
DISTRIBUTION = words("random distribution", "rng_uniform", "rng_normal", ignore_case=True)
RNG_ALGORITHM = words(
    "random algorithm", "rng_default", "rng_three_fry", "rng_philox", ignore_case=True
)
TRANSPOSE = words("transpose", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")
PADDING_TYPE = words("padding type", "PADDING_INVALID", "PADDING_VALID", "PADDING_SAME")
SCHEDULE = words(
    "schedule", "SCHEDULE_NONE", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST", ignore_case=True
)
API_VERSION = words(
    "API version",
    "API_VERSION_UNSPECIFIED",
    "API_VERSION_ORIGINAL",
    "API_VERSION_STATUS_RETURNING",
    "API_VERSION_STATUS_RETURNING_UNIFIED",
    "API_VERSION_TYPED_FFI",
    ignore_case=True,
)
CONVOLUTION_KIND = words("convolution kind", "unset", "fprop", "dgrad", "wgrad")
COLLECTIVE_MODE = words(
    "collective mode",
    "cross_replica",
    "cross_partition",
    "cross_replica_and_partition",
    "flattened_id",
)
DOT_ALGORITHM = words(
    "dot algorithm",
    "unset",
    "dot_any_f8_any_f8_f32",
    "dot_any_f8_any_f8_f32_fast_accum",
    "dot_f16_f16_f16",
    "dot_f16_f16_f32",
    "dot_bf16_bf16_bf16",
    "dot_bf16_bf16_f32",
    "dot_bf16_bf16_f32_x3",
    "dot_bf16_bf16_f32_x6",
    "dot_tf32_tf32_f32",
    "dot_tf32_tf32_f32_x3",
    "dot_f32_f32_f32",
    "dot_f64_f64_f64",
    "dot_bf16_bf16_f32_x9",
    "dot_bf16_bf16_fp8x3",
    "dot_bf16_bf16_fp8x4",
    ignore_case=True,
)
"""In the order of the proto enum."""
