"""Names of XLA's passes and of their classes lead to a pass here or to a sentence that says what does the work."""

from __future__ import annotations

import re

import pytest

from mlirhlo.diagnostics import HloError
from mlirhlo.rewrites import xla_names
from mlirhlo.rewrites.pipeline import parse_pipeline
from mlirhlo.rewrites.registry import list_passes
from mlirhlo.rewrites.xla_names import ALIASES, instead_of, pass_meant

KNOWN = list_passes(loaded=False)
SENTENCES = xla_names._SENTENCES  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("HloDCE", "dce"),
        ("GpuLayoutAssignment", "layout-assignment"),
        ("HloRematerialization", "rematerialization"),
        ("sort_simplifier", "simplify-sorts"),
        ("conditional-simplifier", "simplify-conditional"),
        ("gpu_scatter_expander", "scatter_expander"),
        ("dot_merger", "dot-merger"),
        ("WhileLoopUnrollerPass", "while-loop-unroller"),
        ("HloMemoryScheduler", "hlo-memory-scheduler"),
    ],
)
def test_spellings_of_a_pass(name: str, own: str) -> None:
    assert pass_meant(name, KNOWN) == own


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("FusionMerger", "priority-fusion"),
        ("HostOffloader", "no platform here has a memory of the host"),
        ("HloPassFix", "repeats by itself"),
        ("BFloat16NormalizationPass", "float-normalization-bf16"),
        ("latency-hiding-scheduler", "hlo-memory-scheduler"),
        ("AlgebraicSimplifierr", "did you mean 'algsimp'?"),
        ("AllReduceCombinner", "did you mean 'all-reduce-combiner'?"),
    ],
)
def test_a_name_without_a_pass_says_what_instead(name: str, hint: str) -> None:
    with pytest.raises(HloError, match="HLO0401") as raised:
        parse_pipeline(name)
    assert hint in str(raised.value.diagnostics[0].help)


def test_the_tables_are_of_passes() -> None:
    assert set(ALIASES.values()) <= set(KNOWN)
    names = [name for listed in SENTENCES.values() for name in listed.split()]
    assert len(names) == len(set(names))
    assert not [name for name in names if pass_meant(name, KNOWN)], "has a pass here"
    assert all(instead_of(name, KNOWN) for name in names)
    for sentence in SENTENCES:
        for named in re.findall(r"\b(?!top-k\b)[a-z0-9]+(?:-[a-z0-9]+)+\b", sentence):
            assert any(own.startswith(named) for own in KNOWN) or f"--{named}" in sentence, named
