"""Prints kernel modules exactly as the real printer does: pretty, generic and stable form."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    TensorType,
    UnregisteredOp,
)
from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects.stablehlo.elements import DenseAttr, dense, integer_width
from mlirhlo.dialects.stablehlo.opaque import OpaqueAttr
from mlirhlo.dialects.tpu.op_classes import SEGMENTS, groups
from mlirhlo.dialects.tpu.rows import Row
from mlirhlo.dialects.tpu.table import ROWS
from mlirhlo.formats.mosaic.names import KernelNamer, numbered
from mlirhlo.formats.mosaic.reader import GPU_PREFIX, PREFIX, default_of
from mlirhlo.formats.mosaic.reading import DYNAMIC
from mlirhlo.formats.mosaic.spellings import spelling
from mlirhlo.formats.mosaic.stable import is_for_gpus, stable_version, stated
from mlirhlo.formats.mosaic.templates import (
    AllTypes,
    Dict,
    Group,
    Listed,
    Node,
    Spelled,
    Text,
    Types,
    Values,
    nodes_of,
    shown_in,
)
from mlirhlo.formats.stablehlo.alias_order import AliasFinder
from mlirhlo.formats.stablehlo.aliases import Aliases, Visitor
from mlirhlo.formats.stablehlo.attribute_text import AttributeTexts
from mlirhlo.formats.stablehlo.names import Names
from mlirhlo.formats.stablehlo.printer import OpPrinter, Printer

Form: TypeAlias = Literal["pretty", "generic", "stable"]
"""How ops are printed. The stable form has all attributes in one dictionary."""


class _Unspellable(Exception):
    """The pretty form has no way to say this; the op is printed in generic form."""


class _Texts(AttributeTexts):
    """Attributes of kernels as MLIR prints them."""

    def spelled(self, attribute: Attribute) -> str:
        """An attribute in full."""
        text = super().spelled(attribute)
        # MLIR has a blank between these flags, unlike between those of fastmath; xDSL has none.
        if attribute.name == "arith.overflow":
            return text.replace(",", ", ")
        # LLVM's types leave their prefix out inside of one another.
        return text[:6] + text[6:].replace("!llvm.", "") if text.startswith("!llvm.") else text


class _BitTexts(_Texts):
    """Numbers by their bits, as bytecode has them: nothing is lost, whoever reads it."""

    def spelled(self, attribute: Attribute) -> str:
        """An attribute in full."""
        number: Any = attribute
        if isinstance(attribute, FloatAttr):
            splat = dense(number.value.data, TensorType(number.type, [1]))
            return f"{_bits(splat)} : {self.text(number.type)}"
        if isinstance(attribute, IntegerAttr):
            value, width = number.value.data, integer_width(number.type)
            if value < 0 and number.type == IntegerType(width) and 1 < width < 64:
                return f"{value + (1 << width)} : {self.text(number.type)}"
        if isinstance(number, DenseAttr) and number.data.is_splat:
            if isinstance(number.data.element_type, AnyFloat):
                return f"dense<{_bits(number)}> : {self.text(number.type)}"
        return super().spelled(number)


def _bits(splat: DenseAttr) -> str:
    return f"0x{splat.data.raw[::-1].hex().upper()}"


class KernelPrinter(Printer):
    """Prints one module."""

    def __init__(
        self,
        form: Form,
        *,
        with_locations: bool,
        names: Names,
        aliases: Aliases | None,
        prefix: str = "",
    ) -> None:
        super().__init__(
            is_generic=form != "pretty",
            with_locations=with_locations,
            names=names,
            aliases=aliases,
        )
        self._is_stable = form == "stable"
        self.attributes = _BitTexts(aliases) if self._is_stable else _Texts(aliases)
        self._prefix = prefix

    def printer_of(self, op: Operation) -> OpPrinter | None:
        """The printer of the op's pretty form; None for ops that have none."""
        from mlirhlo.formats.mosaic.structured_printers import PRINTERS

        row = ROWS.get(op.name)
        if row is None or row.form is None:
            return None
        return PRINTERS[row.form] if row.form.startswith("!") else _print_form

    def generic(self, op: Operation, indent: str) -> None:
        """Prints the generic form."""
        name = op.op_name.data if isinstance(op, UnregisteredOp) else op.name
        if self._prefix and name != "builtin.module":
            name = self._prefix + name
        attributes = {key: value for key, value in op.attributes.items() if key != "op_name__"}
        properties = op.properties
        if self._is_stable:
            attributes, properties = stated(op, {**properties, **attributes}), {}
            if self._prefix and isinstance(op, ModuleOp):
                key, version = stable_version(op)
                attributes[key] = version
        self.generic_form(op, name, properties, attributes, indent)

    # ------------------------------------------------------------ pieces for pretty forms

    def values(self, values: tuple[SSAValue, ...]) -> str:
        """`%a, %b`."""
        return ", ".join([self.value(value) for value in values])

    def types(self, values: tuple[SSAValue, ...]) -> str:
        """Their types, with commas between."""
        return ", ".join([self.type(value.type) for value in values])

    def is_usual(self, value: Attribute, default: str) -> bool:
        """Whether an attribute is the default of its row; bytecode has other classes than text for what no
        dialect here knows.
        """
        known = default_of(default)
        if isinstance(known, OpaqueAttr):
            return self.attributes.spelled(value) == known.data
        return value == known

    def rest(self, op: Operation, row: Row, shown: frozenset[str] = frozenset()) -> str:
        """The dictionary of what a pretty form does not show, with a blank in front."""
        entries = dict(op.attributes)
        defaults = {a.name: a.default for a in row.attributes if a.default is not None}
        for name, value in op.properties.items():
            if name in shown or name == SEGMENTS:
                continue
            default = defaults.get(name)
            if default is None or not self.is_usual(value, default):
                entries[name] = value
        return f" {self.attributes.dictionary(entries)}" if entries else ""


@dataclass(slots=True)
class _Shown:
    """What one op's template refers to."""

    printer: KernelPrinter
    op: Operation
    row: Row
    operands: dict[str, tuple[SSAValue, ...]]
    results: dict[str, tuple[SSAValue, ...]]

    def text(self, node: Node) -> str:
        """What a node prints."""
        printer = self.printer
        match node:
            case Text(text):
                return text
            case Values(name):
                return printer.values(self.operands[name])
            case Types(name):
                found = self.operands.get(name)
                return printer.types(self.results[name] if found is None else found)
            case Spelled(name, kind, operands) if kind in DYNAMIC:
                return self._mixed(self.op.properties.get(name), operands, DYNAMIC[kind])
            case Spelled(name, kind):
                return self._spelled(name, kind)
            case Dict():
                return printer.rest(self.op, self.row, shown_in(self.row.form or ""))
            case AllTypes():
                return printer.functional_type(self.op)
            case Listed(is_results):
                listed = self.op.results if is_results else self.op.operands
                return printer.types(tuple(listed))
            case Group(nodes, anchor, is_printed):
                stands = is_printed and self._stands(anchor)
                return "".join([self.text(n) for n in nodes]) if stands else ""

    def _stands(self, anchor: Values | Spelled | Types) -> bool:
        if not isinstance(anchor, Spelled):
            return bool((self.results | self.operands)[anchor.name])
        value = self.op.properties.get(anchor.name)
        if value is None:
            return False
        default = self.row.by_name[anchor.name].default
        return default is None or not self.printer.is_usual(value, default)

    def _spelled(self, name: str, kind: str) -> str:
        value = self.op.properties.get(name)
        text = spelling(kind).text(self.printer, value) if value is not None else None
        if text is None:
            raise _Unspellable
        return text

    def _mixed(self, numbers: Attribute | None, operands: str, dynamic: int) -> str:
        if not isinstance(numbers, DenseArrayBase):
            raise _Unspellable
        values = iter(self.operands[operands])
        shown: list[str] = []
        for number in numbers.get_values():
            value = next(values, None) if number == dynamic else None
            shown.append(str(number) if value is None else self.printer.value(value))
        return ", ".join(shown)


def _print_form(printer: Printer, op: Operation, indent: str) -> None:
    kernel = cast(KernelPrinter, printer)
    row = ROWS[op.name]
    operands = tuple(op.operands)
    results = tuple(op.results)
    shown = _Shown(
        kernel,
        op,
        row,
        groups(op, row, row.operands, operands),
        groups(op, row, row.results, results),
    )
    try:
        text = "".join([shown.text(node) for node in nodes_of(row.form or "")])
    except _Unspellable:
        kernel.generic(op, indent)
        return
    kernel.out.append(op.name + text)


class _KernelAliasFinder(AliasFinder):
    """As for programs; kernels have affine maps in the types of their values as well."""

    def walk(self, visitor: Visitor) -> None:
        """Hands every attribute to the visitor."""
        for op in self.module.walk():
            for value in op.results:
                _visit_type(value.type, visitor)
            for region in op.regions:
                for block in region.blocks:
                    for argument in block.args:
                        _visit_type(argument.type, visitor)
        super().walk(visitor)

    def dictionaries(self, op: Operation, visitor: Visitor) -> None:
        """Hands the attributes of an op to the visitor; simple bounds are numbers in pretty form,
        permutations are written out.
        """
        if self.generic or op.name not in ("affine.for", "memref.transpose"):
            super().dictionaries(op, visitor)


def _visit_type(type_: Attribute, visitor: Visitor) -> None:
    layout = getattr(type_, "layout", None)
    if isinstance(layout, Attribute):
        visitor.visit_others(layout)


_LOOP = re.compile(r"#llvm\.(loop_\w+)<[^<>]*>")


def _alias_loops(module: ModuleOp, aliases: Aliases) -> str:
    """Gives hints for loops the aliases of LLVM's dialect; their definitions, inner ones first."""
    names: dict[str, str] = {}
    counts: dict[str, int] = {}
    for op in module.walk():
        for attribute in (*op.properties.values(), *op.attributes.values()):
            if not isinstance(attribute, OpaqueAttr) or not attribute.data.startswith(
                "#llvm.loop_"
            ):
                continue
            text = attribute.data
            while (match := _LOOP.search(text)) is not None:
                if match[0] not in names:
                    number = counts.get(match[1], 0)
                    counts[match[1]] = number + 1
                    names[match[0]] = f"#{match[1]}{number or ''}"
                text = text.replace(match[0], names[match[0]])
            aliases.names[attribute] = text
    return "".join(f"{alias} = {spelled}\n" for spelled, alias in names.items())


def print_kernel(
    module: ModuleOp,
    *,
    form: Form = "pretty",
    debug_info: bool = False,
    keep_names: bool = True,
    prefix: str | None = None,
) -> str:
    """The module as MLIR prints it, with a line end.

    `debug_info` adds source places. The pretty form keeps the names that a program gave its values,
    unless `keep_names` is off. `prefix` stands before the names of ops, by default `stable_mosaic.`
    in the stable form.
    """
    generic = form != "pretty"
    if form == "stable":
        names = numbered(module)
    else:
        names = KernelNamer(is_generic=generic, keep_names=keep_names).name(module)
    aliases = _KernelAliasFinder(module, debug_info=debug_info, generic=generic).aliases()
    loops = _alias_loops(module, aliases)
    if prefix is None:
        stable = GPU_PREFIX if is_for_gpus(module) else PREFIX
        prefix = stable if form == "stable" else ""
    printer = KernelPrinter(
        form, with_locations=debug_info, names=names, aliases=aliases, prefix=prefix
    )
    printer.op(module, "")
    before, after = aliases.definitions(printer.attributes.spelled)
    return f"{loops}{before}{''.join(printer.out)}\n{after}"
