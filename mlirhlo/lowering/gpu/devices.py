"""GPUs as data: what kernels are shaped by, read from and written as XLA's `GpuTargetConfigProto` text.

device("h100").sm                     # 'sm_90a'
read_device(text, "h100.pbtxt")       # what XLA dumps as `gpu_target_config.pbtxt`
write_device(device("a100"))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from google.protobuf import text_format

from mlirhlo.diagnostics import error
from mlirhlo.formats.proto.gpu_target_pb2 import GpuTargetConfigProto


@dataclass(frozen=True, slots=True)
class GpuDevice:
    """A GPU. Except the first four, fields have the names of XLA's `GpuDeviceInfoProto`."""

    name: str
    """A short name, by which `device` knows it, or that of the configuration it was read from."""
    description: str
    """The product's name."""
    capability: tuple[int, int]
    """Compute capability: major and minor."""
    ptx_version: tuple[int, int]
    """Version of the PTX that is written for it."""
    core_count: int
    """Multiprocessors."""
    fpus_per_core: int
    clock_rate_ghz: float
    memory_bandwidth: int
    """Bytes a second."""
    l2_cache_size: int
    device_memory_size: int
    shared_memory_per_core: int
    shared_memory_per_block_optin: int
    """The most that a block may have when it is launched with more than the default."""
    threads_per_core_limit: int
    shared_memory_per_block: int = 49152
    """What a block may have by default, which is all that static shared memory may take."""
    threads_per_block_limit: int = 1024
    threads_per_warp: int = 32
    registers_per_core_limit: int = 65536
    registers_per_block_limit: int = 65536
    is_deterministic: bool = field(default=False, compare=False)
    """Whether code for it gives the same bits in every run, as `--xla_gpu_deterministic_ops` asks; no property of the
    product."""

    @property
    def sm(self) -> str:
        """The architecture as LLVM and PTX name it: `sm_90a`."""
        major, minor = self.capability
        return f"sm_{major}{minor}{'a' if major >= 9 else ''}"

    @property
    def blocks_per_cluster_limit(self) -> int:
        """Blocks of a cluster, which see each other's shared memory; 1 where there are no clusters."""
        return 8 if self.capability >= (9, 0) else 1


def _row(
    name: str,
    description: str,
    capability: tuple[int, int],
    ptx_version: tuple[int, int],
    core_count: int,
    fpus_per_core: int,
    clock_rate_ghz: float,
    memory_bandwidth: int,
    l2_cache_size: int,
    device_memory_size: int,
    shared_kilobytes: int,
    threads_per_core_limit: int,
) -> GpuDevice:
    return GpuDevice(
        name,
        description,
        capability,
        ptx_version,
        core_count,
        fpus_per_core,
        clock_rate_ghz,
        memory_bandwidth * 10**9,
        l2_cache_size << 20,
        device_memory_size << 30,
        shared_kilobytes << 10,
        (shared_kilobytes - 1) << 10,  # the system keeps a kilobyte of every block's
        threads_per_core_limit,
    )


DEVICES: Mapping[str, GpuDevice] = {
    row.name: row
    for row in (
        _row("a100", "NVIDIA A100-SXM4-80GB", (8, 0), (7, 8), 108, 64, 1.41, 2039, 40, 80, 164, 2048),
        _row("a6000", "NVIDIA RTX A6000", (8, 6), (7, 8), 84, 128, 1.80, 768, 6, 48, 100, 1536),
        _row("l40s", "NVIDIA L40S", (8, 9), (8, 4), 142, 128, 2.52, 864, 96, 48, 100, 1536),
        _row("h100", "NVIDIA H100 80GB HBM3", (9, 0), (8, 4), 132, 128, 1.98, 3352, 50, 79, 228, 2048),
        _row("b200", "NVIDIA B200", (10, 0), (8, 6), 148, 128, 1.965, 8000, 126, 178, 228, 2048),
        _row("rtx5090", "NVIDIA GeForce RTX 5090", (12, 0), (8, 7), 170, 128, 2.41, 1792, 96, 32, 100, 1536),
    )
}  # fmt: skip
"""Those that have a name here, by it."""

DEFAULT = "h100"


def device(name: str = DEFAULT) -> GpuDevice:
    """A device by its name (`h100`), its product's or its architecture's (`sm_90a`, `sm_90`).

    Raises `HloError` HLO0800 for another name.
    """
    for known in DEVICES.values():
        if name in (known.name, known.description, known.sm, known.sm.removesuffix("a")):
            return known
    names = ", ".join(f"{d.name} ({d.sm})" for d in DEVICES.values())
    raise error("HLO0800", f"no GPU is named `{name}`", help=f"known are {names}")


def name_or_description(described: GpuDevice) -> str:
    """What `device` or `read_device` makes this device of: an option of passes."""
    return described.name if DEVICES.get(described.name) == described else write_device(described)


_SAME = tuple(f.name for f in fields(GpuDevice) if f.compare)[4:]
"""Fields that the proto has under the same names."""


def read_device(text: str, name: str = "<string>") -> GpuDevice:
    """The device that a `GpuTargetConfigProto` in text form describes; `name` is its file's.

    Fields it leaves out are those of the known device of that architecture. Raises `HloError` HLO0801.
    """
    message = GpuTargetConfigProto()
    try:
        text_format.Parse(text, message, allow_unknown_field=True)
    except text_format.ParseError as problem:
        raise error("HLO0801", f"{name}: not a GPU's description: {problem}") from None
    info: Any = message.gpu_device_info
    if not info.HasField("cuda_compute_capability"):
        raise error("HLO0801", f"{name}: the description names no CUDA compute capability")
    capability = (info.cuda_compute_capability.major, info.cuda_compute_capability.minor)
    base = next((d for d in DEVICES.values() if d.capability == capability), None)
    if base is None:
        major, minor = capability
        raise error("HLO0801", f"{name}: no code is made for compute capability {major}.{minor}")
    values = {key: getattr(info, key) or getattr(base, key) for key in _SAME}
    description = message.device_description_str or info.name or base.description
    return GpuDevice(base.name, description, capability, base.ptx_version, **values)


def write_device(described: GpuDevice) -> str:
    """A device as XLA's `GpuTargetConfigProto` in text form."""
    message = GpuTargetConfigProto(
        platform_name="CUDA", device_description_str=described.description
    )
    info: Any = message.gpu_device_info
    for key in _SAME:
        setattr(info, key, getattr(described, key))
    info.block_dim_limit_x, info.block_dim_limit_y, info.block_dim_limit_z = 2**31 - 1, 65535, 65535
    info.cuda_compute_capability.major, info.cuda_compute_capability.minor = described.capability
    return text_format.MessageToString(message)
