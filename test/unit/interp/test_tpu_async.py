"""XLA:TPU's collectives that are spread over fusions."""

from __future__ import annotations

import numpy as np
import pytest

from mlirhlo.diagnostics import HloError
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp import run_spmd

SPREAD = """HloModule spread, num_partitions=2

start {
  p = f32[2,3] parameter(0)
  g = f32[4,3] all-gather(p), channel_id=1, replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true
  ROOT s = (f32[2,3], f32[4,3], s32[2], u32[]) custom-call(g), custom_call_target="AsyncCollectiveStart"
}

beside {
  p = f32[2,3] parameter(0)
  r = f32[4,3] parameter(1)
  flags = s32[2] parameter(2)
  counter = u32[] parameter(3)
  x = f32[2,3] parameter(4)
  g = f32[4,3] all-gather(p), channel_id=1, replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true
  work = f32[2,3] negate(x)
  ROOT t = (f32[2,3], f32[2,3], f32[4,3], f32[4,3], s32[2], u32[]) tuple(work, p, r, g, flags, counter)
}

done {
  p = f32[2,3] parameter(0)
  r = f32[4,3] parameter(1)
  g = f32[4,3] all-gather(p), channel_id=1, replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true
  flags = s32[2] parameter(2)
  counter = u32[] parameter(3)
  ROOT d = f32[4,3] custom-call(p, r, g, flags, counter), custom_call_target="AsyncCollectiveDone"
}

ENTRY main {
  x = f32[2,3] parameter(0)
  a = (f32[2,3], f32[4,3], s32[2], u32[]) fusion(x), kind=kCustom, calls=start
  a0 = f32[2,3] get-tuple-element(a), index=0
  a1 = f32[4,3] get-tuple-element(a), index=1
  a2 = s32[2] get-tuple-element(a), index=2
  a3 = u32[] get-tuple-element(a), index=3
  b = (f32[2,3], f32[2,3], f32[4,3], f32[4,3], s32[2], u32[]) fusion(a0, a1, a2, a3, x), kind=kOutput, calls=beside
  b0 = f32[2,3] get-tuple-element(b), index=0
  b1 = f32[2,3] get-tuple-element(b), index=1
  b2 = f32[4,3] get-tuple-element(b), index=2
  b4 = s32[2] get-tuple-element(b), index=4
  b5 = u32[] get-tuple-element(b), index=5
  c = f32[4,3] fusion(b1, b2, b4, b5), kind=kCustom, calls=done
  ROOT out = (f32[4,3], f32[2,3]) tuple(c, b0)
}
"""


def test_a_collective_beside_work() -> None:
    xs = [np.arange(6, dtype=np.float32).reshape(2, 3) + 10 * d for d in range(2)]
    results = run_spmd(parse_module(SPREAD), [[x] for x in xs])
    for x, (gathered, work) in zip(xs, results, strict=True):
        np.testing.assert_array_equal(gathered, np.concatenate(xs))
        np.testing.assert_array_equal(work, -x)


@pytest.mark.parametrize(
    ("shape", "problem"),
    [
        ("(f32[2,3])", "does not hold 2 arrays"),
        ("f32[2,3]", "not a tuple"),
    ],
)
def test_results_that_do_not_fit(shape: str, problem: str) -> None:
    text = SPREAD.partition("beside {")[0].replace("(f32[2,3], f32[4,3], s32[2], u32[])", shape)
    text += f"ENTRY main {{ x = f32[2,3] parameter(0) ROOT a = {shape} fusion(x), kind=kCustom, calls=start }}"
    with pytest.raises(HloError, match=problem) as raised:
        run_spmd(parse_module(text), [[np.zeros((2, 3), np.float32)]] * 2)
    assert raised.value.code == "HLO0355"


def test_a_start_without_a_collective() -> None:
    text = """HloModule m
    ENTRY e { x = f32[2] parameter(0)
      ROOT s = (f32[2], f32[2]) custom-call(x), custom_call_target="AsyncCollectiveStart" }"""
    with pytest.raises(HloError, match="not a collective") as raised:
        run_spmd(parse_module(text), [[np.zeros(2, np.float32)]])
    assert raised.value.code == "HLO0355"
