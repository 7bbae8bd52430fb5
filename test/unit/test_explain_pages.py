"""Every error code has a page, and every page a code that somebody raises."""

import functools
import re
from pathlib import Path

import pytest
from support import ROOT

PACKAGE = ROOT / "mlirhlo"
CODE = re.compile(r"HLO\d{4}")
PAGES = sorted((PACKAGE / "explain").glob("*.md"))


@functools.cache
def raised() -> dict[str, str]:
    """Codes in the sources, each with one place where it stands."""
    found: dict[str, str] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for code in re.findall(r"""["'](HLO\d{4})["']""", line):
                found.setdefault(code, f"{path.relative_to(ROOT)}:{number}")
    return found


def test_every_code_has_a_page() -> None:
    missing = {
        c: at for c, at in raised().items() if not (PACKAGE / "explain" / f"{c}.md").exists()
    }
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_page(page: Path) -> None:
    code = page.stem
    assert CODE.fullmatch(code)
    lines = page.read_text().splitlines()
    assert re.fullmatch(rf"# {code}: \S.*[^.]", lines[0]), "first line: `# HLOxxxx: title`"
    assert len(lines) > 2, "a page says what it means and how to mend it"
    assert code in raised(), "nothing raises this code; take the page away with it"
