"""Quotients of rounded numbers are approximate, those of what may be exact are rounded as IEEE says."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import mlirhlo
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES

SIZE = 4096
ROUNDED = {
    "by an exponential": "e = T exponential(y)\nq = T divide(x, e)",
    "of a logarithm": "e = T log(y)\nq = T divide(e, x)",
    "by a sum": "s = T tanh(y)\ne = T add(s, x)\nq = T divide(x, e)",
    "by a root of a sine": "s = T sine(y)\na = T abs(s)\ne = T sqrt(a)\nq = T divide(x, e)",
}
EXACT = {
    "of inputs": "q = T divide(x, y)",
    "by a root": "e = T sqrt(y)\nq = T divide(x, e)",
    "by a whole number": "s = T exponential(y)\ne = T ceil(s)\nq = T divide(x, e)",
    "by a choice": "s = T exponential(y)\ne = T maximum(s, y)\nq = T divide(x, e)",
}


def compiled(body: str, element: str = "f32") -> Any:
    """A module of one kernel; `T` stands for the type of x, y and the root."""
    text = f"x = T parameter(0)\ny = T parameter(1)\n{body}"
    text = re.sub(r"\bT\b", f"{element}[{SIZE}]", text)
    module = mlirhlo.parse(f"HloModule m\nENTRY e {{\n{text}\n}}")
    return mlirhlo.compile(module, platform="gpu", gpu="h100")


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("bodies", [ROUNDED, EXACT], ids=["rounded", "exact"])
def test_instructions(bodies: dict[str, str]) -> None:
    for name, body in bodies.items():
        (ptx,) = compiled(f"{body}\nROOT r = T copy(q)").program.ptx.values()
        assert ("div.full" in ptx) == (bodies is ROUNDED), name


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("element", ["f32", "bf16", "f16"])
def test_whole_numbers(element: str) -> None:
    """What divides without a rest does, and its floor is the quotient."""
    random = np.random.default_rng(0)
    y, q = (random.integers(1, 16, SIZE) for _ in range(2))
    x, y = (n.astype(PRIMITIVE_TYPES[element].dtype) for n in (q * y, y))
    found = compiled("q = T divide(x, y)\nROOT r = T floor(q)", element)(x, y)
    np.testing.assert_array_equal(found.astype(np.int64), q)


def test_the_error() -> None:
    """Within two units in the last place, of the numbers that the kernel divides."""
    random = np.random.default_rng(1)
    x, y = (random.standard_normal(SIZE).astype(np.float32) * 20 for _ in range(2))
    body = "e = T exponential(y)\nq = T divide(x, e)\nROOT r = (T, T) tuple(e, q)"
    e, q = compiled(body)(x, y)
    exact = x.astype(np.float64) / e
    units = np.abs(q - exact) / np.spacing(np.abs(exact).astype(np.float32))
    assert 0.5 < units.max() <= 2.0
