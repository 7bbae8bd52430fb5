"""What kernels ask of the chip: `get_tpu_info`. The names are those of `pltpu`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from mlirhlo.diagnostics import error
from mlirhlo.mosaic.language.elements import DTypeLike, as_dtype, bits_of, short_name
from mlirhlo.mosaic.target.generations import generation_of


class ChipVersion(Enum):
    """The chips that kernels can be checked for."""

    TPU_V4 = "v4"
    TPU_V5E = "v5e"
    TPU_V5P = "v5p"
    TPU_V6E = "v6e"
    TPU_7X = "7x"

    @property
    def generation(self) -> str:
        """As `Kernel.check` names it."""
        return "tpu7x" if self is ChipVersion.TPU_7X else self.value

    @property
    def is_lite(self) -> bool:
        """Whether it has one TensorCore."""
        return self in (ChipVersion.TPU_V5E, ChipVersion.TPU_V6E)

    @property
    def supports_megacore(self) -> bool:
        """Whether both of its TensorCores can be one device."""
        return self in (ChipVersion.TPU_V4, ChipVersion.TPU_V5P)

    @property
    def num_physical_tensor_cores_per_chip(self) -> int:
        """One or two."""
        return 1 if self.is_lite else 2


class Tiling(Enum):
    """How HBM is cut into tiles."""

    COMPACT = (8, 128)
    SPARSE_CORE = (8,)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a tile."""
        found: tuple[int, ...] = self.value
        return found


@dataclass(frozen=True, slots=True)
class TpuInfo:
    """One TensorCore of a chip; rates are per second, 0 where there are no such units."""

    chip_version: ChipVersion
    generation: int
    num_cores: int
    """TensorCores of a device."""
    num_mxus: int
    hbm_capacity_bytes: int
    mem_bw_bytes_per_second: int
    bf16_ops_per_second: int
    int8_ops_per_second: int
    fp8_ops_per_second: int
    int4_ops_per_second: int
    cmem_capacity_bytes: int = 0
    num_accumulators: int = 0
    num_lanes: int = 128
    num_sublanes: int = 8

    @property
    def vmem_capacity_bytes(self) -> int:
        """Vector memory."""
        return generation_of(self.chip_version.generation).vmem_bytes

    @property
    def smem_capacity_bytes(self) -> int:
        """Scalar memory."""
        return generation_of(self.chip_version.generation).smem_bytes

    @property
    def mxu_column_size(self) -> int:
        """Rows and columns of a matrix unit."""
        return generation_of(self.chip_version.generation).mxu

    @property
    def is_lite(self) -> bool:
        """Whether the chip has one TensorCore."""
        return self.chip_version.is_lite

    @property
    def is_megacore(self) -> bool:
        """Whether a device has two TensorCores."""
        return self.num_cores > 1

    @property
    def is_split_chip(self) -> bool:
        """Whether a chip's two TensorCores are two devices."""
        return self.num_cores == 1 and not self.is_lite

    def is_matmul_supported(self, lhs_dtype: DTypeLike, rhs_dtype: DTypeLike) -> bool:
        """Whether a matrix unit multiplies elements of these types as they are."""
        pair = [short_name(as_dtype(dtype)) for dtype in (lhs_dtype, rhs_dtype)]
        return any(pair[0] in lhs and pair[1] in rhs for lhs, rhs in _PRODUCTS[self.generation])

    def get_sublane_tiling(self, dtype: DTypeLike) -> int:
        """Rows of a tile in HBM."""
        bits = bits_of(as_dtype(dtype))
        is_plain = bits == 32 or (bits == 16 and self.generation < 7)
        return self.num_sublanes * (1 if is_plain else 32 // bits)


_WIDE = ("f32", "bf16")
_PRODUCTS: Mapping[int, tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]] = {
    4: ((_WIDE, (*_WIDE, "s8")),),
    **dict.fromkeys(
        (5, 6),
        (
            ((*_WIDE, "f8e5m2", "f8e4m3b11fnuz"), (*_WIDE, "f8e5m2", "f8e4m3b11fnuz")),
            (("u8", "s8"), ("u8", "s8")),
            (("u4", "s4"), ("u4", "s4")),
        ),
    ),
    7: ((_WIDE, _WIDE), ((*_WIDE, "f8e5m2", "f8e4m3fn"), ("f8e5m2", "f8e4m3fn"))),
}
"""By generation, element types of left and right sides."""

_BILLION, _TRILLION = 10**9, 10**12
# Chips, and what both cores of one share. Per chip: HBM in MB, its GB/s, then 10^12 op/s by type.
_ROWS: Mapping[ChipVersion, tuple[int, int, int, int, int, int, int]] = {
    ChipVersion.TPU_V4: (4, 34_400, 1230, 275, 0, 0, 0),
    ChipVersion.TPU_V5E: (4, 17_200, 820, 197, 394, 0, 788),
    ChipVersion.TPU_V5P: (4, 103_000, 2460, 459, 918, 0, 1840),
    ChipVersion.TPU_V6E: (2, 34_400, 1640, 920, 1840, 920, 3680),
    ChipVersion.TPU_7X: (2, 206_000, 7400, 2310, 0, 4600, 0),
}


def get_tpu_info_for_chip(
    chip_version: ChipVersion, num_tensor_cores_per_logical_device: int = 1
) -> TpuInfo:
    """What a chip has. Raises `HloError` HLO0749 for cores that are no one device."""
    cores = num_tensor_cores_per_logical_device
    if cores != 1 and not (cores == 2 and chip_version.supports_megacore):
        raise error(
            "HLO0749",
            f"{chip_version.generation} has no devices of {cores} TensorCores",
            help="1; v4 and v5p have devices of 2 too",
        )
    mxus, hbm, bandwidth, *rates = _ROWS[chip_version]
    share = chip_version.num_physical_tensor_cores_per_chip
    bf16, int8, fp8, int4 = (rate * _TRILLION // share for rate in rates)
    is_v4, is_v7 = chip_version is ChipVersion.TPU_V4, chip_version is ChipVersion.TPU_7X
    return TpuInfo(
        chip_version,
        generation_of(chip_version.generation).number,
        cores,
        mxus,
        hbm * 10**6 // share,
        bandwidth * _BILLION // share,
        bf16,
        int8,
        fp8,
        int4,
        cmem_capacity_bytes=67_000_000 if is_v4 else 0,
        num_accumulators=128 if is_v7 else 0,
    )


def get_tpu_info(generation: str = "v5e") -> TpuInfo:
    """What a generation has: without a TPU there is no current one, so it is named.

    Raises `HloError` HLO0749 for one that is not known.
    """
    generation_of(generation)
    chip = next(one for one in ChipVersion if one.generation == generation)
    return get_tpu_info_for_chip(chip)


def is_tpu_device() -> bool:
    """Whether kernels run on a TPU: never here."""
    return False


__all__ = [
    "ChipVersion",
    "Tiling",
    "TpuInfo",
    "get_tpu_info",
    "get_tpu_info_for_chip",
    "is_tpu_device",
]
