"""One core running one kernel: where it is in the grid, its semaphores, its random numbers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.diagnostics import error
from mlirhlo.mosaic.interpreter.clocks import Memory
from mlirhlo.mosaic.interpreter.memory import COUNTER, MemRef, allocate

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation, SSAValue

    from mlirhlo.mosaic.interpreter.checks import Checks
    from mlirhlo.mosaic.interpreter.ops.tpu_mxu import Unit
    from mlirhlo.mosaic.interpreter.poison import Poison
    from mlirhlo.mosaic.interpreter.registry import Array
    from mlirhlo.mosaic.interpreter.world import World
    from mlirhlo.mosaic.timeline import Timeline
    from mlirhlo.mosaic.timeline.clock import CoreTime


_ROWS, _LANES = 8, 128
"""Of a register."""


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
    """Logical number of the device; of a run on several, of the first."""
    checks: bool = False
    """Whether every access is held against what is written and under way: memory nobody wrote, races,
    copies and signals that nobody waits for, outputs that are returned to, VMEM that does not suffice."""
    dma_execution_mode: str = "on_wait"
    """When bytes move: `on_wait`, as late as can be; `eager`, when the copy is started; `random`."""
    random_seed: int = 0
    """Of the order of devices, of parallel steps, and of `random` copies."""
    target: str = "v5e"
    """The generation whose VMEM the kernel has to fit into, where there are checks."""
    vmem_limit_bytes: int | None = None
    """What the call allows a kernel of that VMEM; None for the compiler's own limit."""
    num_cores_or_threads: int = 1
    """Cores of each device: they share its HBM, and the first `parallel` dimension of the grid is split
    among them. A `core_parallel` dimension has a core for each of its indices, whatever this says."""
    timeline: Timeline | None = None
    """Collects what happens when, in modelled cycles; None for a run that does not count them."""
    detect_races: bool = True
    """Whether the checks look for races."""
    uninitialized_memory: str = "nan"
    """What memory holds that nobody wrote: `nan`, NaN and the least integer, which no result may come of
    where there are checks; `zero`, zeros to be used."""
    grid_point_recorder: Callable[[tuple[int, ...], int], None] | None = None
    """Is told of every step of the grid, and of the core that takes it."""

    @property
    def starts_with_zeros(self) -> bool:
        """Whether memory that nobody wrote may be read."""
        return self.uninitialized_memory == "zero"


@dataclass(frozen=True, slots=True)
class InterpretParams(Options):
    """How a kernel is simulated: `Options`, with the checks on, and what Pallas' has beside.

    Raises `HloError` HLO0726 for what the simulator does not do.
    """

    checks: bool = True
    out_of_bounds_reads: str = "raise"
    """`raise`: an access that leaves its memory is an error."""
    skip_floating_point_ops: bool = False
    vector_clock_size: int | None = None
    """Of no effect: clocks are as long as they have to be."""
    logging_mode: Any = None
    """Of no effect: `mosaic-run` and timelines show what happens."""
    allow_hbm_allocation_in_run_scoped: bool = True
    """Of no effect: it is allowed."""
    buffer_bounds: str = "logical"
    """`logical`: what pads a tile is out of bounds."""

    def __post_init__(self) -> None:
        for name, known in _KNOWN.items():
            if (given := getattr(self, name)) not in known:
                raise error(
                    "HLO0726",
                    f"the simulator has no {name}={given!r}",
                    help=f"one of {', '.join(map(repr, known))}",
                )


_KNOWN: Mapping[str, tuple[Any, ...]] = {
    "dma_execution_mode": ("on_wait", "eager", "random"),
    "uninitialized_memory": ("nan", "zero"),
    "out_of_bounds_reads": ("raise",),
    "skip_floating_point_ops": (False,),
    "buffer_bounds": ("logical",),
}
"""By option, what it can be."""


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
    agent: int = 0
    """Its number among all cores that run, those of a device together."""
    world: World | None = None
    """All devices of the run."""
    checks: Checks | None = None
    time: CoreTime | None = None
    """Where modelled cycles are counted."""
    clock: dict[int, int] = field(default_factory=dict[int, int])
    allocations: int = 0
    """How many there were: names those of one device to the others."""
    poison: dict[SSAValue, Poison] = field(default_factory=dict["SSAValue", "Poison"])
    """Values with elements that nobody wrote."""
    units: dict[int, Unit] = field(default_factory=dict[int, "Unit"])
    """Matrix units that the kernel feeds by hand, by their numbers."""

    @property
    def device(self) -> int:
        """The device it belongs to, counted from the first one that runs."""
        return self.agent if self.world is None else self.agent // self.world.cores

    @property
    def number(self) -> int:
        """Its number on its device."""
        return 0 if self.world is None else self.agent % self.world.cores

    @property
    def has_peers(self) -> bool:
        """Whether other cores can reach this one's memories."""
        return self.world is not None and self.world.count > 1

    def tick(self) -> None:
        """What was done is told to others; what follows is not."""
        self.clock[self.agent] += 1

    def allocated(
        self,
        type_: Attribute,
        op: Operation | None = None,
        name: str = "",
        key: Any = None,
        sizes: Sequence[int] = (),
    ) -> MemRef:
        """New memory of a memref type, tracked."""
        ref = allocate(type_, sizes)
        if self.options.starts_with_zeros:
            ref.array[...] = 0
        return self.tracked(ref, op, name, key)

    def tracked(self, ref: MemRef, op: Operation | None, name: str = "", key: Any = None) -> MemRef:
        """A new allocation, as the checks and the other devices see it."""
        if self.checks is None and not self.has_peers:
            return ref
        if key is None:
            key = self.allocations
            self.allocations += 1
        memory = Memory(name or "memory of its own", ref.array, self.agent, key, op)
        if op is not None and op.results:
            memory.name = op.results[0].name_hint or f"what {op.name} allocates"
        if self.checks is not None and not ref.element and not self.options.starts_with_zeros:
            memory.expect_writes()
        if self.world is not None:
            self.world.memories[self.agent, key] = memory
        return replace(ref, memory=memory, written=memory.written)

    def shared(self, ref: MemRef, name: str, key: Any) -> MemRef:
        """As `tracked`, of memory of the device: all of its cores have the same, and all operands that
        are one array.
        """
        if self.world is not None:
            memory = self.world.memories.get((self.agent - self.number, key))
            if memory is not None:
                self.world.memories[self.agent, key] = memory
                return replace(ref, memory=memory, written=memory.written)
        found = self.tracked(ref, None, name, key)
        if found.memory is not None and self.world is not None:
            found.memory.is_shared = self.world.cores > 1
        return found

    @cached_property
    def barrier(self) -> MemRef:
        """The barrier semaphore."""
        ref = MemRef(np.zeros((), COUNTER), "semaphore_mem", "tpu.semaphore")
        return self.tracked(ref, None, "the barrier semaphore", "barrier")

    @cached_property
    def internal_scratch(self) -> Array:
        """The bytes behind `tpu.internal_scratch`."""
        return np.full(self.internal_scratch_in_bytes, 0xA5, np.uint8)

    def set_seed(self, seed: tuple[int, ...]) -> None:
        """Starts the generator again."""
        self.seed, self.steps_since_seed = seed, 0

    def random_bits(self, shape: tuple[int, ...]) -> Any:
        """Bits as i32; the same for the same seed and number of registers filled since it was set.

        A vector is filled register by register, as the operations are that the compiler makes of one.
        """
        words = [word & 0xFFFFFFFF for word in self.seed]
        key = np.random.SeedSequence(words).generate_state(2, np.uint64)
        rows, lanes = (1, *shape)[-2:] if len(shape) < 2 else shape[-2:]
        down, across = -(-rows // _ROWS), -(-lanes // _LANES)
        outer = int(np.prod(shape[:-2], dtype=int))
        count = outer * down * across
        # A step of the counter gives four 64-bit words.
        start = self.steps_since_seed * _ROWS * _LANES // 8
        self.steps_since_seed += count
        generator = np.random.Philox(key=key, counter=start)
        bits = generator.random_raw(count * _ROWS * _LANES // 2).view(np.int32)
        tiles = bits.reshape(outer, down, across, _ROWS, _LANES).transpose(0, 1, 3, 2, 4)
        whole = tiles.reshape(outer, down * _ROWS, across * _LANES)[:, :rows, :lanes]
        return whole.reshape(shape)
