"""Kernels of dots and convolutions as machine code, against the interpreter."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import IntegerAttr, ModuleOp

import mlirhlo
from mlirhlo.dialects.hlo.ops import ConvolutionOp, TupleOp
from mlirhlo.lowering.builder import WORKSPACE
from mlirhlo.lowering.cpu.compiler import lower
from mlirhlo.lowering.hlo_to_loops.contractions.convolution import of_convolution
from mlirhlo.lowering.hlo_to_loops.contractions.kernels import contraction_kernel
from mlirhlo.lowering.hlo_to_loops.helpers import helpers_of
from mlirhlo.lowering.hlo_to_loops.loop_kernels import Output, array
from mlirhlo.lowering.llvm_text import print_llvm
from mlirhlo.lowering.loops_to_llvm import convert_to_llvm
from mlirhlo.runtime.jit import Library, compile_object
from mlirhlo.runtime.threads import externals

pytest.importorskip("llvmlite")

Array = np.ndarray[Any, Any]

TOLERANCES = {
    "float32": 3e-6,
    "float64": 1e-13,
    "complex64": 4e-6,
    "complex128": 1e-13,
    "float16": 2e-3,
    "bfloat16": 1e-2,
}
"""Of the greatest absolute value: sums are made in another order."""


def run(module: mlirhlo.Module, arguments: list[Array], like: list[Array]) -> list[Array]:
    """Results of an entry that is one kernel; the memory it gets is full of NaN before."""
    entry = module.hlo.entry
    parts = entry.root.inputs if isinstance(entry.root, TupleOp) else [entry.root.output]
    kernel = contraction_kernel(
        "kernel", [Output(p, array(p)) for p in parts], [p.output for p in entry.parameters]
    )
    assert kernel is not None
    loops = ModuleOp([*helpers_of([kernel]), kernel])
    loops.verify()
    code = convert_to_llvm(loops, features={"prefer-vector-width": "512"})
    code.verify()
    text = print_llvm(code)
    library = Library([compile_object(text)], ["kernel"], externals(text))
    size = kernel.attributes.get(WORKSPACE)
    room = np.full((size.value.data if isinstance(size, IntegerAttr) else 0) + 128, 0xFF, np.uint8)
    start = -(-room.ctypes.data // 64) * 64
    orders = [array(p.output) for p in entry.parameters]
    inputs = [_in_memory(a, s) for a, s in zip(arguments, orders, strict=True)]
    results = [np.full(_physical(array(p)), 0x55, np.uint8) for p in parts]
    pointers = [x.ctypes.data for x in (*inputs, *results)]
    if isinstance(size, IntegerAttr):
        pointers.append(start)
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(pointers))(library.address("kernel"))(*pointers)
    return [
        _out_of_memory(r, array(p), e.dtype) for r, p, e in zip(results, parts, like, strict=True)
    ]


def _order(shape: Any) -> tuple[int, ...]:
    return (
        tuple(reversed(shape.layout.minor_to_major)) if shape.layout else tuple(range(shape.rank))
    )


def _in_memory(values: Array, shape: Any) -> Array:
    return np.ascontiguousarray(values.transpose(_order(shape)))


def _physical(shape: Any) -> int:
    return int(shape.element_count * shape.element_type.byte_size)


def _out_of_memory(data: Array, shape: Any, dtype: Any) -> Array:
    order = _order(shape)
    physical = data.view(dtype).reshape([shape.dimensions[d] for d in order])
    return physical.transpose(np.argsort(order))


def draw(rng: np.random.Generator, shape: Any) -> Array:
    dtype: Any = shape.element_type.dtype
    size = shape.dimensions
    if dtype == np.bool_:
        return rng.integers(0, 2, size).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(max(info.min, -1000), min(info.max, 1000), size).astype(dtype)
    if dtype.name.startswith(("int", "uint")):
        return rng.integers(0, 4, size).astype(dtype)
    values = rng.normal(size=size)
    return (values + 1j * rng.normal(size=size) if dtype.kind == "c" else values).astype(dtype)


def agrees(text: str, seed: int = 0) -> None:
    """Runs a module and compares."""
    module = mlirhlo.parse(text)
    rng = np.random.default_rng(seed)
    arguments = [draw(rng, p.shape) for p in module.hlo.entry.parameters]
    expected = module(*arguments)
    wanted = [np.asarray(e) for e in (expected if isinstance(expected, tuple) else (expected,))]
    for actual, want in zip(run(module, arguments, wanted), wanted, strict=True):
        assert actual.shape == want.shape
        tolerance = TOLERANCES.get(want.dtype.name)
        if tolerance is None or not want.size:
            assert np.array_equal(actual, want), text
        else:
            kind: Any = np.complex128 if want.dtype.kind == "c" else np.float64
            apart = np.abs(actual.astype(kind) - want.astype(kind)).max()
            assert apart <= tolerance * max(np.abs(want.astype(kind)).max(), 1e-30), text


MATRICES = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
TURNED = "lhs_contracting_dims={0}, rhs_contracting_dims={0}"
TYPES = ("f32", "f64", "c64", "c128", "s32", "s64", "u8", "s8", "u16", "pred", "f16", "bf16")


def dot(element: str, rows: int, depth: int, columns: int) -> str:
    shapes = f"{element}[{rows},{depth}] x, {element}[{depth},{columns}] y"
    return f"{element}[{rows},{columns}] dot({shapes}), {MATRICES}"


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("sizes", [(5, 7, 3), (1, 50, 40), (67, 130, 70)])
def test_dots_of_every_type(element: str, sizes: tuple[int, int, int]) -> None:
    agrees(dot(element, *sizes))


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("element", ["f32", "f64", "s32"])
@pytest.mark.parametrize("rows", [2052, 6588])
def test_blocks_of_turned_rows_are_whole_tiles(element: str, rows: int) -> None:
    """What is packed in whole vectors is a multiple of both: rows of tiles that are none were left out."""
    shapes = f"{element}[40,{rows}] x, {element}[40,100] y"
    agrees(f"{element}[{rows},100] dot({shapes}), {TURNED}")


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("element", ["f32", "c64", "s32", "bf16", "s8"])
@pytest.mark.parametrize(
    "form",
    [
        "E[33,40] dot(E[20,33] x, E[40,20] y), lhs_contracting_dims={0}, rhs_contracting_dims={1}",
        "E[65,40] dot(E[65,37] x, E[40,37] y), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
        (
            "E[3,65,40] dot(E[3,65,37] x, E[3,40,37] y), lhs_batch_dims={0}, rhs_batch_dims={0}, "
            "lhs_contracting_dims={2}, rhs_contracting_dims={2}"
        ),
        (
            "E[2,5,4,6] dot(E[5,2,7,3] x, E[2,4,7,3,6] y), lhs_batch_dims={1}, rhs_batch_dims={0}, "
            "lhs_contracting_dims={2,3}, rhs_contracting_dims={2,3}"
        ),
        "E[33,40]{0,1} dot(E[33,70]{0,1} x, E[70,40]{0,1} y), " + MATRICES,
        (
            "E[33,5,40]{0,2,1} dot(E[33,5,70] x, E[70,40] y), lhs_contracting_dims={2}, "
            "rhs_contracting_dims={0}"
        ),
        (
            "E[3,20,24]{0,2,1} dot(E[3,20,9] x, E[3,9,24] y), lhs_batch_dims={0}, "
            "rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}"
        ),
        "E[] dot(E[50] x, E[50] y), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
        "E[5,6] dot(E[5] x, E[6] y)",
        "E[5,6] dot(E[5,0] x, E[0,6] y), " + MATRICES,
        "E[0,6] dot(E[0,3] x, E[3,6] y), " + MATRICES,
    ],
)
def test_dots_of_every_form(element: str, form: str) -> None:
    agrees(form.replace("E", element))


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    "text",
    [
        "s32[33,40] dot(u8[33,70] x, s8[70,40] y), " + MATRICES,
        "f32[33,40] dot(bf16[33,70] x, bf16[70,40] y), " + MATRICES,
        "f32[33,40] dot(f8e4m3fn[33,70] x, f8e5m2[70,40] y), " + MATRICES,
        "s8[33,40] dot(s4[33,70] x, u4[70,40] y), " + MATRICES,
        "f32[33,40] dot(s8[33,70] x, f32[70,40] y), " + MATRICES,
        "f32[33,40] dot(f32[33,70] x, f32[70,40] y), algorithm=dot_bf16_bf16_f32, " + MATRICES,
        "f32[33,40] dot(f32[33,70] x, f32[70,40] y), algorithm=dot_tf32_tf32_f32, " + MATRICES,
        (
            "c64[2,9,7]{0,2,1} dot(c64[5,2,6]{1,2,0} x, c64[6,9,2,5,7]{3,0,2,1,4} y), "
            "lhs_batch_dims={1}, lhs_contracting_dims={0,2}, rhs_batch_dims={2}, "
            "rhs_contracting_dims={3,0}"
        ),
        "f32[300,10] dot(f32[300,2100] x, f32[2100,10] y), " + MATRICES,
        "f32[130,200] dot(f32[130,1024] x, f32[1024,200] y), " + MATRICES,
    ],
)
def test_dots_of_mixed_types_algorithms_and_depths(text: str) -> None:
    agrees(text)


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
        _shape("f32", [array[d] for d in order], data)
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
            shapes.append(_shape("f32", [dims[d] for d in order], data))
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


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("element", ["f32", "f64", "bf16", "s32", "s8"])
@pytest.mark.parametrize(
    "form",
    [
        "E[37] dot(E[37,100] x, E[100] y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "E[37] dot(E[100] x, E[100,37] y), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
        (
            "E[3,2,21] dot(E[3,2,150] x, E[3,21,150] y), lhs_batch_dims={0}, rhs_batch_dims={0}, "
            "lhs_contracting_dims={2}, rhs_contracting_dims={2}"
        ),
    ],
)
def test_few_rows(element: str, form: str) -> None:
    agrees(form.replace("E", element))


FUSED = """HloModule fused
ENTRY e {
  x = T[M,K] parameter(0)
  y = T[K,N] parameter(1)
  bias = T[N] parameter(2)
  residual = T[M,N] parameter(3)
  d = T[M,N] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  wide = T[M,N] broadcast(bias), dimensions={1}
  s = T[M,N] add(d, wide)
  t = T[M,N] tanh(s)
  r = T[M,N] add(t, residual)
  ROOT c = bf16[M,N] convert(r)
}
"""


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("element", ["f32", "bf16"])
@pytest.mark.parametrize("sizes", [(7, 5, 40), (70, 600, 100)])
def test_what_comes_after_a_dot(element: str, sizes: tuple[int, int, int]) -> None:
    text = FUSED.replace("T[", f"{element}[")
    for name, size in zip("MKN", sizes, strict=True):
        text = text.replace(f"[{name},", f"[{size},").replace(f"{name}]", f"{size}]")
    agrees(text)


def test_what_is_read_beside_a_tile_is_asked_for_row_by_row() -> None:
    """Into the second cache, in the loop over the rows of the tile above, where results are stored."""
    module = mlirhlo.parse("""ENTRY e {
  x = f32[640,64] parameter(0)
  y = f32[64,256] parameter(1)
  residual = f32[640,256] parameter(2)
  d = f32[640,256] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[640,256] add(d, residual)
}
""")
    entry = module.hlo.entry
    root = entry.root.output
    kernel = contraction_kernel(
        "kernel", [Output(root, array(root))], [p.output for p in entry.parameters]
    )
    assert kernel is not None
    asked = [op for op in kernel.walk() if op.name == "memref.prefetch"]
    assert all("locality<2>" in str(op) for op in asked)
    (rows,) = {op.parent for op in asked}
    assert rows is not None
    assert any("vector.store" in str(op) for op in rows.ops)


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("then", ["1,40", "40,1", "1,40,1"])
def test_dimensions_of_one_element_come_and_go_after_a_dot(then: str) -> None:
    agrees(
        f"""ENTRY e {{
  x = f32[70] parameter(0)
  y = f32[70,40] parameter(1)
  z = f32[{then}] parameter(2)
  d = f32[40] dot(x, y), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
  r = f32[{then}] reshape(d)
  s = f32[{then}] multiply(r, z)
  ROOT t = f32[40] reshape(s)
}}
"""
    )


def test_several_results_share_the_sums() -> None:
    agrees("""HloModule several
ENTRY e {
  x = f32[40,24] parameter(0)
  y = f32[24,50] parameter(1)
  d = f32[40,50] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  zero = f32[] constant(0)
  zeros = f32[40,50] broadcast(zero), dimensions={}
  positive = pred[40,50] compare(d, zeros), direction=GT
  relu = f32[40,50] maximum(d, zeros)
  ROOT t = (pred[40,50], f32[40,50]) tuple(positive, relu)
}
""")


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("after", ["t", "r"])
def test_a_result_is_stored_transposed(after: str) -> None:
    agrees(
        """HloModule turned
ENTRY e {
  x = f32[3,20,24] parameter(0)
  y = f32[3,24,50] parameter(1)
  bias = f32[50] parameter(2)
  d = f32[3,20,50] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2},
    rhs_contracting_dims={1}
  ROOT t = f32[20,50,3] transpose(d), dimensions={1,2,0}
  w = f32[3,20,50] broadcast(bias), dimensions={2}
  s = f32[3,20,50] add(d, w)
  u = f32[20,3,50] transpose(s), dimensions={1,0,2}
  r = f32[20,3,50] tanh(u)
}
""".replace("ROOT ", "").replace(f"  {after} =", f"  ROOT {after} =")
    )


def test_what_comes_before_a_dot_is_packed() -> None:
    agrees("""HloModule before
ENTRY e {
  x = s8[24,40] parameter(0)
  scale = f32[40] parameter(1)
  y = f32[50,2,12] parameter(2)
  f = f32[24,40] convert(x)
  wide = f32[24,40] broadcast(scale), dimensions={1}
  scaled = f32[24,40] multiply(f, wide)
  turned = f32[40,24] transpose(scaled), dimensions={1,0}
  e = f32[50,2,12] exponential(y)
  flat = f32[50,24] reshape(e)
  ROOT d = f32[40,50] dot(turned, flat), lhs_contracting_dims={1}, rhs_contracting_dims={1}
}
""")


def _shape(element: str, sizes: list[int], data: st.DataObject) -> str:
    layout = ",".join(map(str, data.draw(st.permutations(range(len(sizes))))))
    return f"{element}[{','.join(map(str, sizes))}]" + (f"{{{layout}}}" if layout else "")


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(("weight", "contracted"), [("24,96", 0), ("96,24", 1)])
def test_what_every_round_multiplies_by_stands_in_panels(weight: str, contracted: int) -> None:
    text = f"""HloModule loop
body {{
  s = (s32[], f32[40,24], f32[{weight}]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[40,24] get-tuple-element(s), index=1
  w = f32[{weight}] get-tuple-element(s), index=2
  d = f32[40,96] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{{contracted}}}
  t = f32[40,96] tanh(d)
  y = f32[40,24] slice(t), slice={{[0:40], [30:54]}}
  ROOT r = (s32[], f32[40,24], f32[{weight}]) tuple(next, y, w)
}}
condition {{
  s = (s32[], f32[40,24], f32[{weight}]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(6)
  ROOT c = pred[] compare(i, n), direction=LT
}}
ENTRY e {{
  zero = s32[] constant(0)
  x = f32[40,24] parameter(0)
  w = f32[{weight}] parameter(1)
  st = (s32[], f32[40,24], f32[{weight}]) tuple(zero, x, w)
  l = (s32[], f32[40,24], f32[{weight}]) while(st), condition=condition, body=body
  ROOT y = f32[40,24] get-tuple-element(l), index=1
}}"""
    module = mlirhlo.parse(text)
    assert "3x24x32" in str(lower(module.op).fused)
    rng = np.random.default_rng(0)
    rows, columns = map(int, weight.split(","))
    x, w = (
        draw(rng, array(module.hlo.entry.parameters[0].output)),
        rng.random((rows, columns), np.float32) - 0.5,
    )
    np.testing.assert_allclose(mlirhlo.compile(module)(x, w), module(x, w), rtol=0, atol=1e-5)


def test_contractions_share_micro_kernels() -> None:
    module = mlirhlo.parse("""HloModule shared
ENTRY e {
  x = f32[64,64] parameter(0)
  y = f32[64,64] parameter(1)
  a = f32[64,64] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT b = f32[64,64] dot(a, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}
}
""")
    loops = str(lower(module.op).loops)
    assert loops.count("func.func private @tile_") == 1
    assert loops.count("call @tile_") == 2


@pytest.mark.slow
@settings(max_examples=40, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(st.data())
def test_any_dimension_numbers(data: st.DataObject) -> None:
    """Batch, contracting and free dimensions in any order, operands and result in any layout."""
    element = data.draw(st.sampled_from(["f32", "bf16", "s8", "c64", "s32"]))
    sizes = st.sampled_from([1, 2, 3, 5, 8, 16, 17, 33])
    batch = [data.draw(sizes.filter(lambda n: n < 9)) for _ in range(data.draw(st.integers(0, 2)))]
    depth = [data.draw(sizes) for _ in range(data.draw(st.integers(0, 2)))]
    free = [[data.draw(sizes) for _ in range(data.draw(st.integers(0, 2)))] for _ in range(2)]
    operands: list[str] = []
    attributes: list[str] = []
    for number, side in enumerate(("lhs", "rhs")):
        parts = [("b", i, n) for i, n in enumerate(batch)] + [
            ("d", i, n) for i, n in enumerate(depth)
        ]
        parts += [("f", i, n) for i, n in enumerate(free[number])]
        frees = [p for p in parts if p[0] == "f"]
        order = data.draw(st.permutations(parts))
        # Free dimensions of the result come in the operand's order.
        free[number] = [p[2] for p in order if p in frees]
        where = {p[:2]: at for at, p in enumerate(order)}
        operands.append(f"{_shape(element, [p[2] for p in order], data)} p{number}")
        for kind, name in (("b", "batch"), ("d", "contracting")):
            numbers = [where[kind, i] for i in range(len(batch if kind == "b" else depth))]
            if numbers:
                attributes.append(f"{side}_{name}_dims={{{','.join(map(str, numbers))}}}")
    shape = _shape(element, [*batch, *free[0], *free[1]], data)
    agrees(", ".join([f"{shape} dot({', '.join(operands)})", *attributes]))


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("element", ["f32", "bf16", "c64", "s8"])
@pytest.mark.parametrize(
    ("lhs", "rhs", "left", "right"),
    [
        ("6,5,7,3", "4,5,9,3", "1,3", "1,3"),
        ("6,5,7,3", "4,3,16,5", "1,3", "3,1"),
        ("5,7,3,6", "3,9,5,18", "0,2", "2,0"),
        ("5,7,3,6", "3,2,5,4,3,6", "0,2", "2,0"),
    ],
)
def test_columns_with_other_axes_between(
    element: str, lhs: str, rhs: str, left: str, right: str
) -> None:
    """They are packed as one axis, whatever lies between them in memory."""
    kept = [
        size
        for sizes, dims in ((lhs, left), (rhs, right))
        for d, size in enumerate(sizes.split(","))
        if str(d) not in dims
    ]
    agrees(f"""HloModule m
ENTRY e {{
  x = {element}[{lhs}] parameter(0)
  y = {element}[{rhs}] parameter(1)
  ROOT d = {element}[{",".join(kept)}] dot(x, y), lhs_contracting_dims={{{left}}}, rhs_contracting_dims={{{right}}}
}}
""")
