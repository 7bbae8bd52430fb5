"""`hlo-dump`: what lies in a folder of dumps."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

import mlirhlo
from mlirhlo.cli.options import flag, help_text, parse
from mlirhlo.cli.report import DONE, INPUT_AT_FAULT, run_tool, usage_error
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo import formats
    from mlirhlo.debug import index
    from mlirhlo.debug.index import changes as index_changes
    from mlirhlo.debug.index import find as index_find
    from mlirhlo.debug.index import pack as index_pack
    from mlirhlo.debug.index import report


if TYPE_CHECKING:
    from mlirhlo.debug.index import Dump, DumpedModule

PURPOSE = "hlo-dump: find your way in a folder of dumps of XLA or of this compiler"
USAGE = "hlo-dump COMMAND [DIR] [ARGUMENT] [options]    (DIR: the current folder)"
EXAMPLES = (
    "hlo-dump ls DIR                      modules, and which is likely the program",
    "hlo-dump find DIR dot                an opcode, a text or a source line, model.py:12",
    "hlo-dump passes DIR [MODULE]         which passes changed what",
    "hlo-dump why FILE...                 every part of a file's name",
    "hlo-dump pack DIR [MODULE] -o x.tgz  an archive for a bug report",
    "hlo-dump report DIR -o dump.html     one page about everything",
)


@dataclass
class Options:
    """The command line of hlo-dump."""

    output: str = flag("", "o", group="Output", metavar="FILE", help="where pack and report write")
    json: bool = flag(False, group="Output", help="results as JSON")
    mode: str = flag(
        "auto",
        group="find",
        choices=("auto", "op", "text", "source", "regex"),
        help="what the query is",
    )
    all: bool = flag(
        False, "a", group="find", help="files between passes too; passes: unchanged ones too"
    )
    limit: int = flag(
        200, group="find", metavar="N", least=0, help="most lines to print; 0 for all"
    )
    with_passes: bool = flag(False, group="pack", help="files between passes too")
    with_data: bool = flag(False, group="pack", help="snapshots too: they hold a run's inputs")
    help: bool = flag(False, "h", group="Help", help="")
    version: bool = flag(False, "v", group="Help", help="")
    debug: bool = flag(False, group="Help", help="Python traceback of an error")


def main(argv: Sequence[str] | None = None) -> int:
    """The console script."""
    return run_tool("hlo-dump", _run, argv)


def _run(argv: Sequence[str]) -> int:
    parsed = parse(Options, argv)
    options = parsed.options
    if options.version:
        print(f"hlo-dump of mlirhlo {mlirhlo.__version__}")
        return DONE
    if options.help or not parsed.files:
        print(help_text(Options, PURPOSE, USAGE, EXAMPLES, xla=False))
        return DONE if options.help else 2
    command, *arguments = parsed.files
    action = _COMMANDS.get(command)
    if action is None:
        near = get_close_matches(command, _COMMANDS, n=1)
        hint = f"did you mean '{near[0]}'? " if near else ""
        raise usage_error(
            f"unknown command '{command}'", help=f"{hint}commands are {', '.join(_COMMANDS)}"
        )
    return action(arguments, options)


# ---------------------------------------------------------------- commands


def _ls(arguments: Sequence[str], options: Options) -> int:
    dump, _ = _folder(arguments, most=1)
    main_module = dump.main
    rows = [
        _row(module, main_module is not None and module is main_module[0])
        for module in dump.modules
    ]
    if options.json:
        why = main_module[1] if main_module else None
        _print_json(
            {
                "folder": dump.folder,
                "modules": rows,
                "main_because": why,
                "other_files": [file.path for file in dump.others],
            }
        )
        return DONE
    table = [("", "module", "platform", "passes", "instructions", "files", "size", "seconds")]
    for row in rows:
        where = f"{row['directory']}/" if row["directory"] else ""
        table.append(
            (
                "*" if row["is_main"] else "",
                where + str(row["module"]),
                str(row["platform"] or "-"),
                str(row["passes"]),
                "-" if row["instructions"] is None else str(row["instructions"]),
                str(row["files"]),
                _size(int(str(row["size_bytes"]))),
                f"{row['seconds']:.1f}",
            )
        )
    _print_table(table, right={3, 4, 5, 6, 7})
    if main_module is not None:
        print(f"* likely the program: {main_module[1]}")
    if dump.others:
        print(f"{len(dump.others)} other files; hlo-dump why FILE says what a name means")
    return DONE


def _row(module: DumpedModule, is_main: bool) -> dict[str, object]:
    return {
        "module": module.label,
        "id": module.module_id,
        "name": module.name,
        "directory": module.directory,
        "timestamp_us": module.timestamp_us,
        "platform": module.platform,
        "passes": module.passes,
        "instructions": module.instructions,
        "files": len(module.files),
        "size_bytes": module.size_bytes,
        "seconds": round(module.seconds, 3),
        "is_main": is_main,
    }


def _find(arguments: Sequence[str], options: Options) -> int:
    *folder, query = arguments or [""]
    if not query or (not folder and os.path.isdir(query)):
        raise usage_error("find what?", help="hlo-dump find DIR dot, or model.py:12, or any text")
    dump, _ = _folder(folder, most=1)
    mode = index_find.mode_of(query) if options.mode == "auto" else options.mode
    if mode == "regex":
        try:
            re.compile(query)
        except re.error as problem:
            raise usage_error(f"'{query}' is no regular expression: {problem}") from None
    if mode == "source" and not re.fullmatch(r".+:\d+", query):
        raise usage_error(f"'{query}' is no source line", help="write FILE:LINE, as model.py:12")
    hits, count = list[index_find.Hit](), 0
    for hit in index_find.find(dump, query, mode, all_files=options.all):
        count += 1
        if not options.limit or count <= options.limit:
            hits.append(hit)
    if options.json:
        _print_json(
            {"query": query, "mode": mode, "count": count, "hits": [asdict(hit) for hit in hits]}
        )
        return DONE
    for hit in hits:
        print(f"{_shown(hit.file)}:{hit.line}: {_shown(hit.text)[:400]}")
    sys.stdout.flush()
    rest = f", {count - len(hits)} not shown (--limit)" if count > len(hits) else ""
    print(
        f"{count} {'line' if count == 1 else 'lines'} with {mode} '{_shown(query)}'{rest}",
        file=sys.stderr,
    )
    return DONE if count else INPUT_AT_FAULT


def _passes(arguments: Sequence[str], options: Options) -> int:
    dump, rest = _folder(arguments, most=2)
    module = dump.find(rest)
    found = list(index_changes.changes(module))
    if options.json:
        rows = [
            {**asdict(change), "opcodes": dict(change.opcodes), "has_changed": change.has_changed}
            for change in found
        ]
        _print_json({"module": module.label, "passes": rows})
        return DONE
    print(
        f"{_shown(module.label)}: {len(found)} stages, {sum(c.has_changed for c in found)} changes"
    )
    table = [("step", "pass", "pipeline", "+", "-", "~", ">", "instructions", "opcodes")]
    for place, change in enumerate(found):
        is_end = place in (0, len(found) - 1)
        if not (change.has_changed or change.note or options.all or is_end):
            continue
        moved = [
            f"{'+' if count > 0 else ''}{count} {opcode}" for opcode, count in change.opcodes[:4]
        ]
        table.append(
            (
                "" if change.step is None else f"{change.step:04d}",
                change.name[:44],
                change.pipeline[:36],
                str(change.added or ""),
                str(change.removed or ""),
                str(change.changed or ""),
                str(change.moved or ""),
                "?" if change.instructions is None else str(change.instructions),
                change.note or ", ".join(moved) + (", …" if len(change.opcodes) > 4 else ""),
            )
        )
    _print_table(table, right={3, 4, 5, 6, 7})
    hidden = len(found) + 1 - len(table)
    if hidden:
        print(f"{hidden} that changed nothing are not shown (--all)")
    return DONE


def _why(arguments: Sequence[str], options: Options) -> int:
    if not arguments:
        raise usage_error(
            "which file?", help="hlo-dump why module_0000.jit_f.before_optimizations.txt"
        )
    explained = [index.parse_name(os.path.basename(path.rstrip("/"))) for path in arguments]
    if options.json:
        rows = [
            {**asdict(name), "parts": [list(part) for part in name.parts]} for name in explained
        ]
        _print_json(rows)
        return DONE
    for number, name in enumerate(explained):
        if number:
            print()
        print(_shown(name.text))
        if name.meaning:
            print(f"  {_shown(name.meaning)}{f' ({name.platform})' if name.platform else ''}")
        width = max((len(_shown(part)) for part, _ in name.parts), default=0)
        for part, meaning in name.parts:
            print(f"    {_shown(part):{min(width, 60)}}  {_shown(meaning)}")
    return DONE


def _pack(arguments: Sequence[str], options: Options) -> int:
    dump, wanted = _folder(arguments, most=2)
    module = dump.find(wanted)
    safe = re.sub(r"[^\w.-]", "_", module.label)[:100]
    path = options.output or f"{safe}.tar.gz"
    members = index_pack.pack(
        module, path, with_passes=options.with_passes, with_data=options.with_data
    )
    if options.json:
        _print_json({"module": module.label, "archive": path, "members": members})
    else:
        print(
            f"{_shown(path)}: {len(members)} files of {_shown(module.label)}, {_size(os.path.getsize(path))}"
        )
    return DONE


def _report(arguments: Sequence[str], options: Options) -> int:
    dump, _ = _folder(arguments, most=1)
    path = options.output or "dump.html"
    formats.write_file(path, report.print_report(dump, path).encode("utf-8", "replace"))
    if options.json:
        _print_json({"report": path, "modules": len(dump.modules)})
    else:
        print(f"{_shown(path)}: {len(dump.modules)} modules")
    return DONE


_COMMANDS: Mapping[str, Callable[[Sequence[str], Options], int]] = {
    "ls": _ls,
    "find": _find,
    "passes": _passes,
    "why": _why,
    "pack": _pack,
    "report": _report,
}


# ---------------------------------------------------------------- printing


def _folder(arguments: Sequence[str], most: int) -> tuple[Dump, str]:
    """The folder of a command line, and the argument behind it; a lone argument that is no folder is one."""
    if len(arguments) > most:
        raise usage_error(
            f"too many arguments: {' '.join(arguments)}", help="--help shows the commands"
        )
    if not arguments:
        return index.read_folder("."), ""
    first, *rest = arguments
    if most > 1 and not rest and not os.path.isdir(first):
        return index.read_folder("."), first
    return index.read_folder(first), rest[0] if rest else ""


def _shown(text: str) -> str:
    """Text that a terminal takes as text: names in dumps may hold anything."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text
    )


def _size(count: int) -> str:
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return ""


def _print_table(rows: Sequence[Sequence[str]], right: set[int]) -> None:
    shown = [[_shown(cell) for cell in row] for row in rows]
    widths = [min(60, max(len(row[column]) for row in shown)) for column in range(len(shown[0]))]
    for row in shown:
        cells = [
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=1))


if __name__ == "__main__":
    sys.exit(main())
