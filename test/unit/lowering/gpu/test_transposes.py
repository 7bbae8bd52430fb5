"""Reads across the order of memory: results, findings, traffic and bank conflicts, over shapes, orders and types."""

from __future__ import annotations

import random
from math import prod

import numpy as np
import pytest

import mlirhlo
from mlirhlo.interp.fake_data import make_fake_arguments
from mlirhlo.simulator.report import Figures

HLO = """HloModule m
ENTRY e {{
  x = {type}[{source}] parameter(0)
  y = {type}[{result}] parameter(1)
  s = {type}[{sliced}] slice(x), slice={{{slices}}}
  t = {type}[{result}] transpose(s), dimensions={{{order}}}
  ROOT r = {type}[{result}] {opcode}(t, y)
}}"""
SIZES = {"f32": 4, "bf16": 2, "f16": 2, "s8": 1, "f64": 8}


def run(hlo, tolerance=0.0):
    """The figures of a module on the simulator; results are the interpreter's, and there are no findings."""
    module = mlirhlo.parse(hlo)
    executable = mlirhlo.compile(module, platform="gpu")
    inputs = make_fake_arguments(module.op)
    result = np.asarray(executable(*inputs))
    expected = np.asarray(mlirhlo.run(module, *inputs))
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(result.astype(np.float64), expected.astype(np.float64), tolerance)
    assert not executable.findings
    return sum((one.figures for one in executable.figures), Figures())


def module(seed):
    """A transpose of a slice of random rank, sizes, order and type, added to an array."""
    rng = random.Random(seed)
    rank = rng.choice((2, 2, 3, 4))
    while True:
        sizes = [rng.choice((1, 2, 3, 5, 8, 16, 33, 40, 64, 100, 129)) for _ in range(rank)]
        if prod(sizes) <= 40000:
            break
    order = rng.sample(range(rank), rank)
    starts = [rng.choice((0, 0, 0, 1, 4)) if n > 8 else 0 for n in sizes]
    inner = [n - start for n, start in zip(sizes, starts, strict=True)]
    type_ = rng.choice(list(SIZES))
    return HLO.format(
        type=type_,
        source=",".join(map(str, sizes)),
        sliced=",".join(map(str, inner)),
        result=",".join(str(inner[d]) for d in order),
        slices=",".join(f"[{start}:{n}]" for n, start in zip(sizes, starts, strict=True)),
        order=",".join(map(str, order)),
        opcode="and" if type_ == "s8" else "maximum",
    )


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(n, marks=pytest.mark.slow) for n in range(4, 60))]
)
def test_transposed_slices(seed):
    """Whatever is read across, the results are right, nothing is found, and nothing waits for a bank."""
    text = module(seed)
    figures = run(text)
    if "s8[" not in text:
        assert not figures.shared_memory.bank_conflicts


SHAPES = [
    ((256, 512), (1, 0)), ((70, 96), (1, 0)), ((129, 65), (1, 0)), ((1000, 8), (1, 0)),
    ((3, 2000), (1, 0)), ((6, 40, 72), (2, 1, 0)), ((6, 40, 72), (1, 0, 2)), ((4, 32, 8, 60), (0, 2, 1, 3)),
    ((150, 129), (1, 0)), ((5, 7, 11, 13), (3, 1, 0, 2)), ((100, 300), (1, 0)), ((6, 40, 72), (1, 2, 0)),
]  # fmt: skip


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    "type_", ["f32", *(pytest.param(t, marks=pytest.mark.slow) for t in ("f16", "f64")), "s8"]
)
@pytest.mark.parametrize(("sizes", "order"), SHAPES)
def test_traffic(sizes, order, type_):
    """Sectors are moved once, aligned or not, and nothing waits for a bank but where bytes cross ends of odd lines."""
    source, result = (",".join(map(str, s)) for s in (sizes, [sizes[d] for d in order]))
    dims = ",".join(map(str, order))
    text = f"""HloModule m
ENTRY e {{
  x = {type_}[{source}] parameter(0)
  ROOT r = {type_}[{result}] transpose(x), dimensions={{{dims}}}
}}"""
    figures = run(text)
    least = 2 * prod(sizes) * SIZES[type_]
    assert 32 * figures.global_memory.sectors <= 1.05 * least
    waits = figures.shared_memory.bank_conflicts
    assert waits <= (0.1 * figures.shared_memory.requests if type_ == "s8" else 0)
