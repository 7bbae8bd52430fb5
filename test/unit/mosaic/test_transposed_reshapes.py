"""Transposes of reshapes go through the stages for every element type, dimensions of size one among them."""

from __future__ import annotations

from itertools import permutations
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mlirhlo import mosaic as pl
from mlirhlo.mosaic.interpreter import Kernel
from mlirhlo.mosaic.pipeline import run_pipeline

SHAPES = (
    (1, 8, 128),
    (8, 1, 128),
    (4, 8, 128),
    (16, 2, 128),
    (2, 1, 8, 128),
    (4, 2, 1, 128),
    (1, 1, 16, 128),
)
TYPES = (np.float32, ml_dtypes.bfloat16, np.int8)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_stages_keep_what_they_mean(shape: tuple[int, ...], dtype: Any) -> None:
    rank, size = len(shape), prod(shape)
    x = np.random.default_rng(0).integers(-9, 9, (size // shape[-1], shape[-1])).astype(dtype)
    for order in permutations(range(rank - 1)):
        perm = (*order, rank - 1)
        out = tuple(shape[dim] for dim in perm)

        def kernel(x_ref: Any, o_ref: Any, perm: Any = perm) -> None:
            o_ref[...] = x_ref[...].reshape(shape).transpose(perm)

        module = pl.kernel_call(kernel, pl.ShapeDtypeStruct(out, dtype)).lower(x).module
        run_pipeline(module, stop_after="canonicalize-mosaic-simplify")
        (found,) = Kernel(module).run([x], [(out, np.dtype(dtype))])
        assert np.array_equal(found, x.reshape(shape).transpose(perm))
