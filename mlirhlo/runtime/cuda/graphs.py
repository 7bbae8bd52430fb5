"""CUDA graphs of what is put on a stream, by NVIDIA's driver in the context that pycuda made current."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

from mlirhlo.diagnostics import error

_THREAD_LOCAL = 1
"""Capture mode: only this thread must not do what a capture forbids."""


@functools.cache
def library() -> Any:
    """NVIDIA's driver. Raises `HloError` HLO0820."""
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as problem:
        raise error("HLO0820", f"NVIDIA's driver does not load: {problem}") from None


class Graphs:
    """What one stream records."""

    def __init__(self, stream: int) -> None:
        """`stream`: its handle."""
        self._stream = ctypes.c_void_p(stream)

    def begin(self) -> None:
        """From now on the stream's work is recorded, and not done."""
        call("cuStreamBeginCapture_v2", self._stream, _THREAD_LOCAL)

    def end(self) -> Callable[[], None]:
        """What does all that was recorded, in the stream."""
        graph, runs = ctypes.c_void_p(), ctypes.c_void_p()
        call("cuStreamEndCapture", self._stream, ctypes.byref(graph))
        call("cuGraphInstantiateWithFlags", ctypes.byref(runs), graph, ctypes.c_ulonglong(0))
        call("cuGraphDestroy", graph)
        return functools.partial(call, "cuGraphLaunch", runs, self._stream)


def call(name: str, *arguments: Any) -> None:
    """Calls the driver. Raises `HloError` HLO0822 for a result that is no success."""
    code = getattr(library(), name)(*arguments)
    if code:
        raise error("HLO0822", f"{name} failed with CUDA's error {code}")
