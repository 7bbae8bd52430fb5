"""Passes keep what the verifier asks of calls: one caller for a fused or a wrapped computation, one thread."""

from __future__ import annotations

import re

import numpy as np
import pytest

from mlirhlo.debug.fuzz.passes import PLATFORMS, Reference, pass_names

FUNCTIONS = """
wrapped { wa = f32[4] parameter(0)  ROOT wn = f32[4] negate(wa) }
alone { la = f32[4] parameter(0)  ROOT ln = f32[4] negate(la) }
fused { fa = f32[4] parameter(0)  fb = f32[4] exponential(fa)  ROOT fn = f32[4] add(fb, fa) }
twice { a = f32[4] parameter(0)
  s = ((f32[4]), f32[4], s32[]) async-start(a), calls=wrapped
  d = f32[4] async-done(s)
  f = f32[4] fusion(d), kind=kLoop, calls=fused
  ROOT r = f32[4] add(d, f) }
inner { ia = f32[4] parameter(0)  ib = f32[] parameter(1)  ic = f32[4] broadcast(ib), dimensions={}
  ROOT ir = f32[4] add(ia, ic) }
outer { oa = f32[4] parameter(0)  ob = f32[] parameter(1)  on = f32[4] negate(oa)
  ROOT or.1 = f32[4] fusion(on, ob), kind=kLoop, calls=inner }
sum { sa = f32[] parameter(0)  sb = f32[] parameter(1)  ROOT sr = f32[] add(sa, sb) }
nest { n = f32[4] parameter(0)
  c = f32[4] call(n), to_apply=twice
  ROOT r = f32[4] call(c), to_apply=twice }
"""
CALLED: dict[str, str] = {
    "calls": "c = f32[4] call(x), to_apply=twice  ROOT r = f32[4] call(c), to_apply=twice",
    "started_on_a_constant": "k = f32[4] constant({1, 2, 3, 4})\n"
    "s = ((f32[4]), f32[4], s32[]) async-start(k), calls=alone\n"
    "u = ((f32[4]), f32[4], s32[]) async-update(s)  d = f32[4] async-done(u)\n"
    "t = (f32[4], f32[4], u32[]) copy-start(k)  c = f32[4] copy-done(t)\n"
    "e = f32[4] add(c, d)  ROOT r = f32[4] add(e, x)",
    "a_sum_of_scalars_that_is_fused": "k = f32[] constant(2)\n"
    "one = f32[] fusion(k, k), kind=kLoop, calls=sum  o = f32[4] broadcast(one), dimensions={}\n"
    "m = f32[2,2] reshape(x)  t = f32[2,2] triangular-solve(m, m), left_side=true, lower=true,"
    " unit_diagonal=false, transpose_a=NO_TRANSPOSE\n"
    "f = f32[4] reshape(t)  ROOT r = f32[4] add(f, o)",
    "constants_of_nested_fusions": "k = f32[] constant(2)\n"
    "ROOT r = f32[4] fusion(x, k), kind=kLoop, calls=outer",
    "calls_in_calls": "c = f32[4] call(x), to_apply=nest  ROOT r = f32[4] call(c), to_apply=nest",
    "a_call_that_stays": "c = f32[4] call(x), to_apply=twice\n"
    'ROOT r = f32[4] call(c), to_apply=twice, frontend_attributes={inlineable="false"}',
    "branches": "i = s32[] constant(1)\n"
    "ROOT r = f32[4] conditional(i, x, x, x), branch_computations={twice,twice,twice}",
    "branches_and_call": "i = s32[] constant(0)  c = f32[4] call(x), to_apply=twice\n"
    "ROOT r = f32[4] conditional(i, c, x), branch_computations={twice,twice}",
}


@pytest.mark.parametrize("form", CALLED)
def test_fusions_and_starts_in_what_is_called_twice(form: str) -> None:
    check(f"HloModule m\n{FUNCTIONS}\nENTRY e {{ x = f32[4] parameter(0)\n{CALLED[form]} }}")


def test_computations_alike_that_are_started_and_fused() -> None:
    check("""HloModule m
w.1 { a.1 = f32[4] parameter(0)  ROOT n.1 = f32[4] negate(a.1) }
w.2 { a.2 = f32[4] parameter(0)  ROOT n.2 = f32[4] negate(a.2) }
f.1 { a.3 = f32[4] parameter(0)  ROOT n.3 = f32[4] negate(a.3) }
f.2 { a.4 = f32[4] parameter(0)  ROOT n.4 = f32[4] negate(a.4) }
g.1 { a.5 = f32[4] parameter(0)  ROOT n.5 = f32[4] negate(a.5) }
g.2 { a.6 = f32[4] parameter(0)  ROOT n.6 = f32[4] negate(a.6) }
ENTRY e { x = f32[4] parameter(0)
  s.1 = ((f32[4]), f32[4], s32[]) async-start(x), calls=w.1
  d.1 = f32[4] async-done(s.1)
  s.2 = ((f32[4]), f32[4], s32[]) async-start(d.1), calls=w.2
  d.2 = f32[4] async-done(s.2)
  v.1 = f32[4] fusion(d.2), kind=kLoop, calls=f.1
  v.2 = f32[4] fusion(v.1), kind=kLoop, calls=f.2
  c.1 = f32[4] call(v.2), to_apply=g.1
  ROOT c.2 = f32[4] call(c.1), to_apply=g.2 }
""")


LAST: dict[str, str] = {
    "fused": "b = f32[4] exponential(a)  c = f32[4] add(b, a)  ROOT r = f32[4] multiply(c, b)",
    "expanded": "m = f32[2,2] reshape(a)  d = f32[2,2] cholesky(m), lower=true\n"
    "l = f32[4] reshape(d)  ROOT r = f32[4] logistic(l)",
    "folded": "z = f32[] constant(1)  s = f32[] reduce(a, z), dimensions={0}, to_apply=add\n"
    "b = f32[4] broadcast(s), dimensions={}  m = f32[2,2] reshape(b)\n"
    "d = f32[2,2] dot(m, m), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
    "ROOT r = f32[4] reshape(d)",
    "sorted": "k = s32[4] constant({3, 1, 2, 1})\n"
    "s = (s32[4], f32[4]) sort(k, a), dimensions={0}, is_stable=true, to_apply=less\n"
    "ROOT r = f32[4] get-tuple-element(s), index=1",
    "narrow": "b = bf16[4] convert(a)  z = bf16[] constant(0)\n"
    "s = bf16[] reduce(b, z), dimensions={0}, to_apply=narrow\n"
    "w = bf16[4] broadcast(s), dimensions={}  ROOT r = f32[4] convert(w)",
    "scattered": "i = s32[2,1] constant({{1}, {2}})  u = f32[2] constant({5, 6})\n"
    "ROOT r = f32[4] scatter(a, i, u), update_window_dims={}, inserted_window_dims={0},"
    " scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
}


@pytest.mark.parametrize("form", LAST)
def test_computations_of_another_thread(form: str) -> None:
    """The main thread has the same instructions, so that what it calls could be called again."""

    def body(stem: str) -> str:
        return re.sub(r"\b([a-z])\b(?=[ ,)])", rf"\1.{stem}", LAST[form])

    def functions(stem: str, thread: str) -> str:
        return f"""
add.{stem} {{ p = f32[] parameter(0)  q = f32[] parameter(1)  ROOT t = f32[] add(p, q) }}{thread}
narrow.{stem} {{ p = bf16[] parameter(0)  q = bf16[] parameter(1)  ROOT t = bf16[] add(p, q) }}{thread}
less.{stem} {{ p = s32[] parameter(0)  q = s32[] parameter(1)  v = f32[] parameter(2)  w = f32[] parameter(3)
  ROOT t = pred[] compare(p, q), direction=LT }}{thread}
"""

    def called(stem: str) -> str:
        text = body(stem)
        for function in ("add", "narrow", "less"):
            text = text.replace(f"to_apply={function}", f"to_apply={function}.{stem}")
        return text

    other = ', execution_thread="other"'
    check(f"""HloModule m
{functions("m", "")}{functions("o", other)}
work {{ a.o = f32[4] parameter(0)  {called("o")} }}{other}
ENTRY e {{ x = f32[4] parameter(0)
  s = ((f32[4]), f32[4], s32[]) async-start(x), async_execution_thread="other", calls=work
  a.m = f32[4] async-done(s)
  {called("m")} }}
""")


def check(text: str) -> None:
    """Every pass and every pipeline on the module."""
    reference = Reference(text, [np.array([4, 1, 1, 3], np.float32)])
    for pipeline in (*pass_names(), *PLATFORMS):
        failure = reference.judge(pipeline)
        assert failure is None, (pipeline, failure)
