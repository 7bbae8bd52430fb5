"""`hlo-fuzz`: random modules through passes, platforms, formats and readers."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import mlirhlo
from mlirhlo.cli.options import flag, help_text, parse
from mlirhlo.cli.report import DONE, run_tool, usage_error
from mlirhlo.cli.run_hlo_module import MISCOMPARED
from mlirhlo.cli.trying import LimitOptions, ProgressLine
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.debug.fuzz import campaign


if TYPE_CHECKING:
    from mlirhlo.debug.fuzz.campaign import Group, Result, Settings

PURPOSE = "hlo-fuzz: random modules through passes, platforms, formats and readers"
USAGE = "hlo-fuzz [FILE...] [options]    (FILE: texts to damage, for mutants and reader)"
EXAMPLES = (
    "hlo-fuzz --minutes=5                           a bit of everything",
    "hlo-fuzz --what=passes --passes=algsimp        one pass; a list chooses among several",
    "hlo-fuzz --what=sides --sides=CPU,CUDA         machine code and the simulated GPU",
    "hlo-fuzz --what=passes --load-pass=mine.py --passes=mine",
    "hlo-fuzz --corpus=found --minutes=600          a long run, which goes on where it stopped",
    "hlo-fuzz --only=17 --what=passes               one case, printed whole",
)


@dataclass
class Options(LimitOptions):
    """The command line of hlo-fuzz."""

    what: tuple[str, ...] = flag(
        (),
        group="Cases",
        metavar="KINDS",
        help="passes, sides, formats, reader; mutants, partitioner [the first four]",
    )
    passes: tuple[str, ...] = flag(
        (), "p", group="Cases", metavar="PASSES", help="passes and platforms to choose from [all]"
    )
    sides: tuple[str, ...] = flag(
        (), group="Cases", metavar="SIDES", help="compared with the interpreter [CPU]"
    )
    load_pass: tuple[str, ...] = flag(
        (), group="Cases", metavar="FILE", help="a Python file with passes"
    )
    size: int = flag(0, group="Cases", metavar="N", least=0, help="instructions; 0: 3, 10, 20")
    seed: int = flag(1, group="Cases", metavar="N", least=0, help="of all choices")
    cases: int = flag(0, "n", group="Run", metavar="N", least=0, help="up to this one [1000]")
    minutes: float = flag(0.0, group="Run", metavar="N", help="stop after so long")
    stop_after: int = flag(0, group="Run", metavar="N", least=0, help="stop after so many causes")
    only: int = flag(-1, group="Run", metavar="N", help="one case, printed whole")
    reduce: bool = flag(True, group="Run", help="reduce what is found")
    corpus: str = flag(
        "", "o", group="Output", metavar="DIR", help="keeps the state and what is found"
    )
    json: bool = flag(False, group="Output", help="the result as JSON on standard output")
    quiet: bool = flag(False, "q", group="Output", help="no progress")
    help: bool = flag(False, "h", group="Help", help="")
    version: bool = flag(False, "v", group="Help", help="")
    debug: bool = flag(False, group="Help", help="Python traceback of an error")


def main(argv: Sequence[str] | None = None) -> int:
    """The console script."""
    return run_tool("hlo-fuzz", _run, argv)


def _run(argv: Sequence[str]) -> int:
    parsed = parse(Options, argv)
    options = parsed.options
    if options.version:
        print(f"hlo-fuzz of mlirhlo {mlirhlo.__version__}")
        return DONE
    if options.help:
        print(help_text(Options, PURPOSE, USAGE, EXAMPLES, xla=False))
        return DONE

    if unknown := [what for what in options.what if what not in campaign.WHAT]:
        raise usage_error(
            f"--what={unknown[0]}: no kind of case", help=f"there are {', '.join(campaign.WHAT)}"
        )
    defaults = campaign.Settings()
    settings = campaign.Settings(
        options.seed,
        tuple(options.what) or (defaults.what if not parsed.files else ("mutants", "reader")),
        tuple(options.sides) or defaults.sides,
        tuple(options.passes),
        options.size,
        tuple(parsed.files),
        tuple(options.load_pass),
    )
    if options.only >= 0:
        return _one(settings.checked(), options.only)
    line = ProgressLine(quiet=options.quiet)

    def tell(result: Result) -> None:
        ran = sum(result.counts.values())
        line.show(f"{ran} cases, {len(result.groups)} causes", result.next, options.cases)

    try:
        result = campaign.fuzz(
            settings,
            cases=options.cases or (1000 if not options.minutes else sys.maxsize),
            seconds=60 * options.minutes or float("inf"),
            jobs=options.processes,
            limits=options.limits(),
            folder=options.corpus or None,
            progress=tell,
            reduces=options.reduce,
            until=lambda result: 0 < options.stop_after <= len(result.groups),
        )
    finally:
        line.close()
    print(json.dumps(asdict(result), indent=1) if options.json else _said(result))
    return MISCOMPARED if result.groups else DONE


def _said(result: Result) -> str:
    lines: list[str] = []
    for number, group in enumerate(result.groups, 1):
        lines += _said_of(number, group)
    ran = sum(result.counts.values())
    counts = ", ".join(f"{what} {n}" for what, n in sorted(result.counts.items()))
    lines.append(f"seed {result.settings.seed}, {ran} cases, {len(result.groups)} causes: {counts}")
    return "\n".join(lines)


def _said_of(number: int, group: Group) -> list[str]:
    cases = ", ".join(map(str, group.cases[:6]))
    lines = [f"{number}. {group.culprit}: {group.cause}; cases {cases}"]
    if group.check:
        lines.append(f"  {group.check}")
    if group.detail:
        lines += [f"  {line[:160]}" for line in group.detail.strip().splitlines()[-2:]]
    return [*lines, *(f"  | {line}" for line in group.reduced.strip().splitlines())]


def _one(settings: Settings, number: int) -> int:
    answer = campaign.run_case(settings, number)
    print(answer["outcome"])
    if "cause" not in answer:
        return DONE
    print(answer["text"])
    print(f"{answer['check']}\n{answer['culprit']}: {answer['cause']}\n{answer['detail']}")
    return MISCOMPARED


if __name__ == "__main__":
    sys.exit(main())
