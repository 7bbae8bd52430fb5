"""`--print-analysis`: analyses of a module as text or JSON, in place of the module."""

from __future__ import annotations

import json

from mlirhlo.cli import inputs
from mlirhlo.cli.report import usage_error
from mlirhlo.formats import Loaded
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.analysis import reports as analysis_reports
    from mlirhlo.dialects.hlo import build


def render(loaded: Loaded, names: str, *, as_json: bool) -> bytes:
    """The analyses named, separated by commas. Raises `UsageError` HLO0502 for an unknown one."""
    asked = [name.strip() for name in names.split(",")]
    for name in asked:
        if name not in analysis_reports.REPORTS:
            raise usage_error(
                f"unknown analysis '{name}'",
                help=f"there are {', '.join(sorted(analysis_reports.REPORTS))}",
            )
    module = inputs.as_hlo(loaded).module if inputs.is_stablehlo(loaded) else loaded.module
    with build.paused_gc():  # what analyses make lives until it is written
        reports = {name: analysis_reports.REPORTS[name](module) for name in asked}
        text = json.dumps(reports, indent=1) if as_json else analysis_reports.as_text(reports)
    return f"{text}\n".encode()
