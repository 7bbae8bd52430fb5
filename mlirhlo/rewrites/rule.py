"""One rewrite as a value: what it matches, its equation, its function, and what it keeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.rewrites.rewriter import Rewriter

Contract: TypeAlias = Literal["exact", "zeros", "finite", "rounding"]
"""What a rule keeps of results.

`exact`: every bit, a NaN being any NaN. `zeros`: all but the sign of zeros. `finite`: every bit
where no operand is infinite or NaN. `rounding`: the value, computed with other roundings.
"""

RuleFunction = Callable[[Any, "Rewriter"], None]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rewrite with a name and an equation."""

    name: str
    """What it matches, in snake case."""
    equation: str
    """`left => right`, the first line of the function's docstring."""
    ops: tuple[type[Instruction], ...]
    """Classes it may match."""
    function: RuleFunction
    """Rewrites, or returns having done nothing."""
    contract: Contract = "exact"
    """What stays of the values."""
    needs: tuple[str, ...] = ()
    """Options of the pass that must be on; `!name` for one that must be off."""
    reads: tuple[type[Instruction], ...] = ()
    """Classes one of which makes an operand; any when empty. Spares a question where none does."""
    looks_far: bool = False
    """Whether it looks further than `settled` says: at users, at what users read, or any number of steps up."""

    @property
    def pattern(self) -> RewritePattern:
        """The rule for xDSL's own drivers."""
        return _RulePattern(self)


class _RulePattern(RewritePattern):
    def __init__(self, rule: Rule) -> None:
        self.rule = rule

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        if isinstance(op, self.rule.ops):
            own = Rewriter(op)
            own.extend_from_listener(rewriter)
            self.rule.function(op, own)
            rewriter.has_done_action |= own.has_done_action
