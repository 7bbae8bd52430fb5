"""Every opcode on every element type against XLA:CPU, instructions and inputs by hypothesis.

A failure is shrunk to one instruction on simple values. `MLIRHLO_SEED` and `MLIRHLO_DIFFERENTIAL`
(a factor) make other and longer runs of the same tests.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from strategies import collectives
from strategies.drawn import batches, examples, strategy_of
from strategies.running import Tally

from mlirhlo.debug.fuzz.generators.every import elementwise
from mlirhlo.debug.fuzz.generators.instructions import GENERATORS, NOT_EXECUTED, Case
from mlirhlo.dialects.hlo.table import OPCODES

QUICK = ("f32", "bf16", "s32", "pred")
"""The other types are marked slow."""
EACH_TYPE = [
    t if t in QUICK else pytest.param(t, marks=pytest.mark.slow) for t in elementwise.TYPES
]
BY_SHAPE = sorted(set(GENERATORS) - set(elementwise.OPCODES))
"""Opcodes whose shapes and attributes matter more than their values."""


def test_every_opcode_is_compared_or_said_why_not() -> None:
    groups = [set(GENERATORS), set(NOT_EXECUTED), {*collectives.OPCODES, *collectives.IDS}]
    assert set.union(*groups) == set(OPCODES)
    assert sum(map(len, groups)) == len(OPCODES), "an opcode stands in two groups"


@pytest.mark.oracle
@pytest.mark.parametrize("name", EACH_TYPE)
def test_elementwise(name: str) -> None:
    """Most opcodes at once, on all combinations of special and other values."""
    tally = Tally()

    @examples(2)
    @given(strategy_of(lambda c: elementwise.every_form(c, name)))
    def compare(cases: list[Case]) -> None:
        tally.check([case for case in cases if case.key not in tally.refused])

    compare()
    tally.expect_most()


@pytest.mark.oracle
@pytest.mark.slow
@pytest.mark.parametrize("opcode", BY_SHAPE)
def test_instructions(opcode: str) -> None:
    """An opcode in many shapes and with many attributes."""
    tally = Tally()

    @examples(2)
    @given(batches(opcode))
    def compare(cases: list[Case]) -> None:
        tally.check(cases)

    compare()
    tally.expect_most()
