"""Elements of tuples said as `%tuple#1`, as dumps of `xla_dump_compact_gte` say them."""

from __future__ import annotations

import pytest

from mlirhlo.analysis.verifier import verify_module
from mlirhlo.diagnostics import HloError
from mlirhlo.formats.hlo_text import PrintOptions, parse_module, print_module

SHORT = """HloModule m

body {
  s = (s32[], (f32[4], f32[4])) parameter(0)
  one = s32[] constant(1)
  i = s32[] add(s#0, one)
  x = f32[4] multiply(f32[4]{0} %s#1#0, s#1#1)
  p = (f32[4], f32[4]) tuple(x, %s#1#0)
  ROOT t = (s32[], (f32[4], f32[4])) tuple(i, p)
}

cond {
  s = (s32[], (f32[4], f32[4])) parameter(0)
  n = s32[] constant(9)
  ROOT c = pred[] compare(%s#0, n), direction=LT
}

ENTRY e {
  s = (s32[], (f32[4], f32[4])) parameter(0)
  w = (s32[], (f32[4], f32[4])) while(s), condition=cond, body=body
  ROOT r = f32[4] add(%w#1#1, %w#1#1)
}
"""
LONG = """HloModule m

body {
  s = (s32[], (f32[4], f32[4])) parameter(0)
  one = s32[] constant(1)
  a = s32[] get-tuple-element(s), index=0
  i = s32[] add(a, one)
  b = (f32[4], f32[4]) get-tuple-element(s), index=1
  c = f32[4] get-tuple-element(b), index=0
  d = f32[4] get-tuple-element(b), index=1
  x = f32[4] multiply(c, d)
  p = (f32[4], f32[4]) tuple(x, c)
  ROOT t = (s32[], (f32[4], f32[4])) tuple(i, p)
}

cond {
  s = (s32[], (f32[4], f32[4])) parameter(0)
  n = s32[] constant(9)
  a = s32[] get-tuple-element(s), index=0
  ROOT c = pred[] compare(a, n), direction=LT
}

ENTRY e {
  s = (s32[], (f32[4], f32[4])) parameter(0)
  w = (s32[], (f32[4], f32[4])) while(s), condition=cond, body=body
  a = (f32[4], f32[4]) get-tuple-element(w), index=1
  b = f32[4] get-tuple-element(a), index=1
  ROOT r = f32[4] add(b, b)
}
"""


def test_elements_are_made_once() -> None:
    short, long = parse_module(SHORT), parse_module(LONG)
    assert verify_module(short) == []
    style = PrintOptions.fingerprint()
    assert print_module(short, style) == print_module(long, style)
    assert print_module(parse_module(print_module(short))) == print_module(short)


@pytest.mark.parametrize(
    ("operand", "code", "message"),
    [
        ("s#2", "HLO0010", r"s has no element 2; it is of shape \(f32\[2\]\{0\}, f32\[2\]\{0\}\)"),
        ("s#0#0", "HLO0010", r"s#0 has no element 0; it is of shape f32\[2\]"),
        ("s#-1", "HLO0010", "s has no element -1"),
        ("s#x", "HLO0001", "expects an index"),
        ("q#0", "HLO0006", "instruction does not exist: q"),
    ],
)
def test_elements_that_are_not_there(operand: str, code: str, message: str) -> None:
    text = (
        f"ENTRY e {{\n  s = (f32[2], f32[2]) parameter(0)\n  ROOT n = f32[2] negate({operand})\n}}"
    )
    with pytest.raises(HloError, match=message) as found:
        parse_module(f"HloModule m\n\n{text}\n")
    assert found.value.code == code
