"""XLA's flags of a tool: `--debug_options_file`, the environment, the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlirhlo.cli.report import UsageError, report
from mlirhlo.diagnostics import HloError
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.debug import options


if TYPE_CHECKING:
    from mlirhlo.debug.options import Flags


def read_flags(command_line: Sequence[tuple[str, str | None]]) -> Flags:
    """All flags; what there is to say of them goes to standard error.

    Raises `UsageError` HLO0520 and HLO0521 for wrong values and unreadable files of flags, `HloError`
    HLO0503 for a `--debug_options_file` that cannot be read.
    """
    files = [value or "" for name, value in command_line if name == "debug_options_file"]
    flags = [pair for pair in command_line if pair[0] != "debug_options_file"]
    try:
        found = options.resolve(flags, file=files[-1] if files else None)
    except HloError as problem:
        if problem.code in ("HLO0520", "HLO0521"):
            raise UsageError(*problem.diagnostics) from None
        raise
    report(found.problems)
    return found
