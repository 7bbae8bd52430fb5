"""Asynchronous pairs."""

from __future__ import annotations

import numpy as np

from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp.engine import run_module


def run(text: str, *inputs: np.ndarray) -> list[list[float]]:
    return [a.tolist() for a in run_module(parse_module(text), inputs, check=True)]


X = np.array([1, 2], np.float32)


def test_async_start_update_done() -> None:
    text = """HloModule m
w { a = f32[2] parameter(0)
  b = f32[2] parameter(1)
  ROOT c = f32[2] subtract(b, a) }
ENTRY e {
  p = f32[2] parameter(0)
  q = f32[2] negate(p)
  s = ((f32[2], f32[2]), f32[2], u32[]) async-start(p, q), calls=w
  u = ((f32[2], f32[2]), f32[2], u32[]) async-update(s)
  ROOT d = f32[2] async-done(u)
}
"""
    assert run(text, X) == [[-2, -4]]


def test_sugar() -> None:
    text = """HloModule m
ENTRY e {
  p = f32[2] parameter(0)
  s = ((f32[2]), f32[2], s32[]) negate-start(p)
  ROOT d = f32[2] negate-done(s)
}
"""
    assert run(text, X) == [[-1, -2]]


def test_copy_start_and_done() -> None:
    text = """HloModule m
ENTRY e {
  p = f32[2] parameter(0)
  s = (f32[2]{0:S(5)}, f32[2], u32[]) copy-start(p)
  ROOT d = f32[2]{0:S(5)} copy-done(s)
}
"""
    assert run(text, X) == [[1, 2]]
