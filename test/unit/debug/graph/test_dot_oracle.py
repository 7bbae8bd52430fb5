"""Graphs in dot against those of XLA, node by node and edge by edge."""

import re
from pathlib import Path

import pytest
from oracle import ask
from support import CORPUS, DATA, needs_shared

from mlirhlo.debug.graph import render
from mlirhlo.formats.hlo_text import parse_module

pytestmark = pytest.mark.oracle

SAMPLES = sorted((DATA / "dumps").rglob("*.txt"))
PROGRAMS = sorted(p for p in CORPUS.glob("programs/*/*.hlo") if ".canonical" not in p.name)
"""Canonical texts have no names, and XLA and we make up other ones."""


def dot_of_xla(path: str) -> str:
    from jaxlib import _hlo

    module = _hlo.hlo_module_from_text(Path(path).read_text())
    return _hlo.hlo_module_to_dot_graph(module).replace("\n", "\r")


def comparable(dot: str) -> list[str]:
    """Without style sheet, comments and addresses; XLA's reader takes `-0` for the integer 0."""
    dot = re.sub(r"stylesheet=<.*?\n>\n", "", dot, flags=re.DOTALL)
    dot = re.sub(r"^//.*\n", "", dot, flags=re.MULTILINE)
    dot = re.sub(r"(?<== f\d\d\[\] )-0\b|(?<=\] )-0(?=[<>])", "0", dot)
    numbers: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        return numbers.setdefault(match[0], f"N{len(numbers)}")

    dot = re.sub(r"cluster_\d+", number, dot)
    dot = re.sub(r"^\d+(?= (?:\[label|->))", number, dot, flags=re.MULTILINE)
    return re.sub(r"(?<=-> )\d+(?= \[)", number, dot).split("\n")


def check(paths: list[Path]) -> None:
    answers = ask([str(path) for path in paths], dot_of_xla)
    compared = 0
    for path, answer in zip(paths, answers, strict=True):
        if answer.startswith("ERROR"):
            continue  # text of another compiler that jaxlib cannot read
        ours = render(parse_module(path.read_text()), "dot")
        assert comparable(ours) == comparable(answer.replace("\r", "\n")), path.name
        compared += 1
    assert compared > len(paths) // 2


def test_samples() -> None:
    check(SAMPLES)


@needs_shared
@pytest.mark.slow
def test_corpus() -> None:
    check(PROGRAMS)
