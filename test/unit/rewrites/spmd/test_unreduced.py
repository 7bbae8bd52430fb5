"""Unreduced shardings: devices hold parts of a sum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp import run_spmd
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline

OPEN = "{devices=[1,1,2,2]<=[4] last_tile_dims={unreduced, replicated}}"
X = "{devices=[1,2,2]<=[4] last_tile_dim_replicate}"
W = "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"


def partitioned(body: str) -> Any:
    module = parse_module(f"HloModule m, num_partitions=4\nENTRY e {{\n{body}\n}}")
    run_pipeline(module, parse_pipeline("sharding-propagation,spmd-partitioning"))
    return module


def run(module: Any, inputs: list[list[Any]]) -> list[Any]:
    return [results[0] for results in run_spmd(module, inputs)]


def test_a_sum_stays_open() -> None:
    module = partitioned(
        f"""x = f32[4,2] parameter(0), sharding={X}
  w = f32[2,4] parameter(1), sharding={W}
  ROOT d = f32[4,4] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, sharding={OPEN}"""
    )
    assert "hlo.all_reduce" not in str(module)
    x, w = np.arange(8, dtype=np.float32).reshape(4, 2), np.ones((2, 4), np.float32)
    parts = run(module, [[x[:, d // 2 : d // 2 + 1], w[d // 2 : d // 2 + 1]] for d in range(4)])
    np.testing.assert_array_equal(parts[0] + parts[2], x @ w)
    np.testing.assert_array_equal(parts[1] + parts[3], x @ w)


@pytest.mark.parametrize(
    ("target", "is_summed"),
    [
        ("{replicated}", True),
        ("{devices=[2,1,2]<=[4] last_tile_dim_replicate}", True),
        ("{devices=[1,4]<=[4]}", True),
        ("{devices=[2,2]<=[2,2]T(1,0)}", True),
        (OPEN, False),
        ("{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dims={unreduced}}", True),
        ("{unreduced}", False),
    ],
)
@pytest.mark.parametrize("element", ["f32", "s32", "pred"])
def test_an_open_sum_goes_elsewhere(target: str, is_summed: bool, element: str) -> None:
    """Whatever the target is, all parts together, by its own grid, are the sum."""
    to = f"{element}[4,4]"
    module = partitioned(
        f"""x = {to} parameter(0), sharding={OPEN}
  ROOT r = {to} custom-call(x), custom_call_target="Sharding", sharding={target}"""
    )
    text = str(module)
    assert is_summed == ("hlo.all_reduce" in text or "hlo.reduce_scatter" in text)
    rng = np.random.default_rng(5)
    halves = [rng.integers(0, 2 if element == "pred" else 9, (4, 4)) for _ in range(2)]
    dtype = {"f32": np.float32, "s32": np.int32, "pred": bool}[element]
    inputs = [[halves[d // 2].astype(dtype)] for d in range(4)]
    total = (halves[0].astype(dtype) + halves[1].astype(dtype)).astype(dtype)
    back = partitioned(
        f"""x = {to} parameter(0), sharding={target}
  ROOT r = {to} custom-call(x), custom_call_target="Sharding", sharding={{replicated}}"""
    )
    for found in run(back, [[part] for part in run(module, inputs)]):
        np.testing.assert_array_equal(found, total)


def test_a_whole_array_is_on_the_first_devices() -> None:
    module = partitioned(
        """x = f32[2] parameter(0), sharding={replicated}
  ROOT r = f32[2] copy(x), sharding={devices=[1,2,2]<=[4] last_tile_dims={unreduced, replicated}}"""
    )
    parts = run(module, [[np.ones(2, np.float32)]] * 4)
    assert [part.tolist() for part in parts] == [[1, 1], [1, 1], [0, 0], [0, 0]]
