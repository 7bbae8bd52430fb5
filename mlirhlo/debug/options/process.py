"""The flags of this process: read when they are first needed, once, as XLA reads them.

`--xla_flags_reset=true` in the variable at that moment has it read again for every compilation.
"""

from __future__ import annotations

import os
import threading

from mlirhlo.debug.options.sources import LIBTPU_INIT_ARGS, XLA_FLAGS, Flags, resolve
from mlirhlo.diagnostics import Diagnostic, Severity

_lock = threading.Lock()
_read: list[tuple[tuple[str, str], Flags]] = []
"""What the variables held and gave; empty before the first use."""
_told: set[tuple[str, str]] = set()


def _variables() -> tuple[str, str]:
    return os.environ.get(XLA_FLAGS, ""), os.environ.get(LIBTPU_INIT_ARGS, "")


def process_flags() -> Flags:
    """Flags of the environment. Raises `HloError` as `resolve` does, every time."""
    now = _variables()
    with _lock:
        if _read:
            before, flags = _read[0]
            if before == now:
                return flags
            if not flags.options.xla_flags_reset:
                _tell_ignored(now)
                return flags
        flags = resolve(environ={XLA_FLAGS: now[0], LIBTPU_INIT_ARGS: now[1]})
        _read[:] = [(now, flags)]
        report(flags)
        return flags


def _tell_ignored(now: tuple[str, str]) -> None:
    if now not in _told:
        _told.add(now)
        message = f"{XLA_FLAGS} has changed since it was read, which XLA ignores, and so do we"
        hint = "--xla_flags_reset=true in its first value has it read for every compilation"
        _log(Diagnostic("HLO0522", message, help=hint, severity=Severity.WARNING))


def report(flags: Flags) -> None:
    """Logs what there is to say of flags."""
    for problem in flags.problems:
        _log(problem)


def _log(problem: Diagnostic) -> None:
    import logging  # most programs have nothing to say

    logging.getLogger("mlirhlo.flags").warning("%s", problem)


def forget() -> None:
    """Makes the next use read the environment again, as a new process does."""
    with _lock:
        _read.clear()
        _told.clear()
