"""pycuda's modules and the calls of NVIDIA's driver that graphs need, on the simulator; all calls are written down.

Names, arguments and errors are those of pycuda 2026.1 (`src/wrapper/wrap_cudadrv.cpp`, `pycuda/tools.py`).
"""

from __future__ import annotations

import ctypes
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from mlirhlo.diagnostics import HloError
from mlirhlo.lowering.gpu.devices import device as described
from mlirhlo.simulator import Machine
from mlirhlo.simulator.tensor_map import TensorMap


class FakeCuda:
    """A machine with one GPU, or none."""

    def __init__(self, gpu: str = "h100", count: int = 1, memory: int = 1 << 26) -> None:
        self.gpu, self.count, self.memory = described(gpu), count, memory
        self.machine = Machine(self.gpu.sm)
        self.calls: list[str] = []
        self.depth = 0
        """Contexts that are current."""
        self.used = 0
        self.recording: list[Callable[[], None]] | None = None
        self.graphs: list[list[Callable[[], None]]] = []
        self.driver, self.tools = self._driver(), types.ModuleType("pycuda.tools")
        self.tools.DeviceMemoryPool = lambda: _Pool(self)  # type: ignore[attr-defined]

    def said(self, name: str) -> None:
        assert self.depth, f"{name} without a current context"
        self.calls.append(name)

    def do(self, work: Callable[[], None]) -> None:
        """What is put on the stream: done, or recorded."""
        if self.recording is None:
            work()
        else:
            self.recording.append(work)

    def _driver(self) -> Any:
        cuda: Any = types.ModuleType("pycuda.driver")
        for name, base in (
            ("Error", Exception),
            ("MemoryError", 0),
            ("LogicError", 0),
            ("LaunchError", 0),
            ("RuntimeError", 0),
        ):
            setattr(cuda, name, type(name, (base or cuda.Error,), {}))
        fake = self

        def init(flags: int = 0) -> None:
            if fake.count == 0:
                raise cuda.RuntimeError("cuInit failed: no CUDA-capable device is detected")

        cuda.init = init
        cuda.device_attribute = types.SimpleNamespace(
            MULTIPROCESSOR_COUNT=16, CLOCK_RATE=13, L2_CACHE_SIZE=38
        )
        cuda.function_attribute = types.SimpleNamespace(MAX_DYNAMIC_SHARED_SIZE_BYTES=8)
        cuda.Device = type(
            "Device", (_Device,), {"fake": fake, "count": staticmethod(lambda: fake.count)}
        )
        cuda.Context = type("Context", (), {"pop": staticmethod(self._pop)})
        cuda.Stream = lambda flags=0: _Stream(fake)
        cuda.Event = lambda flags=0: _Event(fake)
        cuda.module_from_buffer = lambda buffer, options=(), message_handler=None: _Module(
            fake, buffer
        )

        def htod(dest: int, src: Any, stream: Any) -> None:
            fake.said("memcpy_htod_async")
            assert src.flags.c_contiguous
            data = src.copy()
            fake.do(lambda: fake.machine.write(int(dest), data))

        def dtoh(dest: Any, src: int, stream: Any) -> None:
            fake.said("memcpy_dtoh_async")
            assert fake.recording is None
            dest[...] = fake.machine.read(int(src), dest.nbytes)

        def dtod(dest: int, src: int, size: int, stream: Any) -> None:
            fake.said("memcpy_dtod_async")
            fake.do(lambda: fake.machine.copy(int(dest), int(src), size))

        def pagelocked(shape: int, dtype: Any) -> Any:
            fake.said("pagelocked_empty")
            return np.empty(shape, dtype)

        cuda.pagelocked_empty = pagelocked
        cuda.memcpy_htod_async, cuda.memcpy_dtoh_async, cuda.memcpy_dtod_async = htod, dtoh, dtod
        return cuda

    def _pop(self) -> None:
        self.depth -= 1

    # NVIDIA's driver

    def cuStreamBeginCapture_v2(self, stream: Any, mode: int) -> int:
        self.said("cuStreamBeginCapture_v2")
        assert self.recording is None
        self.recording = []
        return 0

    def cuStreamEndCapture(self, stream: Any, graph: Any) -> int:
        self.said("cuStreamEndCapture")
        assert self.recording is not None
        self.graphs.append(self.recording)
        self.recording = None
        _at(graph).value = len(self.graphs)
        return 0

    def cuGraphInstantiateWithFlags(self, runs: Any, graph: Any, flags: Any) -> int:
        self.said("cuGraphInstantiateWithFlags")
        _at(runs).value = graph.value
        return 0

    def cuTensorMapEncodeTiled(
        self,
        where: Any,
        kind: int,
        rank: int,
        address: Any,
        sizes: Any,
        strides: Any,
        box: Any,
        steps: Any,
        interleave: int,
        swizzle: int,
        promotion: int,
        fill: int,
    ) -> int:
        assert where.value % 64 == 0
        width = {0: 1, 1: 2, 2: 4, 4: 8}[kind]
        swizzle = {0: 0, 1: 32, 2: 64, 3: 128}[swizzle]
        made = TensorMap(
            address.value,
            width,
            tuple(sizes),
            tuple(strides)[: rank - 1],
            tuple(box),
            swizzle,
            tuple(steps),
        )
        assert (interleave, fill) == (0, 0)
        try:
            ctypes.memmove(where.value, made.encode(), 128)
        except HloError:
            return 1
        return 0

    def cuGraphDestroy(self, graph: Any) -> int:
        self.said("cuGraphDestroy")
        return 0

    def cuGraphLaunch(self, runs: Any, stream: Any) -> int:
        self.said("cuGraphLaunch")
        for work in self.graphs[runs.value - 1]:
            work()
        return 0


def _at(reference: Any) -> Any:
    return reference._obj  # what ctypes.byref refers to


class _Device:
    fake: FakeCuda

    def __init__(self, ordinal: int) -> None:
        assert ordinal < self.fake.count

    def name(self) -> str:
        return f"{self.fake.gpu.description} (fake)"

    def compute_capability(self) -> tuple[int, int]:
        return self.fake.gpu.capability

    def total_memory(self) -> int:
        return self.fake.memory

    def get_attribute(self, what: int) -> int:
        gpu = self.fake.gpu
        return {16: gpu.core_count, 13: round(gpu.clock_rate_ghz * 1e6), 38: gpu.l2_cache_size}[
            what
        ]

    def retain_primary_context(self) -> Any:
        def push() -> None:
            self.fake.depth += 1

        return types.SimpleNamespace(push=push)


class _Stream:
    def __init__(self, fake: FakeCuda) -> None:
        fake.said("Stream")
        self.fake, self.handle = fake, 7

    def synchronize(self) -> None:
        self.fake.said("synchronize")
        assert self.fake.recording is None, "a stream that records cannot be waited for"


class _Event:
    def __init__(self, fake: FakeCuda) -> None:
        self.fake, self.time = fake, 0

    def record(self, stream: Any) -> None:
        self.fake.said("record")
        self.time = len(self.fake.calls)

    def time_since(self, start: _Event) -> float:
        return float(self.time - start.time)


class _Pool:
    def __init__(self, fake: FakeCuda) -> None:
        self.fake = fake

    def allocate(self, size: int) -> Any:
        fake = self.fake
        fake.said("allocate")
        assert fake.recording is None
        if fake.used + size > fake.memory:
            raise fake.driver.MemoryError("cuMemAlloc failed: out of memory")
        fake.used += size
        return _Allocation(fake, fake.machine.allocate(size, "pool"), size)


class _Allocation:
    def __init__(self, fake: FakeCuda, address: int, size: int) -> None:
        self.fake, self.address, self.size = fake, address, size

    def __int__(self) -> int:
        return self.address

    def free(self) -> None:
        self.fake.said("free")
        self.fake.used -= self.size
        self.fake.machine.free(self.address)


class _Module:
    def __init__(self, fake: FakeCuda, buffer: bytes) -> None:
        fake.said("module_from_buffer")
        try:
            self.program = fake.machine.load(buffer.rstrip(b"\0").decode(), "module.ptx")
        except HloError as problem:
            raise fake.driver.RuntimeError(f"cuModuleLoadDataEx failed: {problem}") from None
        self.fake = fake

    def get_function(self, name: str) -> _Function:
        return _Function(self.fake, self.program, name)


class _Function:
    def __init__(self, fake: FakeCuda, program: Any, name: str) -> None:
        self.fake, self.program, self.name = fake, program, name

    def set_attribute(self, what: int, value: int) -> None:
        self.fake.said(f"set_attribute {what} {value}")

    def _launch_kernel(
        self, grid: Any, block: Any, parameters: Any, shared: int, stream: Any
    ) -> None:
        fake = self.fake
        fake.said(f"launch {self.name}")
        assert isinstance(stream, _Stream)
        if np.prod(block) > 1024:
            raise fake.driver.LogicError("cuLaunchKernel failed: invalid argument")
        data = bytes(parameters)
        layout = self.program.code(self.name).parameters
        assert len(data) == layout[-1][1] + layout[-1][2]
        pieces = [(data[at : at + size], size) for _, at, size in layout]
        addresses = [int.from_bytes(p, "little") if size == 8 else p for p, size in pieces]

        def work() -> None:
            try:
                fake.machine.launch(self.program, self.name, grid, block, addresses, shared)
            except HloError as problem:
                raise fake.driver.LaunchError(f"cuLaunchKernel failed: {problem}") from None

        fake.do(work)
