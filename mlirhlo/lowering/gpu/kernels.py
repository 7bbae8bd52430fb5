"""Kernels of instructions and fusions."""

from __future__ import annotations

from collections.abc import Mapping

from mlirhlo.dialects.hlo.ops import ComputationOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.structured import KernelOp
from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.gpu.kernel import GpuKernel
from mlirhlo.lowering.gpu.launches import launch_all
from mlirhlo.lowering.schedule.passes import schedule
from mlirhlo.lowering.structured import optimize_kernel, to_structured


def build_kernel(
    name: str, op: Instruction, computations: Mapping[str, ComputationOp], device: GpuDevice
) -> GpuKernel:
    """The kernel that computes an instruction or fusion. Entry points are named after `name`.

    Raises `HloError` HLO0802 for an opcode without GPU code.
    """
    return kernel_of(structured_kernel(name, op, computations, device), device)


def structured_kernel(
    name: str, op: Instruction, computations: Mapping[str, ComputationOp], device: GpuDevice
) -> KernelOp:
    """The structured kernel of an instruction or fusion, with its schedules. Raises `HloError` HLO079x."""
    kernel = to_structured(op, computations, name, constants=True)
    optimize_kernel(kernel)
    schedule(kernel, device)
    return kernel


def kernel_of(kernel: KernelOp, device: GpuDevice) -> GpuKernel:
    """The code of a structured kernel; schedules it has stay as they are. Raises `HloError` HLO0802."""
    schedule(kernel, device)
    return launch_all(kernel, kernel.kernel_name, device)
