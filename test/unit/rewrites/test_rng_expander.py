"""Numbers that `rng-expander` draws are those of their distribution, and of each instruction and device other ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlirhlo.dialects.hlo import HloModule
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp import run_module, run_spmd
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline

COUNT = 20_001


def _expanded(*draws: str, header: str = "", options: str = "") -> Any:
    """A module of some draws, `type[sizes] low high way` each, without `rng`."""
    lines: list[str] = []
    shapes: list[str] = []
    for number, draw in enumerate(draws):
        shape, low, high, way = draw.split()
        scalar = shape.split("[")[0] + "[]"
        lines += [
            f"a{number} = {scalar} constant({low})",
            f"b{number} = {scalar} constant({high})",
            f"r{number} = {shape} rng(a{number}, b{number}), distribution=rng_{way}",
        ]
        shapes.append(shape)
    names = ", ".join(f"r{n}" for n in range(len(draws)))
    lines.append(f"ROOT t = ({', '.join(shapes)}) tuple({names})")
    module = parse_module(f"HloModule m{header}\nENTRY e {{\n" + "\n".join(lines) + "\n}\n")
    run_pipeline(module, parse_pipeline(f"rng-expander{options}"))
    assert not [op for op in HloModule(module).instructions if op.opcode.name == "rng"]
    return module


@pytest.mark.parametrize("type_", ["f32", "f64", "f16"])
def test_uniform_floats(type_: str) -> None:
    (found,) = run_module(_expanded(f"{type_}[{COUNT}] -2 6 uniform"), [])
    values = np.sort(np.asarray(found).astype(np.float64))
    assert values[0] >= -2
    assert values[-1] <= 6
    # Kolmogorov and Smirnov: the chance of a larger distance is below one in a million.
    distance = np.abs((values + 2) / 8 - np.arange(COUNT) / COUNT).max()
    assert distance < 2.7 / np.sqrt(COUNT)


@pytest.mark.parametrize("type_", ["f32", "f64", "bf16"])
def test_normal_floats(type_: str) -> None:
    (found,) = run_module(_expanded(f"{type_}[3,{COUNT // 3}] 1 2 normal"), [])
    values = (np.asarray(found).astype(np.float64).ravel() - 1) / 2
    assert abs(values.mean()) < 5 / np.sqrt(COUNT)
    assert abs(values.var() - 1) < 5 * np.sqrt(2 / COUNT)
    inside = (np.abs(values) < 1).mean()
    assert abs(inside - 0.6827) < 0.02
    assert np.abs(values).max() < 6


@pytest.mark.parametrize(
    ("type_", "low", "high"),
    [("s32", -3, 4), ("u8", 250, 255), ("s8", -128, 127), ("u64", 2**64 - 8, 2**64 - 1)],
)
def test_integers(type_: str, low: int, high: int) -> None:
    (found,) = run_module(_expanded(f"{type_}[{COUNT}] {low} {high} uniform"), [])
    values, counts = np.unique(np.asarray(found), return_counts=True)
    assert [int(v) for v in values] == list(range(low, high))
    expected = COUNT / (high - low)
    assert np.abs(counts - expected).max() < 6 * np.sqrt(expected)


def test_predicates() -> None:
    (found,) = run_module(_expanded(f"pred[{COUNT}] 0 1 uniform"), [])
    assert abs(np.asarray(found).mean() - 0.5) < 5 / np.sqrt(COUNT)


def test_instructions_and_seeds_draw_other_numbers() -> None:
    one, two = run_module(_expanded("f32[9] 0 1 uniform", "f32[9] 0 1 uniform"), [])
    seeded, _ = run_module(
        _expanded("f32[9] 0 1 uniform", "f32[9] 0 1 uniform", options="{seed=1}"), []
    )
    assert not np.array_equal(one, two)
    assert not np.array_equal(one, seeded)


def test_devices_draw_other_numbers() -> None:
    module = _expanded("f32[9] 0 1 uniform", header=", replica_count=2, num_partitions=2")
    found = [np.asarray(out).tobytes() for (out,) in run_spmd(module, [[]])]
    assert len(found) == len(set(found)) == 4
