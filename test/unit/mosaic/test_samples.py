"""The kernels of the samples, as JAX stored them, run on random operands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import SHARED, needs_shared

import mlirhlo
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.interp import run_module

pytestmark = needs_shared

FOLDER = SHARED / "reference" / "mosaic_samples" / "stablehlo"
SAMPLES = sorted(path.stem for path in FOLDER.glob("*.mlir"))


def operands(module: Any) -> list[Any]:
    generator = np.random.default_rng(0)
    given: list[Any] = []
    for parameter in HloModule(module.op).entry.parameters:
        shape, dtype = parameter.shape.dimensions, parameter.shape.element_type.dtype
        small = generator.integers(0, 3, shape) if dtype.kind == "i" else None
        given.append((generator.normal(size=shape) if small is None else small).astype(dtype))
    return given


@pytest.mark.parametrize("name", [name for name in SAMPLES if name != "ring"])
def test_every_element_is_written(name: str) -> None:
    module = mlirhlo.load(str(FOLDER / f"{name}.mlir"))
    for result in run_module(module.op, operands(module), check=True):
        assert np.isfinite(np.asarray(result, np.float32)).all()


def test_devices_pass_their_rows_around_a_ring() -> None:
    module = mlirhlo.load(str(FOLDER / "ring.mlir"))
    (rows,) = operands(module)
    (found,) = run_module(module.op, [rows])
    np.testing.assert_array_equal(
        found, np.roll(np.asarray(rows).reshape(4, 4, 128), 1, 0).reshape(16, 128)
    )
