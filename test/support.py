"""What several test files share: where things are, and how to start a tool as a user would."""

from __future__ import annotations

import cProfile
import inspect
import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

ROOT = Path(__file__).resolve().parent.parent
"""The checkout."""

DATA = ROOT / "test" / "data"
"""Small dumps that travel with the repository."""

SHARED = Path(os.environ.get("MLIRHLO_SHARED", ROOT.parent / "shared"))
"""The corpus and the reference dumps, beside the checkout; not part of the repository."""

CORPUS = SHARED / "corpus"

SEED = int(os.environ.get("MLIRHLO_SEED", "20240"))
"""Of everything random in the suite; printed at its start, and with every failure."""

BIN = Path(sys.executable).parent
"""Where this environment's console scripts are, whether or not it is activated."""

HLO_PROTOS = sorted(p for p in DATA.rglob("*.pb") if p.parent.name != "tensorflow_clustering")
"""Files of XLA's messages in the repository; those of TensorFlow's graphs are not among them."""

needs_shared = pytest.mark.skipif(
    not CORPUS.is_dir(), reason=f"shared data missing: no corpus at {CORPUS}"
)
"""Marks a test that reads the corpus; conftest.py says at the end how many were left out."""


def sample(cases: Iterable[Any], every: int) -> list[Any]:
    """Parameters of a test: one case in `every`, which ones the run's seed says; the others are a sweep.

    `pytest` leaves sweeps out, `pytest -m sweep` runs them.
    """
    return sample_rows(((case,) for case in cases), every)


def sample_rows(rows: Iterable[Sequence[Any]], every: int) -> list[Any]:
    """As `sample`, of several parameters."""
    sweep = pytest.mark.sweep
    return [
        pytest.param(*row, marks=() if number % every == SEED % every else sweep)
        for number, row in enumerate(rows)
    ]


def sampled(every: int, all_of: int = 1) -> pytest.MarkDecorator:
    """Parametrizes a test's `every`: one case in so many, and as a sweep one in `all_of`."""
    return pytest.mark.parametrize("every", [every, pytest.param(all_of, marks=pytest.mark.sweep)])


def one_in(every: int, cases: Iterable[T]) -> Iterable[T]:
    """One case in so many; the run's seed says which."""
    return itertools.islice(cases, SEED % every, None, every)


@dataclass(frozen=True, slots=True)
class Finished:
    """What a tool left behind."""

    code: int
    out: str
    err: str
    cpu_s: float
    """User and system time of the process and its children."""


def calls_of(action: Callable[[], object]) -> int:
    """How many functions an action calls, C functions counted: its time without the machine's noise."""
    profile = cProfile.Profile()
    profile.runcall(action)
    return sum(entry.callcount for entry in profile.getstats())


@contextmanager
def frames(count: int) -> Iterator[None]:
    """So many frames of Python at the most from here on: recursion with the depth of a program shows in small ones."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + count)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def environment(**extra: str) -> dict[str, str]:
    """This process's environment, with this interpreter's scripts first and no colour."""
    path = os.pathsep.join([str(BIN), os.environ.get("PATH", "")])
    # Tools keep their bytecode, as people run them.
    own = {"PATH": path, "NO_COLOR": "1", "COLUMNS": "100", "PYTHONDONTWRITEBYTECODE": ""}
    return {**os.environ, **own, **extra}


def run(*command: str | Path, stdin: str = "", cwd: Path = ROOT, timeout: float = 300) -> Finished:
    """Run a tool of this environment by name; its exit code is the caller's to judge."""
    before = os.times()
    done = subprocess.run(
        [str(part) for part in command],
        input=stdin,
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment(),
        timeout=timeout,
        check=False,
    )
    after = os.times()
    cpu_s = (after.children_user - before.children_user) + (
        after.children_system - before.children_system
    )
    return Finished(done.returncode, done.stdout, done.stderr, cpu_s)
