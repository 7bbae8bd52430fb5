"""A driver on the PTX simulator: any machine is a GPU, and its faults are found."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.gpu.kernel import Launch
from mlirhlo.runtime.cuda.driver import Bytes
from mlirhlo.simulator import Machine
from mlirhlo.simulator.tensor_map import TensorMap

if TYPE_CHECKING:
    from mlirhlo.simulator import LaunchReport
    from mlirhlo.simulator.program import Program


class SimulatedDriver:
    """One simulated GPU; calls from several threads follow one another."""

    ordinal: int | None = None
    keeps_memory = False

    def __init__(self, device: GpuDevice, *, seed: int = 0, checks: bool = True) -> None:
        """`seed`: of the order of blocks and warps. `checks`: whether faults are looked for."""
        self.machine = Machine(device.sm, seed=seed, checks=checks)
        self.reports: list[tuple[Launch, LaunchReport]] = []
        """Of every launch."""
        self._lock = threading.Lock()

    def allocate(self, size: int, name: str) -> int:
        """As `Driver`."""
        with self._lock:
            return self.machine.allocate(max(size, 1), name)

    def free(self, address: int) -> None:
        """As `Driver`."""
        with self._lock:
            self.machine.free(address)

    def write(self, address: int, data: Bytes) -> None:
        """As `Driver`."""
        with self._lock:
            self.machine.write(address, data)

    def read(self, address: int, size: int) -> Bytes:
        """As `Driver`."""
        with self._lock:
            return self.machine.read(address, size)

    def copy(self, source: int, target: int, size: int) -> None:
        """As `Driver`."""
        with self._lock:
            self.machine.copy(target, source, size)

    def rounds(self, count: int) -> Iterable[object]:
        """As `Driver`."""
        return range(count)

    def synchronize(self) -> None:
        """As `Driver`: they have ended."""

    def recorded(self, work: Callable[[], None]) -> Callable[[], None]:
        """As `Driver`: the work itself."""
        work()
        return work

    def load(self, ptx: str, name: str) -> Program:
        """As `Driver`."""
        with self._lock:
            return self.machine.load(ptx, name)

    def launch(self, code: Program, launch: Launch, addresses: Sequence[int]) -> None:
        """As `Driver`."""
        with self._lock:
            report = self.machine.launch(
                code,
                launch.entry,
                launch.grid,
                launch.block,
                arguments(launch, addresses),
                launch.shared_bytes,
                launch.cluster,
            )
            self.reports.append((launch, report))


def arguments(launch: Launch, addresses: Sequence[int]) -> list[int | bytes]:
    """What the simulated machine gets for the parameters of a launch: addresses of buffers, and tensor maps."""
    maps = [
        TensorMap(
            addresses[m.parameter], m.element_bytes, m.dimensions, m.strides, m.box, m.swizzle_bytes
        ).encode()
        for m in launch.maps
    ]
    return [*addresses, *maps]
