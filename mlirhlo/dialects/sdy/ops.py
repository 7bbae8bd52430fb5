"""Shardy's ops: meshes, regions, constraints and the like. Collectives are in `collectives`.

The custom form of every op is MLIR's, the properties have the names of its ODS arguments.
"""

from __future__ import annotations

from typing import Any, Self, cast

from xdsl.dialects.builtin import IntegerAttr, StringAttr, TensorType, i32, i64
from xdsl.ir import Attribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import ConstantLike, IsolatedFromAbove, IsTerminator, Pure, SymbolOpInterface

from mlirhlo.dialects.effects import TRAITS, Effect
from mlirhlo.dialects.sdy import syntax
from mlirhlo.dialects.sdy.assembly import (
    create,
    print_attributes,
    print_end,
    print_operand_list,
    print_region_end,
    read_end,
    read_operand_list,
    read_region_end,
)
from mlirhlo.dialects.sdy.attributes import (
    ManualAxesAttr,
    MeshAttr,
    TensorShardingAttr,
    TensorShardingPerValueAttr,
)
from mlirhlo.dialects.sdy.values import PropagationDirection, quoted, symbol_text


@irdl_op_definition
class MeshOp(IRDLOperation):
    """Names a mesh: `sdy.mesh @mesh = <["x"=2, "y"=4]>`."""

    name = "sdy.mesh"

    sym_name = prop_def(StringAttr)
    mesh = prop_def(MeshAttr)

    traits = traits_def(SymbolOpInterface())

    @classmethod
    def parse(cls, parser: Parser) -> MeshOp:
        """Reads the custom form."""
        name = parser.parse_symbol_name()
        parser.parse_punctuation("=")
        mesh = MeshAttr(syntax.read_mesh(parser))
        attributes = parser.parse_optional_attr_dict()
        return create(cls, [], [], {"mesh": mesh, "sym_name": name}, attributes)

    def print(self, printer: Printer) -> None:
        """Prints the custom form."""
        printer.print_string(f" {symbol_text(self.sym_name.data)} = {self.mesh.data}")
        print_attributes(self, printer)


class _Sharded(IRDLOperation):
    """A tensor with a sharding: `sdy.… %x <@mesh, [{"x"}]> : tensor<8xf32>`."""

    input = operand_def()
    sharding = prop_def(TensorShardingAttr)
    result = result_def()

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Reads the custom form."""
        operand = parser.parse_unresolved_operand()
        sharding = TensorShardingAttr(syntax.read_tensor_sharding(parser))
        return read_end(cls, parser, operand, {"sharding": sharding})

    def print(self, printer: Printer) -> None:
        """Prints the custom form."""
        printer.print_string(" ")
        printer.print_operand(self.input)
        printer.print_string(f" {self.sharding.data}")
        print_end(self, printer)


@irdl_op_definition
class ShardingConstraintOp(_Sharded):
    """Gives a tensor a sharding."""

    name = "sdy.sharding_constraint"

    traits = traits_def(*TRAITS[Effect.WRITE])


@irdl_op_definition
class ReshardOp(_Sharded):
    """Changes the sharding of a tensor."""

    name = "sdy.reshard"

    traits = traits_def(Pure())


@irdl_op_definition
class ShardingGroupOp(IRDLOperation):
    """Tensors of one group are sharded alike: `sdy.sharding_group %x group_id=1 : tensor<8xf32>`."""

    name = "sdy.sharding_group"

    traits = traits_def(*TRAITS[Effect.WRITE])

    input = operand_def()
    group_id = prop_def(IntegerAttr)

    @classmethod
    def parse(cls, parser: Parser) -> ShardingGroupOp:
        """Reads the custom form."""
        operand = parser.parse_unresolved_operand()
        parser.parse_keyword("group_id")
        parser.parse_punctuation("=")
        number = parser.parse_integer(allow_boolean=False)
        return read_end(cls, parser, operand, {"group_id": IntegerAttr(number, i64)})

    def print(self, printer: Printer) -> None:
        """Prints the custom form."""
        printer.print_string(" ")
        printer.print_operand(self.input)
        printer.print_string(f" group_id={_value(self.group_id)}")
        print_end(self, printer)


@irdl_op_definition
class PropagationBarrierOp(IRDLOperation):
    """Lets shardings flow one way only: `sdy.propagation_barrier %x allowed_direction=FORWARD : …`."""

    name = "sdy.propagation_barrier"

    traits = traits_def(Pure())

    input = operand_def()
    allowed_direction = prop_def(IntegerAttr)
    """The number of a `PropagationDirection`, as i32."""
    result = result_def()

    @classmethod
    def parse(cls, parser: Parser) -> PropagationBarrierOp:
        """Reads the custom form."""
        operand = parser.parse_unresolved_operand()
        parser.parse_keyword("allowed_direction")
        parser.parse_punctuation("=")
        word = parser.parse_optional_keyword_in(tuple(PropagationDirection.__members__))
        if word is None:
            parser.raise_error("expected NONE, FORWARD, BACKWARD or BOTH")
        direction = IntegerAttr(PropagationDirection[word].value, i32)
        return read_end(cls, parser, operand, {"allowed_direction": direction})

    def print(self, printer: Printer) -> None:
        """Prints the custom form."""
        printer.print_string(" ")
        printer.print_operand(self.input)
        number = _value(self.allowed_direction)
        names = {direction.value: direction.name for direction in PropagationDirection}
        printer.print_string(f" allowed_direction={names.get(number, number)}")
        print_end(self, printer)


@irdl_op_definition
class DataFlowEdgeOp(IRDLOperation):
    """Ties values that are sharded alike: `sdy.data_flow_edge %x sharding=<@mesh, [{?}]> : …`."""

    name = "sdy.data_flow_edge"

    traits = traits_def(*TRAITS[Effect.WRITE])

    input = operand_def()
    sharding = opt_prop_def(TensorShardingAttr)
    result = result_def()

    @classmethod
    def parse(cls, parser: Parser) -> DataFlowEdgeOp:
        """Reads the custom form."""
        operand = parser.parse_unresolved_operand()
        properties: dict[str, Attribute] = {}
        if parser.parse_optional_keyword("sharding") is not None:
            parser.parse_punctuation("=")
            properties["sharding"] = TensorShardingAttr(syntax.read_tensor_sharding(parser))
        return read_end(cls, parser, operand, properties)

    def print(self, printer: Printer) -> None:
        """Prints the custom form."""
        printer.print_string(" ")
        printer.print_operand(self.input)
        if self.sharding is not None:
            printer.print_string(f" sharding={self.sharding.data}")
        print_end(self, printer)


@irdl_op_definition
class FuncDataFlowEdgeOp(IRDLOperation):
    """Ties a function's argument, or a call's result, to its other end."""

    name = "sdy.func_data_flow_edge"

    traits = traits_def(*TRAITS[Effect.WRITE])

    input = operand_def()
    result = result_def()

    @classmethod
    def parse(cls, parser: Parser) -> FuncDataFlowEdgeOp:
        """Reads the custom form."""
        return read_end(cls, parser, parser.parse_unresolved_operand(), {})

    def print(self, printer: Printer) -> None:
        """Prints the custom form."""
        printer.print_string(" ")
        printer.print_operand(self.input)
        print_end(self, printer)


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """A constant that is never folded into another: `sdy.constant dense<1.0> : tensor<8xf32>`."""

    name = "sdy.constant"

    traits = traits_def(Pure(), ConstantLike())

    value = prop_def()
    output = result_def()

    @classmethod
    def parse(cls, parser: Parser) -> ConstantOp:
        """Reads the custom form."""
        attributes = parser.parse_optional_attr_dict()
        start = parser.pos
        value = parser.parse_attribute()
        kind = getattr(value, "type", None)
        if not isinstance(kind, TensorType):
            parser.raise_error("expected the elements of a tensor", start, parser.pos)
        return create(cls, [], [cast(Attribute, kind)], {"value": value}, attributes)

    def print(self, printer: Printer) -> None:
        """Prints the custom form."""
        print_attributes(self, printer)
        printer.print_string(" ")
        printer.print_attribute(self.value)


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """Ends a region: `sdy.return %x : tensor<8xf32>`."""

    name = "sdy.return"

    results_ = var_operand_def()

    traits = traits_def(IsTerminator(), Pure())

    @classmethod
    def parse(cls, parser: Parser) -> ReturnOp:
        """Reads the custom form."""
        attributes = parser.parse_optional_attr_dict()
        start = parser.pos
        operands = parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        if not operands:
            return create(cls, [], [], {}, attributes)
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        values = parser.resolve_operands(operands, types, start)
        return create(cls, values, [], {}, attributes)

    def print(self, printer: Printer) -> None:
        """Prints the custom form."""
        print_attributes(self, printer)
        if self.operands:
            printer.print_string(" ")
            printer.print_list(self.operands, printer.print_operand)
            printer.print_string(" : ")
            printer.print_list([v.type for v in self.operands], printer.print_attribute)


@irdl_op_definition
class ManualComputationOp(IRDLOperation):
    """A region written for one device, with explicit collectives over `manual_axes`."""

    name = "sdy.manual_computation"

    tensors = var_operand_def()
    in_shardings = prop_def(TensorShardingPerValueAttr)
    out_shardings = prop_def(TensorShardingPerValueAttr)
    manual_axes = prop_def(ManualAxesAttr)
    results_ = var_result_def()
    body = region_def("single_block")

    traits = traits_def(IsolatedFromAbove(), *TRAITS[Effect.NESTED])

    @classmethod
    def parse(cls, parser: Parser) -> ManualComputationOp:
        """Reads the custom form."""
        operands = read_operand_list(parser)
        properties: dict[str, Attribute] = {}
        for name in ("in_shardings", "out_shardings"):
            parser.parse_keyword(name)
            parser.parse_punctuation("=")
            properties[name] = TensorShardingPerValueAttr(syntax.read_stripped_per_value(parser))
        parser.parse_keyword("manual_axes")
        parser.parse_punctuation("=")
        properties["manual_axes"] = ManualAxesAttr(syntax.read_manual_axes(parser))
        return read_region_end(cls, parser, operands, properties)

    def print(self, printer: Printer) -> None:
        """Prints the custom form."""
        print_operand_list(self.operands, printer)
        printer.print_string(f" in_shardings={self.in_shardings.data}")
        printer.print_string(f" out_shardings={self.out_shardings.data}")
        printer.print_string(f" manual_axes={self.manual_axes.data} ")
        print_region_end(self, printer)


@irdl_op_definition
class NamedComputationOp(IRDLOperation):
    """An inlined call of a named function: `sdy.named_computation<"f">(%x) (%arg0: …) { … } : …`."""

    name = "sdy.named_computation"

    traits = traits_def(*TRAITS[Effect.NESTED])

    operands_ = var_operand_def()
    computation_name = prop_def(StringAttr, prop_name="name")
    in_shardings = opt_prop_def(TensorShardingPerValueAttr)
    out_shardings = opt_prop_def(TensorShardingPerValueAttr)
    results_ = var_result_def()
    body = region_def("single_block")

    @classmethod
    def parse(cls, parser: Parser) -> NamedComputationOp:
        """Reads the custom form."""
        with parser.in_angle_brackets():
            properties: dict[str, Attribute] = {"name": StringAttr(parser.parse_str_literal())}
        operands = read_operand_list(parser)
        for name in ("in_shardings", "out_shardings"):
            if parser.parse_optional_keyword(name) is not None:
                parser.parse_punctuation("=")
                shardings = syntax.read_stripped_per_value(parser)
                properties[name] = TensorShardingPerValueAttr(shardings)
        return read_region_end(cls, parser, operands, properties)

    def print(self, printer: Printer) -> None:
        """Prints the custom form."""
        printer.print_string(f"<{quoted(self.computation_name.data)}>")
        print_operand_list(self.operands, printer)
        for name, shardings in (
            ("in_shardings", self.in_shardings),
            ("out_shardings", self.out_shardings),
        ):
            if shardings is not None:
                printer.print_string(f" {name}={shardings.data}")
        printer.print_string(" ")
        print_region_end(self, printer)


def _value(attribute: IntegerAttr[Any]) -> int:
    return attribute.value.data


OPS = (
    ConstantOp,
    DataFlowEdgeOp,
    FuncDataFlowEdgeOp,
    ManualComputationOp,
    MeshOp,
    NamedComputationOp,
    PropagationBarrierOp,
    ReshardOp,
    ReturnOp,
    ShardingConstraintOp,
    ShardingGroupOp,
)
