"""One core running one kernel: where it is in the grid, its semaphores, its random numbers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.mosaic.interpreter.memory import COUNTER, MemRef

if TYPE_CHECKING:
    from mlirhlo.mosaic.interpreter.registry import Array


def _to_standard_error(text: str) -> None:
    sys.stderr.write(text + "\n")


@dataclass(frozen=True, slots=True)
class Options:
    """How a kernel is run."""

    rounds_matmul_operands: bool = False
    """Whether f32 operands of products without precision `fp32` are rounded to bf16 first, as the
    hardware does; by default they are not, as in the interpreters that people test with."""
    log: Callable[[str], None] = _to_standard_error
    """Where `tpu.log` and traced values go."""
    device: int = 0
    """Logical number of the device."""


@dataclass(eq=False)
class Core:
    """What belongs to the run of one kernel on one core."""

    options: Options
    bounds: tuple[int, ...] = ()
    """Sizes of the grid."""
    step: tuple[int, ...] = ()
    """The grid indices of the step that runs."""
    internal_scratch_in_bytes: int = 0
    seed: tuple[int, ...] = field(default=(0,))
    steps_since_seed: int = 0

    @cached_property
    def barrier(self) -> MemRef:
        """The barrier semaphore."""
        return MemRef(np.zeros((), COUNTER), "semaphore_mem", "tpu.semaphore")

    @cached_property
    def internal_scratch(self) -> Array:
        """The bytes behind `tpu.internal_scratch`."""
        return np.full(self.internal_scratch_in_bytes, 0xA5, np.uint8)

    def set_seed(self, seed: tuple[int, ...]) -> None:
        """Starts the generator again."""
        self.seed, self.steps_since_seed = seed, 0

    def random_bits(self, shape: tuple[int, ...]) -> Any:
        """Bits as i32; the same for the same seed and number of calls since it was set."""
        words = [word & 0xFFFFFFFF for word in self.seed]
        sequence = np.random.SeedSequence([*words, self.steps_since_seed])
        self.steps_since_seed += 1
        bits = np.random.Generator(np.random.Philox(sequence)).integers(
            0, 1 << 32, shape, dtype=np.uint32
        )
        return bits.view(np.int32)
