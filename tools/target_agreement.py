"""Counts how often our target check and the real TPU compiler say the same of a kernel.

    python tools/target_agreement.py acceptance.jsonl [--list FILE]

Each line of the input is a kernel with the real compiler's verdicts: `name`, `mlir`, `args`, `outs`,
and `result`, either `{"all": V}` or one entry a generation; V is `PASS` or a message. `--list` writes
every disagreement to a file, one JSON object a line; reasons that stand in the file already are kept.
Exit status 1 when a kernel that aborts the real compiler's process is accepted here.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlirhlo.diagnostics import HloError
from mlirhlo.mosaic.decode import read_kernel
from mlirhlo.mosaic.target import GENERATIONS, check_target


@dataclass(frozen=True, slots=True)
class Verdict:
    """What both say of one kernel on one generation."""

    name: str
    generation: str
    ours: str
    """`PASS`, or the message of our first problem."""
    theirs: str

    @property
    def agrees(self) -> bool:
        """Whether both take it or both do not."""
        return (self.ours == "PASS") == (self.theirs == "PASS")

    @property
    def is_fatal(self) -> bool:
        """Whether we take what ends the compiler's process."""
        return self.ours == "PASS" and self.theirs.startswith("ABORT")


def shape_of(text: str) -> tuple[int, ...]:
    """`(8, 128)` of `f32[8,128]`."""
    match = re.search(r"\[(.*)\]", text)
    return tuple(int(size) for size in match[1].split(",") if size) if match is not None else ()


def verdicts(case: dict[str, Any]) -> Iterator[Verdict]:
    """The verdicts on one kernel."""
    try:
        module = read_kernel(case["mlir"].encode(), case["name"])
        refused = None
    except HloError as problem:
        module, refused = None, problem.diagnostics[0].message
    operands = [shape_of(text) for text in (*case["args"], *case["outs"])]
    for generation in GENERATIONS:
        theirs = case["result"].get(generation, case["result"].get("all"))
        if theirs is None:
            continue
        ours = refused
        if module is not None:
            problems = check_target(module, generation, operands=operands).problems
            ours = problems[0].message if problems else "PASS"
        yield Verdict(case["name"], generation, ours or "PASS", theirs)


def read_cases(path: Path) -> list[dict[str, Any]]:
    """The kernels of a file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--list", type=Path)
    options = parser.parse_args()
    found = [verdict for case in read_cases(options.cases) for verdict in verdicts(case)]
    differing = [verdict for verdict in found if not verdict.agrees]
    if options.list is not None:
        _write(options.list, differing)
    for verdict in differing:
        print(f"{verdict.name} on {verdict.generation}: {verdict.ours} | {verdict.theirs[:100]}")
    fatal = sum(verdict.is_fatal for verdict in found)
    agreeing = len(found) - len(differing)
    print(
        f"{agreeing} of {len(found)} verdicts agree ({100 * agreeing / max(len(found), 1):.2f} %); "
        f"{fatal} accepted here that end the compiler's process"
    )
    return 1 if fatal else 0


def _write(path: Path, differing: list[Verdict]) -> None:
    known: dict[tuple[str, str], str] = {}
    if path.exists():
        for entry in read_cases(path):
            known[entry["name"], entry["generation"]] = entry["reason"]
    lines = [
        json.dumps(
            {
                "name": verdict.name,
                "generation": verdict.generation,
                "ours": verdict.ours,
                "theirs": verdict.theirs[:200],
                "reason": known.get((verdict.name, verdict.generation), ""),
            }
        )
        for verdict in differing
    ]
    path.write_text("".join(line + "\n" for line in lines))


if __name__ == "__main__":
    sys.exit(main())
