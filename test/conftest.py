"""Session-wide choices: what a run without corpus or jaxlib leaves out, said aloud."""

from __future__ import annotations

import gc
import importlib.util
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest
import tool_server
from support import CORPUS, SEED

from mlirhlo.dialects.hlo.build import Collector

HAS_ORACLE = importlib.util.find_spec("jaxlib") is not None


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the tools, quick to start; for those who start them by the hundred."""
    folder = tmp_path_factory.mktemp("tools")
    with tool_server.start(folder) as server:
        yield folder
        server.terminate()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Let hypothesis draw from the run's seed, unless `--hypothesis-seed` names another."""
    if config.getoption("--hypothesis-seed", None) is None:
        config.option.hypothesis_seed = str(SEED)
    # Nobody's own cache is written to; tests of the cache name folders of theirs.
    os.environ.setdefault("MLIRHLO_CACHE_DIR", "off")


def pytest_collection_finish() -> None:
    """Collect garbage as rarely as the tools do, or less: the tests themselves are millions of objects, and each
    collection of all of them takes a second."""
    gc.set_threshold(200_000, 50, 1000)
    Collector.LEAST, Collector.LEAST_BYTES = 5_000_000, 1 << 30


SWEEP_PART = os.environ.get("MLIRHLO_SWEEP_PART", "0/1")
"""`K/N` runs the sweeps of part `K mod N` of N; every part has other sweeps."""


def mark_sweeps(items: list[pytest.Item]) -> None:
    """Make sweeps of the cases that `one_case_in` leaves to them: all but one in so many of each test."""
    numbers: Counter[str] = Counter()
    for item in items:
        if part := item.get_closest_marker("one_case_in"):
            (every,) = part.args
            test = item.nodeid.partition("[")[0]
            if numbers[test] % every != SEED % every:
                item.add_marker("sweep")
            numbers[test] += 1


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the sweeps of other parts; skip oracle tests where the real XLA is not installed."""
    mark_sweeps(items)
    number, parts = map(int, SWEEP_PART.split("/"))
    others = [
        item
        for item in items
        if item.get_closest_marker("sweep")
        and crc32(item.nodeid.encode()) % parts != number % parts
    ]
    if others:
        config.hook.pytest_deselected(items=others)
        left_out = set(others)
        items[:] = [item for item in items if item not in left_out]
    if HAS_ORACLE:
        return
    skip = pytest.mark.skip(reason="oracle missing: pip install 'mlirhlo[oracle]'")
    for item in items:
        if "oracle" in item.keywords:
            item.add_marker(skip)


def seeds(config: pytest.Config) -> str:
    """What repeats the run's random cases, to be shown."""
    return f"seed: {SEED} (MLIRHLO_SEED), hypothesis: {config.option.hypothesis_seed}"


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Name what decides how much of the suite can run, and what its random cases are."""
    corpus = str(CORPUS) if CORPUS.is_dir() else f"MISSING (looked at {CORPUS}; set MLIRHLO_SHARED)"
    oracle = "jaxlib" if HAS_ORACLE else "MISSING (pip install 'mlirhlo[oracle]')"
    return [f"corpus: {corpus}", f"oracle: {oracle}", f"sweeps: part {SWEEP_PART}", seeds(config)]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say once, at the end, that a green run without the corpus or the oracle is a partial one.

    The header, which says so first, is not shown under `-q`.
    """
    if "oracle" in str(terminalreporter.config.getoption("markexpr")):
        terminalreporter.write_line(seeds(terminalreporter.config))
    if "sweep" in str(terminalreporter.config.getoption("markexpr")):
        terminalreporter.write_line(f"sweeps: part {SWEEP_PART} (MLIRHLO_SWEEP_PART)")
    reasons = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    for what in ("shared data missing", "oracle missing"):
        count = sum(what in reason for reason in reasons)
        if count:
            terminalreporter.write_line(f"PARTIAL RUN: {count} tests skipped: {what}", yellow=True)
