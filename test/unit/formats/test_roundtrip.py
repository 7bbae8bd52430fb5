"""Every HLO text of the shared data comes back byte for byte, whatever form it went through.

`python tools/roundtrip.py` does the same with the biggest dumps and prints the counts. The corpus
declares a few texts as written by people (feature `hlo_only`); XLA prints those otherwise itself, so
they are held against XLA's own print of them.
"""

import json
import sys

import pytest
from support import CORPUS, ROOT, SHARED, needs_shared, one_in, sampled

sys.path.insert(0, str(ROOT / "tools"))

import roundtrip

LARGEST = 200_000
"""Bytes of the largest text here."""

WRITTEN_BY_HAND = """HloModule by_hand, entry_computation_layout={(f32[2]{0})->f32[2]{0}}

ENTRY main {
  a = f32[2]{0} parameter(0), frontend_attributes={second="2",first="1"}
  ROOT r = f32[2]{0} negate(a)
}
"""
"""Attributes unsorted, no blank line at the end: XLA prints neither."""


@needs_shared
@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "mlir", "proto"])
@sampled(20)
def test_every_text_comes_back(form: str, every: int) -> None:
    function = roundtrip.form_functions([form])[form]
    by_hand = written_by_hand()
    seen = 0
    for name, source in one_in(every, roundtrip.texts(SHARED)):
        if len(source) > LARGEST or name in by_hand:
            continue
        seen += 1
        back = function(name, source)
        assert back == source, f"{name}: {roundtrip.first_difference(source, back)}"
    assert seen > 1000 // every


def written_by_hand() -> dict[str, str]:
    """Texts of the corpus that people wrote and no compiler printed, by name."""
    programs = json.loads((CORPUS / "MANIFEST.json").read_text())["programs"]
    names = [p["files"]["hlo"] for p in programs if "hlo_only" in p["features"]]
    return {f"corpus/{name}": (CORPUS / name).read_text() for name in names}


@needs_shared
@pytest.mark.oracle
def test_what_people_wrote_is_printed_as_xla_prints_it() -> None:
    texts = written_by_hand()
    forms = roundtrip.form_functions(["text", "mlir", "generic", "proto"])
    for name, source in texts.items():
        assert roundtrip.prints_as_xla(name, source), name
        for function in forms.values():
            assert function(name, source) == roundtrip.our_print(name, source), name
    assert texts


@pytest.mark.oracle
def test_a_print_that_is_not_xlas_is_not_taken_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    name, source = "by_hand", WRITTEN_BY_HAND
    assert roundtrip.our_print(name, source) != source
    assert roundtrip.prints_as_xla(name, source)
    roundtrip.prints_as_xla.cache_clear()
    monkeypatch.setattr(roundtrip, "print_module", lambda *_: source)
    assert not roundtrip.prints_as_xla(name, source)


@pytest.mark.oracle
def test_a_print_of_xlas_has_to_come_back() -> None:
    source = roundtrip.our_print("by_hand", WRITTEN_BY_HAND)
    assert roundtrip.xla_print(source, roundtrip.print_options(source)) == source
    assert not roundtrip.prints_as_xla("by_hand", source)
