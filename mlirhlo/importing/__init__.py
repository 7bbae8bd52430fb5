"""Imports inside of functions: one thread at a time, and quick.

A package imports its modules, and a module waits for its package. Of two threads that begin such imports at
different ends each waits for the other; Python notices that and hands out modules that are half made. Where
threads may make their first calls, imports therefore stand under `ALONE`.

`data_classes` and `operations` take away most of what an import of the package costs beside reading its modules.
"""

from __future__ import annotations

import gc
from threading import RLock

from mlirhlo.importing import data_classes


class _Alone:
    """A lock for imports; the garbage collector, which has nothing to find in them, is off meanwhile."""

    __slots__ = ("_collects", "_depth", "_lock")

    def __init__(self) -> None:
        self._lock = RLock()
        self._depth = 0
        self._collects = False

    def __enter__(self) -> None:
        self._lock.acquire()
        if not self._depth:
            self._collects = gc.isenabled()
            gc.disable()
        self._depth += 1

    def __exit__(self, *exception: object) -> None:
        self._depth -= 1
        if not self._depth and self._collects:
            gc.enable()
        self._lock.release()


ALONE = _Alone()
"""Held while modules are imported that others import, too."""

data_classes.keep_code()
