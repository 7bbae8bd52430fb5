"""Attributes and types of the `mosaic_gpu` dialect."""

from __future__ import annotations

from typing import TypeVar

from xdsl.ir import Data, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from mlirhlo.dialects.mosaic_gpu.values import Replicated, SplatLayout, StridedLayout, TiledLayout

Value = TypeVar("Value")
_SQUARE = AttrParser.Delimiter.SQUARE
_SWIZZLES = (16, 32, 64, 128)


class _Spelled(Data[Value]):
    """An attribute whose text between angle brackets is `str` of its value."""

    def print_parameter(self, printer: Printer) -> None:
        """Prints `<value>`."""
        printer.print_string(f"<{self.data}>")


def _integer(parser: AttrParser) -> int:
    return parser.parse_integer(allow_boolean=False, allow_negative=True)


def _integers(parser: AttrParser) -> tuple[int, ...]:
    found: list[int] = parser.parse_comma_separated_list(_SQUARE, lambda: _integer(parser))
    return tuple(found)


def _entry(parser: AttrParser, name: str) -> None:
    """`, name =`."""
    parser.parse_punctuation(",")
    parser.parse_keyword(name)
    parser.parse_punctuation("=")


def _dimension(parser: AttrParser) -> int | Replicated:
    number = parser.parse_optional_integer(allow_boolean=False, allow_negative=True)
    if number is not None:
        return number
    attribute = parser.parse_attribute()
    if not isinstance(attribute, ReplicatedAttr):
        parser.raise_error("expected a dimension or #mosaic_gpu.Replicated<times = …>")
    return attribute.data


def _dimensions(parser: AttrParser, name: str) -> tuple[int | Replicated, ...]:
    _entry(parser, name)
    found: list[int | Replicated] = parser.parse_comma_separated_list(
        _SQUARE, lambda: _dimension(parser)
    )
    return tuple(found)


@irdl_attr_definition
class ReplicatedAttr(_Spelled[Replicated]):
    """`#mosaic_gpu.Replicated<times = 4>`: that many warps or lanes hold the same elements."""

    name = "mosaic_gpu.Replicated"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Replicated:
        """Reads `<times = n>`."""
        with parser.in_angle_brackets():
            parser.parse_keyword("times")
            parser.parse_punctuation("=")
            return Replicated(_integer(parser))

    def print_parameter(self, printer: Printer) -> None:
        """Prints `<times = n>`."""
        printer.print_string(f"<times = {self.data.times}>")


@irdl_attr_definition
class TiledLayoutAttr(_Spelled[TiledLayout]):
    """`#mosaic_gpu.TiledLayout<[[64, 8], …], warp_dims = […], lane_dims = […], vector_dim = -1>`."""

    name = "mosaic_gpu.TiledLayout"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> TiledLayout:
        """Reads the layout."""
        with parser.in_angle_brackets():
            tiling: list[tuple[int, ...]] = parser.parse_comma_separated_list(
                _SQUARE, lambda: _integers(parser)
            )
            warps, lanes = (_dimensions(parser, name) for name in ("warp_dims", "lane_dims"))
            _entry(parser, "vector_dim")
            return TiledLayout(tuple(tiling), warps, lanes, _integer(parser))


@irdl_attr_definition
class StridedLayoutAttr(_Spelled[StridedLayout]):
    """`#mosaic_gpu.WGStridedFragLayout<[shape], vector size>`."""

    name = "mosaic_gpu.WGStridedFragLayout"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> StridedLayout:
        """Reads the layout."""
        with parser.in_angle_brackets():
            shape = _integers(parser)
            parser.parse_punctuation(",")
            return StridedLayout(shape, _integer(parser))


@irdl_attr_definition
class SplatLayoutAttr(_Spelled[SplatLayout]):
    """`#mosaic_gpu.WGSplatFragLayout<[shape]>`."""

    name = "mosaic_gpu.WGSplatFragLayout"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> SplatLayout:
        """Reads the layout."""
        with parser.in_angle_brackets():
            return SplatLayout(_integers(parser))


@irdl_attr_definition
class TileAttr(Data[tuple[int, ...]]):
    """`#mosaic_gpu.tile<[8, 64]>`: a buffer in shared memory is stored tile by tile."""

    name = "mosaic_gpu.tile"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[int, ...]:
        """Reads `<[8, 64]>`."""
        with parser.in_angle_brackets():
            return _integers(parser)

    def print_parameter(self, printer: Printer) -> None:
        """Prints `<[8, 64]>`."""
        printer.print_string(f"<{list(self.data)}>")


@irdl_attr_definition
class SwizzleAttr(Data[int]):
    """`#mosaic_gpu.swizzle<128 : i32>`: 16-byte pieces of rows of that many bytes change places; 16: none do."""

    name = "mosaic_gpu.swizzle"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> int:
        """Reads `<128 : i32>`."""
        with parser.in_angle_brackets():
            bytes_ = _integer(parser)
            parser.parse_punctuation(":")
            parser.parse_type()
        if bytes_ not in _SWIZZLES:
            parser.raise_error(f"a swizzle is one of {', '.join(map(str, _SWIZZLES))} bytes")
        return bytes_

    def print_parameter(self, printer: Printer) -> None:
        """Prints `<128 : i32>`."""
        printer.print_string(f"<{self.data} : i32>")


@irdl_attr_definition
class CopyReplicatedAttr(ParametrizedAttribute):
    """`#mosaic_gpu.copy_replicated`: every block of a cluster copies all."""

    name = "mosaic_gpu.copy_replicated"


@irdl_attr_definition
class CopyPartitionedAttr(Data[int]):
    """`#mosaic_gpu.copy_partitioned<axis = 0>`: blocks of a cluster copy parts."""

    name = "mosaic_gpu.copy_partitioned"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> int:
        """Reads `<axis = n>`."""
        with parser.in_angle_brackets():
            parser.parse_keyword("axis")
            parser.parse_punctuation("=")
            return _integer(parser)

    def print_parameter(self, printer: Printer) -> None:
        """Prints `<axis = n>`."""
        printer.print_string(f"<axis = {self.data}>")


@irdl_attr_definition
class TmemAttr(ParametrizedAttribute):
    """`#mosaic_gpu.tmem`: the memory of Blackwell's matrix units."""

    name = "mosaic_gpu.tmem"


@irdl_attr_definition
class SmemClusterAttr(ParametrizedAttribute):
    """`#mosaic_gpu.smem_cluster`: shared memory of another block of the cluster."""

    name = "mosaic_gpu.smem_cluster"


@irdl_attr_definition
class BarrierType(Data[bool], TypeAttribute):
    """`!mosaic_gpu.barrier`: an mbarrier, element of memrefs; `data`: whether it orders tcgen05."""

    name = "mosaic_gpu.barrier"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> bool:
        """Reads nothing or `<orders_tensor_core = true>`."""
        if parser.parse_optional_punctuation("<") is None:
            return False
        parser.parse_keyword("orders_tensor_core")
        parser.parse_punctuation("=")
        found = parser.parse_boolean()
        parser.parse_punctuation(">")
        return found

    def print_parameter(self, printer: Printer) -> None:
        """Prints it where it says more than nothing."""
        if self.data:
            printer.print_string("<orders_tensor_core = true>")


ATTRIBUTES = (
    ReplicatedAttr,
    TiledLayoutAttr,
    StridedLayoutAttr,
    SplatLayoutAttr,
    TileAttr,
    SwizzleAttr,
    CopyReplicatedAttr,
    CopyPartitionedAttr,
    TmemAttr,
    SmemClusterAttr,
    BarrierType,
)
"""All of them."""
