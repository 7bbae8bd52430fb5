"""Profiles: every kernel is timed and counted."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mlirhlo
from mlirhlo.runtime.profile import profile

pytest.importorskip("llvmlite")

TEXT = """HloModule profiled
cond { s = (s32[], f32[64], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=2
  ROOT c = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[64], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[64] get-tuple-element(s), index=1
  n = s32[] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[64] sine(x)
  ROOT r = (s32[], f32[64], s32[]) tuple(j, y, n) }
ENTRY e { x = f32[64] parameter(0)
  n = s32[] parameter(1)
  zero = s32[] constant(0)
  s = (s32[], f32[64], s32[]) tuple(zero, x, n)
  w = (s32[], f32[64], s32[]) while(s), condition=cond, body=body
  ROOT r = f32[64] get-tuple-element(w), index=1 }
"""


def test_kernels_of_a_loop() -> None:
    module = mlirhlo.parse(TEXT)
    x = np.linspace(0, 1, 64, dtype=np.float32)
    found = profile(module.op, [x, np.int32(3)], runs=2)
    np.testing.assert_allclose(found.result, np.sin(np.sin(np.sin(x))), rtol=1e-5)
    by_calls = {row.calls for row in found.rows}
    assert by_calls == {3, 4}  # the condition runs once more
    (sine,) = [row for row in found.rows if row.bytes == 3 * 2 * 64 * 4]
    assert sine.flops == 3 * 64
    assert sum(row.nanoseconds for row in found.rows) > 0
    table = found.table().splitlines()
    assert len(table) == 2 + len(found.rows)
    events = json.loads(found.chrome_trace())["traceEvents"]
    assert len(events) == sum(row.calls for row in found.rows)
    assert all(e["dur"] >= 0 and e["ph"] == "X" for e in events)


def test_more_kernels_than_records_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlirhlo.runtime.profile._RECORDS", 64)
    found = profile(mlirhlo.parse(TEXT).op, [np.zeros(64, np.float32), np.int32(50)], runs=1)
    assert sorted(row.calls for row in found.rows) == [50, 50, 51]
    starts = [start for _, start, _ in found.events]
    assert starts == sorted(starts)


def test_gathers_read_what_they_take() -> None:
    gather = (
        "gather(table, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
        "index_vector_dim=1, slice_sizes={1,64}"
    )
    text = f"""ENTRY e {{
  table = f32[1000,64] parameter(0)
  i = s32[3] parameter(1)
  rows = f32[3,64] {gather}
  ROOT r = f32[3,64] negate(rows)
}}
"""
    arguments = [np.zeros((1000, 64), np.float32), np.arange(3, dtype=np.int32)]
    (row,) = profile(mlirhlo.parse(text).op, arguments, runs=1).rows
    assert row.bytes == 4 * (3 + 2 * 3 * 64)
