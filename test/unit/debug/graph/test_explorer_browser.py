"""Model Explorer itself opens the JSON: its server and its page, as a user starts them."""

import importlib.util
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import browser, needs_browser
from support import BIN, DATA, environment

from mlirhlo.debug.graph import render
from mlirhlo.formats.hlo_text import parse_module

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    needs_browser,
    pytest.mark.skipif(
        importlib.util.find_spec("model_explorer") is None, reason="no ai-edge-model-explorer"
    ),
]


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """The server's address for a file of ours; the server ends with the test."""
    text = (DATA / "dumps/cpu/module_0000.jit_mlp.cpu_after_optimizations.txt").read_text()
    path = tmp_path / "mlp.json"
    path.write_text(render(parse_module(text), "json"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [BIN / "model-explorer", "--no_open_in_browser", "--port", str(port), path]
    log = tmp_path / "log"
    with log.open("w") as out:
        server = subprocess.Popen(
            command, stdout=out, stderr=out, env=environment(PYTHONUNBUFFERED="1")
        )
    try:
        end = time.monotonic() + 60
        while "http://localhost" not in log.read_text() and time.monotonic() < end:
            assert server.poll() is None, log.read_text()
            time.sleep(0.2)
        yield next(word for word in log.read_text().split() if word.startswith("http://localhost"))
    finally:
        server.terminate()
        server.wait(20)


def test_model_explorer_shows_our_graphs(address: str, tmp_path: Path) -> None:
    with browser(tmp_path / "profile") as page:
        page.driver.get(address)
        # It starts with the largest graph, not with the first one.
        page.until("return document.body.innerText.includes('fused_computation.3')")
        shown = page.run("return document.body.innerText")
        assert "jit_mlp" in shown
        assert re.search(r"op node count\s*11\b", shown)
