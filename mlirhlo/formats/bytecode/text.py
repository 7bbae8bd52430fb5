"""Attributes and types that bytecode holds as text: those of dialects without a binary encoding."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import UnregisteredAttr
from xdsl.ir import Attribute
from xdsl.utils.exceptions import ParseError, VerifyException

from mlirhlo.diagnostics import error
from mlirhlo.formats.bytecode.problems import MAX_ATTRIBUTE_DEPTH, at
from mlirhlo.formats.mlir.parser import MlirParser

if TYPE_CHECKING:
    from xdsl.context import Context

    from mlirhlo.formats.bytecode.cursor import Cursor

_FAILURES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NotImplementedError,
    ParseError,
    TypeError,
    ValueError,
    VerifyException,
)
"""What xDSL's attributes raise on text they do not take."""

_FOREIGN = re.compile(
    r"([#!])([A-Za-z_][\w$]*)(?:\.([A-Za-z_][\w$.]*)\s*(?:<(.*)>)?|<(.*)>)", re.DOTALL
)
_BRACKETS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|->|[(\[{<]|[)\]}>]')


@lru_cache(maxsize=4096)
def _foreign_class(name: str, is_type: bool) -> type[UnregisteredAttr]:
    return UnregisteredAttr.with_name_and_type(name, is_type)


class AttributeText:
    """Parses text with the dialects of a context; keeps what no dialect there knows as it stands."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def parse(self, text: str, is_type: bool, cursor: Cursor, offset: int) -> Attribute:
        """The attribute or type that `text` spells. Raises `HloError` HLO0223, HLO0225."""
        self._check_depth(text, cursor.file, offset)
        problem = "it is not understood"
        try:
            return self._parse(text, is_type)
        except _FAILURES as failure:
            lines = str(failure).strip().splitlines()
            problem = lines[-1] if lines else type(failure).__name__
        except RecursionError:
            problem = "it is nested too deep"
        foreign = _FOREIGN.fullmatch(text.strip())
        if foreign is None:
            raise error(
                "HLO0225",
                f"cannot read the {'type' if is_type else 'attribute'} '{text[:80]}': {problem}",
                at(cursor.file, offset),
            )
        return self._opaque(foreign, is_type)

    def _parse(self, text: str, is_type: bool) -> Attribute:
        parser = MlirParser(self._context, text)
        value = parser.parse_type() if is_type else parser.parse_attribute()
        rest = text[parser.pos :].strip()
        if rest:
            parser.raise_error(f"'{rest[:20]}' is left over")
        return value

    def _opaque(self, match: re.Match[str], is_type: bool) -> Attribute:
        _, dialect, name, parameters, opaque = match.groups()
        full = f"{dialect}.{name}" if name else dialect
        if opaque is not None:
            word, _, _ = opaque.partition("<")
            full = f"{dialect}.{word}"
            return _foreign_class(full, is_type)(full, is_type, True, opaque[len(word) :])
        return _foreign_class(full, is_type)(full, is_type, False, parameters or "")

    def _check_depth(self, text: str, file: str, offset: int) -> None:
        depth = 0
        for match in _BRACKETS.finditer(text):
            token = match.group()
            if token in "([{<":
                depth += 1
                if depth > MAX_ATTRIBUTE_DEPTH:
                    raise error(
                        "HLO0223",
                        f"brackets nested deeper than {MAX_ATTRIBUTE_DEPTH}",
                        at(file, offset),
                    )
            elif token in ")]}>":
                depth -= 1
