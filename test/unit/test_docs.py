"""The pages cannot lie: tools/doc_sessions.py runs their commands and compares what they print."""

import re
from pathlib import Path

import pytest
from doc_sessions import mismatches, pages, prepare, renew
from support import ROOT

LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


NEED_JAX = (
    "docs/following-xla-docs.md",
    "docs/integrations.md",
    "docs/jax-platform.md",
    "docs/tutorials/under-jax.md",
)
"""Pages whose sessions import JAX, which comes with the oracle."""


def runnable() -> list[object]:
    marks = {page: [pytest.mark.oracle] if name(page) in NEED_JAX else [] for page in pages()}
    return [pytest.param(page, marks=marks[page], id=name(page)) for page in pages()]


@pytest.mark.slow
@pytest.mark.parametrize("page", runnable())
def test_page(page: Path, tools: Path, tmp_path: Path) -> None:
    prepare(tmp_path)
    wrong = list(mismatches(page, tmp_path, tools))
    assert not wrong, "\n".join(wrong) + "\nIf the pages are behind: tools/doc_sessions.py --renew"


PAGE = """\
```text file=a.txt
one
two
three
```
```console
$ cat a.txt
one
...
thr…
$ false
$ echo $?
1
```
```console
$ echo a \\
  b
a c
$ cat a.txt
...
```
"""


def test_a_wrong_page_is_seen_and_renewed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    (wrong,) = mismatches(page, tmp_path)
    assert wrong.startswith("page.md:16: $ echo a")
    assert renew(page, tmp_path)
    assert page.read_text() == PAGE.replace("a c\n", "a b\n")
    assert not renew(page, tmp_path)


@pytest.mark.parametrize("page", [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")], ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = LINK.findall(re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL))
    dead = [target for target in targets if not (page.parent / target).exists()]
    assert not dead, dead
