"""Files of several modules."""

from __future__ import annotations

import pytest

from mlirhlo.formats.pieces import split


def divided(text: str) -> list[tuple[str, int]]:
    pieces, _ = split(text.encode(), "f")
    return [(p.data.decode().strip(), p.first_line) for p in pieces]


def test_pieces_know_their_line() -> None:
    assert divided("a\n// -----\nb\nc\n// -----\nd\n") == [("a", 1), ("b\nc", 2), ("d", 5)]


def test_lines_count_as_in_the_file() -> None:
    pieces, _ = split(b"a\n// -----\n\nb\n", "f")
    assert pieces[1].data.split(b"\n").index(b"b") + 1 == 4


def test_empty_pieces_are_left_out() -> None:
    text = "// RUN: x\n\n// -----\na\n// -----\n// only a comment\n"
    assert divided(text) == [("a", 3)]
    assert divided("// nothing\n") == [("// nothing", 1)]


def test_an_announcement_is_content() -> None:
    assert len(divided("a\n// -----\n// expected-error@unknown {{x}}\n")) == 2


@pytest.mark.parametrize("line", ["  // -----", "// -----  ", "// -----\r"])
def test_dividers(line: str) -> None:
    assert len(divided(f"a\n{line}\nb\n")) == 2


@pytest.mark.parametrize("line", ["// ----", "//-----", "// ------"])
def test_what_almost_divides_is_warned_of(line: str) -> None:
    pieces, warnings = split(f"a\n{line}\nb\n".encode(), "f")
    assert len(pieces) == 1
    assert str(warnings[0]).startswith("f:2:1: warning[HLO0511]")


def test_other_comments_are_no_dividers() -> None:
    _, warnings = split(b"a // -----\n// ----- b\n// text\n", "f")
    assert not warnings
