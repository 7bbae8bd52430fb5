"""Which GPU code is made for: by name, or by a file that describes it."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING

from mlirhlo.diagnostics import error
from mlirhlo.formats import read_file
from mlirhlo.importing import LATE
from mlirhlo.lowering.gpu.devices import DEFAULT, GpuDevice, device, read_device

with LATE:
    from mlirhlo.runtime.cuda import real


if TYPE_CHECKING:
    from mlirhlo.debug.options import Flags
    from mlirhlo.runtime.cuda.real import CudaDriver

SIMULATED = "simulated"
"""The default device, simulated."""

REAL = "cuda"
"""A GPU of this machine; `cuda:1` is its second one."""


def real_driver(gpu: str) -> CudaDriver | None:
    """The driver of a GPU of this machine, one for all programs; None where a simulated one is named.

    Raises `HloError` HLO0820 where there is no such GPU, or nothing to drive it with.
    """
    name, _, ordinal = gpu.partition(":")
    if name != REAL:
        return None
    if ordinal and not ordinal.isdigit():
        raise error("HLO0800", f"`{gpu}` names no GPU", help="cuda, cuda:0, cuda:1 …")
    return _driver(int(ordinal or 0))


@functools.lru_cache(maxsize=1024)
def _driver(ordinal: int) -> CudaDriver:
    return real.CudaDriver(ordinal)


def device_of(gpu: str, flags: Flags) -> GpuDevice:
    """The device that is named, or that `--xla_gpu_target_config_filename` describes where none is.

    `--xla_gpu_deterministic_ops` and `--xla_gpu_exclude_nondeterministic_ops` both make its code deterministic.
    Raises `HloError` HLO0800 and HLO0801 for devices that are not known, what `real_driver` raises for `cuda`.
    """
    options = flags.options
    described = options.xla_gpu_target_config_filename
    if (driver := real_driver(gpu)) is not None:
        found = driver.device
    elif described and gpu in ("", SIMULATED):
        data, name = read_file(described)
        found = read_device(data.decode(errors="replace"), name)
    else:
        found = device(DEFAULT if gpu in ("", SIMULATED) else gpu)
    is_deterministic = (
        options.xla_gpu_deterministic_ops or options.xla_gpu_exclude_nondeterministic_ops
    )
    return replace(found, is_deterministic=is_deterministic)
