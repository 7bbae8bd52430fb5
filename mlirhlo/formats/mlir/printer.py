"""Prints modules as MLIR.

xDSL's printer costs 50 µs an op. A module of computations is therefore written straight from its
instructions, with the text of every attribute and type kept by identity; anything else goes
through the printer. Both give the same text, which a test holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from io import StringIO

from xdsl.dialects.builtin import ModuleOp, TupleType
from xdsl.ir import Attribute, SSAValue
from xdsl.printer import Printer

from mlirhlo.dialects.hlo.attributes.base import int_of
from mlirhlo.dialects.hlo.ops import ComputationOp, Instruction, ReturnOp
from mlirhlo.dialects.hlo.ops.assembly import PARAMETER_NUMBER, printed_properties, short_literal

_ESCAPES = {c: f"\\{c:02X}" for c in (*range(0x20), *range(0x7F, 0x100), ord('"'))} | {
    ord("\\"): "\\\\"
}
_MAX_ELEMENTS = 16
"""Of tuples that are written out wherever they are, as in MLIR."""


def mlir_string(text: str) -> str:
    """An MLIR string literal; bytes that are not UTF-8 (surrogate escapes) stay bytes."""
    raw = text.encode("utf-8", "surrogateescape").decode("latin-1")
    return f'"{raw.translate(_ESCAPES)}"'


@dataclass
class _Aliases:
    """Names for types."""

    names: dict[Attribute, str] = field(default_factory=dict[Attribute, str])
    _by_identity: dict[int, str] = field(default_factory=dict[int, str])
    """The same, as hashing a type looks at all of it."""

    def of(self, attribute: Attribute) -> str:
        """The name of a type, which lives as long as this."""
        if (name := self._by_identity.get(id(attribute))) is None:
            number = len(self.names)
            name = self.names.setdefault(attribute, f"!tuple{number}" if number else "!tuple")
            self._by_identity[id(attribute)] = name
        return name


@dataclass(eq=False, repr=False)
class MlirPrinter(Printer):
    """xDSL's printer, able to print any HLO string and any names of values.

    xDSL numbers values of one name (`x`, `x_1`) and takes it that no name ends in a number itself, as those of
    instructions do.
    """

    aliases: _Aliases | None = None
    """Of long tuples that have been printed; None: they are written out."""

    def print_attribute(self, attribute: Attribute) -> None:
        """Prints `attribute`, a long tuple by its alias."""
        if (
            self.aliases is not None
            and isinstance(attribute, TupleType)
            and len(attribute.types) > _MAX_ELEMENTS
        ):
            self.print_string(self.aliases.of(attribute))
        else:
            super().print_attribute(attribute)

    def print_ssa_value(self, value: SSAValue) -> str:
        """Prints the name of `value`, at its definition one that no value of the scope has."""
        hint = value.name_hint
        if value not in self._ssa_values and hint:
            names, number = self.ssa_names, self.ssa_names.get(hint, 0)
            while (name := f"{hint}_{number}" if number else hint) in names:
                number += 1
            names[hint] = number + 1
            names.setdefault(name, 1)
            self._ssa_values[value] = name
        return super().print_ssa_value(value)

    def print_string_literal(self, string: str) -> None:
        """Prints `string`, surrogate escapes as the bytes they stand for."""
        self.print_string(mlir_string(string))


def print_module(module: ModuleOp, generic: bool = False) -> str:
    """MLIR text of `module`, ending in a line end; every op in generic form if asked for."""
    block = module.body.block
    if (
        generic
        or not all(isinstance(op, ComputationOp) for op in block.ops)
        or block.first_op is None
    ):
        return _printed(module, generic)
    return _Writer().module(module)


def _printed(module: ModuleOp, generic: bool) -> str:
    """By xDSL's printer. Each reader of a tuple has its type in the generic form: long ones are written once, before
    the module, which MLIR does too."""
    stream = StringIO()
    aliases = _Aliases()
    MlirPrinter(stream, print_generic_format=generic, aliases=aliases).print_op(module)
    definitions: list[str] = []
    for attribute, name in aliases.names.items():
        text = StringIO()
        MlirPrinter(text, print_generic_format=generic).print_attribute(attribute)
        definitions.append(f"{name} = {text.getvalue()}\n")
    return "".join([*definitions, stream.getvalue(), "\n"])


class _Writer:
    """Writes a module of computations; keeps the text of each attribute object."""

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}
        self._kept: list[Attribute] = []

    def _attribute(self, attribute: Attribute) -> str:
        text = self._texts.get(id(attribute))
        if text is None:
            stream = StringIO()
            MlirPrinter(stream).print_attribute(attribute)
            text = self._texts[id(attribute)] = stream.getvalue()
            self._kept.append(attribute)
        return text

    def module(self, module: ModuleOp) -> str:
        shell = StringIO()
        MlirPrinter(shell).print_op(ModuleOp([], module.attributes, module.sym_name))
        head = shell.getvalue()
        out = [head[: head.rindex("{")], "{\n"]
        for op in module.body.block.ops:
            assert isinstance(op, ComputationOp)
            self._computation(op, out)
        out.append("}\n")
        return "".join(out)

    def _computation(self, op: ComputationOp, out: list[str]) -> None:
        shell = StringIO()
        printer = MlirPrinter(shell)
        printer.print_string("  hlo.computation")
        if op.is_entry is not None:
            printer.print_string(" entry")
        printer.print_string(" ")
        printer.print_symbol_name(op.sym_name.data)
        rest = {
            k: v for k, v in op.properties.items() if k not in ("sym_name", "is_entry")
        } | op.attributes
        if rest:
            printer.print_string(" attributes ")
            printer.print_attr_dict(rest)
        out.append(shell.getvalue() + " {\n")
        names: dict[SSAValue, str] = {}
        counts: dict[str, int] = {}
        for inner in op.body.block.ops:
            if isinstance(inner, Instruction):
                self._instruction(inner, names, counts, out)
            elif isinstance(inner, ReturnOp):
                out.append(f"    hlo.return %{names[inner.root]}\n")
        out.append("  }\n")

    def _instruction(
        self, op: Instruction, names: dict[SSAValue, str], counts: dict[str, int], out: list[str]
    ) -> None:
        name = fresh_name(op.instruction_name, counts, names)
        names[op.results[0]] = name
        parts = [f"    %{name} = {op.name}"]
        if op.name == "hlo.parameter" and PARAMETER_NUMBER in op.properties:
            parts.append(str(int_of(op.properties[PARAMETER_NUMBER])))
        elif op.name == "hlo.constant" and (literal := short_literal(op)) is not None:
            parts.append(mlir_string(literal.to_text()))
        control = op.control_predecessors
        inputs = op.inputs
        if inputs:
            parts.append(", ".join(["%" + names[v] for v in inputs]))
        if control:
            parts.append("after")
            parts.append(", ".join(["%" + names[v] for v in control]))
        shown = printed_properties(op)
        if shown:
            parts.append(self._dictionary(shown))
        if op.attributes:
            parts.append("attributes " + self._dictionary(op.attributes))
        out.append(" ".join(parts) + " : " + self._attribute(op.results[0].type) + "\n")

    def _dictionary(self, entries: dict[str, Attribute]) -> str:
        attribute: Callable[[Attribute], str] = self._attribute
        return (
            "{"
            + ", ".join([k if _is_unit(v) else f"{k} = {attribute(v)}" for k, v in entries.items()])
            + "}"
        )


def _is_unit(attribute: Attribute) -> bool:
    return attribute.name == "unit"


def fresh_name(name: str | None, counts: dict[str, int], names: dict[SSAValue, str]) -> str:
    """`name`, or the name xDSL's printer would give it where it is missing or taken."""
    if not name:
        number = counts.get("", 0)
        counts[""] = number + 1
        return str(number)
    seen = counts.get(name, 0)
    counts[name] = seen + 1
    if not seen:
        return name
    # xDSL appends `_n` without looking; HLO names may end so, hence the loop.
    while f"{name}_{seen}" in counts:
        seen += 1
    counts[f"{name}_{seen}"] = 1
    return f"{name}_{seen}"
