"""What the parts of the reader know of each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.ir import Attribute, Block, Region, SSAValue

from mlirhlo.formats.stablehlo.scan import Scanner

if TYPE_CHECKING:
    from xdsl.context import Context

    from mlirhlo.diagnostics import SourceText


class ReaderBase(Scanner):
    """State of the reader, and the methods that its parts call across files."""

    def __init__(self, source: SourceText, ctx: Context) -> None:
        super().__init__(source)
        self.ctx = ctx
        self.values: dict[str, tuple[SSAValue, ...]] = {}
        """Values in scope by their name."""

    def optional_type(self) -> Attribute | None:
        """A type, if one begins here."""
        raise TypeError

    def type(self) -> Attribute:
        """A type."""
        raise TypeError

    def dialect_type(self) -> Attribute:
        """A type of a dialect, or an alias: `!…`."""
        raise TypeError

    def foreign_type(self) -> Attribute:
        """A type that xDSL's parser reads."""
        raise TypeError

    def optional_attribute(self) -> Attribute | None:
        """An attribute, if one begins here."""
        raise TypeError

    def attribute(self) -> Attribute:
        """An attribute."""
        found = self.optional_attribute()
        return found if found is not None else self.expected("an attribute")

    def dictionary(self) -> dict[str, Attribute]:
        """`{name = attribute, …}`."""
        raise TypeError

    def optional_location(self) -> Attribute | None:
        """`loc(…)`, if it stands here."""
        raise TypeError

    def region(
        self,
        arguments: list[tuple[str, Attribute, int]] | None = None,
        *,
        is_isolated: bool = False,
        is_graph: bool = False,
    ) -> Region:
        """`{ … }`; `arguments` are names, types and places of the entry block's arguments.
        In a graph, values may be used before they are defined."""
        raise TypeError

    def block_named(self, name: str) -> Block:
        """The block of a name, which may come later."""
        raise TypeError

    def use(self, name: str, index: int, type_: Attribute, at: int) -> SSAValue:
        """The value a use means; checks its type."""
        raise TypeError

    def define(self, name: str, values: tuple[SSAValue, ...], at: int) -> None:
        """Gives values their name."""
        raise TypeError
