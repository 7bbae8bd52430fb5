"""Functions of the package stay short enough to be read on one screen or two."""

from __future__ import annotations

import sys

import pytest
from support import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import function_lengths


@pytest.mark.slow
def test_no_function_is_long() -> None:
    assert function_lengths.long_functions(function_lengths.MAX_LINES) == []
