#!/usr/bin/env python3
"""Takes the pictures of docs/viewer.md anew, and prints how long large modules take to open.

    tools/viewer_pictures.py [--times]

Needs what the browser tests need: chromium, chromedriver and selenium.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "test")]

from browser import Page, browser  # noqa: E402
from program_shapes.networks import flat_module, layered_module  # noqa: E402
from support import CORPUS  # noqa: E402
from xdsl.dialects.builtin import ModuleOp  # noqa: E402

from mlirhlo.debug.graph import GraphOptions, render  # noqa: E402
from mlirhlo.debug.graph.recorded import dumped_stages  # noqa: E402
from mlirhlo.debug.index import read_folder  # noqa: E402
from mlirhlo.formats import load  # noqa: E402
from mlirhlo.formats.hlo_text import parse_module  # noqa: E402

DATA = ROOT / "test/data"
PICTURES = ROOT / "docs/viewer"
SIZE = (1240, 760)
LARGEST = 2_000_000
"""Bytes of the corpus files that are opened, as they lie there, compressed."""


def written(folder: Path, html: str) -> Path:
    """The page as a file."""
    path = folder / "page.html"
    path.write_text(html, encoding="utf-8")
    return path


def search(page: Page, query: str) -> None:
    """Types into the search box and takes the first hit."""
    page.press("/", query, "\ue007")


def passes(page: Page, folder: Path) -> None:
    """What fusion did to a perceptron."""
    stages, _ = dumped_stages(read_folder(str(DATA / "dumps/cpu")).find(""))
    options = GraphOptions(label="module_0000.jit_mlp", stages=stages)
    page.open(written(folder, render(stages[-1].module, "html", options)))
    page.press("[")
    search(page, "%reduce_divide_fusion")
    page.press("\ue007")
    page.click("#tab-changes")
    page.press("f")


def large(page: Page, folder: Path) -> None:
    """A module of 10,000 instructions, folded by the scopes of its op_names, coloured by cost."""
    page.open(
        written(
            folder, render(parse_module(layered_module(200)), "html", GraphOptions(label="layered"))
        )
    )
    page.press("3")
    search(page, "name:mlp.2.d")


def neighbourhood(page: Page, folder: Path) -> None:
    """What lies around an instruction."""
    path = DATA / "programs/transformer_block/transformer_block.meta.hlo"
    if not path.exists():
        path = DATA / "programs/attention_causal/attention_causal.hlo"
    page.open(
        written(folder, render(load(str(path)).module, "html", GraphOptions(label=path.stem)))
    )
    search(page, "op:reduce")
    page.press("n")


def large_modules() -> Iterator[tuple[str, ModuleOp]]:
    """Made-up modules, and those of the corpus where it is."""
    yield "10,202 instructions in scopes", parse_module(layered_module(200))
    yield "12,000 instructions without metadata", parse_module(flat_module(12_000))
    for path in sorted(CORPUS.glob("programs/big_*/*.hlo.gz")):
        if path.stat().st_size < LARGEST:
            yield path.name, load(str(path)).module


def times(page: Page, folder: Path) -> None:
    """Milliseconds from the page's first script to its first picture, median and worst of five."""
    for name, module in large_modules():
        path = written(folder, render(module, "html"))
        took: list[int] = []
        for _ in range(5):
            page.open(path)
            took.append(int(page.run("return document.documentElement.dataset.ready")))
            page.driver.get("about:blank")
        size = path.stat().st_size // 1024
        print(
            f"{name}: {statistics.median(took):.0f} ms, at most {max(took)} ms; the file has {size} kB"
        )


def main() -> None:
    """Takes pictures or times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", action="store_true", help="times only")
    only_times = parser.parse_args().times
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with browser(folder / "light", *SIZE) as page:
            times(page, folder)
            if only_times:
                return
            for take in (passes, large):
                take(page, folder)
                page.screenshot(PICTURES / f"{take.__name__}.png")
        with browser(folder / "dark", *SIZE, dark=True) as page:
            neighbourhood(page, folder)
            page.screenshot(PICTURES / "neighbourhood.png")


if __name__ == "__main__":
    main()
