"""A module as steps on buffers: between HLO and the one function that runs it.

Positions count steps in the order they are written, loops and branches included, so that two buffers
of the arena may share memory when their spans do not meet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from mlirhlo.dialects.hlo.literal import Literal
from mlirhlo.dialects.hlo.shapes import ArrayShape


@dataclass(eq=False, slots=True)
class Buffer:
    """Memory for one array."""

    shape: ArrayShape
    size: int
    """Bytes."""
    parameter: int | None = None
    """Number among the leaves of the parameters."""
    result: int | None = None
    """Number among the leaves of the result."""
    literal: Literal | None = None
    """Of constants."""
    offset: int = 0
    """In the arena, of all others."""
    first: int = -1
    last: int = -1
    """Positions between which it is in use."""

    @property
    def in_arena(self) -> bool:
        """Whether it is temporary."""
        return self.parameter is None and self.result is None and self.literal is None

    def used_at(self, position: int) -> None:
        """Widens its span."""
        if self.first < 0:
            self.first = position
        self.last = max(self.last, position)


Tree: TypeAlias = "Buffer | tuple[Tree, ...]"
"""Buffers of a value: of a tuple those of its elements."""


def leaves(tree: Tree) -> Iterator[Buffer]:
    """Buffers of a value in order."""
    if isinstance(tree, Buffer):
        yield tree
    else:
        for part in tree:
            yield from leaves(part)


@dataclass(slots=True)
class Kernel:
    """Calls a kernel: reads and writes are its arguments in order."""

    name: str
    reads: Sequence[Buffer]
    writes: Sequence[Buffer]


@dataclass(slots=True)
class Copy:
    """Copies bytes."""

    source: Buffer
    target: Buffer


@dataclass(slots=True)
class While:
    """Runs `body` as long as `test`, after `condition`, holds a true."""

    condition: list[Step]
    test: Buffer
    body: list[Step]


@dataclass(slots=True)
class Branch:
    """Runs one of the lists: by a pred the first when true, else the one of that number.

    A number out of range takes the last one.
    """

    selector: Buffer
    branches: list[list[Step]] = field(default_factory=list["list[Step]"])


Step: TypeAlias = Kernel | Copy | While | Branch
