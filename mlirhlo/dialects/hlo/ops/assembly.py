"""The custom MLIR syntax of computations and instructions.

    hlo.computation entry @main {
      %x = hlo.parameter 0 : tensor<4xf32>
      %c = hlo.constant "1" : tensor<f32>
      %b = hlo.broadcast %c {dimensions = array<i64>} : tensor<4xf32>
      %s = hlo.add %x, %b after %c : tensor<4xf32>
      hlo.return %s
    }

One syntax for all opcodes: operands, control predecessors after `after`, properties, result type.
Operand types are those of the values, which stand before their uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from mlirhlo.dialects.hlo.attributes.base import int_of, integer, print_string_literal, string
from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.syntax import SyntaxProblem
from mlirhlo.dialects.hlo.types import shape_of

if TYPE_CHECKING:
    from xdsl.parser import Parser, UnresolvedOperand
    from xdsl.printer import Printer

    from mlirhlo.dialects.hlo.ops.base import Instruction
    from mlirhlo.dialects.hlo.ops.computation import ComputationOp

CONTROL_PREDECESSORS = "control_predecessors"
PARAMETER_NUMBER = "parameter_number"
LITERAL = "literal"


def printed_properties(op: Instruction) -> dict[str, Attribute]:
    """Properties that stand in braces, in the row's order."""
    properties = op.properties
    if not properties:
        return {}
    shown = {key: value for key, value in properties.items() if key != CONTROL_PREDECESSORS}
    if op.name == "hlo.parameter":
        shown.pop(PARAMETER_NUMBER, None)
    elif op.name == "hlo.constant" and short_literal(op) is not None:
        shown.pop(LITERAL)
    if len(shown) > 1:
        order = op.property_order
        return dict(sorted(shown.items(), key=lambda item: (order.get(item[0], 1000), item[0])))
    return shown


def short_literal(op: Instruction) -> Literal | None:
    """The literal of a constant whose shape is the result's, so that its text alone says all."""
    literal = op.properties.get(LITERAL)
    if not isinstance(literal, LiteralAttr):
        return None
    shape = op.shape
    if isinstance(shape, ArrayShape) and shape.dynamic:
        return None
    return literal.data if literal.data.shape == shape else None


def print_instruction(op: Instruction, printer: Printer) -> None:
    """Prints what follows the op's name."""
    if op.name == "hlo.parameter" and PARAMETER_NUMBER in op.properties:
        printer.print_string(f" {int_of(op.properties[PARAMETER_NUMBER])}")
    elif op.name == "hlo.constant" and (literal := short_literal(op)) is not None:
        printer.print_string(" ")
        print_string_literal(printer, literal.to_text())
    if op.inputs:
        printer.print_string(" ")
        printer.print_list(op.inputs, printer.print_operand)
    if op.control_predecessors:
        printer.print_string(" after ")
        printer.print_list(op.control_predecessors, printer.print_operand)
    if properties := printed_properties(op):
        printer.print_string(" ")
        printer.print_attr_dict(properties)
    if op.attributes:
        printer.print_op_attributes(op.attributes, print_keyword=True)
    printer.print_string(" : ")
    printer.print_attribute(op.results[0].type)


def parse_instruction(cls: type[Instruction], parser: Parser) -> Instruction:
    """Reads what follows the op's name. Raises xDSL's `ParseError`."""
    properties: dict[str, Attribute] = {}
    literal: str | None = None
    literal_at = parser.pos
    if cls.name == "hlo.parameter":
        number = parser.parse_optional_integer(allow_boolean=False)
        if number is not None:
            properties[PARAMETER_NUMBER] = integer(number)
    elif cls.name == "hlo.constant":
        literal = parser.parse_optional_str_literal()
    operands = _operands(parser)
    if parser.parse_optional_keyword("after"):
        control = _operands(parser)
        operands += control
        properties[CONTROL_PREDECESSORS] = integer(len(control))
    properties |= parser.parse_optional_attr_dict()
    attributes = parser.parse_optional_attr_dict_with_keyword()
    parser.parse_punctuation(":")
    type_at = parser.pos
    result_type = parser.parse_type()
    try:
        shape = shape_of(result_type)
        if literal is not None:
            properties[LITERAL] = LiteralAttr(Literal.from_text(shape, literal))
    except VerifyException as problem:
        parser.raise_error(str(problem), type_at)
    except SyntaxProblem as problem:
        parser.raise_error(problem.message, literal_at)
    return cls.create(
        operands=operands,
        result_types=[result_type],
        properties=properties,
        attributes={} if attributes is None else dict(attributes.data),
    )


def _operands(parser: Parser) -> list[SSAValue]:
    found: list[SSAValue] = []
    operand = parser.parse_optional_unresolved_operand()
    while operand is not None:
        found.append(_resolve(parser, operand))
        if parser.parse_optional_punctuation(",") is None:
            break
        operand = parser.parse_unresolved_operand()
    return found


def parse_operand(parser: Parser) -> SSAValue:
    """Reads one operand, whose type is that of the value. Raises xDSL's `ParseError`."""
    return _resolve(parser, parser.parse_unresolved_operand())


def _resolve(parser: Parser, operand: UnresolvedOperand) -> SSAValue:
    values = parser.ssa_values.get(operand.operand_name)
    if values is None or operand.index >= len(values):
        parser.raise_error(f"instruction does not exist: {operand.operand_name}", operand.span)
    return values[operand.index]


def print_computation(op: ComputationOp, printer: Printer) -> None:
    """Prints what follows `hlo.computation`."""
    if op.is_entry is not None:
        printer.print_string(" entry")
    printer.print_string(" ")
    printer.print_symbol_name(op.sym_name.data)
    rest = {k: v for k, v in op.properties.items() if k not in ("sym_name", "is_entry")}
    if rest | op.attributes:
        printer.print_string(" attributes ")
        printer.print_attr_dict(rest | op.attributes)
    printer.print_string(" ")
    printer.print_region(op.body)


def parse_computation(cls: type[ComputationOp], parser: Parser) -> ComputationOp:
    """Reads what follows `hlo.computation`. Raises xDSL's `ParseError`."""
    is_entry = parser.parse_optional_keyword("entry") is not None
    name = parser.parse_symbol_name()
    given = parser.parse_optional_attr_dict_with_keyword()
    own = cls.get_irdl_definition().properties
    properties: dict[str, Attribute] = {"sym_name": string(name.data)}
    attributes: dict[str, Attribute] = {}
    if given is not None:
        for key, value in given.data.items():
            (properties if key in own else attributes)[key] = value
    if is_entry:
        properties["is_entry"] = UnitAttr()
    region = parser.parse_region()
    return cls.create(properties=properties, attributes=attributes, regions=[region])
