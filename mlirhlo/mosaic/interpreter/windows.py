"""Blocks of a kernel's operands: which part of the array a step sees, and its way there and back."""

# Lambdas that numpy takes have parameters of no stated type.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import MemRefType

from mlirhlo.diagnostics import Diagnostic, HloError, Place, error
from mlirhlo.mosaic.attributes import case_of, integers, lists_of, plain
from mlirhlo.mosaic.interpreter.memory import MemRef, unwritten
from mlirhlo.mosaic.interpreter.numbers import width_of
from mlirhlo.mosaic.interpreter.problems import place_of

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation

    from mlirhlo.mosaic.interpreter.clocks import Memory
    from mlirhlo.mosaic.interpreter.code import Functions
    from mlirhlo.mosaic.interpreter.core import Core
    from mlirhlo.mosaic.interpreter.registry import Array

_LOOKED_AT = 256
"""Steps of a grid whose blocks are looked at before it runs."""
_REMEMBERED = 4096
"""Blocks of a window whose places are kept."""


@dataclass(frozen=True, slots=True)
class Window:
    """How an operand is cut into blocks: an entry of `window_params`."""

    bounds: tuple[int, ...]
    """Shape of a block."""
    transform: Callable[[Core, tuple[Any, ...]], tuple[Any, ...]]
    """Block numbers, or element offsets, of a step."""
    padding_low: tuple[int, ...] | None = None
    """Elements that the array is thought to have in front; None when the transform counts blocks."""
    may_return: bool = False
    """Whether the grid may come back to an earlier block of an output."""
    place: Operation | None = None
    """The function that gives the block numbers."""
    buffers: int = 2
    """One: a block is fetched when it is needed, not ahead."""
    is_ahead: bool = False
    """Whether memory, as it is one step before, chooses the block."""
    reads: tuple[int, ...] | None = None
    """Arguments that alone decide the block; None where memory does too, or where the time counts."""
    _known: dict[tuple[Any, ...], tuple[int, ...]] = field(
        default_factory=dict["tuple[Any, ...]", "tuple[int, ...]"]
    )

    def starts(self, core: Core, arguments: tuple[Any, ...]) -> tuple[int, ...]:
        """Where the block of a step begins in the array; may lie outside of it."""
        if self.reads is None:
            return self._starts(core, arguments)
        key = tuple([arguments[at] for at in self.reads])
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[key] = self._starts(core, arguments)
        return known

    def _starts(self, core: Core, arguments: tuple[Any, ...]) -> tuple[int, ...]:
        found = [int(value) for value in self.transform(core, arguments)]
        if self.padding_low is None:
            return tuple(at * size for at, size in zip(found, self.bounds, strict=True))
        return tuple(at - low for at, low in zip(found, self.padding_low, strict=True))

    def check(self, at: Sequence[int], shape: Sequence[int], name: str) -> None:
        """Raises `HloError` HLO0732 for a block that lies outside of its array."""
        parts = zip(at, self.bounds, shape, strict=True)
        if any(start + size <= 0 or start >= total for start, size, total in parts):
            raise error(
                "HLO0732",
                f"the block of {name} at {list(at)} lies outside of its array of shape {list(shape)}",
                self.written_at(),
                help="make the grid smaller, or bound the index map",
            )

    def check_all(self, core: Core, shape: Sequence[int], name: str) -> None:
        """As `check`, of all steps where the index map says their blocks alone; of a large grid, of its corners."""
        if self.reads is None or self.place is None or 0 in core.bounds:
            return
        if any(core.bounds[at] < 0 for at in self.reads):
            return
        count = len(self.place.regions[0].blocks[0].args)
        used = [core.bounds[at] for at in self.reads]
        steps = [range(size) if prod(used) <= _LOOKED_AT else {0, size - 1} for size in used]
        for found in product(*steps):
            numbers = dict(zip(self.reads, found, strict=True))
            arguments = tuple([np.int32(numbers.get(at, 0)) for at in range(count)])
            self.check(self._starts(core, arguments), shape, name)

    def written_at(self) -> Place | None:
        """Where the numbers of the block stand."""
        return None if self.place is None else place_of(_last(self.place))


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
    name = plain(entry["transform_indices"])
    may_return = "any" in case_of(entry.get("revisit_mode"))
    transform = functions[name]
    buffers = 1 if "synchronous" in case_of(entry.get("pipeline_mode")) else 2
    bounds, place = integers(entry["window_bounds"]), functions.ops.get(name)
    reads = None if place is None else _reads(place)
    is_ahead = buffers > 1 and reads is None
    reads = reads if functions.chip is None else None
    return Window(bounds, transform, low, may_return, place, buffers, is_ahead, reads)


def _reads(function: Operation) -> tuple[int, ...] | None:
    """Which arguments an index map reads; None when some of them are memory."""
    arguments = function.regions[0].blocks[0].args
    used = tuple(at for at, one in enumerate(arguments) if one.uses.get_length())
    return None if any(isinstance(arguments[at].type, MemRefType) for at in used) else used


def _last(function: Operation) -> Operation:
    """What a function returns, where the numbers of a block stand."""
    return function.regions[0].blocks[0].last_op or function


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
    name: str
    is_output: bool
    may_return: bool = False
    home: Memory | None = None
    """The operand's memory, where other cores have to do with it."""
    rivals: tuple[Block, ...] = ()
    """Blocks of results that are the same array."""
    _at: tuple[int, ...] | None = field(default=None)
    _chosen: tuple[int, ...] | None = field(default=None)
    """Where the block of the next step begins, where that is known already."""
    _left: set[tuple[int, ...]] = field(default_factory=set[tuple[int, ...]])
    _written: dict[tuple[int, ...], Any] = field(default_factory=dict[tuple[int, ...], Any])
    """What was written of blocks that the grid may return to."""

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

    @property
    def at(self) -> tuple[int, ...] | None:
        """Where the block begins; None before the first step."""
        return self._at

    def bytes_at(self, at: tuple[int, ...]) -> int:
        """What a copy of the block there moves: what of it lies in the array."""
        count = 1
        for part in self._parts(at)[0]:
            count *= part.stop - part.start
        return count * width_of(self.array.dtype) // 8

    def choose(self, core: Core, arguments: tuple[Any, ...]) -> tuple[int, ...]:
        """Where the block of the next step begins, chosen before the body of this one runs."""
        self._chosen = self.window.starts(core, arguments)
        return self._chosen

    def begin(self, core: Core, arguments: tuple[Any, ...]) -> None:
        """Makes the block the one of a step."""
        at, self._chosen = self._chosen or self.window.starts(core, arguments), None
        if at == self._at:
            return
        self.flush(core)
        if core.checks is not None:
            self._check(at)
            if core.options.detect_races:
                self._check_rivals(at)
        self._at = at
        buffer = self.ref.array.reshape(self.window.bounds)
        whole, mine = self._parts(at)
        is_inside = all(part.stop > part.start for part in whole)
        if self.is_output or buffer[mine].size != buffer.size:
            fill = 0 if core.options.starts_with_zeros else unwritten((), buffer.dtype)
            buffer[...] = fill
        if is_inside:
            if not self.is_output:
                self._tell(core, whole, is_write=False)
            buffer[mine] = self.array[whole]
        memory = self.ref.memory
        if memory is None or core.checks is None:
            return
        if not self.is_output:
            # Elements outside of the array are undefined, but there.
            memory.written = None
        elif self.ref.written is not None:
            memory.forget_writes(self.ref.written)
            if at in self._written:
                self.ref.written[...] = self._written[at]

    def _check(self, at: tuple[int, ...]) -> None:
        """Raises `HloError` HLO0732 for a block outside of its array, HLO0734 for an output's block
        that was left before.
        """
        self.window.check(at, self.array.shape, self.name)
        if not self.is_output or self.may_return:
            return
        if at in self._left:
            raise error(
                "HLO0734",
                f"the grid returns to the block of {self.name} at {list(at)}, which was written back "
                "before: it is not read again, what it held is lost",
                self.window.written_at(),
                help="let the dimension that revisits the block be the last one of the grid",
            )
        if self._at is not None:
            self._left.add(self._at)

    def _check_rivals(self, at: tuple[int, ...]) -> None:
        """Raises `HloError` HLO0730 where a block is fetched from what the step before writes: the fetch begins
        before that step does.
        """
        whole = self._parts(at)[0]
        for other in self.rivals:
            if other.at is None:
                continue
            theirs = other._parts(other.at)[0]  # of the same class
            if all(
                max(one.start, two.start) < min(one.stop, two.stop)
                for one, two in zip(whole, theirs, strict=True)
            ):
                raise HloError(
                    Diagnostic(
                        "HLO0730",
                        f"a race in {self.name}, which is one array with {other.name}: the fetch of its block at "
                        f"{list(at)} and the way back of the block at {list(other.at)}, which the step before "
                        "writes, are not ordered",
                        self.window.written_at(),
                        [
                            ("the block that is written", other.window.written_at())
                        ],  # of the same class
                        help="read in each step the block that it writes, or leave out the alias",
                    )
                )

    def _tell(self, core: Core, whole: tuple[slice, ...], *, is_write: bool) -> None:
        """Raises `HloError` HLO0730 where another core has to do with the same elements."""
        place = self.window.place
        if self.home is not None and core.checks is not None and place is not None:
            core.checks.block(self.home, self.array[whole], _last(place), is_write=is_write)

    def flush(self, core: Core) -> None:
        """Writes an output's block back."""
        if self._at is None or not self.is_output:
            return
        if self.may_return and self.ref.written is not None:
            self._written[self._at] = self.ref.written.copy()
        whole, mine = self._parts(self._at)
        if all(part.stop > part.start for part in whole):
            self._tell(core, whole, is_write=True)
            self.array[whole] = np.reshape(self.ref.array, self.window.bounds)[mine]
