"""Every rule of `algsimp` fires on its left sides and gives what they give; none is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
from unit.rewrites import (
    algsimp_arithmetic_cases,
    algsimp_cases,
    algsimp_convolution_cases,
    algsimp_data_cases,
    algsimp_dot_cases,
    algsimp_indexed_cases,
    algsimp_movement_cases,
    algsimp_physical_cases,
    algsimp_reduce_cases,
    algsimp_reduce_window_cases,
    algsimp_shape_cases,
)
from unit.rewrites.rule_proofs import Case, prove

from mlirhlo.rewrites.algsimp import AlgebraicSimplifierPass

FAMILIES = (
    algsimp_cases,
    algsimp_convolution_cases,
    algsimp_arithmetic_cases,
    algsimp_shape_cases,
    algsimp_data_cases,
    algsimp_dot_cases,
    algsimp_indexed_cases,
    algsimp_movement_cases,
    algsimp_physical_cases,
    algsimp_reduce_cases,
    algsimp_reduce_window_cases,
)
CASES: Mapping[str, tuple[Case, ...]] = {
    name: cases for family in FAMILIES for name, cases in family.CASES.items()
}
RULES = {rule.name: rule for rule in AlgebraicSimplifierPass.rules}
PROVED: Counter[str] = Counter()


def test_every_rule_has_left_sides_and_no_name_is_taken_twice() -> None:
    assert len(RULES) == len(AlgebraicSimplifierPass.rules)
    assert set(CASES) == set(RULES)
    assert [name for name, cases in CASES.items() if not any(c.fires for c in cases)] == []


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("name", list(RULES))
def test_both_sides_give_the_same(name: str) -> None:
    for case in CASES[name]:
        count = prove(AlgebraicSimplifierPass, RULES[name], case)
        assert count
        PROVED[name] += count


def test_the_count_of_what_was_proved(capsys: pytest.CaptureFixture[str]) -> None:
    """Prints rules times cases; a rule that ran must have a case that counted."""
    with capsys.disabled():
        print(f"\nalgsimp: {len(PROVED)} of {len(RULES)} rules, {sum(PROVED.values())} instances")
    assert all(PROVED.values())
