"""Start-up is part of the interface: importing starts nothing, and small files answer at once.

CPU time (user and system) as a ratio to that of starting Python with the libraries that the work
needs, the two measured in turn: a busy or slow machine makes both longer.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from support import BIN, DATA, run

TRIES = 5

HEAVY = (
    "numpy",
    "jax",
    "jaxlib",
    "llvmlite",
    "lark",
    "google.protobuf",
    "ml_dtypes",
    "rich",
    "xdsl",
)
"""What `import mlirhlo` must not bring in; each is imported by the function that needs it."""

SMALL = DATA / "programs" / "fusion_chain" / "fusion_chain.hlo"


def ratio(command: tuple[str | Path, ...], peer: str) -> float:
    """CPU time of a command by that of a Python program; each the least of several runs, in turn."""
    ours, theirs = list[float](), list[float]()
    for _ in range(TRIES):
        for times, words in ((ours, command), (theirs, (sys.executable, "-c", peer))):
            done = run(*words)
            assert done.code == 0, done.err
            times.append(done.cpu_s)
    return min(ours) / min(theirs)


def test_import_brings_in_nothing_heavy() -> None:
    # Site packages may import on their own through .pth files, so only what is new counts.
    program = (
        "import sys, json; before = set(sys.modules); import mlirhlo;"
        f"print(json.dumps([m for m in {HEAVY!r} if m in sys.modules and m not in before]))"
    )
    done = run(sys.executable, "-c", program)
    assert done.code == 0, done.err
    assert json.loads(done.out) == []


@pytest.mark.slow
def test_import_time() -> None:
    assert ratio((sys.executable, "-c", "import mlirhlo"), "import asyncio") <= 1


@pytest.mark.slow
def test_help_time() -> None:
    assert ratio((BIN / "hlo-opt", "--help"), "import argparse, asyncio") <= 2


@pytest.mark.slow
def test_small_file_time() -> None:
    assert ratio((BIN / "hlo-opt", SMALL), "import xdsl.dialects.builtin") <= 2.5
