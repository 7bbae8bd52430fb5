"""Printers of pretty forms: those of templates, those of functions, and those dialects bring."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, StringAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.printer import Printer as XdslPrinter

from mlirhlo.dialects.hlo.attributes.base import ints
from mlirhlo.dialects.stablehlo.op_classes import TableOp
from mlirhlo.dialects.stablehlo.structs import spell_ints
from mlirhlo.formats.stablehlo.attribute_text import symbol_text
from mlirhlo.formats.stablehlo.compact import applied_op
from mlirhlo.formats.stablehlo.templates import text_of

if TYPE_CHECKING:
    from mlirhlo.formats.stablehlo.printer import Printer

OpPrinter: TypeAlias = "Callable[[Printer, Any, str], None]"
"""Prints an op after `results =`; the text is the indentation of its line."""


def printer_of(op: Operation) -> OpPrinter | None:
    """How the pretty form of an op is printed; None for ops that have none."""
    if isinstance(op, TableOp):
        form = op.row.form
        if form is None:
            return None
        return _CUSTOM.get(form, _print_template)
    own = _OWN.get(op.name)
    if own is not None:
        return own
    return None if type(op).print is Operation.print else _print_foreign


def _print_template(printer: Printer, op: TableOp, indent: str) -> None:
    del indent
    printer.out.append(op.name + text_of(printer, op, cast(str, op.row.form)))


# ---------------------------------------------------------------- stablehlo

_NOTHING: frozenset[str] = frozenset()


def _print_constant(printer: Printer, op: TableOp, indent: str) -> None:
    del indent
    value = op.properties["value"]
    type_ = op.results[0].type
    get_type = getattr(value, "get_type", None)
    if get_type is not None and get_type() == type_:
        extra = printer.dictionary_text(op, frozenset({"value"}))
        printer.out.append(f"{op.name}{extra} {printer.attribute(value)}")
        return
    properties = printer.attributes.dictionary(op.properties)
    extra = f" {printer.attributes.dictionary(op.attributes)}" if op.attributes else ""
    printer.out.append(f"{op.name}() <{properties}>{extra} : {printer.functional_type(op)}")


def _print_barrier(printer: Printer, op: TableOp, indent: str) -> None:
    del indent
    printer.out.append(f"{op.name}{printer.dictionary_text(op, _NOTHING)}")
    if not op.operands:
        printer.out.append("()")
        return
    values = ", ".join(printer.value(v) for v in op.operands)
    types = ", ".join(printer.type(v.type) for v in op.operands)
    printer.out.append(f" {values} : {types}")


def _print_reduce(printer: Printer, op: TableOp, indent: str) -> None:
    out = printer.out
    count = len(op.operands) // 2
    pairs = [
        f"({printer.value(op.operands[i])} init: {printer.value(op.operands[count + i])})"
        for i in range(count)
    ]
    out.append(f"{op.name}{', '.join(pairs)}")
    inner = applied_op(op)
    if inner is not None:
        out.append(f" applies {inner.name}")
    out.append(f" across dimensions = {spell_ints(ints(op.properties['dimensions']))}")
    out.append(printer.dictionary_text(op, frozenset({"dimensions"})))
    out.append(f" : {printer.functional_type(op)}")
    if inner is not None:
        return
    out.append(f"\n{indent} reducer")
    block = op.regions[0].blocks[0]
    for position in range(count):
        shown = [
            f"{printer.value(a)}: {printer.type(a.type)}{printer.place_of(a)}"
            for a in (block.args[position], block.args[position + count])
        ]
        out.append(f"({', '.join(shown)}) ")
    out.append(" ")
    _print_region(printer, op.regions[0], indent)


def _print_region(printer: Printer, region: Region, indent: str, dialect: str = "") -> None:
    printer.dialects.append(dialect)
    printer.region(region, indent, with_arguments=False)
    printer.dialects.pop()


def _print_while(printer: Printer, op: TableOp, indent: str) -> None:
    out = printer.out
    blocks = op.regions[0].blocks
    arguments: Sequence[SSAValue] = blocks[0].args if blocks else ()
    pairs = [
        f"{printer.value(a)} = {printer.value(v)}"
        for a, v in zip(arguments, op.operands, strict=False)
    ]
    out.append(f"{op.name}({', '.join(pairs)})")
    if op.operands:
        out.append(f" : {', '.join(printer.type(v.type) for v in op.operands)}")
    if op.attributes:
        out.append(f" attributes {printer.attributes.dictionary(op.attributes)}")
    out.append(f"\n{indent}cond ")
    _print_region(printer, op.regions[0], indent)
    out.append(" do ")
    _print_region(printer, op.regions[1], indent)


def _print_scan(printer: Printer, op: TableOp, indent: str) -> None:
    out = printer.out
    inputs = ", ".join(printer.value(v) for v in op.inputs)
    inits = ", ".join(printer.value(v) for v in op.inits)
    out.append(f"{op.name}({inputs}) inits ({inits})")
    out.append(f" dimension={_number(op.properties['dimension'])} ")
    extra = printer.dictionary_text(op, frozenset({"dimension"}))
    out.append(f" attributes{extra} " if extra else " ")
    printer.dialects.append("")
    printer.region(op.regions[0], indent)
    printer.dialects.pop()
    out.append(f" : {printer.functional_type(op)}")


def _number(attribute: Attribute) -> int:
    return cast(int, cast(Any, attribute).value.data)


_CUSTOM: Mapping[str, OpPrinter] = {
    "{barrier}": _print_barrier,
    "{constant}": _print_constant,
    "{reduce}": _print_reduce,
    "{scan}": _print_scan,
    "{while}": _print_while,
}

# ---------------------------------------------------------------- modules and functions


def _print_module(printer: Printer, op: Operation, indent: str) -> None:
    out = printer.out
    out.append("module" if printer.dialects[-1] in ("", "builtin") else "builtin.module")
    visibility = op.properties.get("sym_visibility")
    if isinstance(visibility, StringAttr):
        out.append(f" {visibility.data}")
    name = op.properties.get("sym_name") or op.attributes.get("sym_name")
    if isinstance(name, StringAttr):
        out.append(f" {symbol_text(name.data)}")
    attributes = {k: v for k, v in op.attributes.items() if k != "sym_name"}
    if attributes:
        out.append(f" attributes {printer.attributes.dictionary(attributes)}")
    out.append(" ")
    _print_region(printer, op.regions[0], indent, "builtin")


def _print_function(printer: Printer, op: Operation, indent: str) -> None:
    out = printer.out
    properties = op.properties
    visibility = properties.get("sym_visibility")
    out.append("func.func ")
    if isinstance(visibility, StringAttr):
        out.append(f"{visibility.data} ")
    out.append(symbol_text(cast(StringAttr, properties["sym_name"]).data))
    type_ = cast(FunctionType, properties["function_type"])
    blocks = op.regions[0].blocks
    given = _dictionaries(properties.get("arg_attrs"), len(type_.inputs.data))
    if blocks:
        shown = [
            f"{printer.value(a)}: {printer.type(a.type)}{_extra(printer, d)}{printer.place_of(a)}"
            for a, d in zip(blocks[0].args, given, strict=False)
        ]
    else:
        shown = [
            f"{printer.type(t)}{_extra(printer, d)}"
            for t, d in zip(type_.inputs.data, given, strict=True)
        ]
    out.append(f"({', '.join(shown)})")
    outputs = type_.outputs.data
    if outputs:
        extras = _dictionaries(properties.get("res_attrs"), len(outputs))
        if len(outputs) == 1 and not extras[0] and not isinstance(outputs[0], FunctionType):
            out.append(f" -> {printer.type(outputs[0])}")
        else:
            parts = [
                f"{printer.type(t)}{_extra(printer, d)}"
                for t, d in zip(outputs, extras, strict=True)
            ]
            out.append(f" -> ({', '.join(parts)})")
    shown_names = ("sym_name", "function_type", "sym_visibility", "arg_attrs", "res_attrs")
    others = {
        **op.attributes,
        **{name: value for name, value in properties.items() if name not in shown_names},
    }
    if others:
        out.append(f" attributes {printer.attributes.dictionary(others)}")
    if blocks:
        out.append(" ")
        _print_region(printer, op.regions[0], indent, "func")


def _dictionaries(attribute: Attribute | None, count: int) -> list[dict[str, Attribute]]:
    if not isinstance(attribute, ArrayAttr):
        return [{}] * count
    entries = cast("ArrayAttr[DictionaryAttr]", attribute).data
    return [dict(entry.data) for entry in entries] + [{}] * (count - len(entries))


def _extra(printer: Printer, entries: dict[str, Attribute]) -> str:
    return f" {printer.attributes.dictionary(entries)}" if entries else ""


def _short(printer: Printer, op: Operation) -> str:
    """The name of an op of the func dialect, without the dialect inside of functions."""
    return op.name.partition(".")[2] if printer.dialects[-1] == "func" else op.name


def _print_call(printer: Printer, op: Operation, indent: str) -> None:
    del indent
    properties = dict(op.properties)
    callee = printer.attribute(properties.pop("callee"))
    operands = ", ".join(printer.value(v) for v in op.operands)
    others = {**op.attributes, **properties}
    printer.out.append(
        f"{_short(printer, op)} {callee}({operands}){_extra(printer, others)}"
        f" : {printer.functional_type(op)}"
    )


def _print_return(printer: Printer, op: Operation, indent: str) -> None:
    del indent
    text = _short(printer, op) + _extra(printer, dict(op.attributes))
    if op.operands:
        types = ", ".join(printer.type(v.type) for v in op.operands)
        text += f" {', '.join(printer.value(v) for v in op.operands)} : {types}"
    printer.out.append(text)


_OWN: Mapping[str, OpPrinter] = {
    "builtin.module": _print_module,
    "func.call": _print_call,
    "func.func": _print_function,
    "func.return": _print_return,
}

# ---------------------------------------------------------------- other dialects


class _Stream:
    """A stream into the printer's text."""

    def __init__(self, out: list[str]) -> None:
        self._out = out

    def write(self, text: str) -> int:
        self._out.append(text)
        return len(text)


class _Bridge(XdslPrinter):
    """xDSL's printer for the form a dialect brings; values, attributes and regions are ours."""

    def __init__(self, printer: Printer, indent: str) -> None:
        super().__init__(stream=cast(Any, _Stream(printer.out)))
        self._own = printer
        self._own_indent = indent

    def print_attribute(self, attribute: Attribute) -> None:
        self.print_string(self._own.attribute(attribute))

    def print_ssa_value(self, value: SSAValue) -> str:
        name = self._own.value(value)
        self.print_string(name)
        return name

    def print_block_argument(self, arg: BlockArgument, print_type: bool = True) -> None:
        self.print_string(self._own.value(arg))
        if print_type:
            self.print_string(f": {self._own.type(arg.type)}{self._own.place_of(arg)}")

    def print_block_name(self, block: Block) -> str:
        name = self._own.names.blocks[block]
        self.print_string(name)
        return name

    def print_attr_dict(self, attr_dict: Mapping[str, Attribute]) -> None:
        self.print_string(self._own.attributes.dictionary(dict(attr_dict)))

    def print_region(
        self,
        region: Region,
        print_entry_block_args: bool = True,
        print_empty_block: bool = True,
        print_block_terminators: bool = True,
    ) -> None:
        del print_empty_block
        self._own.dialects.append("")
        self._own.region(
            region,
            self._own_indent,
            with_arguments=print_entry_block_args,
            with_terminator=print_block_terminators,
        )
        self._own.dialects.pop()


def _print_foreign(printer: Printer, op: Operation, indent: str) -> None:
    printer.out.append(op.name)
    op.print(_Bridge(printer, indent))
