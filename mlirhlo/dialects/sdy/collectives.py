"""Shardy's collectives: `sdy.all_gather [{"x"}] %x out_sharding=<@mesh, [{}]> : tensor<8xf32>`.

Each moves a tensor from the sharding of its operand to `out_sharding`; one property says along
which axes. The global type of the tensor stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self, cast

from xdsl.ir import Attribute, Data
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from mlirhlo.dialects.sdy import syntax
from mlirhlo.dialects.sdy.assembly import print_end, read_end
from mlirhlo.dialects.sdy.attributes import (
    AllToAllParamListAttr,
    AxisRefListAttr,
    ListOfAxisRefListsAttr,
    TensorShardingAttr,
)


class Collective(IRDLOperation):
    """One operand, the property `AXES_NAME` before it, `out_sharding` after it."""

    AXES_NAME: ClassVar[str | None] = None
    """Name of the property that stands first; None where there is none."""
    AXES_CLASS: ClassVar[type[Data[Any]]] = ListOfAxisRefListsAttr
    READ_AXES: ClassVar[Callable[[AttrParser], Any]] = staticmethod(
        syntax.read_list_of_axis_ref_lists
    )

    traits = traits_def(Pure())

    tensor = operand_def()
    out_sharding = prop_def(TensorShardingAttr)
    result = result_def()

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Reads the custom form."""
        properties: dict[str, Attribute] = {}
        if cls.AXES_NAME is not None:
            properties[cls.AXES_NAME] = cls.AXES_CLASS(cls.READ_AXES(parser))
        operand = parser.parse_unresolved_operand()
        parser.parse_keyword("out_sharding")
        parser.parse_punctuation("=")
        properties["out_sharding"] = TensorShardingAttr(syntax.read_tensor_sharding(parser))
        return read_end(cls, parser, operand, properties)

    def print(self, printer: Printer) -> None:
        """Prints the custom form."""
        printer.print_string(" ")
        if self.AXES_NAME is not None:
            axes = cast("Data[Any]", self.properties[self.AXES_NAME])
            printer.print_string(f"{axes.data} ")
        printer.print_operand(self.tensor)
        printer.print_string(f" out_sharding={self.out_sharding.data}")
        print_end(self, printer)


@irdl_op_definition
class AllGatherOp(Collective):
    """Gathers each dimension along `gathering_axes`."""

    name = "sdy.all_gather"
    AXES_NAME: ClassVar[str | None] = "gathering_axes"

    gathering_axes = prop_def(ListOfAxisRefListsAttr)


@irdl_op_definition
class AllReduceOp(Collective):
    """Reduces along `reduction_axes`: `sdy.all_reduce {"x"} %x out_sharding=… : …`."""

    name = "sdy.all_reduce"
    AXES_NAME: ClassVar[str | None] = "reduction_axes"
    AXES_CLASS: ClassVar[type[Data[Any]]] = AxisRefListAttr
    READ_AXES: ClassVar[Callable[[AttrParser], Any]] = staticmethod(syntax.read_axis_ref_list)

    reduction_axes = prop_def(AxisRefListAttr)


@irdl_op_definition
class AllSliceOp(Collective):
    """Slices each dimension along `slicing_axes`; the inverse of `sdy.all_gather`."""

    name = "sdy.all_slice"
    AXES_NAME: ClassVar[str | None] = "slicing_axes"

    slicing_axes = prop_def(ListOfAxisRefListsAttr)


@irdl_op_definition
class AllToAllOp(Collective):
    """Moves axes between dimensions: `sdy.all_to_all [{"x"}: 0->1] %x out_sharding=… : …`."""

    name = "sdy.all_to_all"
    AXES_NAME: ClassVar[str | None] = "params"
    AXES_CLASS: ClassVar[type[Data[Any]]] = AllToAllParamListAttr
    READ_AXES: ClassVar[Callable[[AttrParser], Any]] = staticmethod(
        syntax.read_all_to_all_param_list
    )

    params = prop_def(AllToAllParamListAttr)


@irdl_op_definition
class CollectivePermuteOp(Collective):
    """Exchanges axes of equal size: `sdy.collective_permute %x out_sharding=… : …`."""

    name = "sdy.collective_permute"


@irdl_op_definition
class ReduceScatterOp(Collective):
    """Reduces, then slices each dimension, along `reduce_scatter_axes`."""

    name = "sdy.reduce_scatter"
    AXES_NAME: ClassVar[str | None] = "reduce_scatter_axes"

    reduce_scatter_axes = prop_def(ListOfAxisRefListsAttr)


@irdl_op_definition
class ReplicatedToUnreducedOp(Collective):
    """Makes replicated axes unreduced: `sdy.replicated_to_unreduced {"x"} %x out_sharding=… : …`."""

    name = "sdy.replicated_to_unreduced"
    AXES_NAME: ClassVar[str | None] = "axes"
    AXES_CLASS: ClassVar[type[Data[Any]]] = AxisRefListAttr
    READ_AXES: ClassVar[Callable[[AttrParser], Any]] = staticmethod(syntax.read_axis_ref_list)

    axes = prop_def(AxisRefListAttr)


@irdl_op_definition
class ShardedToUnreducedOp(Collective):
    """Makes sharding axes unreduced: `sdy.sharded_to_unreduced [{"x"}] %x out_sharding=… : …`."""

    name = "sdy.sharded_to_unreduced"
    AXES_NAME: ClassVar[str | None] = "axes"

    axes = prop_def(ListOfAxisRefListsAttr)


COLLECTIVES = (
    AllGatherOp,
    AllReduceOp,
    AllSliceOp,
    AllToAllOp,
    CollectivePermuteOp,
    ReduceScatterOp,
    ReplicatedToUnreducedOp,
    ShardedToUnreducedOp,
)
