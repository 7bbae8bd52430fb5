"""Which GPU code is made for: by name, or by a file that describes it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mlirhlo.diagnostics import error
from mlirhlo.formats import read_file
from mlirhlo.lowering.gpu.devices import DEFAULT, GpuDevice, device, read_device

if TYPE_CHECKING:
    from mlirhlo.debug.options import Flags

SIMULATED = "simulated"
"""The default device, simulated."""

REAL = "cuda"
"""A GPU of this machine."""


def device_of(gpu: str, flags: Flags) -> GpuDevice:
    """The device that is named, or that `--xla_gpu_target_config_filename` describes where none is.

    `--xla_gpu_deterministic_ops` and `--xla_gpu_exclude_nondeterministic_ops` both make its code deterministic.
    Raises `HloError` HLO0800 and HLO0801 for devices that are not known, HLO0820 for real ones.
    """
    options = flags.options
    described = options.xla_gpu_target_config_filename
    if gpu == REAL:
        raise error(
            "HLO0820",
            "GPUs of this machine are not driven yet",
            help=f"{SIMULATED}, or a device by its name, runs the same PTX on the simulator",
        )
    if described and gpu in ("", SIMULATED):
        data, name = read_file(described)
        found = read_device(data.decode(errors="replace"), name)
    else:
        found = device(DEFAULT if gpu in ("", SIMULATED) else gpu)
    is_deterministic = (
        options.xla_gpu_deterministic_ops or options.xla_gpu_exclude_nondeterministic_ops
    )
    return replace(found, is_deterministic=is_deterministic)
