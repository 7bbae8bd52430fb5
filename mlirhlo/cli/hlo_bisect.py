"""`hlo-bisect`: the pass, rule, rewrite and instruction that make a program compute something else."""

from __future__ import annotations

import json
import os
import sys
import tarfile
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, cast

import mlirhlo
from mlirhlo.cli.inputs import as_hlo, check_entry, read_input, single_file
from mlirhlo.cli.options import flag, help_text, parse
from mlirhlo.cli.report import DONE, run_tool
from mlirhlo.cli.run_hlo_module import MISCOMPARED
from mlirhlo.cli.trying import ProgressLine, TryingOptions, beside, kept_verdicts
from mlirhlo.diagnostics import error
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo import formats
    from mlirhlo.debug.bisect import compare, folders, pipelines, stages, xla
    from mlirhlo.debug.bisect import report as bisect_report
    from mlirhlo.debug.trials import conditions, texts


if TYPE_CHECKING:
    from mlirhlo.debug.bisect.folders import FolderBisection
    from mlirhlo.debug.bisect.instructions import Suspect
    from mlirhlo.debug.bisect.pipelines import PipelineBisection

PURPOSE = "hlo-bisect: which pass, rule, rewrite and instruction first makes a program compute something else"
USAGE = "hlo-bisect FOLDER [MODULE] | ARCHIVE | FILE --bad=SIDE    [options]"
EXAMPLES = (
    "hlo-bisect dumps                           the stages that --xla_dump_hlo_pass_re=.* recorded",
    "hlo-bisect m.hlo --bad=CPU                 the passes of our compiler for CPUs",
    "hlo-bisect m.hlo --bad=Interpreter:gpu     XLA's passes for GPUs, as we have them",
    "hlo-bisect m.hlo --bad=XLA                 the passes of the real XLA in JAX",
    "hlo-bisect m.hlo --bad=CPU --when=crashes  the pass that crashes",
)
_ARCHIVES = (".tar.gz", ".tgz", ".tar")


@dataclass
class Options(TryingOptions):
    """The command line of hlo-bisect."""

    input_npz: str = flag("", group="Condition", metavar="FILE", help="inputs of recorded stages")
    disabled: str = flag(
        "",
        "xla-disable-hlo-passes",
        group="Condition",
        metavar="PASSES",
        help="passes that the real XLA leaves out",
    )
    help: bool = flag(False, "h", group="Help", help="")
    version: bool = flag(False, "v", group="Help", help="")
    debug: bool = flag(False, group="Help", help="Python traceback of an error")


def main(argv: Sequence[str] | None = None) -> int:
    """The console script."""
    return run_tool("hlo-bisect", _run, argv)


def _run(argv: Sequence[str]) -> int:
    parsed = parse(Options, argv)
    options = parsed.options
    if options.version:
        print(f"hlo-bisect of mlirhlo {mlirhlo.__version__}")
        return DONE
    if options.help or not parsed.files:
        print(help_text(Options, PURPOSE, USAGE, EXAMPLES, xla=False))
        return DONE if options.help else 2
    first = parsed.files[0]
    if os.path.isdir(first):
        return _folder(first, parsed.files[1] if len(parsed.files) > 1 else "", options, first)
    if first.endswith(_ARCHIVES):
        with _unpacked(first) as folder:
            return _folder(folder, parsed.files[1] if len(parsed.files) > 1 else "", options, first)
    if options.bad.upper().startswith("XLA"):
        text, _ = _text(single_file(parsed.files))
        with xla.recorded_by_xla(text, options.disabled) as folder:
            code = _folder(folder, "", options, first)
        return code or _generated_code(text, options)
    return _pipeline(single_file(parsed.files), options)


# ---------------------------------------------------------------- folders


def _folder(folder: str, module: str, options: Options, given: str) -> int:
    recorded = stages.read_stages(folder, module)
    output = options.output or beside(given, ".bisect.tar.gz")
    line = ProgressLine(quiet=options.quiet)
    seeds = options.condition().seeds if options.inputs else compare.SEEDS
    with kept_verdicts(output, "nothing is decided yet") as verdicts:
        try:
            found = folders.bisect_folder(
                recorded,
                seeds=seeds,
                npz=options.input_npz,
                jobs=options.processes,
                limits=options.limits(),
                verdicts=verdicts,
                progress=lambda at, total, label: line.show(f"{at} of {total}: {label}", at, total),
            )
        finally:
            line.close()
    said = _said_of_folder(found)
    if found.culprit is not None:
        stage, before = found.culprit.stage, found.culprit.before
        bisect_report.write_report(
            output, found.module, stage.pass_name, stage.pipeline, before.text, stage.text, said
        )
    _print(options, said, _plain(found), output if found.culprit else "")
    return DONE if found.culprit is None else MISCOMPARED


def _generated_code(text: str, options: Options) -> int:
    """What XLA computes against the interpreter, where no pass is at fault."""
    verdict = conditions.evaluate(
        text, conditions.Condition("differs", ("XLA", options.good)).as_json()
    )
    if not verdict["holds"]:
        return DONE
    print(f"results of XLA's code differ though all stages agree: {verdict['detail']}")
    return MISCOMPARED


def _said_of_folder(found: FolderBisection) -> str:
    lines = [f"{found.module}: {len(found.stages)} stages, {found.compared} compared"]
    for skipped in found.skipped[:5]:
        lines.append(f"not run: {skipped.stage.file}: {skipped.reason}")
    if len(found.skipped) > 5:
        lines.append(f"not run: {len(found.skipped) - 5} more")
    culprit = found.culprit
    if culprit is None:
        lines.append("no stage computes something else")
        return "\n".join(lines)
    lines.append(f"culprit: {culprit.stage.label}, {culprit.stage.file}")
    if culprit.between:
        lines.append(
            f"or one of: {', '.join(s.label for s in culprit.between)}, which could not be run"
        )
    lines.append(f"  {culprit.detail.splitlines()[0]}")
    lines += _said_of_suspects(culprit.suspects)
    return "\n".join(lines)


def _said_of_suspects(suspects: Sequence[Suspect]) -> list[str]:
    lines: list[str] = []
    for suspect in suspects:
        lines.append(f"instruction %{suspect.name} in %{suspect.computation}: {suspect.why}")
        if suspect.before:
            lines.append(f"  - {suspect.before[:160]}")
        lines.append(f"  + {suspect.text[:160]}")
    return lines


@contextmanager
def _unpacked(path: str) -> Generator[str]:
    """An archive's files in a folder, as long as the block runs. Raises `HloError` HLO0866."""
    with tempfile.TemporaryDirectory(prefix="hlo-bisect-") as folder:
        try:
            with tarfile.open(path) as archive:
                archive.extractall(folder, filter="data")
        except (OSError, tarfile.TarError, EOFError) as problem:
            raise error("HLO0866", f"cannot unpack '{path}': {problem}") from None
        names = os.listdir(folder)
        inner = os.path.join(folder, names[0]) if len(names) == 1 else ""
        yield inner if os.path.isdir(inner) else folder


# ---------------------------------------------------------------- pipelines


def _pipeline(path: str, options: Options) -> int:
    options.bad = options.bad or "Interpreter:cpu"
    condition = options.condition()
    text, name = _text(path)
    output = options.output or beside(path, ".bisect.tar.gz")
    line = ProgressLine(quiet=options.quiet)
    with kept_verdicts(output, "nothing is decided yet") as verdicts:
        try:
            found = pipelines.bisect_pipeline(
                text,
                condition,
                name=name,
                jobs=options.processes,
                limits=options.limits(),
                verdicts=verdicts,
                progress=lambda low, high, what: line.show(f"{low} to {high} {what}"),
            )
        finally:
            line.close()
    said = _said_of_pipeline(found)
    has_report = bool(found.before and found.after)
    if has_report:
        bisect_report.write_report(
            output,
            name.rsplit(".", 1)[0],
            found.pass_name,
            found.pipeline,
            found.before,
            found.after,
            said,
        )
    _print(options, said, _plain(found), output if has_report else "")
    return MISCOMPARED


def _said_of_pipeline(found: PipelineBisection) -> str:
    if not found.number:
        return f"the condition holds before any pass: {found.detail}"
    lines = [
        f"pass {found.number} of {found.passes}: {found.pass_name} (pipeline {found.pipeline})"
    ]
    if found.rule:
        equation = f": {found.equation}" if found.equation else ""
        lines.append(f"rule {found.rule}{equation}")
    if found.application:
        lines.append(f"rewrite {found.application} of {found.applications} of this run")
    if found.matched:
        lines.append(f"on {found.matched[:160]}")
    if found.detail:
        lines.append(f"  {found.detail.splitlines()[0]}")
    return "\n".join([*lines, *_said_of_suspects(found.suspects)])


# ---------------------------------------------------------------- output


def _text(path: str) -> tuple[str, str]:
    data, name = read_input(path)
    loaded = as_hlo(formats.load(data, name=name))
    check_entry(loaded)
    return texts.module_text(loaded.module), f"{beside(name.strip('<>'), '')}.hlo"


def _print(options: Options, said: str, plain: dict[str, Any], report: str) -> None:
    if options.json:
        print(json.dumps({**plain, "report": report}, indent=1))
        return
    print(said)
    if report:
        print(f"report: {report}; hlo-bisect {report} shows it again")


def _plain(found: Any) -> dict[str, Any]:
    """A result as JSON, without the texts of modules."""
    return cast("dict[str, Any]", _without_texts(asdict(found)))


def _without_texts(value: Any) -> Any:
    if isinstance(value, dict):
        known = cast("dict[str, Any]", value)
        return {k: _without_texts(v) for k, v in known.items() if not _is_module(v)}
    if isinstance(value, list | tuple):
        return [_without_texts(item) for item in cast("list[Any]", value)]
    return value


def _is_module(value: object) -> bool:
    return isinstance(value, str) and "\nENTRY " in value


if __name__ == "__main__":
    sys.exit(main())
