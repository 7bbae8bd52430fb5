"""A driver on pycuda: a GPU of this machine.

The primary context is used, as CUDA's runtime does, so that memory of CuPy, PyTorch and JAX is reachable. All work goes
to one stream; what pycuda lacks, graphs, are calls of NVIDIA's driver (`graphs.py`).
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mlirhlo.diagnostics import error, out_of_memory
from mlirhlo.lowering.gpu.devices import DEVICES, GpuDevice
from mlirhlo.lowering.gpu.kernel import Launch
from mlirhlo.runtime.cuda.cubins import code_for
from mlirhlo.runtime.cuda.driver import Bytes
from mlirhlo.runtime.cuda.graphs import Graphs
from mlirhlo.runtime.cuda.parameters import parameter_buffer

_SIMULATE = 'a device by its name (gpu="h100"), or `simulated`, runs the same PTX on the simulator'


_MOST_PINNED = 16 << 20
"""Bytes of a copy by page-locked memory; larger ones gain nothing by another copy on the host."""


@dataclass(frozen=True, slots=True)
class LoadedModule:
    """Code on the device."""

    module: Any
    """Kept while its functions are."""
    functions: dict[str, Any]
    """Entry points that were launched."""


class CudaDriver:
    """One GPU; calls from several threads follow one another."""

    keeps_memory = True

    def __init__(self, ordinal: int = 0) -> None:
        """Raises `HloError` HLO0820 where there is no such GPU, or nothing to drive it with."""
        self._cuda = cuda = _pycuda()
        self.ordinal: int | None = ordinal
        self._lock = threading.RLock()
        try:
            cuda.init()
            count = cuda.Device.count()
        except cuda.Error as problem:
            raise error(
                "HLO0820", f"NVIDIA's driver does not start: {problem}", help=_SIMULATE
            ) from None
        if ordinal >= count:
            found = "no GPU" if count == 0 else f"{count} GPU{'s' * (count > 1)}"
            raise error(
                "HLO0820", f"GPU {ordinal} is asked for, the machine has {found}", help=_SIMULATE
            )
        self._handle = cuda.Device(ordinal)
        self.device = _described(cuda, self._handle)
        self._context = self._handle.retain_primary_context()
        with self._current():
            self.stream = cuda.Stream()
            self._pool = importlib.import_module("pycuda.tools").DeviceMemoryPool()
        self._graphs = Graphs(self.stream.handle)
        self._is_recording = False
        self._allocations: dict[int, Any] = {}
        self._pinned: dict[int, Bytes] = {}
        """Page-locked memory of the host for copies to and from an allocation, by its address."""
        self._copying: set[int] = set()
        """Whose page-locked memory the stream may still read."""
        self.times: list[tuple[Launch, Any, Any]] | None = None
        """With `profile`, each launch between two events."""

    @contextmanager
    def _current(self) -> Generator[None]:
        """With the GPU's context current, and no other thread at it."""
        with self._lock:
            self._context.push()
            try:
                yield
            finally:
                self._cuda.Context.pop()

    @contextmanager
    def _told(self, what: str) -> Generator[None]:
        """As `_current`; errors of the driver are coded."""
        cuda = self._cuda
        try:
            with self._current():
                yield
        except cuda.MemoryError as problem:
            raise out_of_memory(f"the GPU has no memory left: {problem}") from None
        except cuda.Error as problem:
            raise error("HLO0822", f"{what} failed: {problem}") from None

    def allocate(self, size: int, name: str) -> int:
        """As `Driver`."""
        with self._told(f"allocating {size} bytes of {name}"):
            found = self._pool.allocate(max(size, 1))
        self._allocations[int(found)] = found
        return int(found)

    def free(self, address: int) -> None:
        """As `Driver`; the pool keeps the memory."""
        with self._told("freeing memory"):
            if self._pinned.pop(address, None) is not None:
                self._wait()
            self._allocations.pop(address).free()

    def _wait(self) -> None:
        self.stream.synchronize()
        self._copying.clear()

    def _staging(self, address: int, size: int) -> Bytes:
        """Page-locked memory for an allocation, which the stream does not read any more."""
        if address in self._copying:
            self._wait()
        found = self._pinned.get(address)
        if found is None or found.size < size:
            found = self._cuda.pagelocked_empty(size, np.uint8)
            if address in self._allocations:
                self._pinned[address] = found
        return found[:size]

    def write(self, address: int, data: Bytes) -> None:
        """As `Driver`."""
        if not data.size:
            return
        with self._told("copying to the GPU"):
            if data.size > _MOST_PINNED or address not in self._allocations:
                self._cuda.memcpy_htod_async(address, np.ascontiguousarray(data), self.stream)
                self._wait()
                return
            staging = self._staging(address, data.size)
            staging[...] = data
            self._cuda.memcpy_htod_async(address, staging, self.stream)
            self._copying.add(address)

    def read(self, address: int, size: int) -> Bytes:
        """As `Driver`."""
        data = np.empty(size, np.uint8)
        if size:
            is_small = size <= _MOST_PINNED and address in self._allocations
            with self._told("copying from the GPU, or what was launched before,"):
                target = self._staging(address, size) if is_small else data
                self._cuda.memcpy_dtoh_async(target, address, self.stream)
                self._wait()
                if is_small:
                    data[...] = target
        return data

    def copy(self, source: int, target: int, size: int) -> None:
        """As `Driver`."""
        if size:
            with self._told("copying on the GPU"):
                self._cuda.memcpy_dtod_async(target, source, size, self.stream)

    def synchronize(self) -> None:
        """As `Driver`."""
        with self._told("what was launched before"):
            self._wait()

    def load(self, ptx: str, name: str) -> LoadedModule:
        """As `Driver`. Raises `HloError` HLO0821 for code of another architecture, HLO0823 for what is refused."""
        target = (
            ptx.partition(".target")[2].split(None, 1)[0].rstrip(",") if ".target" in ptx else ""
        )
        if not _runs(target, self.device):
            raise error(
                "HLO0821",
                f"{name} is code for {target}, the GPU is {self.device.sm}",
                help="compile it for `cuda`, the GPU itself, or for an architecture before it without `a`",
            )
        try:
            with self._current():
                return LoadedModule(self._cuda.module_from_buffer(code_for(ptx, self.device)), {})
        except self._cuda.Error as problem:
            raise error("HLO0823", f"the GPU's driver refuses {name}: {problem}") from None

    def launch(self, code: LoadedModule, launch: Launch, addresses: Sequence[int]) -> None:
        """As `Driver`."""
        with self._told(f"launching {launch.entry}"):
            function = code.functions.get(launch.entry)
            if function is None:
                function = code.functions[launch.entry] = code.module.get_function(launch.entry)
                if launch.shared_bytes > self.device.shared_memory_per_block:
                    attributes = self._cuda.function_attribute
                    most = attributes.MAX_DYNAMIC_SHARED_SIZE_BYTES
                    function.set_attribute(most, launch.shared_bytes)
            parameters = parameter_buffer(launch, addresses)
            start = self._event()
            function._launch_kernel(  # what pycuda's own calls end in
                launch.grid, launch.block, parameters, launch.shared_bytes, self.stream
            )
            if self.times is not None:
                self.times.append((launch, start, self._event()))

    def call(self, function: str, routine: Callable[..., int], *arguments: Any) -> None:
        """Calls a library's function in the GPU's context. Raises `HloError` HLO0822 where it reports a failure."""
        with self._told(f"calling {function}"):
            status = routine(*arguments)
        if status:
            raise error("HLO0822", f"{function} failed with status {status}")

    def _event(self) -> Any:
        if self.times is None:
            return None
        event = self._cuda.Event()
        event.record(self.stream)
        return event

    def profile(self) -> list[tuple[Launch, float]]:
        """Launches so far with their milliseconds, by events; from now on they are taken, if they were not before."""
        with self._told("reading events"):
            self.stream.synchronize()
            found = [(one, end.time_since(start)) for one, start, end in self.times or ()]
        self.times = []
        return found

    def rounds(self, count: int) -> Iterable[object]:
        """As `Driver`: the first round runs, the second one is recorded, and replayed for all others."""
        if count < 3 or self._is_recording or self.times is not None:
            yield from range(count)
            return
        yield 0
        with self._told("recording a graph"):
            self._graphs.begin()
            self._is_recording = True
        try:
            yield 1
        except BaseException:
            self._ended()
            raise
        replay = self._ended()
        with self._told("replaying a graph"):
            for _ in range(count - 1):
                replay()

    def recorded(self, work: Callable[[], None]) -> Callable[[], None]:
        """As `Driver`."""
        if self.times is not None:
            work()
            return work
        with self._told("recording a graph"):
            self._graphs.begin()
            self._is_recording = True
        try:
            work()
        except BaseException:
            self._ended()
            raise
        replay = self._ended()

        def again() -> None:
            with self._told("replaying a graph"):
                replay()

        again()
        return again

    def _ended(self) -> Callable[[], None]:
        self._is_recording = False
        with self._told("recording a graph"):
            return self._graphs.end()


def _pycuda() -> Any:
    """The module `pycuda.driver`. Raises `HloError` HLO0820."""
    try:
        return importlib.import_module("pycuda.driver")
    except ModuleNotFoundError:
        why, advice = "pycuda is not installed", "pip install pycuda (docs/gpu.md has the commands)"
    except ImportError as problem:
        why, advice = f"pycuda does not load: {problem}", "install NVIDIA's driver"
    raise error(
        "HLO0820", f"GPUs of this machine cannot be driven: {why}", help=f"{advice}; {_SIMULATE}"
    )


def _described(cuda: Any, handle: Any) -> GpuDevice:
    """The device as data: what the driver says, over the known device of its architecture."""
    capability = tuple(handle.compute_capability())
    base = next((d for d in DEVICES.values() if d.capability == capability), None)
    if base is None:
        older = [
            d
            for d in DEVICES.values()
            if d.capability < capability and d.capability[0] == capability[0]
        ]
        if not older:
            major, minor = capability
            raise error(
                "HLO0821", f"no code is made for compute capability {major}.{minor}", help=_SIMULATE
            )
        base = older[-1]
    ask, what = handle.get_attribute, cuda.device_attribute
    return replace(
        base,
        description=handle.name(),
        core_count=ask(what.MULTIPROCESSOR_COUNT),
        clock_rate_ghz=ask(what.CLOCK_RATE) / 1e6,
        l2_cache_size=ask(what.L2_CACHE_SIZE),
        device_memory_size=handle.total_memory(),
    )


def _runs(target: str, device: GpuDevice) -> bool:
    """Whether a device takes PTX for a target: of its own architecture, or of one before without a letter."""
    if not target or target == device.sm:
        return True
    digits = target.removeprefix("sm_")
    major, minor = device.capability
    return digits.isdigit() and int(digits) <= 10 * major + minor
