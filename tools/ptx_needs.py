#!/usr/bin/env python3
"""Asks NVIDIA's assembler which PTX version and architecture instructions need; writes `dialects/ptx/needs.py`.

Instances of every row of the table go to `ptxas` for every architecture and then, for the oldest that takes them, for
every version. `ptxas` comes with the wheel `nvidia-cuda-nvcc`; no card is needed. Takes a few minutes.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from ptx_sweep import ROOT, by_ptxas, instances, written

from mlirhlo.dialects.ptx.table import ROWS

ARCHITECTURES = (
    *(
        "75",
        "80",
        "86",
        "87",
        "88",
        "89",
        "90",
        "90a",
        "100",
        "100f",
        "100a",
        "103",
        "103f",
        "103a",
    ),
    *("110", "110f", "110a", "120", "120f", "120a", "121", "121f", "121a"),
)
"""What this assembler knows, the oldest first."""
VERSIONS = tuple(
    f"{major}.{minor}"
    for major, minors in ((6, (3, 4, 5)), (7, range(9)), (8, range(9)), (9, range(6)))
    for minor in minors
)
OUTPUT = ROOT / "mlirhlo" / "dialects" / "ptx" / "needs.py"
Need = tuple[int, frozenset[str]]
"""Index of the least version, and the architectures."""


def asked(
    ptxas: str, lines: Sequence[str], version: str, architecture: str
) -> Iterable[tuple[str, bool]]:
    """Each line, and whether it is taken."""
    for start in range(0, len(lines), 600):
        part = lines[start : start + 600]
        answers = by_ptxas(ptxas, part, version, f"sm_{architecture}")
        yield from ((line, answer is None) for line, answer in zip(part, answers, strict=True))


def first_version(ptxas: str, architecture: str) -> int:
    """Index of the first version that has an architecture."""
    for index, version in enumerate(VERSIONS):
        with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
            file.write(
                f".version {version}\n.target sm_{architecture}\n.address_size 64\n.func f() {{ ret; }}\n"
            )
            file.flush()
            command = [ptxas, f"-arch=sm_{architecture}", file.name, "-c", "-o", "/dev/null"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if "does not support" not in done.stdout + done.stderr:
            return index
    raise SystemExit(f"ptxas does not know sm_{architecture}")


def needs_of(ptxas: str, lines: Sequence[str]) -> tuple[dict[str, Need], dict[str, int]]:
    """What each line needs, and the least version of each architecture."""
    taken: dict[str, set[str]] = {line: set() for line in lines}
    for architecture in ARCHITECTURES:
        for line, is_taken in asked(ptxas, lines, VERSIONS[-1], architecture):
            if is_taken:
                taken[line].add(architecture)
    first = {name: first_version(ptxas, name) for name in ARCHITECTURES}
    found: dict[str, Need] = {}
    for architecture in ARCHITECTURES:
        # A later architecture may have it from an earlier version on.
        start = first[architecture]
        todo = [
            line
            for line in lines
            if architecture in taken[line] and (line not in found or found[line][0] > start)
        ]
        for index in range(start, len(VERSIONS)):
            rest: list[str] = []
            for line, is_taken in asked(ptxas, todo, VERSIONS[index], architecture):
                if is_taken:
                    found[line] = index, frozenset(taken[line])
                elif line not in found or found[line][0] > index + 1:
                    rest.append(line)
            todo = rest
    return found, first


def weakest(needs: Iterable[Need]) -> Need:
    """What all of several have in common."""
    listed = list(needs)
    return min(version for version, _ in listed), frozenset().union(*(names for _, names in listed))


def explained(keys: Iterable[str], table: dict[str, Need]) -> Need:
    """What the entries of a table say together."""
    known = [table[key] for key in keys if key in table]
    names = frozenset(ARCHITECTURES).intersection(*(names for _, names in known))
    return max([0, *(version for version, _ in known)]), names


def summarise(
    found: dict[str, Need], origin: dict[str, tuple[str, str, tuple[str, ...]]]
) -> dict[str, Need]:
    """Entries by opcode, by opcode and modifier, and by row where those do not say all."""
    everything: Need = (0, frozenset(ARCHITECTURES))
    table: dict[str, Need] = {}

    def add(key_of) -> None:
        grouped: dict[str, list[str]] = {}
        for line in found:
            for key in key_of(line):
                grouped.setdefault(key, []).append(line)
        entries = {key: weakest(found[line] for line in lines) for key, lines in grouped.items()}
        for key, need in entries.items():
            says_more = any(
                explained(keys(line), {**table, key: need}) != explained(keys(line), table)
                for line in grouped[key]
            )
            if need != everything and says_more:
                table[key] = need

    def keys(line: str) -> list[str]:
        opcode, row, modifiers = origin[line]
        return [opcode, *(f"{opcode}.{one}" for one in modifiers), f"{opcode} {row}"]

    add(lambda line: [keys(line)[0]])
    add(lambda line: keys(line)[1:-1])
    add(lambda line: [keys(line)[-1]])
    exact = sum(explained(keys(line), table) == found[line] for line in found)
    print(
        f"{len(found)} instances, {exact} of them exactly as the {len(table)} entries say, the others need more"
    )
    return table


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ptxas", default="ptxas")
    parser.add_argument("--each", type=int, default=8, help="random instances a row")
    options = parser.parse_args()
    randomness = random.Random(1)
    origin: dict[str, tuple[str, str, tuple[str, ...]]] = {}
    for form in ROWS:
        for modifiers in instances(form, randomness, options.each):
            line = written(form, modifiers, optional=False)
            if line is not None:
                origin[line] = form.opcode, form.modifiers, tuple(modifiers)
    found, first = needs_of(options.ptxas, list(origin))
    table = summarise(found, origin)
    sets = sorted(
        {names for _, names in table.values()},
        key=lambda names: sorted(map(ARCHITECTURES.index, names)),
    )
    lines = [
        '"""What instructions need, by opcode, opcode and modifier, or row. Written by tools/ptx_needs.py."""',
        "",
        "# ruff: noqa: E501",
        "# fmt: off",
        "ARCHITECTURES = {",
        *(f'    "{name}": "{VERSIONS[index]}",' for name, index in first.items()),
        "}",
        '"""The least PTX version of every architecture."""',
        "",
        "SETS = (",
        *(f'    "{" ".join(sorted(names, key=ARCHITECTURES.index))}",' for names in sets),
        ")",
        '"""Sets of architectures."""',
        "",
        "NEEDS: dict[str, tuple[str, int]] = {",
        *(
            f'    "{key}": ("{VERSIONS[version]}", {sets.index(names)}),'
            for key, (version, names) in sorted(table.items())
        ),
        "}",
        '"""The least version, and the number of the set of architectures."""',
        "",
    ]
    Path(OUTPUT).write_text("\n".join(lines))


if __name__ == "__main__":
    main()
