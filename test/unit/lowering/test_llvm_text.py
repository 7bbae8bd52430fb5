"""Constants in LLVM's text."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, VectorType, f32, i8

from mlirhlo.lowering.llvm_module_text import ModuleText
from mlirhlo.lowering.llvm_text import WRITERS


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([0.0, 0.0], "splat (float 0x0000000000000000)"),
        ([-0.0, -0.0], "splat (float 0x8000000000000000)"),
        # Equal, and yet not the same.
        ([0.0, -0.0], "<float 0x0000000000000000, float 0x8000000000000000>"),
        ([1.0, 2.0], "<float 0x3FF0000000000000, float 0x4000000000000000>"),
    ],
)
def test_lanes_that_are_the_same_are_written_once(numbers: list[float], text: str) -> None:
    type_ = VectorType(f32, [len(numbers)])
    constant = DenseIntOrFPElementsAttr.from_list(type_, numbers)
    assert ModuleText(WRITERS).constant(constant, type_) == text


def test_integers_are_signed() -> None:
    type_ = VectorType(i8, [2])
    assert ModuleText(WRITERS).constant(
        DenseIntOrFPElementsAttr.from_list(type_, [255, 1]), type_
    ) == ("<i8 -1, i8 1>")
