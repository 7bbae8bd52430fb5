"""The function of every op of structured kernels, `@computes` its class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from xdsl.ir import Operation

from mlirhlo.interp.registry import Array
from mlirhlo.interp.structured.bodies import Bodies

Meaning: TypeAlias = "Callable[[Any, Sequence[Array], Bodies], Sequence[Array]]"

MEANINGS: dict[type[Operation], Meaning] = {}
"""By class; the modules of this package fill it when they are imported."""


def computes(cls: type[Operation]) -> Callable[[Meaning], Meaning]:
    """Decorator: the function gives the results of an op of a class, of its operands' arrays."""

    def register(function: Meaning) -> Meaning:
        MEANINGS[cls] = function
        return function

    return register
