"""What dot shows beyond XLA's own picture: parts of a graph, colours by sharding, hostile names."""

import re
import shutil
import subprocess

import pytest
from support import DATA
from xdsl.dialects.builtin import ModuleOp

from mlirhlo.debug.graph import FORMATS, GraphOptions, render
from mlirhlo.debug.graph.colors import SCHEME_OF_OPCODE
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.table import OPCODES
from mlirhlo.formats.hlo_text import parse_module

MLP = (DATA / "dumps/cpu/module_0000.jit_mlp.cpu_after_optimizations.txt").read_text()
SHARDED = (DATA / "dumps/cpu_sharded/module_0000.jit_prog.before_optimizations.txt").read_text()

CHAIN = """
ENTRY e {
  a = f32[4] parameter(0)
  b = f32[4] negate(a)
  c = f32[4] abs(b)
  d = f32[4] add(b, c)
  e = f32[4] multiply(a, d)
  ROOT f = f32[4] exponential(e)
}
"""


def drawn(dot: str) -> set[str]:
    """Names in bold at the head of nodes."""
    return set(re.findall(r"^\d+ \[label=<<b>(.*?)</b>", dot, re.MULTILINE))


def dot(text: str, **options: object) -> str:
    return render(parse_module(text), "dot", GraphOptions(**options))


def test_same_bytes_twice() -> None:
    assert dot(MLP, label="x") == dot(MLP, label="x")


def test_label_stands_first() -> None:
    text = dot(MLP, label="module_0000.jit_mlp.x")
    assert (
        "label = <<b>module_0000.jit_mlp.x<br/>Computation main.4<br/>ENTRY computation</b>>"
        in text
    )


def test_neighbourhood() -> None:
    assert drawn(dot(CHAIN, center="c", radius=1)) == {"b", "c", "d"}
    assert drawn(dot(CHAIN, center="%C", radius=2)) == {"Parameter 0", "b", "c", "d", "e"}


def test_neighbourhood_is_marked() -> None:
    text = dot(CHAIN, center="c", radius=1)
    assert re.search(r"<b>c</b>.*shape=diamond.*#b71c1c", text), "the center stands out"
    assert re.search(r"<b>b</b>.*filled,dashed", text), "an operand of b is left out"


def test_boundary_stops() -> None:
    text = dot(CHAIN, center="f", radius=9, boundary=("d",))
    assert drawn(text) == {"Parameter 0", "b", "c", "d", "e", "f"}, "there is a way round it"
    assert drawn(dot(CHAIN, center="f", radius=9, boundary=("e",))) == {"e", "f"}


def test_paths() -> None:
    assert drawn(dot(CHAIN, path=("b", "e"))) == {"b", "c", "d", "e"}
    assert drawn(dot(CHAIN, path=("b", "e"), max_nodes=3)) == {"b", "d", "e"}, "shortest ones"
    assert drawn(dot(CHAIN, path=("f", "a"))) == {"f", "Parameter 0"}, "nothing leads back"


def test_fusions_as_boxes() -> None:
    assert "Fused expression" in dot(MLP)
    text = dot(MLP, fusions=False)
    assert "Fused expression" not in text
    assert "<b>reduce_divide_fusion</b><br/>fusion:kLoop" in text
    assert "reduce_divide_fusion" in drawn(text)


def test_colours_by_sharding() -> None:
    text = dot(SHARDED, sharding_color=True)
    fills = re.findall(
        r'<b>(Parameter \d|sharding_constraint\.1)</b>.*?fillcolor="([^"]*)"', text, re.DOTALL
    )
    first, second = (fill for _, fill in fills[:2])
    assert (first, second) == ("#bbdefb", "#bcaaa4"), "blue and brown, in the order of the picture"
    assert "filled,dashed" in text, "instructions without a sharding"


def test_addresses() -> None:
    assert "[0x" not in dot(CHAIN)
    assert "[0x1]" in dot(CHAIN, addresses=True)


def test_computation_by_name() -> None:
    text = render(parse_module(MLP), "dot", computation="fused_computation.3")
    assert (
        "Computation fused_computation.3 (in fusion instruction subtract_exponential_fusion)"
        in text
    )
    assert "exp.0" in drawn(text)


@pytest.mark.parametrize(
    ("options", "code"),
    [({"center": "nope"}, "HLO0541"), ({"path": ("a", "nope")}, "HLO0541")],
)
def test_unknown_names(options: dict[str, object], code: str) -> None:
    with pytest.raises(HloError, match=code):
        dot(CHAIN, **options)


@pytest.mark.parametrize("wanted", ["dot", "html", "json"])
def test_nothing_to_draw(wanted: str) -> None:
    with pytest.raises(HloError, match="HLO0541"):
        render(ModuleOp([]), wanted)


def test_unknown_format() -> None:
    with pytest.raises(HloError, match="HLO0543"):
        render(parse_module(CHAIN), "gif")
    assert "gif" not in FORMATS


def test_colours_know_their_opcodes() -> None:
    assert set(SCHEME_OF_OPCODE) <= set(OPCODES)


HOSTILE = (
    "<script>alert(1)</script>",
    "../../x",
    "\"'`${1}&lt;\\",
    "n" * 100_000,
    "\x1b[31m\x07\u202e",
)


@pytest.mark.skipif(shutil.which("dot") is None, reason="no Graphviz")
def test_hostile_names_are_labels() -> None:
    module = parse_module(CHAIN)
    for op, name in zip(HloModule(module).entry.instructions, HOSTILE, strict=False):
        op.instruction_name = name
    text = render(module, "dot", GraphOptions(label="<b>&\"'"))
    done = subprocess.run(["dot", "-Tplain"], input=text.encode(), capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    assert "<script" not in render(module, "svg")


def test_no_graphviz(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(HloError, match="HLO0540"):
        render(parse_module(CHAIN), "svg")
