"""What the printed forms of Shardy's ops share: operands, attribute dictionaries, regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, cast

from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

OpT = TypeVar("OpT", bound=IRDLOperation)


def create(
    cls: type[OpT],
    operands: Sequence[SSAValue],
    results: Sequence[Attribute],
    properties: dict[str, Attribute],
    attributes: dict[str, Attribute],
    regions: Sequence[Region] = (),
) -> OpT:
    """The op; entries of the attribute dictionary that are inherent become properties."""
    inherent = cls.get_irdl_definition().properties
    properties = properties | {k: v for k, v in attributes.items() if k in inherent}
    return cls.create(
        operands=operands,
        result_types=results,
        properties=properties,
        attributes={k: v for k, v in attributes.items() if k not in inherent},
        regions=regions,
    )


def read_end(
    cls: type[OpT], parser: Parser, operand: UnresolvedOperand, properties: dict[str, Attribute]
) -> OpT:
    """Reads `attr-dict : type` of an op with one operand; a result has the operand's type."""
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    kind = parser.parse_type()
    value = parser.resolve_operand(operand, kind)
    results = [kind] if cls.get_irdl_definition().results else []
    return create(cls, [value], results, properties, attributes)


def print_end(op: Operation, printer: Printer) -> None:
    """Prints what `read_end` reads."""
    print_attributes(op, printer)
    printer.print_string(" : ")
    printer.print_attribute(op.operands[0].type)


def print_attributes(op: Operation, printer: Printer) -> None:
    """Prints the attribute dictionary, sorted as MLIR keeps it; nothing where there is none."""
    if op.attributes:
        printer.print_string(" ")
        printer.print_attr_dict(dict(sorted(op.attributes.items())))


def read_operand_list(parser: Parser) -> list[UnresolvedOperand]:
    """Reads `(%a, %b)`."""
    return parser.parse_comma_separated_list(
        parser.Delimiter.PAREN, parser.parse_unresolved_operand
    )


def print_operand_list(values: Sequence[SSAValue], printer: Printer) -> None:
    """Prints `(%a, %b)`."""
    with printer.in_parens():
        printer.print_list(values, printer.print_operand)


def read_body(parser: Parser) -> Region:
    """Reads `(%arg0: type, …) { … }`."""
    arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
    return parser.parse_region(arguments)


def print_body(region: Region, printer: Printer) -> None:
    """Prints what `read_body` reads."""
    with printer.in_parens():
        printer.print_list(region.block.args, printer.print_block_argument)
    printer.print_string(" ")
    printer.print_region(region, print_entry_block_args=False)


def read_region_end(
    cls: type[OpT],
    parser: Parser,
    operands: Sequence[UnresolvedOperand],
    properties: dict[str, Attribute],
) -> OpT:
    """Reads `(args) { … } attr-dict : (types) -> types`."""
    body = read_body(parser)
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    start = parser.pos
    kind = parser.parse_function_type()
    inputs = cast("Sequence[Attribute]", kind.inputs.data)
    values = parser.resolve_operands(operands, inputs, start)
    return create(cls, values, tuple(kind.outputs.data), properties, attributes, [body])


def print_region_end(op: Operation, printer: Printer) -> None:
    """Prints what `read_region_end` reads."""
    print_body(op.regions[0], printer)
    print_attributes(op, printer)
    printer.print_string(" : ")
    printer.print_operation_type(op)
