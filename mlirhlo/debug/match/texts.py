"""Listings of HLO text, of any style and any age, without reading it as a module; MLIR too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from mlirhlo.debug.match.listing import Listing, ListingBuilder, Row

_LINE = re.compile(r"^[ \t]+(?P<root>ROOT )?%?(?P<name>[^\s=(]+) = (?P<text>.*)$")
_HEAD = re.compile(
    r"^(?P<entry>ENTRY )?%?(?P<name>[^\s(]+) .*\{\s*$|^\s*func\.func .*?@(?P<function>[^\s(]+)"
)
_METADATA = re.compile(r', metadata=\{(?:[^"{}]|"(?:[^"\\]|\\.)*")*\}')
_NAME = re.compile(r"%([^\s(){},=:]+)")
_BARE = re.compile(r"(?P<lead>[(,=] ?|\{)(?P<name>[A-Za-z_][\w.\-]*)(?=[,)}\s]|$)")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def label_of(text: str) -> str:
    """What the text behind `name = ` says without metadata and without names, which follow a `%`."""
    return _NAME.sub("%", _METADATA.sub("", text) if ", metadata={" in text else text)


def listing_of_text(text: str) -> Listing:
    """The instructions of a module's text; lines that are none are passed over."""
    lines: list[tuple[int, bool, str, str]] = []
    names: list[str] = []
    entry = -1
    for line in text.split("\n"):
        if (match := _LINE.match(line)) is not None:
            if not names:
                names.append("")
            lines.append((len(names) - 1, match["root"] is not None, match["name"], match["text"]))
        elif (head := _HEAD.match(line)) is not None and not line.startswith("HloModule "):
            entry = len(names) if head["entry"] else entry
            names.append(head["name"] or head["function"])
    return listing_of_lines(lines, names, entry)


def instruction_lines(text: str) -> list[int]:
    """Numbers from 0 of the lines whose instructions `listing_of_text` lists, in the order of its rows."""
    return [number for number, line in enumerate(text.split("\n")) if _LINE.match(line)]


def listing_of_lines(
    lines: Sequence[tuple[int, bool, str, str]], computations: Sequence[str], entry: int = -1
) -> Listing:
    """The listing of lines that are taken apart: computation, whether the root, name, text behind ` = `."""
    called = {name: index for index, name in enumerate(computations)}
    is_bare = not any("%" in text for *_, text in lines)
    builder = ListingBuilder(entry=entry)
    start = 0
    for index, name in enumerate(computations):
        end = start
        while end < len(lines) and lines[end][0] == index:
            end += 1
        inside = lines[start:end]
        local = {line[2]: start + number for number, line in enumerate(inside)}
        roots = [start + number for number, line in enumerate(inside) if line[1]]
        rows = _rows(inside, local, called, index, is_bare=is_bare)
        root = roots[-1] if roots else end - 1 if end > start else -1
        builder.computation(name, rows, root, is_entry=index == entry)
        start = end
    return builder.build()


def _rows(
    lines: Iterable[tuple[int, bool, str, str]],
    local: Mapping[str, int],
    called: Mapping[str, int],
    computation: int,
    *,
    is_bare: bool,
) -> Iterator[Row]:
    for _, _, name, text in lines:
        plain = _METADATA.sub("", text) if ", metadata={" in text else text
        if is_bare:
            plain = _marked(plain, local, called)
        names = _NAME.findall(plain)
        operands = tuple(local[other] for other in names if other in local)
        calls = tuple(called[other] for other in names if other in called and other not in local)
        yield Row(name, _NAME.sub("%", plain), operands, computation, calls)


def _marked(text: str, local: Mapping[str, int], called: Mapping[str, int]) -> str:
    """The text with a `%` before names, as in the style that has them."""
    if '"' in text:  # strings hold no names
        pieces = _STRING.split(text)
        strings = [*_STRING.findall(text), ""]
        marked = (_marked(piece, local, called) for piece in pieces)
        return "".join(piece + string for piece, string in zip(marked, strings, strict=True))
    return _BARE.sub(
        lambda match: (
            f"{match['lead']}%{match['name']}"
            if match["name"] in local or match["name"] in called
            else match[0]
        ),
        text,
    )
