"""Modules as steps on a GPU: what the host does between kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.runtime.gpu_support import executable

import mlirhlo
from mlirhlo.diagnostics import HloError

LOOP = """HloModule loop
b { p = (s32[], s32[], f32[4]) parameter(0)  i = s32[] get-tuple-element(p), index=0
  k = s32[] get-tuple-element(p), index=1  x = f32[4] get-tuple-element(p), index=2
  one = s32[] constant(1)  n = s32[] add(i, one)  y = f32[4] add(x, x)  ROOT r = (s32[], s32[], f32[4]) tuple(n, k, y) }
c { p = (s32[], s32[], f32[4]) parameter(0)  i = s32[] get-tuple-element(p), index=0
  k = s32[] get-tuple-element(p), index=1  ROOT r = pred[] compare(i, k), direction=LT }
ENTRY e { k = s32[] parameter(0)  x = f32[4] parameter(1)  z = s32[] constant(0)
  t = (s32[], s32[], f32[4]) tuple(z, k, x)  w = (s32[], s32[], f32[4]) while(t), condition=c, body=b
  ROOT y = f32[4] get-tuple-element(w), index=2 }
"""
SWAP = """HloModule swap
b { p = (s32[], f32[2], f32[2]) parameter(0)  i = s32[] get-tuple-element(p), index=0
  x = f32[2] get-tuple-element(p), index=1  y = f32[2] get-tuple-element(p), index=2
  one = s32[] constant(1)  n = s32[] add(i, one)  ROOT r = (s32[], f32[2], f32[2]) tuple(n, y, x) }
c { p = (s32[], f32[2], f32[2]) parameter(0)  i = s32[] get-tuple-element(p), index=0
  k = s32[] constant(3)  ROOT r = pred[] compare(i, k), direction=LT }
ENTRY e { x = f32[2] parameter(0)  y = f32[2] parameter(1)  z = s32[] constant(0)
  t = (s32[], f32[2], f32[2]) tuple(z, x, y)  w = (s32[], f32[2], f32[2]) while(t), condition=c, body=b
  a = f32[2] get-tuple-element(w), index=1  ROOT d = f32[2] negate(a) }
"""
BRANCHES = """HloModule branches
f { x = f32[3] parameter(0)  ROOT r = f32[3] negate(x) }
g { x = f32[3] parameter(0)  ROOT r = f32[3] add(x, x) }
h { x = f32[3] parameter(0)  ROOT r = f32[3] multiply(x, x) }
ENTRY e { i = s32[] parameter(0)  x = f32[3] parameter(1)
  ROOT r = f32[3] conditional(i, x, x, x), branch_computations={f, g, h} }
"""
CHOICE = """HloModule choice
f { x = f32[3] parameter(0)  ROOT r = f32[3] negate(x) }
g { x = f32[3] parameter(0)  ROOT r = f32[3] add(x, x) }
ENTRY e { p = pred[] parameter(0)  x = f32[3] parameter(1)
  ROOT r = f32[3] conditional(p, x, x), true_computation=f, false_computation=g }
"""
TUPLES = """HloModule tuples
ENTRY e { t = (f32[2,3]{0,1}, (s32[4], f32[])) parameter(0)  a = f32[2,3]{0,1} get-tuple-element(t), index=0
  u = (s32[4], f32[]) get-tuple-element(t), index=1  b = f32[] get-tuple-element(u), index=1
  c = f32[2,3]{1,0} copy(a)  k = f32[2] constant({1, 2})
  ROOT r = ((s32[4], f32[]), f32[2,3]{1,0}, f32[], f32[2]) tuple(u, c, b, k) }
"""
ASYNC = """HloModule pair
f { x = f32[4] parameter(0)  ROOT r = f32[4] negate(x) }
ENTRY e { x = f32[4] parameter(0)  s = ((f32[4]), f32[4], u32[]) async-start(x), calls=f
  ROOT d = f32[4] async-done(s), calls=f }
"""
ALIASED = """HloModule donated, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY e { x = f32[4] parameter(0)  y = f32[4] parameter(1)  ROOT r = f32[4] add(x, y) }
"""
X, Y = np.array([1, -2, 3], np.float32), np.array([4, 5, -6, 7], np.float32)
CASES: dict[str, tuple[str, list[Any]]] = {
    "loop": (LOOP, [np.int32(3), Y]),
    "loop that does not run": (LOOP, [np.int32(0), Y]),
    "swap": (SWAP, [Y[:2], Y[2:]]),
    "branch of a number": (BRANCHES, [np.int32(1), X]),
    "branch out of range": (BRANCHES, [np.int32(-5), X]),
    "true": (CHOICE, [np.bool_(True), X]),
    "false": (CHOICE, [np.bool_(False), X]),
    "tuples": (
        TUPLES,
        [
            (
                np.arange(6, dtype=np.float32).reshape(2, 3),
                (np.arange(4, dtype=np.int32), np.float32(7)),
            )
        ],
    ),
    "asynchronous": (ASYNC, [Y]),
    "aliased": (ALIASED, [Y, Y[::-1].copy()]),
}


def _equal(got: Any, want: Any) -> None:
    if isinstance(want, tuple):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            _equal(a, b)
    else:
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("case", CASES)
def test_steps_give_what_the_interpreter_gives(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, arguments = CASES[case]
    module = mlirhlo.parse(text)
    compiled, driver = executable(module, monkeypatch)
    before = set(driver.memory)
    for _ in range(2):
        _equal(compiled(*arguments), module(*arguments))
    assert set(driver.memory) == before, "what a run allocates it gives back"


def test_kernels_run_once_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, driver = executable(mlirhlo.parse(LOOP), monkeypatch)
    compiled(np.int32(4), Y)
    assert max(driver.launches.count(name) for name in driver.launches) == 5


COLLECTIVE = """HloModule meet, replica_count=2
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
ENTRY e { x = f32[4] parameter(0)  i = u32[] replica-id()  f = f32[] convert(i)  g = f32[4] broadcast(f), dimensions={}
  y = f32[4] add(x, g)  ROOT r = f32[4] all-reduce(y), replica_groups={{0,1}}, to_apply=add }
"""


def test_devices_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, _ = executable(mlirhlo.parse(COLLECTIVE), monkeypatch)
    np.testing.assert_array_equal(compiled(Y), 2 * Y + 1)


def test_sizes_may_be_dynamic() -> None:
    text = """ENTRY e { x = f32[<=4] parameter(0)  n = s32[] parameter(1)  y = f32[<=4] negate(x)
      z = f32[<=4] set-dimension-size(y, n), dimensions={0}  ROOT r = (f32[<=4], f32[<=4]) tuple(y, z) }"""
    y, z = mlirhlo.compile(mlirhlo.parse(text), "gpu")(np.arange(3, dtype=np.float32), np.int32(2))
    np.testing.assert_array_equal(y, [0, -1, -2])
    np.testing.assert_array_equal(z, [0, -1])


@pytest.mark.parametrize(
    "text",
    [
        "HloModule m ENTRY e { t = token[] after-all()  ROOT r = (f32[2], token[]) infeed(t) }",
        "HloModule m ENTRY e { t = token[] after-all()  ROOT r = token[] outfeed(t, t) }",
        'ENTRY e { x = f32[2] parameter(0)  ROOT r = f32[2] custom-call(x), custom_call_target="f" }',
    ],
)
def test_what_needs_the_host_is_said(text: str) -> None:
    with pytest.raises(HloError) as caught:
        mlirhlo.compile(mlirhlo.parse(text), "gpu")
    assert caught.value.code in ("HLO0790", "HLO0802")
