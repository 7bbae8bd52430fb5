"""Loops whose rounds run at the same time."""

from __future__ import annotations

import numpy as np
import pytest

import mlirhlo
from mlirhlo.lowering.cpu.compiler import lower
from mlirhlo.lowering.plan.steps import Slice, Strands, While

SAYS = 'attributes {mhlo.frontend_attributes = {mlirhlo.parallel = "true"}}'


def program(body: str, said: str = SAYS) -> str:
    """A loop over the rows of a matrix: `body` makes the new `%row` of `%old`, `%i` and `%o`."""
    return f"""
module @rows {{
  func.func public @main(%x: tensor<96x256xf32>) -> tensor<96x256xf32> {{
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %start = stablehlo.constant dense<0.0> : tensor<96x256xf32>
    %r:2 = stablehlo.while(%i = %zero, %o = %start) : tensor<i32>, tensor<96x256xf32> {said}
    cond {{
      %n = stablehlo.constant dense<96> : tensor<i32>
      %t = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %t : tensor<i1>
    }} do {{
      %one = stablehlo.constant dense<1> : tensor<i32>
      %c = stablehlo.constant dense<0> : tensor<i32>
      %old = stablehlo.dynamic_slice %x, %i, %c, sizes = [1, 256]
        : (tensor<96x256xf32>, tensor<i32>, tensor<i32>) -> tensor<1x256xf32>
{body}
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %new : tensor<i32>, tensor<96x256xf32>
    }}
    return %r#1 : tensor<96x256xf32>
  }}
}}
"""


PRODUCT = """
      %a = stablehlo.reshape %old : (tensor<1x256xf32>) -> tensor<16x16xf32>
      %b = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0]
        : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
      %row = stablehlo.reshape %b : (tensor<16x16xf32>) -> tensor<1x256xf32>
"""
UPDATE = """
      %new = stablehlo.dynamic_update_slice %o, %row, %i, %c
        : (tensor<96x256xf32>, tensor<1x256xf32>, tensor<i32>, tensor<i32>) -> tensor<96x256xf32>
"""
WHOLE = """
      %wide = stablehlo.broadcast_in_dim %row, dims = [0, 1] : (tensor<1x256xf32>) -> tensor<96x256xf32>
      %new = stablehlo.add %o, %wide : tensor<96x256xf32>
"""


def strands_of(text: str) -> list[Strands | None]:
    """Those of the loops of a program."""
    module = mlirhlo.parse(text)
    steps = lower(module.op).plan.steps
    return [step.strands for step in steps if isinstance(step, While)]


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("debug", [False, True])
def test_each_strand_has_memory_of_its_own(debug: bool) -> None:
    text = program(PRODUCT + UPDATE)
    x = np.random.default_rng(0).normal(size=(96, 256)).astype(np.float32)
    squares = x.reshape(96, 16, 16).astype(np.float64)
    executable = mlirhlo.compile(mlirhlo.parse(text), debug=debug)
    for _ in range(3):
        found = np.asarray(executable(x))
        np.testing.assert_allclose(
            found, (squares @ squares).reshape(96, 256), rtol=1e-4, atol=1e-4
        )
    (strands,) = strands_of(text)
    assert strands is not None
    assert strands.rounds == 96
    assert 1 < strands.count <= 96


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    ("body", "said"), [(PRODUCT + UPDATE, ""), (PRODUCT + WHOLE, SAYS)], ids=["unsaid", "whole"]
)
def test_other_loops_go_round_by_round(body: str, said: str) -> None:
    text = program(body, said)
    assert strands_of(text) == [None]
    x = np.random.default_rng(0).normal(size=(96, 256)).astype(np.float32)
    module = mlirhlo.parse(text)
    np.testing.assert_allclose(
        np.asarray(mlirhlo.compile(module)(x)),
        np.asarray(mlirhlo.run(module, x)),
        rtol=1e-4,
        atol=1e-4,
    )


def test_slices_of_parameters_are_read_where_they_are() -> None:
    """Rows of a parameter at clamped places, before, in and after a loop."""
    text = """
module @slices {
  func.func public @main(%x: tensor<9x4x16xf32>, %i: tensor<i32>) -> (tensor<4x16xf32>, tensor<2x4x16xf32>) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %zeros = stablehlo.constant dense<0.0> : tensor<4x16xf32>
    %r:2 = stablehlo.while(%n = %c, %s = %zeros) : tensor<i32>, tensor<4x16xf32>
    cond {
      %t = stablehlo.compare LT, %n, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %t : tensor<i1>
    } do {
      %row = stablehlo.dynamic_slice %x, %n, %c, %c, sizes = [1, 4, 16]
        : (tensor<9x4x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x16xf32>
      %flat = stablehlo.reshape %row : (tensor<1x4x16xf32>) -> tensor<4x16xf32>
      %square = stablehlo.dot_general %flat, %flat, contracting_dims = [1] x [1]
        : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x4xf32>
      %back = stablehlo.dot_general %square, %flat, contracting_dims = [1] x [0]
        : (tensor<4x4xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
      %sum = stablehlo.add %s, %back : tensor<4x16xf32>
      %next = stablehlo.add %n, %one : tensor<i32>
      stablehlo.return %next, %sum : tensor<i32>, tensor<4x16xf32>
    }
    %two = stablehlo.dynamic_slice %x, %i, %c, %c, sizes = [2, 4, 16]
      : (tensor<9x4x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x4x16xf32>
    %turned = stablehlo.reverse %two, dims = [0] : tensor<2x4x16xf32>
    return %r#1, %turned : tensor<4x16xf32>, tensor<2x4x16xf32>
  }
}
"""
    module = mlirhlo.parse(text)
    plan = lower(module.op).plan
    inside = [step for loop in plan.steps if isinstance(loop, While) for step in loop.body]
    assert any(isinstance(step, Slice) for step in inside)
    x = np.random.default_rng(0).normal(size=(9, 4, 16)).astype(np.float32)
    for debug in (False, True):
        executable = mlirhlo.compile(module, debug=debug)
        for at in (0, 3, 20, -5):
            number = np.int32(min(at, 9))
            for a, b in zip(executable(x, number), mlirhlo.run(module, x, number), strict=True):
                np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-4)
