"""The tools that `scaling.py` measures: by name, what each does with the program in a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from mlirhlo.cli import (
    hlo_aot,
    hlo_bisect,
    hlo_cost,
    hlo_cut,
    hlo_diff,
    hlo_dump,
    hlo_opt,
    hlo_reduce,
    hlo_translate,
    hlo_view,
    run_hlo_module,
)
from mlirhlo.debug.editor import features
from mlirhlo.debug.editor.document import Document
from mlirhlo.dialects.hlo.attributes.sharding import ShardingAttr, read_sharding
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.syntax import parse_all
from mlirhlo.formats import load, to_bytes
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.rewrites.hlo_to_stablehlo import convert_to_stablehlo
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline
from mlirhlo.rewrites.registry import list_passes
from mlirhlo.rewrites.stablehlo_to_hlo import convert_to_hlo

FORMATS = ("hlo", "mlir", "mlir-generic", "pb", "pbtxt", "json", "stablehlo", "mlirbc", "artifact")
FORMS = (
    *("hlo", "mlir", "mlir-generic", "pb", "pbtxt", "json", "mlirbc"),
    *("stablehlo-mlir", "stablehlo-mlir-generic", "stablehlo-mlirbc", "stablehlo-artifact"),
)
THREADED = ("compile:cpu", "cpu", "compile:gpu", "gpu", "hlo-aot", "hlo-bisect", "hlo-reduce")
"""Tools that start threads or processes, which a fork does not take along."""
ANALYSES = ("cost", "alias", "buffer-assignment", "dataflow", "liveness", "call-graph", "schedules")
Run = Callable[[], object]
"""What is measured; gives something that is not 0 where it failed."""
Tool = Callable[[str], Run]
"""The run on the program in a file of this name, with what it needs besides, such as the module, at hand."""


def opt(*arguments: str) -> Tool:
    """`hlo-opt` with these arguments on the file."""
    return lambda path: lambda: hlo_opt.main([path, "-o", os.devnull, *arguments])


def run_on(platform: str, reference: str = "") -> Tool:
    """`run_hlo_module` on a platform, on inputs that it makes up, compared with a reference where one is named."""
    return lambda path: (
        lambda: run_hlo_module.main(
            [f"--platform={platform}", f"--reference_platform={reference}", path]
        )
    )


def module_in(path: str) -> ModuleOp:
    """The module in a file."""
    return parse_module(Path(path).read_text())


def on_module(action: Callable[[ModuleOp], object]) -> Tool:
    """An action on the module, which is read before."""

    def prepare(path: str) -> Run:
        module = module_in(path)

        def run() -> None:
            action(module)

        return run

    return prepare


def diff(path: str) -> Run:
    """`hlo-diff` of the program and one in which every second instruction has another name."""
    module = module_in(path)
    for op in list(HloModule(module).instructions)[::2]:
        op.instruction_name = f"{op.instruction_name}.other"
    after = f"{path}.after.hlo"
    Path(after).write_bytes(to_bytes(module, "hlo"))
    return lambda: hlo_diff.main([path, after, "-q"]) not in (0, run_hlo_module.MISCOMPARED)


def cut(path: str) -> Run:
    """`hlo-cut` of the entry's root with all that it needs."""
    root = HloModule(module_in(path)).entry.root.instruction_name or ""
    return lambda: hlo_cut.main([path, root, "--height=-1", "-o", f"{path}.cut.hlo"])


def view(*words: str) -> Tool:
    """`hlo-view` with these words: an output file, or a command."""
    return lambda path: lambda: hlo_view.main([path, *(w.format(path) for w in words)])


def near(path: str) -> Run:
    """`hlo-view` of what lies around the entry's root."""
    root = HloModule(module_in(path)).entry.root.instruction_name or ""
    return lambda: hlo_view.main([path, "near", root, "2"])


def dump(path: str) -> Run:
    """A dump of the CPU pipeline with the passes that change much, and `hlo-dump` of it."""
    folder = f"{path}.dumps"
    flags = [f"--xla_dump_to={folder}", "--xla_dump_hlo_pass_re=dce|fusion"]
    return lambda: (
        hlo_opt.main([path, "--platform=cpu", "-o", os.devnull, *flags])
        or hlo_dump.main(["passes", folder])
        or hlo_dump.main(["report", folder, "-o", f"{folder}/report.html"])
    )


def edit(path: str) -> Run:
    """What the language server does: a text is opened, edited in the middle, checked and asked about."""
    lines = Path(path).read_text().splitlines()

    def run() -> None:
        document = Document(path)
        document.update("\n".join(lines))
        at = len(lines) // 2
        document.update("\n".join([*lines[:at], lines[at] + " ", *lines[at + 1 :]]))
        document.check_all()
        features.outline(document)
        features.tokens(document)
        features.inlay_shapes(document, 0, len(lines))
        column = len(lines[-2]) - len(lines[-2].lstrip()) + len("ROOT ")
        for question in (features.definition, features.references, features.hover):
            question(document, len(lines) - 2, column)
        features.completions(document, len(lines) - 2, len(lines[-2]) - 1)

    return run


def write_and_read(form: str) -> Tool:
    """A format written from a module, `stablehlo-` of it as StableHLO, and read again to where it is HLO."""
    emit = form.removeprefix("stablehlo-")

    def run(module: ModuleOp) -> None:
        if emit is form:
            load(to_bytes(module, emit))
        else:
            convert_to_hlo(load(to_bytes(convert_to_stablehlo(module), emit)).module)

    return on_module(run)


def pass_of(name: str) -> Tool:
    """A registered pass on the module."""
    return on_module(lambda module: run_pipeline(module, parse_pipeline(name)))


def partition(module: ModuleOp) -> None:
    """Both passes of partitioning in two, with the first dimension of the entry's even parameters cut."""
    for parameter in HloModule(module).entry.parameters:
        shape = parameter.shape
        if isinstance(shape, ArrayShape) and shape.rank and shape.dimensions[0] % 2 == 0:
            tiles = ",".join(["2", *["1"] * (shape.rank - 1)])
            half = parse_all(f"{{devices=[{tiles}]<=[2]}}", read_sharding)
            parameter.properties["sharding"] = ShardingAttr(half)
    both = ("sharding-propagation", "spmd-partitioning")
    run_pipeline(module, parse_pipeline(",".join(f"{name}{{num_partitions=2}}" for name in both)))


def stablehlo_pass_of(name: str) -> Tool:
    """A pass on StableHLO, on what the module is converted to."""
    return on_module(
        lambda module: run_pipeline(convert_to_stablehlo(module), parse_pipeline(name))
    )


def tools() -> dict[str, Tool]:
    """Every tool by its name."""
    rows = {
        "print": opt(),
        "verify-each": opt("--passes=dce", "--verify-each"),
        "verify-roundtrip": opt("--verify-roundtrip"),
    }
    rows |= {f"write:{emit}": opt(f"--emit={emit}") for emit in FORMATS}
    rows |= {f"read:{form}": write_and_read(form) for form in FORMS}
    rows |= {f"analysis:{name}": opt(f"--print-analysis={name}") for name in ANALYSES}
    rows |= {
        f"pipeline:{platform}": opt(f"--platform={platform}") for platform in ("cpu", "gpu", "tpu")
    }
    rows["interpreter"] = run_on("Interpreter")
    rows |= {
        "run_hlo_module": run_on("Interpreter", "Interpreter"),
        "hlo-cost": lambda path: lambda: hlo_cost.main([path, "-q"]),
        "hlo-cut": cut,
        "hlo-diff": diff,
    }
    rows |= {
        "compile:cpu": opt("--platform=cpu", "--stage=asm"),
        "compile:gpu": opt("--platform=gpu", "--stage=ptx"),
        "cpu": run_on("CPU"),
        "gpu": run_on("CUDA"),
    }
    for kind in ("html", "dot", "svg", "json"):
        rows[f"view:{kind}"] = view("-o", f"{{}}.{kind}", "--no-browser")
    rows |= {f"view:{word}": view(*word.split()) for word in ("stats", "text", "list add")}
    rows |= {"view:near": near, "hlo-dump": dump, "editor": edit}
    for emit in ("mlir", "proto"):
        rows[f"hlo-translate:{emit}"] = lambda path, emit=emit: (
            lambda: hlo_translate.main([path, f"--emit={emit}", "-o", os.devnull])
        )
    # One evaluation each: the fault that they look for is not there, which is told.
    for name, main in (("hlo-reduce", hlo_reduce.main), ("hlo-bisect", hlo_bisect.main)):
        rows[name] = lambda path, main=main: lambda: main([path, "--bad=Interpreter:dce", "-q"])
    rows["hlo-aot"] = lambda path: lambda: hlo_aot.main([path, "-o", f"{path}.aot"])
    rows["partition"] = on_module(partition)
    passes = list_passes(loaded=False)
    rows |= {f"pass:{name}": pass_of(name) for name in passes}
    rows |= {
        f"stablehlo:{name}": stablehlo_pass_of(name) for name in passes if "stablehlo-" in name
    }
    return rows
