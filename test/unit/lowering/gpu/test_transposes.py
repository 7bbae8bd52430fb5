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
SIZES = {"f32": 4, "bf16": 2, "f16": 2, "s8": 1, "f64": 8, "c64": 8, "c128": 16}
REAL = ("f32", "bf16", "f16", "s8", "f64")


def run(hlo, tolerance=0.0):
    """The figures of a module on the simulator; results are the interpreter's, and there are no findings."""
    module = mlirhlo.parse(hlo)
    executable = mlirhlo.compile(module, platform="gpu")
    inputs = make_fake_arguments(module.op)
    result = np.asarray(executable(*inputs))
    expected = np.asarray(mlirhlo.run(module, *inputs))
    assert result.dtype == expected.dtype
    wide = np.complex128 if result.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(result.astype(wide), expected.astype(wide), tolerance)
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
    type_ = rng.choice(REAL)
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
    assert not run(module(seed)).shared_memory.bank_conflicts


def transposed(sizes, order, type_):
    """A module that transposes."""
    source, result = (",".join(map(str, s)) for s in (sizes, [sizes[d] for d in order]))
    dims = ",".join(map(str, order))
    return f"""HloModule m
ENTRY e {{
  x = {type_}[{source}] parameter(0)
  ROOT r = {type_}[{result}] transpose(x), dimensions={{{dims}}}
}}"""


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
    """Sectors are moved once, aligned or not, and nothing waits for a bank."""
    figures = run(transposed(sizes, order, type_))
    least = 2 * prod(sizes) * SIZES[type_]
    assert 32 * figures.global_memory.sectors <= 1.05 * least
    assert not figures.shared_memory.bank_conflicts


ODD = [
    ((33, 47), (1, 0)), ((73, 30), (1, 0)), ((100, 100), (1, 0)), ((24, 16), (1, 0)), ((17, 19, 23), (2, 1, 0)),
    ((12, 20, 50), (0, 2, 1)), ((36, 13, 20), (2, 1, 0)), ((5, 3, 33, 2), (3, 2, 1, 0)), ((3, 5, 91, 6), (3, 2, 0, 1)),
]  # fmt: skip


@pytest.mark.one_case_in(4)
@pytest.mark.parametrize(
    "type_", ["s8", *(pytest.param(t, marks=pytest.mark.slow) for t in ("bf16", "f32", "f64", "c64", "c128"))]
)  # fmt: skip
@pytest.mark.parametrize(("sizes", "order"), ODD)
def test_widths(sizes, order, type_):
    """Elements of every width in lines of any length: nothing waits for a bank, and every sector is moved whole."""
    figures = run(transposed(sizes, order, type_))
    assert not figures.shared_memory.bank_conflicts
    least = sum(-(-n // 32) for n in [prod(sizes) * SIZES[type_]] * 2)
    assert figures.global_memory.sectors <= 1.05 * least


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(273, 651), (505, 306)])
def test_parts_of_boxes(sizes):
    """Where shared memory does not hold a box twice, it goes through the second array part by part."""
    assert not run(transposed(sizes, (1, 0), "s8")).shared_memory.bank_conflicts
