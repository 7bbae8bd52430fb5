"""Prints programs as MLIR does: pretty or generic, with or without source places."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

from xdsl.dialects.builtin import ModuleOp, UnknownLoc, UnregisteredOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.attributes.base import string
from mlirhlo.dialects.quick import MAX_REGION_DEPTH, REGION_DEPTH_HELP, is_nested_too_deep
from mlirhlo.dialects.stablehlo.op_classes import TableOp
from mlirhlo.dialects.stablehlo.rows import OpRow
from mlirhlo.formats.stablehlo.aliases import Aliases
from mlirhlo.formats.stablehlo.attribute_text import AttributeTexts, symbol_text
from mlirhlo.formats.stablehlo.names import Namer, Names
from mlirhlo.formats.stablehlo.properties import SEGMENTS
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.formats.stablehlo import alias_order


class Printer:
    """Prints one module."""

    def __init__(
        self, *, is_generic: bool, with_locations: bool, names: Names, aliases: Aliases | None
    ) -> None:
        self.is_generic = is_generic
        self.with_locations = with_locations
        self.names = names
        self.aliases = aliases
        self.attributes = AttributeTexts(aliases)
        self.out: list[str] = []
        self.dialects: list[str] = [""]
        self._values = names.values
        self._defaults: dict[tuple[str, str], Attribute | None] = {}

    # ------------------------------------------------------------ pieces

    def value(self, value: SSAValue) -> str:
        """The name of a value."""
        known = self._values.get(value)
        return known if known is not None else "<<UNKNOWN SSA VALUE>>"

    def type(self, type_: Attribute) -> str:
        """A type."""
        return self.attributes.text(type_)

    def attribute(self, attribute: Attribute) -> str:
        """An attribute."""
        return self.attributes.text(attribute)

    def functional_type(self, op: Operation) -> str:
        """`(types) -> types`."""
        text = self.attributes.text
        operands = ", ".join([text(v.type) for v in op.operands])
        results = op.results
        if len(results) == 1 and not text(results[0].type).startswith("("):
            return f"({operands}) -> {text(results[0].type)}"
        return f"({operands}) -> ({', '.join([text(v.type) for v in results])})"

    symbol_text = staticmethod(symbol_text)

    def operand_text(self, op: TableOp, name: str) -> str:
        """The operands of one entry of the row."""
        found = getattr(op, name)
        if isinstance(found, tuple):
            return ", ".join(self.value(v) for v in cast("tuple[SSAValue, ...]", found))
        return self.value(found)

    def is_default(self, op: TableOp, name: str, value: Attribute) -> bool:
        """Whether a property has its default."""
        own = op.row.by_name.get(name)
        if own is None or own.default is None:
            return False
        return self.attributes.text(value) == _default_text(own.kind, own.default)

    def dictionary_text(self, op: TableOp, shown: frozenset[str]) -> str:
        """What the pretty form does not show, with a blank in front; nothing where there is none."""
        properties = op.properties
        if not op.attributes and len(properties) <= len(shown):
            if all(name in shown for name in properties):
                return ""
        hidden = {
            name: value
            for name, value in properties.items()
            if name not in shown and name not in SEGMENTS and not self.is_default(op, name, value)
        }
        entries = {**op.attributes, **hidden}
        return f" {self.attributes.dictionary(entries)}" if entries else ""

    def location(self, attribute: Any) -> str:
        """` loc(…)` where places are printed."""
        if not self.with_locations:
            return ""
        return f" {self.attributes.location(attribute)}"

    def place_of(self, argument: SSAValue) -> str:
        """` loc(…)` of an argument, never by an alias."""
        if not self.with_locations:
            return ""
        place = getattr(argument, "location", None) or UnknownLoc()
        return f" {self.attributes.spelled_location(place)}"

    # ------------------------------------------------------------ ops

    def op(self, op: Operation, indent: str) -> None:
        """Prints an op, without the line end."""
        out = self.out
        pack = self.names.packs.get(op)
        if pack is not None:
            out.append(f"{pack} = ")
        printer = None if self.is_generic else self.printer_of(op)
        if printer is not None:
            printer(self, op, indent)
        else:
            self.generic(op, indent)
        if self.with_locations:
            out.append(self.location(op.location))

    def printer_of(self, op: Operation) -> OpPrinter | None:
        """What prints the pretty form of an op; None for ops that have none."""
        return _printer_of(op)

    def generic(self, op: Operation, indent: str) -> None:
        """Prints the generic form."""
        attributes = op.attributes
        name = op.name
        if isinstance(op, UnregisteredOp):
            name = op.op_name.data
            attributes = {k: v for k, v in attributes.items() if k != "op_name__"}
        properties = op.properties
        if isinstance(op, TableOp) and op.row.properties:
            properties = _filled_in(op.row, properties, self)
        self.generic_form(op, name, properties, attributes, indent)

    def generic_form(
        self,
        op: Operation,
        name: str,
        properties: dict[str, Attribute],
        attributes: dict[str, Attribute],
        indent: str,
    ) -> None:
        """`"name"(operands)[successors] <{properties}> ({regions}) {attributes} : type`."""
        out = self.out
        out.append(f'"{name}"({", ".join([self.value(v) for v in op.operands])})')
        if op.successors:
            out.append(f"[{', '.join(self.names.blocks[b] for b in op.successors)}]")
        if properties:
            out.append(f" <{self.attributes.dictionary(properties)}>")
        if op.regions:
            out.append(" (")
            for number, region in enumerate(op.regions):
                if number:
                    out.append(", ")
                self.dialects.append("")
                self.region(region, indent)
                self.dialects.pop()
            out.append(")")
        if attributes:
            out.append(f" {self.attributes.dictionary(attributes)}")
        out.append(f" : {self.functional_type(op)}")

    # ------------------------------------------------------------ regions

    def region(
        self,
        region: Region,
        indent: str,
        *,
        with_arguments: bool = True,
        with_terminator: bool = True,
    ) -> None:
        """Prints `{ … }`."""
        out = self.out
        out.append("{\n")
        blocks = list(region.blocks)
        for number, block in enumerate(blocks):
            if (
                number
                or (with_arguments and (block.args or (not block.ops and len(blocks) > 1)))
                or (not block.ops and self.is_generic and len(blocks) == 1)
            ):
                self._label(block, indent)
            self._ops(block, indent, with_terminator=with_terminator)
        out.append(f"{indent}}}")

    def _ops(self, block: Block, indent: str, *, with_terminator: bool) -> None:
        out, inner = self.out, indent + "  "
        last = block.last_op
        for op in block.ops:
            if op is last and not with_terminator:
                return
            out.append(inner)
            self.op(op, inner)
            out.append("\n")

    def _label(self, block: Block, indent: str) -> None:
        out = self.out
        out.append(f"{indent}{self.names.blocks[block]}")
        if block.args:
            shown = [f"{self.value(a)}: {self.type(a.type)}{self.place_of(a)}" for a in block.args]
            out.append(f"({', '.join(shown)})")
        out.append(":")
        self._predecessors(block)
        out.append("\n")

    def _predecessors(self, block: Block) -> None:
        region = block.parent
        if region is None or region.blocks[0] is block:
            return
        found = [
            self.names.blocks[other]
            for other in region.blocks
            if other.last_op is not None and block in other.last_op.successors
        ]
        if not found:
            self.out.append("  // no predecessors")
        elif len(found) == 1:
            self.out.append(f"  // pred: {found[0]}")
        else:
            self.out.append(f"  // {len(found)} preds: {', '.join(found)}")

    def list(self, texts: Iterable[str]) -> None:
        """Prints texts with commas between."""
        self.out.append(", ".join(texts))


def _filled_in(row: OpRow, properties: dict[str, Attribute], printer: Printer) -> dict[str, Any]:
    """The properties as MLIR shows them in generic form."""
    missing = [p for p in row.properties if p.is_filled_in and p.name not in properties]
    if not missing:
        return properties

    del printer
    return {**properties, **{p.name: string(p.default or "") for p in missing}}


_DEFAULTS: dict[tuple[str, str], str] = {}


def _default_text(kind: str, default: str) -> str:
    known = _DEFAULTS.get((kind, default))
    if known is None:
        match kind:
            case "i32" | "i64":
                known = f"{default} : {kind}"
            case "str":
                known = f'"{default}"'
            case "dict" if default == "{}":
                known = "{}"
            case _:
                known = default.replace("mode=", "mode = ")
        _DEFAULTS[kind, default] = known
    return known


OpPrinter = Callable[[Printer, Operation, str], None]


def _printer_of(op: Operation) -> OpPrinter | None:
    from mlirhlo.formats.stablehlo.pretty_printers import printer_of

    return printer_of(op)


def print_module(module: ModuleOp, *, generic: bool = False, debug_info: bool = False) -> str:
    """The program as MLIR prints it, with a line end; `generic` without pretty forms,
    `debug_info` with source places."""
    if is_nested_too_deep(module):
        message = f"regions are nested deeper than {MAX_REGION_DEPTH}"
        raise error("HLO0033", message, help=REGION_DEPTH_HELP)
    names = Namer(is_generic=generic).name(module)
    aliases = alias_order.AliasFinder(module, debug_info=debug_info, generic=generic).aliases()
    printer = Printer(is_generic=generic, with_locations=debug_info, names=names, aliases=aliases)
    printer.op(module, "")
    body = "".join(printer.out)
    before, after = aliases.definitions(printer.attributes.spelled)
    resources = getattr(module, "resources", "")
    return f"{before}{body}\n{after}" + (f"\n{resources}\n" if resources else "")
