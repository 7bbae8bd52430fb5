"""Printers of the pretty forms that no template describes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    StringAttr,
    i1,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from mlirhlo.dialects.tpu.op_classes import SEGMENTS, groups
from mlirhlo.dialects.tpu.table import ROWS
from mlirhlo.formats.mosaic import gpu_forms
from mlirhlo.formats.mosaic.printer import KernelPrinter
from mlirhlo.formats.mosaic.reader import default_of
from mlirhlo.formats.stablehlo.pretty_printers import printer_of
from mlirhlo.formats.stablehlo.printer import OpPrinter, Printer

_ITERATOR = re.compile(r"#vector\.iterator_type<(\w+)>")


def _program_form(printer: Printer, op: Operation, indent: str) -> None:
    """Modules, functions, calls and returns, as in all programs."""
    own = printer_of(op)
    assert own is not None
    own(printer, op, indent)


def _parts(op: Operation) -> dict[str, tuple[SSAValue, ...]]:
    row = ROWS[op.name]
    return groups(op, row, row.operands, tuple(op.operands))


def _rest(printer: Printer, op: Operation, *shown: str) -> str:
    return cast(KernelPrinter, printer).rest(op, ROWS[op.name], frozenset(shown))


def _values(printer: Printer, values: Sequence[SSAValue]) -> str:
    return ", ".join([printer.value(value) for value in values])


def _types(printer: Printer, values: Sequence[SSAValue]) -> str:
    return ", ".join([printer.type(value.type) for value in values])


def _arrow(printer: Printer, op: Operation, *, bare: bool = False) -> str:
    """` -> (types)`; nothing without results. `bare`: no brackets around a single type."""
    if not op.results:
        return ""
    types = _types(printer, tuple(op.results))
    return f" -> {types}" if bare and len(op.results) == 1 else f" -> ({types})"


def _region(
    printer: Printer,
    op: Operation,
    number: int,
    indent: str,
    *,
    arguments: bool = False,
    terminator: bool = True,
) -> None:
    printer.dialects.append("")
    printer.region(op.regions[number], indent, with_arguments=arguments, with_terminator=terminator)
    printer.dialects.pop()


def _print_constant(printer: Printer, op: Operation, indent: str) -> None:
    del indent
    value = printer.attribute(op.properties["value"])
    printer.out.append(f"{op.name}{_rest(printer, op, 'value')} {value}")


def _print_select(printer: Printer, op: Operation, indent: str) -> None:
    del indent
    condition = op.operands[0].type
    first = "" if condition == i1 else f"{printer.type(condition)}, "
    values = _values(printer, tuple(op.operands))
    type_ = printer.type(op.results[0].type)
    printer.out.append(f"{op.name} {values}{_rest(printer, op)} : {first}{type_}")


def _print_if(printer: Printer, op: Operation, indent: str) -> None:
    out = printer.out
    out.append(f"{op.name} {printer.value(op.operands[0])}{_arrow(printer, op)} ")
    _region(printer, op, 0, indent, terminator=bool(op.results))
    if op.regions[1].blocks:
        out.append(" else ")
        _region(printer, op, 1, indent, terminator=bool(op.results))
    out.append(_rest(printer, op))


def _pairs(printer: Printer, arguments: Sequence[SSAValue], initial: Sequence[SSAValue]) -> str:
    pairs = zip(arguments, initial, strict=False)
    return ", ".join([f"{printer.value(a)} = {printer.value(v)}" for a, v in pairs])


def _arguments(op: Operation, number: int = 0) -> tuple[SSAValue, ...]:
    blocks: Sequence[Block] = op.regions[number].blocks
    return tuple(blocks[0].args) if blocks else ()


def _print_for(printer: Printer, op: Operation, indent: str) -> None:
    out = printer.out
    induction, *carried = _arguments(op)
    lower, upper, step, *initial = op.operands
    unsigned = " unsigned" if "unsignedCmp" in op.properties else ""
    out.append(
        f"{op.name}{unsigned} {printer.value(induction)} = {printer.value(lower)}"
        f" to {printer.value(upper)} step {printer.value(step)} "
    )
    if initial:
        out.append(f"iter_args({_pairs(printer, carried, initial)}){_arrow(printer, op)} ")
    if not isinstance(lower.type, IndexType):
        out.append(f" : {printer.type(lower.type)} ")
    _region(printer, op, 0, indent, terminator=bool(initial))
    out.append(_rest(printer, op, "unsignedCmp"))


def _print_while(printer: Printer, op: Operation, indent: str) -> None:
    out = printer.out
    out.append(op.name)
    if op.operands:
        out.append(f" ({_pairs(printer, _arguments(op), tuple(op.operands))})")
    out.append(f" : {printer.functional_type(op)} ")
    _region(printer, op, 0, indent)
    out.append(" do ")
    _region(printer, op, 1, indent, arguments=True)
    rest = _rest(printer, op)
    out.append(f" attributes{rest}" if rest else "")


def _print_index_switch(printer: Printer, op: Operation, indent: str) -> None:
    out = printer.out
    arrow = _arrow(printer, op, bare=True)
    out.append(f"{op.name} {printer.value(op.operands[0])}{_rest(printer, op, 'cases')}{arrow} ")
    cases = cast("DenseArrayBase[Any]", op.properties["cases"]).get_values()
    for number, case in enumerate(cases):
        out.append(f"\n{indent}case {case} ")
        _region(printer, op, number + 1, indent)
    out.append(f"\n{indent}default ")
    _region(printer, op, 0, indent, terminator=bool(op.results))


def _print_execute_region(printer: Printer, op: Operation, indent: str) -> None:
    arrow = _arrow(printer, op, bare=True)
    no_inline = " no_inline" if "no_inline" in op.properties else ""
    printer.out.append(f"{op.name}{arrow}{no_inline} ")
    _region(printer, op, 0, indent)
    printer.out.append(_rest(printer, op, "no_inline"))


def _print_alloca_scope(printer: Printer, op: Operation, indent: str) -> None:
    printer.out.append(f"{op.name} {_arrow(printer, op)} ")
    _region(printer, op, 0, indent, terminator=bool(op.results))
    printer.out.append(_rest(printer, op))


def _print_parallel(printer: Printer, op: Operation, indent: str) -> None:
    out = printer.out
    parts = _parts(op)
    out.append(
        f"{op.name} ({_values(printer, _arguments(op))}) = ({_values(printer, parts['lower'])})"
        f" to ({_values(printer, parts['upper'])}) step ({_values(printer, parts['step'])})"
    )
    if parts["initial"]:
        out.append(f" init ({_values(printer, parts['initial'])})")
    out.append(f"{_arrow(printer, op, bare=True)} ")
    _region(printer, op, 0, indent)
    out.append(_rest(printer, op))


def _print_reduce(printer: Printer, op: Operation, indent: str) -> None:
    out = printer.out
    out.append(op.name)
    if op.operands:
        values = tuple(op.operands)
        out.append(f"({_values(printer, values)} : {_types(printer, values)})")
    out.append(" ")
    for number in range(len(op.regions)):
        out.append(", " if number else "")
        _region(printer, op, number, indent, arguments=True)
    out.append(_rest(printer, op))


def _bound(printer: Printer, map_: Attribute | None, operands: Sequence[SSAValue]) -> str | None:
    """A number, or one value; None for maps that are more."""
    if not isinstance(map_, AffineMapAttr) or len(map_.data.results) != 1:
        return None
    text = str(map_.data.results[0])
    if not operands and text.lstrip("-").isdigit():
        return text
    return printer.value(operands[0]) if len(operands) == 1 and text in ("d0", "s0") else None


def _print_affine_for(printer: Printer, op: Operation, indent: str) -> None:
    out = printer.out
    parts = _parts(op)
    lower = _bound(printer, op.properties.get("lowerBoundMap"), parts["lower"])
    upper = _bound(printer, op.properties.get("upperBoundMap"), parts["upper"])
    stated = op.properties.get("step")
    if lower is None or upper is None or not isinstance(stated, IntegerAttr):
        cast(KernelPrinter, printer).generic(op, indent)
        return
    step: int = cast(Any, stated).value.data
    induction, *carried = _arguments(op)
    out.append(f"{op.name} {printer.value(induction)} = {lower} to {upper}")
    out.append(f" step {step}" if step != 1 else "")
    if parts["initial"]:
        pairs = _pairs(printer, carried, parts["initial"])
        out.append(f" iter_args({pairs}){_arrow(printer, op)}")
    out.append(" ")
    _region(printer, op, 0, indent, terminator=bool(op.results))
    out.append(_rest(printer, op, "lowerBoundMap", "upperBoundMap", "step"))


def _successor(printer: Printer, block: Block, operands: Sequence[SSAValue]) -> str:
    name = printer.names.blocks[block]
    if not operands:
        return name
    return f"{name}({_values(printer, operands)} : {_types(printer, operands)})"


def _print_contract(printer: Printer, op: Operation, indent: str) -> None:
    del indent
    entries = {**op.properties, **op.attributes}
    if entries.get("fastmath") == default_of("#arith.fastmath<none>"):
        del entries["fastmath"]
    kinds = entries.get("iterator_types")
    if isinstance(kinds, ArrayAttr):
        items = cast("ArrayAttr[Attribute]", kinds).data
        words = [_ITERATOR.fullmatch(printer.attribute(item)) for item in items]
        if all(words):
            entries["iterator_types"] = ArrayAttr([StringAttr(w[1]) for w in words if w])
    lhs, rhs, acc = op.operands
    printer.out.append(
        f"{op.name} {printer.attributes.dictionary(entries)} {_values(printer, (lhs, rhs, acc))}"
        f" : {_types(printer, (lhs, rhs))} into {printer.type(acc.type)}"
    )


def _print_branch(printer: Printer, op: Operation, indent: str) -> None:
    del indent
    target = _successor(printer, op.successors[0], tuple(op.operands))
    printer.out.append(f"{op.name} {target}{_rest(printer, op)}")


def _print_cond_branch(printer: Printer, op: Operation, indent: str) -> None:
    del indent
    parts = _parts(op)
    targets = ", ".join(
        _successor(printer, block, parts[name])
        for block, name in zip(op.successors, ("on_true", "on_false"), strict=True)
    )
    condition = printer.value(op.operands[0])
    printer.out.append(f"{op.name} {condition}, {targets}{_rest(printer, op, SEGMENTS)}")


PRINTERS: Mapping[str, OpPrinter] = {
    **gpu_forms.PRINTERS,
    "!module": _program_form,
    "!function": _program_form,
    "!call": _program_form,
    "!return": _program_form,
    "!constant": _print_constant,
    "!select": _print_select,
    "!if": _print_if,
    "!for": _print_for,
    "!while": _print_while,
    "!index_switch": _print_index_switch,
    "!execute_region": _print_execute_region,
    "!alloca_scope": _print_alloca_scope,
    "!parallel": _print_parallel,
    "!reduce": _print_reduce,
    "!affine_for": _print_affine_for,
    "!contract": _print_contract,
    "!branch": _print_branch,
    "!cond_branch": _print_cond_branch,
}
"""What prints a form, by its name in the rows."""
