"""`--list-passes` and `--help-passes`: passes, their pages and their options."""

from __future__ import annotations

import inspect
import json

from xdsl.passes import get_pass_option_infos

from mlirhlo.rewrites.registry import PassInfo, list_passes


def listing(*, pages: bool, as_json: bool) -> str:
    """All passes: one line each, with `pages` the whole docstring and the options."""
    found = list(list_passes().values())
    if as_json:
        rows = [
            {"name": p.name, "summary": p.summary, "page": _page(p), "options": _options(p)}
            for p in found
        ]
        return json.dumps(rows, indent=1)
    if pages:
        return "\n\n".join(_shown_page(p) for p in found)
    # The few long names stand out of the column instead of moving it.
    width = min(20, max((len(p.name) for p in found), default=0))
    return "\n".join(f"{p.name:<{width}}  {p.summary}" for p in found)


def _page(info: PassInfo) -> str:
    return inspect.cleandoc(info.factory().__doc__ or "")


def _options(info: PassInfo) -> dict[str, str]:
    return {
        option.name.replace("_", "-"): str(option.expected_type)
        for option in get_pass_option_infos(info.factory())
    }


def _shown_page(info: PassInfo) -> str:
    lines = [info.name, *(f"    {line}".rstrip() for line in _page(info).split("\n"))]
    options = _options(info)
    if options:
        lines += ["    Options:", *(f"      {name}: {kind}" for name, kind in options.items())]
    return "\n".join(lines)
