"""Two modules side by side on a page of html: no script, no network."""

from __future__ import annotations

from collections.abc import Iterator

from mlirhlo.debug.diff.modules import InstructionDiff, ModuleDiff
from mlirhlo.debug.page import html_page, html_text

_STYLE = """
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
    counts = ", ".join(f"{count} {kind}" for kind, count in diff.counts.items() if count)
    header = [f"<p>header: {html_text(str(change))}</p>\n" for change in diff.header]
    body = (f"<p>{counts}</p>\n", *header, *_computations(diff))
    return html_page(f"{names[0]} and {names[1]}", _STYLE, body)


def _computations(diff: ModuleDiff) -> Iterator[str]:
    groups: dict[str, list[InstructionDiff]] = {}
    for each in diff.instructions:
        groups.setdefault(each.computation_after or each.computation_before, []).append(each)
    for name, rows in groups.items():
        is_open = " open" if any(row.kind != "unchanged" for row in rows) else ""
        yield f"<details{is_open}><summary>{html_text(name)}</summary><table>\n"
        for row in rows:
            notes = "".join(f"<small>{html_text(str(change))}</small>" for change in row.changes)
            if row.kind == "moved":
                notes = f"<small>from {html_text(row.computation_before)}</small>"
            cells = f"<td>{html_text(row.before)}</td><td>{html_text(row.after)}{notes}</td>"
            yield f'<tr class="{row.kind}">{cells}</tr>\n'
        yield "</table></details>\n"
