"""`float-normalization-s4` and `-u4` on every pair of numbers."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from mlirhlo.analysis.verifier import verify_module
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp import run_module
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline

ONE = ("abs", "count-leading-zeros", "negate", "not", "popcnt", "sign")
TWO = (
    *("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "power"),
    *("and", "or", "xor", "shift-left", "shift-right-arithmetic", "shift-right-logical"),
)


SIGNED = ("abs", "sign")
"""Of signed numbers alone."""


@pytest.mark.parametrize(
    ("kind", "opcode"),
    [(k, o) for k in ("s4", "u4") for o in (*ONE, *TWO) if k == "s4" or o not in SIGNED],
)
def test_every_pair(kind: str, opcode: str) -> None:
    """Same numbers before and after."""
    operands = "a" if opcode in ONE else "a, b"
    text = f"""HloModule m
    ENTRY e {{
      a = {kind}[256] parameter(0)
      b = {kind}[256] parameter(1)
      ROOT r = {kind}[256] {opcode}({operands})
    }}"""
    values = np.arange(256).astype(ml_dtypes.int4 if kind == "s4" else ml_dtypes.uint4)
    arguments = [values, np.repeat(values[:16], 16)]
    module = parse_module(text)
    wanted = run_module(module, arguments)
    run_pipeline(module, parse_pipeline(f"float-normalization-{kind}"))
    assert verify_module(module) == []
    for a, b in zip(wanted, run_module(module, arguments), strict=True):
        np.testing.assert_array_equal(np.asarray(a, np.int32), np.asarray(b, np.int32))
