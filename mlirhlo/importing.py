"""Imports inside of functions, one thread at a time.

A package imports its modules, and a module waits for its package. Of two threads that begin such imports at
different ends each waits for the other; Python notices that and hands out modules that are half made. Where
threads may make their first calls, imports therefore stand under `ALONE`.
"""

from __future__ import annotations

from threading import RLock

ALONE = RLock()
"""Held while modules are imported that others import, too."""
