"""`hlo-reduce`: the smallest module that still shows a fault."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import mlirhlo
from mlirhlo.cli.inputs import read_input, single_file
from mlirhlo.cli.options import flag, help_text, parse
from mlirhlo.cli.report import DONE, run_tool
from mlirhlo.cli.trying import ProgressLine, TryingOptions, beside, kept_verdicts
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo import formats
    from mlirhlo.debug import reduce as debug_reduce
    from mlirhlo.debug.trials import texts


PURPOSE = "hlo-reduce: the smallest module that still shows a fault"
USAGE = "hlo-reduce FILE [options]    (FILE: HLO, StableHLO or a kernel; - is standard input)"
EXAMPLES = (
    "hlo-reduce m.hlo --bad=CPU                      CPU and the interpreter differ",
    "hlo-reduce m.hlo --bad=Interpreter:gpu          the passes for GPUs change results",
    "hlo-reduce m.hlo --when=HLO0350                 this diagnostic comes",
    "hlo-reduce m.hlo --when=crashes --bad=CPU       the compiler crashes",
    "hlo-reduce m.hlo --when='command:./check.sh'    ./check.sh FILE ends with 0",
)


@dataclass
class Options(TryingOptions):
    """The command line of hlo-reduce."""

    seed: int = flag(0, group="Search", metavar="N", least=0, help="another order of attempts")
    help: bool = flag(False, "h", group="Help", help="")
    version: bool = flag(False, "v", group="Help", help="")
    debug: bool = flag(False, group="Help", help="Python traceback of an error")


def main(argv: Sequence[str] | None = None) -> int:
    """The console script."""
    return run_tool("hlo-reduce", _run, argv)


def _run(argv: Sequence[str]) -> int:
    parsed = parse(Options, argv)
    options = parsed.options
    if options.version:
        print(f"hlo-reduce of mlirhlo {mlirhlo.__version__}")
        return DONE
    if options.help:
        print(help_text(Options, PURPOSE, USAGE, EXAMPLES, xla=False))
        return DONE

    path = single_file(parsed.files)
    condition = options.condition()
    text, name = _as_text(*read_input(path))
    ending = "mlir" if name.endswith(".mlir") else "hlo"
    output = options.output or beside(path, f".reduced.{ending}")
    line = ProgressLine(quiet=options.quiet)

    def tell(event: debug_reduce.Event) -> None:
        if event.is_smaller and output != "-":
            formats.write_file(output, event.text.encode("utf-8", "surrogateescape"))
        line.show(f"{event.instructions} instructions, {event.evaluated} tries: {event.reducer}")

    kept = beside(path, ".reduced") if output == "-" else output
    with kept_verdicts(kept, f"the smallest module so far is {output}") as verdicts:
        try:
            done = debug_reduce.reduce(
                text,
                condition,
                name=name,
                jobs=options.processes,
                limits=options.limits(),
                verdicts=verdicts,
                seed=options.seed,
                progress=tell,
            )
        finally:
            line.close()
    if output == "-":
        sys.stdout.write(done.text)
    else:
        formats.write_file(output, done.text.encode("utf-8", "surrogateescape"))
    if options.json:
        print(json.dumps({**asdict(done), "output": output}, indent=1))
        return DONE
    print(
        f"{done.instructions_before} -> {done.instructions} instructions,"
        f" {done.evaluated} modules tried: {output}",
        file=sys.stderr,
    )
    if done.verdict.detail:
        print(done.verdict.detail.strip().split("\n")[-1], file=sys.stderr)
    return DONE


def _as_text(data: bytes, name: str) -> tuple[str, str]:
    """The module of a file as text, and a name whose ending says what it is."""
    module = texts.read_module(data, name)
    stem = beside(name.strip("<>"), "")
    return texts.module_text(module), f"{stem}.{'hlo' if texts.is_hlo(module) else 'mlir'}"


if __name__ == "__main__":
    sys.exit(main())
