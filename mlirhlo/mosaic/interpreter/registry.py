"""Who gives each operation of a kernel its meaning, and what a meaning is given.

`@means("arith.addf")` stands over a function of the operation that looks at its attributes once and
returns what runs: a function of the activation and the operand values. Vectors are numpy arrays
(ml_dtypes for the narrow types), scalars numpy scalars, references `MemRef`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from xdsl.ir import Operation, Region

    from mlirhlo.mosaic.interpreter.core import Core

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

Run: TypeAlias = Callable[..., Any]
"""`run(activation, *operands)`: one value, a tuple of them, or None for no result."""

RegionRun: TypeAlias = "Callable[[Activation, tuple[Any, ...]], tuple[Any, ...]]"
"""Runs a region on the values of its entry block's arguments; gives what its terminator yields."""


class Activation(Protocol):
    """One call of a function: what it runs on, and its values."""

    core: Core
    env: list[Any]


class Scope(Protocol):
    """What a meaning may ask of the function that it is prepared in."""

    def region(self, region: Region) -> RegionRun:
        """The prepared region."""
        ...

    def function(self, name: str) -> Callable[[Core, tuple[Any, ...]], tuple[Any, ...]]:
        """Another function of the module, by its symbol name; prepared at its first call."""
        ...


Prepare: TypeAlias = "Callable[[Operation, Scope], Run]"

MEANINGS: dict[str, Prepare] = {}
"""What prepares each operation, by its name."""

F = TypeVar("F", bound=Callable[..., Any])


def means(*names: str) -> Callable[[F], F]:
    """Decorator: gives operations of those names their meaning."""

    def register(function: F) -> F:
        for name in names:
            MEANINGS[name] = function
        return function

    return register
