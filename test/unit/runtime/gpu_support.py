"""Programs for GPUs whose kernels the interpreter runs: the steps alone are on trial."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import gpu
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Region

from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import ComputationOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.interp.engine import DeviceFrame, Interpreter, load_meanings
from mlirhlo.interp.machine import Machine
from mlirhlo.interp.plans import prepare
from mlirhlo.lowering.gpu import planner
from mlirhlo.lowering.gpu.compiler import GpuProgram, plan_gpu
from mlirhlo.lowering.gpu.devices import GpuDevice, device
from mlirhlo.lowering.gpu.kernel import GpuKernel, Launch
from mlirhlo.lowering.memory_order import physical_dimensions, physical_order
from mlirhlo.lowering.plan.in_memory import in_memory
from mlirhlo.runtime.calls import logical
from mlirhlo.runtime.cuda.executable import GpuExecutable


def one_launch(
    name: str, op: Instruction, computations: Mapping[str, ComputationOp], device: GpuDevice
) -> GpuKernel:
    """A kernel without code."""
    del computations, device
    count = len(_leaves(op.input_shapes)) + len(_leaves([op.shape]))
    module = gpu.ModuleOp(StringAttr(name), Region(Block()))  # type: ignore[arg-type]
    return GpuKernel(name, module, (Launch(name, (1, 1, 1), (1, 1, 1), tuple(range(count))),))


def _leaves(shapes: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for shape in shapes:
        found += _leaves(shape.elements) if hasattr(shape, "elements") else [shape]
    return [s for s in found if in_memory(s) is not None]


class InterpreterDriver:
    """Memory that knows what was written, and launches that the interpreter runs."""

    ordinal = None
    keeps_memory = False

    def synchronize(self) -> None:
        pass

    def recorded(self, work: Any) -> Any:
        work()
        return work

    def __init__(self, program: GpuProgram) -> None:
        load_meanings()
        self.ops = program.plan.instructions
        self.interpreter = Interpreter(program.fused)
        self.memory: dict[int, np.ndarray[Any, Any]] = {}
        self.next = 256
        self.launches: list[str] = []

    def allocate(self, size: int, name: str) -> int:
        address, self.next = self.next, self.next + size + 256
        self.memory[address] = np.full(size, 0xA5, np.uint8)
        return address

    def free(self, address: int) -> None:
        del self.memory[address]

    def write(self, address: int, data: np.ndarray[Any, Any]) -> None:
        self.memory[address][...] = data

    def read(self, address: int, size: int) -> np.ndarray[Any, Any]:
        return self.memory[address][:size]

    def copy(self, source: int, target: int, size: int) -> None:
        self.memory[target][:size] = self.memory[source][:size]

    def rounds(self, count: int) -> Iterable[object]:
        return range(count)

    def load(self, ptx: str, name: str) -> str:
        del name
        return ptx

    def launch(self, code: str, launch: Launch, addresses: Sequence[int]) -> None:
        del code
        self.launches.append(launch.entry)
        op, left = self.ops[launch.entry], list(addresses)

        def take(shape: Any) -> Any:
            if hasattr(shape, "elements"):
                return tuple(take(s) for s in shape.elements)
            array = in_memory(shape)
            if array is None:
                return ()
            data = self.memory[left.pop(0)].view(array.element_type.dtype)
            return logical(data.reshape(physical_dimensions(array)), array)

        inputs = [take(shape) for shape in op.input_shapes]
        run = prepare(op, self.interpreter)
        result: Any = run(
            [np.array(i) if not isinstance(i, tuple) else i for i in inputs], self._frame()
        )
        if hasattr(result, "send"):
            result = self._finished(result)
        self._put(result, op.shape, left)

    def _frame(self) -> DeviceFrame:
        return DeviceFrame(self.interpreter, 0, 0)

    def _finished(self, steps: Any) -> Any:
        answer: Any = None
        while True:
            try:
                request = steps.send(answer)
            except StopIteration as done:
                return done.value
            answer = self._frame().call(request.computation, request.arguments)

    def _put(self, value: Any, shape: Any, left: list[int]) -> None:
        if hasattr(shape, "elements"):
            for part, s in zip(value, shape.elements, strict=True):
                self._put(part, s, left)
        elif (array := in_memory(shape)) is not None:
            data = np.ascontiguousarray(np.asarray(value).transpose(physical_order(array)))
            self.memory[left.pop(0)][...] = data.reshape(-1).view(np.uint8)


def executable(module: Any, monkeypatch: Any) -> tuple[GpuExecutable, InterpreterDriver]:
    """A module planned for a GPU, on the interpreter's driver."""
    monkeypatch.setattr(planner, "build_kernel", one_launch)
    fused, plan = plan_gpu(module.op, device())
    program = GpuProgram(device(), fused, plan, dict.fromkeys(plan.kernels, ""))
    driver = InterpreterDriver(program)
    return GpuExecutable(program, driver), driver


__all__ = ["HloModule", "InterpreterDriver", "Machine", "executable"]
