"""The hooks of mkdocs.yml: pages that follow from the code, and links that leave `docs/`.

Written into the site, not into the checkout: a page for every command (its `--help`), every error code, every public
module, the changelog and the guide for contributors. Fences such as `hlo file=NAME` keep their name as a title.
"""

from __future__ import annotations

import importlib
import io
import posixpath
import re
import sys
import tomllib
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any
from unittest import mock

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent.parent
MODULES = {
    "mlirhlo": "modules: loaded, printed, run, compiled, given passes",
    "mlirhlo.dialects.hlo": "the IR: modules, instructions, shapes, types",
    "mlirhlo.rewrites.rules": "rules and passes made of them",
    "mlirhlo.rewrites.passes": "passes that are algorithms",
    "mlirhlo.rewrites.pipeline": "pipelines of passes",
    "mlirhlo.formats": "any format by content",
    "mlirhlo.interp": "the interpreter",
    "mlirhlo.mosaic": "kernels under Pallas' names",
    "mlirhlo.jax": "functions of JAX, and passes inside XLA",
    "mlirhlo.aot": "modules as objects, libraries and wheels",
    "mlirhlo.debug.reduce": "the smallest module that shows a fault",
    "mlirhlo.debug.diff": "what differs between two modules",
    "mlirhlo.debug.graph": "graphs",
    "mlirhlo.diagnostics": "errors with a code, a position and a way to mend them",
}
"""Modules that the reference documents, with a line on each."""
EXPLAIN = "Every diagnostic has a code; `hlo-opt --explain CODE` prints its page."
MOVED = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
"""Pages of the checkout's root, and what they are called in the site."""
NOTICE = "<!-- Written by tools/reference_pages.py; change the code it follows from. -->\n\n"
FENCE = re.compile(r"^```(\w+)((?: [^\n`]+)?)$", re.MULTILINE)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s:#]+)(#[^)\s]*)?\)")
CODE = re.compile(r"```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """Adds the generated pages."""
    for path, text in (*commands(), *errors(), *modules(), *moved()):
        files.append(File.generated(config, path, content=text))
    return files


def on_config(config: Any) -> Any:
    """Expands `FOLDER/*.md` in the navigation: its index and, below it, its pages."""
    names = [path for path, _ in (*commands(), *errors(), *modules())]
    docs = Path(config.docs_dir)
    names += [str(path.relative_to(docs)) for path in docs.rglob("*.md")]

    def expand(entry: Any) -> Any:
        if isinstance(entry, dict):
            return {
                title: [expand(one) for one in below] if isinstance(below, list) else below
                for title, below in entry.items()
            }
        if not entry.endswith("/*.md"):
            return entry
        folder = entry.removesuffix("*.md")
        index = f"{folder}index.md"
        inside = sorted(name for name in names if name.startswith(folder) and name != index)
        return {folder.strip("/").capitalize(): [index, *inside]}

    config.nav = [expand(entry) for entry in config.nav]
    return config


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Fences and links as mkdocs understands them."""
    del config
    markdown = markdown.removeprefix(NOTICE)  # a title has to be the first line
    markdown = FENCE.sub(_fence, markdown)
    spans = [match.span() for match in CODE.finditer(markdown)]

    def link(match: re.Match[str]) -> str:
        if any(start <= match.start() < end for start, end in spans):
            return match[0]
        return _link(match, page.file.src_uri, files)

    return LINK.sub(link, markdown)


def _fence(match: re.Match[str]) -> str:
    words = match[2].split()
    title = next((word.removeprefix("file=") for word in words if word.startswith("file=")), "")
    return f'```{match[1]} title="{title}"' if title else f"```{match[1]}"


def _link(match: re.Match[str], source: str, files: Files) -> str:
    """A link as the site has it: files of the checkout that are no pages become code."""
    picture, text, target, anchor = match[1], match[2], match[3], match[4] or ""
    above = posixpath.dirname(source)
    if source in MOVED.values():  # written for the checkout's root
        target = posixpath.normpath(posixpath.join("..", target))
        above = "docs"
        name = posixpath.normpath(posixpath.join(above, target))
    else:
        name = posixpath.normpath(posixpath.join("docs", above, target))
    if name.startswith("docs"):
        inside = posixpath.relpath(name, "docs")
    elif (explained := re.fullmatch(r"mlirhlo/explain/(HLO\d+)\.md", name)) is not None:
        inside = f"errors/{explained[1]}.md"
    else:
        inside = {**MOVED, "README.md": "index.md"}.get(name, "")
    if (Path(ROOT, "docs", inside) / "index.md").exists() and inside:
        inside = f"{inside}/index.md"
    if not inside or files.get_file_from_path(inside) is None:
        return text if text.startswith("`") else f"{text} (`{name}`)"
    here = "" if source in MOVED.values() else posixpath.dirname(source)
    return f"{picture}[{text}]({posixpath.relpath(inside, here or '.')}{anchor})"


def commands() -> Iterator[tuple[str, str]]:
    """A page for each console script: its `--help`."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    rows = ["# Commands", "", "| command | what it does |", "|---|---|"]
    for name, entry in sorted(scripts.items()):
        if name == "run-hlo-module":  # a second name
            continue
        module, function = entry.split(":")
        text = _help(name, getattr(importlib.import_module(module), function))
        summary = (importlib.import_module(module).__doc__ or "").strip().splitlines()[0]
        rows.append(f"| [`{name}`]({name}.md) | {summary} |")
        yield f"commands/{name}.md", f"# {name}\n\n```text\n{text}\n```\n"
    yield "commands/index.md", "\n".join(rows) + "\n"


def _help(name: str, main: Any) -> str:
    printed = io.StringIO()
    with (
        mock.patch.object(sys, "argv", [name, "--help"]),
        mock.patch.dict("os.environ", {"COLUMNS": "88", "NO_COLOR": "1"}),
        redirect_stdout(printed),
        suppress(SystemExit),
    ):
        main()
    return printed.getvalue().strip()


def errors() -> Iterator[tuple[str, str]]:
    """The pages of `hlo-opt --explain`, and their list."""
    rows = [
        "# Errors",
        "",
        "Every diagnostic has a code; `hlo-opt --explain CODE` prints its page.",
        "",
        "| code | what |",
        "|---|---|",
    ]
    for path in sorted((ROOT / "mlirhlo" / "explain").glob("HLO*.md")):
        text = path.read_text()
        _, _, title = text.splitlines()[0].partition(": ")
        rows.append(f"| [{path.stem}]({path.name}) | {title} |")
        yield f"errors/{path.name}", text
    yield "errors/index.md", "\n".join(rows) + "\n"


def modules() -> Iterator[tuple[str, str]]:
    """A page for each module of `MODULES`, made by mkdocstrings."""
    rows = ["# API", "", "| module | what |", "|---|---|"]
    for name, summary in MODULES.items():
        rows.append(f"| [`{name}`]({name}.md) | {summary} |")
        yield (
            f"api/{name}.md",
            f"# {name}\n\n::: {name}\n    options:\n      show_root_heading: false\n",
        )
    yield "api/index.md", "\n".join(rows) + "\n"


def moved() -> Iterator[tuple[str, str]]:
    """Pages of the checkout's root."""
    for name, inside in MOVED.items():
        yield inside, (ROOT / name).read_text()
