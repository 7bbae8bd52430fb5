"""The page in a browser: what clicks and keys do, no console message, no request, hostile names."""

from pathlib import Path

import pytest
from browser import Page, browser, needs_browser
from program_shapes.networks import flat_module, layered_module
from support import CORPUS, needs_shared
from unit.debug.graph.browser_pages import STAGES, layers, narrow, search, selected, shown

from mlirhlo.debug.graph import GraphOptions, Stage, render
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.formats import load
from mlirhlo.formats.hlo_text import parse_module

pytestmark = [pytest.mark.browser, pytest.mark.slow, needs_browser]


def test_first_view_is_the_entry(mlp: Page) -> None:
    assert "0: x.1" in mlp.names()
    assert "reduce_divide_fusion" in mlp.names()
    assert mlp.count(".edge") == 9
    inside = mlp.run(
        "const c = document.getElementById('canvas').getBoundingClientRect();"
        "return [...document.querySelectorAll('.place')].every((p) => { const r = p.getBoundingClientRect();"
        "return r.left >= c.left && r.right <= c.right && r.top >= c.top && r.bottom <= c.bottom; })"
    )
    assert inside, "the picture is fitted to the window"


def test_fusions_unfold_and_fold(mlp: Page) -> None:
    count = len(mlp.names())
    mlp.click('[data-key$="/reduce_divide_fusion"] .handle')
    assert {"reduce_sum.0", "divide.1"} <= set(mlp.names())
    mlp.click('[data-key$="/reduce_divide_fusion"] .handle')
    assert len(mlp.names()) == count
    mlp.click("#unfold")
    assert mlp.count(".place.open") == 5
    mlp.click("#fold")
    assert mlp.count(".place.open") == 0


def test_panel_says_what_is_known(mlp: Page) -> None:
    search(mlp, "dot_general")
    assert selected(mlp) == "dot_general.0"
    panel = mlp.text("#instruction")
    for fact in (
        "f32[4,16]",
        "{1,0}",
        "256 B",
        "1.0 k",
        "sample_mlp.py:13",
        "param_0",
        "fused_computation",
    ):
        assert fact in panel, fact
    assert "dot_general.0" in mlp.names(), "the fusion around it was unfolded"


@pytest.mark.parametrize(
    ("query", "found"),
    [("op:exponential", "exp.0"), ("sample_mlp.py:13 maximum", "max."), ("%divide.1", "divide.1")],
)
def test_search(mlp: Page, query: str, found: str) -> None:
    search(mlp, query)
    assert selected(mlp).startswith(found)


def test_search_without_a_hit(mlp: Page) -> None:
    search(mlp, "nothing-of-the-kind")
    assert mlp.text("#hits") == "nothing found"
    mlp.press("\ue00c")
    assert mlp.run("return document.getElementById('hits').hidden")


def test_neighbourhood(mlp: Page) -> None:
    search(mlp, "%ynn_fusion")
    mlp.press("n")
    assert mlp.text("#focus").startswith("Neighbourhood of ynn_fusion, 2 hops")
    mlp.press("-")
    assert set(mlp.names()) == {
        "0: x.1",
        "ynn_fusion",
        "maximum_reduce_fusion",
        "subtract_exponential_fusion",
    }
    assert mlp.count(".cut") == 2, "what has more around it is dashed"
    mlp.press("\ue00c")
    assert mlp.run("return document.getElementById('focus').hidden")
    assert "reduce_divide_fusion" in mlp.names()


def test_paths_between_two(mlp: Page) -> None:
    search(mlp, "%b.1")
    mlp.press("p")
    search(mlp, "%subtract_exponential_fusion")
    mlp.press("p")
    assert set(mlp.names()) == {"1: b.1", "maximum_reduce_fusion", "subtract_exponential_fusion"}


def test_paths_out_of_a_fusion(mlp: Page) -> None:
    search(mlp, "%dot_general.0")
    mlp.press("p")
    search(mlp, "%reduce_divide_fusion")
    mlp.press("p")
    assert set(mlp.names()) == {
        "ynn_fusion", "maximum_reduce_fusion", "subtract_exponential_fusion", "reduce_divide_fusion",
    }  # fmt: skip


def test_arrows_follow_operands_and_users(mlp: Page) -> None:
    search(mlp, "%reduce_divide_fusion")
    mlp.press("\ue013")
    assert selected(mlp) == "subtract_exponential_fusion"
    mlp.press("\ue015", "\ue015")
    assert selected(mlp) == "broadcast_multiply_fusion"
    mlp.press("\ue007")
    assert "multiply.1" in mlp.names(), "Enter unfolds"


def test_colours(mlp: Page) -> None:
    assert mlp.count(".category-gray") > 0
    mlp.press("3")
    assert mlp.count(".place[class*='heat-']") == len(mlp.names())
    assert mlp.run("return document.getElementById('coloring').value") == "cost"
    mlp.press("2")
    assert "no instruction has a sharding" in mlp.text("#legend")


def test_constants_are_shown_on_demand(mlp: Page) -> None:
    assert "constant.9" not in mlp.names()
    mlp.press("c")
    assert "constant.9" in mlp.names()


def test_text_is_linked(mlp: Page) -> None:
    search(mlp, "%x.1")
    mlp.press("t")
    assert mlp.text(".line.selected").startswith("%x.1 = f32[4,8]{1,0} parameter(0)")
    mlp.click(".line:last-child")
    assert selected(mlp) == "broadcast_multiply_fusion"


def test_slider_marks_what_a_pass_did(staged: Page) -> None:
    assert staged.text("#stage").startswith("4 / 4")
    staged.press("[")
    assert staged.text("#stage").startswith("3 / 4")
    assert staged.count(".place.added") > 0
    assert staged.count(".place.removed") == 0, "what went into fusions is moved, not removed"
    staged.click("#tab-changes")
    assert "reduce_divide_fusion" in staged.text("#changes")
    staged.click("#unfold")
    assert staged.count(".place.moved") > 0
    staged.click("#before")
    assert staged.count(".place.removed") > 0
    for status in ("added", "moved", "removed"):
        for number in range(0, staged.count(f".changes-{status} .link"), 4):
            staged.click(f".changes-{status} .link", number)
            assert status in staged.text("#instruction .badge")
    staged.press("g")
    assert staged.count(".place.removed") == 0
    staged.click("#before")
    assert staged.text("#stage").startswith("1 / 4")
    assert "first stage" in staged.text("#changes")
    staged.click("#tab-instruction")
    staged.press("\ue00c")
    assert (
        staged.run("return document.querySelector('#instruction a').getAttribute('href')")
        == f"./{STAGES[0]}"
    )


def test_open_groups_stay_open_over_stages(staged: Page) -> None:
    staged.press("[")
    staged.click('[data-key$="/reduce_divide_fusion"] .handle')
    assert "divide.1" in staged.names()
    staged.press("]")
    assert "divide.1" in staged.names()


def test_light_and_dark(mlp: Page, tmp_path: Path) -> None:
    colour = "return getComputedStyle(document.body).backgroundColor"
    light = mlp.run(colour)
    mlp.click("#theme")
    assert mlp.run(colour) != light
    with browser(tmp_path / "dark", dark=True) as dark:
        dark.open(tmp_path / "page.html")
        assert dark.run(colour) != light


def test_help_names_the_keys(mlp: Page) -> None:
    mlp.press("?")
    assert "neighbourhood of N hops" in mlp.text("#keys")
    mlp.press("\ue00c")


@pytest.mark.parametrize(
    "text", [layered_module(200), flat_module(12_000)], ids=["layered", "flat"]
)
def test_ten_thousand_instructions(page: Page, tmp_path: Path, text: str) -> None:
    shown(page, tmp_path, text)
    assert page.run(
        "return document.querySelectorAll('#computations option')[0].textContent"
    ).endswith(")")
    assert 1 < len(page.names()) < 130, "folded so that one picture can be taken in"
    name = "multiply" if "multiply.7" in text else "mlp.150.a7"
    search(page, f"name:{name}")
    assert selected(page).startswith(name)
    assert page.run("return document.querySelector('.selected') !== null")
    page.press("n")
    assert 2 < len(page.names()) < 400
    page.press("\ue00c")
    page.click("#unfold")
    assert len(page.names()) < 900, "unfolding stops before it is too much"


@needs_shared
@pytest.mark.parametrize("name", ["big_resnet101", "big_gpt24"])
def test_a_large_module_of_the_corpus(page: Page, tmp_path: Path, name: str) -> None:
    """12,634 and 15,085 instructions: folded first, every one found, its surroundings drawn."""
    module = load(str(CORPUS / f"programs/{name}/{name}.hlo.gz")).module
    path = tmp_path / "page.html"
    path.write_text(render(module, "html"))
    page.open(path)
    assert 1 < len(page.names()) < 130
    last = [op for op in HloModule(module).entry.instructions if op.opcode.name == "add"][-1]
    assert last.instruction_name is not None
    search(page, f"name:{last.instruction_name}")
    assert selected(page).startswith(last.instruction_name.split(".")[0])
    page.press("n")
    assert 2 < len(page.names()) < 900


def test_hostile_names_are_text(page: Page, tmp_path: Path) -> None:
    names = (
        "<script>document.title = 'owned'</script>",
        "../../x",
        "\"'`${1}&lt;</script><img src=x onerror=document.title='owned'>",
        "n" * 100_000,
        "\u202eabc\x07\x1b[31m",
    )
    module = parse_module(
        """ENTRY e {
          a = f32[2] parameter(0)
          b = f32[2] add(a, a), metadata={op_name="</svg><script>document.title='owned'</script>/x"}
          c = f32[2] multiply(b, a)
          d = f32[2] negate(c)
          ROOT t = (f32[2]) tuple(d) }"""
    )
    for op, name in zip(HloModule(module).entry.instructions, names, strict=True):
        op.instruction_name = name
    path = tmp_path / "hostile.html"
    path.write_text(
        render(
            module, "html", GraphOptions(label="</title><script>document.title='owned'</script>")
        )
    )
    page.open(path)
    shown_names = page.names()
    assert shown_names[0].startswith("0: <script>document")
    assert "../../x" in shown_names
    assert all(len(name) < 60 for name in shown_names)
    for number in range(len(names)):
        page.click(".leaf", number)
        page.press("t", "i")
    search(page, "script")
    assert page.run("return document.querySelectorAll('img, iframe, object').length") == 0
    assert page.run("return document.scripts.length") == 2
    assert page.run("return document.title").startswith("</title><script>")
    assert "\u202e" not in page.run("return document.body.innerText")


def test_renamed_instructions(page: Page, tmp_path: Path) -> None:
    before = """HloModule m

ENTRY e {
  x = f32[4] parameter(0)
  a = f32[4] negate(x)
  b = f32[4] exponential(a)
  c = f32[4] add(x, x)
  ROOT d = f32[4] multiply(b, c)
}
"""
    after = before.replace("a = f32[4] negate(x)", "neg.1 = f32[4] negate(x)")
    after = after.replace("b = f32[4] exponential(a)", "exp.1 = f32[4] exponential(neg.1)")
    after = after.replace("add(x, x)", "subtract(x, x)").replace("(b, c)", "(exp.1, c)")
    stages = (Stage("first", parse_module(before), ""), Stage("second", parse_module(after), ""))
    path = tmp_path / "page.html"
    path.write_text(render(stages[-1].module, "html", GraphOptions(stages=stages)))
    page.open(path)
    assert page.count(".place.renamed") == 2, "and what reads them is the same"
    assert page.count(".place.changed") == 1
    assert page.count(".place.added") == page.count(".place.removed") == 0
    search(page, "exp.1")
    assert "renamed by this pass" in page.text("#instruction")
    assert "%b = " in page.text("#instruction pre.earlier")


def test_colours_by_buffer(mlp: Page) -> None:
    mlp.press("6")
    fills = (
        "return [...document.querySelectorAll('.place.leaf')]"
        ".map((p) => p.getAttribute('class').match(/sharding-\\d+|dashed/)?.[0])"
    )
    colours = mlp.run(fills)
    assert len(set(colours)) > 3, colours
    assert "parameter" in mlp.text("#legend")
    search(mlp, "reduce_divide_fusion")
    assert "allocation" in mlp.text("#instruction")


def test_groups_say_what_they_compute(page: Page, tmp_path: Path) -> None:
    shown(page, tmp_path, layers(40, scoped=False))
    titles = [name for name in page.names() if name != "parameters"]
    assert len(titles) > 2
    groups = [name for name in titles if name != "out"]
    assert all("dot" in name and "softmax" in name and "tanh" in name for name in groups), groups
    edges = page.run(
        "return [...document.querySelectorAll('.edge title')].map((t) => t.textContent)"
    )
    assert edges, "what follows is connected"
    page.click(".place.flow .handle")
    assert page.count(".place.open") == 1
    assert any(name.startswith("d.") or "dot" in name for name in page.names())


def test_scopes_come_before_dataflow(page: Page, tmp_path: Path) -> None:
    shown(page, tmp_path, layers(40, scoped=True))
    assert any(name.startswith("layer_0") for name in page.names())


def test_zoom_buttons(mlp: Page) -> None:
    scale = "return Number.parseFloat(document.getElementById('scale').textContent)"
    fitted = mlp.run(scale)
    mlp.click("#zoom-in")
    assert mlp.run(scale) > fitted
    mlp.click("#zoom-out")
    mlp.click("#zoom-out")
    assert mlp.run(scale) < fitted
    mlp.click("#fit")
    assert mlp.run(scale) == fitted


def test_two_fingers_zoom(mlp: Page) -> None:
    touch = "Input.dispatchTouchEvent"

    def fingers(kind: str, *xs: int) -> None:
        points = [{"x": x, "y": 300, "id": number} for number, x in enumerate(xs)]
        mlp.driver.execute_cdp_cmd(touch, {"type": kind, "touchPoints": points})

    scale = "return Number.parseFloat(document.getElementById('scale').textContent)"
    mlp.driver.execute_cdp_cmd(
        "Emulation.setTouchEmulationEnabled", {"enabled": True, "maxTouchPoints": 2}
    )
    try:
        before = mlp.run(scale)
        fingers("touchStart", 400, 500)
        for step in range(1, 6):
            fingers("touchMove", 400 - 10 * step, 500 + 10 * step)
        fingers("touchEnd")
        assert mlp.run(scale) == pytest.approx(2 * before, rel=0.1)
    finally:
        mlp.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})


def test_passes_are_listed_with_what_they_changed(staged: Page) -> None:
    assert staged.count("#passes button") == 4
    rows = staged.run(
        "return [...document.querySelectorAll('#passes button')].map((b) => b.textContent)"
    )
    assert "fusion" in rows[2]
    assert "+18" in rows[2]
    assert ">14" in rows[2]
    staged.click("#passes button", 1)
    assert staged.text("#stage").startswith("2 / 4")
    assert (
        staged.run(
            "return document.querySelector('#passes [aria-current=true] .number').textContent"
        )
        == "2"
    )
    narrow(staged, 390)
    try:
        assert staged.run(
            "return document.querySelector('#passes [aria-current=true]').checkVisibility()"
        )
    finally:
        narrow(staged, 0)


def test_the_address_says_what_is_shown(staged: Page) -> None:
    address = "return location.hash"
    staged.press("[")
    assert staged.run(address) == "#stage=3"
    search(staged, "%divide.1")
    assert staged.run(address) == "#stage=3&select=divide.1"
    here = staged.driver.current_url
    staged.driver.get("about:blank")
    staged.driver.get(here)
    staged.until("return document.documentElement.dataset.ready")
    assert staged.text("#stage").startswith("3 / 4")
    assert selected(staged) == "divide.1"
    staged.run("location.hash = '#stage=1'")
    staged.until("return document.getElementById('stage').textContent.startsWith('1 / 4')")
    staged.run("location.hash = '#exp.0'")
    staged.until("return document.getElementById('stage').textContent.startsWith('4 / 4')")
    assert selected(staged) == "exp.0"
    for odd in ("#%", "#stage=99", "#stage=-3&select=%25", "#stage=x&computation=nothing"):
        staged.run("location.hash = arguments[0]", odd)
        assert staged.count(".place") > 0


def test_unknown_operations_are_said(page: Page, tmp_path: Path) -> None:
    text = """HloModule m

ENTRY e {
  x = f32[4] parameter(0)
  ROOT c = f32[4] custom-call(x), custom_call_target="mine"
}
"""
    shown(page, tmp_path, text)
    assert "unknown of 1 custom call" in page.text("#instruction")
    search(page, "op:custom-call")
    assert "unknown of 1 custom call" in page.text("#instruction")
    page.press("3")
    assert "unknown" in page.text("#legend")


def test_titles_leave_the_sign_free(mlp: Page) -> None:
    assert mlp.run(
        "const side = (p, part) => p.querySelector(part).getBoundingClientRect();"
        "return [...document.querySelectorAll('.place.leaf')].filter((p) => p.querySelector('.handle'))"
        ".every((p) => side(p, 'text').right < side(p, '.handle').left)"
    )
    assert mlp.run(
        "return document.getElementById('title').scrollWidth <= document.getElementById('title').clientWidth"
    )
