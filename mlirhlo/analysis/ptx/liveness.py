"""Which registers of a function are live, and how many at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlirhlo.analysis.ptx.flat import FlatFunction, FlatInstruction
from mlirhlo.dialects.ptx.table import matches
from mlirhlo.dialects.ptx.values import (
    TYPE_BITS,
    Address,
    Component,
    Group,
    Negated,
    Operand,
    Pair,
    Register,
    Symbol,
    Vector,
)

CLASSES: tuple[str, ...] = ("pred", "16", "32", "64", "128")
"""Register classes by width in bits; 8-bit registers count as 16."""


@dataclass(frozen=True, slots=True)
class Pressure:
    """The most registers of a class that are live at once."""

    count: int
    line: int
    """Line of the instruction after which they are."""


def registers_in(operand: Operand) -> Iterator[str]:
    """Names of the registers in an operand."""
    match operand:
        case Register(name):
            yield name
        case Address(base, _, more):
            yield from registers_in(base)
            for part in more:
                yield from registers_in(part)
        case Vector(parts) | Group(parts):
            for part in parts:
                yield from registers_in(part)
        case Pair(first, second):
            yield from registers_in(first)
            yield from registers_in(second)
        case Negated(inner) | Component(inner):
            yield from registers_in(inner)
        case _:
            pass


def writes_first(instruction: FlatInstruction) -> bool:
    """Whether the first operand is the destination; no other ever is."""
    if instruction.opcode == "call":
        operands = instruction.operands
        return (
            len(operands) > 1
            and isinstance(operands[0], Group)
            and isinstance(operands[1], Symbol | Register)
        )
    forms = matches(instruction.mnemonic)
    return bool(forms) and bool(forms[0][0].operands) and forms[0][0].operands[0].role == "d"


def written(instruction: FlatInstruction) -> tuple[str, ...]:
    """Registers that an instruction writes."""
    if not instruction.operands or not writes_first(instruction):
        return ()
    return tuple(registers_in(instruction.operands[0]))


def read(instruction: FlatInstruction) -> tuple[str, ...]:
    """Registers that an instruction reads, its guard too; and what it writes only under a guard."""
    first = 1 if writes_first(instruction) else 0
    found = [name for part in instruction.operands[first:] for name in registers_in(part)]
    if instruction.guard is not None:
        found.append(instruction.guard.name)
        found += written(instruction)
    return tuple(found)


def successors(instruction: FlatInstruction, count: int) -> tuple[int, ...]:
    """Indices of the instructions that may follow; `count` is the end."""
    following = (instruction.number + 1,) if instruction.number + 1 < count else ()
    is_always = instruction.guard is None
    match instruction.opcode:
        case "bra" if instruction.target is not None:
            return (instruction.target,) if is_always else (instruction.target, *following)
        case "brx":
            return instruction.targets if is_always else (*instruction.targets, *following)
        case "ret" | "exit" | "trap":
            return () if is_always else following
        case _:
            return following


def _blocks(function: FlatFunction) -> list[tuple[int, int]]:
    """First and last index + 1 of every basic block."""
    count = len(function.instructions)
    starts = {0, *(index for index in function.labels.values() if index < count)}
    for instruction in function.instructions:
        if instruction.opcode in ("bra", "brx", "ret", "exit", "trap"):
            starts.add(instruction.number + 1)
    ordered = sorted(start for start in starts if start < count)
    return list(zip(ordered, [*ordered[1:], count], strict=True))


def live_at_ends(function: FlatFunction) -> tuple[list[tuple[int, int]], list[set[str]]]:
    """Basic blocks, and the registers that are live where each ends."""
    blocks, instructions = _blocks(function), function.instructions
    number_of = {start: number for number, (start, _) in enumerate(blocks)}
    uses: list[set[str]] = []
    defined: list[set[str]] = []
    before: list[list[int]] = [[] for _ in blocks]
    for number, (start, end) in enumerate(blocks):
        used, own = set[str](), set[str]()
        for instruction in instructions[start:end]:
            used.update(name for name in read(instruction) if name not in own)
            own.update(written(instruction))
        uses.append(used)
        defined.append(own)
        for target in successors(instructions[end - 1], len(instructions)):
            if target in number_of:
                before[number_of[target]].append(number)
    ends: list[set[str]] = [set() for _ in blocks]
    starts = [set(used) for used in uses]
    work = list(range(len(blocks)))
    while work:
        number = work.pop()
        for previous in before[number]:
            new = starts[number] - ends[previous]
            if new:
                ends[previous] |= new
                new -= defined[previous]
                if not new <= starts[previous]:
                    starts[previous] |= new
                    work.append(previous)
    return blocks, ends


def class_of(type_: str) -> str:
    """The register class of a type of `FlatFunction.registers`."""
    lanes, _, element = type_.rpartition(".")
    if element == "pred":
        return "pred"
    bits = TYPE_BITS[element] * int(lanes[1:] or 1) if lanes else TYPE_BITS[element]
    return str(min(max(bits, 16), 128))


def pressure(function: FlatFunction) -> dict[str, Pressure]:
    """For each class in use, the most registers live at once."""
    classes = {name: class_of(type_) for name, type_ in function.registers.items()}
    best: dict[str, Pressure] = {}
    blocks, ends = live_at_ends(function)
    for (start, end), alive in zip(blocks, ends, strict=True):
        live = set(alive)
        counts = dict.fromkeys(CLASSES, 0)
        for name in live:
            counts[classes[name]] += 1
        for instruction in reversed(function.instructions[start:end]):
            outputs = written(instruction)
            for name in outputs:
                # A result that nobody reads is live for its instruction.
                if name not in live:
                    live.add(name)
                    counts[classes[name]] += 1
            for which, count in counts.items():
                if count and (which not in best or count > best[which].count):
                    best[which] = Pressure(count, instruction.line)
            for name in outputs:
                live.discard(name)
                counts[classes[name]] -= 1
            for name in read(instruction):
                if name not in live:
                    live.add(name)
                    counts[classes[name]] += 1
    return best
