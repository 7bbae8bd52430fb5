"""The grammar of record of PTX and the reader see the same in every text."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from lark.exceptions import LarkError
from ptx_sweep import collect, head_for
from support import ROOT

from mlirhlo.diagnostics import HloError
from mlirhlo.formats.ptx import parse_ptx, print_ptx
from mlirhlo.formats.ptx.grammar import grammar, parse_records

FILES = sorted((ROOT / "test" / "lit").rglob("*.ptx"))


def compare(text: str) -> None:
    """Asserts that grammar and reader agree on a module: statement by statement, by what is printed."""
    assert parse_records(print_ptx(parse_ptx(text))) == parse_records(text)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_repository_texts(path: Path) -> None:
    compare(path.read_text())


def test_forms_of_the_table() -> None:
    lines = random.Random(2).sample(collect((), 1, 2, mutated=False), 150)
    compare("\n".join([*head_for("9.5", "sm_100a"), *lines, "}"]))


DAMAGE = (
    "",
    "{",
    "}",
    ";",
    "[",
    "]",
    "(",
    ",",
    '"',
    ".",
    "/*",
    "//",
    "%",
    "|",
    "!",
    "+",
    "-",
    ":",
    "0x",
    "_",
    "@",
)


def test_what_is_read_is_in_the_grammar() -> None:
    """Damaged text: the grammar may take more than the reader, which evaluates constants, never less."""
    randomness = random.Random(3)
    text = (ROOT / "test/lit/formats/ptx/statements.ptx").read_text()
    lines = [line for line in text.split("\n") if not line.strip().startswith("//")]
    text = "\n".join(lines)
    read = 0
    for _ in range(120):
        at = randomness.randrange(len(text))
        broken = text[:at] + randomness.choice(DAMAGE) + text[at + randomness.randrange(3) :]
        try:
            parse_ptx(broken)
        except HloError:
            continue
        read += 1
        parse_records(broken)
    assert read > 10


@pytest.mark.parametrize(
    "text",
    [
        "%r1 %r2",
        "[%r1",
        "{%r1",
        "1.2.3",
        "",
        "[{%r1}]",
        "3 ? 4",
        "[%r1-4]",
        "x-4",
        "-0f3F800000",
        "! !%p1",
    ],
)
def test_operands_that_neither_takes(text: str) -> None:
    from mlirhlo.dialects.hlo.syntax import SyntaxProblem
    from mlirhlo.dialects.ptx.syntax import operand

    with pytest.raises(SyntaxProblem):
        operand(text)
    with pytest.raises(LarkError):
        grammar().parse(text, start="operand")
