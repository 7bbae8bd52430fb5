"""Products whose every access is checked, with sizes on both sides of vectors, tiles and blocks.

Tiles at an edge hold vectors of which no lane exists: what is read for them is a place that does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from unit.lowering.kernel_support import draw

import mlirhlo

pytest.importorskip("llvmlite")

RESULTS = {"u8": "s32", "s8": "s32", "s16": "s32", "bf16": "f32", "f16": "f32"}
"""Types of results by those of operands, where they differ."""
BLOCKS = (1, 4, 8, 12, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512)
EDGES = sorted({max(n + by, 1) for n in BLOCKS for by in (-1, 0, 1, 9)})
TOLERANCE = 2e-2


def checked(text: str) -> None:
    """Runs a product of two operands as code that checks what it reads and writes."""
    module = mlirhlo.parse(text)
    rng = np.random.default_rng(0)
    shapes: list[Any] = [p.shape for p in module.hlo.entry.parameters]
    arguments = [draw(rng, s.element_type.name, s.dimensions) for s in shapes]
    want = np.asarray(module(*arguments)).astype(complex)
    got = np.asarray(mlirhlo.compile(module, debug=True)(*arguments)).astype(complex)
    assert np.abs(got - want).max() <= TOLERANCE * max(float(np.abs(want).max()), 1e-30), text


def product(element: str, rows: int, depth: int, columns: int, left: int, right: int) -> str:
    """`left`, `right`: the dimension of each operand that is contracted."""
    lhs, rhs = ([rows, depth], [depth, columns])
    lhs, rhs = lhs if left else lhs[::-1], rhs[::-1] if right else rhs
    return (
        f"{RESULTS.get(element, element)}[{rows},{columns}] dot({element}{lhs} x, {element}{rhs} y), "
        f"lhs_contracting_dims={{{left}}}, rhs_contracting_dims={{{right}}}"
    )


@pytest.mark.parametrize("columns", [65, 129, 400])
@pytest.mark.parametrize("element", ["f32", "f64", "s8", "bf16", "c64"])
def test_columns_that_end_in_the_first_vector_of_a_tile(element: str, columns: int) -> None:
    checked(product(element, 33, 64, columns, 1, 1))


@settings(max_examples=60, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(st.data())
@pytest.mark.slow
def test_any_sizes(data: st.DataObject) -> None:
    rows, depth, columns = (data.draw(st.sampled_from(EDGES)) for _ in range(3))
    if rows * depth * columns > 1 << 23:
        return
    element = data.draw(st.sampled_from(["f32", "f64", "s8", "u8", "s16", "bf16", "f16", "s32", "c64"]))  # fmt: skip
    left, right = (data.draw(st.integers(0, 1)) for _ in range(2))
    checked(product(element, rows, depth, columns, left, right))
