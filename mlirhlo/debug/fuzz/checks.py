"""Checks of one module by its text, which reductions repeat: what goes wrong, and its cause.

passes:algsimp,dce       a pipeline, or a platform's, keeps what the module computes
side:CPU                 a platform, as `mlirhlo.debug.trials.sides` names it, computes what the interpreter does
formats                  written in every format, it is read as itself
mutant                   the same, and platforms' pipelines and machine code
reader                   the text ends in a module or a diagnostic, in bounded time
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlirhlo.debug.fuzz import mutants, passes, platforms, texts
from mlirhlo.debug.trials.modules import fake_arguments, load_module
from mlirhlo.diagnostics import HloError, error
from mlirhlo.dialects.hlo.literal import Literal
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.shapes import ArrayShape

KINDS = ("passes", "side", "formats", "mutant", "reader")
SEEDS = (42, 7)


@dataclass(frozen=True, slots=True)
class Finding:
    """What goes wrong with a module."""

    culprit: str
    """The pass, the platform, or the format."""
    cause: str
    """One line, the same for all findings of a kind."""
    detail: str = ""


def check(text: str, name: str, inputs: Sequence[Any] | None = None) -> Finding | None:
    """What goes wrong with a module; None if nothing does, or the module has no meaning itself.

    Without `inputs` a module is run on made-up ones.
    """
    kind, _, rest = name.partition(":")
    if kind in ("formats", "mutant"):
        stages = ("formats",) if kind == "formats" else mutants.STAGES
        return _of_outcome(mutants.judge(text, stages), kind)
    if kind == "reader":
        outcome = texts.judge(text)
        return _of_outcome(outcome, kind) if texts.is_failure(outcome) else None
    if kind not in KINDS:
        raise error("HLO0860", f"'{name}' is no check", help=f"checks are {', '.join(KINDS)}")
    for values in [inputs] if inputs is not None else _made_up(text):
        found = _run(text, kind, rest, values)
        if found is not None:
            return found
    return None


def _run(text: str, kind: str, rest: str, inputs: Sequence[Any]) -> Finding | None:
    if kind == "passes":
        try:
            failure = passes.judge(text, inputs, rest)
        except (HloError, ValueError):
            return None  # the module means nothing by itself
        return None if failure is None else Finding(failure.culprit, failure.cause, failure.detail)
    outcome = platforms.judge(text, inputs, rest)
    if outcome.kind != "fails":
        return None
    cause, _, detail = outcome.detail.partition("\n")
    return Finding(rest, _plain(cause), detail)


def _of_outcome(outcome: str, kind: str) -> Finding | None:
    cause, _, detail = outcome.partition("\n")
    return Finding(kind, _plain(cause), detail) if " " in cause or detail else None


def _plain(cause: str) -> str:
    """A cause without names and numbers, which differ from module to module."""
    return re.sub(r"%[\w.-]+|\b\d+\b|'[^']*'", "#", cause)[:160]


def _made_up(text: str) -> list[Sequence[Any]]:
    try:
        module = load_module(text, "case.hlo")
        return [fake_arguments(module, seed, large=k > 0) for k, seed in enumerate(SEEDS)]
    except (HloError, ValueError, KeyError):
        return []


def with_inputs(text: str, inputs: Sequence[Any]) -> str:
    """The module with constants for the parameters of its entry: a text that needs no inputs."""
    entry = text.rindex("ENTRY ")
    head, body = text[:entry], text[entry:]
    shapes = [op.shape for op in HloModule(load_module(text, "case.hlo")).entry.parameters]
    for number, (shape, value) in enumerate(zip(shapes, inputs, strict=True)):
        if not isinstance(shape, ArrayShape):
            continue
        before, _, after = body.partition(f" parameter({number})")
        literal = Literal.from_array(shape, value).to_text(large=True)
        body = f"{before} constant({literal}){after}"
    return head + re.sub(r"(?m)^(ENTRY [\w.%-]+) .*\{$", r"\1 {", body)
