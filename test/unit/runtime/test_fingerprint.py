"""A module's words tell it from every other one."""

from __future__ import annotations

import pytest

import mlirhlo
from mlirhlo.runtime.object_code.fingerprint import LARGEST_CONSTANT, fingerprint

TEXT = """HloModule first, input_output_alias={ {}: (0, {}, may-alias) }
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  x = f32[4,4] parameter(0)
  n = f32[] constant(nan)
  k = f32[4] constant({1, 2, 3, 4})
  z = f32[4,4]{0,1} copy(x), sharding={replicated}, metadata={op_name="here"}
  r = f32[4] reduce(z, n), dimensions={1}, to_apply=sum, frontend_attributes={a="b"}
  g = f32[4,4] batch-norm-inference(x, k, k, k, k), epsilon=0.001, feature_index=1
  q = f32[4] negate(r)
  s = f32[4] subtract(r, r), control-predecessors={z}
  w = f32[4,4] broadcast(s), dimensions={0}
  ROOT t = f32[4,4] add(w, x)
}
"""


def words(text: str) -> str:
    found = fingerprint(mlirhlo.parse(text).op)
    assert found is not None
    return found


def test_what_does_not_change_code_does_not_change_the_words() -> None:
    for before, after in (("first", "second"), ("here", "there"), (", metadata", ",  metadata")):
        assert before in TEXT
        assert words(TEXT) == words(TEXT.replace(before, after))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("may-alias", "must-alias"),
        ("add(a, b)", "multiply(a, b)"),
        ("subtract(r, r)", "subtract(r, q)"),
        ("constant(nan)", "constant(-nan)"),
        ("constant(nan)", "constant(0)"),
        ("constant(nan)", "constant(-0)"),
        ("{1, 2, 3", "{1, 2, 4"),
        ("f32[4,4]{0,1} copy", "f32[4,4]{1,0} copy"),
        ("{replicated}", "{maximal device=0}"),
        ('{a="b"}', '{a="c"}'),
        ("epsilon=0.001", "epsilon=0.0010001"),
        ("feature_index=1", "feature_index=0"),
        (", control-predecessors={z}", ""),
        ("add(w, x)", "add(x, w)"),
        ("sum", "total"),
        ("q", "p"),
    ],
)
def test_what_may_change_code_changes_the_words(before: str, after: str) -> None:
    assert before in TEXT
    assert words(TEXT.replace(before, after)) != words(TEXT)


def test_a_change_of_the_module_is_seen() -> None:
    module = mlirhlo.parse(TEXT)
    before = fingerprint(module.op)
    assert before == fingerprint(module.op)
    module.opt("dce")
    assert fingerprint(module.op) != before


def test_unknown_and_large_constants_have_no_words() -> None:
    elided = "ENTRY e { ROOT c = f32[5000] constant({...}) }"
    assert fingerprint(mlirhlo.parse(elided).op) is None
    numbers = ", ".join(["1"] * (LARGEST_CONSTANT + 1))
    large = f"ENTRY e {{ ROOT c = s8[{LARGEST_CONSTANT + 1}] constant({{{numbers}}}) }}"
    assert fingerprint(mlirhlo.parse(large).op) is None
    tuples = "ENTRY e { ROOT c = (f32[2], ()) constant(({1, 2}, ())) }"
    assert words(tuples) != words(tuples.replace("{1, 2}", "{1, 3}"))
