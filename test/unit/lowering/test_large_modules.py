"""The CPU compiler on deep, wide and many: it ends, and takes twice as many calls for twice as much."""

from __future__ import annotations

import cProfile

import numpy as np
import pytest
from large_modules import SHAPES

import mlirhlo
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp.fake_data import make_fake_arguments
from mlirhlo.lowering.cpu.compiler import lower

pytest.importorskip("llvmlite")

DEEP = ["deep_chain", "deep_comparator", "deep_fusion", "deep_reducer"]
GROWING = ["many_computations", "many_reducers", "nested_calls", "nested_fusions"]
WIDE = ["wide_fan_out", "wide_parameters", "wide_tuple"]


@pytest.mark.parametrize("shape", DEEP)
def test_depth_beyond_the_stack_of_python_gives_the_values_of_the_interpreter(shape: str) -> None:
    module = mlirhlo.parse(SHAPES[shape](1500))
    arguments = make_fake_arguments(module.op)
    want = module(*arguments)
    np.testing.assert_array_equal(mlirhlo.compile(module)(*arguments), want)


def calls(text: str) -> int:
    module = parse_module(text)
    profile = cProfile.Profile()
    profile.runcall(lower, module)
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize("shape", [*DEEP, *GROWING, *WIDE])
def test_twice_as_much_takes_twice_the_calls(shape: str) -> None:
    calls(SHAPES[shape](50))  # what is cached of shapes is there from now on
    assert calls(SHAPES[shape](800)) < 2.3 * calls(SHAPES[shape](400))
