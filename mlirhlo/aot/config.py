"""`tf2xla.Config` in protobuf's text format: the feeds and fetches that tfcompile is told of.

    feed { id { node_name: "x" } shape { dim { size: 2 } dim { size: 3 } } name: "x" }
    fetch { id { node_name: "y" } name: "y" }

    variable { node_name: "v" shape { dim { size: 3 } } type: DT_FLOAT readonly: true }

A variable is a node `VarHandleOp` of a graph. Conversion options have to be the defaults.
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
    readonly: bool = False
    """Of a variable: whether the graph leaves it as it is."""


@dataclass(frozen=True, slots=True)
class Config:
    """Feeds, fetches and variables in their order."""

    feeds: Sequence[Entry]
    fetches: Sequence[Entry]
    variables: Sequence[Entry] = ()


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
        parts: dict[str, list[Entry]] = {"feed": [], "fetch": [], "variable": []}
        for name, value, at in self.fields(""):
            if name not in (*parts, "conversion_options"):
                message = f"unknown field '{name}': a config has feed, fetch and variable"
                raise self.error(message, at)
            if isinstance(value, str):
                raise self.error(f"'{name}' is a message: {name} {{ … }}", at)
            if name == "conversion_options":
                self.check_defaults(value)
            else:
                parts[name].append(self.entry(name, value, at))
        return Config(*parts.values())

    def check_defaults(self, options: Fields) -> None:
        for name, value, at in options:
            if name != "custom_fake_quant_op_calls":
                raise self.error(f"unknown field '{name}' of conversion_options", at)
            if self.is_true(value, at):
                raise self.error(f"{name}: calls of fake quantization have no code", at)

    def is_true(self, value: Value, at: int) -> bool:
        if value not in ("true", "false"):
            raise self.error("expected true or false", at)
        return value == "true"

    def entry(self, kind: str, fields: Fields, at: int) -> Entry:
        node, output, name, type_, readonly = "", 0, "", "", False
        dimensions: list[int] | None = None
        for key, value, place in fields:
            match key, value:
                case "id", list() if kind != "variable":
                    node, output = self.identity(value)
                case "node_name", str() if kind == "variable":
                    node = value
                case "readonly", str() if kind == "variable":
                    readonly = self.is_true(value, place)
                case "name", str():
                    name = value
                case "type", str():
                    type_ = value
                case "shape", list():
                    dimensions = [self.dimension(field) for field in value]
                case _:
                    raise self.error(f"unknown field '{key}' of a {kind}", place)
        if not node:
            said = 'node_name: "…"' if kind == "variable" else 'id { node_name: "…" }'
            raise self.error(f"{kind}: no {said}", at)
        return Entry(node, output, name, dimensions, type_, readonly)

    def identity(self, fields: Fields) -> tuple[str, int]:
        """Name of a node, and the number of its output."""
        node, output = "", 0
        for inner, text, where in fields:
            if inner == "node_name" and isinstance(text, str):
                node = text
            elif inner == "output_index" and isinstance(text, str) and text.isdigit():
                output = int(text)
            else:
                raise self.error(f"unknown field '{inner}' of an id", where)
        return node, output

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
