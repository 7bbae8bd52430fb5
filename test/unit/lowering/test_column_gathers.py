"""Gathers along the last dimension as machine code, against the interpreter, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

import mlirhlo
from mlirhlo.interp.fake_data import make_fake_arguments
from mlirhlo.lowering.cpu.compiler import lower

pytest.importorskip("llvmlite")


def text(type_: str, index: str, sizes: tuple[int, ...], count: int, after: str = "") -> str:
    """Columns of an array of any rank."""
    lines = sizes[:-1]
    last, shape = len(lines), ",".join(map(str, (*lines, count)))
    offsets, slices = ",".join(map(str, range(last))), ",".join(map(str, (*lines, 1)))
    return f"""HloModule m
ENTRY e {{
  x = {type_}[{",".join(map(str, sizes))}] parameter(0)
  i = {index}[{count},1] parameter(1)
  {"ROOT " if not after else ""}g = {type_}[{shape}] gather(x, i), offset_dims={{{offsets}}},
    collapsed_slice_dims={{{last}}}, start_index_map={{{last}}}, index_vector_dim=1, slice_sizes={{{slices}}}
  {after.format(shape=f"{type_}[{shape}]")}
}}
"""


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("type_", ["f32", "f64", "f16", "bf16", "c64", "c128", "s4", "u8", "pred"])
@pytest.mark.parametrize("sizes", [(9, 40), (8, 3), (2, 5, 1), (3, 4, 70), (1, 50)])
def test_columns(type_: str, sizes: tuple[int, ...]) -> None:
    """Counts that are no whole vectors, lines that are no whole blocks, and start indices outside."""
    for count in (1, 4, 5, 8, 23, 64):
        module = mlirhlo.parse(text(type_, "s32", sizes, count))
        x, _ = make_fake_arguments(module.op, seed=count)
        indices = np.random.default_rng(count).integers(-3, sizes[-1] + 3, (count, 1)).astype("i4")
        actual, expected = mlirhlo.compile(module, cached=False)(x, indices), module(x, indices)
        assert np.asarray(actual).tobytes() == np.asarray(expected).tobytes()


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("index", ["s8", "u8", "u32", "s64", "u64"])
def test_indices_of_any_type(index: str) -> None:
    """The least and the greatest are clamped."""
    dtype = np.dtype({"s": "i", "u": "u"}[index[0]] + str(int(index[1:]) // 8))
    module = mlirhlo.parse(text("f32", index, (12, 200), 50))
    x, _ = make_fake_arguments(module.op, seed=3)
    info = np.iinfo(dtype)
    indices = np.random.default_rng(3).integers(0, 100, (50, 1)).astype(dtype)
    indices[:4, 0] = info.min, info.max, 0, 100
    actual = mlirhlo.compile(module, cached=False)(x, indices)
    np.testing.assert_array_equal(actual, module(x, indices))


def test_where_it_takes_loops_of_its_own() -> None:
    """Alone, not where something is computed from the elements."""
    for after, expected in (("", True), ("ROOT n = {shape} negate(g)", False)):
        module = mlirhlo.parse(text("f32", "s32", (12, 200), 50, after))
        plan = lower(module.op).plan
        kernels = " ".join(map(str, plan.kernels.values()))
        assert ("mlirhlo.workspace" in kernels) == expected
