"""What is to be dumped, decided once from `DebugOptions` in XLA's order.

Source: dumps reference, "Decision procedure"; its steps are numbered as there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from mlirhlo.debug.options import DebugOptions
from mlirhlo.diagnostics import Diagnostic, Severity

STDOUT = "-"
"""The directory that stands for standard output."""

OUTPUTS_DIR = "TEST_UNDECLARED_OUTPUTS_DIR"

_SPECIAL = ("sponge", "test_undeclared_outputs_dir")


@dataclass(frozen=True, slots=True)
class Filter:
    """Names that a regular expression is found in; all names or none without one."""

    matches_all: bool = False
    expression: re.Pattern[str] | None = None

    def __call__(self, name: str) -> bool:
        if self.expression is None:
            return self.matches_all
        return self.expression.search(name) is not None

    @property
    def matches_none(self) -> bool:
        """Whether no name at all passes."""
        return self.expression is None and not self.matches_all


ALL, NONE = Filter(True), Filter()


@dataclass(frozen=True, slots=True)
class Settings:
    """The decision."""

    directory: str = ""
    """Where files go; `-` is standard output, empty is nowhere."""
    text: bool = False
    proto: bool = False
    dot: bool = False
    html: bool = False
    url: bool = False
    snapshots: bool = False
    unoptimized_snapshots: bool = False
    named: Filter = NONE
    """Modules that are dumped in any way."""
    modules: Filter = NONE
    """Modules that leave ordinary dumps: none when unoptimized snapshots are asked for."""
    passes: Filter = NONE
    emitters: Filter = NONE
    pipelines: Filter = NONE
    every_boundary: bool = True
    """Whether boundaries after passes that changed nothing count too: unless the expression for
    passes is exactly `.*`."""

    @property
    def to_stdout(self) -> bool:
        """Whether texts are printed instead of written."""
        return self.directory == STDOUT

    @property
    def is_active(self) -> bool:
        """Whether any module can leave anything behind."""
        return bool(self.directory or self.url) and not self.named.matches_none


def decide(
    options: DebugOptions, environ: Mapping[str, str] | None = None
) -> tuple[Settings, tuple[Diagnostic, ...]]:
    """What the options ask for, and what to tell the user of it."""
    environ = os.environ if environ is None else environ
    problems: list[Diagnostic] = []
    formats = (
        options.xla_dump_hlo_as_text,
        options.xla_dump_hlo_as_proto,
        options.xla_dump_hlo_as_dot,
        options.xla_dump_hlo_as_html,
        options.xla_dump_hlo_snapshots,
        options.xla_dump_hlo_unoptimized_snapshots,
    )
    chosen = any(formats)  # 1
    text = options.xla_dump_hlo_as_text or not (chosen or options.xla_dump_hlo_as_url)  # 2
    directory = options.xla_dump_to if options.xla_enable_dumping else ""  # 3
    if not options.xla_dump_to and chosen:  # 4
        directory = STDOUT
    modules = _filter(options.xla_dump_hlo_module_re, problems)  # 5
    if not options.xla_dump_hlo_module_re and (
        options.xla_dump_hlo_pass_re
        or options.xla_dump_emitter_re
        or options.xla_dump_to
        or chosen
        or options.xla_dump_hlo_as_url
    ):
        modules = ALL
    passes = _filter(options.xla_dump_hlo_pass_re, problems)  # 6
    emitters = _filter(options.xla_dump_emitter_re, problems)  # 7
    pipelines = _filter(options.xla_dump_hlo_pipeline_re, problems, otherwise=ALL)  # 8
    if directory.lower() in _SPECIAL:  # 9
        directory = environ.get(OUTPUTS_DIR, "")
        if not directory:
            modules = passes = emitters = pipelines = NONE
            message = f"--xla_dump_to={options.xla_dump_to}: the variable {OUTPUTS_DIR} is not set"
            problems.append(_warning(message, "nothing is dumped"))
    named = modules
    if options.xla_dump_hlo_unoptimized_snapshots:  # 10
        modules = pipelines = NONE
    settings = Settings(
        directory,
        text,
        options.xla_dump_hlo_as_proto,
        options.xla_dump_hlo_as_dot,
        options.xla_dump_hlo_as_html,
        options.xla_dump_hlo_as_url,
        options.xla_dump_hlo_snapshots,
        options.xla_dump_hlo_unoptimized_snapshots,
        named,
        modules,
        passes,
        emitters,
        pipelines,
        options.xla_dump_hlo_pass_re != ".*",
    )
    if not directory and options.xla_enable_dumping:
        problems += _forgotten(options)
    return settings, tuple(problems)


_ALONE = (
    "xla_dump_hlo_module_re",
    "xla_dump_hlo_pass_re",
    "xla_dump_hlo_pipeline_re",
    "xla_dump_emitter_re",
    "xla_dump_include_timestamp",
    "xla_dump_module_metadata",
    "xla_dump_fusion_visualization",
    "xla_dump_hlo_to_subfolder",
)
"""Flags that ask for dumps to users, but not to XLA as long as there is no directory and no format."""


def _forgotten(options: DebugOptions) -> list[Diagnostic]:
    if options.xla_dump_hlo_as_url or options.xla_dump_to:
        return []
    found = [f"--{name}" for name in _ALONE if getattr(options, name)]
    if not found:
        return []
    message = f"{', '.join(found)} without a place for dumps: nothing is written"
    return [_warning(message, "add --xla_dump_to=DIRECTORY, or - for standard output")]


def _filter(expression: str, problems: list[Diagnostic], otherwise: Filter = NONE) -> Filter:
    if not expression:
        return otherwise
    try:
        return Filter(expression=re.compile(_as_python(expression)))
    except re.error as problem:
        # XLA says so and matches nothing.
        meant = as_expression(expression)
        hint = f"; a regular expression is wanted, such as '{meant}'" if meant else ""
        message = f"Invalid RE2: {expression}: {problem}"
        problems.append(_warning(message, f"it matches nothing{hint}"))
        return NONE


def as_expression(pattern: str) -> str | None:
    """The regular expression that a file pattern (`*While*`) may stand for; None if it has no `*` for that."""
    meant = re.sub(r"(?<![.\\)\]}])\*", ".*", pattern)
    try:
        return meant if meant != pattern and re.compile(meant) else None
    except re.error:
        return None


_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": r"\w",
    "xdigit": "0-9a-fA-F",
}


def _as_python(expression: str) -> str:
    """RE2's spellings that Python has others for."""
    for name, members in _CLASSES.items():
        expression = expression.replace(f"[:{name}:]", members)
    return re.sub(r"(?<!\\)((?:\\\\)*)\\z", r"\1\\Z", expression)


def _warning(message: str, help: str) -> Diagnostic:
    return Diagnostic("HLO0525", message, help=help, severity=Severity.WARNING)
