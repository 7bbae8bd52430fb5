"""Programs that are deep or wide in one way each, through every tool: calls go with the size, and the end is told.

Each tool meets one form of program here, in turns; `tools/scaling.py --calls` runs every tool on every form.
"""

from __future__ import annotations

import gc
import itertools
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import pytest
import scaling
import scaling_tools
from program_shapes import SHAPES

from mlirhlo.cli.opt.analyses import render
from mlirhlo.debug.cost import chip, estimate
from mlirhlo.debug.diff import diff_modules
from mlirhlo.formats import Loaded, load
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.rewrites.hlo_to_stablehlo import convert_to_stablehlo
from mlirhlo.rewrites.stablehlo_to_hlo import convert_to_hlo

SIZES = (80, 160, 320, 640, 1280, 2560)
"""Twice as much takes twice the calls from one of these on: windows and bounds are full then."""
RATIO = 2.3
MENDED = [
    ("async_at_once", "view:near"),
    ("async_updates", "analysis:liveness"),
    ("async_updates", "print"),
    ("async_updates", "view:dot"),
    ("branches", "analysis:liveness"),
    ("branches", "interpreter"),
    ("computations", "partition"),
    ("concatenation", "interpreter"),
    ("wide_loop", "interpreter"),
    ("wide_loop", "read:mlir-generic"),
    ("wide_loop", "view:dot"),
]


@cache
def tools() -> dict[str, scaling.Tool]:
    """All but those that leave the process."""
    return {
        name: tool
        for name, tool in scaling.tools().items()
        if name not in scaling.THREADED and name != "view:svg"
    }


def in_turns(form: str) -> Iterator[str]:
    return itertools.islice(tools(), list(SHAPES).index(form), None, len(SHAPES))


def check(form: str, tool: str, folder: Path) -> None:
    run = tools()[tool]

    def calls(count: int) -> float:
        path = folder / f"{count}.hlo"
        path.write_text(SHAPES[form](count))
        number, end = scaling.outcome(run, str(path), calls=True)
        assert re.fullmatch(r"ok|HLO(?!0901)\d{4}", end), (form, tool, end)
        return number

    calls(16)  # what is imported and cached is there from now on
    counts = itertools.pairwise(map(calls, SIZES))
    assert any(whole < RATIO * half for half, whole in counts), (form, tool)


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("form", SHAPES)
def test_each_tool_on_one_form(form: str, tmp_path: Path) -> None:
    for tool in in_turns(form):
        check(form, tool, tmp_path)


@pytest.mark.parametrize(("form", "tool"), MENDED)
def test_mended(form: str, tool: str, tmp_path: Path) -> None:
    check(form, tool, tmp_path)


WIDE = SHAPES["wide_parameter"](1600)
PROGRAM = convert_to_stablehlo(parse_module(SHAPES["reducers"](400)))
COLLECTED: dict[str, Callable[[Loaded], object]] = {
    **{name: partial(render, names=name, as_json=False) for name in scaling_tools.ANALYSES},
    "hlo-cost": lambda loaded: estimate(loaded.module, chip("epyc-core")),
    "stablehlo-to-hlo": lambda _: convert_to_hlo(PROGRAM),
    "hlo-diff": lambda _: diff_modules(WIDE, WIDE),
}


@pytest.mark.one_case_in(4)
@pytest.mark.parametrize("tool", COLLECTED)
def test_what_a_tool_makes_is_not_walked_by_the_garbage_collector(tool: str) -> None:
    def collections() -> int:
        return sum(generation["collections"] for generation in gc.get_stats())

    loaded = load(WIDE.encode(), name="wide.hlo")
    COLLECTED[tool](loaded)  # with imports
    threshold = gc.get_threshold()
    gc.set_threshold(100)
    try:
        before = collections()
        COLLECTED[tool](loaded)
        assert collections() - before <= 4  # one before it, others as it starts and ends
    finally:
        gc.set_threshold(*threshold)
