"""Every numbered constraint has a failing case, and each case breaks the constraint it names.

The cases are the lit files `test/lit/dialects/hlo/invalid_*`; here they run without the command
line. Constraints that no file can break are broken in `test_verifier_built.py`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from support import ROOT, run

from mlirhlo.analysis.shape_inference.base import CHECKS, CONSTRAINTS, INFERENCES
from mlirhlo.analysis.verifier import verify_module
from mlirhlo.debug.expected import check_expected, read_expected
from mlirhlo.diagnostics import Diagnostic, HloError
from mlirhlo.dialects.hlo.table import OPCODES
from mlirhlo.formats import hlo_text, mlir

FILES = sorted((ROOT / "test" / "lit" / "dialects" / "hlo").glob("invalid_*"))
_DIVIDER = re.compile(r"^// -----\n", re.MULTILINE)
_NUMBER = re.compile(r"\[([a-z0-9_-]+_c[0-9]+)\]\}\}")
_BUILT = re.compile(r'breaks\("([a-z0-9_-]+_c[0-9]+)"\)')


def produced(text: str, file: Path) -> list[Diagnostic]:
    """What reading and verifying `text` says."""
    try:
        parse = mlir.parse_module if file.suffix == ".mlir" else hlo_text.parse_module
        return verify_module(parse(text, file.name))
    except HloError as error:
        return list(error.diagnostics)


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.name)
def test_cases_break_what_they_announce(file: Path) -> None:
    for piece in _DIVIDER.split(file.read_text()):
        announced = read_expected(piece, file.name)
        assert announced, piece
        assert not check_expected(announced, produced(piece, file)), piece


def test_every_constraint_has_a_failing_case() -> None:
    here = Path(__file__).parent / "test_verifier_built.py"
    cases = {n for f in FILES for n in _NUMBER.findall(f.read_text())}
    cases |= set(_BUILT.findall(here.read_text()))
    assert sorted(set(CONSTRAINTS) - cases) == []
    assert sorted(cases - set(CONSTRAINTS)) == []


def test_every_opcode_has_a_rule() -> None:
    assert set(OPCODES) == set(INFERENCES) | set(CHECKS)


def test_numbers_have_no_gaps() -> None:
    by_subject: dict[str, list[int]] = {}
    for key in CONSTRAINTS:
        subject, number = key.rsplit("_c", 1)
        by_subject.setdefault(subject, []).append(int(number))
    gaps = {s: sorted(n) for s, n in by_subject.items() if sorted(n) != list(range(1, len(n) + 1))}
    assert gaps == {}


def test_page_is_up_to_date() -> None:
    done = run(sys.executable, ROOT / "tools" / "constraint_page.py", "--check")
    assert done.code == 0, done.err
