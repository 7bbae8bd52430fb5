"""The command line of hlo-opt."""

from __future__ import annotations

from dataclasses import dataclass

from mlirhlo.cli import printing
from mlirhlo.cli.inputs import InputFlags
from mlirhlo.cli.opt import stages
from mlirhlo.cli.opt.watch import WatchFlags
from mlirhlo.cli.options import flag
from mlirhlo.cli.printing import OutputFlags
from mlirhlo.cli.report import usage_error
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.rewrites import registry


PLATFORMS = ("transforms", "interpreter")
"""Those whose stages are HLO alone."""
_OTHER_PLATFORMS = ("cpu", "host", "gpu", "cuda", "rocm", "tpu", "xpu")


@dataclass
class Options(WatchFlags, OutputFlags, InputFlags):
    """The command line of hlo-opt."""

    verify: bool = flag(True, group="Input", help="check the module: --no-verify turns it off")
    disable_verify: bool = flag(False, "disable-verification", group="Input", help="")
    passes: tuple[str, ...] = flag(
        (), "p", group="Passes", metavar="a,b{opt=v}", help="passes to run in order; --a --b too"
    )
    pass_pipeline: str | None = flag(None, group="Passes", help="")
    list_passes: bool = flag(False, group="Passes", help="every pass in one line")
    help_passes: bool = flag(False, group="Passes", help="every pass with its page and options")
    help_pass: str = flag(
        "", group="Passes", metavar="NAME", help="one pass: its page, options and rules"
    )
    expand_kernels: bool = flag(
        False, group="Output", help="kernels of tpu_custom_call as text; read back", rare=True
    )
    load_pass: tuple[str, ...] = flag(
        (), "load-pass-plugin", group="Passes", metavar="FILE.py", help="passes of your own"
    )
    verify_each: bool = flag(False, group="Passes", help="check the module after each pass")
    platform: str = flag("transforms", group="Passes", metavar="P", help="whose passes and stages")
    num_partitions: int = flag(
        0,
        "num_partitions",
        group="Passes",
        metavar="N",
        least=0,
        help="partitions of a sharded module [its header's]",
        rare=True,
    )
    gpu: str = flag("", group="Passes", metavar="h100|sm_80", help="GPU that code is made for")
    gpu_target_config: str = flag(
        "", "gpu_target_config", group="Passes", metavar="FILE", help="", rare=True
    )
    stage: str = flag("hlo", group="Passes", metavar="S", help="what to print, see --list-stages")
    list_stages: bool = flag(False, group="Passes", help="stages of the platform")
    dump_pass_pipeline: bool = flag(
        False, group="Passes", help="print the passes as they were understood, to stderr", rare=True
    )
    print_analysis: str | None = flag(
        None,
        group="Output",
        metavar="NAMES",
        help="print cost, alias, dataflow, liveness, call-graph",
    )
    explain_fusion: bool = flag(
        False, group="Output", help="what was not fused and why in place of the module; --json"
    )
    verify_diagnostics: str = flag(
        "",
        group="Testing",
        choices=("", "all", "only-expected"),
        help="compare with '// expected-error {{...}}'",
    )
    verify_roundtrip: bool = flag(
        False, group="Testing", help="print, read, print again: must be equal"
    )
    explain: str | None = flag(
        None, group="Help", metavar="HLO0102", help="what an error code means"
    )
    help: bool = flag(False, "h", group="Help", help="")
    help_all: bool = flag(False, "help-hidden", group="Help", help="")
    version: bool = flag(False, "v", group="Help", help="")
    debug: bool = flag(False, group="Help", help="Python traceback of an error")
    json: bool = flag(False, group="Help", help="lists as JSON")
    allow_unregistered_dialect: bool = flag(False, group="Help", help="")
    no_implicit_module: bool = flag(False, group="Help", help="")
    parsing_diagnostics: bool = flag(False, group="Help", help="")


BARE = ("verify-diagnostics", "verify_diagnostics")
"""Flags whose value may be missing."""

_HARMLESS = frozenset(
    {
        "mlir-disable-threading",
        "mlir-print-debuginfo",
        "mlir-print-ir-module-scope",
        "mlir-print-local-scope",
        "print-debuginfo",
        "syntax-highlight",
    }
)
"""Flags of mlir-opt and xdsl-opt that scripts pass and that ask for nothing we lack."""


def other_option(options: Options, name: str, value: str | None) -> bool:
    """Options that are named after passes or after switches of the printer."""
    if name.replace("_", "-") in _HARMLESS:
        return True

    for known in (name, name.replace("_", "-")):
        if known in registry.list_passes():
            options.passes += (known if value is None else f"{known}{{{value.strip('{}')}}}",)
            return True
    return printing.take_switch(options, name, value)


def check_platform(options: Options) -> None:
    """Raises `UsageError` for platforms and stages that do not exist."""
    platform = options.platform.lower()
    if platform not in PLATFORMS + _OTHER_PLATFORMS:
        known = ", ".join(PLATFORMS + _OTHER_PLATFORMS)
        raise usage_error(
            f"provider not found for platform '{options.platform}'", help=f"platforms are {known}"
        )
    known_stages = stages.stages_of(platform)
    if options.stage not in known_stages:
        raise usage_error(
            f"platform '{options.platform}' has no stage '{options.stage}'",
            help=f"its stages are {', '.join(known_stages)}",
        )
    if options.stage != stages.HLO and options.verify_roundtrip:
        raise usage_error("--verify-roundtrip goes with --stage=hlo")
    is_below = options.stage not in (stages.HLO, stages.FUSED)
    if is_below and options.emit not in (None, "mlir", "mlir-generic"):
        raise usage_error(
            f"--emit={options.emit} goes with --stage={stages.HLO} and --stage={stages.FUSED}",
            help="modules of later stages are written as mlir or mlir-generic",
        )
