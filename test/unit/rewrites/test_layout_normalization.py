"""`layout_normalization` and the passes around it, on modules with layouts in any order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import SEED
from unit.rewrites.random_layouts import Layouts

from mlirhlo.analysis.verifier import verify_module
from mlirhlo.dialects.hlo import HloModule
from mlirhlo.dialects.hlo.ops import OP_CLASSES, ConstantOp, Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.formats.hlo_text import parse_module, print_module
from mlirhlo.interp import run_module
from mlirhlo.rewrites.algsimp.movement.broadcast import ELEMENTWISE
from mlirhlo.rewrites.layout.layout_normalization import LayoutNormalizationPass, is_descending
from mlirhlo.rewrites.passes import Trace
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline

PASSES = "reshape-decomposer,layout_normalization,reduction-layout-normalizer"
WORK = {
    *(OP_CLASSES[name] for name in ELEMENTWISE),
    *(
        OP_CLASSES[n]
        for n in ("broadcast", "iota", "pad", "reshape", "slice", "transpose", "reverse")
    ),
    ConstantOp,
}


def row_major(op: Instruction) -> bool:
    return not isinstance(op.shape, ArrayShape) or is_descending(op.shape)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 120, 10))
def test_random_modules(start: int) -> None:
    rng = np.random.default_rng(SEED + start)
    seen = 0
    for seed in range(start, start + 10):
        text = Layouts(SEED + seed).text
        module, given = parse_module(text), parse_module(text)
        run_pipeline(module, parse_pipeline("layout-assignment"))
        seen += not all(map(row_major, HloModule(module).instructions))
        run_pipeline(module, parse_pipeline(PASSES))
        assert verify_module(module) == [], text
        for op in HloModule(module).instructions:
            if type(op) in WORK:
                assert row_major(op), f"{op}\n{text}\n{print_module(module)}"
        run_pipeline(module, parse_pipeline("reshape-decomposer,layout_normalization"))
        assert not LayoutNormalizationPass().run(HloModule(module), Trace()), text
        inputs: list[Any] = [
            rng.normal(size=p.shape.dimensions).astype(np.float32)
            for p in sorted(HloModule(given).entry.parameters, key=lambda p: p.parameter_number)
            if isinstance(p.shape, ArrayShape)
        ]
        wanted = run_module(given, inputs)
        for a, b in zip(run_module(module, inputs, check=True), wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5, err_msg=text)
    assert seen > 5
