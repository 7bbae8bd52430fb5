"""The order in which the printer meets attributes that may have aliases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects.builtin import UNKNOWN_LOC, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation

from mlirhlo.formats.stablehlo.aliases import Aliases, Visitor
from mlirhlo.formats.stablehlo.compact import applied_op


@dataclass(frozen=True, slots=True)
class AliasFinder:
    """Walks a module as the printer does."""

    module: ModuleOp
    debug_info: bool
    generic: bool

    def aliases(self) -> Aliases:
        """The aliases that the printer will use."""
        visitor = Visitor()
        self.walk(visitor)
        return visitor.aliases()

    def walk(self, visitor: Visitor) -> None:
        """Hands every attribute to the visitor."""
        self._op(self.module, visitor)

    def _op(self, op: Operation, visitor: Visitor) -> None:
        if self.debug_info:
            visitor.visit(cast(Attribute, op.location), may_be_deferred=True)
        if not self.generic and op.name == "stablehlo.reduce" and applied_op(op) is not None:
            self.dictionaries(op, visitor)
            return
        is_function = isinstance(op, FuncOp)
        if not is_function and not isinstance(op, ModuleOp):
            self.dictionaries(op, visitor)
        for region in op.regions:
            shows = self.generic or op.name not in ("stablehlo.while", "func.func")
            for number, block in enumerate(region.blocks):
                if shows or number or (is_function and self.debug_info):
                    pairs = not self.generic and op.name == "stablehlo.reduce"
                    self._arguments(block, visitor, in_pairs=pairs)
                for inner in block.ops:
                    self._op(inner, visitor)
        if is_function or isinstance(op, ModuleOp):
            self.dictionaries(op, visitor)

    def _arguments(self, block: Block, visitor: Visitor, *, in_pairs: bool) -> None:
        if self.debug_info:
            arguments = list(block.args)
            if in_pairs:  # a reducer shows the arguments of each operand together
                half = len(arguments) // 2
                arguments = [a for i in range(half) for a in (arguments[i], arguments[half + i])]
            for argument in arguments:
                place: Any = getattr(argument, "location", None) or UNKNOWN_LOC
                visitor.visit(place)

    def dictionaries(self, op: Operation, visitor: Visitor) -> None:
        """Hands the attributes of an op to the visitor."""
        for entries in (op.properties, op.attributes):
            for value in entries.values():
                visitor.visit_others(value)
