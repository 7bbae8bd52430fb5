"""Prints PTX as LLVM and nvcc lay it out: a statement a line, operands behind a tab."""

from __future__ import annotations

from xdsl.ir import Operation

from mlirhlo.dialects.ptx.ops import (
    AliasOp,
    FileOp,
    FunctionOp,
    InstructionOp,
    LabelOp,
    LocOp,
    ModuleOp,
    PragmaOp,
    PrototypeOp,
    ScopeOp,
    SectionOp,
    TargetsOp,
    VariableOp,
    body_of,
)
from mlirhlo.dialects.ptx.values import Signature, quoted


def print_ptx(module: ModuleOp) -> str:
    """The text of a module; reading it gives an equal module."""
    lines = [f".version {module.version_text.data}", f".target {module.target_text.data}"]
    if module.address_size_attr is not None:
        lines.append(f".address_size {module.address_size}")
    lines.append("")
    for op in module.statements:
        _statement(op, lines, "")
    return "\n".join(lines) + "\n"


def _head(signature: Signature) -> list[str]:
    """The head of a function, a parameter a line."""
    linkage = "".join(f".{word} " for word in signature.linkage)
    keyword = ".entry" if signature.is_entry else ".func"
    attributes = "".join(f".attribute(.{one}) " for one in signature.attributes)
    results = f"({', '.join(map(str, signature.results))}) " if signature.results else ""
    first = f"{linkage}{keyword} {attributes}{results}{signature.name}"
    directives = [str(directive) for directive in signature.directives]
    if not signature.parameters:
        return [first + ("()" if signature.has_list else ""), *directives]
    lines = [f"{first}(", *(f"\t{parameter}," for parameter in signature.parameters)]
    lines[-1] = lines[-1][:-1]
    return [*lines, ")", *directives]


def _function(op: FunctionOp, lines: list[str]) -> None:
    lines += _head(op.signature)
    if op.is_declaration:
        lines[-1] += ";"
        lines.append("")
        return
    lines.append("{")
    for statement in body_of(op):
        _statement(statement, lines, "\t")
    lines += ["}", ""]


def _statement(op: Operation, lines: list[str], indent: str) -> None:
    """Appends the lines of one statement."""
    match op:
        case InstructionOp():
            guard = op.guard_attr
            text = op.mnemonic if guard is None else f"{guard.data} {op.mnemonic}"
            arguments = str(op.arguments_attr.data)
            lines.append(f"{indent}{text} \t{arguments};" if arguments else f"{indent}{text};")
        case LabelOp():
            lines.append(f"{op.label}:")
        case VariableOp():
            lines.append(f"{indent}{op.declaration.data}")
        case LocOp():
            lines.append(f"{indent}{op.source.data}")
        case ScopeOp():
            lines.append(f"{indent}{{")
            for statement in body_of(op):
                _statement(statement, lines, indent)
            lines.append(f"{indent}}}")
        case FunctionOp():
            _function(op, lines)
        case PrototypeOp():
            lines.append(f"{indent}{op.prototype}")
        case TargetsOp():
            lines.append(f"{indent}.{op.keyword} {', '.join(op.names)};")
        case PragmaOp():
            lines.append(f"{indent}.pragma {quoted(op.strings)};")
        case FileOp():
            facts = "".join(f", {fact.value.data}" for fact in op.facts)
            lines.append(f"{indent}.file {op.number.value.data} {quoted((op.path.data,))}{facts}")
        case SectionOp():
            contents = "".join(f"\t{line}\n" for line in op.contents.data.split("\n") if line)
            lines.append(f"{indent}.section {op.section.data}\n{indent}{{\n{contents}{indent}}}")
        case AliasOp():
            lines.append(f".alias {op.alias.data}, {op.aliasee.data};")
        case _:
            raise AssertionError(op.name)
