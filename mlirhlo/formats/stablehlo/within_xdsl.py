"""Pretty forms for xDSL's own parser: it meets an op, and the reader of programs reads on from there.

`foreign.Bridge` is the other direction: ops of xDSL in a text that the reader reads.
"""
# xDSL lets an op neither know the dialects around it nor go on at another position.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.utils.lexer import Span

from mlirhlo.diagnostics import HloError, SourceText
from mlirhlo.dialects.stablehlo.op_classes import TableOp
from mlirhlo.formats.stablehlo.pretty import readers
from mlirhlo.formats.stablehlo.reader import Reader

_ATTRIBUTE = "stablehlo_reader"
"""Of a parser: the reader of its text, which lives as long as the parser does."""


class _Inner(Reader):
    """A reader of ops in a text that a parser of xDSL reads; the values around them are the parser's."""

    def __init__(self, parser: Parser) -> None:
        text = parser.lexer.input
        source = SourceText(text.name, text.content)
        super().__init__(source, parser.ctx)
        self.parser = parser

    def use(self, name: str, index: int, type_: Attribute, at: int) -> SSAValue:
        """The value a use means; one that the parser has not met yet is the parser's to resolve."""
        if name in self.values:
            return super().use(name, index, type_, at)
        span = Span(at, at + len(name) + 1, self.parser.lexer.input)
        return self.parser.resolve_operand(UnresolvedOperand(span, index), type_)

    def read(self, cls: type[TableOp]) -> Operation:
        """The op whose name the parser has just read."""
        parser = self.parser
        self.pos = start = parser.pos
        self.values = parser.ssa_values
        self.dialects = list(parser._parser_state.dialect_stack)
        op = readers()[cls.name](self, start)
        parser._resume_from(self.pos)
        return op


def parse(cls: type[TableOp], parser: Parser) -> Operation:
    """Reads the pretty form of an op for xDSL; what is wrong with it becomes xDSL's `ParseError`."""
    if cls.name not in readers():
        parser.raise_error(f"{cls.name} has no form of its own; write it in generic form")
    inner: _Inner | None = getattr(parser, _ATTRIBUTE, None)
    if inner is None:
        inner = _Inner(parser)
        setattr(parser, _ATTRIBUTE, inner)
    try:
        return inner.read(cls)
    except HloError as problem:
        diagnostic = problem.diagnostics[0]
        parser.raise_error(f"[{diagnostic.code}] {diagnostic.message}", inner.pos, inner.pos)


def register() -> None:
    """Lets xDSL's parsers read the ops of the tables."""
    TableOp.READ_PRETTY = parse
