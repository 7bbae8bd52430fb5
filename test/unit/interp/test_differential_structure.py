"""Random instances of the array ops against XLA:CPU: shapes, windows, dimension numbers, reducers.

MLIRHLO_SEED and MLIRHLO_DIFFERENTIAL (a factor) make other and longer runs of the same tests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from random_cases import Case, Random, name_of, sizes
from random_folds import FAMILIES
from xla_execution import SEED, SIZE, XLA, Refusal, differences

from mlirhlo.dialects.hlo.shapes import ArrayShape, parse_shape
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp.engine import run_module

pytestmark = pytest.mark.oracle
pytest.importorskip("jaxlib")


def build(cases: Sequence[Case]) -> tuple[str, list[np.ndarray]]:
    """All cases as one program."""
    head, body, inputs = ["HloModule m"], ["ENTRY e {"], list[np.ndarray]()
    results: list[str] = []
    for number, case in enumerate(cases):
        head.append(case.computations.replace("@", f"c{number}_"))
        line = case.line
        for index, array in enumerate(case.inputs):
            shape = sizes(name_of(array), array.shape)
            body.append(f"  c{number}_p{index} = {shape} parameter({len(inputs)})")
            inputs.append(array)
        line = line.replace("@", f"c{number}_")
        body.append(f"  r{number} = {line}")
        results.append(f"r{number}")
    shapes = ", ".join(case.line.rsplit(")", 1)[0].split(" ", 1)[0] for case in cases)
    body += [f"  ROOT t = ({shapes}) tuple({', '.join(results)})", "}"]
    return "\n".join(head + body) + "\n", inputs


def in_xla(cases: Sequence[Case]) -> list[Any]:
    answer = XLA.run(*build(cases))
    if not isinstance(answer, Refusal):
        return list(answer)
    if len(cases) == 1:
        return [answer]
    half = len(cases) // 2
    return [*in_xla(cases[:half]), *in_xla(cases[half:])]


def compare(make: Callable[[Random], Case], count: int, salt: int) -> None:
    """Runs `count` random cases here and in XLA. At least half of them must be legal."""
    cases = [make(Random(SEED + 1000 * salt + i)) for i in range(count * SIZE)]
    wanted = in_xla(cases)
    problems: list[str] = []
    refused = [
        f"{case.line}: {want.reason}"
        for case, want in zip(cases, wanted, strict=True)
        if isinstance(want, Refusal)
    ]
    for case, want in zip(cases, wanted, strict=True):
        if isinstance(want, Refusal):
            continue
        text, inputs = build([case])
        got = run_module(parse_module(text), inputs, check=True)[0]
        shape = parse_shape(case.line.split(" ", 1)[0])
        assert isinstance(shape, ArrayShape)
        if got.shape != want.shape:
            problems.append(f"{case.line}: sizes {got.shape} here, {want.shape} in XLA")
            continue
        wrong = differences(got, want, shape.element_type, case.ulps, case.floor)
        if wrong.size:
            at = wrong[0]
            problems.append(
                f"{text}{wrong.size} differ, first {got.reshape(-1)[at]} here, "
                f"{want.reshape(-1)[at]} in XLA"
            )
    assert not problems, f"seed {SEED}:\n" + "\n".join(problems)
    assert len(refused) <= len(cases) // 2, f"seed {SEED}:\n" + "\n".join(refused)


@pytest.mark.slow
@pytest.mark.parametrize("family", list(FAMILIES))
def test_random_instances(family: str) -> None:
    make, count = FAMILIES[family]
    compare(make, count, list(FAMILIES).index(family))
