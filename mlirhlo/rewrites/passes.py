"""What a pass is, and what it reports.

A pass is a frozen dataclass whose fields are its options; `run` changes a module in place and says
truthfully whether it did. It is an xDSL `ModulePass` too, so that `xdsl-opt` runs it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from mlirhlo.diagnostics import Place
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops.base import Instruction


@dataclass(frozen=True, slots=True)
class Remark:
    """A producer that was not fused with a consumer, and why."""

    computation: str
    producer: str
    consumer: str
    """The instruction that reads it, or the first output of the fusion that does."""
    code: str
    """One word for the reason."""
    reason: str
    bytes: int
    """Size of the producer's result, which is written and read again."""

    def __str__(self) -> str:
        return f"{self.computation}: {self.producer} -> {self.consumer}: {self.code}: {self.reason}"


RuleListener: TypeAlias = Callable[[str, Instruction], None]
"""Called with the rule's name and the instruction it matched, before the rewrite."""


@dataclass(slots=True)
class Trace:
    """What happened while passes ran."""

    rule_counts: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """Rewrites by (pass, rule)."""
    listeners: list[RuleListener] = field(default_factory=list[RuleListener])
    written_by: dict[Operation, tuple[str, Place]] = field(
        default_factory=dict[Operation, tuple[str, Place]]
    )
    """Of instructions that rules from outside of the project wrote: the rule and where it is defined."""
    remarks: list[Remark] | None = None
    """Where passes say what they considered and did not do; None = nobody asks."""


@dataclass(frozen=True)
class HloPass(ModulePass):
    """A pass over an HLO module. The first line of the docstring is shown by `--list-passes`."""

    exact: ClassVar[bool] = True
    """Whether every bit of a program's results stays; else floats may be rounded otherwise."""

    @abstractmethod
    def run(self, module: HloModule, trace: Trace) -> bool:
        """Changes `module` in place; whether anything changed. May raise `HloError`."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """As xDSL calls a pass."""
        self.run(HloModule(op), Trace())
