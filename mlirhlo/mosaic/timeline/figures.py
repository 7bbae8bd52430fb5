"""The modelled machine of each TPU generation: clock, units, memories, links.

Every number is a published one or follows from published ones; `docs/kernel-timeline.md` names the source
of each, and says which are carried over from the one generation that was measured in public (v4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mlirhlo.diagnostics import error

GIGA = 1e9


@dataclass(frozen=True, slots=True)
class Chip:
    """One TensorCore, and what it shares with the others of its chip. Times are in cycles of `hertz`."""

    name: str
    hertz: float
    cores: int
    """TensorCores of a chip, which share its HBM."""
    mxu: int
    """Rows and columns of a matrix unit: smaller operands are padded to them."""
    macs: int
    """Products of bf16 numbers that a core's matrix units add up in a cycle."""
    narrow: Mapping[str, float]
    """Speed of products of narrower types against bf16's; others run as bf16."""
    alus: int
    """Vector operations that start in a cycle."""
    has_bf16_alus: bool
    """Whether arithmetic works on packed bf16; it is widened to f32 otherwise."""
    hbm_bytes_per_second: float
    """Of a chip, as published."""
    link_bytes_per_second: float
    """Of a link to a neighbour, one way."""

    read_seconds: float = 461e-9
    """From the start of a copy out of HBM to its first byte: 484 cycles of v4."""
    write_seconds: float = 398e-9
    """The same of a copy into HBM: 418 cycles of v4."""
    link_seconds: float = 500e-9
    """The same of a copy to a neighbour, and what a signal takes."""
    hbm_share: float = 0.79
    """Part of the published bandwidth that copies reach."""
    onchip_cycles: int = 310
    """From the start of a copy within the chip to its first byte."""
    onchip_bytes: int = 2048
    """Bytes that such a copy moves in a cycle."""
    loads: int = 1
    stores: int = 1
    xlus: int = 2

    @property
    def hbm_bytes(self) -> float:
        """Bytes that all copies of a chip move in a cycle, as published."""
        return self.hbm_bytes_per_second / self.hertz

    @property
    def link_bytes(self) -> float:
        """Bytes that a link moves in a cycle."""
        return self.link_bytes_per_second / self.hertz

    def cycles(self, seconds: float) -> float:
        """So many seconds in cycles."""
        return seconds * self.hertz


_I8: Mapping[str, float] = {"i8": 2.0, "i4": 4.0}
_F8: Mapping[str, float] = {"f8E4M3FN": 2.0, "f8E5M2": 2.0}

CHIPS: Mapping[str, Chip] = {
    chip.name: chip
    for chip in (
        Chip("v4", 1.05 * GIGA, 2, 128, 4 * 128**2, {}, 2, False, 1230 * GIGA, 45 * GIGA),
        Chip("v5e", 1.5 * GIGA, 1, 128, 4 * 128**2, _I8, 4, False, 820 * GIGA, 45 * GIGA),
        Chip("v5p", 1.75 * GIGA, 2, 128, 4 * 128**2, _I8, 4, False, 2460 * GIGA, 90 * GIGA),
        Chip("v6e", 1.75 * GIGA, 1, 256, 4 * 256**2, _I8, 4, True, 1640 * GIGA, 90 * GIGA),
        Chip("tpu7x", 2.2 * GIGA, 2, 256, 4 * 256**2, _F8, 4, True, 7400 * GIGA, 90 * GIGA),
    )
}
"""The generations that kernels can be timed for."""


def chip_of(name: str) -> Chip:
    """The machine of a generation. Raises `HloError` HLO0749 for others."""
    found = CHIPS.get(name)
    if found is None:
        raise error(
            "HLO0749",
            f"there is no TPU generation '{name}' to time kernels for",
            help=f"one of {', '.join(CHIPS)}",
        )
    return found
