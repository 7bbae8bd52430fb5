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
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from mlirhlo.debug.dump import names
from mlirhlo.debug.dump.settings import OUTPUTS_DIR
from mlirhlo.debug.dump.sink import attempt, open_directory
from mlirhlo.debug.options import process_flags
from mlirhlo.debug.options.jax_era import JaxSettings, jax_settings
from mlirhlo.diagnostics import Diagnostic, Severity, error
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.shapes import TupleShape

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.debug.options import Flags
    from mlirhlo.dialects.hlo.ops.base import Instruction

LOG = logging.getLogger("mlirhlo.dump")

_modules, _programs, _legacy = itertools.count(), itertools.count(), itertools.count()
_graphs: dict[str, int] = {}
"""How often each name of a TensorFlow graph was written."""

_DROPPED = re.compile(r"[^\w.)( -]")


def dump_program(settings: JaxSettings, op: ModuleOp, function: str) -> None:
    """A traced function, before it is compiled.

    Raises `HloError` HLO0520 when the directory is `sponge` and that is nowhere.
    """
    if settings.dump_ir_to:
        _dump_ir(settings, op, function)
    _dump_legacy(settings, op)
    if settings.tf_xla_clustering_debug:
        _dump_clusters(settings, op)


def with_logging(op: ModuleOp, flags: Flags) -> Flags:
    """The flags with `xla_detailed_logging` false for small programs, as JAX sets it."""
    least = jax_settings().compiler_detailed_logging_min_ops
    count = sum(1 for _ in itertools.islice(HloModule(op).instructions, max(least, 0)))
    if count >= least or "xla_detailed_logging" in flags.given:
        return flags
    return flags.with_compile_options({"xla_detailed_logging": False})


Run: TypeAlias = "Callable[[Sequence[Any]], list[Any]]"


def watched_runner(op: ModuleOp, flags: Flags, run: Run) -> Run:
    """What runs `op` on the interpreter, with its dumps, snapshots and profile where they are asked
    for; else `run` itself."""
    from mlirhlo.debug.dump.compilation import dumping

    dump = dumping(op, flags, "interpreter")
    if dump is not None:
        dump.given(op)
        dump.optimized(op)
    if jax_settings().hlo_profile:
        run = _profiled(op)
    tell = None if dump is None else dump.runs()
    if tell is None:
        return run
    is_tuple = isinstance(HloModule(op).entry.root.shape, TupleShape)

    def watched(arguments: Sequence[Any]) -> list[Any]:
        done = tell(arguments)
        results = run(arguments)
        done(tuple(results) if is_tuple else results[0])
        return results

    return watched


def _profiled(op: ModuleOp) -> Run:
    """Runs and logs the time of each instruction, the longest first (`jax_hlo_profile`)."""
    is_tuple = isinstance(HloModule(op).entry.root.shape, TupleShape)

    def run(arguments: Sequence[Any]) -> list[Any]:
        from mlirhlo.debug.dump.assignment import instruction_names
        from mlirhlo.interp.engine import Interpreter

        name_of = instruction_names(op)
        spent: dict[str, float] = {}
        last = time.perf_counter()

        def hook(instruction: Instruction, inputs: Sequence[Any], value: Any) -> None:
            del inputs, value
            nonlocal last
            now = time.perf_counter()
            name = f"%{name_of(instruction)} = {instruction.opcode.name}"
            spent[name] = spent.get(name, 0.0) + now - last
            last = now

        interpreter = Interpreter(op, hook=hook)
        last = time.perf_counter()
        result: Any = interpreter.run(arguments)
        rows = sorted(spent.items(), key=lambda row: -row[1])
        total = sum(spent.values()) or 1.0
        lines = [f"{s * 1e6:12.1f} us {100 * s / total:5.1f}%  {name}" for name, s in rows]
        title = f"Execution profile for {HloModule(op).name}: {total * 1e6:.1f} us"
        LOG.warning("%s", "\n".join([title, *lines]))
        return list(result) if is_tuple else [result]

    return run


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
        from mlirhlo.debug.dump import jaxpr

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
            from mlirhlo.formats.stablehlo import print_module
            from mlirhlo.rewrites.hlo_to_stablehlo import convert_to_stablehlo

            return print_module(convert_to_stablehlo(op), debug_info=info)

        _write(directory, f"jax_ir{next(_modules):04d}_{name}_compile.mlir", text)


def _sponge(directory: str) -> str:
    return os.environ.get(OUTPUTS_DIR, "") if directory == "sponge" else directory


# ---------------------------------------------------------------- flags of 2019


def _dump_legacy(settings: JaxSettings, op: ModuleOp) -> None:
    """What runs on the interpreter is not changed by passes, so all stages are the same module."""
    wanted = {
        "hlo_unoptimized": settings.dump_hlo_unoptimized,
        "hlo_optimized": settings.dump_hlo_optimized,
        "hlo_per_pass": settings.dump_hlo_per_pass,
    }
    module = HloModule(op)
    if not any(wanted.values()) and not settings.dump_hlo_graph:
        return
    number, name = next(_legacy), names.module_identifier(module.name)

    def proto() -> bytes:
        from mlirhlo.debug.dump.protos import hlo_proto

        return hlo_proto(op, number, None)

    for folder, directory in wanted.items():
        stem = f"module_{number:04d}.{name}"
        if folder == "hlo_per_pass":
            stem = f"module_{number:04d}.0000.jit.{names.PIPELINE_START}"
        if directory:
            _write(os.path.join(directory, folder), f"{stem}.hlo.pb", proto)
    if settings.dump_hlo_graph and _is_found(settings.dump_hlo_graph, module.name):
        stem = names.stem(number, name, names.BEFORE_OPTIMIZATIONS)

        def dot() -> str:
            from mlirhlo.debug.graph import GraphOptions, render

            return render(op, "dot", GraphOptions(label=stem))

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
        _dump_graph(settings.tf_dump_graph_prefix, name, op, cluster)


def _dump_graph(prefix: str, name: str, op: ModuleOp, cluster: str) -> None:
    if not prefix or not (directory := _sponge(prefix)):
        message = f"Failed to dump {name} because dump location is not specified through either"
        message += " TF_DUMP_GRAPH_PREFIX environment variable or function argument."
        LOG.warning("%s", Diagnostic("HLO0525", message, severity=Severity.WARNING))
        return
    from mlirhlo.debug.dump.graph_def import graph_def_text

    if directory == "-":
        LOG.warning("Graph %s:\n%s", name, graph_def_text(op, cluster))
        return
    name = _GRAPH_NAME.sub("_", name)
    count = _graphs[name] = _graphs.get(name, -1) + 1
    name = f"{name}_{count}" if count else name
    _write(directory, f"{name}.pbtxt", lambda: graph_def_text(op, cluster))
