"""Addresses of files in pages: from where the page lies."""

import base64
import gzip
import json
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from mlirhlo.cli.hlo_dump import main as hlo_dump
from mlirhlo.cli.hlo_view import main as hlo_view
from mlirhlo.debug.links import link_to

TEXT = "HloModule f\n\nENTRY e {\n  ROOT a = f32[] parameter(0)\n}\n"
NAMES = ("module_0000.f.before_optimizations.txt", "module_0000.f.cpu_after_optimizations.txt")


def targets(page: Path) -> list[Path]:
    """The files that a page links to, as a browser finds them."""
    found: list[Path] = []
    for address in re.findall(r'href="([^"#]+)"', page.read_text()):
        parts = urlsplit(address)
        path = Path(unquote(parts.path))
        found.append(path if parts.scheme == "file" else page.parent / path)
    return found


@pytest.mark.parametrize("where", ["dump", ".", "out/deep", "out with %20 and #"])
@pytest.mark.parametrize("folder", ["dump", "dump/../dump/"])
def test_links_of_a_report_lead_to_the_files(
    where: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in NAMES:
        (tmp_path / "dump").mkdir(exist_ok=True)
        (tmp_path / "dump" / name).write_text(TEXT)
    page = tmp_path / where / "r.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    assert hlo_dump(["report", folder, "-o", str(page)]) == 0
    found = targets(page)
    assert {path.name for path in found} == set(NAMES)
    assert all(path.read_text() == TEXT for path in found)


def test_links_through_symbolic_links_are_absolute(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "there").symlink_to(tmp_path / "a/b")
    address = link_to("x y", str(tmp_path / "a"), str(tmp_path / "there/r.html"))
    assert address == f"file://{tmp_path}/a/x%20y"


def test_names_are_no_addresses() -> None:
    assert link_to("javascript:alert(1)") == "./javascript%3Aalert%281%29"
    assert link_to('a"><b>') == "./a%22%3E%3Cb%3E"


def test_stages_of_a_graph_lead_to_their_texts(tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / name).write_text(TEXT if "before" in name else TEXT.replace("a =", "b ="))
    page = tmp_path / "out/x.html"
    page.parent.mkdir()
    assert hlo_view([str(tmp_path), "-o", str(page)]) == 0
    packed = re.search(r'id="data">([^<]*)</script>', page.read_text())
    assert packed is not None
    data = json.loads(gzip.decompress(base64.b64decode(packed[1])))
    files = [stage["file"] for stage in data["stages"]]
    assert files == [f"./../{name}" for name in NAMES]
