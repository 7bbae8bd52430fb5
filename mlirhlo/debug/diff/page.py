"""Two modules side by side on a page of html: no script, no network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from html import escape

from mlirhlo.debug.diff.modules import InstructionDiff, ModuleDiff

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 1.5rem; }
table { border-collapse: collapse; width: 100%; table-layout: fixed; font: 12px/1.5 ui-monospace, monospace; }
td { vertical-align: top; padding: 1px 8px; overflow-wrap: anywhere; width: 50%; }
summary { cursor: pointer; font-weight: 600; }
.added td + td, .changed td + td { background: #1e8e3e22; }
.removed td:first-child, .changed td:first-child { background: #d9302522; }
.moved td { background: #1967d222; }
small { color: #c77700; display: block; }
"""


def print_page(diff: ModuleDiff, names: tuple[str, str]) -> str:
    """The page: a table for each computation, folded where nothing is different."""
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    title = f"{_text(names[0])} and {_text(names[1])}"
    counts = ", ".join(f"{count} {kind}" for kind, count in diff.counts.items() if count)
    return "".join(
        (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
            f"<title>{title}</title><style>{_STYLE}</style></head><body>\n",
            f"<h1>{title}</h1>\n<p>{counts}</p>\n",
            *(f"<p>header: {_text(str(change))}</p>\n" for change in diff.header),
            *_computations(diff),
            "</body></html>\n",
        )
    )


def _computations(diff: ModuleDiff) -> Iterator[str]:
    groups: dict[str, list[InstructionDiff]] = {}
    for each in diff.instructions:
        groups.setdefault(each.computation_after or each.computation_before, []).append(each)
    for name, rows in groups.items():
        is_open = " open" if any(row.kind != "unchanged" for row in rows) else ""
        yield f"<details{is_open}><summary>{_text(name)}</summary><table>\n"
        for row in rows:
            notes = "".join(f"<small>{_text(str(change))}</small>" for change in row.changes)
            if row.kind == "moved":
                notes = f"<small>from {_text(row.computation_before)}</small>"
            yield f'<tr class="{row.kind}"><td>{_text(row.before)}</td><td>{_text(row.after)}{notes}</td></tr>\n'
        yield "</table></details>\n"


def _text(text: str) -> str:
    shown = "".join(c if c.isprintable() else "·" for c in text)
    return escape(shown)
