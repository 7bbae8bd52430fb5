"""Complex numbers that are only moved go as words: the same bits, NaN and the sign of zero included."""

from __future__ import annotations

import numpy as np
import pytest

import mlirhlo
from mlirhlo.lowering.cpu.compiler import lower

pytest.importorskip("llvmlite")

UPDATE = "second {\n  a = c64[] parameter(0)\n  ROOT b = c64[] parameter(1)\n}\n"
SUM = (
    "second {\n  a = c64[] parameter(0)\n  b = c64[] parameter(1)\n  ROOT c = c64[] add(a, b)\n}\n"
)
PARAMETERS = (
    "  x = c64[20,37] parameter(0)\n  i = s32[5] parameter(1)\n  z = c64[] constant((-0, nan))\n"
)
MOVES = {
    "transpose": "ROOT r = c64[37,20] transpose(x), dimensions={1,0}",
    "reverse": "ROOT r = c64[20,37] reverse(x), dimensions={0,1}",
    "strided slice": "ROOT r = c64[20,13] slice(x), slice={[0:20], [0:37:3]}",
    "pad": "ROOT r = c64[23,40] pad(x, z), padding=1_2x0_3",
    "concatenate": "ROOT r = c64[20,74] concatenate(x, x), dimensions={1}",
    "repeat": """b = c64[20,37,2] broadcast(x), dimensions={0,1}
  ROOT r = c64[20,74] reshape(b)""",
    "gather": """ROOT r = c64[5,37] gather(x, i), offset_dims={1}, collapsed_slice_dims={0},
    start_index_map={0}, index_vector_dim=1, slice_sizes={1,37}""",
    "select": """n = s32[20,37] iota(), iota_dimension=1
  five = s32[20,37] broadcast(s32[] constant(5)), dimensions={}
  p = pred[20,37] compare(n, five), direction=LT
  v = c64[20,37] reverse(x), dimensions={0}
  ROOT r = c64[20,37] select(p, x, v)""",
    "dynamic-update-slice": """k = s32[] constant(3)
  u = c64[2,37] slice(x), slice={[7:9], [0:37]}
  ROOT r = c64[20,37] dynamic-update-slice(x, u, k, k)""",
    "scatter": """u = c64[5,37] slice(x), slice={[7:12], [0:37]}
  ROOT r = c64[20,37] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=second""",
}


def _text(move: str, combine: str = UPDATE) -> str:
    return f"{combine}ENTRY e {{\n{PARAMETERS}  {move}\n}}\n"


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("move", MOVES.values(), ids=list(MOVES))
def test_moves_go_as_words(move: str) -> None:
    module = mlirhlo.parse(_text(move))
    assert "xf32" not in str(lower(module.op).loops)
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(20, 37)) + 1j * rng.normal(size=(20, 37))).astype(np.complex64)
    x.reshape(-1)[::7] = complex(-0.0, np.nan)
    args = [x, np.array([3, 19, 0, 21, -1], np.int32)]
    found = np.asarray(mlirhlo.compile(module, cached=False)(*args))
    assert found.tobytes() == np.asarray(module(*args)).tobytes()


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    "text",
    [_text("ROOT r = c64[20,37] negate(x)"), _text(MOVES["scatter"], SUM)],
    ids=["negate", "scatter that adds"],
)
def test_arithmetic_stays_in_parts(text: str) -> None:
    assert "xf32" in str(lower(mlirhlo.parse(text).op).loops)
