"""The viewer in windows of several sizes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Page, needs_browser
from unit.debug.graph.browser_pages import CPU, layers, narrow, search, selected, shown

from mlirhlo.debug.index.folder import read_folder
from mlirhlo.debug.index.report import print_report

pytestmark = [pytest.mark.browser, pytest.mark.slow, needs_browser]

FITS = "return document.documentElement.scrollWidth <= innerWidth"


def test_a_narrow_window_has_all_of_the_page(staged: Page) -> None:
    narrow(staged, 390)
    try:
        assert staged.run(FITS)
        staged.click("#help")
        staged.press("\ue00c")
        search(staged, "exp.0")
        assert selected(staged) == "exp.0"
        assert staged.run("return document.querySelector('#instruction h2').checkVisibility()")
    finally:
        narrow(staged, 0)


def test_a_report_fits_and_its_links_open_what_they_lead_to(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "dump.html"
    path.write_text(print_report(read_folder(str(CPU))))
    page.driver.get(path.as_uri())
    narrow(page, 390)
    try:
        assert page.run(FITS)
        shown = "return document.querySelector('details h3').checkVisibility()"
        assert not page.run(shown)
        page.click("a[href='#m0']")
        page.until(shown)
        assert page.run(FITS)
    finally:
        narrow(page, 0)


SIZES = {"small": (1280, 800), "usual": (1500, 950), "telephone": (390, 844)}

PICTURE = """
const canvas = document.getElementById('canvas').getBoundingClientRect();
const boxes = [...document.querySelectorAll('.place')].map((p) => p.getBoundingClientRect());
const legend = document.getElementById('strip').getBoundingClientRect();
return {
  isWhole: boxes.every((r) => r.left >= canvas.left - 1 && r.right <= canvas.right + 1
    && r.top >= canvas.top - 1 && r.bottom <= canvas.bottom + 1),
  isFree: boxes.every((r) => r.bottom <= legend.top + 1),
  isLegendWhole: [...document.querySelectorAll('#legend span')].map((s) => s.getBoundingClientRect())
    .every((r) => r.left >= legend.left && r.right <= legend.right + 1 && r.bottom <= legend.bottom + 1),
  hasLegend: document.querySelectorAll('#legend span').length > 1,
  scale: Number.parseFloat(document.getElementById('scale').textContent),
  boxes: document.querySelectorAll('.place:not(.stub)').length,
  stubs: document.querySelectorAll('.place.stub').length,
};
"""


def sized(page: Page, name: str) -> None:
    width, height = SIZES[name]
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


@pytest.fixture(params=sorted(SIZES))
def window(page: Page, request: pytest.FixtureRequest) -> Iterator[Page]:
    sized(page, request.param)
    yield page
    narrow(page, 0)


@pytest.mark.parametrize("scoped", [False, True], ids=["plain", "scoped"])
@pytest.mark.parametrize("count", [2, 40])
def test_first_view_fits_and_can_be_read(
    window: Page, tmp_path: Path, count: int, scoped: bool
) -> None:
    found = shown(window, tmp_path, layers(count, scoped=scoped)).run(PICTURE)
    assert found["isWhole"]
    assert found["isFree"], "the legend covers nothing"
    assert found["hasLegend"]
    assert found["isLegendWhole"]
    assert found["scale"] >= 80
    assert window.run(FITS)
    window.press("u", "u")
    found = window.run(PICTURE)
    assert found["isWhole"], "fit is the whole, at any size"
    assert found["stubs"] < found["boxes"]
    window.click("#fold")
    assert window.run(PICTURE)["scale"] >= 80
