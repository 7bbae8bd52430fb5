"""Tile registers of x86: MLIR's amx dialect, as far as kernels use it.

A tile is rows of 64 bytes at most. Products take units of 32 bits: a row of the left factors times a
column of the right ones, of which each row holds a unit of every column. Loads and stores are in
`dialects/x86.py`. Printed in the generic form, which readers without the dialect take too.
Source: MLIR's amx dialect.
"""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, IntAttr, UnitAttr
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import Pure


@irdl_attr_definition
class TileType(ParametrizedAttribute, TypeAttribute):
    """`!amx.tile<16x32xbf16>`: a tile register of that many rows and elements."""

    name = "amx.tile"
    shape: ArrayAttr[IntAttr]
    element_type: Attribute

    @staticmethod
    def of(rows: int, columns: int, element: Attribute) -> TileType:
        """A type by its sizes."""
        return TileType(ArrayAttr([IntAttr(rows), IntAttr(columns)]), element)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.shape.data[0].data

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        bits = cast(int, cast(Any, self.element_type).bitwidth)
        return self.shape.data[1].data * bits // 8

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        """`<16x32xbf16>`."""
        with parser.in_angle_brackets():
            shape = (
                parser.parse_shape_dimension(False),
                _after_x(parser),
            )
            element = parser.parse_type()
        return [ArrayAttr([IntAttr(size) for size in shape]), element]

    def print_parameters(self, printer: Printer) -> None:
        """As `parse_parameters` reads it."""
        with printer.in_angle_brackets():
            sizes = "x".join(str(size.data) for size in self.shape)
            printer.print_string(f"{sizes}x")
            printer.print_attribute(self.element_type)


def _after_x(parser: AttrParser) -> int:
    parser.parse_shape_delimiter()
    size = parser.parse_shape_dimension(False)
    parser.parse_shape_delimiter()
    return size


@irdl_op_definition
class TileZeroOp(IRDLOperation):
    """All zeros."""

    name = "amx.tile_zero"
    res = result_def(TileType)
    traits = traits_def(Pure())


@irdl_op_definition
class TileMulFOp(IRDLOperation):
    """`acc + lhs * rhs` of bf16 in f32; numbers below the normal ones count as zero."""

    name = "amx.tile_mulf"
    lhs = operand_def(TileType)
    rhs = operand_def(TileType)
    acc = operand_def(TileType)
    res = result_def(TileType)
    traits = traits_def(Pure())


@irdl_op_definition
class TileMulIOp(IRDLOperation):
    """`acc + lhs * rhs` of bytes, each side signed or not, in 32 bits."""

    name = "amx.tile_muli"
    lhs = operand_def(TileType)
    rhs = operand_def(TileType)
    acc = operand_def(TileType)
    res = result_def(TileType)
    is_zext_lhs = opt_prop_def(UnitAttr, prop_name="isZextLhs")
    is_zext_rhs = opt_prop_def(UnitAttr, prop_name="isZextRhs")
    traits = traits_def(Pure())


AMX = Dialect("amx", [TileZeroOp, TileMulFOp, TileMulIOp], [TileType])
