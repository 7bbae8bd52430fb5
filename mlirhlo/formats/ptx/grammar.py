"""The grammar of record, run by Lark: what tests hold the reader against.

`grammar.lark` says everything about the form of PTX; state spaces, types and directives come from the tables of the
dialect. It is not run when a file is read: Lark reaches a hundredth of the reader's speed.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

from mlirhlo.dialects.ptx.declarations import FUNCTION_DIRECTIVES, SPACES
from mlirhlo.dialects.ptx.values import TYPE_BITS

if TYPE_CHECKING:
    from lark import Lark, Token, Tree


@lru_cache(maxsize=1)
def grammar() -> Lark:
    """The parser; building it takes a fraction of a second."""
    from lark import Lark

    text = (resources.files("mlirhlo.formats.ptx") / "grammar.lark").read_text()
    headers = sorted(set(FUNCTION_DIRECTIVES) - {"pragma"}, key=len, reverse=True)
    for mark, words in (
        ("@SPACES@", SPACES),
        ("@TYPES@", sorted(TYPE_BITS, key=len, reverse=True)),
        ("@HEADERS@", headers),
    ):
        text = text.replace(mark, "|".join(words))
    return Lark(
        text,
        parser="lalr",
        lexer="contextual",
        start=["module", "operand"],
        keep_all_tokens=True,
        maybe_placeholders=False,
    )


STATEMENTS = frozenset(
    {
        *("declaration", "file", "pragma", "section", "alias", "location", "label"),
        *("instruction", "targets", "prototype"),
    }
)
"""Rules that are a record of their own."""


_BLOCKS = frozenset({"function", "scope", "body"})


def parse_records(text: str) -> list[str]:
    """The statements of a module by the grammar alone, without white space; what surrounds them in pieces.

    Raises `lark.exceptions.LarkError`.
    """
    records: list[str] = []
    tree = grammar().parse(text, start="module")  # pyright: ignore[reportUnknownMemberType]
    _collect(tree, records)
    return records


def _collect(tree: Tree[Token], records: list[str]) -> None:
    loose: list[str] = []
    for child in tree.children:
        if isinstance(child, str):
            loose.append(child)
        elif _rule(child) in STATEMENTS | _BLOCKS:
            records += filter(None, [_joined(loose)])
            loose = []
            if _rule(child) in _BLOCKS:
                _collect(child, records)
            else:
                records.append(_joined(_tokens(child)))
        else:
            loose += _tokens(child)
    records += filter(None, [_joined(loose)])


def _rule(tree: Tree[Token]) -> str:
    return str(tree.data)


def _tokens(tree: Tree[Token]) -> list[str]:
    return [str(token) for token in tree.scan_values(lambda _: True)]


def _joined(tokens: list[str]) -> str:
    return "".join("".join(token.split()) for token in tokens)
