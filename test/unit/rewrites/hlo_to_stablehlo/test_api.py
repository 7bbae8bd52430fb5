"""StableHLO from the Python interface, and programs of unknown sizes called with any."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mlirhlo

DYNAMIC = """
func.func @main(%x: tensor<?x2xf32>) -> tensor<?xf32> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x2xf32>) -> tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %all = stablehlo.multiply %n, %two : tensor<i32>
  %shape = stablehlo.reshape %all : (tensor<i32>) -> tensor<1xi32>
  %r = stablehlo.dynamic_reshape %x, %shape : (tensor<?x2xf32>, tensor<1xi32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
"""


def test_text_and_file(tmp_path: Path) -> None:
    module = mlirhlo.parse("f32[2] add(f32[2] x, f32[2] y)")
    assert "stablehlo.add %arg0, %arg1 : tensor<2xf32>" in module.as_text("stablehlo")
    path = tmp_path / "m.mlir"
    module.save(path, "stablehlo")
    assert mlirhlo.load(path)([1, 2], [3, 4]).tolist() == [4, 6]


@pytest.mark.parametrize("rows", [1, 3])
def test_sizes_of_each_call(rows: int) -> None:
    module = mlirhlo.parse(DYNAMIC)
    x = np.arange(2 * rows, dtype=np.float32).reshape(rows, 2)
    assert module(x).tolist() == x.reshape(-1).tolist()
    assert module.stablehlo is not None


def test_wrong_arguments() -> None:
    module = mlirhlo.parse(DYNAMIC)
    with pytest.raises(mlirhlo.diagnostics.HloError, match="HLO0429"):
        module(np.zeros((3, 4), np.float32))
    with pytest.raises(mlirhlo.diagnostics.HloError, match="HLO0429"):
        module()
