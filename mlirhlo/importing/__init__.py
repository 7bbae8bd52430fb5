"""Imports inside of functions: one thread at a time, and quick.

A package imports its modules, and a module waits for its package. Of two threads that begin such imports at
different ends each waits for the other; Python notices that and hands out modules that are half made. Where
threads may make their first calls, imports therefore stand under `ALONE`.

`data_classes`, `late_data` and `operations` take away most of what an import of the package costs beside reading its
modules. The decorators of data classes, operations and attributes are others only while `ALONE` is held: for other
users of xDSL they are what they were.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from threading import RLock

from mlirhlo.importing import data_classes, late_data
from mlirhlo.importing.late import Late


class _Alone:
    """A lock for imports; the garbage collector, which has nothing to find in them, is off meanwhile."""

    __slots__ = ("_collects", "_depth", "_is_tool", "_lock", "_switches")

    def __init__(self) -> None:
        self._lock = RLock()
        self._depth = 0
        self._collects = False
        self._is_tool = False
        self._switches = list[Callable[[bool], None]]()

    def in_tool(self) -> None:
        """All imports of this process are ours: what `while_held` switches on stays on."""
        self._is_tool = True
        self._switch(True)

    def while_held(self, switch: Callable[[bool], None]) -> None:
        """Calls `switch(True)` whenever imports begin, `switch(False)` when they end."""
        self._switches.append(switch)
        switch(self._is_tool or self._depth > 0)

    def _switch(self, on: bool) -> None:
        for switch in self._switches:
            switch(on or self._is_tool)

    def __enter__(self) -> None:
        self._lock.acquire()
        if not self._depth:
            self._collects = gc.isenabled()
            gc.disable()
            self._switch(True)
        self._depth += 1

    def __exit__(self, *exception: object) -> None:
        self._depth -= 1
        if not self._depth:
            if self._collects:
                _let_age()
                gc.enable()
            self._switch(False)
        self._lock.release()


def _let_age() -> None:
    """Makes all objects old, as a collection would that finds nothing: modules and classes are no garbage."""
    if not gc.get_freeze_count():  # what the process froze stays frozen
        gc.freeze()
        gc.unfreeze()


ALONE = _Alone()
"""Held while modules are imported that others import, too."""

LATE = Late(ALONE)
"""Held at the top of a file around imports of modules that are loaded when they are first used."""

ALONE.while_held(data_classes.keep_code())
ALONE.while_held(late_data.switch)
