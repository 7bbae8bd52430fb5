"""A kernel of the language of GPUs as PTX, and its launch on a driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.dialects import gpu
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Region

from mlirhlo.diagnostics import error
from mlirhlo.dialects.interned import UNIT
from mlirhlo.lowering.gpu.builder import KernelBuilder
from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.gpu.devices import device as device_of
from mlirhlo.lowering.gpu.kernel import OF_THREADS, Launch
from mlirhlo.lowering.gpu.nvvm import to_nvvm
from mlirhlo.lowering.gpu.ptx import to_llvm_text, to_ptx
from mlirhlo.lowering.mosaic_gpu.threads import function_of
from mlirhlo.lowering.mosaic_gpu.writer import Writer
from mlirhlo.mosaic.attributes import integers_of
from mlirhlo.mosaic.gpu.faults import check_options


@dataclass(slots=True, eq=False)
class Compiled:
    """PTX of a kernel, with how it is launched."""

    device: GpuDevice
    module: gpu.ModuleOp
    nvvm: ModuleOp
    llvm: str
    ptx: str
    launch: Launch

    def run(
        self,
        kernel: Any,
        arrays: Sequence[Any],
        driver: Any,
        ptx: str | None = None,
        aliases: Mapping[int, int] = MappingProxyType({}),
    ) -> list[Any]:
        """The results on a driver; `ptx` in place of the kernel's own, `aliases` as `GpuKernel.simulate` has them."""
        held = [np.ascontiguousarray(array) for array in arrays]
        results = [np.empty(one.shape, one.dtype) for one in kernel.results]
        addresses: list[int] = []
        for number, array in enumerate((*held, *results)):
            operand = aliases.get(number - len(held))
            if operand is not None:
                addresses.append(addresses[operand])
                continue
            addresses.append(driver.allocate(array.nbytes, f"argument {number}"))
            if number < len(held):
                driver.write(addresses[-1], array.reshape(-1).view(np.uint8))
        code = driver.load(ptx or self.ptx, f"{kernel.name}.ptx")
        driver.launch(code, self.launch, addresses)
        found = [
            driver.read(address, array.nbytes).view(array.dtype).reshape(array.shape)
            for address, array in zip(addresses[len(held) :], results, strict=True)
        ]
        for address in dict.fromkeys(addresses):
            driver.free(address)
        return found

    def simulate(
        self,
        kernel: Any,
        arrays: Sequence[Any],
        ptx: str | None,
        seed: int,
        aliases: Mapping[int, int],
    ) -> tuple[list[Any], tuple[Any, ...], Any]:
        """Results, findings and figures of a run on the simulator."""
        # The runtime is a layer above this one.
        runtime = import_module("mlirhlo.runtime.cuda.simulated")
        driver = runtime.SimulatedDriver(self.device, seed=seed)
        found = self.run(kernel, arrays, driver, ptx, aliases)
        (report,) = [report for _, report in driver.reports]
        return found, report.findings, report.figures


def driver_of(gpu_name: str) -> Any:
    """The driver of a GPU of this machine, which `cuda` names; None for devices that are simulated."""
    return import_module("mlirhlo.runtime.cuda.devices").real_driver(gpu_name)


def compile_kernel(kernel: Any, gpu_name: str) -> Compiled:
    """A kernel as PTX. Raises `HloError` HLO0758 for what has no code on the device."""
    driver = driver_of(gpu_name)
    device = device_of(gpu_name) if driver is None else driver.device
    module, launch = lower_kernel(kernel, device)
    nvvm = to_nvvm(module)
    llvm = to_llvm_text(nvvm, device)
    return Compiled(device, module, nvvm, llvm, to_ptx(llvm, device), launch)


def lower_kernel(kernel: Any, device: GpuDevice) -> tuple[gpu.ModuleOp, Launch]:
    """The code of one thread of a kernel, and its launch. Raises `HloError` HLO0758 for what has none on the device."""
    _check_device(kernel, device)
    check_options(kernel.body.walk())
    function, builder, shared_bytes = _function(kernel)
    if kernel.is_of_threads:
        function.attributes[OF_THREADS] = UNIT
    launch = kernel.launch
    module = gpu.ModuleOp(StringAttr(kernel.name), Region(Block()))  # type: ignore[arg-type]
    module.body.block.add_ops([*builder.globals, function])
    return module, Launch(
        kernel.name,
        launch.block_dims,
        (launch.num_threads * 128, 1, 1),
        tuple(range(len(kernel.inputs) + len(kernel.results))),
        shared_bytes,
        launch.cluster_dims,
        tuple(builder.maps),
    )


def _function(kernel: Any) -> tuple[gpu.FuncOp, KernelBuilder, int]:
    """The code of one thread, what built it, and bytes of shared memory."""
    if kernel.is_of_threads:
        (stated,) = integers_of(next(iter(kernel.module.ops)), "mosaic_gpu.shared_bytes") or (0,)
        return (*function_of(kernel), stated)
    scratch = 0
    while True:
        writer = Writer(kernel, scratch)
        function = writer.write()
        if writer.scratch_bytes <= scratch:
            return function, writer.b, writer.shared_bytes
        scratch = writer.scratch_bytes


def _check_device(kernel: Any, device: GpuDevice) -> None:
    """Raises `HloError` HLO0758 where the kernel uses what the device has not."""
    names = {op.name for op in kernel.body.walk()}
    needs = 10 if kernel.has_tensor_memory else 9
    is_known = device.capability[0] in (9, 10)
    if not is_known or (device.capability[0] != needs and (needs == 10 or _OLD & names)):
        has = "tensor memory" if needs == 10 else "wgmma" if is_known else "barriers and copies"
        raise error(
            "HLO0758",
            f"{kernel.name} uses {has} of sm_{needs}0a, which {device.sm} has not",
            help="compile it for b200" if needs == 10 else "compile it for h100",
        )


_OLD = frozenset({"mosaic_gpu.wgmma", "nvvm.wgmma.fence.aligned"})
"""What sm_90a has and sm_100a has not."""
