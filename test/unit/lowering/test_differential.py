"""Instructions that hypothesis draws: machine code against the interpreter.

The generators are those of `test/unit/interp/test_differential.py`, which holds the interpreter against XLA.
`MLIRHLO_SEED` and `MLIRHLO_DIFFERENTIAL` (a factor) make other and longer runs of the same tests.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from strategies.drawn import batches, examples, strategy_of
from strategies.running import build, difference, leaves

import mlirhlo
from mlirhlo.debug.fuzz.generators.choices import Choices
from mlirhlo.debug.fuzz.generators.every import elementwise
from mlirhlo.debug.fuzz.generators.instructions import GENERATORS, Case
from mlirhlo.diagnostics import HloError

pytest.importorskip("llvmlite")

QUICK = ("f32", "bf16", "s32", "pred")
EACH_TYPE = [
    t if t in QUICK else pytest.param(t, marks=pytest.mark.slow) for t in elementwise.TYPES
]
BY_SHAPE = sorted(set(GENERATORS) - set(elementwise.OPCODES))
OFTEN = ("dot", "reduce", "gather", "scatter", "sort", "pad", "concatenate", "while")


def wrong(cases: Sequence[Case]) -> list[str]:
    """What machine code does otherwise than the interpreter, case by case."""
    text, inputs = build(cases)
    module = mlirhlo.parse(text)
    try:
        expected = module(*inputs)
    except HloError:
        return [] if len(cases) == 1 else [p for case in cases for p in wrong([case])]
    found: list[str] = []
    got = mlirhlo.compile(module, cached=False)(*inputs)
    results = iter(zip(got, expected, strict=True))
    for case in cases:
        for shape in leaves(case):
            mine, other = next(results)
            problem = difference(case, shape, np.asarray(mine), np.asarray(other))
            if problem is not None:
                alone, _ = build([case])
                found.append(alone + problem.replace("here", "compiled").replace("XLA", "Python"))
    return found


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("name", EACH_TYPE)
def test_elementwise(name: str) -> None:
    """Most opcodes at once, on all combinations of special and other values."""

    @examples(1)
    @given(strategy_of(lambda c: elementwise.every_form(c, name)))
    def compare(cases: list[Case]) -> None:
        problems = wrong(cases)
        assert not problems, "\n".join(problems)

    compare()


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    "opcode", [o if o in OFTEN else pytest.param(o, marks=pytest.mark.slow) for o in BY_SHAPE]
)
def test_instructions(opcode: str) -> None:
    """An opcode in many shapes and with many attributes."""

    @examples(2)
    @given(batches(opcode))
    def compare(cases: list[Case]) -> None:
        problems = wrong(cases)
        assert not problems, "\n".join(problems)

    compare()


PRECISIONS = ("f32", "f64", "bf16", "f16")


def in_other_precision(c: Choices, opcode: str) -> Case:
    """An instruction whose result, or a part of it, is declared in another floating-point type."""
    case = GENERATORS[opcode](c, opcode)
    found = list(re.finditer("|".join(PRECISIONS), case.shape))
    if not found:
        return case
    at = c.pick(found)
    case.line = case.line[: at.start()] + c.pick(PRECISIONS) + case.line[at.end() :]
    case.scaled = 2.0**-7
    return case


@pytest.mark.one_case_in(3)
@pytest.mark.slow
@pytest.mark.parametrize("opcode", [o for o in BY_SHAPE if o != "custom-call"])
def test_declared_precision(opcode: str) -> None:
    """What the verifier lets pass has a meaning: results have the types that are declared."""

    @examples(8)
    @given(strategy_of(lambda c: in_other_precision(c, opcode)))
    def compare(case: Case) -> None:
        text, inputs = build([case])
        try:
            module = mlirhlo.parse(text)
        except HloError:
            return
        if module.problems():
            return
        expected = module(*inputs)
        got = mlirhlo.compile(module, cached=False, debug=True)(*inputs)
        for shape, mine, other in zip(leaves(case), got, expected, strict=True):
            assert mine.dtype == other.dtype == shape.element_type.dtype, text
            problem = difference(case, shape, np.asarray(mine), np.asarray(other))
            assert problem is None, text + str(problem)

    compare()


def test_a_window_between_the_elements() -> None:
    """Base and window dilation that never meet: the result is zero, whatever is read."""
    text = """HloModule m

ENTRY e {
  weights = f32[2,3,1] parameter(0)
  x = f32[2,1,2] parameter(1)
  ROOT r = f32[1,1,1] convolution(x, weights), dim_labels=fb0_i0o->0fb,
    window={size=3 stride=3 pad=1_1 lhs_dilate=2 rhs_dilate=2 rhs_reversal=1}
}
"""
    weights, x = np.ones((2, 3, 1), np.float32), np.ones((2, 1, 2), np.float32)
    assert mlirhlo.compile(mlirhlo.parse(text), cached=False)(weights, x).item() == 0
