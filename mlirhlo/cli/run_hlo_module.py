"""`run_hlo_module`: run a module or a snapshot and compare the result with a reference."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlirhlo.cli import inputs as files
from mlirhlo.cli.options import answered, parse
from mlirhlo.cli.replay.compiled import COMPILED, CPU, CUDA
from mlirhlo.cli.report import (
    CURRENT_INPUT,
    DONE,
    UsageError,
    run_tool,
    usage_error,
)
from mlirhlo.diagnostics import HloError
from mlirhlo.importing import LATE
from mlirhlo.runtime.launcher import launched, own_rank

with LATE:
    from mlirhlo.cli import xla_flags
    from mlirhlo.cli.replay import ranks
    from mlirhlo.rewrites import registry
    from mlirhlo.runtime import threads


if TYPE_CHECKING:
    pass
from mlirhlo.cli.replay.replay_options import INTERPRETER, Options
from mlirhlo.cli.replay.replays import Replay

PURPOSE = "run_hlo_module: run an HLO module or snapshot, and compare the result with a reference"
USAGE = "run_hlo_module --platform=Interpreter|CPU|CUDA [options] FILE..."
EXAMPLES = (
    "echo 'f32[4] add(f32[4] x, f32[4] y)' | run_hlo_module --platform=Interpreter -",
    "echo 's8[] abs(s8[] x)' | run_hlo_module --platform=Interpreter --print_literals -",
    "echo 's32[3] iota(), iota_dimension=0' | run_hlo_module --platform=Interpreter --trace -",
)

MISCOMPARED = 255
"""XLA's tool returns -1."""


def main(argv: Sequence[str] | None = None) -> int:
    """The console script."""
    if argv is None and launched() > 1:
        return ranks.run_as_rank(
            lambda: run_tool("run_hlo_module", _run, argv), (DONE, MISCOMPARED)
        )
    return run_tool("run_hlo_module", _run, argv)


def _run(argv: Sequence[str]) -> int:
    parsed = parse(Options, argv)
    options = parsed.options
    if answered("run_hlo_module", options, PURPOSE, USAGE, EXAMPLES):
        return DONE

    if options.gpu_target_config:
        parsed.xla.append(("xla_gpu_target_config_filename", options.gpu_target_config))
    xla = xla_flags.read_flags(parsed.xla)
    paths = [*([options.input_module] if options.input_module else []), *parsed.files]
    if not paths:
        raise usage_error("no module to run", help="name a file, or '-' for standard input")
    options.platform = _platform("--platform", options.platform)
    if options.platform != INTERPRETER and (options.trace or options.step):
        raise usage_error(f"--trace and --step need --platform={INTERPRETER}")
    if options.check_memory and options.platform != CPU:
        raise usage_error(f"--check_memory needs --platform={CPU}")
    if options.profile and options.platform not in COMPILED:
        raise usage_error(f"--profile needs --platform={CPU} or {CUDA}")
    for name in ("gpu", "gpu_target_config"):
        if options.platform != CUDA and getattr(options, name):
            raise usage_error(f"--{name} needs --platform={CUDA}")
    if options.threads:
        threads.set_thread_count(options.threads)
    reference = _reference(options)
    if own_rank():  # rank 0 writes and compares
        xla, reference = xla_flags.read_flags([]), ""
        options.output_npz = options.output_literals_file = None
    files.check_format(options.input_format)
    one_only = [
        name
        for name in ("input_npz", "output_npz", "input_literals_file", "output_literals_file")
        if getattr(options, name) is not None
    ]
    if one_only and len(paths) > 1:
        raise usage_error(f"--{one_only[0]} goes with one module, {len(paths)} are given")
    if options.load_pass:
        for path in options.load_pass:
            registry.load_pass_file(path)
    miscompared = runs = 0
    for path in paths:
        if len(paths) > 1:
            print(f"** Running {path} **", file=sys.stderr)
        try:
            tally = Replay(path, options, xla, reference).run()
        except UsageError:
            raise
        except HloError as problem:
            name = CURRENT_INPUT.name or path
            raise HloError(*(files.named(d, name) for d in problem.diagnostics)) from problem
        miscompared += tally.miscompared
        runs += tally.compared
    if runs:
        print(f"{miscompared}/{runs} runs miscompared.", file=sys.stderr)
    return MISCOMPARED if miscompared else DONE


def _platform(name: str, value: str) -> str:
    if value.lower() in ("interpreter", "interp"):
        return INTERPRETER
    if value.lower() in ("cpu", "host"):
        return CPU
    if value.lower() in ("cuda", "gpu"):
        return CUDA
    if not value:
        raise usage_error(f"{name} is missing", help=f"say {name}={INTERPRETER} or {name}={CPU}")
    names = ", ".join((INTERPRETER, *COMPILED))
    raise usage_error(f"{name}={value}: no such platform here", help=f"there are: {names}")


def _reference(options: Options) -> str:
    """Name of the reference platform; empty for none."""
    value = options.reference_platform
    return (
        ""
        if not value
        else _platform("--reference_platform", "interp" if value == "default" else value)
    )


if __name__ == "__main__":
    sys.exit(main())
