"""`hlo-aot`: a module as object code, a library or a wheel that runs without Python and LLVM."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import mlirhlo
from mlirhlo.cli import inputs
from mlirhlo.cli.options import flag, help_text, parse
from mlirhlo.cli.report import DONE, INPUT_AT_FAULT, report, run_tool, usage_error
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo import aot, formats
    from mlirhlo.aot import config as aot_config
    from mlirhlo.aot import files as aot_files
    from mlirhlo.aot import graphs, signature, targets
    from mlirhlo.formats import sniff
    from mlirhlo.integrations.tensorflow.clustering import graph


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.aot.config import Config

PURPOSE = "hlo-aot: compile a module ahead of time, to run without Python, LLVM or mlirhlo"
USAGE = "hlo-aot [options] [FILE|-]"
EXAMPLES = (
    "hlo-aot model.hlo                                model.o and model.h",
    "hlo-aot --emit=static,shared -o out model.mlir   libraries, with files for CMake and pkg-config",
    "hlo-aot --emit=wheel --march=x86-64-v2,x86-64-v4 model.hlo",
    "hlo-aot --config=graph.config graph.pb           a TensorFlow graph, as tfcompile takes it",
)
GRAPH = "graphdef"
"""The format of TensorFlow's graphs, which this tool alone reads."""


@dataclass
class Options:
    """The command line of hlo-aot."""

    format: str | None = flag(
        None, "f", "from", group="Input", metavar="FORMAT", help="of the module (told by content)"
    )
    config: str = flag(
        "", group="Input", metavar="FILE", help="names of arguments and results, as tf2xla.Config"
    )
    emit: tuple[str, ...] = flag(
        (), group="Output", metavar="KINDS", help="obj, static, shared, wheel [obj]"
    )
    output: str = flag(".", "o", group="Output", metavar="FOLDER", help="where files go")
    name: str = flag("", group="Output", metavar="NAME", help="of program and files [the module's]")
    cpp_class: str = flag("", group="Output", metavar="NAME", help="of the class, as in my::Model")
    weights: str = flag(
        "embed", group="Output", choices=("embed", "file"), help="constants in the code or mapped"
    )
    package_version: str = flag(
        "0.0.0", group="Output", metavar="VERSION", help="of wheel and package files"
    )
    target: str = flag("", group="Target", metavar="TRIPLE", help="[x86_64-unknown-linux-gnu]")
    march: tuple[str, ...] = flag(
        (), group="Target", metavar="NAMES", help="x86-64-v2, -v3, -v4, native; several [x86-64-v3]"
    )
    list_targets: bool = flag(False, group="Target", help="the triples that can be compiled for")
    lapack: str = flag(
        "scipy_{}_64_", group="Target", metavar="PATTERN", help="how LAPACK's routines are spelled"
    )
    help: bool = flag(False, "h", group="Help", help="")
    version: bool = flag(False, "v", group="Help", help="")
    debug: bool = flag(False, group="Help", help="Python traceback of an error")


def main(argv: Sequence[str] | None = None) -> int:
    """The console script."""
    return run_tool("hlo-aot", _run, argv)


def _run(argv: Sequence[str]) -> int:
    parsed = parse(Options, argv)
    options = parsed.options
    if options.help:
        print(help_text(Options, PURPOSE, USAGE, EXAMPLES, xla=False))
        return DONE
    if options.version:
        print(f"hlo-aot of mlirhlo {mlirhlo.__version__}")
        return DONE

    if options.list_targets:
        print("\n".join(targets.available_triples()))
        return DONE
    kinds = _kinds(options)
    _check_class(options.cpp_class)
    if "{}" not in options.lapack:
        raise usage_error(f"--lapack={options.lapack}: no {{}} for the name of a routine")
    triple = options.target or targets.HOST
    targets.variants(triple, options.march)  # before anything is read
    source = _source(options, parsed.files)
    if source is None:
        return INPUT_AT_FAULT

    module, name, config = source
    ahead = aot.compile_ahead(
        module,
        options.name or _stem(name),
        triple=triple,
        march=options.march,
        weights_in_file=options.weights == "file",
        config=config,
        lapack_symbol=options.lapack,
    )
    files = aot.emitted(ahead, kinds, cpp_class=options.cpp_class, version=options.package_version)
    for path in aot.write_files(Path(options.output), files):
        print(path)
    if ahead.libraries:
        print(f"link with: {' '.join(ahead.libraries)}")
    return DONE


def _kinds(options: Options) -> Sequence[str]:
    kinds = options.emit or ("obj",)
    for kind in kinds:
        if kind not in aot_files.KINDS:
            raise usage_error(f"--emit={kind}: not one of {', '.join(aot_files.KINDS)}")
    return kinds


def _check_class(name: str) -> None:
    if name and not all(part.isidentifier() for part in name.split("::")):
        raise usage_error(f"--cpp-class={name}: not the name of a class", help="as in my::Model")


def _config(path: str) -> Config | None:
    if not path:
        return None
    data, name = formats.read_file(path)
    return aot_config.parse_config(data.decode(errors="replace"), name)


def _stem(name: str) -> str:
    """The file's name as one of C; nothing for standard input."""
    return "" if name.startswith("<") else signature.identifier(Path(name).name.partition(".")[0])


def _source(options: Options, files: Sequence[str]) -> tuple[ModuleOp, str, Config | None] | None:
    """The module, the name of its file, and the config; None where mistakes have been told."""
    if options.format != GRAPH:
        inputs.check_format(options.format)
    data, name = inputs.read_input(inputs.single_file(list(files)))
    plain, config = sniff.unwrap(data, name), _config(options.config)
    if options.format == GRAPH or (options.format is None and graph.is_graph(plain)):
        if config is None:
            raise usage_error(
                "a TensorFlow graph is compiled for the feeds and fetches of a config",
                help="--config=FILE names it, a tf2xla.Config",
            )

        module, config = graphs.graph_module(graph.read_graph(plain, name), config)
        return module, name, config

    loaded = formats.load(data, options.format, name=name)
    problems = inputs.verify(loaded)
    report(problems)
    if problems:
        return None
    loaded = inputs.as_hlo(loaded)
    inputs.check_entry(loaded)
    return loaded.module, loaded.name, config


if __name__ == "__main__":
    sys.exit(main())
