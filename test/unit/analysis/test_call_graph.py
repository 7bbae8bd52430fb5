"""The call graph: callers, callees, contexts, post-order, cycles."""

from __future__ import annotations

from mlirhlo.analysis.call_graph import Context, call_graph
from mlirhlo.dialects.hlo.attributes.base import symbol
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.formats.hlo_text import parse_module

TEXT = """
add { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT s = f32[] add(x, y) }
double { x = f32[] parameter(0)  ROOT d = f32[] call(x, x), to_apply=add }
fused { p = f32[4] parameter(0)  z = f32[] constant(0)
  ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=add }
unused { x = f32[] parameter(0)  ROOT d = f32[] call(x), to_apply=double }
ENTRY main {
  p = f32[4] parameter(0)
  f = f32[] fusion(p), kind=kInput, calls=fused
  ROOT d = f32[] call(f), to_apply=double
}
"""


def test_callers_and_callees() -> None:
    graph = call_graph(parse_module(TEXT))
    assert graph.callees("main") == ("fused", "double")
    assert graph.callers("double") == ("unused", "main")
    assert graph.callees("add") == ()
    assert graph.roots() == ("unused", "main")
    (site,) = graph.sites_in["fused"]
    assert (site.key, site.callee, site.instruction.instruction_name) == ("to_apply", "add", "r")


def test_contexts() -> None:
    graph = call_graph(parse_module(TEXT))
    assert graph.context("main") is Context.NONE
    assert graph.context("double") is Context.SEQUENTIAL
    assert graph.context("fused") is Context.EMBEDDED
    assert graph.context("add") is Context.BOTH
    assert graph.embedded() == {"fused", "add"}


def test_post_order_has_callees_first() -> None:
    graph = call_graph(parse_module(TEXT))
    names = [c.computation_name for c in graph.post_order()]
    assert names == ["add", "double", "unused", "fused", "main"]
    assert graph.cycle() is None


def test_cycle() -> None:
    module = parse_module(TEXT)
    double = HloModule(module).by_name()["double"]
    double.root.properties["to_apply"] = symbol("unused")
    graph = call_graph(module)
    assert graph.cycle() == ("double", "unused", "double")
    assert len(graph.post_order()) == 5


def test_long_chain_needs_no_stack() -> None:
    lines = ["call0 { x = f32[] parameter(0)  ROOT r = f32[] negate(x) }"]
    for i in range(1, 3000):
        lines.append(
            f"call{i} {{ x = f32[] parameter(0)  ROOT r = f32[] call(x), to_apply=call{i - 1} }}"
        )
    lines.append("ENTRY e { x = f32[] parameter(0)  ROOT r = f32[] call(x), to_apply=call2999 }")
    order = call_graph(parse_module("\n".join(lines))).post_order()
    assert [c.computation_name for c in order][-2:] == ["call2999", "e"]
