"""Every pass and every pipeline on random programs: what they leave is valid, and computes the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import SEED
from unit.rewrites.test_passes_keep_meaning import PASSES, check_text, narrowest, outputs

from mlirhlo.analysis.verifier import verify_module
from mlirhlo.formats.hlo_text import PrintOptions, parse_module, print_module
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline
from mlirhlo.rewrites.pipelines import pipelines_of

PROGRAMS = 6
SETTLED = ("cse", "dce", "tuple-simplifier", "hlo-module-dce", "flatten-call-graph", "call-inliner")
"""Passes that have nothing left to do after a run."""


def random_program(number: int) -> tuple[str, list[Any]]:
    """Text of a program, and inputs."""
    from strategies.programs import arguments_of, module_text

    seed = SEED * PROGRAMS + number
    return module_text(seed), arguments_of(seed)


@pytest.mark.oracle
@pytest.mark.slow
@pytest.mark.parametrize("number", range(PROGRAMS))
def test_each_pass(number: int) -> None:
    text, arguments = random_program(number)
    check_text(text, f"random {number}", PASSES, arguments)


@pytest.mark.oracle
@pytest.mark.slow
@pytest.mark.parametrize("platform", ["cpu", "gpu", "tpu"])
def test_each_pipeline(platform: str) -> None:
    for number in range(PROGRAMS):
        text, arguments = random_program(number)
        module, changed = parse_module(text), parse_module(text)
        run_pipeline(changed, pipelines_of(platform))
        assert verify_module(changed) == []
        eps = max(narrowest(module), float(np.finfo(np.float32).eps))
        for a, b in zip(outputs(module, arguments), outputs(changed, arguments), strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            assert near(a, b, eps), f"random {number}"


@pytest.mark.oracle
def test_passes_that_settle() -> None:
    for number in range(PROGRAMS):
        text, _ = random_program(number)
        for name in SETTLED:
            module = parse_module(text)
            run_pipeline(module, parse_pipeline(name))
            once = print_module(module, PrintOptions.fingerprint())
            again = run_pipeline(module, parse_pipeline(name))
            assert not again.changed, f"{name} on random {number}"
            assert print_module(module, PrintOptions.fingerprint()) == once


def near(a: Any, b: Any, eps: float) -> bool:
    """Whether values are the same but for rounding."""
    if a.dtype.kind in "iub":
        return bool((a == b).all())
    x, y = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        bound = eps * (64 * np.abs(x[np.isfinite(x)]).max(initial=1.0) + 64 * np.abs(x))
        return bool(((x == y) | (np.isnan(x) & np.isnan(y)) | (np.abs(x - y) <= bound)).all())
