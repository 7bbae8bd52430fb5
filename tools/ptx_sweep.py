#!/usr/bin/env python3
"""Compares the table of PTX instructions with NVIDIA's assembler, form by form.

Instances of every row, and mutants of them, go to `ptxas` in batches, and through the verifier. What one takes and
the other refuses is printed. `ptxas` comes with the wheel `nvidia-cuda-nvcc`; no card is needed.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from mlirhlo.analysis.ptx.operands import kind_and_bits, operand_type  # noqa: E402
from mlirhlo.diagnostics import Diagnostic, HloError  # noqa: E402
from mlirhlo.dialects.ptx.forms import Form, OperandForm  # noqa: E402
from mlirhlo.dialects.ptx.table import FORMS, ROWS  # noqa: E402
from mlirhlo.formats.ptx import parse_ptx, verify_ptx  # noqa: E402

BANKS = {
    "pred": "%p", "b8": "%b", "b16": "%h", "b32": "%r", "b64": "%rd", "b128": "%q", "f32": "%f", "f64": "%fd",
    "f16": "%hf", "u32": "%u", "s64": "%sd", "u16": "%uh",
}  # fmt: skip
HEAD = [
    ".address_size 64",
    ".global .align 128 .b8 variable[1024];",
    ".global .texref texture;",
    ".func function() { ret; }",
    ".visible .entry kernel(.param .u64 parameter)",
    "{",
    *(f".reg .{type_} {bank}<300>;" for type_, bank in BANKS.items()),
    "label:",
    "table: .branchtargets label;",
]
"""Lines in front of the instructions."""
TAIL = ["this.is.no.instruction;", "}"]


def instances(form: Form, randomness: random.Random, most: int) -> Iterator[tuple[str, ...]]:
    """Choices of modifiers of a form: each once among the plainest others, then at random."""
    groups = [([None] if optional else []) + list(options) for _, options, optional in form.groups]
    plain = [options[0] for options in groups]
    picks = [plain]
    for at, options in enumerate(groups):
        others = options[1:] if len(options) < 20 else randomness.sample(options[1:], 8)
        picks += [[*plain[:at], option, *plain[at + 1 :]] for option in others]
    picks += [[randomness.choice(options) for options in groups] for _ in range(most)]
    yield from dict.fromkeys(tuple(one for one in pick if one is not None) for pick in picks)


def register(type_: str, number: int) -> str:
    """A register for a type."""
    if type_ == "address":
        return f"%rd{number}"
    kind, bits = kind_and_bits(type_)
    bank = "pred" if kind == "pred" else kind if kind in ("f32", "f64") else f"b{max(8, bits)}"
    return f"{BANKS[bank]}{number}"


def operand(
    form: Form, one: OperandForm, choices: Mapping[str, str], counts: Mapping[str, int], number: int
) -> str:
    """Text of an operand of a form."""
    match one.role:
        case "[]":
            return f"[%rd{number}]"
        case "_":
            return "_"
        case "[t]":
            return f"[%r{number}]"
        case "[,]":
            sizes = [re.fullmatch(r"a?([123])d", word) for word in choices.values()]
            rank = next((int(size.group(1)) for size in sizes if size is not None), 2)
            return f"[%rd{number}, {{{', '.join(f'%r{n}' for n in range(rank))}}}]"
        case "l":
            return "table" if form.opcode == "brx" else "label"
        case "g":
            return "function"
        case _:
            pass
    type_ = operand_type(one, choices, one.type, is_matrix=form.category == "matrix")
    if type_ == "part":
        half = kind_and_bits(choices["T"])[1] // 2
        return f"{{{register(f'b{half}', 0)}, {register(f'b{half}', 1)}}}"
    if one.count is not None:
        length = counts.get(one.count) or (int(one.count) if one.count.isdigit() else 4)
        return "{" + ", ".join(register(type_, number * 9 + n) for n in range(length)) + "}"
    if one.role == "c":
        return "1" if kind_and_bits(type_)[0] != "f32" else "0f3F800000"
    text = register(type_, number)
    return text if one.second is None else f"{text}|{register(one.second, number)}"


def written(form: Form, modifiers: Sequence[str], *, optional: bool) -> str | None:
    """An instruction of a form, with or without its optional operands; None where the choice does not exist."""
    choices = form.match(modifiers)
    if choices is None:
        return None
    counts = {} if form.counts is None else form.counts(choices)
    if counts is None:
        return None
    operands: list[str] = []
    for number, one in enumerate(form.operands, 1):
        is_due = (
            any(word in modifiers for word in one.when)
            if one.when
            else optional or not one.is_optional
        )
        if is_due:
            operands.append(operand(form, one, choices, counts, number))
    return statement([form.opcode, *modifiers], operands)


def statement(words: Sequence[str], operands: Sequence[str]) -> str:
    """`add.s32 %r1, %r2, %r3;`."""
    return f"{'.'.join(words)} {', '.join(operands)}".rstrip() + ";"


STRANGERS = (
    *(f"{bank}7" for bank in BANKS.values()),
    *("1", "-1", "1.5", "0f3F800000", "_", "!%p1", "%tid.x", "[%rd1]", "variable", "{%r1, %r2}"),
)
"""Operands that are put where others were."""


def mutants(line: str, randomness: random.Random) -> Iterator[str]:
    """Small changes of an instruction."""
    mnemonic, _, rest = line.rstrip(";").partition(" ")
    opcode, *modifiers = mnemonic.split(".")
    operands = re.findall(r"\[[^\]]*\]|\{[^}]*\}|[^,\s][^,]*", rest)
    if modifiers:
        at = randomness.randrange(len(modifiers))
        pool = sorted(
            {one for form in FORMS[opcode] for _, options, _ in form.groups for one in options}
        )
        for words in (
            modifiers[:at] + modifiers[at + 1 :],
            [*modifiers[:at], randomness.choice(pool), *modifiers[at + 1 :]],
            [*modifiers[:at], randomness.choice(pool), *modifiers[at:]],
            randomness.sample(modifiers, len(modifiers)),
        ):
            yield statement([opcode, *words], operands)
    if operands:
        at = randomness.randrange(len(operands))
        for parts in (
            operands[:at] + operands[at + 1 :],
            [*operands, randomness.choice(("%r1", "1", "%p1", "[%rd1]"))],
            [*operands[:at], randomness.choice(STRANGERS), *operands[at + 1 :]],
        ):
            yield statement([opcode, *modifiers], parts)


def head_for(version: str, target: str) -> list[str]:
    """The lines in front of the instructions."""
    return [f".version {version}", f".target {target}", *HEAD]


def by_ptxas(ptxas: str, lines: Sequence[str], version: str, target: str) -> list[str | None]:
    """What ptxas says of each line; None where it takes it."""
    verdicts: list[str | None] = [None] * len(lines)
    active = list(range(len(lines)))
    head = head_for(version, target)
    while active:
        with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
            file.write("\n".join([*head, *(lines[number] for number in active), *TAIL]) + "\n")
            file.flush()
            command = [ptxas, f"-arch={target}", file.name, "-o", "/dev/null"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode < 0:
            # The assembler itself fails on one of these: halve until it is alone.
            if len(active) == 1:
                verdicts[active[0]] = "ptxas fails"
                return verdicts
            middle = len(active) // 2
            for half in (active[:middle], active[middle:]):
                answers = by_ptxas(ptxas, [lines[number] for number in half], version, target)
                for number, answer in zip(half, answers, strict=True):
                    verdicts[number] = verdicts[number] or answer
            return verdicts
        said = done.stdout + done.stderr
        fatal: int | None = None
        for number, kind, message in re.findall(r"line (\d+); (error|fatal)\s*: (.*)", said):
            index = int(number) - len(head) - 1
            if 0 <= index < len(active):
                verdicts[active[index]] = verdicts[active[index]] or message
                fatal = index if kind == "fatal" else fatal
        if fatal is None:
            if f"line {len(head) + len(active) + 1};" not in said:
                raise SystemExit(f"ptxas {done.returncode}: {said[-2000:]}")
            return verdicts
        # The parser stops at the first line that it cannot read: go on without it.
        active = active[:fatal] + active[fatal + 1 :]
    return verdicts


def by_verifier(lines: Sequence[str], version: str, target: str) -> list[str | None]:
    """What the verifier says of each line."""
    head = head_for(version, target)
    verdicts: list[str | None] = []
    for line in lines:
        try:
            found: Sequence[Diagnostic] = verify_ptx(parse_ptx("\n".join([*head, line, "}"])))
        except HloError as problem:
            found = problem.diagnostics
        verdicts.append(f"{found[0].code} {found[0].message}" if found else None)
    return verdicts


def sweep(
    ptxas: str, lines: Sequence[str], version: str, target: str
) -> Iterator[tuple[str, str | None, str | None]]:
    """Each line, what ptxas says, and what the verifier says."""
    for start in range(0, len(lines), 400):
        part = lines[start : start + 400]
        theirs = by_ptxas(ptxas, part, version, target)
        yield from zip(part, theirs, by_verifier(part, version, target), strict=True)


def collect(opcodes: Container[str], each: int, seed: int, *, mutated: bool) -> list[str]:
    """Instances of all rows, or of those of some opcodes, or their mutants."""
    randomness = random.Random(seed)
    lines: dict[str, None] = {}
    for form in ROWS:
        if opcodes and form.opcode not in opcodes:
            continue
        for modifiers in instances(form, randomness, each):
            for optional in (False, True):
                line = written(form, modifiers, optional=optional)
                if line is not None:
                    lines[line] = None
    if not mutated:
        return list(lines)
    return list(dict.fromkeys(mutant for line in lines for mutant in mutants(line, randomness)))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ptxas", default="ptxas")
    parser.add_argument("--opcodes", default="", help="only these, by commas")
    parser.add_argument("--version", default="9.5")
    parser.add_argument("--target", default="sm_100a")
    parser.add_argument("--each", type=int, default=4, help="random instances a row")
    parser.add_argument("--mutants", action="store_true", help="small changes of the instances")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    opcodes = set(filter(None, options.opcodes.split(",")))
    lines = collect(opcodes, options.each, options.seed, mutated=options.mutants)
    tally: Counter[str] = Counter()
    for line, theirs, ours in sweep(options.ptxas, lines, options.version, options.target):
        if (theirs is None) == (ours is None):
            tally["both refuse" if theirs else "both take"] += 1
            continue
        kind = "only the verifier takes" if theirs else "only ptxas takes"
        tally[kind] += 1
        print(f"{kind}: {line}   -- {theirs or ours}")
    print(", ".join(f"{kind} {count}" for kind, count in tally.items()))


if __name__ == "__main__":
    main()
