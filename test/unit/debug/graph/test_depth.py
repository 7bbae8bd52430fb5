"""Deep and wide modules through the printers of graphs and the report: linear time, no recursion."""

from pathlib import Path

import pytest
from support import calls_of

from mlirhlo.debug.graph import render
from mlirhlo.debug.index import read_folder
from mlirhlo.debug.index.report import print_report
from mlirhlo.formats.hlo_text import parse_module

MANY = 3000
"""Deeper than Python recurses; three times as deep is compared."""


def chain(count: int) -> str:
    lines = [f"  n.{i} = f32[4] negate({f'n.{i - 1}' if i else 'x'})" for i in range(count)]
    return "\n".join(
        [
            "HloModule m",
            "",
            "ENTRY e {",
            "  x = f32[4] parameter(0)",
            *lines,
            f"  ROOT r = f32[4] abs(n.{count - 1})",
            "}",
        ]
    )


def nest(count: int) -> str:
    """Calls, each the only one of the next."""
    parts = ["HloModule m", "", "c.0 {", "  ROOT p.0 = f32[4] parameter(0)", "}", ""]
    for i in range(1, count):
        parts += [
            f"c.{i} {{",
            f"  p.{i} = f32[4] parameter(0)",
            f"  ROOT k.{i} = f32[4] call(p.{i}), to_apply=c.{i - 1}",
            "}",
            "",
        ]
    return "\n".join(
        [
            *parts,
            "ENTRY e {",
            "  x = f32[4] parameter(0)",
            f"  ROOT r = f32[4] call(x), to_apply=c.{count - 1}",
            "}",
        ]
    )


def loops(count: int) -> str:
    """Loops in loops."""
    parts = ["HloModule m", "", "b.0 {", "  ROOT s.0 = (s32[]) parameter(0)", "}", ""]
    for i in range(1, count):
        parts += [
            f"c.{i} {{",
            f"  q.{i} = (s32[]) parameter(0)",
            f"  ROOT t.{i} = pred[] constant(false)",
            "}",
            "",
        ]
        parts += [f"b.{i} {{", f"  s.{i} = (s32[]) parameter(0)"]
        parts += [f"  ROOT w.{i} = (s32[]) while(s.{i}), condition=c.{i}, body=b.{i - 1}", "}", ""]
    return "\n".join(
        [
            *parts,
            "ENTRY e {",
            "  x = (s32[]) parameter(0)",
            f"  ROOT r = (s32[]) call(x), to_apply=b.{count - 1}",
            "}",
        ]
    )


def computations(count: int) -> str:
    """A reduction with a function of its own for each element of a wide result."""
    parts = ["HloModule m", ""]
    for i in range(count):
        parts += [
            f"f.{i} {{",
            f"  a.{i} = f32[] parameter(0)",
            f"  b.{i} = f32[] parameter(1)",
            f"  ROOT c.{i} = f32[] add(a.{i}, b.{i})",
            "}",
            "",
        ]
    parts += ["ENTRY e {", "  x = f32[4] parameter(0)", "  z = f32[] constant(0)"]
    parts += [
        f"  d.{i} = f32[] reduce(x, z), dimensions={{0}}, to_apply=f.{i}" for i in range(count)
    ]
    shape = ", ".join(["f32[]"] * count)
    return "\n".join(
        [*parts, f"  ROOT t = ({shape}) tuple({', '.join(f'd.{i}' for i in range(count))})", "}"]
    )


SHAPES = {"chain": chain, "nest": nest, "loops": loops, "computations": computations}


@pytest.mark.one_case_in(2)
@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_pages_and_dots_of_any_depth(shape: str) -> None:
    calls: dict[str, list[int]] = {"html": [], "dot": []}
    for count in (MANY // 3, MANY):
        module = parse_module(SHAPES[shape](count))
        for kind, counts in calls.items():
            counts.append(calls_of(lambda kind=kind, module=module: render(module, kind)))
    for kind, (small, large) in calls.items():
        assert large < 3.3 * small, (kind, small, large)


@pytest.mark.one_case_in(2)
@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_reports_of_any_depth(shape: str, tmp_path: Path) -> None:
    text = SHAPES[shape](MANY)
    (tmp_path / "module_0000.m.before_optimizations.txt").write_text(text)
    (tmp_path / "module_0000.m.0001.p.after_q.before_r.txt").write_text(
        text.replace(".7 = f32", ".7 = f64")
    )
    assert "module_0000.m" in print_report(read_folder(str(tmp_path)))
