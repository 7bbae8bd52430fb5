"""Every HLO text of the shared data comes back byte for byte, whatever form it went through.

`python tools/roundtrip.py` does the same with the biggest dumps and prints the counts.
"""

import sys

import pytest
from support import ROOT, SHARED, needs_shared

sys.path.insert(0, str(ROOT / "tools"))

import roundtrip

LARGEST = 200_000
"""Bytes of the largest text here."""


@needs_shared
@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "mlir", "proto"])
def test_every_text_comes_back(form: str) -> None:
    function = roundtrip.form_functions([form])[form]
    by_hand = roundtrip.written_by_hand(SHARED)
    seen = 0
    for name, source in roundtrip.texts(SHARED):
        if len(source) > LARGEST or name in by_hand:
            continue
        seen += 1
        back = function(name, source)
        assert back == source, f"{name}: {roundtrip.first_difference(source, back)}"
    assert seen > 1000
