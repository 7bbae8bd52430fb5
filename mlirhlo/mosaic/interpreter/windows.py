"""Blocks of a kernel's operands: which part of the array a step sees, and its way there and back."""

# Lambdas that numpy takes have parameters of no stated type.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.mosaic.attributes import integers, lists_of, plain
from mlirhlo.mosaic.interpreter.memory import MemRef, unwritten

if TYPE_CHECKING:
    from xdsl.ir import Attribute

    from mlirhlo.mosaic.interpreter.code import Functions
    from mlirhlo.mosaic.interpreter.core import Core
    from mlirhlo.mosaic.interpreter.registry import Array


@dataclass(frozen=True, slots=True)
class Window:
    """How an operand is cut into blocks: an entry of `window_params`."""

    bounds: tuple[int, ...]
    """Shape of a block."""
    transform: Callable[[Core, tuple[Any, ...]], tuple[Any, ...]]
    """Block numbers, or element offsets, of a step."""
    padding_low: tuple[int, ...] | None = None
    """Elements that the array is thought to have in front; None when the transform counts blocks."""

    def starts(self, core: Core, arguments: tuple[Any, ...]) -> tuple[int, ...]:
        """Where the block of a step begins in the array; may lie outside of it."""
        found = [int(value) for value in self.transform(core, arguments)]
        if self.padding_low is None:
            return tuple(at * size for at, size in zip(found, self.bounds, strict=True))
        return tuple(at - low for at, low in zip(found, self.padding_low, strict=True))


def window_of(entry: Mapping[str, Attribute], functions: Functions) -> Window | None:
    """The window of an entry of `window_params`; None for an operand seen whole."""
    if "transform_indices" not in entry or "window_bounds" not in entry:
        return None
    kind = entry.get("window_kind")
    low = None
    if kind is not None and "element_window" in str(kind):
        bounds = integers(entry["window_bounds"])
        padding = lists_of(kind)
        low = padding[0] if padding and padding[0] else (0,) * len(bounds)
    return Window(
        integers(entry["window_bounds"]), functions[plain(entry["transform_indices"])], low
    )


@dataclass(slots=True, eq=False)
class Block:
    """The block of one operand that a step sees, in its own memory.

    It is fetched when its place changes and, for outputs, written back then and at the end; while it
    stays, so does what the body wrote into it. Elements outside of the array are unwritten memory,
    and dropped on the way back.
    """

    window: Window
    array: Array
    """The whole operand."""
    ref: MemRef
    """What the body is given; its buffer is this block's memory."""
    is_output: bool
    _at: tuple[int, ...] | None = field(default=None)

    def _parts(self, at: tuple[int, ...]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """The indices into the array and into the block that belong together."""
        whole: list[slice] = []
        mine: list[slice] = []
        for start, size, total in zip(at, self.window.bounds, self.array.shape, strict=True):
            low, high = max(start, 0), min(start + size, total)
            high = max(high, low)
            whole.append(slice(low, high))
            mine.append(slice(low - start, high - start))
        return tuple(whole), tuple(mine)

    def begin(self, core: Core, arguments: tuple[Any, ...]) -> None:
        """Makes the block the one of a step."""
        at = self.window.starts(core, arguments)
        if at == self._at:
            return
        self.flush()
        self._at = at
        buffer = self.ref.array.reshape(self.window.bounds)
        buffer[...] = unwritten((), buffer.dtype)
        whole, mine = self._parts(at)
        if all(part.stop > part.start for part in whole):
            buffer[mine] = self.array[whole]

    def flush(self) -> None:
        """Writes an output's block back."""
        if self._at is None or not self.is_output:
            return
        whole, mine = self._parts(self._at)
        if all(part.stop > part.start for part in whole):
            self.array[whole] = np.reshape(self.ref.array, self.window.bounds)[mine]
