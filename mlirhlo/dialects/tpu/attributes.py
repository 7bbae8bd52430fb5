"""Attributes of the `tpu` dialect. Each is a frozen value with its MLIR syntax."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, TypeVar

from xdsl.dialects.builtin import MemRefLayoutAttr
from xdsl.ir import Data
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from mlirhlo.dialects.tpu.values import (
    DotDimensionNumbers,
    ElementWindow,
    MemorySpace,
    TiledLayout,
    VectorLayout,
)

Value = TypeVar("Value")


class _ValueAttr(Data[Value]):
    """A `Data` attribute whose text between the angle brackets is `str` of its value."""

    def print_parameter(self, printer: Printer) -> None:
        """Prints `<value>`."""
        printer.print_string(f"<{self.data}>")


class CaseAttr(_ValueAttr[str]):
    """One case of an enumeration: `#tpu.core_type<tc>`; `data` is the word."""

    cases: ClassVar[Mapping[str, int]] = {}
    """The number that is stored for each word."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        """Reads `<word>`."""
        with parser.in_angle_brackets():
            word = _word(parser)
        if word not in cls.cases:
            parser.raise_error(f"{cls.name} is one of {', '.join(cls.cases)}, not '{word}'")
        return word

    @property
    def number(self) -> int:
        """The stored number."""
        return self.cases[self.data]


def _word(parser: AttrParser) -> str:
    word = parser.parse_optional_identifier()
    if word is None:
        parser.raise_error("expected a word")
    return word


def _integer(parser: AttrParser) -> int:
    return parser.parse_integer(allow_boolean=False, allow_negative=True)


def _list(parser: AttrParser, delimiter: AttrParser.Delimiter) -> tuple[int, ...]:
    found: list[int] = parser.parse_comma_separated_list(delimiter, lambda: _integer(parser))
    return tuple(found)


@irdl_attr_definition
class CoreTypeAttr(CaseAttr):
    """Which kind of core runs a function."""

    name = "tpu.core_type"
    cases: ClassVar[Mapping[str, int]] = {"tc": 0, "sc_scalar_subcore": 1, "sc_vector_subcore": 2}


@irdl_attr_definition
class DimensionSemanticsAttr(CaseAttr):
    """How the steps of one dimension of the grid may run."""

    name = "tpu.dimension_semantics"
    cases: ClassVar[Mapping[str, int]] = {
        "parallel": 0,
        "arbitrary": 1,
        "core_parallel": 2,
        "subcore_parallel": 3,
    }


@irdl_attr_definition
class PipelineModeAttr(CaseAttr):
    """How many buffers a window has."""

    name = "tpu.pipeline_mode"
    cases: ClassVar[Mapping[str, int]] = {"synchronous": 1, "double_buffered": 2}


@irdl_attr_definition
class RevisitModeAttr(CaseAttr):
    """Whether the grid may return to an earlier block of an output."""

    name = "tpu.revisit_mode"
    cases: ClassVar[Mapping[str, int]] = {"immediate": 0, "any": 1}


@irdl_attr_definition
class ContractPrecisionAttr(CaseAttr):
    """How exact a matmul is."""

    name = "tpu.contract_precision"
    cases: ClassVar[Mapping[str, int]] = {"bf16": 0, "fp32": 1, "bf16x3": 2}


@irdl_attr_definition
class PackFormatAttr(CaseAttr):
    """How narrow elements share a register."""

    name = "tpu.pack_format"
    cases: ClassVar[Mapping[str, int]] = {"compressed": 0, "interleaved": 1}


@irdl_attr_definition
class ReductionKindAttr(CaseAttr):
    """What a reduction or scan computes; the kinds that name an element type are the compiler's own.

    Those stand only in what its stages print; their numbers are ours.
    """

    name = "tpu.reduction_kind"
    cases: ClassVar[Mapping[str, int]] = {
        "sum": 0,
        "max": 1,
        "min": 2,
        "arg_max": 3,
        "arg_min": 4,
        "find_first_set": 5,
        "maxf": 6,
        "minf": 7,
        "maxsi": 8,
        "minsi": 9,
    }


@irdl_attr_definition
class RoundingModeAttr(CaseAttr):
    """Where a conversion rounds to."""

    name = "tpu.rounding_mode"
    cases: ClassVar[Mapping[str, int]] = {"towards_zero": 0, "to_nearest_even": 1}


ENUMS: dict[str, type[CaseAttr]] = {
    cls.name: cls
    for cls in (
        CoreTypeAttr,
        DimensionSemanticsAttr,
        PipelineModeAttr,
        RevisitModeAttr,
        ContractPrecisionAttr,
        PackFormatAttr,
        ReductionKindAttr,
        RoundingModeAttr,
    )
}
"""The enumerations by their names; memory spaces have a second parameter and a class of their own."""

MEMORY_SPACES: Mapping[str, int] = {
    "vmem": 0,
    "smem": 1,
    "hbm": 2,
    "cmem": 3,
    "semaphore_mem": 4,
    "vmem_shared": 5,
    "host": 6,
    "any": 0xFFFFFFFF,
}
"""The number that is stored for each memory space."""


@irdl_attr_definition
class MemorySpaceAttr(_ValueAttr[MemorySpace]):
    """`#tpu.memory_space<vmem>` or `#tpu.memory_space<vmem, tc>`."""

    name = "tpu.memory_space"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> MemorySpace:
        """Reads `<space>` or `<space, core>`."""
        with parser.in_angle_brackets():
            space = _word(parser)
            core = _word(parser) if parser.parse_optional_punctuation(",") else None
        if space not in MEMORY_SPACES:
            parser.raise_error(f"a memory is one of {', '.join(MEMORY_SPACES)}, not '{space}'")
        if core is not None and core not in CoreTypeAttr.cases:
            parser.raise_error(f"a core is one of {', '.join(CoreTypeAttr.cases)}, not '{core}'")
        return MemorySpace(space, core)


@irdl_attr_definition
class TiledLayoutAttr(_ValueAttr[TiledLayout], MemRefLayoutAttr):
    """`#tpu.tiled<(8,128)(2,1),[2,1]>`: the layout of a memref."""

    name = "tpu.tiled"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> TiledLayout:
        """Reads `<(tile)(tile),[strides]>`."""
        with parser.in_angle_brackets():
            tiles: list[tuple[int, ...]] = []
            while parser.parse_optional_punctuation("("):
                tile = [_integer(parser)]
                while parser.parse_optional_punctuation(","):
                    tile.append(_integer(parser))
                parser.parse_punctuation(")")
                tiles.append(tuple(tile))
            parser.parse_punctuation(",")
            layout = TiledLayout(tuple(tiles), _list(parser, parser.Delimiter.SQUARE))
        problem = layout.problem()
        if problem is not None:
            parser.raise_error(f"tiled_c1: {problem}")
        return layout

    def get_affine_map(self) -> AffineMap:
        """The element that an index means, as a map of `floordiv` and `mod`."""
        rank = len(self.data.strides)
        return AffineMap(rank, 0, (_offset(self.data, rank),))


def _offset(layout: TiledLayout, rank: int) -> AffineExpr:
    """As `TiledLayout.offset`, of dimensions instead of numbers."""
    index: list[AffineExpr] = [AffineExpr.dimension(dim) for dim in range(rank)]
    first = layout.tiles[0] if layout.tiles else ()
    plain = rank - len(first)
    scale = 1
    inner: list[tuple[AffineExpr, int]] = []
    for dim, size in enumerate(first):
        inner.append((index[plain + dim] % size, size))
        index[plain + dim] = index[plain + dim] // size
        scale *= size
    for tile in layout.tiles[1:]:
        at = len(inner) - len(tile)
        pairs = list(zip(inner[at:], tile, strict=True))
        inner[at:] = [(e // t, s // t) for (e, s), t in pairs]
        inner += [(e % t, t) for (e, _), t in pairs]
    total: AffineExpr = AffineExpr.constant(0)
    for expression, stride in zip(index, layout.strides, strict=True):
        total = total + expression * (stride * scale)
    unit = scale
    for expression, size in inner:
        unit //= size
        total = total + expression * unit
    return total


@irdl_attr_definition
class DotDimensionNumbersAttr(_ValueAttr[DotDimensionNumbers]):
    """`#tpu.dot_dimension_numbers<[1], [0], [0], [1], [0, 0, 1, 1], [], []>`."""

    name = "tpu.dot_dimension_numbers"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> DotDimensionNumbers:
        """Reads seven lists."""
        lists: list[tuple[int, ...]] = []
        with parser.in_angle_brackets():
            for number in range(7):
                if number:
                    parser.parse_punctuation(",")
                lists.append(_list(parser, parser.Delimiter.SQUARE))
        return DotDimensionNumbers(*lists)


@irdl_attr_definition
class ElementWindowAttr(_ValueAttr[ElementWindow]):
    """`#tpu.element_window<[0, 0], [4, 0]>`."""

    name = "tpu.element_window"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ElementWindow:
        """Reads `<[low], [high]>`."""
        with parser.in_angle_brackets():
            low = _list(parser, parser.Delimiter.SQUARE)
            parser.parse_punctuation(",")
            high = _list(parser, parser.Delimiter.SQUARE)
        return ElementWindow(low, high)


class LayoutText(Data["VectorLayout | None"]):
    """The layout of a vector in registers; None, spelled `"none"`, of what is no vector."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> VectorLayout | None:
        """Reads `<"32,{0,0},(8,128)">`."""
        with parser.in_angle_brackets():
            text = parser.parse_str_literal()
        layout = VectorLayout.of(text)
        if layout is None and text != "none":
            parser.raise_error(f'"{text}" is no layout of a vector; such is "32,{{0,0}},(8,128)"')
        return layout

    def print_parameter(self, printer: Printer) -> None:
        """Prints `<"layout">`."""
        printer.print_string(f'<"{"none" if self.data is None else self.data}">')


@irdl_attr_definition
class VectorLayoutAttr(LayoutText):
    """`#mosaic_tc.vpad<"32,{0,0},(8,128)">`, as the compiler prints it."""

    name = "mosaic_tc.vpad"


@irdl_attr_definition
class TpuVectorLayoutAttr(LayoutText):
    """`#tpu.vpad<"32,{0,0},(8,128)">`, as jaxlib prints it."""

    name = "tpu.vpad"
