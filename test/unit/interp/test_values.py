"""Values at the border, and the registry of meanings."""

from __future__ import annotations

import numpy as np
import pytest
from interp_support import run

from mlirhlo.dialects.hlo.table import OPCODES
from mlirhlo.interp.engine import load_meanings
from mlirhlo.interp.registry import MEANINGS

TWICE = """HloModule m
ENTRY e {
  x = f32[2] parameter(0)
  c = f32[2] constant({1, 2})
  b = f32[2,2] broadcast(x), dimensions={1}
  n = f32[2] negate(x)
  ROOT t = (f32[2], f32[2], f32[2,2], f32[2], f32[2]) tuple(x, c, b, n, n)
}
"""


def test_results_are_the_callers_own() -> None:
    x = np.array([3, 4], np.float32)
    for _ in range(2):
        results = run(TWICE, x)
        assert [r.tolist() for r in results] == [
            [3, 4],
            [1, 2],
            [[3, 4], [3, 4]],
            [-3, -4],
            [-3, -4],
        ]
        for result in results:
            result += 100
        assert x.tolist() == [3, 4]
        assert results[3].tolist() == results[4].tolist() == [97, 96]


def test_every_opcode_has_a_meaning() -> None:
    load_meanings()
    assert set(OPCODES) - set(MEANINGS) == set()


@pytest.mark.parametrize("name", ["bf16", "f8e4m3fn", "s4", "u2", "pred", "c64"])
def test_narrow_types_come_from_lists(name: str) -> None:
    values = [0, 1, 1] if name in ("pred", "u2") else [0, 1, 2]
    text = (
        f"HloModule m\nENTRY e {{\n  p = {name}[3] parameter(0)\n  ROOT r = {name}[3] copy(p)\n}}\n"
    )
    assert run(text, values)[0].astype(np.complex64).real.astype(int).tolist() == values
