"""The documentation as a site: it builds without a warning, needs no network, and search finds an error code."""

import functools
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from browser import browser, needs_browser
from support import ROOT

pytest.importorskip("mkdocs", reason="the site needs pip install -e '.[docs]'")
pytestmark = [pytest.mark.browser, pytest.mark.slow]

LOADED = re.compile(
    r"""<(?:script|img|link rel=["']?stylesheet)[^>]*?(?:src|href)=["']?((?:https?:)?//[^"'\s>]+)"""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; `strict` makes every warning an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr[-3000:]
    return folder


def test_a_page_for_every_code_and_command(site: Path) -> None:
    codes = {path.stem for path in (ROOT / "mlirhlo" / "explain").glob("HLO*.md")}
    assert codes <= {path.stem for path in (site / "errors").glob("*.html")}
    help_page = (site / "commands" / "hlo-opt.html").read_text()
    assert "--list-passes" in help_page
    assert (site / "tutorials" / "write-a-pass.html").exists()
    assert "register_custom_call" in (site / "api" / "mlirhlo.html").read_text()


def test_nothing_comes_from_another_host(site: Path) -> None:
    assert LOADED.search('<script src="https://a.b/c.js"></script>')  # the pattern can find one
    foreign = {
        page.name: LOADED.findall(page.read_text())
        for page in site.rglob("*.html")
        if LOADED.search(page.read_text())
    }
    assert not foreign


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    """Where the site is served: search needs a server."""
    handler = functools.partial(_Quiet, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@needs_browser
def test_search_finds_an_error_code(address: str, tmp_path: Path) -> None:
    with browser(tmp_path) as page:
        page.driver.get(f"{address}/index.html?q=HLO0731")
        found = page.until("return document.querySelector('.md-search-result__item a')?.href")
        assert "HLO0731" in found
        assert not page.messages()
        other = (f"{address}/", "data:", "blob:", "chrome:")
        assert [url for url in page.requests() if not url.startswith(other)] == []
        page.screenshot(tmp_path / "search.png")
