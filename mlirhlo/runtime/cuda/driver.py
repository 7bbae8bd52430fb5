"""What a GPU is to a running program: memory, code, launches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from mlirhlo.lowering.gpu.kernel import Launch

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class Driver(Protocol):
    """One GPU, real or simulated. Addresses are of its memory; 0 is never one."""

    ordinal: int | None
    """Number of the GPU; None of a simulated one, whose memory others cannot reach."""
    keeps_memory: bool
    """Whether a program's buffers are kept between runs, temporaries in one arena. Else each is an allocation of its
    own for one run, so that accesses beyond its end are found."""

    def allocate(self, size: int, name: str) -> int:
        """Memory of some bytes, undefined; `name` is what messages call it. Raises MemoryError."""
        ...

    def free(self, address: int) -> None:
        """Gives memory back."""
        ...

    def write(self, address: int, data: Bytes) -> None:
        """Copies from the host."""
        ...

    def read(self, address: int, size: int) -> Bytes:
        """Copies to the host, when all launches before have ended."""
        ...

    def copy(self, source: int, target: int, size: int) -> None:
        """Copies inside of the device."""
        ...

    def synchronize(self) -> None:
        """Waits until all launches and copies before have ended."""
        ...

    def rounds(self, count: int) -> Iterable[object]:
        """An iterator over `count` rounds of the same launches and copies, between which the host reads nothing.

        A driver may record those of the first round, as a CUDA graph, and replay them for the others.
        """
        ...

    def recorded(self, work: Callable[[], None]) -> Callable[[], None]:
        """Does `work`, launches and copies between which the host reads nothing; what is returned does it again.

        A driver may record it, as a CUDA graph, and replay it.
        """
        ...

    def load(self, ptx: str, name: str) -> Any:
        """A module of PTX, ready to launch; `name` is what messages call its file.

        Raises `HloError` for what the device does not take.
        """
        ...

    def launch(self, code: Any, launch: Launch, addresses: Sequence[int]) -> None:
        """Starts an entry point of loaded code; its parameters are the addresses."""
        ...
