"""Gathers and scatters with a zero among their sizes, through passes and pipelines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from support import SEED

from mlirhlo.debug.fuzz.passes import PLATFORMS, Reference
from mlirhlo.dialects.hlo.shapes import ArrayShape, parse_shape

PASSES = (
    *("gather_expander", "gather_expander{simple-only=true}", "gather_simplifier"),
    *("scatter_expander", "scatter_expander{simple-only=true}", "scatter_simplifier"),
    *("batched_gather_scatter_normalizer", "zero_sized_hlo_elimination", "algsimp", *PLATFORMS),
)
ADD = "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }"

# Operand, indices, updates or result; window dimensions, collapsed ones, index map; sizes of a slice.
FORMS = (
    ("3,4", "0,1", "0,4", "1", "0", "0", "1,4"),
    ("3,4", "2,1", "2,0", "1", "0", "0", "1,0"),
    ("3,0", "2,1", "2,0", "1", "0", "0", "1,0"),
    ("3,4", "2,0", "2,3,4", "1,2", "", "", "3,4"),
    ("3,4", "0,0", "0,3,4", "1,2", "", "", "3,4"),
    ("3,4", "2,0", "2,2,4", "1,2", "", "", "2,4"),
    ("3,4", "2,1", "2,0,4", "1,2", "", "0", "0,4"),
    ("0,4", "2,1", "2,0,4", "1,2", "", "0", "0,4"),
    ("0,4", "0,1", "0,0,4", "1,2", "", "0", "0,4"),
    ("3,4", "1,1", "1,0,4", "1,2", "", "0", "0,4"),
    ("3,4", "2,0,1", "2,0,4", "2", "0", "0", "1,4"),
)


def check(text: str, shapes: Sequence[str]) -> None:
    numbers = np.random.default_rng(SEED)
    inputs: list[np.ndarray] = []
    for shape in map(parse_shape, shapes):
        assert isinstance(shape, ArrayShape)
        low, high = (-1, 4) if shape.element_type.is_integer else (-9, 10)
        data = numbers.integers(low, high, shape.dimensions)
        inputs.append(data.astype(shape.element_type.dtype))
    reference = Reference(text, inputs)
    for pipeline in PASSES:
        failure = reference.judge(pipeline)
        assert failure is None, (pipeline, failure)


@pytest.mark.parametrize("form", FORMS)
def test_gather(form: Sequence[str]) -> None:
    operand, indices, result, window, collapsed, index_map, sizes = form
    vector = indices.count(",")
    check(
        f"HloModule m\nENTRY e {{ x = f32[{operand}] parameter(0)  i = s32[{indices}] parameter(1)\n"
        f"  ROOT g = f32[{result}] gather(x, i), offset_dims={{{window}}}, "
        f"collapsed_slice_dims={{{collapsed}}}, start_index_map={{{index_map}}}, "
        f"index_vector_dim={vector}, slice_sizes={{{sizes}}} }}",
        (f"f32[{operand}]", f"s32[{indices}]"),
    )


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("form", [*FORMS, ("0,4", "0,1", "0,4", "1", "0", "0", "")])
def test_scatter(form: Sequence[str], count: int) -> None:
    operand, indices, updates, window, inserted, index_map, _ = form
    vector = indices.count(",")
    names = ["x", "y"][:count], ["u", "v"][:count]
    shapes = [f"f32[{operand}]"] * count + [f"s32[{indices}]"] + [f"f32[{updates}]"] * count
    lines = [
        f"{name} = {shape} parameter({number})"
        for number, (name, shape) in enumerate(
            zip([*names[0], "i", *names[1]], shapes, strict=True)
        )
    ]
    result, add = f"f32[{operand}]", ADD
    if count == 2:
        result = f"({result}, {result})"
        add = (
            "add { a = f32[] parameter(0)  b = f32[] parameter(1)  c = f32[] parameter(2)\n"
            "  d = f32[] parameter(3)  e = f32[] add(a, c)  f = f32[] multiply(b, d)\n"
            "  ROOT t = (f32[], f32[]) tuple(e, f) }"
        )
    check(
        f"HloModule m\n{add}\nENTRY e {{ {'  '.join(lines)}\n"
        f"  ROOT s = {result} scatter({', '.join([*names[0], 'i', *names[1]])}), "
        f"update_window_dims={{{window}}}, inserted_window_dims={{{inserted}}}, "
        f"scatter_dims_to_operand_dims={{{index_map}}}, index_vector_dim={vector}, to_apply=add }}",
        shapes,
    )
