"""Compares the stages of kernels in our pipeline with those of the real TPU compiler, text by text.

    python tools/compare_stages.py --library
    python tools/compare_stages.py test/unit/mosaic/language/authored.py acceptance.jsonl
    python tools/compare_stages.py kernel.mlir --operand f32[8,128] --result f32[8,128] --diff 12

Kernels are those of the library (`--library`), the cases of a Python file (a dictionary of things with
`call` and `inputs`), the lines of a JSON file (`name`, `mlir`, `args`, `outs`), or MLIR text. Each is
compiled by libtpu, which needs no TPU, with `--xla_mosaic_dump_to`; its files are read, and printed as we
print ours. `--list` names the first stage at which each kernel differs, `--diff STAGE` shows the lines.
`--dumps DIR` keeps the files. Exit status 77 when jax or libtpu is missing.
"""

from __future__ import annotations

import argparse
import base64
import difflib
import importlib.util
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp, StringAttr

from mlirhlo.diagnostics import HloError
from mlirhlo.formats.mosaic import print_kernel
from mlirhlo.mosaic import tpu_compiler
from mlirhlo.mosaic.decode import read_kernel, write_stable
from mlirhlo.mosaic.pipeline import STAGES, run_pipeline
from mlirhlo.mosaic.runs import ArrayType, parse_type, types_of_arguments
from mlirhlo.mosaic.tpu_compiler import TOPOLOGIES, Job, Verdict

SKIPPED = 77
TESTS = Path(__file__).parents[1] / "test"
NAMES = ["original", *(f"post-{stage.name}" for stage in STAGES[:-1])]
"""Stages that both have; the last one is each one's own."""


@dataclass(slots=True)
class Case:
    """A kernel to be compared."""

    name: str
    module: ModuleOp
    job: Job
    ours: dict[str, str] = field(default_factory=dict[str, str])
    theirs: dict[str, str] = field(default_factory=dict[str, str])
    problem: str = ""
    """Why our pipeline ended before its last stage."""

    def first_difference(self) -> str:
        """The first stage with another text, if any."""
        for stage in NAMES:
            if stage in self.theirs and self.ours.get(stage) != self.theirs[stage]:
                return stage
        return ""


def of_call(name: str, case: Any, generation: str) -> Case:
    """A `kernel_call` with its inputs."""
    lowered = case.call.lower(*case.inputs)
    named = _named(lowered.module, name)
    return Case(name, named, replace(lowered, module=named).job(generation))


def of_text(
    name: str, text: bytes, types: Sequence[ArrayType], results: int, generation: str
) -> Case:
    """A kernel's text, whose last types are those of results."""
    module = _named(read_kernel(text, name), name)
    body = base64.b64encode(write_stable(module)).decode()
    call = {"body": body, "serialization_format": 1, "needs_layout_passes": True}
    arrays = [(one.dtype.name, one.shape) for one in types]
    count = len(arrays) - results
    config = json.dumps({"custom_call_config": call})
    topology = TOPOLOGIES.get(generation, generation)
    return Case(name, module, Job(config, arrays[:count], arrays[count:], topology=topology))


def _named(module: ModuleOp, name: str) -> ModuleOp:
    """The module under a name that its files can be found by."""
    module = module.clone()
    module.properties["sym_name"] = StringAttr(re.sub(r"[^A-Za-z0-9_]", "_", name))
    return module


def cases_of(path: Path, options: argparse.Namespace) -> Iterator[Case]:
    """The kernels of a file."""
    generation = options.generation
    if path.suffix == ".py":
        sys.path.insert(0, str(TESTS))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
        for table in list(vars(module).values()):
            for name, case in table.items() if isinstance(table, dict) else ():
                if hasattr(case, "call") and generation not in getattr(case, "not_on", ()):
                    yield of_call(name, case, generation)
    elif path.suffix == ".jsonl":
        for number, line in enumerate(path.read_text().splitlines()):
            entry = json.loads(line)
            types = [parse_type(text) for text in (*entry["args"], *entry["outs"])]
            name = f"k{number}_{entry['name']}"[:60]
            try:
                yield of_text(name, entry["mlir"].encode(), types, len(entry["outs"]), generation)
            except HloError as problem:
                print(f"{name}: {problem.diagnostics[0].message}")
    else:
        text = path.read_bytes()
        types = [parse_type(one) for one in (*options.operand, *options.result)]
        if not types:
            from mlirhlo.mosaic.interpreter import Kernel

            types = types_of_arguments(Kernel(read_kernel(text, str(path))))
        yield of_text(path.stem, text, types, len(options.result) or 1, generation)


def library_cases(generation: str) -> Iterator[Case]:
    """The kernels of the library, each with the operands of its example."""
    sys.path.insert(0, str(TESTS))
    from unit.mosaic.language.library import LIBRARY_CASES

    for name, case in LIBRARY_CASES.items():
        yield of_call(name, case, generation)


def _printed(text: bytes, name: str) -> str:
    return print_kernel(read_kernel(text, name), keep_names=False)


def run_ours(case: Case, generation: str = "v5e") -> None:
    """Our stages' texts, of the module as the TPU compiler read it."""

    def observe(module: ModuleOp, stage: str, number: int) -> None:
        if stage in NAMES:
            case.ours[stage] = _printed(print_kernel(module).encode(), stage)

    try:
        text = case.theirs.get("original")
        module = case.module.clone() if text is None else read_kernel(text.encode(), case.name)
        run_pipeline(module, observe=observe, generation=generation)
    except HloError as problem:
        case.problem = problem.diagnostics[0].message


def run_theirs(cases: Sequence[Case], folder: Path) -> list[Verdict]:
    """The TPU compiler's stages' texts."""
    jobs = [case.job for case in cases]
    verdicts = tpu_compiler.compile_all(jobs, [f"--xla_mosaic_dump_to={folder}"])
    by_name = {str(case.module.properties["sym_name"]).strip('"'): case for case in cases}
    for file in sorted(folder.iterdir()):
        match = re.match(r"\d+-\d{4}-mosaic-dump-(.*?)-((?:post-|original).*)\.txt\Z", file.name)
        if match is None or match[1] not in by_name or match[2] not in NAMES:
            continue
        try:
            by_name[match[1]].theirs[match[2]] = _printed(file.read_bytes(), file.name)
        except HloError as problem:
            message = problem.diagnostics[0].message
            print(f"{match[1]} {match[2]} is not read: {message}", file=sys.stderr)
    return verdicts


def report(cases: Sequence[Case], verdicts: Sequence[Verdict], options: argparse.Namespace) -> None:
    """The table, and what was asked for besides."""
    for case, verdict in zip(cases, verdicts, strict=True):
        if options.list:
            theirs = "accepted" if verdict.is_accepted else verdict.message.split("\n")[0][-90:]
            ours = case.problem or case.first_difference() or "same to the end"
            print(f"{case.name}: {ours} | {theirs}")
        elif case.problem and verdict.is_accepted:
            print(f"{case.name}: {case.problem}")
        if options.diff and options.diff in case.theirs:
            old, new = (
                side.get(options.diff, "").splitlines() for side in (case.theirs, case.ours)
            )
            lines = difflib.unified_diff(old, new, "theirs", f"ours: {case.name}", n=0, lineterm="")
            print("\n".join(line[: options.width] for line in lines))
    print(f"{'stage':36} {'same':>5} {'of':>5}")
    total = same = 0
    for stage in NAMES:
        both = [case for case in cases if stage in case.theirs]
        equal = sum(case.ours.get(stage) == case.theirs[stage] for case in both)
        print(f"{stage:36} {equal:5} {len(both):5}")
        total, same = total + len(both), same + equal
    print(f"{'all':36} {same:5} {total:5}")
    accepted = [c for c, verdict in zip(cases, verdicts, strict=True) if verdict.is_accepted]
    through = sum(not case.problem for case in accepted)
    print(f"{len(accepted)} of {len(cases)} kernels are accepted, {through} reach our last stage")


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--library", action="store_true")
    parser.add_argument("--generation", default="v5e")
    parser.add_argument("--operand", action="append", default=[])
    parser.add_argument("--result", action="append", default=[])
    parser.add_argument("--only", default="", help="a regular expression for names")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--diff", default="", help="a stage, by its name or number")
    parser.add_argument("--width", type=int, default=200, help="characters of a line shown")
    parser.add_argument("--dumps", type=Path)
    options = parser.parse_args()
    if options.diff.isdigit():
        options.diff = NAMES[int(options.diff) - 1]
    if not tpu_compiler.is_available():
        print("jax and libtpu are not installed", file=sys.stderr)
        return SKIPPED
    cases = list(library_cases(options.generation)) if options.library else []
    cases += [case for path in options.files for case in cases_of(path, options)]
    cases = [case for case in cases if re.search(options.only, case.name)]
    with tempfile.TemporaryDirectory() as kept:
        folder = options.dumps or Path(kept)
        folder.mkdir(parents=True, exist_ok=True)
        verdicts = run_theirs(cases, folder)
    for case in cases:
        run_ours(case, options.generation)
    report(cases, verdicts, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
