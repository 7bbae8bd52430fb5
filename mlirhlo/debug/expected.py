"""Diagnostics that a test file announces: `// expected-error @+1 {{text}}`, compared with what came.

The syntax is MLIR's: error, warning, note, remark; `-re` with regular expressions in inner braces;
`@+N`, `@-N`, `@above`, `@below` (next line without an announcement), `@unknown` (no line). The text
may stand anywhere in `error[HLO0102]: message`. Notes that nobody announces are let pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mlirhlo.diagnostics import Diagnostic, Place, Severity

_ANNOUNCED = re.compile(
    r"expected-(?P<severity>error|warning|note|remark)(?P<regex>-re)?\s*"
    r"(?:@(?P<at>[+-]\d+|above|below|unknown))?\s*\{\{(?P<text>.*)\}\}"
)


@dataclass(slots=True)
class Expected:
    """One announcement."""

    severity: Severity
    line: int
    """Line the diagnostic must have; 0 = none."""
    pattern: re.Pattern[str]
    text: str
    place: Place
    """Where the announcement stands."""
    was_met: bool = False


def read_expected(text: str, file: str) -> list[Expected]:
    """All announcements of a text."""
    found: list[Expected] = []
    if "expected-" not in text:
        return found
    lines = text.split("\n")
    announcing = [_ANNOUNCED.search(line) is not None for line in lines]
    for index, line in enumerate(lines):
        # Each announcement ends at the last `}}` before the next one: texts may hold braces.
        starts = [m.start() for m in re.finditer(r"expected-", line)]
        for start, end in zip(starts, [*starts[1:], len(line)], strict=False):
            match = _ANNOUNCED.match(line[start:end])
            if match is None:
                continue
            place = Place(file, index + 1, start + 1, match.end(), line)
            found.append(
                Expected(
                    Severity(match["severity"]),
                    _target(match["at"], index, announcing),
                    _pattern(match["text"], match["regex"] is not None),
                    match["text"],
                    place,
                )
            )
    return found


def _target(at: str | None, index: int, announcing: Sequence[bool]) -> int:
    match at:
        case None:
            return index + 1
        case "unknown":
            return 0
        case "above":
            step = -1
        case "below":
            step = 1
        case _:
            return index + 1 + int(at)
    target = index + step
    while 0 <= target < len(announcing) and announcing[target]:
        target += step
    return target + 1


def _pattern(text: str, is_regex: bool) -> re.Pattern[str]:
    if not is_regex:
        return re.compile(re.escape(text))
    parts = re.split(r"\{\{(.*?)\}\}", text)
    return re.compile(
        "".join(f"(?:{p})" if i % 2 else re.escape(p) for i, p in enumerate(parts)), re.DOTALL
    )


def check_expected(
    expected: Iterable[Expected], produced: Iterable[Diagnostic], *, only_expected: bool = False
) -> list[Diagnostic]:
    """What is wrong: announcements not met, and (unless `only_expected`) diagnostics not announced.

    Each announcement is met by one diagnostic. All are HLO0505.
    """
    wanted = list(expected)
    wrong: list[Diagnostic] = []
    for diagnostic in produced:
        line = diagnostic.place.line if diagnostic.place is not None else 0
        said = f"{diagnostic.severity.value}[{diagnostic.code}]: {diagnostic.message}"
        met = _meet(wanted, diagnostic.severity, line, said)
        if not met and not only_expected:
            wrong.append(
                Diagnostic(
                    "HLO0505",
                    f"unexpected {said}",
                    diagnostic.place,
                    help=f"announce it: // expected-{diagnostic.severity.value}"
                    f"{'' if line else '@unknown'} {{{{{diagnostic.code}}}}}",
                )
            )
        for note, place in diagnostic.notes:
            _meet(wanted, Severity.NOTE, place.line if place is not None else line, f"note: {note}")
    wrong += [
        Diagnostic(
            "HLO0505",
            f'expected {e.severity.value} "{e.text}" was not produced'
            + ("" if e.line in (0, e.place.line) else f" at line {e.line}"),
            e.place,
        )
        for e in wanted
        if not e.was_met
    ]
    return wrong


def _meet(wanted: Sequence[Expected], severity: Severity, line: int, said: str) -> bool:
    for candidate in wanted:
        if (
            not candidate.was_met
            and candidate.severity is severity
            and candidate.line == line
            and candidate.pattern.search(said)
        ):
            candidate.was_met = True
            return True
    return False
