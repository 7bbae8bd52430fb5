"""The steps of a kernel's grid on one core: which ones it takes, in which order, and the blocks of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import tee, zip_longest
from math import gcd
from random import Random
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from mlirhlo.mosaic.interpreter.code import Function
from mlirhlo.mosaic.interpreter.core import Core
from mlirhlo.mosaic.interpreter.windows import Block
from mlirhlo.mosaic.timeline.pipeline import Pipeline

if TYPE_CHECKING:
    from mlirhlo.mosaic.interpreter.memory import MemRef
    from mlirhlo.mosaic.timeline.clock import CoreTime

CORES = "core_parallel"


def cores_of(bounds: Sequence[int], semantics: Sequence[str], stated: int) -> int:
    """How many cores of a device run a grid: one for each index of its `core_parallel` dimension,
    else as many as are stated.
    """
    of_cores = [
        bound for bound, word in zip(bounds, semantics, strict=False) if word == CORES and bound > 0
    ]
    return max(1, stated, *of_cores)


def share_of(
    bounds: Sequence[int], semantics: Sequence[str], core: int, cores: int
) -> list[range] | None:
    """The indices of each dimension that a core takes; None when it takes no step.

    Of a `core_parallel` dimension that of its number; else its part, in one piece, of the first
    `parallel` dimension that has one for each core, or of the largest. Without such a dimension the
    first core takes all steps.
    """
    whole = [range(bound) for bound in bounds]
    words = list(semantics[: len(bounds)])
    if CORES in words:
        dim = words.index(CORES)
        if core >= bounds[dim]:
            return None
        whole[dim] = range(core, core + 1)
        return whole
    split = [dim for dim, word in enumerate(words) if word == "parallel" and bounds[dim] > 1]
    if cores == 1 or not split:
        return whole if core == 0 else None
    dim = next(
        (dim for dim in split if bounds[dim] >= cores), max(split, key=lambda one: bounds[one])
    )
    size = bounds[dim]
    whole[dim] = range(core * size // cores, (core + 1) * size // cores)
    return whole if len(whole[dim]) else None


@dataclass(slots=True, eq=False)
class Launch:
    """A kernel with its memory on one core, ready to run."""

    core: Core
    body: Function
    refs: list[Any]
    blocks: list[Block]
    prefetches: int
    semantics: tuple[str, ...]
    scratch: Sequence[MemRef]
    """Memory of the call's own, among the references."""

    def steps(self) -> None:
        """Every step that is this core's, the last dimension fastest; parallel ones in the seed's order."""
        core = self.core
        if core.time is not None:
            self._timed_steps(core.time)
            return
        scalars = tuple(self.refs[: self.prefetches])
        # Double buffering chooses blocks a step ahead, which shows where the body changes what they depend on.
        ahead = [block for block in self.blocks if block.window.is_ahead]
        for step, after in self._grid():
            self._turn(core.step, step)
            core.step = step
            core.poison.clear()
            indices = tuple(np.int32(at) for at in step)
            for block in self.blocks:
                block.begin(core, (*indices, *scalars))
            if after is not None:
                for block in ahead:
                    block.choose(core, (*map(np.int32, after), *scalars))
            self.body(core, (*indices, *self.refs))
            if core.options.grid_point_recorder is not None:
                core.options.grid_point_recorder(step, core.number)
        for block in self.blocks:
            block.flush(core)

    def _turn(self, before: tuple[int, ...], step: tuple[int, ...]) -> None:
        """Another step of the parallel dimensions knows nothing of scratch: it may be the first of a core."""
        words = self.semantics
        count = next((at for at, word in enumerate(words) if word == "arbitrary"), len(words))
        if self.core.checks is None or not before or before[:count] == step[:count]:
            return
        for ref in self.scratch:
            memory = ref.memory
            if memory is not None and ref.written is not None:
                memory.forget_writes(ref.written)
                memory.since = " in this step of the parallel dimensions"

    def _timed_steps(self, time: CoreTime) -> None:
        """The same with the copies of the compiler's pipeline: results of the step before go back,
        blocks of this one are waited for, those of the next one are fetched.
        """
        core, pipeline = self.core, Pipeline(time, self.blocks)
        scalars = tuple(self.refs[: self.prefetches])
        for step, after in self._grid():
            core.step = time.step = step
            indices = tuple(map(np.int32, step))
            pipeline.begin(core, (*indices, *scalars))
            if after is not None:
                pipeline.fetch(core, (*map(np.int32, after), *scalars))
            self.body(core, (*indices, *self.refs))
        pipeline.finish(core)

    def _grid(self) -> Iterator[tuple[tuple[int, ...], tuple[int, ...] | None]]:
        """The steps, each with the one that follows, if any."""
        core = self.core
        cores = 1 if core.world is None else core.world.cores
        share = share_of(core.bounds, self.semantics, core.number, cores)
        if share is None:
            return iter(())
        orders: list[Sequence[int]] = list(share)
        seed = core.options.random_seed
        if core.options.checks and seed:
            for dim, word in enumerate(self.semantics):
                if word == "arbitrary":
                    break
                orders[dim] = _Shuffled.of(orders[dim], Random(seed + dim))
        grid, following = tee(_product(orders))
        next(following, None)
        return zip_longest(grid, following)


@dataclass(frozen=True, slots=True)
class _Shuffled(Sequence[int]):
    """Indices in another order, none of which is kept: a grid may have billions of steps."""

    indices: Sequence[int]
    first: int
    stride: int
    """Without a common divisor with the count, so that each index comes once."""

    @classmethod
    def of(cls, indices: Sequence[int], random: Random) -> _Shuffled:
        """An order that `random` chooses."""
        count = max(len(indices), 1)
        stride = random.randrange(count) or 1
        while gcd(stride, count) > 1:
            stride = random.randrange(count) or 1
        return cls(indices, random.randrange(count), stride)

    def __len__(self) -> int:
        return len(self.indices)

    @overload
    def __getitem__(self, at: int) -> int: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[int]: ...
    def __getitem__(self, at: int | slice) -> int | Sequence[int]:
        places = range(len(self))[at]
        if isinstance(places, range):
            return [self[place] for place in places]
        return self.indices[(self.first + places * self.stride) % len(self)]


def _product(orders: Sequence[Sequence[int]]) -> Iterator[tuple[int, ...]]:
    """`itertools.product` that keeps ranges as they are: a grid may have billions of steps."""
    if not orders:
        yield ()
        return
    *outer, last = orders
    for before in _product(outer):
        for index in last:
            yield (*before, index)
