"""`hlo-diff`: what is different between two modules, or between two folders of dumps."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import mlirhlo
from mlirhlo.cli.inputs import as_hlo, read_input
from mlirhlo.cli.options import flag, help_text, parse
from mlirhlo.cli.report import DONE, run_tool, usage_error
from mlirhlo.cli.run_hlo_module import MISCOMPARED
from mlirhlo.cli.trying import ProgressLine
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo import formats
    from mlirhlo.debug import diff as debug_diff
    from mlirhlo.debug.diff import folders, page
    from mlirhlo.debug.trials import texts


if TYPE_CHECKING:
    from mlirhlo.debug.diff import FolderDiff, InstructionDiff, ModuleDiff

PURPOSE = "hlo-diff: what is different between two modules, or between two folders of dumps"
USAGE = "hlo-diff BEFORE AFTER [options]    (two files of any format, or two folders)"
EXAMPLES = (
    "hlo-diff a.hlo b.hlo                instructions added, removed, changed, moved",
    "hlo-diff a.hlo b.hlo --html=d.html  both side by side",
    "hlo-diff dumps_old dumps_new        a table by program",
)
_MARKS = {"added": "+", "removed": "-", "changed": "~", "moved": ">", "unchanged": " "}


@dataclass
class Options:
    """The command line of hlo-diff."""

    html: str = flag("", group="Output", metavar="FILE", help="both modules side by side on a page")
    json: bool = flag(False, group="Output", help="the result as JSON")
    all: bool = flag(False, "a", group="Output", help="unchanged instructions and programs too")
    quiet: bool = flag(False, "q", group="Output", help="no progress")
    help: bool = flag(False, "h", group="Help", help="")
    version: bool = flag(False, "v", group="Help", help="")
    debug: bool = flag(False, group="Help", help="Python traceback of an error")


def main(argv: Sequence[str] | None = None) -> int:
    """The console script."""
    return run_tool("hlo-diff", _run, argv)


def _run(argv: Sequence[str]) -> int:
    parsed = parse(Options, argv)
    options, files = parsed.options, parsed.files
    if options.version:
        print(f"hlo-diff of mlirhlo {mlirhlo.__version__}")
        return DONE
    if options.help:
        print(help_text(Options, PURPOSE, USAGE, EXAMPLES, xla=False))
        return DONE
    if len(files) != 2:
        raise usage_error(
            f"two files or folders are compared, {len(files)} given", help="--help shows the usage"
        )
    are_folders = [os.path.isdir(file) for file in files]
    if all(are_folders):
        return _folders(files[0], files[1], options)
    if any(are_folders):
        raise usage_error("a folder is compared with a folder, a file with a file")
    return _modules(files[0], files[1], options)


# ---------------------------------------------------------------- modules


def _modules(before: str, after: str, options: Options) -> int:
    diff = debug_diff.diff_modules(_text(before), _text(after), (before, after))
    if options.html:
        formats.write_file(
            options.html, page.print_page(diff, (before, after)).encode("utf-8", "replace")
        )
    if options.json:
        shown = [asdict(i) for i in diff.instructions if options.all or i.kind != "unchanged"]
        header = [asdict(change) for change in diff.header]
        counts = dict(diff.counts)
        print(json.dumps({"counts": counts, "header": header, "instructions": shown}, indent=1))
    else:
        for line in _lines(diff, everything=options.all):
            print(line)
    return DONE if diff.is_same else MISCOMPARED


def _text(path: str) -> str:
    data, name = read_input(path)
    return texts.module_text(as_hlo(formats.load(data, name=name)).module)


def _lines(diff: ModuleDiff, *, everything: bool) -> Iterator[str]:
    for change in diff.header:
        yield f"header: {change}"
    groups: dict[str, list[InstructionDiff]] = {}
    for each in diff.instructions:
        groups.setdefault(each.computation_after or each.computation_before, []).append(each)
    for name, rows in groups.items():
        shown = [row for row in rows if everything or row.kind != "unchanged"]
        if not shown:
            continue
        yield f"{name}:"
        for row in shown:
            yield f"{_MARKS[row.kind]} {row.after or row.before}"
            if row.kind == "moved":
                yield f"      from {row.computation_before}"
            yield from (f"      {change}" for change in row.changes)
    counts = diff.counts
    yield ", ".join(f"{count} {kind}" for kind, count in counts.items())


# ---------------------------------------------------------------- folders


def _folders(before: str, after: str, options: Options) -> int:
    line = ProgressLine(quiet=options.quiet)
    diff = debug_diff.diff_folders(
        before, after, lambda at, total, name: line.show(name, at, total)
    )
    line.close()
    if options.json:
        shown = [p for p in diff.programs if options.all or p.changed]
        print(json.dumps([{**asdict(p), "changed": p.changed} for p in shown], indent=1))
    else:
        _print_table(diff, everything=options.all)
    return DONE if diff.is_same else MISCOMPARED


def _print_table(diff: FolderDiff, *, everything: bool) -> None:
    rows: list[tuple[str, ...]] = [("program", *folders.COLUMNS, "differing")]
    for program in diff.programs:
        if not everything and not program.changed:
            continue
        if program.before is None or program.after is None:
            where = "only after" if program.before is None else "only before"
            figures = program.after or program.before or {}
            cells = [f"{_number(figures.get(c))}" for c in folders.COLUMNS]
            rows.append((f"{program.name} ({where})", *cells, ""))
            continue
        pairs = [(program.before.get(c), program.after.get(c)) for c in folders.COLUMNS]
        differing = "?" if program.differing is None else str(program.differing)
        rows.append((program.name, *(_cell(a, b) for a, b in pairs), differing))
    if len(rows) > 1:
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        for row in rows:
            cells = [
                row[0].ljust(widths[0]),
                *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)),
            ]
            print("  ".join(cells).rstrip())
    changed = sum(bool(program.changed) for program in diff.programs)
    print(f"{changed} of {len(diff.programs)} programs differ")


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.0f}" if value < 1e6 else f"{value:.4g}"


def _cell(before: float | None, after: float | None) -> str:
    if before == after:
        return _number(after)
    return f"{_number(before)} -> {_number(after)}"


if __name__ == "__main__":
    sys.exit(main())
