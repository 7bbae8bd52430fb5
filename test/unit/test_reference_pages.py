"""The pages under docs/passes and docs/ops say what the code says."""

import sys

from support import ROOT

sys.path.insert(0, str(ROOT / "tools"))

import reference_pages


def test_pages_are_current() -> None:
    stale = [
        path.name
        for path, text in reference_pages.pages().items()
        if not path.exists() or path.read_text() != text
    ]
    assert not stale, f"run python tools/reference_pages.py to renew {stale}"


def test_every_pass_has_a_lit_test() -> None:
    for name in reference_pages.list_passes(loaded=False):
        stem = name.replace("-", "_")
        found = [
            folder
            for folder in (
                "rewrites",
                *(f"lowering/{f}" for f in ("structured", "schedule", "loops", "gpu")),
            )
            for ending in (".hlo", ".mlir")
            if (ROOT / "test/lit" / folder / (stem + ending)).exists()
        ]
        assert found, name
