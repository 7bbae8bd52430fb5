"""Analyses, the interpreter and passes on programs nested deeper than Python's stack."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from program_shapes import SHAPES
from support import calls_of
from xdsl.dialects.builtin import ModuleOp

from mlirhlo.analysis.cost import analyse
from mlirhlo.analysis.reports import REPORTS
from mlirhlo.analysis.verifier import verify_module
from mlirhlo.diagnostics import HloError
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp import run_module
from mlirhlo.interp.fake_data import make_fake_arguments
from mlirhlo.rewrites.control_flow.computation_deduplicator import same_computation

NESTS = [name for name in SHAPES if name.startswith("nested_") and name != "nested_tuples"]
DEPTH = 4500
"""Instructions: from 560 levels of loops to 1500 of calls."""


@pytest.mark.parametrize("form", NESTS)
def test_costs(form: str) -> None:
    module = parse_module(SHAPES[form](DEPTH))
    assert analyse(module).bytes_accessed > 0


@pytest.mark.parametrize("form", NESTS)
def test_runs_or_is_refused(form: str) -> None:
    module = parse_module(SHAPES[form](DEPTH))
    arguments = list(make_fake_arguments(module, 1))
    if form in ("nested_maps", "nested_reducers"):
        with pytest.raises(HloError, match="nested deeper than 100") as caught:
            run_module(module, arguments)
        assert caught.value.code == "HLO0309"
    else:
        run_module(module, arguments)


def test_functions_of_elements_run_to_the_limit() -> None:
    module = parse_module(SHAPES["nested_maps"](3 * 98))
    run_module(module, list(make_fake_arguments(module, 1)))


def test_deep_computations_are_compared() -> None:
    from mlirhlo.dialects.hlo.module import HloModule

    text = SHAPES["nested_calls"](DEPTH)
    entry = text.index("ENTRY")
    twice = text[:entry] + text[text.index("fn0") : entry].replace("fn", "gn") + text[entry:]
    computations = HloModule(parse_module(twice)).by_name()
    assert same_computation(computations["fn1499"], computations["gn1499"], computations)
    assert not same_computation(computations["fn1499"], computations["gn1498"], computations)


def calls(action: Callable[[ModuleOp], object], form: str, count: int) -> int:
    module = parse_module(SHAPES[form](count))
    return calls_of(lambda: action(module))


@pytest.mark.parametrize("form", ["wide_parameter", "wide_loop", "constants", "branches"])
def test_verifier_is_linear_in_width(form: str) -> None:
    """Hashes of a tuple, by its elements each time, took a minute for 20,000 of them."""
    calls(verify_module, form, 400)
    assert calls(verify_module, form, 800) < 2.1 * calls(verify_module, form, 400)


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("alias", "whiles_in_a_row"),
        ("buffer-assignment", "whiles_in_a_row"),
        ("buffer-assignment", "wide_loop"),
        ("dataflow", "wide_loop"),
        ("dataflow", "wide_parameter"),
        ("liveness", "nested_whiles"),
        ("call-graph", "nested_calls"),
        ("cost", "nested_calls"),
    ],
)
def test_reports_are_linear(name: str, form: str) -> None:
    report = REPORTS[name]
    calls(report, form, 200)
    assert calls(report, form, 800) < 2.3 * calls(report, form, 400)
