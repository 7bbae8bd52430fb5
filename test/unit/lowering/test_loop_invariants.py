"""What a loop computes every round anew is computed once where that takes long, whatever stands beside it."""

from __future__ import annotations

import numpy as np
import pytest

import mlirhlo
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.lowering.cpu.pipeline import optimize

pytest.importorskip("llvmlite")

COSTLY = """  k = s32[100000] iota(), iota_dimension=0
  m = s32[100000] multiply(k, k)
  zero = s32[] constant(0)
  costly = s32[] reduce(m, zero), dimensions={0}, to_apply=add
  y = s32[] add(costly, s)
  ROOT n = s32[] add(x, y)
"""

CALL = "  n = s32[] call(s, e), to_apply=step"
FUSION = "  n = s32[] fusion(s, e), kind=kInput, calls=step"

MODULE = """HloModule m
add {{ a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT c = s32[] add(a, b) }}
step {{
  s = s32[] parameter(0)
  x = s32[] parameter(1)
{costly}}}
body {{
  t = (s32[], s32[], s32[64]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  s = s32[] get-tuple-element(t), index=1
  table = s32[64] get-tuple-element(t), index=2
  d = s32[1] dynamic-slice(table, i), dynamic_slice_sizes={{1}}
  e = s32[] reshape(d)
{work}
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT o = (s32[], s32[], s32[64]) tuple(j, n, table)
}}
cond {{
  t = (s32[], s32[], s32[64]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  end = s32[] constant(64)
  ROOT p = pred[] compare(i, end), direction=LT
}}
outer {{
  t = (s32[], s32[], s32[64]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  s = s32[] get-tuple-element(t), index=1
  table = s32[64] get-tuple-element(t), index=2
  z = s32[] constant(0)
  q = (s32[], s32[], s32[64]) tuple(z, s, table)
  w = (s32[], s32[], s32[64]) while(q), condition=cond, body=body
  n = s32[] get-tuple-element(w), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT o = (s32[], s32[], s32[64]) tuple(j, n, table)
}}
ENTRY main {{
  zero = s32[] constant(0)
  table = s32[64] parameter(0)
  t = (s32[], s32[], s32[64]) tuple(zero, zero, table)
  w = (s32[], s32[], s32[64]) while(t), condition=cond, body={body}
  ROOT r = s32[] get-tuple-element(w), index=1
}}
"""


def callers(text: str, opcode: str) -> set[str]:
    """Computations that run an instruction, in fusions too."""
    module = HloModule(optimize(mlirhlo.parse(text).op))
    holding = {op.parent_op() for op in module.instructions if op.opcode.name == opcode}
    names = {c.computation_name for c in module.computations if c in holding}
    while True:
        more = {
            c.computation_name
            for c in module.computations
            for op in c.instructions
            if op.opcode.name == "fusion" and names & set(op.called_computations)
        }
        if more <= names:
            return names
        names |= more


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("body", ["body", "outer"])
@pytest.mark.parametrize("work", [CALL, FUSION])
def test_a_costly_reduce_leaves_all_loops(work: str, body: str) -> None:
    text = MODULE.format(costly=COSTLY, work=work, body=body)
    assert not callers(text, "reduce") & {"body", "outer"}
    module = mlirhlo.parse(text)
    table = np.arange(64, dtype=np.int32)
    assert mlirhlo.compile(module)(table) == module(table)


def test_what_is_read_slower_than_computed_stays() -> None:
    cheap = COSTLY.replace("100000", "10")
    assert callers(MODULE.format(costly=cheap, work=CALL, body="body"), "reduce") & {"body"}
