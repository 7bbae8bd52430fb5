#!/usr/bin/env python3
"""Runs what the pages show and compares, or renews, what it prints.

    tools/doc_sessions.py [--renew] [PAGE.md...]

In README.md, CONTRIBUTING.md and docs/:

- a block fenced as `console` is a session: lines after `$ ` are commands (a backslash at the end
  continues one), the lines below are what they print, standard output and error together. A line
  `...` stands for any lines and `…` inside a line for any text, where a figure or a path differs
  from machine to machine.
- a block fenced as `LANGUAGE file=NAME` is written to NAME before the next session starts, so that
  a page can show a file and then use it.
- `console no-run` is for set-up, which .ci/run does.

The blocks of a page share one folder, in which the checkout's folders are visible.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

SCRIPTS = Path(sys.executable).parent
"""Where the tools of this environment are."""

MARK = "\x1e"
"""Printed after each command; ASCII's record separator, which no tool prints."""

VISIBLE = ("benchmarks", "docs", "examples", "mlirhlo", "test", "tools", "pyproject.toml")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block of a page."""

    line: int
    """Where its first line is in the page, from 1."""
    info: tuple[str, ...]
    """The words after the fence."""
    text: str

    @property
    def is_session(self) -> bool:
        """Whether its commands are run."""
        return self.info[:1] == ("console",) and "no-run" not in self.info


@dataclass(frozen=True, slots=True)
class Step:
    """One command of a session."""

    command: str
    shown: str
    """What the page says it prints."""
    printed: str
    """What it printed just now."""

    @property
    def agrees(self) -> bool:
        """Whether the page tells the truth."""
        return re.fullmatch(pattern(self.shown), self.printed) is not None


def pages() -> list[Path]:
    """Every page that a reader may paste from."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [
        page for page in found if page.is_file() and any(block.is_session for block in blocks(page))
    ]


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page in order; a block without end is an error."""
    lines = page.read_text().splitlines()
    start: int | None = None
    for number, line in enumerate(lines, 1):
        if not line.startswith("```"):
            continue
        if start is None:
            start = number
        else:
            info = tuple(lines[start - 1][3:].split())
            yield Block(start + 1, info, "\n".join(lines[start : number - 1]))
            start = None
    if start is not None:
        raise ValueError(f"{page}:{start}: block without end")


def commands(block: Block) -> list[tuple[str, str]]:
    """Commands of a session and the output shown below each."""
    pairs: list[tuple[str, str]] = []
    continues = False
    for line in block.text.splitlines():
        if continues:
            pairs[-1] = (f"{pairs[-1][0]}\n{line}", "")
        elif line.startswith("$ "):
            pairs.append((line[2:], ""))
        elif pairs:
            pairs[-1] = (pairs[-1][0], pairs[-1][1] + line + "\n")
            continue
        else:
            raise ValueError(f"line {block.line}: a session starts with `$ `")
        continues = line.endswith("\\")
    return pairs


def pattern(shown: str) -> str:
    """The regular expression of an output with wildcards; trailing blanks do not count."""
    parts = list[str]()
    for line in shown.rstrip().splitlines():
        if line.strip() == "...":
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            parts.append("[^\n]*?".join(map(re.escape, line.rstrip().split("…"))) + r"[ ]*\n")
    return "".join(parts)


def execute(lines: list[str], folder: Path, tools: Path) -> list[str]:
    """Run commands in one shell, as at a prompt; returns what each printed."""
    # Sessions with JAX are about its CPU, whatever else it could drive here.
    env = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100", "JAX_PLATFORMS": "cpu"}
    env["PATH"] = os.pathsep.join([str(tools), str(SCRIPTS), env.get("PATH", "")])
    # The status is kept across the mark, so that `$ echo $?` shows the last command's.
    script = "".join(f'{c}\n__status=$?; printf "\\036"; (exit $__status)\n' for c in lines)
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    parts = done.stdout.split(MARK)[: len(lines)]
    return [part.rstrip() + "\n" if part.strip() else "" for part in parts]


def walk(page: Path, folder: Path, tools: Path = SCRIPTS) -> Iterator[tuple[Block, list[Step]]]:
    """Run a page's sessions in order in `folder`, where its files are written, by these tools."""
    for block in blocks(page):
        for word in block.info:
            if word.startswith("file="):
                path = folder / word.removeprefix("file=")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.text + "\n")
        if block.is_session:
            pairs = commands(block)
            printed = execute([command for command, _ in pairs], folder, tools)
            steps = [Step(*pair, out) for pair, out in zip(pairs, printed, strict=True)]
            yield block, steps


def mismatches(page: Path, folder: Path, tools: Path = SCRIPTS) -> Iterator[str]:
    """What a page shows and the tools do not print, in order."""
    for block, steps in walk(page, folder, tools):
        for step in steps:
            if not step.agrees:
                yield (
                    f"{page.name}:{block.line}: $ {step.command}\n{step.printed}"
                    f"--- shown:\n{step.shown}"
                )


def renew(page: Path, folder: Path) -> bool:
    """Write what the commands print into the page; outputs that agree keep their wildcards."""
    lines = page.read_text().splitlines()
    changed = False
    for block, steps in reversed(list(walk(page, folder))):
        if all(step.agrees for step in steps):
            continue
        changed = True
        text = "".join(f"$ {s.command}\n{s.shown if s.agrees else s.printed}" for s in steps)
        end = block.line - 1 + len(block.text.splitlines())
        lines[block.line - 1 : end] = text.rstrip().splitlines()
    page.write_text("\n".join(lines) + "\n")
    return changed


def prepare(folder: Path) -> None:
    """Make the checkout's folders visible in an empty folder."""
    for name in VISIBLE:
        if (ROOT / name).exists():
            (folder / name).symlink_to(ROOT / name)


def main() -> int:
    """Exit 1 when a page and the tools part, unless they were made to agree."""
    parser = argparse.ArgumentParser(description="run the sessions that the pages show")
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE.md", help="default: all")
    parser.add_argument("--renew", action="store_true", help="write what is printed into the pages")
    options = parser.parse_args()
    wrong = 0
    for page in options.pages or pages():
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            prepare(folder)
            if options.renew:
                print(f"{page}: {'renewed' if renew(page, folder) else 'agrees'}")
                continue
            for text in mismatches(page, folder):
                wrong += 1
                print(text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
