"""The generators' choices drawn by hypothesis, so that failures shrink."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from mlirhlo.debug.fuzz.generators.choices import Choices
from mlirhlo.debug.fuzz.generators.instructions import GENERATORS, Case

T = TypeVar("T")
C = TypeVar("C", bound="Drawn")

FACTOR = int(os.environ.get("MLIRHLO_DIFFERENTIAL", "1"))
"""Multiplies the number of examples; 1 in the suite, 20 or more for a search."""


def examples(count: int) -> settings:
    """Settings of a test of so many examples, the first of which is the simplest there is."""
    return settings(
        max_examples=1 + count * FACTOR,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )


class Drawn(Choices):
    """Random choices; the first option and the least number are the simplest."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        """Both ends included; shrinks towards `low`, or 0 where that is between."""
        return int(self._draw(st.integers(low, high))) if low < high else low


def strategy_of(
    make: Callable[[C], T],
    choices: type[C] = Drawn,  # type: ignore[assignment]
) -> st.SearchStrategy[T]:
    """What `make` makes of choices, as a strategy."""

    @st.composite
    def drawn(draw: Callable[[st.SearchStrategy[Any]], Any]) -> T:
        return make(choices(draw))

    return drawn()


def several(make: Callable[[Choices], T], most: int) -> Callable[[Choices], list[T]]:
    """From one to `most` of what `make` makes, for one question to XLA."""
    return lambda c: [make(c) for _ in range(c.integer(1, most))]


def instructions(opcode: str) -> st.SearchStrategy[Case]:
    """Instructions of an opcode, with inputs."""
    return strategy_of(lambda c: GENERATORS[opcode](c, opcode))


def batches(opcode: str, most: int = 24) -> st.SearchStrategy[list[Case]]:
    """Some instructions of an opcode, compiled as one program: compiling takes most of the time."""
    return strategy_of(several(lambda c: GENERATORS[opcode](c, opcode), most))
