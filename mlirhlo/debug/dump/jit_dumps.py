"""What JAX's and TensorFlow's own switches write, for programs of `jit`.

`JAX_DUMP_IR_TO` gives the program as it goes to the compiler; the flags of 2019 give protos and graphs
in directories of their own; `--tf_xla_clustering_debug` gives graphs as TensorFlow writes them.
Source: dumps reference, "JAX, environment", "Old JAX flags", "Older and foreign spellings", "TensorFlow".
"""

from __future__ import annotations

import itertools
import logging
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from mlirhlo.debug.dump import names
from mlirhlo.debug.dump.graph_def import graph_def_text
from mlirhlo.debug.dump.settings import OUTPUTS_DIR
from mlirhlo.debug.dump.sink import attempt, open_directory
from mlirhlo.debug.options import process_flags
from mlirhlo.debug.options.jax_era import JaxSettings, jax_settings
from mlirhlo.diagnostics import Diagnostic, Severity, error
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.debug import graph
    from mlirhlo.debug.dump import jaxpr, protos
    from mlirhlo.formats import stablehlo
    from mlirhlo.rewrites import hlo_to_stablehlo


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

    from mlirhlo.debug.options import Flags
    from mlirhlo.rewrites.pipeline import Instrumentation

LOG = logging.getLogger("mlirhlo.dump")

_modules, _programs, _legacy = itertools.count(), itertools.count(), itertools.count()
_dots = itertools.count()
_graphs: dict[str, int] = {}
"""How often each name of a TensorFlow graph was written."""

_DROPPED = re.compile(r"[^\w.)( -]")


def dump_program(settings: JaxSettings, op: ModuleOp, function: str) -> None:
    """A program before it is compiled. `function`: its name as the user called it; empty where the front
    end itself writes what `JAX_DUMP_IR_TO` asks for.

    Raises `HloError` HLO0520 when the directory is `sponge` and that is nowhere.
    """
    if settings.dump_ir_to and function:
        _dump_ir(settings, op, function)
    if settings.dump_hlo_graph:
        _dump_graph_of(settings, op)
    if settings.tf_xla_clustering_debug:
        _dump_clusters(settings, op)


def with_logging(op: ModuleOp, flags: Flags) -> Flags:
    """The flags with `xla_detailed_logging` false for small programs, as JAX sets it."""
    least = jax_settings().compiler_detailed_logging_min_ops
    count = sum(1 for _ in itertools.islice(HloModule(op).instructions, max(least, 0)))
    if count >= least or "xla_detailed_logging" in flags.given:
        return flags
    return flags.with_compile_options({"xla_detailed_logging": False})


def log_profile(module: str, spent: Mapping[str, float]) -> None:
    """Logs where the seconds of one run went, the longest first (`jax_hlo_profile`)."""
    total = sum(spent.values()) or 1.0
    rows = sorted(spent.items(), key=lambda row: -row[1])
    lines = [f"{s * 1e6:12.1f} us {100 * s / total:5.1f}%  {name}" for name, s in rows]
    LOG.warning("%s", "\n".join([f"Execution profile for {module}: {total * 1e6:.1f} us", *lines]))


def _write(directory: str, name: str, produce: Callable[[], bytes | str]) -> None:
    place = open_directory(directory)
    if place is None:
        return
    data = attempt(name, produce)
    if data is not None:
        place.write(name, data)


# ---------------------------------------------------------------- JAX_DUMP_IR_TO


def _dump_ir(settings: JaxSettings, op: ModuleOp, function: str) -> None:
    directory = _sponge(settings.dump_ir_to)
    if not directory:
        raise error("HLO0520", f"JAX_DUMP_IR_TO=sponge: the variable {OUTPUTS_DIR} is not set")
    modes = settings.dump_ir_modes
    if any(mode != "stablehlo" for mode in modes):
        stem = f"jax_{next(_programs):06d}_{_DROPPED.sub('', function)}"
        if "jaxpr" in modes:
            _write(directory, f"{stem}.jaxpr.txt", lambda: jaxpr.jaxpr_text(op))
        if "jaxpr_html" in modes:
            _write(directory, f"{stem}.jaxpr.html", lambda: jaxpr.jaxpr_html(op, function))
        if "eqn_count_pprof" in modes:
            _write(directory, f"{stem}.eqn_count_pprof", lambda: jaxpr.equation_profile(op))
    if "stablehlo" in modes:
        name = _DROPPED.sub("", HloModule(op).name)
        info = settings.include_debug_info_in_dumps

        def text() -> str:
            return stablehlo.print_module(
                hlo_to_stablehlo.convert_to_stablehlo(op), debug_info=info
            )

        _write(directory, f"jax_ir{next(_modules):04d}_{name}_compile.mlir", text)


def _sponge(directory: str) -> str:
    return os.environ.get(OUTPUTS_DIR, "") if directory == "sponge" else directory


# ---------------------------------------------------------------- flags of 2019


@dataclass(slots=True)
class LegacyDump:
    """Protos of one program before, between and after the passes (`JAX_DUMP_HLO_UNOPTIMIZED`,
    `_PER_PASS`, `_OPTIMIZED`): each kind in its folder below the directory of its variable."""

    settings: JaxSettings
    number: int
    name: str
    _steps: int = 0
    _pipeline: str = ""

    @classmethod
    def of(cls, settings: JaxSettings, op: ModuleOp) -> LegacyDump | None:
        """The dump of a module; None where no variable asks for one."""
        if not settings.dumps_stages:
            return None
        return cls(settings, next(_legacy), names.module_identifier(HloModule(op).name))

    def unoptimized(self, op: ModuleOp) -> None:
        """The module as it came."""
        self._write("hlo_unoptimized", self.settings.dump_hlo_unoptimized, self.name, op)

    def optimized(self, op: ModuleOp) -> None:
        """The module as it runs."""
        self._write("hlo_optimized", self.settings.dump_hlo_optimized, self.name, op)

    def watchers(self) -> Sequence[Instrumentation]:
        """Who is told of the passes."""
        return (self,) if self.settings.dump_hlo_per_pass else ()

    def started(self, pipeline: str, passes: Sequence[ModulePass], module: ModuleOp) -> None:
        """As `Instrumentation`."""
        del passes
        self._pipeline = pipeline
        self._stage(names.PIPELINE_START, module)

    def before(self, pass_: ModulePass, module: ModuleOp) -> None:
        """As `Instrumentation`."""

    def after(self, pass_: ModulePass, module: ModuleOp, changed: bool, seconds: float) -> None:
        """As `Instrumentation`; passes that change nothing leave no file."""
        del seconds
        if changed:
            self._stage(f"after_{pass_.name}", module)

    def _stage(self, after: str, op: ModuleOp) -> None:
        stem = f"{self._steps:04d}.{self._pipeline}.{after}"
        self._steps += 1
        self._write("hlo_per_pass", self.settings.dump_hlo_per_pass, stem, op)

    def _write(self, folder: str, directory: str, stem: str, op: ModuleOp) -> None:
        def proto() -> bytes:
            return protos.hlo_proto(op, self.number, None)

        if directory:
            file = f"module_{self.number:04d}.{stem}.hlo.pb"
            _write(os.path.join(directory, folder), file, proto)


def _dump_graph_of(settings: JaxSettings, op: ModuleOp) -> None:
    """The dot file of `JAX_DUMP_HLO_GRAPH`."""
    module = HloModule(op)
    if not _is_found(settings.dump_hlo_graph, module.name):
        return
    name = names.module_identifier(module.name)
    stem = names.stem(next(_dots), name, names.BEFORE_OPTIMIZATIONS)

    def dot() -> str:
        return graph.render(op, "dot", graph.GraphOptions(label=stem))

    dump_to = process_flags().options.xla_dump_to
    directory = dump_to if dump_to not in ("", "-") else tempfile.gettempdir()
    _write(directory, f"{stem}.dot", dot)


def _is_found(expression: str, name: str) -> bool:
    try:
        return re.search(expression, name) is not None
    except re.error:
        message = f"Invalid RE2: {expression} (JAX_DUMP_HLO_GRAPH)"
        LOG.warning("%s", Diagnostic("HLO0525", message, severity=Severity.WARNING))
        return False


# ---------------------------------------------------------------- TensorFlow


_GRAPH_NAME = re.compile(r"[/\[\]*?]")


def _dump_clusters(settings: JaxSettings, op: ModuleOp) -> None:
    """The graph before clusters are marked, and after: a jitted function is one cluster."""
    for name, cluster in (
        ("before_mark_for_compilation", ""),
        ("mark_for_compilation", "cluster_0"),
    ):
        dump_graph(name, partial(graph_def_text, op, cluster), settings.tf_dump_graph_prefix)


def dump_graph(name: str, text: Callable[[], str], prefix: str | None = None) -> None:
    """Writes a graph of TensorFlow's as `NAME_N.pbtxt`, the Nth of its name in this process.

    `prefix`: the folder; `-` logs the graph; None takes TF_DUMP_GRAPH_PREFIX. Warns (HLO0525) without one.
    """
    if prefix is None:
        prefix = os.environ.get("TF_DUMP_GRAPH_PREFIX", "")
    if not prefix or not (directory := _sponge(prefix)):
        message = f"Failed to dump {name} because dump location is not specified through either"
        message += " TF_DUMP_GRAPH_PREFIX environment variable or function argument."
        LOG.warning("%s", Diagnostic("HLO0525", message, severity=Severity.WARNING))
        return
    if directory == "-":
        LOG.warning("Graph %s:\n%s", name, text())
        return
    name = _GRAPH_NAME.sub("_", name)
    count = _graphs[name] = _graphs.get(name, -1) + 1
    name = f"{name}_{count}" if count else name
    _write(directory, f"{name}.pbtxt", text)
