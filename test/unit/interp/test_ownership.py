"""Loops that update a buffer in place, and values that must not be overwritten."""

from __future__ import annotations

import time

import numpy as np
import pytest
from interp_support import run

from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp import Interpreter

FILL = """HloModule fill
below {
  s = (s32[], f32[SIZE,256]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(SIZE)
  ROOT r = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[SIZE,256]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  b = f32[SIZE,256] get-tuple-element(s), index=1
  one = s32[] constant(1)
  zero = s32[] constant(0)
  x = f32[] convert(i)
  row = f32[1,256] broadcast(x), dimensions={}
  u = f32[SIZE,256] dynamic-update-slice(b, row, i, zero)
  j = s32[] add(i, one)
  ROOT t = (s32[], f32[SIZE,256]) tuple(j, u)
}
ENTRY e {
  b = f32[SIZE,256] parameter(0)
  z = s32[] constant(0)
  s = (s32[], f32[SIZE,256]) tuple(z, b)
  w = (s32[], f32[SIZE,256]) while(s), condition=below, body=body
  ROOT r = f32[SIZE,256] get-tuple-element(w), index=1
}
"""


@pytest.mark.parametrize("check", [False, True])
def test_a_loop_fills_its_buffer(check: bool) -> None:
    given = np.zeros((50, 256), np.float32)
    interpreter = Interpreter(parse_module(FILL.replace("SIZE", "50")), check=check)
    result = interpreter.run([given])
    assert isinstance(result, np.ndarray)
    assert result[:, 0].tolist() == list(range(50))
    assert not given.any()


@pytest.mark.slow
def test_a_loop_does_not_copy_its_buffer() -> None:
    size = 20_000  # 20 MB, 20,000 times
    interpreter = Interpreter(parse_module(FILL.replace("SIZE", str(size))))
    start = time.process_time()
    result = interpreter.run([np.zeros((size, 256), np.float32)])
    assert isinstance(result, np.ndarray)
    assert result[-1, 0] == size - 1
    assert time.process_time() - start < 10


def test_values_used_again_are_kept() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  i = s32[] constant(1)
  one = f32[1] constant({9})
  b = f32[4] negate(x)
  v = f32[2] slice(b), slice={[0:2]}
  u = f32[4] dynamic-update-slice(b, one, i)
  ROOT t = (f32[4], f32[2]) tuple(u, v)
}
"""
    assert [o.tolist() for o in run(text, [1, 2, 3, 4])] == [[-1, 9, -3, -4], [-1, -2]]
    kept = text.replace("v = f32[2] slice(b), slice={[0:2]}", "v = f32[4] copy(b)")
    kept = kept.replace("(f32[4], f32[2])", "(f32[4], f32[4])")
    assert [o.tolist() for o in run(kept, [1, 2, 3, 4])] == [[-1, 9, -3, -4], [-1, -2, -3, -4]]


def test_an_operand_given_twice_is_kept() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  i = s32[] constant(1)
  b = f32[4] negate(x)
  z = s32[] constant(0)
  u = f32[4] dynamic-update-slice(b, b, z)
  ROOT a = f32[4] add(u, u)
}
"""
    assert run(text, [1, 2, 3, 4])[0].tolist() == [-2, -4, -6, -8]


def test_hooks_see_values_as_they_were() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[2] parameter(0)
  i = s32[] constant(0)
  nine = f32[1] constant({9})
  b = f32[2] negate(x)
  c = f32[2] negate(x)
  u = f32[2] dynamic-update-slice(b, nine, i)
  ROOT v = f32[2] multiply(u, c)
}
"""
    seen: dict[str, list[float]] = {}

    def hook(op, inputs, result) -> None:
        seen[op.instruction_name] = [v.tolist() for v in inputs]

    module = parse_module(text)
    assert Interpreter(module).run([[1, 2]]).tolist() == [-9, 4]  # type: ignore[union-attr]
    Interpreter(module, hook=hook).run([[1, 2]])
    assert seen["u"][0] == [-1, -2]
