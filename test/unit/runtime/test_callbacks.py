"""Machine code that calls back into Python: what has no code, values of dynamic size, errors."""

from __future__ import annotations

import contextlib
import gc
import logging
import weakref
from typing import Any

import numpy as np
import pytest

import mlirhlo
from mlirhlo.diagnostics import HloError
from mlirhlo.interp.custom_calls import CUSTOM_CALLS, register_custom_call
from mlirhlo.interp.machine import Machine
from mlirhlo.runtime.executable import Executable

pytest.importorskip("llvmlite")


def compiled(text: str) -> Executable:
    """Compiled anew."""
    return mlirhlo.compile(mlirhlo.parse(text), cached=False)


@pytest.fixture
def doubled() -> object:
    """A target that doubles, in the layouts it is called with."""
    register_custom_call("test.doubled", lambda op, inputs, frame: inputs[0] * 2)
    yield None
    del CUSTOM_CALLS["test.doubled"]


CALL = """HloModule m
ENTRY e {
  x = f32[2,3]{0,1} parameter(0)
  n = f32[2,3]{0,1} negate(x)
  c = f32[2,3]{1,0} custom-call(n), custom_call_target="test.doubled"
  ROOT r = f32[2,3]{1,0} add(c, c)
}
"""


def test_calls_are_counted_and_warned_about(
    doubled: object, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "mlirhlo.runtime"):
        executable = compiled(CALL)
    assert "HLO0438" in caplog.text
    assert "custom-call test.doubled (1)" in caplog.text
    x = np.arange(6, dtype="f4").reshape(2, 3)
    for _ in range(2):
        np.testing.assert_array_equal(executable(x), -4 * x)
    assert executable.callbacks == {"custom-call test.doubled": 2}
    out = np.empty((2, 3), "f4")
    assert executable(x, out=out) is out
    np.testing.assert_array_equal(out, -4 * x)


def test_a_result_may_be_kept(doubled: object) -> None:
    kept: list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]] = []
    register_custom_call(
        "test.doubled", lambda op, inputs, frame: kept.append(inputs[0]) or inputs[0]
    )
    executable = compiled(CALL)
    first = np.ones((2, 3), "f4")
    executable(first)
    executable(first * 5)
    np.testing.assert_array_equal(kept[0], -first)


def test_an_error_is_raised_and_loops_end() -> None:
    text = """HloModule m
cond { s = (s32[], f32[]) parameter(0)
  ROOT r = pred[] constant(true) }
body { s = (s32[], f32[]) parameter(0)
  t = token[] after-all()
  i = ((f32[]), token[]) infeed(t)
  d = (f32[]) get-tuple-element(i), index=0
  v = f32[] get-tuple-element(d), index=0
  n = s32[] get-tuple-element(s), index=0
  ROOT r = (s32[], f32[]) tuple(n, v) }
ENTRY e {
  n = s32[] parameter(0)
  x = f32[] parameter(1)
  s = (s32[], f32[]) tuple(n, x)
  ROOT w = (s32[], f32[]) while(s), condition=cond, body=body
}
"""
    executable = compiled(text)
    for _ in range(2):
        with pytest.raises(HloError) as caught:
            executable(np.int32(1), np.float32(2))
        assert caught.value.code == "HLO0352"
    assert executable.callbacks == {"infeed": 2}


DYNAMIC = """HloModule m
cond { s = (s32[], f32[<=8]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  zero = s32[] constant(0)
  ROOT r = pred[] compare(n, zero), direction=GT }
body { s = (s32[], f32[<=8]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  left = s32[] subtract(n, one)
  x = f32[<=8] get-tuple-element(s), index=1
  y = f32[<=8] add(x, x)
  ROOT r = (s32[], f32[<=8]) tuple(left, y) }
ENTRY e {
  n = s32[] parameter(0)
  x = f32[<=8] parameter(1)
  s = (s32[], f32[<=8]) tuple(n, x)
  w = (s32[], f32[<=8]) while(s), condition=cond, body=body
  y = f32[<=8] get-tuple-element(w), index=1
  size = s32[] get-dimension-size(y), dimensions={0}
  ROOT r = (s32[], f32[<=8]) tuple(size, y)
}
"""


@pytest.mark.parametrize("devices", [1, 2])
def test_an_error_is_gone_once_it_is_handled(doubled: object, devices: int) -> None:
    """What the error's traceback refers to must not wait for a collection of cycles."""
    locals_: list[weakref.ref[object]] = []

    def fail(op: object, inputs: object, frame: object) -> np.ndarray[Any, Any]:
        value = np.ones(3)
        locals_.append(weakref.ref(value))
        raise ValueError("no value")

    register_custom_call("test.doubled", fail)
    executable, x = compiled(CALL), np.ones((2, 3), "f4")
    machine = Machine(1, devices)
    gc.disable()
    try:
        with contextlib.suppress(HloError):
            machine.run_devices(lambda r, p: executable.run_on(machine, r, p, [x]))
        assert locals_
        assert not any(value() is not None for value in locals_)
    finally:
        gc.enable()


def test_dynamic_sizes_go_through_loops_as_numbers() -> None:
    executable = compiled(DYNAMIC)
    x = np.arange(5, dtype="f4")
    size, y = executable(np.int32(3), x)
    assert size == 5
    assert isinstance(y, np.ndarray)  # as the module's own call gives it
    np.testing.assert_array_equal(y, 8 * x)
    assert executable.callbacks == {
        "custom-call PadToStatic": 1,
        "custom-call SliceToDynamic": 1,
    }


MEETING = """HloModule m, replica_count=4
add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT r = f32[] add(x, y) }
ENTRY e {
  x = f32[4] parameter(0)
  id = u32[] replica-id()
  f = f32[] convert(id)
  b = f32[4] broadcast(f), dimensions={}
  y = f32[4] multiply(x, b)
  ROOT r = f32[4] all-reduce(y), replica_groups={{0,1},{2,3}}, to_apply=add
}
"""


def test_devices_meet() -> None:
    executable = compiled(MEETING)
    x = np.arange(4, dtype="f4")
    np.testing.assert_array_equal(executable(x), x)
    machine = Machine(4)
    results = machine.run_devices(lambda r, p: executable.run_on(machine, r, p, [x]))
    for result, factor in zip(results, (1, 1, 5, 5), strict=True):
        np.testing.assert_array_equal(result, factor * x)


def test_tuples_in_tuples_go_through_python() -> None:
    text = """HloModule m, replica_count=2
ENTRY e {
  x = f32[2] parameter(0)
  y = f32[3] parameter(1)
  s = ((f32[2], f32[3]), (f32[4], f32[6])) all-gather-start(x, y), replica_groups={{0,1}}, dimensions={0}
  ROOT d = (f32[4], f32[6]) all-gather-done(s)
}
"""
    x, y = np.arange(2, dtype="f4"), np.arange(3, dtype="f4")
    first, second = compiled(text)(x, y)
    np.testing.assert_array_equal(first, np.tile(x, 2))
    np.testing.assert_array_equal(second, np.tile(y, 2))


def test_constants_that_are_tuples() -> None:
    text = """HloModule m
ENTRY e {
  c = (f32[2], s32[]) constant(({1, 2}, 3))
  ROOT x = f32[2] get-tuple-element(c), index=0
}
"""
    np.testing.assert_array_equal(compiled(text)(), np.array([1, 2], "f4"))
