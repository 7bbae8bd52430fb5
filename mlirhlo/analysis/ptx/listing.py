"""What a function of PTX has in it: instructions by class, memory operations, registers."""

from __future__ import annotations

from collections import Counter

from mlirhlo.analysis.ptx.flat import FlatFunction, FlatInstruction
from mlirhlo.analysis.ptx.liveness import CLASSES, class_of, pressure
from mlirhlo.dialects.ptx.table import matches
from mlirhlo.dialects.ptx.values import TYPE_BITS

MEMORY = ("ld", "ldu", "st", "atom", "red", "cp", "ldmatrix", "stmatrix", "multimem")
"""Opcodes that are counted as memory operations."""

_SPACES = ("global", "shared", "local", "const", "param")


def category(instruction: FlatInstruction) -> str:
    """The class of an instruction; `unknown` for one that is not in the table."""
    forms = matches(instruction.mnemonic)
    return forms[0][0].category if forms else "unknown"


def memory_operation(instruction: FlatInstruction) -> str | None:
    """`ld.global 16 bytes`: opcode, space (`generic` if none) and bytes a thread; None if it is none."""
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if opcode not in MEMORY:
        return None
    spaces = [space for word in modifiers if (space := word.partition("::")[0]) in _SPACES]
    if opcode == "cp":
        # Copies name where they go to first; what only ends a group of them names nothing.
        words = [word for word in modifiers if word in ("reduce", "async", "bulk", "tensor")]
        return f"{'.'.join(('cp', *words))} {' to '.join(reversed(spaces))}" if spaces else None
    widths = [TYPE_BITS[word] for word in modifiers if word in TYPE_BITS]
    lanes = next((int(word[1:]) for word in modifiers if word in ("v2", "v4", "v8")), 1)
    is_sized = opcode in ("ld", "ldu", "st", "atom", "red") and widths
    size = f" {widths[-1] * lanes // 8} bytes" if is_sized else ""
    return f"{opcode}.{spaces[0] if spaces else 'generic'}{size}"


def listing(function: FlatFunction) -> str:
    """Lines for a person: sizes, registers, instructions by class, memory operations."""
    kind = "entry" if function.signature.is_entry else "func"
    lines = [f"{kind} {function.name}: {len(function.instructions)} instructions"]
    declared = Counter(class_of(type_) for type_ in function.registers.values())
    most = pressure(function)
    registers = [
        f"{'pred' if which == 'pred' else f'{which}-bit'} {most[which].count} of {declared[which]}"
        f" (line {most[which].line})"
        for which in CLASSES
        if which in most
    ]
    lines.append(f"  registers live at once: {', '.join(registers) or 'none'}")
    for space in ("shared", "local"):
        sizes = [one.size_bytes for one in function.variables.values() if one.space == space]
        if sizes:
            total = sum(size or 0 for size in sizes)
            lines.append(f"  {space} memory: {total} bytes")
    classes = Counter(category(one) for one in function.instructions)
    lines.append("  instructions: " + _counted(classes))
    operations = Counter(
        operation
        for one in function.instructions
        if (operation := memory_operation(one)) is not None
    )
    for operation, count in sorted(operations.items()):
        lines.append(f"  {count:5} {operation}")
    return "\n".join(lines)


def _counted(counts: Counter[str]) -> str:
    pairs = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{name} {count}" for name, count in pairs) or "none"
