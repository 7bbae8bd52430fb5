"""Kernels of convolutions as machine code, against the interpreter."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from unit.lowering.contraction_support import (
    agrees,
    drawn_shape,
)

import mlirhlo
from mlirhlo.dialects.hlo.ops import ConvolutionOp
from mlirhlo.lowering.hlo_to_loops.contractions.convolution import of_convolution

pytest.importorskip("llvmlite")


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("element", ["f32", "bf16", "s8"])
@pytest.mark.parametrize(
    "form",
    [
        (
            "R[2,9,9,20] convolution(E[2,9,9,5] x, E[3,3,5,20] y), window={size=3x3 pad=1_1x1_1}, "
            "dim_labels=b01f_01io->b01f"
        ),
        (
            "R[2,4,4,20] convolution(E[2,9,9,33] x, E[3,3,33,20] y), window={size=3x3 stride=2x2}, "
            "dim_labels=b01f_01io->b01f"
        ),
        (
            "R[2,20,9,9] convolution(E[2,5,9,9] x, E[20,5,3,3] y), window={size=3x3 pad=1_1x1_1}, "
            "dim_labels=bf01_oi01->bf01"
        ),
        (
            "R[2,9,9,40] convolution(E[2,9,9,64] x, E[1,1,64,40] y), window={size=1x1}, "
            "dim_labels=b01f_01io->b01f"
        ),
        (
            "R[1,9,12] convolution(E[1,5,4] x, E[3,2,12] y), feature_group_count=2, "
            "window={size=3 pad=1_1 lhs_dilate=2 rhs_reversal=1}, dim_labels=b0f_0io->b0f"
        ),
        (
            "R[2,7,8] convolution(E[4,9,3] x, E[3,3,8] y), window={size=3}, "
            "dim_labels=b0f_0io->b0f, batch_group_count=2"
        ),
        (
            "R[3,3,5,20] convolution(E[2,9,9,5] x, E[2,9,9,20] y), "
            "window={size=9x9 pad=1_1x1_1}, dim_labels=f01b_i01o->01bf"
        ),
        (
            "R[2,7,7,7,18] convolution(E[2,9,9,9,3] x, E[3,3,3,3,18] y), window={size=3x3x3}, "
            "dim_labels=b012f_012io->b012f"
        ),
        (
            "R[2,8,20] convolution(E[2,9,9] x, E[3,9,20] y), window={size=3 pad=-1_2}, "
            "dim_labels=b0f_0io->b0f"
        ),
        (
            "R[2,5,20] convolution(E[2,9,9] x, E[3,9,20] y), window={size=3 rhs_dilate=2}, "
            "dim_labels=b0f_0io->b0f"
        ),
        (
            "R[2,9,31,32] convolution(E[2,9,31,16] x, E[3,3,16,32] y), "
            "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"
        ),
        (
            "R[1,5,15,32] convolution(E[1,11,30,5] x, E[4,5,5,32] y), "
            "window={size=4x5 stride=2x2 pad=2_0x0_3}, dim_labels=b01f_01io->b01f"
        ),
        (
            "R[1,7,18,48] convolution(E[1,8,20,16] x, E[2,3,16,48] y), window={size=2x3}, "
            "dim_labels=b01f_01io->b01f"
        ),
    ],
)
def test_convolutions_of_every_form(element: str, form: str) -> None:
    agrees(form.replace("R", "s32" if element == "s8" else element).replace("E", element))


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("padding", ["2_1", "-1_3"])
@pytest.mark.parametrize(
    ("lhs_dilate", "rhs_dilate", "size", "reverse"),
    [(2, 1, 3, 0), (2, 2, 3, 0), (3, 1, 2, 1), (2, 1, 1, 0), (4, 3, 5, 1), (3, 2, 4, 0)],
)
def test_dilated_inputs_go_by_phases(
    padding: str, lhs_dilate: int, rhs_dilate: int, size: int, reverse: int
) -> None:
    low, high = map(int, padding.split("_"))
    out = 5 * lhs_dilate + 1 + low + high - (size - 1) * rhs_dilate
    window = (
        f"size={size}x{size} pad={padding}x{padding} lhs_dilate={lhs_dilate}x{lhs_dilate} "
        f"rhs_dilate={rhs_dilate}x{rhs_dilate} rhs_reversal={reverse}x{reverse}"
    )
    agrees(
        f"f32[2,{out},{out},20] convolution(f32[2,6,6,5] x, f32[{size},{size},5,20] y), "
        f"window={{{window}}}, dim_labels=b01f_01io->b01f"
    )


@settings(max_examples=40, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(st.data())
def test_inputs_dilated_by_any_number(data: st.DataObject) -> None:
    """Windows, paddings and dilations of any two dimensions, in any order, of one group or three."""
    groups = data.draw(st.sampled_from([1, 1, 3]))
    batch, features, outputs = 2, data.draw(st.integers(1, 5)), data.draw(st.sampled_from([4, 17]))
    parts: dict[str, list[str]] = {k: [] for k in ("size", "pad", "lhs_dilate", "rhs_dilate")}
    parts["rhs_reversal"] = []
    sizes: list[tuple[int, int, int]] = []
    for _ in range(2):
        count, base = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 17))
        size, apart = data.draw(st.integers(1, 18)), data.draw(st.sampled_from([1, 1, 1, 2, 3]))
        inner, reach = (count - 1) * base + 1, (size - 1) * apart + 1
        low = data.draw(st.integers(max(-2, 1 - inner), 17))
        high = data.draw(st.integers(max(-1, reach - inner - low), max(5, reach - inner - low)))
        values = (size, f"{low}_{high}", base, apart, data.draw(st.integers(0, 1)))
        for key, value in zip(parts, values, strict=True):
            parts[key].append(str(value))
        sizes.append((count, size, inner + low + high - reach + 1))
    window = " ".join(f"{key}={'x'.join(values)}" for key, values in parts.items())
    (a, k, m), (b, n, o) = sizes
    arrays = (
        {"b": batch, "f": features * groups, "0": a, "1": b},
        {"i": features, "o": outputs * groups, "0": k, "1": n},
        {"b": batch, "f": outputs * groups, "0": m, "1": o},
    )
    orders = [data.draw(st.permutations(list(array))) for array in arrays]
    left, right, own = (
        drawn_shape("f32", [array[d] for d in order], data)
        for array, order in zip(arrays, orders, strict=True)
    )
    labels = ["".join(order) for order in orders]
    agrees(
        f"{own} convolution({left} x, {right} y), window={{{window}}}, "
        f"dim_labels={labels[0]}_{labels[1]}->{labels[2]}, feature_group_count={groups}"
    )


@settings(max_examples=40, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(st.data())
def test_convolutions_of_many_rows(data: st.DataObject) -> None:
    """Enough for packed columns: transposed, dilated, cropped, strided and grouped windows of one or two dimensions."""
    by_feature, by_batch = data.draw(st.sampled_from([(1, 1)] * 6 + [(3, 1), (1, 2)]))
    features, outputs = data.draw(st.integers(1, 4)), data.draw(st.sampled_from([4, 5, 17]))
    keys = ("size", "pad", "lhs_dilate", "rhs_dilate", "stride", "rhs_reversal")
    windows: list[tuple[Any, ...]] = []
    sizes: list[tuple[int, int, int]] = []
    for _ in range(data.draw(st.sampled_from([1, 1, 2]))):
        size, base = data.draw(st.integers(1, 5)), data.draw(st.sampled_from([1, 2, 3, 3, 4]))
        apart, stride = data.draw(st.sampled_from([(1, 1)] * 6 + [(2, 1), (3, 1), (1, 2)]))
        count = data.draw(st.integers(2, 5))
        inner, reach = (count - 1) * base + 1, (size - 1) * apart + 1
        low = data.draw(st.integers(max(-2, 1 - inner), 4))
        high = data.draw(st.integers(max(-2, reach - inner - low), max(4, reach - inner - low)))
        reversal = data.draw(st.sampled_from([0, 0, 0, 1]))
        windows.append((size, f"{low}_{high}", base, apart, stride, reversal))
        sizes.append((count, size, (inner + low + high - reach) // stride + 1))
    window = " ".join(
        f"{key}={'x'.join(map(str, values))}"
        for key, values in zip(keys, zip(*windows, strict=True), strict=True)
    )
    arrays = (
        {"b": 36 * by_batch, "f": features * by_feature},
        {"i": features, "o": outputs * by_feature * by_batch},
        {"b": 36, "f": outputs * by_feature * by_batch},
    )
    in_any_order = data.draw(st.sampled_from([False, False, True]))
    shapes: list[str] = []
    labels: list[str] = []
    for at, array_ in enumerate(arrays):
        dims = {**array_, **{str(d): extents[at] for d, extents in enumerate(sizes)}}
        order = sorted(dims, key="b01iof".index)
        if in_any_order:
            order = data.draw(st.permutations(order))
            shapes.append(drawn_shape("f32", [dims[d] for d in order], data))
        else:
            shapes.append(f"f32[{','.join(str(dims[d]) for d in order)}]")
        labels.append("".join(order))
    left, right, own = shapes
    agrees(
        f"{own} convolution({left} x, {right} y), window={{{window}}}, "
        f"dim_labels={labels[0]}_{labels[1]}->{labels[2]}, "
        f"feature_group_count={by_feature}, batch_group_count={by_batch}"
    )


def test_windows_along_a_line_of_rows_in_two_axes() -> None:
    """Found as such only after axes were put in order: lines are copied for rows of one axis."""
    agrees(
        "f32[2,8,8,51]{2,1,3,0} convolution(f32[2,3,2,12]{1,3,0,2} x, f32[12,51,4,12]{2,0,1,3} y), "
        "window={size=12x12 pad=11_5x12_0 lhs_dilate=1x6 rhs_reversal=0x1}, "
        "dim_labels=b01f_1oi0->b01f, feature_group_count=3"
    )


def test_neighbouring_phases_are_one_contraction() -> None:
    """As many as there are places in a window would take as many packed inputs, and as much code."""
    module = mlirhlo.parse("""
ENTRY e {
  x = f32[2,4,4,32] parameter(0)
  y = f32[16,16,32,3] parameter(1)
  ROOT c = f32[2,64,64,3] convolution(x, y), window={size=16x16 pad=15_15x15_15 lhs_dilate=16x16},
    dim_labels=b01f_01io->b01f
}
""")
    (op,) = (o for o in module.hlo.entry.instructions if isinstance(o, ConvolutionOp))
    (found,) = of_convolution(op, list(op.inputs))
    assert found.count(found.rows) == 2 * 4 * 4
    assert found.count(found.columns) == 16 * 16 * 3
    assert found.count(found.depth) == 32


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    "text",
    [
        (
            "f32[2,11,13,5] convolution(f32[2,5,4,3] x, f32[3,4,3,5] y), "
            "window={size=3x4 pad=2_2x3_3 lhs_dilate=2x3}, dim_labels=b01f_01io->b01f"
        ),
        (
            "f32[40,13,5] convolution(f32[40,4,3] x, f32[4,3,5] y), "
            "window={size=4 pad=3_3 lhs_dilate=3}, dim_labels=b0f_0io->b0f"
        ),
        (
            "f32[2,20,11,6] convolution(f32[2,5,6,6] x, f32[20,5,3,3] y), "
            "window={size=3x3 pad=1_1x1_1 lhs_dilate=2x1}, dim_labels=bf01_oi01->bf01"
        ),
        (
            "f32[2,3,20] convolution(f32[2,0,5] x, f32[2,5,20] y), window={size=2 pad=2_2}, "
            "dim_labels=b0f_0io->b0f"
        ),
    ],
)
def test_convolutions_of_other_inputs(text: str) -> None:
    agrees(text)
