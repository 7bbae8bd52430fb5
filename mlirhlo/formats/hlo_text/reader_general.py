"""The general way: computations and instructions token by token, with every rule and message.

A recursive descent over the tokens of `lexer`, values of attributes read by the dialect. It takes
what the quick way leaves: comments anywhere, several instructions on a line, nested operands,
inline computation bodies, shapes left out, the short forms of asynchronous instructions; and it
makes every diagnostic. Source: HLO text, "Computations and instructions", "Diagnostics".
"""

from __future__ import annotations

import re

from xdsl.dialects.builtin import SymbolRefAttr

from mlirhlo.dialects.hlo.attributes.base import string, symbol
from mlirhlo.dialects.hlo.ops import ComputationOp
from mlirhlo.dialects.hlo.shapes import Shape
from mlirhlo.formats.hlo_text import reader_problems as codes
from mlirhlo.formats.hlo_text.lexer import Lexer
from mlirhlo.formats.hlo_text.reader_fast import FOOTER, read_header, read_lines
from mlirhlo.formats.hlo_text.reader_instructions import InstructionReader
from mlirhlo.formats.hlo_text.reader_pieces import Pieces
from mlirhlo.formats.hlo_text.reader_problems import ReadProblem
from mlirhlo.formats.hlo_text.reader_state import ModuleState, Scope
from mlirhlo.formats.hlo_text.reader_tokens import expects, read_coded_shape

_LINE_END = re.compile(r"[ \t]*+\r?\n")


class GeneralReader:
    """Reads computations from a lexer into a module."""

    def __init__(self, state: ModuleState) -> None:
        self.state = state
        self.lexer = Lexer(state.source.text)
        self.pieces = Pieces(state)
        self.instructions = InstructionReader(state, self.lexer, self._inline)

    # -------------------------------------------------------------- computations

    def computations(self) -> None:
        """Reads computations to the end of the text."""
        text, lexer = self.state.source.text, self.lexer
        while True:
            header = read_header(self.pieces, lexer.position)
            if header is None:
                self.computation()
            else:
                self._enter(header.scope, header.is_entry)
                lexer.position = read_lines(self.pieces, header.scope, header.end)
                footer = FOOTER.match(text, lexer.position)
                if footer is None or header.scope.block.first_op is None:
                    self._rest(header.scope, header.declared, header.declared_at, header.is_entry)
                else:
                    lexer.position = footer.end()
                    self._close(header.scope, header.declared, header.declared_at, header.is_entry)
            if lexer.at_end():
                return

    def computation(self) -> None:
        """Reads one computation, with its header."""
        lexer, state = self.lexer, self.state
        is_entry = lexer.accept_keyword("ENTRY")
        token = lexer.look()
        if lexer.at_name():
            lexer.take()
            name, offset = token.text, token.start
        elif state.essential_constants and lexer.peek("{"):
            # Fingerprints leave names out.
            name, offset = f"_{len(state.by_symbol)}", token.start
        else:
            raise expects(lexer, "name", token)
        scope = Scope(name, offset)
        self._enter(scope, is_entry)
        declared, declared_at = None, offset
        if lexer.peek("("):
            declared, declared_at = self._signature()
        if not lexer.accept("{"):
            raise expects(lexer, "'{' at the beginning of instruction list", lexer.look())
        self._rest(scope, declared, declared_at, is_entry)

    def _enter(self, scope: Scope, is_entry: bool) -> None:
        if is_entry and self.state.entry is not None:
            raise ReadProblem(
                codes.ROOT_OR_ENTRY,
                scope.offset,
                "expects only one ENTRY",
                len(scope.name),
                notes=(
                    ("the other ENTRY is here", self.state.offsets[self.state.entry_text_name]),
                ),
            )
        self.state.declare(scope, len(scope.name))

    def _rest(self, scope: Scope, declared: Shape | None, declared_at: int, is_entry: bool) -> None:
        self._instructions(scope)
        self._close(scope, declared, declared_at, is_entry)

    def _close(
        self, scope: Scope, declared: Shape | None, declared_at: int, is_entry: bool
    ) -> None:
        computation = self.state.finish(scope, declared, declared_at)
        self.state.written.append((scope.offset, self.lexer.position, computation.computation_name))
        if is_entry:
            self.state.entry, self.state.entry_text_name = computation, scope.name
        if self.lexer.peek(","):
            self._execution_thread(computation)

    def _signature(self) -> tuple[Shape, int]:
        lexer = self.lexer
        lexer.expect("(")
        if not lexer.accept(")"):
            while True:
                if not lexer.at_name():
                    raise expects(lexer, "name", lexer.look())
                lexer.take()
                read_coded_shape(self.lexer)
                if not lexer.accept(","):
                    break
            if not lexer.accept(")"):
                raise expects(lexer, "')' at the end of param list", lexer.look())
        if not lexer.accept("->"):
            raise expects(lexer, "'->' before the result's shape", lexer.look())
        declared_at = lexer.skip()
        return read_coded_shape(self.lexer), declared_at

    def _execution_thread(self, computation: ComputationOp) -> None:
        lexer = self.lexer
        while lexer.accept(","):
            token = lexer.take()
            if token.kind != "key" or token.text != "execution_thread":
                raise ReadProblem(
                    codes.UNKNOWN_ATTRIBUTE,
                    token.start,
                    f'unexpected attribute "{token.text}". Allowed attributes: execution_thread',
                    len(token.text),
                )
            thread = lexer.string()
            if thread not in ("", "main"):
                computation.properties["execution_thread"] = string(thread)

    def _instructions(self, scope: Scope) -> None:
        """Instructions up to and with the closing brace."""
        lexer, text = self.lexer, self.state.source.text
        while True:
            line_end = _LINE_END.match(text, lexer.position)
            if line_end is not None:
                lexer.position = read_lines(self.pieces, scope, line_end.end())
            token = lexer.look()
            if token.text == "}" and scope.block.first_op is not None:
                lexer.take()
                return
            if token.kind == "end" and scope.block.first_op is not None:
                raise ReadProblem(
                    codes.SYNTAX,
                    token.start,
                    f"expects '}}' at the end of computation {scope.name}, found the end",
                    notes=((f"computation {scope.name} begins here", scope.offset),),
                )
            self.instructions.instruction(scope)

    def _inline(self) -> SymbolRefAttr:
        """An inline body `{ … }`: a computation above that reads the same, else a new one, `_`."""
        lexer = self.lexer
        scope = Scope("_", lexer.skip())
        lexer.expect("{")
        self._instructions(scope)
        known = self.state.same_body(scope.offset, lexer.position)
        if known is not None:
            return symbol(known)
        computation = self.state.finish(scope, None, scope.offset, inline=True)
        return symbol(computation.computation_name)
