"""Programs of the corpus as machine code, on their own inputs, against the interpreter."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from support import CORPUS, needs_shared, one_in, sampled

import mlirhlo
from mlirhlo.debug.near import Bounds, compare
from mlirhlo.diagnostics import HloError

pytest.importorskip("llvmlite")

BOUNDS = Bounds(1e-3, 1e-3)
BYTES = int(os.environ.get("MLIRHLO_CPU_CORPUS_BYTES", "12000"))
"""Programs of longer text are left out; the environment may ask for more."""


def programs() -> list[Path]:
    """Modules before and after optimisation, with inputs beside them."""
    found = sorted(CORPUS.glob("programs/*/*.hlo")) if CORPUS.is_dir() else []
    return [p for p in found if p.stat().st_size <= BYTES and inputs_of(p).is_file()]


def inputs_of(path: Path) -> Path:
    return path.parent / f"{path.parent.name}.npz"


def run(path: Path) -> str:
    """ok, the code of an error that says there is no code, or what is wrong."""
    try:
        module = mlirhlo.load(path)
        executable = mlirhlo.compile(module, cached=False)
    except HloError as problem:
        return problem.code
    with np.load(inputs_of(path)) as archive:
        names = sorted((n for n in archive.files if n.startswith("in")), key=lambda n: int(n[2:]))
        given = [archive[name] for name in names]
    try:
        actual, expected = executable(*given), module(*given)
    except HloError as problem:
        return f"{problem.code} running"
    wrong = list(compare(expected, actual, BOUNDS))
    return str(wrong[0]) if wrong else "ok"


@needs_shared
@pytest.mark.slow
@sampled(10)
def test_programs_agree_with_the_interpreter(every: int) -> None:
    counts: dict[str, int] = {}
    wrong: list[str] = []
    for path in one_in(every, programs()):
        try:
            outcome = run(path)
        except (
            ValueError,
            zipfile.BadZipFile,
        ) as problem:  # arrays of other names or pickled types
            outcome = f"left out: {type(problem).__name__}"
        counts[outcome[:7]] = counts.get(outcome[:7], 0) + 1
        if outcome != "ok" and not outcome.startswith(("left out", "HLO0303")):
            wrong.append(f"{path.name}: {outcome}")
    assert not wrong, "\n".join(wrong)
    assert counts.get("ok", 0) > sum(counts.values()) / 2, counts
