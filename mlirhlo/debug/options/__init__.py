"""XLA's flags: one frozen dataclass, its sources, and how the environment is read."""

from __future__ import annotations

from mlirhlo.debug.options.fields import DebugOptions, asks_for_dumps
from mlirhlo.debug.options.process import process_flags
from mlirhlo.debug.options.sources import Flags, pass_control, resolve, wanted_passes

__all__ = [
    "DebugOptions",
    "Flags",
    "asks_for_dumps",
    "pass_control",
    "process_flags",
    "resolve",
    "wanted_passes",
]
