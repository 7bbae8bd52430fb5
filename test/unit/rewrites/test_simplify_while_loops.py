"""`simplify-while-loops` on loops whose states hold tuples."""

from __future__ import annotations

import numpy as np
import pytest
from unit.rewrites.random_loops import Program

from mlirhlo.analysis.verifier import verify_module
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp import run_module
from mlirhlo.interp.fake_data import make_fake_arguments
from mlirhlo.rewrites.control_flow.while_loops import has_nested_state
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline


@pytest.mark.parametrize("start", range(0, 60, 20))
def test_nested_states_become_flat(start: int) -> None:
    """Same bits, and no tuple is left in the state of any loop."""
    found = 0
    for seed in range(start, start + 20):
        text = Program(seed, nested=True).text
        module = parse_module(text)
        found += any(has_nested_state(op) for op in HloModule(module).instructions)
        arguments = list(make_fake_arguments(module, 1))
        wanted = run_module(module, arguments)
        run_pipeline(module, parse_pipeline("simplify-while-loops"))
        assert verify_module(module) == [], text
        loops = [op for op in HloModule(module).instructions if op.opcode.name == "while"]
        assert not any(has_nested_state(op) for op in loops), text
        for a, b in zip(wanted, run_module(module, arguments), strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b), text)
    assert found > 5
