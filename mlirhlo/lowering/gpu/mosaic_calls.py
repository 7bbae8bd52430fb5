"""Kernels that a program brings with it: calls of `mosaic_gpu_v2`, launched between the kernels of this compiler."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeGuard

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.ops import CustomCallOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.interp.plans import place_of
from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.gpu.kernel import GpuKernel

TARGET = "mosaic_gpu_v2"


def is_mosaic_call(op: Instruction) -> TypeGuard[CustomCallOp]:
    """Whether an instruction calls a kernel that is in its `backend_config`."""
    return isinstance(op, CustomCallOp) and op.custom_call_target == TARGET


def mosaic_kernel(name: str, op: CustomCallOp, device: GpuDevice) -> GpuKernel:
    """The kernel of a call; its entry point has the name `name`. Arrays are row-major.

    Raises `HloError` HLO0355, HLO0700, HLO0758 for a kernel that does not fit, cannot be read, has no code.
    """
    # Readers and the lowering of kernels take a while to import.
    from mlirhlo.lowering.mosaic_gpu import lower_kernel
    from mlirhlo.mosaic.custom_call import aliases_of
    from mlirhlo.mosaic.gpu.custom_call import kernel_of

    try:
        module, launch = lower_kernel(replace(kernel_of(op), name=name), device)
    except HloError as problem:
        raise problem.at(place_of(op)) from None
    count = len(op.inputs)
    updates = tuple((operand, count + number) for number, operand in aliases_of(op).items())
    of_results = dict(updates)
    buffers = tuple(of_results.get(number, number) for number in launch.buffers)
    return GpuKernel(name, module, (replace(launch, buffers=buffers),), updates=updates)
