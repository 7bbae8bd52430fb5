"""Replica groups given by the axes of a mesh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Attribute, Data, SpacedOpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from mlirhlo.dialects.stablehlo.structs import TextualAttr


def _quoted(text: str) -> str:
    return str(StringAttr(text))


@dataclass(frozen=True, slots=True)
class MeshAxis:
    """A named axis of a mesh."""

    axis: str
    size: int

    def __str__(self) -> str:
        """`<name = "x", size = 2>`."""
        return f"<name = {_quoted(self.axis)}, size = {self.size}>"


def _parse_axis(parser: AttrParser) -> MeshAxis:
    with parser.in_angle_brackets():
        parser.parse_keyword("name")
        parser.parse_punctuation("=")
        name = parser.parse_str_literal()
        parser.parse_punctuation(",")
        parser.parse_keyword("size")
        parser.parse_punctuation("=")
        return MeshAxis(name, parser.parse_integer())


def _parse_listed_axis(parser: AttrParser) -> MeshAxis:
    """An axis in a list: `<…>`, or with its name in front."""
    found = parser.parse_optional_attribute()
    if found is None:
        return _parse_axis(parser)
    if not isinstance(found, MeshAxisAttr):
        parser.raise_error("expected an axis of a mesh")
    return found.data


@irdl_attr_definition
class MeshAxisAttr(TextualAttr[MeshAxis]):
    """`#stablehlo.mesh_axis<name = "x", size = 2>`."""

    name = "stablehlo.mesh_axis"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> MeshAxis:
        """Reads `<name = "x", size = 2>`."""
        return _parse_axis(parser)

    def spelled(self) -> str:
        """`<name = "x", size = 2>`."""
        return str(self.data)


@dataclass(frozen=True, slots=True)
class Mesh:
    """Axes, and the order of devices where it is not 0, 1, …"""

    axes: tuple[MeshAxis, ...]
    device_ids: Attribute | None = None


@irdl_attr_definition
class MeshAttr(Data[Mesh]):
    """`#stablehlo.mesh<axes=[<name = "x", size = 2>], device_ids=dense<…> : tensor<2xi64>>`."""

    name = "stablehlo.mesh"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Mesh:
        """Reads `<axes=[…]>`, optionally with `device_ids=…`."""
        with parser.in_angle_brackets():
            parser.parse_keyword("axes")
            parser.parse_punctuation("=")
            axes = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, lambda: _parse_listed_axis(parser)
            )
            device_ids: Attribute | None = None
            if parser.parse_optional_punctuation(",") is not None:
                parser.parse_keyword("device_ids")
                parser.parse_punctuation("=")
                device_ids = parser.parse_attribute()
        return Mesh(tuple(axes), device_ids)

    def print_parameter(self, printer: Printer) -> None:
        """Prints the same."""
        with printer.in_angle_brackets():
            printer.print_string(f"axes=[{', '.join(map(str, self.data.axes))}]")
            if self.data.device_ids is not None:
                printer.print_string(", device_ids=")
                printer.print_attribute(self.data.device_ids)


@dataclass(frozen=True, slots=True)
class SubAxisInfo:
    """The part of an axis with `size` positions that repeats after `pre_size` ones."""

    pre_size: int
    size: int

    def __str__(self) -> str:
        """`(1)2`."""
        return f"({self.pre_size}){self.size}"


def _parse_sub_axis(parser: AttrParser) -> SubAxisInfo:
    with parser.in_parens():
        pre_size = parser.parse_integer()
    return SubAxisInfo(pre_size, parser.parse_integer())


@irdl_attr_definition
class SubAxisInfoAttr(TextualAttr[SubAxisInfo], SpacedOpaqueSyntaxAttribute):
    """`#stablehlo<sub_axis_info(1)2>`."""

    name = "stablehlo.sub_axis_info"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> SubAxisInfo:
        """Reads `(1)2`."""
        return _parse_sub_axis(parser)

    def spelled(self) -> str:
        """`(1)2`."""
        return str(self.data)


@dataclass(frozen=True, slots=True)
class AxisRef:
    """An axis, or a part of one."""

    axis: str
    sub_axis_info: SubAxisInfo | None = None


@irdl_attr_definition
class AxisRefAttr(TextualAttr[AxisRef]):
    """`#stablehlo.axis_ref<name = "x", sub_axis_info = (1)2>`."""

    name = "stablehlo.axis_ref"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> AxisRef:
        """Reads `<name = "x">`, optionally with `sub_axis_info = (1)2`."""
        with parser.in_angle_brackets():
            parser.parse_keyword("name")
            parser.parse_punctuation("=")
            name = parser.parse_str_literal()
            info: SubAxisInfo | None = None
            if parser.parse_optional_punctuation(",") is not None:
                parser.parse_keyword("sub_axis_info")
                parser.parse_punctuation("=")
                info = _parse_sub_axis(parser)
        return AxisRef(name, info)

    def spelled(self) -> str:
        """`<name = "x", sub_axis_info = (1)2>`."""
        info = self.data.sub_axis_info
        rest = "" if info is None else f", sub_axis_info = {info}"
        return f"<name = {_quoted(self.data.axis)}{rest}>"


@dataclass(frozen=True, slots=True)
class ReplicaGroupMeshAxes:
    """Devices that differ only in their positions along `axes` form a group."""

    mesh: Attribute
    """A `MeshAttr`, or a reference to a mesh symbol."""
    axes: tuple[Attribute, ...]
    """`AxisRefAttr`s."""


@irdl_attr_definition
class ReplicaGroupMeshAxesAttr(Data[ReplicaGroupMeshAxes]):
    """`#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<…>]>`."""

    name = "stablehlo.replica_group_mesh_axes"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ReplicaGroupMeshAxes:
        """Reads `<mesh = …, axes = […]>`."""
        with parser.in_angle_brackets():
            parser.parse_keyword("mesh")
            parser.parse_punctuation("=")
            mesh = parser.parse_attribute()
            parser.parse_punctuation(",")
            parser.parse_keyword("axes")
            parser.parse_punctuation("=")
            start = parser.pos
            axes = parser.parse_attribute()
            if not isinstance(axes, ArrayAttr):
                parser.raise_error("axes are a list of #stablehlo.axis_ref", start)
        return ReplicaGroupMeshAxes(mesh, tuple(cast("ArrayAttr[Attribute]", axes).data))

    def print_parameter(self, printer: Printer) -> None:
        """Prints the same."""
        with printer.in_angle_brackets():
            printer.print_string("mesh = ")
            printer.print_attribute(self.data.mesh)
            printer.print_string(", axes = [")
            printer.print_list(self.data.axes, printer.print_attribute)
            printer.print_string("]")
