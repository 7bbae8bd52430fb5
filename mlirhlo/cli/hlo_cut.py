"""`hlo-cut`: a part of a module as a module of its own, with recorded inputs and results."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import mlirhlo
from mlirhlo.cli.inputs import as_hlo, check_entry, read_input
from mlirhlo.cli.options import flag, help_text, parse
from mlirhlo.cli.report import DONE, run_tool, usage_error
from mlirhlo.cli.trying import beside
from mlirhlo.diagnostics import error
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo import formats
    from mlirhlo.debug import cut as debug_cut
    from mlirhlo.debug import replay
    from mlirhlo.debug.trials import conditions, texts
    from mlirhlo.dialects.hlo import module
    from mlirhlo.dialects.hlo import shapes as hlo_shapes
    from mlirhlo.formats import arrays as formats_arrays
    from mlirhlo.interp import values as interp_values
    from mlirhlo.runtime import programs


if TYPE_CHECKING:
    from mlirhlo.debug.cut import Part, Recording
    from mlirhlo.dialects.hlo.module import HloModule
    from mlirhlo.dialects.hlo.ops.base import Instruction
    from mlirhlo.formats import Loaded

PURPOSE = "hlo-cut: a part of a module as a module of its own, with recorded inputs and results"
USAGE = "hlo-cut FILE INSTRUCTION... [options]    (- is standard input)"
EXAMPLES = (
    "hlo-cut m.hlo fusion.3                    a fusion alone: fusion.3.hlo, fusion.3.npz",
    "hlo-cut m.hlo dot.7 --height=3            with what it is computed from, three steps up",
    "hlo-cut m.hlo add.9 mul.2 --since=x,y     between two frontiers",
    "hlo-cut m.hlo fusion.3 --benchmark        how long it takes on the CPU",
)


@dataclass
class Options:
    """The command line of hlo-cut."""

    since: tuple[str, ...] = flag(
        (), group="Cut", metavar="NAMES", help="instructions that become parameters"
    )
    height: int = flag(
        0, group="Cut", metavar="N", least=-1, help="steps up; -1: all [1, with --since all]"
    )
    input_npz: str = flag("", group="Run", metavar="FILE", help="inputs of the run, in0, in1, …")
    seed: int = flag(42, group="Run", metavar="N", least=0, help="of made-up inputs")
    execution: int = flag(
        1, group="Run", metavar="N", least=1, help="which run of the part, for one in a loop"
    )
    timeout: float = flag(
        60.0, group="Run", metavar="SECONDS", help="processor time of the run that is recorded"
    )
    record: bool = flag(True, group="Run", help="run the module and record values")
    benchmark: bool = flag(False, group="Run", help="compile the part for the CPU and time it")
    output: str = flag("", "o", group="Output", metavar="FILE", help="the module; FILE.npz beside")
    json: bool = flag(False, group="Output", help="the result as JSON")
    help: bool = flag(False, "h", group="Help", help="")
    version: bool = flag(False, "v", group="Help", help="")
    debug: bool = flag(False, group="Help", help="Python traceback of an error")


def main(argv: Sequence[str] | None = None) -> int:
    """The console script."""
    return run_tool("hlo-cut", _run, argv)


def _run(argv: Sequence[str]) -> int:
    parsed = parse(Options, argv)
    options = parsed.options
    if options.version:
        print(f"hlo-cut of mlirhlo {mlirhlo.__version__}")
        return DONE
    if options.help:
        print(help_text(Options, PURPOSE, USAGE, EXAMPLES, xla=False))
        return DONE
    if len(parsed.files) < 2:
        raise usage_error("a file and an instruction are needed", help="hlo-cut m.hlo fusion.3")

    path, *names = parsed.files
    data, name = read_input(path)
    loaded = as_hlo(formats.load(data, name=name))
    check_entry(loaded)
    view = module.HloModule(loaded.module)
    height = options.height or (-1 if options.since else 1)
    targets = [_named(view, n) for n in names]
    part = debug_cut.cut(
        view, targets, frontier=[_named(view, n) for n in options.since], height=height
    )
    output = options.output or f"{names[-1].lstrip('%').replace('/', '_')}.hlo"
    formats.write_file(output, texts.module_text(part.module).encode("utf-8", "surrogateescape"))
    facts: dict[str, Any] = {
        "module": output,
        "instructions": sum(1 for _ in module.HloModule(part.module).instructions),
        "parameters": [op.instruction_name for op in part.parameters],
    }
    if options.record or options.benchmark:
        arrays = os.path.join(os.path.dirname(output), beside(output, ".npz"))
        facts |= _recorded(view, part, loaded, options, arrays)
    if options.json:
        print(json.dumps(facts, indent=1))
    else:
        _tell(facts)
    return DONE


def _named(view: HloModule, name: str) -> Instruction:
    """The instruction of a name, that of the entry first. Raises `HloError` HLO0867."""
    from difflib import get_close_matches

    wanted = name.lstrip("%")
    for op in (*view.entry.instructions, *view.instructions):
        if op.instruction_name == wanted:
            return op
    near = get_close_matches(wanted, view.instruction_names(), n=1)
    hint = f"did you mean '{near[0]}'?" if near else None
    raise error("HLO0867", f"the module has no instruction '%{wanted}'", help=hint)


def _recorded(
    view: HloModule, part: Part, loaded: Loaded, options: Options, path: str
) -> dict[str, Any]:
    arguments = _arguments(view, loaded, options)
    recording = debug_cut.record(view, part, arguments, options.execution, timeout=options.timeout)
    shapes = [
        hlo_shapes.TupleShape(tuple(op.shape for op in ops))
        for ops in (part.parameters, part.results)
    ]
    values = (recording.inputs, recording.outputs)
    arrays = [interp_values.arrays_of(cast(Any, value)) for value in values]
    formats_arrays.write_run(
        path, {"in": ([arrays[0]], shapes[0]), "out": ([arrays[1]], shapes[1])}
    )
    facts: dict[str, Any] = {
        "values": path,
        "executions": recording.executions,
        "ended": recording.ended,
        "differs": debug_cut.replays(part, recording),
    }
    if options.benchmark:
        facts["microseconds"] = _timed(part, recording)
    return facts


def _arguments(view: HloModule, loaded: Loaded, options: Options) -> Sequence[object]:
    if options.input_npz:
        inputs = replay.inputs_from_archive(view.op, formats_arrays.read_npz(options.input_npz))
        return inputs.per_device[0]
    if loaded.arguments:
        return replay.inputs_from_literals(view.op, loaded.arguments, 0, 0).per_device[0]
    return conditions.fake_arguments(view.op, options.seed)


def _timed(part: Part, recording: Recording) -> float:
    """Median of runs on the CPU."""
    import statistics
    import time

    program = programs.prepare(part.module, programs.CPU)
    times: list[float] = []
    end = time.perf_counter() + 1.0
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        program(recording.inputs)
        times.append(time.perf_counter() - start)
    return round(statistics.median(times) * 1e6, 1)


def _tell(facts: dict[str, Any]) -> None:
    print(
        f"{facts['module']}: {facts['instructions']} instructions, {len(facts['parameters'])} parameters"
    )
    if "values" not in facts:
        return
    runs = facts["executions"]
    ran = "once" if runs == 1 else f"{runs} times"
    until = "" if facts["ended"] else " before the time of the run was over (--timeout)"
    print(f"{facts['values']}: inputs and results; the part ran {ran}{until}")
    print(
        f"replayed: {facts['differs']}"
        if facts["differs"]
        else "replayed: the recorded results, bit for bit"
    )
    if "microseconds" in facts:
        print(f"on the CPU: {facts['microseconds']} µs, median of a second of runs")


if __name__ == "__main__":
    sys.exit(main())
