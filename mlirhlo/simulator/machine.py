"""The simulated device: memory that the host reads and writes, programs, launches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mlirhlo.diagnostics import Place, error
from mlirhlo.dialects.ptx.requirements import runs_on
from mlirhlo.formats.ptx import parse_ptx
from mlirhlo.simulator.memory import GLOBAL_BASE, INITIALISED, Arena
from mlirhlo.simulator.report import LaunchReport

if TYPE_CHECKING:
    from mlirhlo.dialects.ptx import ModuleOp
    from mlirhlo.simulator.program import Program

Dimensions = int | Sequence[int]
"""Blocks of a grid or threads of a block: x, or (x, y), or (x, y, z)."""


class Machine:
    """
    A device that executes PTX on the host.

    Threads run in lock step where they can: each instruction is executed for all lanes of many blocks at
    once. `seed` permutes blocks and warps (0 keeps their order), so that other seeds show other
    interleavings. With `checks` off only what would stop a real device is reported, and figures of
    memory are not counted.
    """

    def __init__(
        self,
        target: str = "sm_90a",
        *,
        seed: int = 0,
        checks: bool = True,
        memory_bytes: int = 1 << 32,
    ) -> None:
        self.target = target
        self.seed = seed
        self.checks = checks
        self.arena = Arena(memory_bytes)

    def load(self, module: ModuleOp | str, file: str = "<string>") -> Program:
        """
        Loads a PTX module, or its text: global and constant variables get memory and initial values.

        Raises `HloError` for text that is no PTX, HLO0789 for PTX that the device cannot run, and HLO0770 when the
        memory is full.
        """
        from mlirhlo.simulator.program import Program

        text = module if isinstance(module, str) else ""
        if isinstance(module, str):
            module = parse_ptx(module, file)
        for target in module.targets:
            if target.startswith("sm_") and not runs_on(target, self.target):
                raise error(
                    "HLO0789",
                    f"PTX for {target} does not run on {self.target}",
                    Place(file, 1),
                    help="generate it for the device (--gpu=), or simulate another (--target=)",
                )
        return Program(module, self.arena, file, text)

    def allocate(self, size_bytes: int, name: str = "buffer") -> int:
        """Address of `size_bytes` new bytes, aligned to 256; `name` stands for them in findings."""
        return self.arena.allocate(size_bytes, name) + GLOBAL_BASE

    def free(self, address: int) -> None:
        """Gives back what `allocate` returned."""
        self.arena.free(address - GLOBAL_BASE)

    def write(self, address: int, data: bytes | NDArray[Any]) -> None:
        """Copies `data` to the device. Raises `HloError` HLO0771 outside of allocations."""
        raw = np.frombuffer(
            data if isinstance(data, bytes) else np.ascontiguousarray(data).tobytes(), np.uint8
        )
        index = self.arena.bounds(address, len(raw))
        self.arena.bytes[index : index + len(raw)] = raw
        self.arena.states[index : index + len(raw)] = INITIALISED

    def read(self, address: int, size_bytes: int) -> NDArray[np.uint8]:
        """A copy of bytes of the device. Raises `HloError` HLO0771 outside of allocations."""
        index = self.arena.bounds(address, size_bytes)
        return self.arena.bytes[index : index + size_bytes].copy()

    def copy(self, destination: int, source: int, size_bytes: int) -> None:
        """Copies within the device; bytes that were never written stay uninitialised."""
        to, start = (
            self.arena.bounds(destination, size_bytes),
            self.arena.bounds(source, size_bytes),
        )
        for array in (self.arena.bytes, self.arena.states):
            array[to : to + size_bytes] = array[start : start + size_bytes].copy()

    def launch(
        self,
        program: Program,
        entry: str,
        grid: Dimensions,
        block: Dimensions,
        arguments: Sequence[int | float | bytes],
        shared_bytes: int = 0,
        cluster: Dimensions = 1,
    ) -> LaunchReport:
        """
        Runs the kernel `entry` to its end.

        `arguments` are one value a parameter: an int or float for a scalar or pointer, bytes for anything
        (a struct, a tensor map). `shared_bytes` is the size of dynamic shared memory. Faults that a kernel
        survives are findings of the report; one that stops it raises `HloError` (HLO0772 to HLO0789).
        """
        from mlirhlo.simulator.launch import Launch

        return Launch(
            self,
            program,
            entry,
            _three(grid),
            _three(block),
            arguments,
            shared_bytes,
            _three(cluster),
        ).run()


def _three(dimensions: Dimensions) -> tuple[int, int, int]:
    values = (dimensions,) if isinstance(dimensions, int) else tuple(dimensions)
    x, y, z = (*values, 1, 1, 1)[:3]
    return int(x), int(y), int(z)
