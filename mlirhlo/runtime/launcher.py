"""What a launcher of MPI says of the processes that it started, without MPI."""

from __future__ import annotations

import os

_NAMES = (("PMI_RANK", "PMI_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"))
"""Of this rank and of their count: MPICH's and Intel's, Open MPI's."""


def launched() -> int:
    """How many ranks there are, this one among them; 1 without a launcher."""
    return max(int(os.environ.get(size, "1")) for _, size in _NAMES)


def own_rank() -> int:
    """The number of this rank."""
    return max(int(os.environ.get(rank, "0")) for rank, _ in _NAMES)


def owners_of(devices: int) -> list[int]:
    """By device of a machine, the rank that runs it, as many each; none where this process runs them all."""
    ranks = launched()
    if ranks == 1 or devices % ranks:
        return []
    return [device * ranks // devices for device in range(devices)]
