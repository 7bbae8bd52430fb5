"""Shardy's attributes: each a frozen value of `values` with its MLIR syntax.

Those whose text starts with `<` are printed `#sdy.name<…>`, all others `#sdy<name…>`, as MLIR does.
A value has no text of its own kind inside other attributes and ops: there it stands stripped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from xdsl.ir import Data, OpaqueSyntaxAttribute, SpacedOpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from mlirhlo.dialects.sdy import syntax, values

Value = TypeVar("Value")
Reader = Callable[[AttrParser], Any]


class SdyAttr(Data[Value]):
    """A `Data` attribute whose parameter reads and prints itself."""

    read: ClassVar[Reader]

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Value:
        """Reads the parameter."""
        found: Value = cls.read(parser)
        return found

    def print_parameter(self, printer: Printer) -> None:
        """Prints the parameter."""
        printer.print_string(str(self.data))


@irdl_attr_definition
class MeshAttr(SdyAttr[values.Mesh]):
    """`#sdy.mesh<["x"=2, "y"=4]>`."""

    name = "sdy.mesh"
    read: ClassVar[Reader] = staticmethod(syntax.read_mesh)


@irdl_attr_definition
class TensorShardingAttr(SdyAttr[values.TensorSharding]):
    """`#sdy.sharding<@mesh, [{"x"}, {?}]>`."""

    name = "sdy.sharding"
    read: ClassVar[Reader] = staticmethod(syntax.read_tensor_sharding)


@irdl_attr_definition
class TensorShardingPerValueAttr(SdyAttr[values.TensorShardingPerValue]):
    """`#sdy.sharding_per_value<[<@mesh, [{"x"}]>]>`."""

    name = "sdy.sharding_per_value"
    read: ClassVar[Reader] = staticmethod(syntax.read_per_value)

    def print_parameter(self, printer: Printer) -> None:
        """Prints the parameter; in ops the angle brackets are left out."""
        printer.print_string(f"<{self.data}>")


@irdl_attr_definition
class OpShardingRuleAttr(SdyAttr[values.OpShardingRule]):
    """`#sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=4}>`."""

    name = "sdy.op_sharding_rule"
    read: ClassVar[Reader] = staticmethod(syntax.read_op_sharding_rule)


@irdl_attr_definition
class PropagationEdgesAttr(SdyAttr[values.PropagationEdges]):
    """`#sdy.propagation_edges<[{step-0 = […]}]>`."""

    name = "sdy.propagation_edges"
    read: ClassVar[Reader] = staticmethod(syntax.read_propagation_edges)


@irdl_attr_definition
class MeshAxisAttr(SdyAttr[values.MeshAxis], OpaqueSyntaxAttribute):
    """`#sdy<mesh_axis"x"=2>`."""

    name = "sdy.mesh_axis"
    read: ClassVar[Reader] = staticmethod(syntax.read_mesh_axis)


@irdl_attr_definition
class SubAxisInfoAttr(SdyAttr[values.SubAxis], OpaqueSyntaxAttribute):
    """`#sdy<sub_axis_info(1)2>`."""

    name = "sdy.sub_axis_info"
    read: ClassVar[Reader] = staticmethod(syntax.read_sub_axis)


@irdl_attr_definition
class AxisRefAttr(SdyAttr[values.AxisRef], OpaqueSyntaxAttribute):
    """`#sdy<axis_ref"x":(1)2>`."""

    name = "sdy.axis_ref"
    read: ClassVar[Reader] = staticmethod(syntax.read_axis_ref)


@irdl_attr_definition
class AxisRefListAttr(SdyAttr[values.AxisRefList], OpaqueSyntaxAttribute):
    """`#sdy<axis_ref_list{"x", "y"}>`."""

    name = "sdy.axis_ref_list"
    read: ClassVar[Reader] = staticmethod(syntax.read_axis_ref_list)


@irdl_attr_definition
class ListOfAxisRefListsAttr(SdyAttr[values.ListOfAxisRefLists], OpaqueSyntaxAttribute):
    """`#sdy<list_of_axis_ref_lists[{"x"}, {}]>`."""

    name = "sdy.list_of_axis_ref_lists"
    read: ClassVar[Reader] = staticmethod(syntax.read_list_of_axis_ref_lists)


@irdl_attr_definition
class DimensionShardingAttr(SdyAttr[values.DimensionSharding], OpaqueSyntaxAttribute):
    """`#sdy<dimension_sharding{"x", ?}p1>`."""

    name = "sdy.dimension_sharding"
    read: ClassVar[Reader] = staticmethod(syntax.read_dimension_sharding)


@irdl_attr_definition
class ManualAxesAttr(SdyAttr[values.ManualAxes], OpaqueSyntaxAttribute):
    """`#sdy<manual_axes{"x"}>`."""

    name = "sdy.manual_axes"
    read: ClassVar[Reader] = staticmethod(syntax.read_manual_axes)


@irdl_attr_definition
class TensorMappingAttr(SdyAttr[values.TensorMapping], OpaqueSyntaxAttribute):
    """`#sdy<tensor_mapping[i, jk]>`."""

    name = "sdy.tensor_mapping"
    read: ClassVar[Reader] = staticmethod(syntax.read_tensor_mapping)


@irdl_attr_definition
class DimMappingAttr(SdyAttr[values.DimMapping], SpacedOpaqueSyntaxAttribute):
    """`#sdy<dim_mapping ij>`.

    MLIR prints `#sdy.dim_mappingij`, which nothing can read; it never stands alone in programs.
    """

    name = "sdy.dim_mapping"
    read: ClassVar[Reader] = staticmethod(syntax.read_dim_mapping)


@irdl_attr_definition
class AllToAllParamAttr(SdyAttr[values.AllToAllParam], OpaqueSyntaxAttribute):
    """`#sdy<all_to_all_param{"x"}: 0->1>`."""

    name = "sdy.all_to_all_param"
    read: ClassVar[Reader] = staticmethod(syntax.read_all_to_all_param)


@irdl_attr_definition
class AllToAllParamListAttr(SdyAttr[values.AllToAllParamList], OpaqueSyntaxAttribute):
    """`#sdy<all_to_all_param_list[{"x"}: 0->1]>`."""

    name = "sdy.all_to_all_param_list"
    read: ClassVar[Reader] = staticmethod(syntax.read_all_to_all_param_list)


@irdl_attr_definition
class EdgeValueRefAttr(SdyAttr[values.EdgeValueRef], SpacedOpaqueSyntaxAttribute):
    """`#sdy<edge_value_ref operand-0>`; MLIR prints it without the space and cannot read that."""

    name = "sdy.edge_value_ref"
    read: ClassVar[Reader] = staticmethod(syntax.read_edge_value_ref)


@irdl_attr_definition
class AxisToPropagationDetailsAttr(SdyAttr[values.AxisToPropagationDetails], OpaqueSyntaxAttribute):
    """`#sdy<axis_to_propagation_details{"x" = operand-0 -> [result-0]}>`."""

    name = "sdy.axis_to_propagation_details"
    read: ClassVar[Reader] = staticmethod(syntax.read_axis_details)


@irdl_attr_definition
class PropagationOneStepAttr(SdyAttr[values.PropagationOneStep], OpaqueSyntaxAttribute):
    """`#sdy<propagation_one_step{step-0 = […]}>`."""

    name = "sdy.propagation_one_step"
    read: ClassVar[Reader] = staticmethod(syntax.read_one_step)


ATTRIBUTES = (
    AllToAllParamAttr,
    AllToAllParamListAttr,
    AxisRefAttr,
    AxisRefListAttr,
    AxisToPropagationDetailsAttr,
    DimMappingAttr,
    DimensionShardingAttr,
    EdgeValueRefAttr,
    ListOfAxisRefListsAttr,
    ManualAxesAttr,
    MeshAttr,
    MeshAxisAttr,
    OpShardingRuleAttr,
    PropagationEdgesAttr,
    PropagationOneStepAttr,
    SubAxisInfoAttr,
    TensorMappingAttr,
    TensorShardingAttr,
    TensorShardingPerValueAttr,
)
