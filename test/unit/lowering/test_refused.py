"""What nothing has a meaning for is refused alike by the interpreter and by machine code."""

from __future__ import annotations

import numpy as np
import pytest

import mlirhlo
from mlirhlo.diagnostics import HloError

pytest.importorskip("llvmlite")

SPARSE = "sparsity_config={lhs={sparsity=1x4 dimension=1 stride=1} rhs={sparsity=3x4 dimension=0 stride=1}}"
PRODUCTS = {
    "sparse": f"ROOT c = f32[1,2] convolution(x, y), dim_labels=bf_io->bf, {SPARSE}",
    "sparse_fused": f"c = f32[1,2] convolution(x, y), dim_labels=bf_io->bf, {SPARSE}\n"
    "  ROOT r = f32[1,2] negate(c)",
    "one_side": "ROOT c = f32[1,2] convolution(x, y), dim_labels=bf_io->bf,"
    " sparsity_config={rhs={sparsity=2x4 dimension=0 stride=1}}",
}


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("name", PRODUCTS)
def test_sparse_products_are_refused_alike(name: str) -> None:
    text = f"ENTRY e {{\n  x = f32[1,2] parameter(0)\n  y = f32[2,2] parameter(1)\n  {PRODUCTS[name]}\n}}"
    module = mlirhlo.parse(text)
    x, y = np.ones((1, 2), np.float32), np.ones((2, 2), np.float32)
    for run in (module, mlirhlo.compile(module)):
        with pytest.raises(HloError) as refused:
            run(x, y)
        assert refused.value.code == "HLO0307"
