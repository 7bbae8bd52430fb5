"""Kernels of instructions and fusions."""

from __future__ import annotations

from collections.abc import Mapping

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.ops import ComputationOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.gpu.kernel import GpuKernel


def build_kernel(
    name: str, op: Instruction, computations: Mapping[str, ComputationOp], device: GpuDevice
) -> GpuKernel:
    """The kernel that computes an instruction or fusion. Entry points are named after `name`.

    Raises `HloError` HLO0802 for an opcode without GPU code.
    """
    del name, computations, device
    raise error("HLO0802", f"`{op.opcode.name}` has no GPU code")
