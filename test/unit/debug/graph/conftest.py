"""A browser, and pages in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Page, browser
from unit.debug.graph.browser_pages import CPU, STAGES, shown

from mlirhlo.debug.graph import GraphOptions, Stage, render
from mlirhlo.formats.hlo_text import parse_module


@pytest.fixture(scope="module")
def shared_page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def page(shared_page: Page) -> Iterator[Page]:
    shared_page.requests()
    yield shared_page
    assert shared_page.messages() == [], "the console is silent"
    addresses = shared_page.requests()
    assert all(address.startswith("file:") for address in addresses), addresses


@pytest.fixture
def mlp(page: Page, tmp_path: Path) -> Page:
    return shown(page, tmp_path, (CPU / STAGES[-1]).read_text())


@pytest.fixture
def staged(page: Page, tmp_path: Path) -> Page:
    stages = tuple(Stage(name, parse_module((CPU / name).read_text()), name) for name in STAGES)
    path = tmp_path / "page.html"
    path.write_text(render(stages[-1].module, "html", GraphOptions(stages=stages)))
    page.open(path)
    return page
