"""Pretty forms of ops as rows spell them, taken apart once. See `dialects/tpu/rows.py`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

_TOKEN = re.compile(r"\{(:?)(\w*)(?::([\w.]+))?\}|\([?!]|\?\)")
_MARK = re.compile(r"[A-Za-z_]\w*|\d+|->|[^\s\w]")


@dataclass(frozen=True, slots=True)
class Text:
    """Words and marks, blanks as they are printed."""

    text: str
    tokens: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Values:
    """`{name}`: operands."""

    name: str


@dataclass(frozen=True, slots=True)
class Types:
    """`{:name}`: types."""

    name: str


@dataclass(frozen=True, slots=True)
class Spelled:
    """`{name:kind}`: an attribute. A `mixed` one has operands where the numbers are not known."""

    name: str
    kind: str
    operands: str = ""


@dataclass(frozen=True, slots=True)
class Dict:
    """`{dict}`: the other attributes."""


@dataclass(frozen=True, slots=True)
class AllTypes:
    """`{fn}`: `(types) -> types`."""


@dataclass(frozen=True, slots=True)
class Listed:
    """`{:all}`, `{:outs}`: types of all operands, of all results, with commas between."""

    is_results: bool


@dataclass(frozen=True, slots=True)
class Group:
    """`(? … ?)`; `anchor` is what decides whether it stands there. `(! … ?)` is only read."""

    nodes: tuple[Node, ...]
    anchor: Values | Spelled | Types
    is_printed: bool = True


Node: TypeAlias = "Text | Values | Types | Spelled | Dict | AllTypes | Listed | Group"


@lru_cache(maxsize=1024)
def nodes_of(form: str) -> tuple[Node, ...]:
    """The parts of a form."""
    stack: list[list[Node]] = [[]]
    opened: list[str] = []
    begin = 0
    for match in _TOKEN.finditer(form):
        if match.start() > begin:
            stack[-1].append(_text(form[begin : match.start()]))
        begin = match.end()
        if match[0] in ("(?", "(!"):
            opened.append(match[0])
            stack.append([])
        elif match[0] == "?)":
            inner = tuple(stack.pop())
            anchor = _anchor(inner)
            stack[-1].append(Group(inner, anchor, opened.pop() == "(?"))
        else:
            stack[-1].append(_field(match[1], match[2], match[3]))
    if begin < len(form):
        stack[-1].append(_text(form[begin:]))
    return tuple(stack[0])


def _anchor(nodes: tuple[Node, ...]) -> Values | Spelled | Types:
    """The first field of a group."""
    fields = [node for node in nodes if isinstance(node, Values | Spelled | Types)]
    return next((node for node in fields if not isinstance(node, Types)), fields[0])


def _text(text: str) -> Text:
    return Text(text, tuple(_MARK.findall(text)))


def _field(mark: str, name: str, kind: str | None) -> Node:
    if mark:
        return Listed(name == "outs") if name in ("all", "outs") else Types(name)
    if kind is None:
        return Dict() if name == "dict" else AllTypes() if name == "fn" else Values(name)
    if kind.startswith("mixed"):
        kind, _, operands = kind.partition(".")
        return Spelled(name, kind, operands)
    return Spelled(name, kind)


def _walk(nodes: tuple[Node, ...]) -> Iterator[Node]:
    for node in nodes:
        if isinstance(node, Group):
            yield from _walk(node.nodes) if node.is_printed else ()
        else:
            yield node


@lru_cache(maxsize=1024)
def shown_in(form: str) -> frozenset[str]:
    """Attributes that a form shows outside its dictionary."""
    return frozenset(node.name for node in _walk(nodes_of(form)) if isinstance(node, Spelled))
