"""`--print-analysis`: analyses of a module as text or JSON, in place of the module."""

from __future__ import annotations

import json

from mlirhlo.cli import inputs
from mlirhlo.cli.report import usage_error
from mlirhlo.formats import Loaded


def render(loaded: Loaded, names: str, *, as_json: bool) -> bytes:
    """The analyses named, separated by commas. Raises `UsageError` HLO0502 for an unknown one."""
    from mlirhlo.analysis.reports import REPORTS, as_text
    from mlirhlo.dialects.hlo.build import paused_gc

    asked = [name.strip() for name in names.split(",")]
    for name in asked:
        if name not in REPORTS:
            raise usage_error(
                f"unknown analysis '{name}'", help=f"there are {', '.join(sorted(REPORTS))}"
            )
    module = inputs.as_hlo(loaded).module if inputs.is_stablehlo(loaded) else loaded.module
    with paused_gc():  # what analyses make lives until it is written
        reports = {name: REPORTS[name](module) for name in asked}
        text = json.dumps(reports, indent=1) if as_json else as_text(reports)
    return f"{text}\n".encode()
