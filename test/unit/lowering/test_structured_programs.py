"""Kernels of whole programs, as the CPU's and the GPU's passes leave them; `tools/structured_coverage.py` runs all."""

from __future__ import annotations

import argparse

import pytest
import structured_coverage
from unit.corpus import corpus_texts, repository_texts

SMALL = 6_000
"""Characters of the programs that are run here."""


def wrong(text: str, name: str, pipeline: str) -> list[structured_coverage.Outcome]:
    """The kernels of one program that are not what they stand for; none of them is refused."""
    options = argparse.Namespace(merged=True, pipeline=pipeline, timeout=60)
    outcomes = structured_coverage.judged(text, name, options, set())
    return [o for o in outcomes if not (o.is_fine or o.verdict.startswith("not run"))]


@pytest.mark.one_case_in(2)
@pytest.mark.slow
@pytest.mark.parametrize("pipeline", ["cpu", "gpu"])
def test_programs_of_the_repository(pipeline: str) -> None:
    texts = [(name, text) for name, text in repository_texts() if len(text) <= SMALL]
    assert texts
    for name, text in texts[::14]:
        assert not wrong(text, name, pipeline), name


@pytest.mark.slow
def test_programs_of_the_corpus() -> None:
    for number, (name, text) in enumerate(corpus_texts(SMALL)):
        if number % 60 == 0:
            assert not wrong(text, name, "gpu"), name
