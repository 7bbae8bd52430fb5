"""Kernels of dots as machine code, against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from unit.lowering.contraction_support import (
    MATRICES,
    TRANSPOSED,
    TYPES,
    agrees,
    dot,
    draw,
    drawn_shape,
)

import mlirhlo
from mlirhlo.lowering.cpu.compiler import lower
from mlirhlo.lowering.hlo_to_loops.contractions.kernels import contraction_kernel
from mlirhlo.lowering.hlo_to_loops.loop_kernels import Output, array
from mlirhlo.lowering.target import AVX512, using

pytest.importorskip("llvmlite")


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
    agrees(f"{element}[{rows},100] dot({shapes}), {TRANSPOSED}")


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
    with using(AVX512):
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
    with using(AVX512):
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
        operands.append(f"{drawn_shape(element, [p[2] for p in order], data)} p{number}")
        for kind, name in (("b", "batch"), ("d", "contracting")):
            numbers = [where[kind, i] for i in range(len(batch if kind == "b" else depth))]
            if numbers:
                attributes.append(f"{side}_{name}_dims={{{','.join(map(str, numbers))}}}")
    shape = drawn_shape(element, [*batch, *free[0], *free[1]], data)
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
