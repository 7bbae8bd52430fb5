"""What each TPU generation has: memories, and the abilities that kernels can trip over.

Sources: the sizes that the real compiler names in its out-of-memory messages, and its verdicts on
one-op kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mlirhlo.diagnostics import error

KIB, MIB = 1 << 10, 1 << 20


@dataclass(frozen=True, slots=True)
class Generation:
    """One TensorCore of a chip."""

    name: str
    number: int
    """As the compiler counts: v4 is 4, v5e and v5p are 5, v6e is 6, tpu7x is 7."""
    vmem_bytes: int
    """Vector memory of one core."""
    scoped_vmem_bytes: int
    """How much of it one kernel may use unless its call says otherwise."""
    smem_bytes: int
    """Scalar memory of one core."""
    cores: int
    """Cores that share a `core_parallel` dimension."""
    mxu: int
    """Rows and columns of a matrix unit."""
    counts_copies_on_plain_semaphores: bool
    """Whether a copy may signal a `!tpu.semaphore`."""
    copied_lanes: int
    """Words that a part of a row is copied in."""

    @property
    def permutes_sublanes(self) -> bool:
        """Whether a register's rows can be picked by a vector of indices."""
        return self.number >= 5

    @property
    def permutes_packed(self) -> bool:
        """Whether lanes of 16-bit elements can be picked by indices."""
        return self.number >= 6

    @property
    def rotates_by_rows(self) -> bool:
        """Whether each row can be rotated by another amount."""
        return self.number >= 5


GENERATIONS: Mapping[str, Generation] = {
    found.name: found
    for found in (
        Generation("v4", 4, 16 * MIB, 16 * MIB, 1024 * KIB, 1, 128, False, 128),
        Generation("v5e", 5, 128 * MIB, 16 * MIB, 1024 * KIB, 1, 128, False, 128),
        Generation("v5p", 5, 64 * MIB, 16 * MIB, 1024 * KIB, 2, 128, True, 8),
        Generation("v6e", 6, 128 * MIB, 32 * MIB, 1024 * KIB, 1, 256, True, 8),
        Generation("tpu7x", 7, 64 * MIB, 32 * MIB, 1024 * KIB, 1, 256, True, 8),
    )
}
"""The generations that kernels can be checked for."""


def generation_of(name: str) -> Generation:
    """The generation of that name. Raises `HloError` HLO0749 for others."""
    found = GENERATIONS.get(name)
    if found is None:
        raise error(
            "HLO0749",
            f"there is no TPU generation '{name}' to check for",
            help=f"one of {', '.join(GENERATIONS)}",
        )
    return found
