"""Pages that tests open in a browser."""

from pathlib import Path

from browser import Page
from support import DATA

from mlirhlo.debug.graph import GraphOptions, render
from mlirhlo.formats.hlo_text import parse_module

CPU = DATA / "dumps/cpu"
STAGES = (
    "module_0000.jit_mlp.before_optimizations.txt",
    "module_0000.jit_mlp.0000.HLO_passes_after_layout_assignment.after_reshape-decomposer.before_fusion.txt",
    "module_0000.jit_mlp.0001.HLO_passes_after_layout_assignment.after_fusion.before_fusion-wrapper.txt",
    "module_0000.jit_mlp.cpu_after_optimizations.txt",
)


def shown(page: Page, folder: Path, text: str, **options: object) -> Page:
    path = folder / "page.html"
    path.write_text(render(parse_module(text), "html", GraphOptions(**options)))
    page.open(path)
    return page


def narrow(page: Page, width: int) -> None:
    """A window as wide as a telephone's; 0 for the usual one."""
    name = "setDeviceMetricsOverride" if width else "clearDeviceMetricsOverride"
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False} if width else {}
    page.driver.execute_cdp_cmd(f"Emulation.{name}", size)


def layers(count: int, *, scoped: bool) -> str:
    """A network with softmax in every layer, without metadata or with scopes."""
    lines = ["HloModule net", "", "sum {", "  a = f32[] parameter(0)", "  b = f32[] parameter(1)"]
    lines += [
        "  ROOT c = f32[] add(a, b)",
        "}",
        "",
        "ENTRY main {",
        "  x.0 = f32[8,8] parameter(0)",
        "  zero = f32[] constant(0)",
    ]
    at, last = (', metadata={{op_name="jit(f)/layer_{}/op"}}' if scoped else ""), "x.0"
    for n in range(count):
        where = at.format(n)
        lines += [
            f"  w.{n} = f32[8,8] parameter({n + 1})",
            f"  d.{n} = f32[8,8] dot({last}, w.{n}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}{where}",
            f"  e.{n} = f32[8,8] exponential(d.{n}){where}",
            f"  s.{n} = f32[8] reduce(e.{n}, zero), dimensions={{1}}, to_apply=sum{where}",
            f"  b.{n} = f32[8,8] broadcast(s.{n}), dimensions={{0}}{where}",
            f"  q.{n} = f32[8,8] divide(e.{n}, b.{n}){where}",
            f"  t.{n} = f32[8,8] tanh(q.{n}){where}",
            f"  r.{n} = f32[8,8] add(t.{n}, {last}){where}",
        ]
        last = f"r.{n}"
    return "\n".join([*lines, f"  ROOT out = f32[8,8] negate({last})", "}"])


def search(page: Page, query: str) -> None:
    page.press("/")
    page.run("document.getElementById('query').value = ''")
    page.press(query, "\ue007")


def selected(page: Page) -> str:
    return page.text("#instruction h2")
