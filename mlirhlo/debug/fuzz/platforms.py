"""Random modules on two platforms: they compute the same, and the simulator finds nothing wrong with kernels."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlirhlo.debug.fuzz.generators.modules import Module
from mlirhlo.debug.fuzz.passes import Reference, bounded, cause
from mlirhlo.debug.trials.sides import Side
from mlirhlo.diagnostics import HloError
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.runtime import compiler


UNSUPPORTED = frozenset({"HLO0432", "HLO0435", "HLO0600", "HLO0611", "HLO0802"})
"""Codes that say that a platform has no code for something."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a module."""

    kind: str
    """`equal`, `fails`, the code of what has no code, or `of no use`: the interpreter refuses it."""
    detail: str = ""
    kernels: Sequence[str] = ()
    """Digests of the kernels that ran on the simulated GPU."""


def module_of(seed: int, number: int, name: str = "gpu") -> Module:
    """The module of a case."""
    steps = random.Random(f"steps {seed}:{number}").choice((3, 10, 20))
    return Module(f"{name} {seed}:{number}", steps=steps)


def judge(text: str, inputs: Sequence[Any], side: str, gpu: str = "h100") -> Outcome:
    """Runs a module on a side and on the interpreter. Results may move as rounding does."""
    try:
        reference = Reference(text, inputs)
    except (HloError, ValueError) as problem:
        return Outcome("of no use", str(problem))
    kernels: Sequence[str] = ()
    try:
        with bounded():
            if Side.parse(side).platform == "gpu":
                results, findings, kernels = _simulated(text, inputs, gpu)
                if findings:
                    return Outcome("fails", str(findings[0]))
            else:
                results = Side.parse(side).run(parse_module(text), inputs)
    except HloError as problem:
        return Outcome(problem.code if problem.code in UNSUPPORTED else "fails", str(problem))
    except Exception as problem:  # noqa: BLE001  the point of the tool
        return Outcome("fails", cause(problem))
    if difference := reference.difference(results, exact=False):
        return Outcome("fails", f"values differ\n{difference}")
    return Outcome("equal", kernels=kernels)


def _simulated(
    text: str, inputs: Sequence[Any], gpu: str
) -> tuple[list[Any], Sequence[Any], Sequence[str]]:
    compiled: Any = compiler.compile_module(parse_module(text), "gpu", gpu=gpu)
    results = _leaves(compiled(*inputs))
    return results, compiled.findings, simulated_kernels(compiled)


def simulated_kernels(executable: Any) -> list[str]:
    """Digests of the kernels that an executable launched on the simulator."""
    launched = {
        launch.entry for launch, _ in getattr(getattr(executable, "driver", None), "reports", ())
    }
    return [
        hashlib.sha256(f"{number} {text.replace(name, '')}".encode()).hexdigest()[:16]
        for name, text in (executable.program.ptx.items() if launched else ())
        for number, entry in enumerate(re.findall(r"\.entry\s+([\w$]+)", text))
        if entry in launched
    ]


def _leaves(value: Any) -> list[Any]:
    """Arrays of a result, out of tuples."""
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in _leaves(part)]  # pyright: ignore[reportUnknownVariableType]
    return [np.asarray(value)]
