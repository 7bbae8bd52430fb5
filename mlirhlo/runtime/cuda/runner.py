"""Runs the steps of a plan on a GPU; loops and branches are followed by the host.

On the simulator every buffer of a run is an allocation of its own, named after what writes it, so that what is found
out of bounds, or read before it is written, is said of that buffer. On a GPU buffers are kept between runs, temporaries
in one arena; a run without control flow on the host is recorded and replayed.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mlirhlo.diagnostics import Diagnostic, HloError
from mlirhlo.interp.plans import place_of
from mlirhlo.lowering.gpu.compiler import GpuProgram
from mlirhlo.lowering.plan.in_memory import physical_bytes
from mlirhlo.lowering.plan.steps import (
    Branch,
    Buffer,
    Callback,
    Copy,
    Kernel,
    Repeat,
    Slice,
    Step,
    While,
    all_steps,
)
from mlirhlo.nesting import Walk, walked
from mlirhlo.runtime.callbacks import call_site
from mlirhlo.runtime.cuda.driver import Bytes, Driver

_OF_THE_HOST = (While, Branch, Callback)
"""Steps that the host has to see what is in memory for."""

Array = np.ndarray[Any, Any]


class GpuRunner:
    """A program on one driver; runs follow one another."""

    def __init__(self, program: GpuProgram, driver: Driver) -> None:
        self.program, self.driver = program, driver
        self.code = {n: driver.load(ptx, f"{n}.ptx") for n, ptx in program.ptx.items()}
        self.constants: dict[Buffer, int] = {}
        for number, buffer in enumerate(program.plan.constants):
            data = np.frombuffer(physical_bytes(buffer), np.uint8)
            self.constants[buffer] = address = driver.allocate(buffer.size, f"constant {number}")
            driver.write(address, data)
        self.names = _names(program.plan.steps)
        self._lock = threading.Lock()
        self._kept: _Run | None = None
        """The memory of all runs, where the driver keeps it."""
        self.is_recordable = not any(
            isinstance(step, (*_OF_THE_HOST, Repeat)) for step in all_steps(program.plan.steps)
        )
        """Whether a run is the same launches and copies each time."""

    def about(self, problem: Diagnostic, entry: str) -> Diagnostic:
        """What was found of an entry point, with the instruction that its kernel computes."""
        plan = self.program.plan
        for name, kernel in plan.kernels.items():
            if any(launch.entry == entry for launch in kernel.launches):
                op = plan.instructions[name]
                note = f"{entry} computes %{op.instruction_name} = {op.opcode.name}"
                return replace(problem, notes=(*problem.notes, (note, place_of(op))))
        return problem

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Copies the parameters in, runs, and copies the results out."""
        if self.driver.keeps_memory:
            with self._lock:
                if self._kept is None:
                    self._kept = _Run(self)
                    self._kept.begin()
                self._follow(self._kept, inputs, outputs)
            return
        run = _Run(self)
        try:
            run.begin()
            self._follow(run, inputs, outputs)
        finally:
            run.end()

    def run_in_memory(self, parameters: Sequence[int], results: Sequence[int]) -> None:
        """Runs on arrays that are in the GPU's memory; results that share a parameter's memory have its address."""
        with self._lock:
            run = _Run(self, [*parameters], [*results])
            if self._kept is not None:
                run.arena = self._kept.arena
            else:
                run.begin_arena()
            try:
                run.steps_once()
            finally:
                run.end()

    def bound(self, parameters: Sequence[int], results: Sequence[int]) -> Callable[[], None]:
        """What runs on these arrays of the GPU's memory, however often; runs after the first replay a graph."""
        run = _Run(self, [*parameters], [*results])
        run.begin_arena()

        def follow() -> None:
            with self._lock:
                run.follow()

        weakref.finalize(follow, run.end)
        return follow

    def _follow(self, run: _Run, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        plan = self.program.plan
        for address, value in zip(run.parameters, inputs, strict=True):
            self.driver.write(address, _bytes(value))
        run.follow()
        for buffer, address, value in zip(plan.results, run.results, outputs, strict=True):
            _bytes(value)[...] = self.driver.read(address, buffer.size)


def _bytes(value: Array) -> Bytes:
    return value.reshape(-1).view(np.uint8)


def _names(steps: Sequence[Step]) -> dict[Buffer, str]:
    """Temporaries by the kernel that writes them first."""
    found: dict[Buffer, str] = {}
    for step in all_steps(steps):
        if isinstance(step, Kernel):
            for buffer in step.writes:
                found.setdefault(buffer, f"result of {step.name}")
    return found


@dataclass
class _Run:
    """The memory of one run."""

    runner: GpuRunner
    parameters: list[int] = field(default_factory=list[int])
    results: list[int] = field(default_factory=list[int])
    temporaries: dict[Buffer, int] = field(default_factory=dict[Buffer, int])
    allocated: list[int] = field(default_factory=list[int])
    arena: int = 0
    """Where temporaries are, each at its offset; 0 where each is an allocation of its own."""
    count: int = 0
    """Runs so far."""
    again: Callable[[], None] | None = None
    """What does a run once more."""

    def begin(self) -> None:
        """Allocates what there is at the start."""
        plan = self.runner.program.plan
        for number, buffer in enumerate(plan.parameters):
            self.parameters.append(self.allocate(buffer.size, f"parameter {number}"))
        for number, buffer in enumerate(plan.results):
            over = None if buffer.alias is None else buffer.alias.parameter
            self.results.append(
                self.allocate(buffer.size, f"result {number}")
                if over is None
                else self.parameters[over]
            )
        self.begin_arena()

    def begin_arena(self) -> None:
        """Allocates the memory of temporaries, where they have one."""
        size = self.runner.program.plan.arena_size
        if self.runner.driver.keeps_memory and size:
            self.arena = self.allocate(size, "temporaries")

    def end(self) -> None:
        """Gives all memory back."""
        for address in self.allocated:
            self.runner.driver.free(address)

    def follow(self) -> None:
        """Runs the plan. The first time step by step; the second time that is recorded, where it can be."""
        if self.again is not None:
            self.again()
        elif self.count and self.runner.is_recordable:
            self.again = self.runner.driver.recorded(self.steps_once)
        else:
            self.steps_once()
        self.count += 1

    def steps_once(self) -> None:
        """Runs the plan, step by step."""
        walked(self.steps(self.runner.program.plan.steps))

    def allocate(self, size: int, name: str) -> int:
        address = self.runner.driver.allocate(size, name)
        self.allocated.append(address)
        return address

    def address(self, buffer: Buffer) -> int:
        """Where a buffer is; of a temporary that is used for the first time, from now on."""
        if buffer.literal is not None:
            return self.runner.constants[buffer]
        if buffer.parameter is not None:
            return self.parameters[buffer.parameter]
        if buffer.result is not None:
            return self.results[buffer.result]
        if self.arena:
            return self.arena + buffer.offset
        if buffer not in self.temporaries:
            name = self.runner.names.get(buffer, "temporary")
            self.temporaries[buffer] = self.allocate(buffer.size, name)
        return self.temporaries[buffer]

    def steps(self, steps: Sequence[Step]) -> Walk[None]:
        """Runs steps in order."""
        driver = self.runner.driver
        for step in steps:
            match step:
                case Kernel():
                    self._launch(step)
                case Copy():
                    source, target = self.address(step.source), self.address(step.target)
                    if source != target:
                        driver.copy(source, target, step.source.size)
                case While():
                    yield self.steps(step.condition)
                    while driver.read(self.address(step.test), 1)[0]:
                        yield self.steps(step.body)
                        yield self.steps(step.condition)
                case Repeat():
                    is_same = not any(isinstance(s, _OF_THE_HOST) for s in all_steps(step.body))
                    rounds = driver.rounds(step.rounds) if is_same else range(step.rounds)
                    for _ in rounds:
                        yield self.steps(step.body)
                case Branch():
                    yield self.steps(step.branches[self._chosen(step)])
                case Callback():
                    if self._call_back(step):
                        return
                case Slice():
                    raise AssertionError("plans for GPUs have no slices")

    def _launch(self, step: Kernel) -> None:
        addresses = [self.address(b) for b in (*step.reads, *step.writes)]
        for launch in self.runner.program.plan.kernels[step.name].launches:
            if 0 not in launch.grid:
                code, given = self.runner.code[step.name], [addresses[k] for k in launch.buffers]
                try:
                    self.runner.driver.launch(code, launch, given)
                except HloError as problem:
                    found = problem.diagnostics
                    raise HloError(
                        *(self.runner.about(d, launch.entry) for d in found)
                    ) from problem

    def _chosen(self, step: Branch) -> int:
        data = self.runner.driver.read(self.address(step.selector), 1 if step.by_pred else 4)
        if step.by_pred:
            return 0 if data[0] else 1
        number = int(data.view(np.int32)[0])
        return number if 0 <= number < len(step.branches) else len(step.branches) - 1

    def _call_back(self, step: Callback) -> bool:
        """What the host does for the device; whether it failed."""
        driver = self.runner.driver
        reads = [driver.read(self.address(b), b.size).copy() for b in step.reads]
        writes = [np.empty(b.size, np.uint8) for b in step.writes]
        arrays = [*reads, *writes]
        pointers = (ctypes.c_void_p * max(len(arrays), 1))(*(a.ctypes.data for a in arrays))
        if call_site(step.site, pointers):
            return True
        for buffer, data in zip(step.writes, writes, strict=True):
            driver.write(self.address(buffer), data)
        return False
