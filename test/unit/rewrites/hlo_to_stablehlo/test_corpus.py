"""Real dumps, before and after optimisation: sound programs, the same bits back in HLO."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import CORPUS, needs_shared, sample
from unit.corpus import repository_texts

import mlirhlo
from mlirhlo.analysis.stablehlo import verify_module
from mlirhlo.analysis.verifier import verify_module as verify_hlo
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp.fake_data import make_fake_arguments
from mlirhlo.rewrites.hlo_to_stablehlo import convert_to_stablehlo
from mlirhlo.rewrites.stablehlo_to_hlo import convert_to_hlo

LARGEST = 100_000
"""Longest text that is run."""

FILES = sorted(CORPUS.glob("programs/*/*.hlo"))
SOME = [p for p in FILES if p.stat().st_size < 400_000]


def flat(value: Any) -> list[np.ndarray]:
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in flat(part)]
    return [np.asarray(value)]


def there_and_back(text: str, *, runs: bool) -> None:
    given = parse_module(text)
    if "ENTRY" not in text:
        return
    program = convert_to_stablehlo(given)
    assert not verify_module(program)
    back = convert_to_hlo(program, simplify=False)
    assert not verify_hlo(back)
    if not runs or any(part in text for part in ("{...}", "custom-call", " while(")):
        return
    arguments = make_fake_arguments(given)
    try:
        wanted = flat(mlirhlo.Module(given)(*arguments))
    except mlirhlo.diagnostics.HloError:
        return  # it cannot be run as it is
    got = flat(mlirhlo.Module(back)(*flat(tuple(arguments))))
    assert [a.tobytes() for a in wanted] == [a.tobytes() for a in got]


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("text", [pytest.param(t, id=n) for n, t in repository_texts()])
def test_dumps_of_the_repository(text: str) -> None:
    there_and_back(text, runs=len(text) < LARGEST)


@pytest.mark.slow
@needs_shared
@pytest.mark.parametrize("path", sample(SOME, 8), ids=lambda p: p.name)
def test_dumps_of_the_corpus(path: Any) -> None:
    text = path.read_text()
    there_and_back(text, runs=len(text) < LARGEST)
