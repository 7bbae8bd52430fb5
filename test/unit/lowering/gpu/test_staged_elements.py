"""Elements whose reads begin within sectors or overlap, by way of shared memory: against the interpreter."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlirhlo
from mlirhlo.interp.fake_data import make_fake_arguments

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "benchmarks"))
import gpu_traffic  # pyright: ignore[reportMissingImports]


def random_module(seed: int) -> str:
    """A pad, concatenation, reversal or window of a random array, and something computed beside it."""
    rng = random.Random(seed)
    type_ = rng.choice(("f32", "bf16", "s8", "f64", "pred", "c64", "s32"))
    rank = rng.choice((1, 2, 2, 3))
    sizes = [rng.randrange(1, (400, 90, 22)[rank - 1]) for _ in range(rank)]
    zero = {"pred": "false", "c64": "(0, 0)"}.get(type_, "0")
    combine = {"pred": "or", "c64": "add"}.get(type_, "maximum")
    shape = ",".join(map(str, sizes))
    head = f"""HloModule m
f {{ a = {type_}[] parameter(0) b = {type_}[] parameter(1) ROOT c = {type_}[] {combine}(a, b) }}
ENTRY e {{
  x = {type_}[{shape}] parameter(0)
  z = {type_}[] constant({zero})
"""
    kind = rng.choice(("pad", "concatenate", "reverse", "window"))
    if kind == "pad":
        pads = [
            (rng.randrange(-1, 6), rng.randrange(0, 6), rng.choice((0, 0, 0, 1))) for _ in sizes
        ]
        new = [n + a + b + max(n - 1, 0) * i for n, (a, b, i) in zip(sizes, pads, strict=True)]
        padding = "x".join("_".join(map(str, p)) for p in pads)
        op = f"pad(x, z), padding={padding}"
    elif kind == "concatenate":
        dim = rng.randrange(rank)
        new = [n + n * (d == dim) for d, n in enumerate(sizes)]
        op = f"concatenate(x, x), dimensions={{{dim}}}"
    elif kind == "reverse":
        new, op = sizes, f"reverse(x), dimensions={{{rng.randrange(rank)}}}"
    else:
        rows = [
            (rng.randrange(1, min(n, 4) + 1), rng.randrange(1, 3), rng.randrange(0, 2))
            for n in sizes
        ]
        new = [(n + 2 * p - w) // s + 1 for n, (w, s, p) in zip(sizes, rows, strict=True)]
        columns = ["x".join(str(row[at]) for row in rows) for at in (0, 1)]
        pads_ = "x".join(f"{p}_{p}" for _, _, p in rows)
        op = f"reduce-window(x, z), window={{size={columns[0]} stride={columns[1]} pad={pads_}}}, to_apply=f"
    result = f"{type_}[{','.join(map(str, new))}]"
    tail = f"  y = {result} {op}\n  w = {result} parameter(1)\n"
    return f"{head}{tail}  ROOT r = {result} {combine}(y, w)\n}}\n"


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    "seed", [*range(8), *(pytest.param(n, marks=pytest.mark.slow) for n in range(8, 60))]
)
def test_random(seed):
    """All elements are those of the interpreter, and the simulator finds nothing."""
    text = random_module(seed)
    module = mlirhlo.parse(text)
    run: Any = mlirhlo.compile(module, platform="gpu", gpu="h100")
    inputs = make_fake_arguments(module.op)
    np.testing.assert_array_equal(np.asarray(run(*inputs)), np.asarray(module(*inputs)))
    assert not list(map(str, run.findings))


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    "kernel", list(gpu_traffic.neighbourhoods()), ids=lambda k: f"{k.kind} {k.shape}"
)
def test_traffic(kernel):
    """Each sector moves about once."""
    assert gpu_traffic.measure(kernel).ratio <= 1.05


@pytest.mark.one_case_in(4)
@pytest.mark.parametrize("kernel", list(gpu_traffic.concatenations()), ids=lambda k: k.shape)
def test_concatenated_rows(kernel):
    """Rows of any width are put together by whole sectors, each once."""
    assert gpu_traffic.measure(kernel).ratio <= 1.05
