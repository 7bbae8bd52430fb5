"""`tf2xla.Config` in protobuf's text format: the feeds and fetches that tfcompile is told of.

    feed { id { node_name: "x" } shape { dim { size: 2 } dim { size: 3 } } name: "x" }
    fetch { id { node_name: "y" } name: "y" }

Only what describes feeds and fetches is read; variables and conversion options are errors, as they
have no meaning outside of TensorFlow graphs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from mlirhlo.diagnostics import HloError, Place, error

_TOKEN = re.compile(
    r"""\s+|\#[^\n]*|[{}\[\]<>:,;]|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|[-\w.+/]+"""
)

Fields: TypeAlias = "list[tuple[str, Value, int]]"
"""Name, value, and offset in the text."""
Value: TypeAlias = "str | Fields"


@dataclass(frozen=True, slots=True)
class Entry:
    """A feed or a fetch."""

    node: str
    """Name of the node, or its number."""
    output: int
    """Which of the node's outputs."""
    name: str
    """As the generated code calls it; empty for the node's own name."""
    dimensions: Sequence[int] | None
    type: str
    """TensorFlow's name of the element type (`DT_FLOAT`), or nothing."""


@dataclass(frozen=True, slots=True)
class Config:
    """Feeds and fetches in their order."""

    feeds: Sequence[Entry]
    fetches: Sequence[Entry]


def parse_config(text: str, file: str = "<config>") -> Config:
    """Reads a config. Raises `HloError` HLO0842 with the line where something is wrong."""
    return _Reader(text, file).config()


class _Reader:
    def __init__(self, text: str, file: str) -> None:
        self.text, self.file = text, file
        self.tokens: list[tuple[str, int]] = []
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise self.error(f"unexpected {text[at]!r}", at)
            if not found[0].isspace() and found[0][0] != "#":
                self.tokens.append((found[0], at))
            at = found.end()
        self.at = 0

    def error(self, message: str, at: int) -> HloError:
        line = self.text.count("\n", 0, at) + 1
        column = at - (self.text.rfind("\n", 0, at) + 1) + 1
        return error("HLO0842", message, Place(self.file, line, column))

    def config(self) -> Config:
        fields = self.fields("")
        parts: dict[str, list[Entry]] = {"feed": [], "fetch": []}
        for name, value, at in fields:
            if name not in parts:
                raise self.error(f"unknown field '{name}': a config has feed and fetch", at)
            if isinstance(value, str):
                raise self.error(f"'{name}' is a message: {name} {{ … }}", at)
            parts[name].append(self.entry(name, value, at))
        return Config(parts["feed"], parts["fetch"])

    def entry(self, kind: str, fields: Fields, at: int) -> Entry:
        node, output, name, type_ = "", 0, "", ""
        dimensions: list[int] | None = None
        for key, value, place in fields:
            match key, value:
                case "id", list():
                    for inner, text, where in value:
                        if inner == "node_name" and isinstance(text, str):
                            node = text
                        elif inner == "output_index" and isinstance(text, str) and text.isdigit():
                            output = int(text)
                        else:
                            raise self.error(f"unknown field '{inner}' of an id", where)
                case "name", str():
                    name = value
                case "type", str():
                    type_ = value
                case "shape", list():
                    dimensions = [self.dimension(field) for field in value]
                case _:
                    raise self.error(f"unknown field '{key}' of a {kind}", place)
        if not node:
            raise self.error(f'{kind}: no id {{ node_name: "…" }}', at)
        return Entry(node, output, name, dimensions, type_)

    def dimension(self, field: tuple[str, Value, int]) -> int:
        name, value, at = field
        if name == "dim" and isinstance(value, list):
            sizes = [text for key, text, _ in value if key == "size"]
            if len(sizes) == 1 and isinstance(sizes[0], str) and sizes[0].isdigit():
                return int(sizes[0])
        raise self.error("a shape is made of dim { size: N }, N at least 0", at)

    def fields(self, closing: str) -> Fields:
        found: Fields = []
        while self.at < len(self.tokens):
            name, at = self.tokens[self.at]
            self.at += 1
            if name == closing:
                return found
            if name in ",;":
                continue
            if not re.fullmatch(r"[A-Za-z_]\w*", name):
                raise self.error(f"expected the name of a field, found {name}", at)
            found.append((name, self.value(), at))
        if closing:
            raise self.error(f"expected '{closing}', found the end of the text", len(self.text))
        return found

    def value(self) -> Value:
        token, at = self.token()
        if token == ":":
            token, at = self.token()
        elif token not in "{<":
            raise self.error(f"expected ':' or '{{', found {token}", at)
        if token in "{<":
            return self.fields("}" if token == "{" else ">")
        if token in "}>[],;:":
            raise self.error(f"expected a value, found {token}", at)
        return _unquoted(token) if token[0] in "\"'" else token

    def token(self) -> tuple[str, int]:
        if self.at == len(self.tokens):
            raise self.error("expected a value, found the end of the text", len(self.text))
        self.at += 1
        return self.tokens[self.at - 1]


def _unquoted(token: str) -> str:
    return re.sub(r"\\(.)", r"\1", token[1:-1])
