"""Comparing diagnostics with the comments that announce them."""

from __future__ import annotations

import pytest

from mlirhlo.debug.expected import check_expected, read_expected
from mlirhlo.diagnostics import Diagnostic, Place, Severity


def at(line: int, message: str = "shapes differ", code: str = "HLO0102") -> Diagnostic:
    return Diagnostic(code, message, Place("f", line, 1) if line else None)


def check(text: str, *produced: Diagnostic, only: bool = False) -> list[str]:
    found = check_expected(read_expected(text, "f"), produced, only_expected=only)
    return [str(d).split("\n")[0] for d in found]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x // expected-error {{shapes differ}}", 1),
        ("// expected-error @+1 {{HLO0102}}\nx", 2),
        ("// expected-error@+2{{HLO0102}}\n\nx", 3),
        ("x\n// expected-error @-1 {{HLO0102}}", 1),
        ("x\n// expected-error @above {{error[HLO0102]: shapes}}", 1),
        ("// expected-error @below {{HLO0102}}\nx", 2),
        ("// expected-note @below {{n}}\n// expected-error @below {{HLO0102}}\nx", 3),
        ("// expected-error @unknown {{HLO0102}}\nx", 0),
        ("// expected-error-re {{shapes {{d.*r}}}}", 1),
    ],
)
def test_met(text: str, line: int) -> None:
    diagnostic = Diagnostic(
        "HLO0102", "shapes differ", at(line).place, notes=[("n", Place("f", line, 1))]
    )
    assert check(text, diagnostic) == []


def test_braces_in_the_text() -> None:
    text = "// expected-error {{groups={{0,1}} and {2}}}"
    assert check(text, at(1, "bad groups={{0,1}} and {2}")) == []


def test_two_on_one_line() -> None:
    text = "// expected-error {{a}} expected-error {{b}}"
    assert check(text, at(1, "a"), at(1, "b")) == []
    assert check(text, at(1, "a"), at(1, "a")) == [
        "f:1: error[HLO0505]: unexpected error[HLO0102]: a".replace("f:1:", "f:1:1:"),
        'f:1:25: error[HLO0505]: expected error "b" was not produced',
    ]


def test_not_produced() -> None:
    assert check("\n// expected-error @+1 {{x}}") == [
        'f:2:4: error[HLO0505]: expected error "x" was not produced at line 3'
    ]


def test_wrong_line_severity_and_text_are_not_met() -> None:
    for text in ("\n// expected-error {{HLO0102}}", "// expected-warning {{HLO0102}}"):
        assert len(check(text, at(1))) == 2
    assert len(check("// expected-error {{HLO0103}}", at(1))) == 2


def test_unexpected() -> None:
    assert check("x", at(1)) == ["f:1:1: error[HLO0505]: unexpected error[HLO0102]: shapes differ"]
    assert check("x", at(1), only=True) == []


def test_warnings() -> None:
    warning = Diagnostic("HLO0511", "w", Place("f", 1, 1), severity=Severity.WARNING)
    assert check("// expected-warning {{HLO0511}}", warning) == []
    assert len(check("", warning)) == 1


def test_notes_need_not_be_announced_but_must_come_when_they_are() -> None:
    diagnostic = Diagnostic(
        "HLO0102", "m", Place("f", 1, 1), notes=[("defined here", Place("f", 2, 1))]
    )
    assert check("// expected-error {{m}}", diagnostic) == []
    assert check("// expected-error {{m}}\n// expected-note {{defined here}}", diagnostic) == []
    assert len(check("// expected-error {{m}} expected-note {{defined here}}", diagnostic)) == 1
