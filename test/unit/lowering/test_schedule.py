"""The order of instructions: the one that needs least memory, unless it is given."""

from __future__ import annotations

import mlirhlo
from mlirhlo.analysis.effects import SideEffects
from mlirhlo.lowering.cpu.planner import plan_module
from mlirhlo.lowering.plan.schedule import in_order

WIDE = """HloModule wide{header}
sum {{
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q)
}}
ENTRY e {{
  x = f32[1000] parameter(0)
  a = f32[1000] sine(x)
  b = f32[1000] cosine(x)
  c = f32[1000] tan(x)
  d = f32[1000] tanh(x)
  zero = f32[] constant(0)
  ra = f32[] reduce(a, zero), dimensions={{0}}, to_apply=sum
  rb = f32[] reduce(b, zero), dimensions={{0}}, to_apply=sum
  rc = f32[] reduce(c, zero), dimensions={{0}}, to_apply=sum
  rd = f32[] reduce(d, zero), dimensions={{0}}, to_apply=sum
  ROOT t = (f32[], f32[], f32[], f32[]) tuple(ra, rb, rc, rd)
}}
"""


def names(header: str = "") -> list[str]:
    module = mlirhlo.parse(WIDE.format(header=header)).hlo
    order = in_order(module.entry, is_scheduled=module.is_scheduled, effects=SideEffects.of(module))
    return [op.instruction_name or "" for op in order]


def test_values_are_read_soon() -> None:
    found = names()
    assert found.index("ra") < found.index("b")
    plan = plan_module(mlirhlo.parse(WIDE.format(header="")).op)
    assert plan.arena_size <= 4096 + 4 * 64


def test_a_scheduled_module_keeps_its_order() -> None:
    assert names(", is_scheduled=true") == [
        *("x", "a", "b", "c", "d", "zero", "ra", "rb", "rc", "rd", "t")
    ]
