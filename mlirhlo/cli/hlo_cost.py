"""`hlo-cost`: what a module costs on a described chip."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import mlirhlo
from mlirhlo.cli.inputs import as_hlo, check_entry, read_input, single_file
from mlirhlo.cli.options import flag, help_text, parse
from mlirhlo.cli.report import DONE, run_tool, usage_error
from mlirhlo.cli.trying import ProgressLine
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo import formats
    from mlirhlo.debug import cost
    from mlirhlo.debug.cost import texts, what_if
    from mlirhlo.debug.trials import conditions, sides
    from mlirhlo.rewrites import pipeline


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.debug.cost import CostReport

PURPOSE = "hlo-cost: operations, bytes, time and memory of a module on a described chip"
USAGE = "hlo-cost FILE [options]    (FILE: HLO, StableHLO, a proto; - is standard input)"
EXAMPLES = (
    "hlo-cost m.hlo                            an optimised module, on an H100",
    "hlo-cost m.hlo --chip=h100,a100,v5p       several chips, a line each",
    "hlo-cost m.hlo --chip=mine.toml --top=50  a chip of one's own",
    "hlo-cost m.hlo --passes=gpu               after XLA's passes for GPUs, as we have them",
    "hlo-cost m.hlo --resize=32:128            what if the batch were 128",
    "hlo-cost m.hlo --shard=x:8,1              what if x were cut among eight devices",
)


@dataclass
class Options:
    """The command line of hlo-cost."""

    chip: tuple[str, ...] = flag(
        (), group="Chip", metavar="NAMES", help="chips, or files FILE.toml [h100]"
    )
    list_chips: bool = flag(False, group="Chip", help="chips that are described, with sources")
    passes: str = flag("", "p", group="Input", metavar="PASSES", help="cpu, gpu, tpu, or passes")
    resize: tuple[str, ...] = flag(
        (), group="What if", metavar="OLD:NEW", help="dimensions of a size have another one"
    )
    shard: str = flag(
        "", group="What if", metavar="NAME:TILES", help="parameters are cut: x:8,1;w:1,8"
    )
    top: int = flag(10, "n", group="Output", metavar="N", least=0, help="rows of each table")
    html: str = flag("", group="Output", metavar="FILE", help="a page with memory over time")
    pprof: str = flag("", group="Output", metavar="FILE", help="peak memory for pprof")
    json: bool = flag(False, group="Output", help="all of it as JSON")
    quiet: bool = flag(False, "q", group="Output", help="no progress")
    help: bool = flag(False, "h", group="Help", help="")
    version: bool = flag(False, "v", group="Help", help="")
    debug: bool = flag(False, group="Help", help="Python traceback of an error")


def main(argv: Sequence[str] | None = None) -> int:
    """The console script."""
    return run_tool("hlo-cost", _run, argv)


def _run(argv: Sequence[str]) -> int:
    parsed = parse(Options, argv)
    options = parsed.options
    if options.version:
        print(f"hlo-cost of mlirhlo {mlirhlo.__version__}")
        return DONE
    if options.help:
        print(help_text(Options, PURPOSE, USAGE, EXAMPLES, xla=False))
        return DONE

    if options.list_chips:
        for name in cost.chip_names():
            known = cost.chip(name)
            print(f"{name:9} {known.description}: {', '.join(known.sources)}")
        return DONE
    chips = [cost.chip(name) for name in options.chip or ("h100",)]
    module = _read(single_file(parsed.files), options)
    modules = [module, _changed(module, options)] if options.resize or options.shard else [module]
    line = ProgressLine(quiet=options.quiet)
    reports: list[CostReport] = []
    try:
        for target in chips:
            for each in modules:
                line.show(f"costs on {target.name}", len(reports), len(chips) * len(modules))
                reports.append(cost.estimate(each, target))
    finally:
        line.close()
    _write(reports, options)
    return DONE


def _read(path: str, options: Options) -> ModuleOp:
    data, name = read_input(path)
    loaded = as_hlo(formats.load(data, name=name))
    check_entry(loaded)
    conditions.verify(loaded.module, name)
    if options.passes:
        pipeline.run_pipeline(
            loaded.module, sides.Side.parse(f"Interpreter:{options.passes}").pipeline()
        )
    return loaded.module


def _changed(module: ModuleOp, options: Options) -> ModuleOp:
    if options.resize:
        module = what_if.with_sizes(module, dict(_pair(text) for text in options.resize))
    if options.shard:
        tiles: dict[str, tuple[int, ...]] = {}
        for part in options.shard.split(";"):
            name, _, counts = part.strip().rpartition(":")
            tiles[name] = tuple(_number("--shard", part, count) for count in counts.split(","))
        module = what_if.with_sharding(module, tiles)
    return module


def _pair(text: str) -> tuple[int, int]:
    before, _, after = text.partition(":")
    return _number("--resize", text, before), _number("--resize", text, after)


def _number(option: str, text: str, number: str) -> int:
    if not number.strip().isdigit() or int(number) < 1:
        example = "--resize=32:128" if option == "--resize" else "--shard=x:8,1"
        raise usage_error(f"{option}={text}: '{number}' is no size", help=f"as in {example}")
    return int(number)


def _write(reports: Sequence[CostReport], options: Options) -> None:
    last = reports[-1]
    if options.html:
        formats.write_file(options.html, texts.as_page(last).encode("utf-8", "surrogateescape"))
    if options.pprof:
        if last.memory is None:
            raise usage_error("--pprof: the buffers of this module cannot be assigned")
        formats.write_file(options.pprof, last.memory.pprof())
    if options.json:
        plain = [asdict(report) for report in reports]
        print(json.dumps(plain if len(plain) > 1 else plain[0], indent=1))
    elif len(reports) > 1:
        print("\n".join(map(texts.summary, reports)))
    else:
        print("\n".join(texts.as_text(last, options.top)))


if __name__ == "__main__":
    sys.exit(main())
