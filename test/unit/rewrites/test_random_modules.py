"""A sample of `hlo-fuzz`: passes and pipelines on random whole modules."""

from __future__ import annotations

import numpy as np
import pytest
from support import SEED

from mlirhlo.debug.fuzz.passes import Failure, Reference, make_case, outcome
from mlirhlo.debug.trials.rounding import Noise, within


@pytest.mark.parametrize("block", range(4))
def test_modules_verify_and_compute_the_same(block: int) -> None:
    failed = []
    for number in range(block * 40, block * 40 + 40):
        _, case, result = outcome(SEED, (), number)
        assert not isinstance(result, str), f"{result}\n{case.text}"
        if isinstance(result, Failure):
            failed.append(f"case {number} of seed {SEED}, {result.culprit}: {result.cause}")
    assert not failed


def test_a_case_follows_from_its_seed_and_number() -> None:
    one, other = make_case(SEED, 7), make_case(SEED, 7)
    assert (one.text, one.pipeline) == (other.text, other.pipeline)
    assert make_case(SEED, 11).text != one.text


WRONG = """HloModule m
ENTRY e { x = f32[4] parameter(0)
  s = f32[4] sine(x)
  ROOT r = f32[4] add(s, x) }
"""


def test_a_wrong_value_is_seen_and_a_rounding_is_not() -> None:
    x = np.array([0.1, 0.2, 3, 4], np.float32)
    reference = Reference(WRONG, [x])
    right = reference.results[0]
    for off, seen in ((1e-7, False), (1e-3, True)):
        assert bool(reference.difference([right * np.float32(1 + off)], exact=False)) is seen
        assert reference.difference([right * np.float32(1 + 1e-3)], exact=True)


def test_noise_leaves_exact_numbers() -> None:
    from mlirhlo.formats.hlo_text import parse_module
    from mlirhlo.interp import run_module

    x = np.array([1, -2, 0.5, 4], np.float32)
    text = WRONG.replace("sine", "negate")
    (moved,) = run_module(parse_module(text), [x], hook=Noise(1).hook)
    assert np.asarray(moved).tolist() == [0, 0, 0, 0]
    assert within(x, x, np.zeros(4))
