"""The types of the stablehlo and quant dialects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import IntegerType, NoneAttr, Signedness
from xdsl.ir import Attribute, Data, Dialect, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from mlirhlo.dialects.stablehlo.float_text import float_text


@irdl_attr_definition
class TokenType(ParametrizedAttribute, TypeAttribute):
    """`!stablehlo.token`: orders side effects."""

    name = "stablehlo.token"


@irdl_attr_definition
class FutureType(Data[tuple[Attribute, ...]], TypeAttribute):
    """`!stablehlo.future<tensor<2xf32>>`: what an asynchronous operation will yield."""

    name = "stablehlo.future"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Attribute, ...]:
        """Reads `<type, …>`."""
        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parser.parse_type))

    def print_parameter(self, printer: Printer) -> None:
        """Prints `<type, …>`."""
        with printer.in_angle_brackets():
            printer.print_list(self.data, printer.print_attribute)


@dataclass(frozen=True, slots=True)
class UniformQuantization:
    """Numbers `(stored - zero_point) * scale`, for the whole tensor, by axis or by block."""

    storage_type: Attribute
    """Integer type: `i8` or `ui8`."""
    storage_min: int
    storage_max: int
    expressed_type: Attribute
    """The float type that is approximated."""
    scales: tuple[float, ...]
    """One scale; one for each index of the axis; or one for each block, in row-major order."""
    zero_points: tuple[int, ...]
    """As many as scales."""
    axis: int | None = None
    """The quantized dimension, for quantization by axis."""
    block_sizes: tuple[tuple[int, int], ...] = ()
    """Dimension and block size, for quantization by block."""
    block_shape: tuple[int, ...] = ()
    """Shape of `scales`, for quantization by block."""


@irdl_attr_definition
class UniformQuantizedType(Data[UniformQuantization], TypeAttribute):
    """`!quant.uniform<i8:f32, 5.000000e-01:3>`."""

    name = "quant.uniform"

    @property
    def storage_type(self) -> Attribute:
        """The integer type that is stored."""
        return self.data.storage_type

    @property
    def expressed_type(self) -> Attribute:
        """The float type that is approximated."""
        return self.data.expressed_type

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> UniformQuantization:
        """Reads `<storage:expressed, scale:zero_point>` and the forms by axis and by block."""
        with parser.in_angle_brackets():
            storage, low, high = _parse_storage(parser)
            parser.parse_punctuation(":")
            expressed = parser.parse_type()
            axis: int | None = None
            blocks: tuple[tuple[int, int], ...] = ()
            if parser.parse_optional_punctuation(":") is not None:
                axis = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
                if axis is None:
                    blocks = tuple(
                        parser.parse_comma_separated_list(
                            parser.Delimiter.BRACES, lambda: _parse_block(parser)
                        )
                    )
            parser.parse_punctuation(",")
            shape: tuple[int, ...] = ()
            pairs: list[tuple[float, int]] = []
            if axis is None and not blocks:
                pairs.append(_parse_scale(parser))
            else:
                start = parser.pos
                sizes: dict[int, set[int]] = {}
                _parse_scales(parser, pairs, sizes, 0)
                if any(len(found) != 1 for found in sizes.values()):
                    parser.raise_error("rows of scales have different lengths", start)
                shape = tuple(next(iter(sizes[depth])) for depth in sorted(sizes))
                if axis is not None and len(shape) != 1:
                    parser.raise_error("scales by axis are a plain list", start)
        return UniformQuantization(
            storage,
            low,
            high,
            expressed,
            tuple(scale for scale, _ in pairs),
            tuple(zero for _, zero in pairs),
            axis,
            blocks,
            shape if blocks else (),
        )

    def print_parameter(self, printer: Printer) -> None:
        """Prints the same."""
        printer.print_string(self.spelled())

    def spelled(self) -> str:
        """`<i8:f32, 5.000000e-01:3>`."""
        data = self.data
        parts = [f"<{_storage_text(data)}:{data.expressed_type}"]
        pairs = [
            float_text(scale) + (f":{zero}" if zero else "")
            for scale, zero in zip(data.scales, data.zero_points, strict=True)
        ]
        if data.axis is not None:
            parts.append(f":{data.axis}, {{{','.join(pairs)}}}")
        elif data.block_sizes:
            sizes = ", ".join(f"{dim}:{size}" for dim, size in data.block_sizes)
            for size in reversed(data.block_shape[1:]):
                pairs = [
                    f"{{{', '.join(pairs[begin : begin + size])}}}"
                    for begin in range(0, len(pairs), size)
                ]
            parts.append(f":{{{sizes}}}, {{{', '.join(pairs)}}}")
        else:
            parts.append(f", {pairs[0]}")
        return "".join(parts) + ">"


@dataclass(frozen=True, slots=True)
class AnyQuantization:
    """Stored integers of unknown meaning."""

    storage_type: Attribute
    storage_min: int
    storage_max: int
    expressed_type: Attribute | None = None


@irdl_attr_definition
class AnyQuantizedType(Data[AnyQuantization], TypeAttribute):
    """`!quant.any<i8:f32>`."""

    name = "quant.any"

    @property
    def storage_type(self) -> Attribute:
        """The integer type that is stored."""
        return self.data.storage_type

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> AnyQuantization:
        """Reads `<storage:expressed>`."""
        with parser.in_angle_brackets():
            storage, low, high = _parse_storage(parser)
            has_type = parser.parse_optional_punctuation(":") is not None
            return AnyQuantization(storage, low, high, parser.parse_type() if has_type else None)

    def print_parameter(self, printer: Printer) -> None:
        """Prints the same."""
        rest = "" if self.data.expressed_type is None else f":{self.data.expressed_type}"
        printer.print_string(f"<{_storage_text(self.data)}{rest}>")


@dataclass(frozen=True, slots=True)
class Calibration:
    """The range in which numbers were seen."""

    expressed_type: Attribute
    low: float
    high: float


@irdl_attr_definition
class CalibratedQuantizedType(Data[Calibration], TypeAttribute):
    """`!quant.calibrated<f32<-0.998:1.2321>>`."""

    name = "quant.calibrated"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Calibration:
        """Reads `<f32<min:max>>`."""
        with parser.in_angle_brackets():
            expressed = parser.parse_type()
            with parser.in_angle_brackets():
                low = float(parser.parse_number())
                parser.parse_punctuation(":")
                high = float(parser.parse_number())
        return Calibration(expressed, low, high)

    def print_parameter(self, printer: Printer) -> None:
        """Prints the same."""
        low, high = float_text(self.data.low), float_text(self.data.high)
        printer.print_string(f"<{self.data.expressed_type}<{low}:{high}>>")


def _parse_storage(parser: AttrParser) -> tuple[IntegerType, int, int]:
    start = parser.pos
    # `u8` is the quant dialect's own spelling of ui8.
    word = parser.parse_optional_keyword("u8")
    for width in () if word else (2, 4, 16, 32):
        word = word or parser.parse_optional_keyword(f"u{width}")
    if word is not None:
        type_ = IntegerType(int(word[1:]), Signedness.UNSIGNED)
    else:
        read = parser.parse_type()
        if not isinstance(read, IntegerType):
            parser.raise_error("the storage type is an integer type", start)
        type_ = cast(IntegerType, read)
    width = type_.width.data
    if width > 64:
        parser.raise_error("the storage type has at most 64 bits", start)
    low, high = _range(type_)
    if parser.parse_optional_punctuation("<") is not None:
        low = parser.parse_integer()
        parser.parse_punctuation(":")
        high = parser.parse_integer()
        parser.parse_punctuation(">")
    return type_, low, high


def _range(type_: IntegerType) -> tuple[int, int]:
    width = type_.width.data
    if type_.signedness.data is Signedness.UNSIGNED:
        return 0, (1 << width) - 1
    return -(1 << (width - 1)), (1 << (width - 1)) - 1


def _storage_text(data: UniformQuantization | AnyQuantization) -> str:
    type_ = cast(IntegerType, data.storage_type)
    unsigned = type_.signedness.data is Signedness.UNSIGNED
    text = f"{'u' if unsigned else 'i'}{type_.width.data}"
    if (data.storage_min, data.storage_max) != _range(type_):
        text += f"<{data.storage_min}:{data.storage_max}>"
    return text


def _parse_scale(parser: AttrParser) -> tuple[float, int]:
    scale = float(parser.parse_number())
    zero = 0
    if parser.parse_optional_punctuation(":") is not None:
        zero = parser.parse_integer()
    return scale, zero


def _parse_block(parser: AttrParser) -> tuple[int, int]:
    dimension = parser.parse_integer(allow_negative=False)
    parser.parse_punctuation(":")
    return dimension, parser.parse_integer(allow_negative=False)


def _parse_scales(
    parser: AttrParser, into: list[tuple[float, int]], sizes: dict[int, set[int]], depth: int
) -> None:
    """`{{1.0:1, 2.0}, {3.0, 4.0}}` of any depth; `sizes` collects the lengths found at each depth."""
    count = 0
    parser.parse_punctuation("{")
    nested = False
    while True:
        if _opens(parser):
            nested = True
            _parse_scales(parser, into, sizes, depth + 1)
        elif nested:
            parser.raise_error("expected '{'")
        else:
            into.append(_parse_scale(parser))
        count += 1
        if parser.parse_optional_punctuation(",") is None:
            break
    parser.parse_punctuation("}")
    sizes.setdefault(depth, set()).add(count)


def _opens(parser: AttrParser) -> bool:
    return parser.lexer.input.content[parser.pos : parser.pos + 1] == "{"


QUANT = Dialect("quant", [], [UniformQuantizedType, AnyQuantizedType, CalibratedQuantizedType])
"""The types of the quant dialect, as far as StableHLO uses it."""

TYPES: list[type[Attribute]] = [TokenType, FutureType]
"""The types of the stablehlo dialect."""

NO_ENCODING = NoneAttr()
