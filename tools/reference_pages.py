"""Writes the reference pages that follow from the code: docs/passes/*.md, docs/ops/*.md, the table
of flags in docs/dumps.md.

    python tools/reference_pages.py            # write them
    python tools/reference_pages.py --check    # exit status 1 when one is out of date

A pass's page is its docstring, an example that is run, options and rules; an op's entry is its row of the opcode
table; a flag is a field of `DebugOptions`.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from mlirhlo.cli.opt.pass_pages import options_of
from mlirhlo.debug.options.fields import OTHER_BACKENDS, flag_fields, info_of
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo import table
from mlirhlo.dialects.hlo.ops import OP_CLASSES
from mlirhlo.dialects.hlo.table import Arity, AttrSpec, Opcode
from mlirhlo.formats.hlo_text import parse_module, print_module
from mlirhlo.rewrites.passes import HloPass
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline
from mlirhlo.rewrites.registry import PassInfo, list_passes
from mlirhlo.rewrites.rules import RulePass

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
LIT = ROOT / "test" / "lit" / "rewrites"
NOTICE = "<!-- Written by tools/reference_pages.py; change the code it follows from. -->\n\n"

FAMILIES: Mapping[str, tuple[Opcode, ...]] = {
    "elementwise": table.ELEMENTWISE_ROWS,
    "data-movement": table.DATA_MOVEMENT_ROWS,
    "reduction": table.REDUCTION_ROWS,
    "linear-algebra": table.LINEAR_ALGEBRA_ROWS,
    "control-flow": table.CONTROL_FLOW_ROWS,
    "tokens": table.TOKEN_ROWS,
    "random": table.RANDOM_ROWS,
    "collectives": table.COLLECTIVE_ROWS,
}


def pass_page(info: PassInfo) -> str:
    """Markdown of one pass."""
    cls = info.factory()
    lines = [f"# {info.name}", "", inspect.cleandoc(cls.__doc__ or ""), ""]
    lines += example(info)
    if options := options_of(cls):
        lines += [
            "## Options",
            "",
            "| option | type | default | meaning |",
            "| --- | --- | --- | --- |",
        ]
        for option in options:
            kind = option.type.replace("|", "or")
            lines.append(f"| `{option.name}` | {kind} | {option.default} | {option.meaning} |")
        lines.append("")
    if issubclass(cls, RulePass):
        lines += ["## Rules", "", "| rule | equation |", "| --- | --- |"]
        lines += [f"| `{rule.name}` | `{rule.equation}` |" for rule in cls.rules]
        lines.append("")
    stem = info.name.replace("-", "_")
    test = f"test/lit/rewrites/{stem}.hlo"
    if cls.__module__.startswith("mlirhlo.lowering."):
        package = cls.__module__.split(".")[1:-1]
        ending = "hlo" if issubclass(cls, HloPass) else "mlir"
        test = f"test/lit/{'/'.join(package)}/{stem}.{ending}"
    lines += [f"Tests: `{test}`.", ""]
    return NOTICE + "\n".join(lines)


LONGEST_EXAMPLE = 30
"""Lines; longer modules are left to the tests."""


def example(info: PassInfo) -> list[str]:
    """The first module of the pass's lit test that the pass changes: before and after, as it is run.

    Nothing for a pass over other dialects, or where every such module is long.
    """
    if not issubclass(info.factory(), HloPass):
        return []
    stem = info.name.replace("-", "_")
    files = [LIT / f"{stem}.hlo", *sorted((LIT / stem).glob("*.hlo"))]
    for file in files:
        if not file.exists():
            continue
        run, _, text = file.read_text().partition("\n")
        pipeline = re.search(r"--passes=(?:'([^']*)'|(\S+))", run)
        if pipeline is None:
            continue
        passes = pipeline[1] or pipeline[2]
        for piece in text.split("// -----"):
            lines = [line for line in piece.split("\n") if not line.startswith("//")]
            before = re.sub(r"\n{2,}", "\n\n", "\n".join(lines)).strip()
            try:
                module = parse_module(before)
                unchanged = print_module(module)
                run_pipeline(module, parse_pipeline(passes))
                after = print_module(module).strip()
            except HloError:
                continue
            if after == unchanged.strip() or f"{before}{after}".count("\n") > LONGEST_EXAMPLE:
                continue
            return [
                "## Example",
                "",
                "```text",
                before,
                "```",
                "",
                f"after `hlo-opt --passes='{passes}'`:",
                "",
                "```text",
                after,
                "```",
                "",
            ]
    return []


def family_page(name: str, rows: tuple[Opcode, ...]) -> str:
    """Markdown of the ops of one family."""
    lines = [f"# {name.replace('-', ' ').capitalize()} ops", ""]
    for row in sorted(rows, key=lambda r: r.name):
        cls = OP_CLASSES[row.name]
        lines += [f"## {row.name}", "", f"{row.summary[0].upper()}{row.summary[1:]}.", ""]
        lines.append(f"- op `{row.op_name}`, class `{cls.__name__}`; {_operands(row)}")
        facts = [
            text
            for holds, text in (
                (row.infers, "the written shape may be left out"),
                (row.elementwise, "elementwise"),
                (row.commutes, "operands commute"),
                (row.side_effect, "has a side effect"),
                (row.accuracy, "takes `result_accuracy`"),
                (row.newer, "libtpu 0.0.51 and later"),
            )
            if holds
        ]
        if facts:
            lines.append(f"- {'; '.join(facts)}")
        lines += [f"- {_attribute(spec)}" for spec in row.attributes]
        lines.append("")
    return NOTICE + "\n".join(lines)


def _operands(row: Opcode) -> str:
    if row.arity is Arity.NONE:
        return "the parentheses hold its number or literal"
    count = row.arity.value if isinstance(row.arity, Arity) else str(row.arity)
    return f"{count} operand{'' if count == '1' else 's'}"


def _attribute(spec: AttrSpec) -> str:
    words = [f"`{spec.key}`: {spec.kind.name.replace('_', ' ')}"]
    if spec.required:
        words.append("required")
    if spec.default is not None:
        words.append(f"default `{spec.default}`" + (", always printed" if spec.always else ""))
    if spec.read_only:
        words.append("read and dropped")
    if spec.newer:
        words.append("libtpu 0.0.51 and later")
    return ", ".join(words)


def pages() -> dict[Path, str]:
    """Every page by its path."""
    passes = list_passes(loaded=False)
    found = {DOCS / "passes" / f"{name}.md": pass_page(info) for name, info in passes.items()}
    found[DOCS / "passes" / "index.md"] = index("Passes", {n: i.summary for n, i in passes.items()})
    found[DOCS / "ops" / "index.md"] = index(
        "Opcodes", {f: ", ".join(sorted(r.name for r in rows)) for f, rows in FAMILIES.items()}
    )
    found |= {
        DOCS / "ops" / f"{name}.md": family_page(name, rows) for name, rows in FAMILIES.items()
    }
    found[DOCS / "dumps.md"] = with_flags((DOCS / "dumps.md").read_text())
    return found


def index(title: str, rows: Mapping[str, str]) -> str:
    """Markdown of a folder's first page: a row a page, with a line on each."""
    lines = [f"| [{name}]({name}.md) | {text} |" for name, text in sorted(rows.items())]
    return NOTICE + "\n".join([f"# {title}", "", "| page | what |", "| --- | --- |", *lines, ""])


FLAGS = "<!-- flags: written by tools/reference_pages.py -->\n", "<!-- end of flags -->\n"


def with_flags(page: str) -> str:
    """The page with the table of flags between its two marks."""
    before, mark, rest = page.partition(FLAGS[0])
    _, end, after = rest.partition(FLAGS[1])
    return before + mark + flag_tables() + end + after


def flag_tables() -> str:
    """A table for each group of flags."""
    groups: dict[str, list[str]] = {}
    for name, member in flag_fields().items():
        info = info_of(member)
        value = member.default
        default = str(value).lower() if isinstance(value, bool) else "" if value == () else value
        only = "" if info.is_flag else " (compile option only)"
        idle = "" if info.has_effect or info.group == OTHER_BACKENDS else " No effect here."
        help_ = info.help.replace("|", "\\|")
        row = f"| `{name}`{only} | {info.type} | {default} | {help_}{idle} |"
        groups.setdefault(info.group, []).append(row)
    parts: list[str] = []
    for group, rows in groups.items():
        parts += [
            f"\n### {group}\n",
            "| flag | type | default | effect |",
            "|---|---|---|---|",
            *rows,
        ]
    return "\n".join(parts) + "\n\n"


def main() -> int:
    """Writes or checks; 0 when all pages are current."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="change nothing")
    check = parser.parse_args().check
    written = pages()
    stale = [
        path for path, text in written.items() if not path.exists() or path.read_text() != text
    ]
    for path in stale:
        if check:
            print(f"out of date: {path.relative_to(DOCS.parent)}")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(written[path])
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
