"""What the general readers share: shapes with their code, and complaints about tokens."""

from __future__ import annotations

from mlirhlo.dialects.hlo.shapes import Shape, read_shape
from mlirhlo.dialects.hlo.syntax import SyntaxProblem
from mlirhlo.formats.hlo_text import reader_problems as codes
from mlirhlo.formats.hlo_text.lexer import Lexer, Token
from mlirhlo.formats.hlo_text.reader_problems import ReadProblem, coded


def read_coded_shape(lexer: Lexer) -> Shape:
    """Reads a shape. Raises `ReadProblem`."""
    try:
        return read_shape(lexer)
    except SyntaxProblem as problem:
        raise coded(problem, codes.SHAPE) from None


def expects(lexer: Lexer, what: str, token: Token) -> ReadProblem:
    """The problem that `token` is not what it should be."""
    found = "the end" if token.kind == "end" else repr(lexer.text[token.start : token.end][:40])
    why = _WHY.get(token.kind, "") if what.endswith("name") else ""
    return ReadProblem(
        codes.SYNTAX,
        token.start,
        f"expects {what}, found {found}{why}",
        max(1, token.end - token.start),
    )


_WHY = {
    "keyword": ", which is a reserved word (write % before it)",
    "type": ", which is a primitive type",
    "key": ", which is the key of an attribute (a blank is missing before '=')",
}
