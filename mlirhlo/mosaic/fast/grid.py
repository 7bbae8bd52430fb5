"""The grid of a kernel as loops around its body.

The leading `parallel` dimensions are one loop whose rounds may run at the same time; the others are loops
in it, one in the other; what the innermost does in its first or last round alone stands around it. A window's
block is taken out of its array in the outermost loop where its place is known, what is stored to a block goes
back at the end of that loop's round.
"""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from mlirhlo.mosaic.attributes import (
    attribute_of,
    dictionaries_of,
    integers,
    lists_of,
    plain,
)
from mlirhlo.mosaic.fast.control import Program
from mlirhlo.mosaic.fast.edges import Edges, edges_of, needed
from mlirhlo.mosaic.fast.memories import View
from mlirhlo.mosaic.fast.writer import Val, Writer, has_no_program
from mlirhlo.mosaic.interpreter.ahead import changed, is_ahead, stores

if TYPE_CHECKING:
    from mlirhlo.mosaic.interpreter import Kernel


@dataclass(slots=True)
class Window:
    """Blocks of one array."""

    parameter: SSAValue
    """The body's reference."""
    array: View
    """All of it, with what blocks reach beyond it."""
    bounds: tuple[int, ...]
    index_map: Block
    counts_elements: bool
    low: tuple[int, ...]
    """How far blocks reach out in front of the array."""
    is_result: bool
    is_stored: bool
    """Whether the body changes blocks."""
    is_fresh: bool = False
    """Whether it is a result with an array of its own."""
    reads_changes: bool = False
    """Whether its place depends on scalars that the body stores to."""
    is_ahead: bool = False
    """Whether its place is chosen before the body of the step before runs, as double buffering does."""

    def comes_back(self, outside: Collection[int]) -> bool:
        """Whether a block may be visited again when the loops of some dimensions of the grid, outside of
        which it is not known, have gone on.
        """
        given = _arguments(self.index_map)
        return not all(dim in given for dim in outside)

    def is_read_before(self, result: Window, grid: Sequence[int]) -> bool:
        """Whether each of these blocks is read once, before the result's same one is stored."""
        used = self.dimensions(len(grid))
        outside = [dim for dim in range(max(used, default=-1) + 1) if grid[dim] != 1]
        return (
            self.bounds == result.bounds
            and self.low == result.low
            and not self.counts_elements
            and not self.comes_back(outside)
            and str(self.index_map) == str(result.index_map)
        )

    def dimensions(self, grid: int) -> frozenset[int]:
        """Dimensions of the grid that the block's place depends on."""
        arguments = self.index_map.args[:grid]
        return frozenset(dim for dim, one in enumerate(arguments) if one.uses.get_length())


@dataclass(slots=True)
class _Loop:
    """Dimensions of the grid that one loop runs through."""

    dimensions: tuple[int, ...]
    is_parallel: bool


class Grid:
    """Writes all steps of a kernel."""

    def __init__(
        self, p: Program, kernel: Kernel, windows: Sequence[Window], scratch: Sequence[SSAValue]
    ) -> None:
        self.p = p
        self.bounds = kernel.bounds
        self.windows = windows
        self.scratch = scratch
        self.block = kernel.op.regions[0].blocks[0]
        count = len(kernel.bounds)
        self.prefetched = self.block.args[count : count + kernel.prefetches]
        self.loops = self._loops(kernel.op)
        self.indices: dict[int, Val] = {}
        self.edges = Edges((), ())
        """Of the innermost loop."""
        self.chosen: list[tuple[Window, View]] = []
        """Windows whose place is chosen a step ahead, and the numbers of their next block."""

    def _loops(self, op: Operation) -> list[_Loop]:
        said = attribute_of(op, "dimension_semantics")
        words = str(said).split(",") if said is not None else []
        dims = [dim for dim, bound in enumerate(self.bounds) if bound != 1]
        in_turn = self.p.random is not None or self.p.counts_semaphores
        if in_turn or any(window.reads_changes for window in self.windows):
            words = []  # Bits are drawn, semaphores counted, scalars changed by one round after another.
        lead: list[int] = []
        for dim in dims:
            if dim >= len(words) or "parallel" not in words[dim] or self.bounds[dim] < 0:
                break
            # Each block of a result belongs to one round.
            results = [w for w in self.windows if w.is_result]
            if not all(dim in w.dimensions(len(self.bounds)) for w in results):
                break
            lead.append(dim)
        loops = [_Loop(tuple(lead), True)] if lead else []
        return loops + [_Loop((dim,), False) for dim in dims[len(lead) :]]

    def write(self) -> None:
        """The loops, with the body in the innermost one."""
        for dim, bound in enumerate(self.bounds):
            if bound == 1:
                self.indices[dim] = self.p.w.constant(0, "i32")
        if not prod(self.bounds):
            return
        if not self.loops or not self.loops[0].is_parallel:
            self._own_scratch()
        self._choose_first()
        self._level(0, [])

    def _own_scratch(self) -> None:
        for argument in self.scratch:
            self.p.views[argument] = self.p.empty(argument.type)

    def _level(self, depth: int, placed: Sequence[Window]) -> None:
        """The loops from `depth` on; blocks of the windows in `placed` are there."""
        p = self.p
        known = [w for w in self.windows if w not in placed and self._is_known(w)]
        is_last = depth == len(self.loops)
        stored: list[tuple[View, View]] = []
        for window in known:
            place = self._place(window)
            kept = (True,) * len(place)
            part = View(window.array.memory, tuple(place), window.bounds, kept)
            p.views[window.parameter] = part
            rounds = prod(max(self.bounds[dim], 1) for dim in self.indices)
            p.tell_reads(part.memory, rounds * prod(part.sizes))
            if window.is_stored or not is_last:
                # Loops and branches carry the block alone, not the array around it.
                outside = [dim for dim in self.indices if self.bounds[dim] != 1]
                if window.is_fresh and not window.comes_back(outside):
                    held = p.w.constant(0, p.memories[part.memory].element, part.sizes)
                else:
                    held = p.read(part)
                own = p.memory(held, is_constant=not window.is_stored, reads=2)
                p.views[window.parameter] = own
                if window.is_result:
                    stored.append((part, own))
        if is_last:
            self._choose_next()
            self._tell_indices()
            p.block(self.block, self.edges.all)
        else:
            self._loop(depth, [*placed, *known])
        for part, own in stored:
            p.write(part, p.memories[own.memory])

    def _loop(self, depth: int, placed: Sequence[Window]) -> None:
        loop = self.loops[depth]
        sizes = [self.bounds[dim] for dim in loop.dimensions]

        def round_(number: Val) -> None:
            found = _indices(self.p.w, number, sizes)
            self.indices.update(zip(loop.dimensions, found, strict=True))
            if loop.is_parallel:
                self._own_scratch()
            self._level(depth + 1, placed)

        is_innermost = depth == len(self.loops) - 1 and sizes[0] >= 0
        if is_innermost and not loop.is_parallel and not self.chosen:
            self.edges = self._edges(loop.dimensions[0], placed)
            self._at_edge(loop.dimensions[0], 0, self.edges.first)
        # A bound that is an operand has a loop of its own.
        rounds = self.p.bounds[loop.dimensions[0]] if sizes[0] < 0 else prod(sizes)
        self.p.count(rounds, round_, is_parallel=loop.is_parallel)
        if is_innermost:
            self._at_edge(loop.dimensions[0], sizes[0] - 1, self.edges.last)
        for dim in loop.dimensions:
            del self.indices[dim]

    def _edges(self, dim: int, placed: Sequence[Window]) -> Edges:
        """Of the loop through a dimension of the grid."""
        usable = {*self.block.args[: len(self.bounds)], *self.scratch, *self.prefetched}
        usable.update(window.parameter for window in placed)
        return edges_of(self.block, self.block.args[dim], self.bounds[dim], usable)

    def _at_edge(self, dim: int, number: int, ops: Sequence[scf.IfOp]) -> None:
        """What one round of a dimension's loop does alone."""
        if not ops:
            return
        self.indices[dim] = self.p.w.constant(number, "i32")
        self._tell_indices()
        for op in needed(ops, self.block):
            self.p.one(op)
        for op in ops:
            self.p.block(op.true_region.block)

    def _tell_indices(self) -> None:
        for dim, argument in enumerate(self.block.args[: len(self.bounds)]):
            self.p.values[argument] = self.indices[dim]

    def _is_known(self, window: Window) -> bool:
        if window.reads_changes:
            return len(self.indices) == len(self.bounds)
        return window.dimensions(len(self.bounds)) <= set(self.indices)

    def _numbers(self, window: Window, indices: Mapping[int, Val]) -> list[Val]:
        """What an index map gives for a step."""
        p, block = self.p, window.index_map
        for dim, argument in enumerate(block.args[: len(self.bounds)]):
            if dim in indices:
                p.values[argument] = indices[dim]
        for argument, ref in zip(block.args[len(self.bounds) :], self.prefetched, strict=True):
            p.views[argument] = p.views[ref]
        return p.block(block)

    def _choose_first(self) -> None:
        """Chooses the blocks of the first step."""
        zero = self.p.w.constant(0, "i32")
        first = dict.fromkeys(range(len(self.bounds)), zero)
        for window in self.windows:
            if window.is_ahead:
                numbers = self.p.memory(self.p.w.constant(0, "i32", (len(window.bounds),)))
                self.chosen.append((window, numbers))
                self._choose(window, numbers, first)

    def _choose(self, window: Window, numbers: View, indices: Mapping[int, Val]) -> None:
        p = self.p
        for at, number in enumerate(self._numbers(window, indices)):
            element = View(numbers.memory, (p.w.constant(at, "i32"),), (1,), (True,))
            p.write(element, p.w.reshape(number, (1,)))

    def _choose_next(self) -> None:
        """Chooses the blocks of the step after this one, which the last one takes for the first."""
        if not self.chosen:
            return
        w, following, zero = self.p.w, dict(self.indices), self.p.w.constant(0, "i32")
        step = w.constant(1, "i32")
        for dim in reversed(range(len(self.bounds))):
            after = w.like("add", self.indices[dim], step)
            is_over = w.compare("GE", after, self.p.whole(self.p.bounds[dim]))
            following[dim] = w.select(is_over, zero, after)
            step = w.select(is_over, w.constant(1, "i32"), zero)
        for window, numbers in self.chosen:
            self._choose(window, numbers, following)

    def _place(self, window: Window) -> list[Val]:
        """Where a window's block begins."""
        p = self.p
        ahead = next((numbers for one, numbers in self.chosen if one is window), None)
        if ahead is None:
            found = self._numbers(window, self.indices)
        else:
            found = [
                p.w.reshape(
                    p.read(View(ahead.memory, (p.w.constant(at, "i32"),), (1,), (True,))), ()
                )
                for at in range(len(window.bounds))
            ]
        if window.counts_elements:
            return found
        starts: list[Val] = []
        for number, size in zip(found, window.bounds, strict=True):
            if number.known is not None:
                starts.append(p.w.constant(number.known * size, "i32"))
            elif size == 1:
                starts.append(number)
            else:
                start = p.w.like("multiply", number, p.w.constant(size, "i32"))
                p.w.numbers[start.name, size] = number
                starts.append(start)
        return starts


def windows_of(
    p: Program,
    kernel: Kernel,
    functions: Mapping[str, Operation],
    arrays: Sequence[Val],
    operands: int,
    aliased: Collection[int],
) -> list[Window | None]:
    """The windows of all arrays, operands first; None for those that the body has whole. `aliased` are
    the numbers of results that begin as operands.
    """
    block = kernel.op.regions[0].blocks[0]
    parameters = block.args[len(kernel.bounds) :]
    entries = dictionaries_of(kernel.op, "window_params") or ()
    stored = stores(block)
    found: list[Window | None] = []
    for number, (value, parameter) in enumerate(zip(arrays, parameters, strict=False)):
        at = number - kernel.prefetches
        entry: Mapping[str, Any] = entries[at] if 0 <= at < len(entries) else {}
        if "transform_indices" not in entry:
            found.append(None)
            continue
        if 0 in value.shape and all(kernel.bounds):
            raise has_no_program(kernel.op, f"with blocks of an array of shape {list(value.shape)}")
        kernel.check_blocks(number, value.shape)
        index_map = functions[plain(entry["transform_indices"])].regions[0].blocks[0]
        is_stored = number >= operands or parameter in stored
        is_changed = changed(index_map, parameters, stored, len(kernel.bounds)) is not None
        bounds = integers(entry["window_bounds"])
        is_fresh = number >= operands and number - operands not in aliased
        if is_fresh and _fills(kernel.bounds, index_map, entry, value.shape):
            shape = [-(-n // b) * b for n, b in zip(value.shape, bounds, strict=True)]
            array, low = p.memory(p.w.room(shape, value.element)), (0,) * len(shape)
        else:
            array, low = _padded(p, value, entry, is_constant=not is_stored)
        found.append(
            Window(
                parameter,
                array,
                bounds,
                index_map,
                "window_kind" in entry,
                low,
                number >= operands,
                is_stored,
                is_fresh,
                is_changed,
                is_changed and is_ahead(entry),
            )
        )
    return found


def _arguments(index_map: Block) -> list[int | None]:
    """For each dimension of the array the dimension of the grid whose index its block's number is."""
    last = index_map.last_op
    given = list(last.operands) if last is not None else []
    return [value.index if isinstance(value, BlockArgument) else None for value in given]


def _fills(
    grid: Sequence[int], index_map: Block, entry: Mapping[str, Any], shape: Sequence[int]
) -> bool:
    """Whether the blocks of all steps are the whole array: each of its dimensions is cut along one of the
    grid, or lies in one block.
    """
    if "window_kind" in entry or not prod(grid):
        return False
    dims = _arguments(index_map)
    used = [dim for dim in dims if dim is not None]
    last = index_map.last_op
    if len(used) != len(set(used)) or any(dim >= len(grid) for dim in used) or last is None:
        return False
    bounds = integers(entry["window_bounds"])
    for dim, number, size, block in zip(dims, last.operands, shape, bounds, strict=True):
        if dim is None:
            value = (
                attribute_of(number.owner, "value") if isinstance(number.owner, Operation) else 1
            )
            if size > block or not isinstance(value, IntegerAttr) or value.value.data:
                return False
        elif grid[dim] * block < size:
            return False
    return True


def _padded(
    p: Program, value: Val, entry: Mapping[str, Any], *, is_constant: bool
) -> tuple[View, tuple[int, ...]]:
    """An array with what blocks reach beyond it, and how much of that is in front."""
    bounds = integers(entry["window_bounds"])
    kind = entry.get("window_kind")
    low: tuple[int, ...] = (0,) * len(bounds)
    if kind is not None:
        low, high = lists_of(kind)[:2]
    else:
        high = tuple(-size % block for size, block in zip(value.shape, bounds, strict=True))
    if any(low) or any(high):
        shape = [n + a + b for n, a, b in zip(value.shape, low, high, strict=True)]
        value = p.w.op(
            "pad",
            [value, p.w.constant(0, value.element)],
            shape,
            value.element,
            f"low = {list(low)}, high = {list(high)}, interior = {[0] * len(shape)}",
        )
    return p.memory(value, is_constant=is_constant), low


def _indices(w: Writer, step: Val, sizes: Sequence[int]) -> list[Val]:
    """The indices of a loop through several dimensions at a step, the last one fastest."""
    found: list[Val] = []
    for number, size in enumerate(reversed(sizes)):
        if number == len(sizes) - 1:
            found.append(step)
            continue
        whole = w.constant(size, "i32")
        found.append(w.like("remainder", step, whole))
        step = w.like("divide", step, whole)
    return found[::-1]
