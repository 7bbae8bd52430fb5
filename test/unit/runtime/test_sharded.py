"""Sharded modules on the devices of one process, and their runs without Python."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np
import pytest

import mlirhlo
from mlirhlo.diagnostics import HloError
from mlirhlo.interp import run_spmd
from mlirhlo.runtime import device_threads
from mlirhlo.runtime.sharded import ShardedExecutable

SUM = "sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }"
GROUPS = "to_apply=sum, channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true"

LAYER = f"""HloModule layer
{SUM}
ENTRY e {{
  x = f32[8,16] parameter(0), sharding={{devices=[2,1,2]<=[4] last_tile_dim_replicate}}
  w = f32[16,6] parameter(1), sharding={{devices=[2,2]<=[4]}}
  y = f32[8,6] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  zero = f32[] constant(0)
  t = f32[6] reduce(y, zero), dimensions={{0}}, to_apply=sum
  ROOT r = (f32[8,6], f32[6]) tuple(y, t), sharding={{{{devices=[4,1]<=[4]}}, {{replicated}}}}
}}"""

TURNS = f"""HloModule turns, num_partitions=2
{SUM}
body {{
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[4] get-tuple-element(s), index=1
  one = s32[] constant(1)
  n = s32[] subtract(i, one)
  r = f32[4] all-reduce(v), {GROUPS}
  ROOT t = (s32[], f32[4]) tuple(n, r)
}}
condition {{
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  z = s32[] constant(0)
  ROOT c = pred[] compare(i, z), direction=GT
}}
ENTRY e {{
  count = s32[] parameter(0)
  x = f32[4] parameter(1)
  t = (s32[], f32[4]) tuple(count, x)
  w = (s32[], f32[4]) while(t), condition=condition, body=body
  ROOT r = f32[4] get-tuple-element(w), index=1
}}"""
"""Each device turns as often as its argument says: numbers that differ leave one waiting."""


def drawn(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def turned(compiled: ShardedExecutable, first: int, second: int) -> list[Any]:
    x = np.ones(4, np.float32)
    return compiled.on_devices([np.int32(first), x], [np.int32(second), 2 * x])


def test_whole_arrays_go_in_and_come_out() -> None:
    module = mlirhlo.parse(LAYER)
    compiled = mlirhlo.compile(module, devices=4)
    x, w = drawn(8, 16), drawn(16, 6)
    for found, wanted in zip(compiled(x, w), module(x, w), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    assert not compiled.executable.callbacks
    with pytest.raises(HloError, match="expects 2 arguments, got 1"):
        compiled(x)
    np.testing.assert_allclose(compiled(x.tolist(), w)[1], module(x, w)[1], rtol=1e-5, atol=1e-5)
    assert "num_partitions" not in module.as_text()


def test_tiles_of_each_device() -> None:
    compiled = mlirhlo.compile(mlirhlo.parse(TURNS), devices=2)
    for count in (0, 1, 3):
        x = np.ones(4, np.float32)
        inputs = [[np.int32(count), x], [np.int32(count), 2 * x]]
        wanted = run_spmd(mlirhlo.parse(TURNS).op, inputs)
        for found, value in zip(turned(compiled, count, count), wanted, strict=True):
            np.testing.assert_array_equal(found, np.reshape(value, 4))


@pytest.mark.parametrize(("devices", "code"), [(3, "HLO0480"), (2, "HLO0480"), (0, "HLO0508")])
def test_other_numbers_of_devices_are_told(devices: int, code: str) -> None:
    with pytest.raises(HloError) as problem:
        mlirhlo.compile(mlirhlo.parse(LAYER), devices=devices)
    assert problem.value.code == code


def test_numbers_of_a_partitioned_module_are_told() -> None:
    with pytest.raises(HloError, match="not for 4 devices"):
        mlirhlo.compile(mlirhlo.parse(TURNS), devices=4)
    with pytest.raises(HloError, match="inputs are given for 3"):
        mlirhlo.compile(mlirhlo.parse(TURNS), devices=2).on_devices([1], [2], [3])


def test_devices_that_cannot_go_on_end_with_the_place() -> None:
    compiled = mlirhlo.compile(mlirhlo.parse(TURNS), devices=2)
    for _ in range(2):
        turned(compiled, 2, 2)
        with pytest.raises(
            HloError, match="partition 1 waits in all-reduce %r for partition 0"
        ) as problem:
            turned(compiled, 1, 2)
        assert problem.value.code == "HLO0351"
        np.testing.assert_array_equal(turned(compiled, 2, 2)[0], np.full(4, 6, np.float32))


def test_many_threads_share_a_module() -> None:
    compiled = mlirhlo.compile(mlirhlo.parse(TURNS), devices=2)
    wrong: list[Any] = []

    def work(count: int) -> None:
        for _ in range(50):
            found = turned(compiled, count, count)
            if not all((part == 3 * 2.0 ** (count - 1)).all() for part in found):
                wrong.append(found)

    threads = [threading.Thread(target=work, args=(1 + k % 3,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not device_threads.are_there(), reason="no threads wait here without Python")
def test_a_steady_run_makes_nothing_new(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = mlirhlo.compile(mlirhlo.parse(TURNS), devices=2)
    turned(compiled, 1, 1)
    monkeypatch.setattr(device_threads.Worlds, "add", lambda worlds: pytest.fail("another world"))
    for _ in range(20):
        turned(compiled, 1, 1)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own() -> None:
    compiled = mlirhlo.compile(mlirhlo.parse(TURNS), devices=2)
    turned(compiled, 1, 1)
    child = os.fork()
    if child == 0:
        found = turned(compiled, 2, 2)
        os._exit(0 if (found[1] == 6).all() else 1)
    assert os.waitpid(child, 0)[1] == 0
