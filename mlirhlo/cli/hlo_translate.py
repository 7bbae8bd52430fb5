"""`hlo-translate`: a module from one format to another."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from mlirhlo.cli import inputs, printing
from mlirhlo.cli.inputs import InputFlags
from mlirhlo.cli.options import answered, flag, parse
from mlirhlo.cli.printing import OutputFlags
from mlirhlo.cli.report import DONE, INPUT_AT_FAULT, report, run_tool, usage_error
from mlirhlo.formats import load
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.cli import xla_flags


PURPOSE = "hlo-translate: turn an HLO module from one format into another"
USAGE = "hlo-translate --FROM-to-TO [options] [FILE|-]    (FROM, TO: hlo, mlir, proto, pbtxt, json)"
EXAMPLES = (
    "echo 'f32[2] add(f32[2] x, f32[2] y)' | hlo-translate --hlo-to-mlir",
    "echo 'f32[2] add(f32[2] x, f32[2] y)' | hlo-translate --hlo-to-mlir | hlo-translate --mlir-to-hlo",
    "echo 'f32[2] add(f32[2] x, f32[2] y)' | hlo-translate --hlo-to-proto | hlo-translate --to=json",
)

_NAMES = {
    "hlo": "hlo",
    "hlo-text": "hlo",
    "text": "hlo",
    "mlir": "mlir",
    "stablehlo": "stablehlo",
    "stablehlo-text": "stablehlo",
    "mlir-hlo": "mlir",
    "mlir-hlo-text": "mlir",
    "mlir-generic": "mlir-generic",
    "proto": "pb",
    "pb": "pb",
    "hlo-proto": "pb",
    "proto-text": "pbtxt",
    "pbtxt": "pbtxt",
    "json": "json",
    "snapshot": "snapshot",
}
"""Words of `--FROM-to-TO`."""


@dataclass
class Options(OutputFlags, InputFlags):
    """The command line of hlo-translate."""

    verify: bool = flag(True, group="Input", help="check the module: --no-verify turns it off")
    help: bool = flag(False, "h", group="Help", help="")
    help_all: bool = flag(False, group="Help", help="", rare=True)
    version: bool = flag(False, "v", group="Help", help="")
    debug: bool = flag(False, group="Help", help="Python traceback of an error")


def main(argv: Sequence[str] | None = None) -> int:
    """The console script."""
    return run_tool("hlo-translate", _run, argv)


def _direction(options: Options, name: str, value: str | None) -> bool:
    """`--hlo-to-mlir` and the like; else a switch of the printer."""
    source, to, target = name.replace("_", "-").partition("-to-")
    if not to:
        return printing.take_switch(options, name, value)
    if source not in _NAMES or target not in _NAMES:
        return False
    # An input that says HLO in any encoding is told by its content.
    options.format = _NAMES[source] if _NAMES[source] in ("mlir", "json", "pbtxt") else None
    options.emit = _NAMES[target]
    return True


def _run(argv: Sequence[str]) -> int:
    parsed = parse(Options, argv, _direction)
    options = parsed.options
    if answered("hlo-translate", options, PURPOSE, USAGE, EXAMPLES):
        return DONE

    text = printing.print_options(options, xla_flags.read_flags(parsed.xla))
    inputs.check_format(options.format)
    target = printing.emitted_format(options, "")
    if not target:
        raise usage_error("no format to write", help="say --hlo-to-mlir, --to=FORMAT or -o FILE.pb")
    data, name = inputs.read_input(inputs.single_file(parsed.files))
    results = list[bytes]()
    for piece in inputs.pieces(data, name, split=options.split_input_file):
        loaded = load(piece, options.format, name=name)
        problems = inputs.verify(loaded) if options.verify else []
        if problems:
            report(problems)
            return INPUT_AT_FAULT
        loaded = inputs.for_format(loaded, target)
        if not inputs.is_stablehlo(loaded):
            inputs.check_entry(loaded)
        results.append(printing.render(loaded.module, target, options, text))
    if len(results) > 1 and target not in ("hlo", "mlir", "mlir-generic"):
        raise usage_error(f"several modules cannot be written as one {target} file")
    divider = b"\n" if target == "hlo" else b"\n// -----\n\n"
    printing.deliver(divider.join(results), options)
    return DONE


if __name__ == "__main__":
    sys.exit(main())
