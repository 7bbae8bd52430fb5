"""The pages cannot lie: their commands are run and what they print is compared.

In README.md, CONTRIBUTING.md and docs/:

- a block fenced as `console` is a session: lines after `$ ` are commands (`\\` continues one), the
  lines below are what they print, standard output and error together. A line `...` stands for any
  lines and `…` inside a line for any text, where a figure or a path differs by machine.
- a block fenced as `LANGUAGE file=NAME` is written to NAME before the next session starts, so that
  a page can show a file and then use it.
- `console no-run` is for set-up, which .ci/run does.

The blocks of a page share one folder, in which the checkout's folders are visible.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support import ROOT, environment

MARK = "\x1e"
"""Printed after each command; ASCII's record separator, which no tool prints."""

VISIBLE = ("benchmarks", "docs", "examples", "mlirhlo", "test", "tools", "pyproject.toml")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block of a page."""

    line: int
    """Where its first line is in the page."""
    info: tuple[str, ...]
    """The words after the fence."""
    text: str


def pages() -> list[Path]:
    """Every page that a reader may paste from."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in found if page.is_file() and any(runs(page))]


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page in order."""
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
    assert start is None, f"{page}:{start}: block without end"


def runs(page: Path) -> Iterator[Block]:
    """The sessions of a page."""
    for block in blocks(page):
        if block.info[:1] == ("console",) and "no-run" not in block.info:
            yield block


def session(block: Block) -> list[tuple[str, str]]:
    """Commands and the output shown below each."""
    pairs: list[tuple[str, str]] = []
    continues = False
    for line in block.text.splitlines():
        if line.startswith("$ ") or continues:
            command = line.removeprefix("$ ")
            if continues:
                pairs[-1] = (f"{pairs[-1][0]}\n{command}", "")
            else:
                pairs.append((command, ""))
            continues = line.endswith("\\")
        else:
            assert pairs, f"line {block.line}: a session starts with `$ `"
            pairs[-1] = (pairs[-1][0], pairs[-1][1] + line + "\n")
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


def execute(commands: list[str], folder: Path) -> list[str]:
    """Run commands in one shell, as at a prompt; returns what each printed."""
    # The status is kept across the mark, so that `$ echo $?` shows the last command's.
    script = "".join(f'{c}\n__status=$?; printf "\\036"; (exit $__status)\n' for c in commands)
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return done.stdout.split(MARK)[: len(commands)]


def mismatches(page: Path, folder: Path) -> Iterator[str]:
    """What a page shows and the tools do not print, in order."""
    for block in blocks(page):
        for word in block.info:
            if word.startswith("file="):
                path = folder / word.removeprefix("file=")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.text + "\n")
        if block.info[:1] != ("console",) or "no-run" in block.info:
            continue
        pairs = session(block)
        outputs = execute([command for command, _ in pairs], folder)
        for (command, shown), output in zip(pairs, outputs, strict=True):
            output = output.rstrip() + "\n" if output.strip() else ""
            if not re.fullmatch(pattern(shown), output):
                yield f"{page.name}:{block.line}: $ {command}\n{output}--- shown:\n{shown}"


@pytest.mark.slow
@pytest.mark.parametrize("page", pages(), ids=lambda p: str(p.relative_to(ROOT)))
def test_page(page: Path, tmp_path: Path) -> None:
    for name in VISIBLE:
        if (ROOT / name).exists():
            (tmp_path / name).symlink_to(ROOT / name)
    wrong = list(mismatches(page, tmp_path))
    assert not wrong, "\n".join(wrong)


def test_a_wrong_page_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```text file=a.txt\none\ntwo\nthree\n```\n"
        "```console\n$ cat a.txt\none\n...\nthr…\n$ false\n$ echo $?\n1\n```\n"
        "```console\n$ echo a \\\n  b\na c\n```\n"
    )
    (wrong,) = mismatches(page, tmp_path)
    assert wrong.startswith("page.md:16: $ echo a")


LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize(
    "page",
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_links_lead_somewhere(page: Path) -> None:
    targets = LINK.findall(re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL))
    dead = [target for target in targets if not (page.parent / target).exists()]
    assert not dead, dead
