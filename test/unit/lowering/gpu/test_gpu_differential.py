"""Instructions that hypothesis draws: PTX on the simulator against the interpreter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from strategies.drawn import batches, examples, strategy_of
from strategies.running import build, difference, leaves
from support import sample

import mlirhlo
from mlirhlo.debug.fuzz.generators.every import elementwise
from mlirhlo.debug.fuzz.generators.instructions import GENERATORS, Case
from mlirhlo.diagnostics import HloError

pytest.importorskip("llvmlite")

BY_SHAPE = sorted(set(GENERATORS) - set(elementwise.OPCODES))
OFTEN = ("dot", "scatter")
NO_CODE = "HLO0802"


def wrong(cases: Sequence[Case]) -> list[str]:
    """What PTX does otherwise than the interpreter, and what the simulator finds, case by case."""
    text, inputs = build(cases)
    module = mlirhlo.parse(text)
    expected = None
    try:
        expected = module(*inputs)
        compiled = mlirhlo.compile(module, "gpu")
        got = compiled(*inputs)
        findings = list(map(str, compiled.findings))  # type: ignore[attr-defined]
    except HloError as problem:
        if len(cases) > 1:
            return [p for case in cases for p in wrong([case])]
        # What the interpreter refuses, and what is said to have no code, is no fault here.
        is_fault = expected is not None and problem.code != NO_CODE
        return [f"{text}{problem}"] if is_fault else []
    found = [f"{text}{finding}" for finding in findings]
    results = iter(zip(got, expected, strict=True))
    for case in cases:
        for shape in leaves(case):
            mine, other = next(results)
            problem_ = difference(case, shape, np.asarray(mine), np.asarray(other))
            if problem_ is not None:
                found.append(
                    build([case])[0] + problem_.replace("here", "PTX").replace("XLA", "Python")
                )
    return found


@pytest.mark.parametrize(
    "name",
    sample(elementwise.TYPES, 6),
)
def test_elementwise(name: str) -> None:
    """Most opcodes at once, on all combinations of special and other values."""

    @examples(1)
    @given(strategy_of(lambda c: elementwise.every_form(c, name)))
    def compare(cases: list[Case]) -> None:
        problems = wrong(cases)
        assert not problems, "\n".join(problems)

    compare()


@pytest.mark.parametrize("opcode", [*OFTEN, *sample([o for o in BY_SHAPE if o not in OFTEN], 6)])
def test_instructions(opcode: str) -> None:
    """An opcode in many shapes and with many attributes."""

    @examples(2)
    @given(batches(opcode))
    def compare(cases: list[Case]) -> None:
        problems = wrong(cases)
        assert not problems, "\n".join(problems)

    compare()
