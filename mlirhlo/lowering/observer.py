"""Who watches a compilation: told of every stage as it is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.lowering.plan.plan import Plan
    from mlirhlo.lowering.plan.planner import Values
    from mlirhlo.rewrites.pipeline import Instrumentation


class Observer:
    """Does nothing with what it is told. Must not change what it is given, nor raise."""

    def passes(self) -> Sequence[Instrumentation]:
        """Who is told of the passes over HLO."""
        return ()

    def given(self, module: ModuleOp) -> None:
        """The module as it came, before the first pass."""

    def planned(self, module: ModuleOp, plan: Plan, values: Values) -> None:
        """The module after the last pass, and what runs where; `values` has the buffers of
        instructions in the order they run."""

    def lowered(self, name: str, loops: ModuleOp, llvm: ModuleOp) -> None:
        """A unit of code as loops and as the llvm dialect. `loops` are as they were given to LLVM's
        dialect; both belong to the compiler."""

    def assembled(self, name: str, text: str) -> None:
        """The unit as the LLVM assembly that is compiled."""

    def translated(self, name: str, text: str, ptx: str) -> None:
        """The unit as PTX, made of its LLVM assembly."""

    def runs(self) -> Callable[[Sequence[object]], Callable[[object], None]] | None:
        """Who is told of every run: takes the arguments of one device, returns what takes the
        result. None when nobody is."""
        return None

    def compiled(self, name: str, text: str, code: bytes) -> None:
        """The unit as object code of its LLVM assembly."""


SILENT = Observer()
"""For compilations that nobody watches."""
