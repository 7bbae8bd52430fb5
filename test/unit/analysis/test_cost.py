"""Costs: XLA's own numbers for whole dumps and for single instructions, every key of them."""

from __future__ import annotations

import json
from collections.abc import Mapping

import oracle
import pytest
from hypothesis import given
from strategies.drawn import examples, strategy_of
from support import needs_shared
from unit.analysis import shape_cases, shape_cases_more
from unit.analysis.shape_source import GENERATORS, Case, Source
from unit.corpus import corpus_texts, repository_texts

from mlirhlo.analysis.cost import Options, analyse
from mlirhlo.diagnostics import HloError
from mlirhlo.formats.hlo_text import parse_module, print_module

FAMILIES = (shape_cases, shape_cases_more)
"""Modules with generators; importing them registers the generators."""

LARGEST = 400_000
"""Characters of the texts compared; XLA takes its time for larger ones."""


def xla_cost(text: str) -> str:
    """XLA's answer as JSON."""
    import jax
    import jaxlib._jax as jaxlib  # pyright: ignore[reportMissingImports]

    module = oracle.xla().hlo_module_from_text(text)
    return json.dumps(jaxlib.hlo_module_cost_analysis(jax.devices("cpu")[0].client, module))


def ours(text: str) -> Mapping[str, float]:
    return analyse(parse_module(text)).total


def differences(text: str, answer: str) -> str | None:
    """What differs; None where XLA cannot read the text."""
    if answer == "CRASH" or answer.startswith("ERROR"):
        return None
    theirs: dict[str, float] = {k: v for k, v in json.loads(answer).items() if v}
    mine = ours(text)
    keys = sorted({*mine, *theirs})
    rows = [
        f"{key}: ours {mine.get(key, 0)}, XLA {theirs.get(key, 0)}"
        for key in keys
        if repr(mine.get(key, 0.0)) != repr(theirs.get(key, 0.0))
    ]
    return "\n".join(rows) or ""


@pytest.mark.oracle
@pytest.mark.slow
def test_repository_dumps() -> None:
    texts = list(repository_texts())
    answers = oracle.ask([text for _, text in texts], xla_cost)
    found = [(name, differences(t, a)) for (name, t), a in zip(texts, answers, strict=True)]
    assert sum(d is not None for _, d in found) > len(found) // 2
    assert not [(name, d) for name, d in found if d]


@pytest.mark.oracle
@pytest.mark.slow
@needs_shared
def test_corpus_dumps() -> None:
    texts = list(corpus_texts(LARGEST))
    answers = oracle.ask([text for _, text in texts], xla_cost)
    found = [(name, differences(t, a)) for (name, t), a in zip(texts, answers, strict=True)]
    assert sum(d is not None for _, d in found) > 0.9 * len(found)
    assert not [(name, d) for name, d in found if d]


@pytest.mark.oracle
@pytest.mark.slow
def test_single_instructions() -> None:
    """Many in one question: XLA's client takes its time to start."""

    def some(source: Source) -> list[str]:
        opcodes = [source.pick(sorted(GENERATORS)) for _ in range(30)]
        cases = [GENERATORS[opcode](source, opcode) for opcode in opcodes]
        return [text for case in cases if (text := valid_text(case)) is not None]

    @examples(12)
    @given(strategy_of(some, Source))
    def check(texts: list[str]) -> None:
        answers = oracle.ask(texts, xla_cost)
        found = [differences(text, answer) for text, answer in zip(texts, answers, strict=True)]
        wrong = [f"{text}{d}" for text, d in zip(texts, found, strict=True) if d]
        assert not wrong, "\n".join(wrong)

    check()


def valid_text(case: Case) -> str | None:
    """The case with its shapes; None when it is refused, or of unknown size, which XLA multiplies."""
    try:
        text = print_module(parse_module(str(case)))
    except HloError:
        return None
    return None if "?" in text else text


MATMUL = """HloModule m
ENTRY e {
  a = f32[3,4] parameter(0)
  b = f32[4,5] parameter(1)
  ROOT d = f32[3,5] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""

LOOP = """HloModule m
body { s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[8] multiply(x, x)
  ROOT t = (s32[], f32[8]) tuple(next, y) }
condition { s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT c = pred[] compare(i, n), direction=LT }
ENTRY e {
  s = (s32[], f32[8]) parameter(0)
  ROOT w = (s32[], f32[8]) while(s), condition=condition, body=body, backend_config={"known_trip_count":{"n":"5"}}
}
"""


def test_dot() -> None:
    cost = analyse(parse_module(MATMUL))
    assert (cost.flops, cost.transcendentals) == (2 * 3 * 4 * 5, 0)
    assert cost.bytes_accessed == 4 * (12 + 20 + 15)


def test_rates_give_seconds() -> None:
    rates = {"flops": 10.0, "bytes accessed": 1000.0}
    assert analyse(parse_module(MATMUL), Options(per_second=rates)).optimal_seconds == 12.0


def test_trip_counts() -> None:
    once = analyse(parse_module(LOOP))
    known = analyse(parse_module(LOOP), Options(trip_counts=True))
    assert once.flops == 1 + 8 + 1
    # The condition runs once more than the body.
    assert known.flops == 5 * (1 + 8) + 6
