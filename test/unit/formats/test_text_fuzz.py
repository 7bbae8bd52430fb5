"""Damaged HLO text ends in a module or in diagnostics, in bounded time; `hlo-fuzz` does more."""

from __future__ import annotations

import pytest
from support import sampled
from unit.corpus import repository_texts

from mlirhlo.debug.fuzz import texts as fuzz_text
from mlirhlo.diagnostics import HloError
from mlirhlo.formats.hlo_text import parse_module

SEED = 7

TEXTS = [text for _, text in repository_texts() if len(text) < 6000]


@pytest.mark.parametrize("block", range(8))
def test_damaged_texts(block: int) -> None:
    for number in range(block * 60, block * 60 + 60):
        outcome = fuzz_text.judge(fuzz_text.make_case(SEED, number, TEXTS))
        assert not fuzz_text.is_failure(outcome), f"seed {SEED}, case {number}: {outcome}"


@pytest.mark.slow
@sampled(8)
def test_many_damaged_texts(every: int) -> None:
    for number in range(1000, 6000, every):
        outcome = fuzz_text.judge(fuzz_text.make_case(SEED, number, TEXTS))
        assert not fuzz_text.is_failure(outcome), f"seed {SEED}, case {number}: {outcome}"


@pytest.mark.parametrize("way", range(len(fuzz_text.HOSTILE)))
def test_deep_and_long_texts(way: int) -> None:
    text = fuzz_text.HOSTILE[way](10_000)
    outcome = fuzz_text.judge(text, round_trip=False)
    assert not fuzz_text.is_failure(outcome), (text[:200], outcome)


@pytest.mark.slow
@pytest.mark.parametrize("way", range(len(fuzz_text.HOSTILE)))
def test_very_deep_texts(way: int) -> None:
    text = fuzz_text.HOSTILE[way](fuzz_text.DEPTH)
    outcome = fuzz_text.judge(text, round_trip=False)
    assert not fuzz_text.is_failure(outcome), (text[:200], outcome)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("filling", "size"),
    [("x", 100_000_000), *((f, 10_000_000) for f in (" ", "(", "*", '"', "\\", "1, "))],
)
def test_a_very_long_line(filling: str, size: int) -> None:
    line = filling * (size // len(filling))
    text = f'HloModule m\n\nENTRY e {{\n  a = f32[] parameter(0), metadata={{op_name="{line}\n}}\n'
    with pytest.raises(HloError) as caught:
        parse_module(text)
    assert len(str(caught.value)) < 1000


def test_every_prefix_of_a_text() -> None:
    text = min(TEXTS, key=len)
    for end in range(len(text)):
        assert not fuzz_text.is_failure(fuzz_text.judge(text[:end]))
