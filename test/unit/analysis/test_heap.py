"""Offsets in one block of memory: what is alive at the same time never overlaps, however many there are."""

from __future__ import annotations

import random

import pytest

from mlirhlo.analysis import heap


def random_spans(draw: random.Random) -> list[heap.Span]:
    firsts = [draw.randrange(100) for _ in range(draw.randrange(1, 120))]
    return [(draw.randrange(300), first, first + draw.randrange(20)) for first in firsts]


@pytest.mark.parametrize("most", [0, 20, 4096])
def test_spans_that_meet_have_memory_of_their_own(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heap, "_MOST", most)
    for seed in range(40):
        spans = random_spans(random.Random(seed))
        offsets, total = heap.pack(spans, 16)
        placed = sorted(zip(offsets, spans, strict=True))
        for at, (offset, (size, first, last)) in enumerate(placed):
            assert offset % 16 == 0
            assert offset + size <= total
            for later, (_, begins, ends) in placed[at + 1 :]:
                assert later >= offset + max(size, 1) or begins > last or ends < first, seed


def test_a_chain_of_very_many_takes_the_memory_of_two() -> None:
    _, total = heap.pack([(64, at, at + 1) for at in range(20_000)], 64)
    assert total <= 4 * 64
