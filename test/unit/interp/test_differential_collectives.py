"""Collectives in all group modes against XLA:CPU with four devices."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from strategies.collectives import program
from strategies.drawn import examples, several, strategy_of
from xla_devices import Case, run_cases

from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp.engine import run_spmd

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
pytest.importorskip("jaxlib")


def test_collectives_agree_with_xla() -> None:
    refused: Counter[str] = Counter()
    compared = 0

    @examples(2)
    @given(strategy_of(several(program, 30)))
    def compare(cases: list[Case]) -> None:
        nonlocal compared
        for (text, inputs, _, _), answer in zip(cases, run_cases(cases), strict=True):
            if isinstance(answer, str):
                refused[answer] += 1
                continue
            compared += 1
            ours = run_spmd(parse_module(text), inputs, check=True)
            for mine, theirs in zip(ours, answer, strict=True):
                for a, b in zip(mine, theirs, strict=True):
                    np.testing.assert_array_equal(a, b, err_msg=text)

    compare()
    assert compared > refused.total(), refused
