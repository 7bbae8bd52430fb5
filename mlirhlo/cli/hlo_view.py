"""`hlo-view`: graphs of a module, on a page, as files, and in the terminal."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, cast

import mlirhlo
from mlirhlo.cli import inputs
from mlirhlo.cli.inputs import InputFlags
from mlirhlo.cli.options import flag, help_text, parse
from mlirhlo.cli.report import DONE, report, run_tool, usage_error, warn
from mlirhlo.diagnostics import HloError, error
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo import formats
    from mlirhlo.cli import xla_flags
    from mlirhlo.debug import cut as debug_cut
    from mlirhlo.debug import graph as debug_graph
    from mlirhlo.debug import index as debug_index
    from mlirhlo.debug.graph import commands, model, pictures, recorded
    from mlirhlo.formats import hlo_text
    from mlirhlo.integrations.tensorflow.clustering import dot


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.debug.graph import GraphOptions, Stage
    from mlirhlo.debug.graph.model import Graph

PURPOSE = "hlo-view: look at the graph of an HLO module"
USAGE = "hlo-view FILE|DIR [COMMAND [ARGUMENTS]] [options]    (FILE: any format, or - )"
EXAMPLES = (
    "hlo-view m.hlo                    a page, opened in the browser: fold, search, follow",
    "hlo-view DIR --module=jit_step    the page with a slider over every pass in a dump",
    "hlo-view m.hlo --passes=algsimp,dce -o m.html    a slider over the passes run now",
    "hlo-view m.hlo -o m.svg           html, dot, svg, png, pdf or json by the name; -t dot to stdout",
    "hlo-view m.hlo near dot.3 2       what lies around an instruction ( / add.1: not beyond)",
    "hlo-view m.hlo paths x.1 add.7    what lies between two",
    "hlo-view m.hlo list dot           find instructions; list computations",
    "hlo-view m.hlo info|text|extract dot.3    facts, text, as a module of its own",
    "hlo-view m.hlo stats              sizes, costs, opcodes",
    "hlo-view m.hlo prompt             these commands at a prompt",
)

FORMATS = ("html", "dot", "svg", "png", "pdf", "json", "url", "text")
ENDINGS = {"": "", "htm": "html", "gv": "dot", "txt": "text", "hlo": "text"} | {
    f: f for f in FORMATS
}
"""Format by the ending of the output file's name."""


@dataclass
class Options(InputFlags):
    """The command line of hlo-view."""

    passes: str = flag("", "p", group="Passes", metavar="a,b{…}", help="run and record these first")
    module: str = flag("", group="Input", metavar="NAME", help="which module of a dump folder")
    output: str = flag("", "o", group="Output", metavar="FILE", help="where to write")
    to: str = flag("", "t", group="Output", choices=("", *FORMATS), help="format (by -o's name)")
    json: bool = flag(False, group="Output", help="answers of commands as JSON")
    browser: bool = flag(True, group="Output", help="open the page: --no-browser only writes it")
    computation: str = flag("", group="Graph", metavar="NAME", help="draw this one, not the entry")
    sharding_color: bool = flag(False, group="Graph", help="colours by sharding")
    fusions: bool = flag(True, group="Graph", help="bodies of fusions: --no-fusions, one box each")
    backend_config: bool = flag(False, group="Graph", help="backend_config in the boxes")
    max_nodes: int = flag(
        100, group="Graph", metavar="N", least=1, help="of paths, else only shortest"
    )
    help: bool = flag(False, "h", group="Help", help="")
    version: bool = flag(False, "v", group="Help", help="")
    debug: bool = flag(False, group="Help", help="Python traceback of an error")


def main(argv: Sequence[str] | None = None) -> int:
    """The console script."""
    return run_tool("hlo-view", _run, argv)


def _run(argv: Sequence[str]) -> int:
    parsed = parse(Options, argv)
    options = parsed.options
    if options.version:
        print(f"hlo-view of mlirhlo {mlirhlo.__version__}")
        return DONE
    if options.help or not parsed.files:
        print(help_text(Options, PURPOSE, USAGE, EXAMPLES))
        return DONE if options.help else 2

    xla = xla_flags.read_flags(parsed.xla).options
    options.sharding_color |= xla.xla_hlo_graph_sharding_color
    path, *words = parsed.files
    if dots := _dots(path):
        return _draw(dots, path, options)
    view = _View(path, options, addresses=xla.xla_hlo_graph_addresses)
    if words == ["prompt"]:
        return view.prompt()
    view.answer(words)
    return DONE


def format_of(options: Options) -> str:
    """The format that is asked for, else that of the output file's name; empty when neither says."""
    if options.to:
        return options.to
    ending = os.path.splitext(options.output)[1].removeprefix(".").lower()
    if ending not in ENDINGS:
        raise usage_error(
            f"'{options.output}': no format is called '{ending}'",
            help=f"names end in {', '.join(FORMATS)}, or --to says the format",
        )
    return ENDINGS[ending]


@dataclass
class _Loaded:
    module: ModuleOp
    label: str
    stages: tuple[Stage, ...]
    folder: str = ""
    """The folder that the stages lie in."""

    @cached_property
    def graph(self) -> Graph:
        """The graph of the module, for commands about it; a page makes its own."""
        return model.Graph(self.module)


class _View:
    """A module and the switches under which it is looked at."""

    def __init__(self, path: str, options: Options, *, addresses: bool = False) -> None:
        self.options, self.addresses = options, addresses
        self.loaded = _folder(path, options) if os.path.isdir(path) else _file(path, options)

    @property
    def graph(self) -> Graph:
        """The graph of the module."""
        return self.loaded.graph

    # -------------------------------------------------------------- commands

    def answer(self, words: Sequence[str]) -> None:
        """Does one command. Raises `HloError` for unknown names, `UsageError` for unknown commands."""
        command, *rest = words or [""]
        match command.lower():
            case "" | "open" | "page":
                self._graph(self._graph_options())
            case "near" | "neighbourhood" | "neighborhood" if rest:
                self._near(rest)
            case "paths" | "allpaths" if len(rest) in (2, 3):
                if len(rest) == 3:
                    self.options = replace(self.options, max_nodes=_number(rest[2]))
                self._part(replace(self._graph_options(), path=(rest[0], rest[1])))
            case "list" if rest:
                self._list(rest)
            case "info" if len(rest) == 1:
                self._info(rest[0])
            case "text" if len(rest) <= 1:
                self._text(rest)
            case "extract" if len(rest) in (1, 2):
                self._extract(rest)
            case "stats" if not rest:
                self._stats()
            case _:
                self._other(words)

    def _other(self, words: Sequence[str]) -> None:
        """An instruction's or a computation's name alone, as XLA's tool takes it."""
        name = words[0].removeprefix("%")
        if name in self.graph.computation_by_name and len(words) == 1:
            self._graph(self._graph_options(), name)
        elif name in self.graph.node_by_name:
            self._near(words)
        else:
            known = ("near", "paths", "list", "info", "text", "extract", "stats", "prompt")
            if words[0] in known:
                count = "more" if len(words) == 1 else "other"
                raise usage_error(
                    f"'{words[0]}' wants {count} arguments", help="--help shows the commands"
                )
            near = get_close_matches(words[0], known, n=1)
            hint = f"did you mean '{near[0]}'? " if near else ""
            raise usage_error(
                f"'{' '.join(words)[:80]}' is no command and no name in the module",
                help=f"{hint}commands are {', '.join(known)}; --help shows their arguments",
            )

    def _near(self, words: Sequence[str]) -> None:
        words, boundary = _until(words, "/")
        name, *rest = words
        if len(rest) > 1:
            raise usage_error(f"near {name}: one width is wanted, then / and names")
        radius = _number(rest[0]) if rest else 2
        chosen = replace(self._graph_options(), center=name, radius=radius, boundary=boundary)
        self._part(chosen)

    def _part(self, chosen: GraphOptions) -> None:
        """A part of the graph: a file when one is asked for, else text."""
        shown = debug_graph.filter_of(self.graph, chosen)
        if shown.limited:
            warn("HLO0545", f"more than {chosen.max_nodes} nodes: shortest paths only")
        if format_of(self.options) not in ("", "text"):
            self._graph(chosen)
            return
        lines = list(commands.part_text(self.graph, shown))
        if self.options.json:
            names = [self.graph.nodes[index].name for index in sorted(shown.shown)]
            self._print_json({"instructions": names, "limited": shown.limited})
        else:
            self._print("\n".join(lines))

    def _list(self, words: Sequence[str]) -> None:
        if words[0] == "computations":
            rows = [
                f"{'ENTRY ' if c.is_entry else ''}{c.name} ({len(c.nodes)} instructions)"
                for c in self.graph.computations
            ]
            names = [c.name for c in self.graph.computations]
        else:
            field = words[0] if len(words) > 1 and words[0] in commands.FIELDS else ""
            found = commands.listing(self.graph, " ".join(words[1:] if field else words), field)
            rows = [commands.summary(self.graph, node) for node in found]
            names = [node.name for node in found]
        if self.options.json:
            self._print_json(names)
        else:
            self._print("\n".join(rows) if rows else "nothing found")

    def _info(self, name: str) -> None:
        computation = self.graph.computation_by_name.get(name.removeprefix("%"))
        if computation is not None and name.removeprefix("%") not in self.graph.node_by_name:
            self._facts(commands.computation_facts(self.graph, computation))
        else:
            self._facts(commands.facts(self.graph, model.node_of(self.graph, name)))

    def _text(self, words: Sequence[str]) -> None:
        text = (
            commands.text_of(self.graph, words[0])
            if words
            else hlo_text.print_module(self.graph.module.op)
        )
        if self.options.json:
            self._print_json({"text": text})
        else:
            self._print(text)

    def _extract(self, words: Sequence[str]) -> None:
        height = _number(words[1]) if len(words) > 1 else -1
        node = model.node_of(self.graph, words[0])
        part = debug_cut.cut(self.graph.module, [node.op], height=height)
        text = hlo_text.print_module(
            part.module, replace(hlo_text.PrintOptions(), large_constants=True)
        )
        if self.options.json:
            self._print_json({"text": text})
        else:
            self._print(text.rstrip("\n"))

    def _stats(self) -> None:
        self._facts(commands.statistics(self.graph))

    # -------------------------------------------------------------- output

    def _graph_options(self) -> GraphOptions:
        options = self.options
        return debug_graph.GraphOptions(
            label=self.loaded.label,
            sharding_color=options.sharding_color,
            addresses=self.addresses,
            fusions=options.fusions,
            backend_config=options.backend_config,
            max_nodes=options.max_nodes,
            stages=self.loaded.stages,
            folder=self.loaded.folder,
            page=self.options.output or "page.html",
        )

    def _graph(self, chosen: GraphOptions, computation: str | None = None) -> None:
        wanted = format_of(self.options) or "html"
        if wanted == "text":
            self._text([])
            return
        place = computation or self.options.computation or None
        if wanted == "html" and not self.options.output and not self.options.to:
            self._open(chosen, place)
        elif wanted in ("png", "pdf"):
            self._print_bytes(debug_graph.picture(self.loaded.module, wanted, chosen, place))
        else:
            text = debug_graph.render(self.loaded.module, wanted, chosen, place)
            self._print(text.rstrip("\n"))

    def _open(self, chosen: GraphOptions, computation: str | None) -> None:
        """Writes the page to a file of its own and opens it."""

        def page(name: str) -> str:
            shown = replace(chosen, page=name)
            return debug_graph.render(self.loaded.module, "html", shown, computation)

        _open_page(self.loaded.label, page, self.options)

    def _facts(self, found: dict[str, object]) -> None:
        if self.options.json:
            self._print_json(found)
            return
        lines: list[str] = []
        for key, value in found.items():
            if isinstance(value, dict):
                counts = cast("dict[str, object]", value)
                lines.append(f"{key}: {', '.join(f'{n} {k}' for k, n in counts.items())}")
            elif isinstance(value, list):
                lines.append(f"{key}:")
                lines += [f"  {entry}" for entry in cast("list[object]", value)]
            else:
                number = f"{value:.0f}" if isinstance(value, float) else value
                lines.append(f"{key}: {number}")
        self._print("\n".join(lines))

    def _print_json(self, value: object) -> None:
        self._print(json.dumps(value, indent=1))

    def _print(self, text: str) -> None:
        if self.options.output:
            formats.write_file(self.options.output, f"{text}\n".encode("utf-8", "replace"))
        else:
            print(text)

    def _print_bytes(self, data: bytes) -> None:
        if self.options.output:
            formats.write_file(self.options.output, data)
        elif sys.stdout.isatty():
            raise usage_error("a binary file does not go to a terminal", help="use -o FILE")
        else:
            sys.stdout.buffer.write(data)

    # -------------------------------------------------------------- prompt

    def prompt(self) -> int:
        """XLA's `command: ` prompt; ends with `quit` or the end of the input."""
        import shlex

        is_terminal = sys.stdin.isatty()
        while True:
            if is_terminal:
                print("command: ", end="", flush=True)
            line = sys.stdin.readline()
            if not line:
                return DONE
            try:
                words = shlex.split(line, posix=False)
                if words in (["quit"], ["exit"], ["q"]):
                    return DONE
                if words and not self._switched(words):
                    self.answer(words)
                sys.stdout.flush()  # answers and errors in their order
            except ValueError as problem:
                warn("HLO0502", f"cannot read that: {problem}")
            except HloError as problem:
                report(problem.diagnostics)

    def _switched(self, words: Sequence[str]) -> bool:
        """`help`, and the switches of XLA's tool."""
        names = {"backend_config": "backend_config", "show_fusion_subcomputations": "fusions"}
        if words[0] == "help":
            print("\n".join(example.replace("hlo-view m.hlo ", "") for example in EXAMPLES[4:-1]))
            print("backend_config on|off, show_fusion_subcomputations on|off, quit")
            return True
        if words[0] not in names:
            return False
        name = names[words[0]]
        is_on = words[1] == "on" if len(words) > 1 else not getattr(self.options, name)
        setattr(self.options, name, is_on)
        print(f"{words[0]} {'on' if is_on else 'off'}")
        return True


# ---------------------------------------------------------------- pages


def _open_page(label: str, page: Callable[[str], str], options: Options) -> None:
    """Writes a page, made for the name of its file, to a file of its own and opens it."""
    import tempfile
    import webbrowser
    from pathlib import Path

    name = re.sub(r"[^\w.-]", "_", label)[:80]
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", prefix=f"{name}.", suffix=".html", delete=False
    ) as file:
        file.write(page(file.name))
    address = Path(file.name).as_uri()
    print(json.dumps({"page": address}, indent=1) if options.json else address)
    if options.browser and (os.environ.get("DISPLAY") or sys.platform != "linux"):
        webbrowser.open(address)


# ---------------------------------------------------------------- texts of graphs


def _dots(path: str) -> list[tuple[str, str]]:
    """Names and texts of a graph for Graphviz or of TensorFlow's, or of a folder of them that holds no module."""
    if path.endswith(DOTS) and os.path.isfile(path):
        return [_dot_text(path)]
    if path.endswith(".pbtxt"):
        return dot.dump_as_dot(path)
    if not os.path.isdir(path):
        return []

    names = sorted(name for name in os.listdir(path) if name.endswith(DOTS))
    kept = [
        files[0].name.extension for m in debug_index.read_folder(path).modules for files in m.stages
    ]
    if not names or any(extension not in DOTS for extension in kept):
        return []
    return [_dot_text(os.path.join(path, name)) for name in names]


DOTS = (".dot", ".gv")


def _dot_text(path: str) -> tuple[str, str]:
    data, _ = inputs.read_input(path)
    return os.path.basename(path), data.decode("utf-8", "replace")


def _draw(dots: Sequence[tuple[str, str]], path: str, options: Options) -> int:
    """Draws texts of graphs: a page of all, or a picture of one."""
    wanted = format_of(options) or "html"
    if wanted in pictures.PICTURES and len(dots) == 1 and options.output:
        formats.write_file(options.output, pictures.picture_of_dot(dots[0][1], wanted))
    elif wanted != "html":
        raise usage_error(
            f"graphs that are texts are not written as {wanted}",
            help="a page (html), or of one file a picture with -o: svg, png, pdf",
        )
    elif options.output:
        formats.write_file(options.output, pictures.print_dots(dots).encode())
    else:
        _open_page(
            os.path.basename(path.rstrip("/")), lambda name: pictures.print_dots(dots), options
        )
    return DONE


# ---------------------------------------------------------------- reading


def _file(path: str, options: Options) -> _Loaded:
    """A module from a file, and its stages when passes are to run."""
    data, name = inputs.read_input(path)
    module = inputs.as_hlo(
        formats.load(data, inputs.check_format(options.format), name=name)
    ).module
    label = os.path.basename(name).strip("<>")
    stages: tuple[Stage, ...] = ()
    if options.passes:
        stages = recorded.recorded_stages(module, options.passes)
    return _Loaded(module, label, stages)


def _folder(path: str, options: Options) -> _Loaded:
    """A module from a folder of dumps, with every stage that was recorded."""
    if options.passes:
        raise usage_error(
            "--passes runs on a module, and this is a folder", help="name a file of it"
        )
    module = debug_index.read_folder(path).find(options.module)
    stages, problems = recorded.dumped_stages(module)
    report(problems)
    if not stages:
        raise error("HLO0544", f"no dump of {module.label} holds a module that can be read")
    return _Loaded(stages[-1].module, module.label, stages, path)


def _until(words: Sequence[str], mark: str) -> tuple[list[str], list[str]]:
    place = list(words).index(mark) if mark in words else len(words)
    return list(words[:place]), list(words[place + 1 :])


def _number(text: str) -> int:
    if not text.isdigit():
        raise usage_error(f"'{text}' is no number")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
