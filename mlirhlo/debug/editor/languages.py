"""Which functions answer about a document: those about HLO text, or those about MLIR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mlirhlo.debug.editor import features, mlir
from mlirhlo.debug.editor.document import Document, Span
from mlirhlo.debug.editor.features import Completion, Mend, Symbol
from mlirhlo.diagnostics import Diagnostic


class Answers(Protocol):
    """What an editor asks; lines and columns count from 0."""

    def definition(self, document: Document, line: int, column: int) -> Span | None:
        """Where what is named at a position is defined."""

    def references(self, document: Document, line: int, column: int) -> list[Span]:
        """Every span that names it, the definition first."""
        ...

    def rename(
        self, document: Document, line: int, column: int, name: str
    ) -> list[tuple[Span, str]]:
        """Edits that give it another name. Raises `HloError` HLO0879."""
        ...

    def hover(self, document: Document, line: int, column: int) -> str | None:
        """What is known of it, as Markdown."""

    def completions(self, document: Document, line: int, column: int) -> Sequence[Completion]:
        """What may stand at a position."""
        ...

    def folds(self, document: Document) -> Sequence[tuple[int, int]]:
        """First and last lines of what can be folded."""
        ...

    def outline(self, document: Document) -> Sequence[Symbol]:
        """Computations or functions with what they hold."""
        ...

    def tokens(self, document: Document) -> list[int]:
        """Semantic tokens, five numbers each, of the kinds `features.TOKEN_TYPES`."""
        ...

    def inlay_shapes(
        self, document: Document, first: int, last: int
    ) -> Sequence[tuple[int, int, str]]:
        """Line, column and shape of operands whose shape the text does not say."""
        ...

    def mends(self, document: Document, diagnostic: Diagnostic) -> Sequence[Mend]:
        """Changes that a diagnostic names."""
        ...


def answers(document: Document) -> Answers:
    """The functions for the language of a document."""
    return mlir if document.is_mlir else features
