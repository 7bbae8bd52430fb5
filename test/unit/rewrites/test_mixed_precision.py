"""Instructions that round as they go, `bf16[6] reshape(f32[2,3])`: passes keep the rounding, whatever they write."""

import numpy as np
import pytest

from mlirhlo.analysis.verifier import verify_module
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp import run_module
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline

MOVES = (
    "bf16[6]{0} reshape(x)",
    "bf16[6,4]{1,0} reshape(x)",
    "bf16[2,3,4]{0,1,2} reshape(x)",
    "bf16[4,3,2]{2,1,0} transpose(x), dimensions={2,1,0}",
    "bf16[4,3,2]{0,1,2} transpose(x), dimensions={2,1,0}",
    "bf16[2,3,4]{2,1,0} copy(x)",
    "bf16[2,3,4]{0,1,2} copy(x)",
    "bf16[2,3,4]{2,1,0} real(x)",
    "bf16[2,3,4]{2,1,0} imag(x)",
    "bf16[2,3,4]{2,1,0} abs(x)",
)
PASSES = (
    "reshape-decomposer",
    "algsimp{is_layout_sensitive=true}",
    "layout_normalization",
    "layout_normalization,algsimp{is_layout_sensitive=true},reshape-decomposer",
)


@pytest.mark.parametrize("passes", PASSES)
@pytest.mark.parametrize("move", MOVES)
def test_rounding_stays(move: str, passes: str) -> None:
    sizes = (2, 3, 1) if "[6]" in move else (2, 3, 4)
    x = np.random.default_rng(7).standard_normal(sizes).astype(np.float32)
    module = parse_module(f"""HloModule m
        ENTRY e {{
          x = f32[{",".join(map(str, sizes))}]{{2,1,0}} parameter(0)
          ROOT r = {move}
        }}""")
    (before,) = run_module(module, [x])
    run_pipeline(module, parse_pipeline(passes))
    assert verify_module(module) == []
    (after,) = run_module(module, [x])
    assert before.dtype == after.dtype == "bfloat16"
    np.testing.assert_array_equal(before, after)
