"""One page about a folder of dumps: modules, what their passes did, their files. No script, no network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator
from html import escape
from typing import TypeAlias

from mlirhlo.debug.index.changes import PassChange, changes
from mlirhlo.debug.index.folder import Dump, DumpedModule
from mlirhlo.debug.links import link_to

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 2px 12px 2px 0; vertical-align: top; }
th, td { border-bottom: 1px solid #8883; }
h1 { overflow-wrap: anywhere; }
div { scroll-margin-top: 3rem; }
a { display: inline-block; max-width: 56ch; overflow-wrap: break-word; vertical-align: top; }
th { font-weight: 600; position: sticky; top: 0; background: Canvas; }
td.n, th.n { text-align: right; white-space: nowrap; }
details { margin: .6rem 0; border: 1px solid #8884; border-radius: 8px; padding: .4rem 1rem; }
summary { cursor: pointer; font-weight: 600; }
.main { background: #f5b94122; } .faint { opacity: .65; }
.add { color: #1e8e3e; } .gone { color: #d93025; } .alter { color: #c77700; } .shift { color: #1967d2; }
@media (max-width: 50rem) { div { overflow-x: auto; } }
"""


_Link: TypeAlias = Callable[..., str]
"""From a path below the folder, and a text where it is not the path, to markup."""


def print_report(dump: Dump, page: str = "") -> str:
    """The page, for a file of the name `page`, or for one in the folder: links lead from there."""

    def link(path: str, text: str = "") -> str:
        return f'<a href="{escape(link_to(path, dump.folder, page))}">{_text(text or path)}</a>'

    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return "".join(
        (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
            f"<title>Dumps</title><style>{_STYLE}</style></head><body>\n",
            f"<h1>Dumps in {_text(dump.folder)}</h1>\n",
            *_modules(dump),
            *(
                part
                for number, module in enumerate(dump.modules)
                for part in _module(number, module, link)
            ),
            *_others(dump, link),
            "</body></html>\n",
        )
    )


def _modules(dump: Dump) -> Iterator[str]:
    main = dump.main
    if main is not None:
        yield f"<p>Likely the program: <b>{_text(main[0].label)}</b> ({_text(main[1])}).</p>\n"
    yield "<div><table><tr><th>module<th>platform"
    yield "".join(
        f'<th class="n">{title}'
        for title in ("passes", "instructions", "files", "bytes", "seconds")
    )
    for number, module in enumerate(dump.modules):
        mark = ' class="main"' if main is not None and module is main[0] else ""
        count = module.instructions
        cells = (
            module.passes,
            "" if count is None else count,
            len(module.files),
            module.size_bytes,
            f"{module.seconds:.1f}",
        )
        where = f'<span class="faint">{_text(module.directory)}/</span>' if module.directory else ""
        yield f'<tr{mark}><td>{where}<a href="#m{number}">{_text(module.label)}</a><td>{_text(module.platform)}'
        yield "".join(f'<td class="n">{cell}' for cell in cells)
    yield "</table></div>\n"


def _module(number: int, module: DumpedModule, link: _Link) -> Iterator[str]:
    # Browsers open what a link leads into; the element itself would stay closed.
    yield f'<details><summary>{_text(module.label)}</summary><div id="m{number}">\n'
    found = list(changes(module))
    if found:
        yield "<h3>What changed when</h3><table><tr><th>step<th>pass<th>pipeline"
        yield "".join(
            f'<th class="n">{title}' for title in ("added", "removed", "changed", "moved")
        )
        yield '<th class="n">instructions<th>opcodes'
        yield from (_change(change, link) for change in found)
        yield "</table>\n"
    yield '<h3>Files</h3><table><tr><th>file<th class="n">bytes<th>what it is'
    for file in module.files:
        yield f'<tr><td>{link(file.path)}<td class="n">{file.size_bytes}<td>{_text(file.name.meaning)}'
    yield "</table></div></details>\n"


def _change(change: PassChange, link: _Link) -> str:
    step = "" if change.step is None else f"{change.step:04d}"
    counts = "".join(
        f'<td class="n {name}">{count or ""}'
        for name, count in (
            ("add", change.added),
            ("gone", change.removed),
            ("alter", change.changed),
            ("shift", change.moved),
        )
    )
    opcodes = ", ".join(f"{count:+d} {opcode}" for opcode, count in change.opcodes[:8])
    total = "?" if change.instructions is None else change.instructions
    mark = "" if change.has_changed else ' class="faint"'
    return (
        f"<tr{mark}><td>{step}<td>{link(change.file, change.name)}<td>{_text(change.pipeline)}"
        f'{counts}<td class="n">{total}<td>{_text(change.note or opcodes)}'
    )


def _others(dump: Dump, link: _Link) -> Iterator[str]:
    if dump.others:
        yield f"<details><summary>{len(dump.others)} other files</summary><div><table>"
        for file in dump.others:
            yield f'<tr><td>{link(file.path)}<td class="n">{file.size_bytes}'
        yield "</table></div></details>\n"


def _text(text: str) -> str:
    """Text of any content as text of the page."""
    return escape("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text))
