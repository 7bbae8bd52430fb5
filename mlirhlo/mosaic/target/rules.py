"""How a rule of a target is written, and where rules are found.

`@refuses("tpu.iota", …)` stands over a function that looks at one operation and says, as a `Refusal`,
why the compiler of a generation would not take it, or None.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from mlirhlo.mosaic.target.generations import Generation

if TYPE_CHECKING:
    from xdsl.ir import Operation

LOWERING = "HLO0740"
"""No generation has the operation."""
ELEMENTS = "HLO0741"
"""The element type is not for this operation on this generation."""
SPACE = "HLO0742"
"""The memory is not one the operation reaches."""
ALIGNMENT = "HLO0743"
"""An index is not provably a multiple of the tile."""
BLOCK = "HLO0744"
"""A block neither divides by its tile nor covers the array."""
BUDGET = "HLO0745"
"""A memory is too small."""
SYNC = "HLO0746"
"""Semaphores, copies, device ids."""
STRUCTURE = "HLO0747"
"""How the module is put together."""
SHAPE = "HLO0748"
"""The shape or the layout is not one the operation is lowered for."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an operation is not taken, and the mend."""

    code: str
    problem: str
    help: str


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: one generation, and what the call says about the kernel."""

    generation: Generation
    collective_id: int | None = None
    has_grid: bool = False


Rule: TypeAlias = "Callable[[Operation, Question], Refusal | None]"
RULES: dict[str, list[Rule]] = {}
"""The rules by the name of the operation."""

F = TypeVar("F", bound=Rule)


def refuses(*names: str) -> Callable[[F], F]:
    """Decorator: a rule of the operations of those names."""

    def register(rule: F) -> F:
        for name in names:
            RULES.setdefault(name, []).append(rule)
        return rule

    return register
