"""Kernels that move elements, against the interpreter: types, shapes, layouts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.lowering.kernel_support import agrees, draw, loops_of
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

import mlirhlo
from mlirhlo.lowering.cpu.compiler import lower
from mlirhlo.lowering.hlo_to_loops import kernel_frame, pointwise
from mlirhlo.lowering.loops_to_llvm import convert_to_llvm
from mlirhlo.lowering.target import AVX512, current, using

pytest.importorskip("llvmlite")

TYPES = ["f32", "f64", "bf16", "u8", "pred", "c64", "s4", "s16"]


@st.composite
def _transposes(draw_: st.DrawFn) -> tuple[str, tuple[int, ...], list[int], list[int]]:
    sizes = tuple(
        draw_(st.lists(st.sampled_from([1, 2, 5, 16, 17, 33, 70]), min_size=2, max_size=4))
    )
    order = draw_(st.permutations(range(len(sizes))))
    layout = draw_(st.permutations(range(len(sizes))))
    return draw_(st.sampled_from(TYPES)), sizes, list(order), list(layout)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(_transposes())
@pytest.mark.slow
def test_any_transpose(case: tuple[str, tuple[int, ...], list[int], list[int]]) -> None:
    type_, sizes, order, layout = case
    if np.prod(sizes) > 100_000:
        return
    to = [sizes[d] for d in order]
    whole = f"{type_}[{','.join(map(str, sizes))}]{{{','.join(map(str, layout))}}}"
    result = f"{type_}[{','.join(map(str, to))}]"
    combine = "or" if type_ == "pred" else "add"
    text = (
        f"ENTRY e {{\n  x = {whole} parameter(0)\n  y = {result} parameter(1)\n"
        f"  t = {result} transpose(x), dimensions={{{','.join(map(str, order))}}}\n"
        f"  ROOT r = {result} {combine}(t, y)\n}}\n"
    )
    rng = np.random.default_rng(0)
    agrees(text, [draw(rng, type_, sizes), draw(rng, type_, tuple(to))])


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    ("type_", "sizes", "order"),
    [
        ("f32", (3, 9, 70, 20), (0, 2, 1, 3)),
        ("bf16", (64, 8, 64), (1, 0, 2)),
        ("s16", (6, 5, 33, 17), (2, 1, 0, 3)),
        ("u8", (30, 9, 100), (1, 0, 2)),
    ],
)
def test_lines_that_stand_elsewhere_go_in_blocks(
    type_: str, sizes: tuple[int, ...], order: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pointwise, "_SMALL_BYTES", 0)
    to = ",".join(str(sizes[d]) for d in order)
    operand = f"{type_}[{','.join(map(str, sizes))}] x"
    text = f"{type_}[{to}] transpose({operand}), dimensions={{{','.join(map(str, order))}}}"
    agrees(text, [draw(np.random.default_rng(0), type_, sizes)], threads=2)


def test_a_transpose_is_turned_in_registers() -> None:
    module = mlirhlo.parse("f32[64,48] transpose(f32[48,64] x), dimensions={1,0}")
    loops = str(loops_of(module))
    assert loops.count("vector.shuffle") == 64
    assert "vector.gather" not in loops


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("step", [2, 3, 4])
def test_elements_some_way_apart(type_: str, step: int) -> None:
    """The last one is the array's last: what is read around them ends there."""
    rng = np.random.default_rng(0)
    text = f"{type_}[3,64] slice({type_}[3,{63 * step + 1}] x), slice={{[0:3],[0:{63 * step + 1}:{step}]}}"
    x = draw(rng, type_, (3, 63 * step + 1))
    agrees(text, [x])
    mlirhlo.compile(mlirhlo.parse(text), debug=True)(x)
    operand = f"{type_}[3,{63 * step + 1}]"
    backwards = f"""ENTRY e {{ x = {operand} parameter(0)
  s = {text.replace(f"{operand} x", "x")}
  ROOT r = {type_}[3,64] reverse(s), dimensions={{1}} }}
"""
    agrees(backwards, [x])
    mlirhlo.compile(mlirhlo.parse(backwards), debug=True)(x)
    sizes = (5, 70, step)
    text = f"{type_}[5,{step},70] transpose({type_}[5,70,{step}] x), dimensions={{0,2,1}}"
    agrees(text, [draw(rng, type_, sizes)])


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    "text",
    [
        "f32[3,64] slice(f32[3,190] x), slice={[0:3],[0:190:3]}",
        "f32[2,64] real(c64[2,64] x)",
        "u8[3,64] transpose(u8[64,3] x), dimensions={1,0}",
        "f32[3,64] reverse(f32[3,64] x), dimensions={1}",
        "u8[128,3] reverse(u8[128,3] x), dimensions={0}",
        "c64[64] reverse(c64[64] x), dimensions={0}",
    ],
)
def test_what_is_near_is_not_gathered(text: str) -> None:
    loops = str(loops_of(mlirhlo.parse(text)))
    assert "vector.shuffle" in loops
    assert "vector.gather" not in loops


MOVES = {
    "columns side by side": "f32[9,80] concatenate(f32[9,30] x, f32[9,50] y), dimensions={1}",
    "rows below each other": "f32[16,30] concatenate(f32[9,30] x, f32[7,30] y), dimensions={0}",
    "many": (
        "s32[10] concatenate(s32[1] a, s32[2] b, s32[1] c, s32[1] d, s32[3] e, s32[2] f), dimensions={0}"
    ),
    "edges": "f32[9,40] pad(f32[5,30] x, f32[] z), padding=1_3x4_6",
    "edges that crop": "f32[6,28] pad(f32[5,30] x, f32[] z), padding=-1_2x3_-5",
    "edges inside": "f32[12,30] pad(f32[5,30] x, f32[] z), padding=1_2_1x0_0",
    "edges inside of both": "f32[12,90] pad(f32[5,30] x, f32[] z), padding=1_2_1x1_1_2",
    "edges inside that crop": "f32[7,61] pad(f32[5,30] x, f32[] z), padding=-1_-1_1x0_2_1",
    "pieces": "f32[20,21] concatenate("
    + ", ".join(f"f32[1,21] x{n}" for n in range(20))
    + "), dimensions={0}",
    "more pieces than are regions": "s32[70,5] concatenate("
    + ", ".join(f"s32[1,5] x{n}" for n in range(70))
    + "), dimensions={0}",
    "nothing but edges": "f32[4,30] pad(f32[5,30] x, f32[] z), padding=-5_4x0_0",
    "backwards": "bf16[7,33] reverse(bf16[7,33] x), dimensions={0,1}",
    "points backwards": "f32[70,3] reverse(f32[70,3] x), dimensions={0}",
    "bytes backwards": "u8[3,200] reverse(u8[3,200] x), dimensions={1}",
    "parts backwards": "c64[3,40] reverse(c64[3,40] x), dimensions={1}",
    "rows of a table": (
        "f32[6,4,20] gather(f32[9,20] x, s32[6,4] i), offset_dims={2}, collapsed_slice_dims={0}, "
        "start_index_map={0}, index_vector_dim=2, slice_sizes={1,20}"
    ),
    "columns of a table": (
        "f32[9,6] gather(f32[9,20] x, u8[6] i), offset_dims={0}, collapsed_slice_dims={1}, "
        "start_index_map={1}, index_vector_dim=1, slice_sizes={9,1}"
    ),
}


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("name", MOVES)
def test_moves(name: str) -> None:
    module = mlirhlo.parse(MOVES[name])
    rng = np.random.default_rng(0)
    shapes: list[Any] = [p.shape for p in module.hlo.entry.parameters]
    arguments = [draw(rng, str(s).split("[")[0], s.dimensions) for s in shapes]
    agrees(MOVES[name], arguments)


def test_short_lines_have_vectors_of_their_length() -> None:
    """What is stored without a mask is found by the load that follows."""
    module = mlirhlo.parse("f32[8] sine(f32[8] x)")
    loops = str(loops_of(module))
    assert "vector<8xf32>" in loops
    assert "mask" not in loops
    agrees("f32[8] sine(f32[8] x)", [draw(np.random.default_rng(0), "f32", (8,))])


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("name", ["edges inside", "more pieces than are regions"])
def test_lines_are_chosen_whole(name: str) -> None:
    """A choice that is the same for all lanes gathers nothing."""
    assert "vector.gather" not in str(loops_of(mlirhlo.parse(MOVES[name])))


def test_blocks_through_a_chain() -> None:
    """Between the edges nothing is chosen element by element, but in the one vector that lies across an edge."""
    text = """ENTRY e {
  x = f32[9,30] parameter(0)
  y = f32[9,50] parameter(1)
  z = f32[] parameter(2)
  c = f32[9,80] concatenate(x, y), dimensions={1}
  n = f32[9,80] negate(c)
  s = f32[9,60] slice(n), slice={[0:9],[10:70]}
  ROOT p = f32[11,64] pad(s, z), padding=1_1x3_1
}
"""
    rng = np.random.default_rng(0)
    agrees(text, [draw(rng, "f32", s) for s in ((9, 30), (9, 50), ())])
    loops = loops_of(mlirhlo.parse(text))
    across = [op.parent_op() for op in loops.walk() if op.name == "arith.select"]
    assert len(across) == 1
    assert isinstance(across[0], scf.ForOp)
    assert _constant(across[0].ub) - _constant(across[0].lb) == _constant(across[0].step)


def _constant(value: SSAValue) -> int:
    assert isinstance(value.owner, arith.ConstantOp)
    assert isinstance(value.owner.value, IntegerAttr)
    return value.owner.value.value.data


STREAMED = {
    "flat": "f32[1000] add(f32[1000] x, f32[1000] y)",
    "rows": "f32[7,64] concatenate(f32[3,64] x, f32[4,64] y), dimensions={0}",
    "columns": "f32[7,64] concatenate(f32[7,16] x, f32[7,48] y), dimensions={1}",
    "turned": "f32[64,48] transpose(f32[48,64] x), dimensions={1,0}",
    "turned, with edges": "f32[2,70,64] transpose(f32[2,64,70] x), dimensions={0,2,1}",
    "narrow": "bf16[4,64] add(bf16[4,64] x, bf16[4,64] y)",
    # Lines that begin anywhere in those of the caches.
    "odd": "f32[5,1023] slice(f32[6,1100] x), slice={[1:6],[7:1030]}",
    "odd, with edges": "s32[5,1607] concatenate(s32[5,1060] x, s32[5,547] y), dimensions={1}",
    "odd, padded": "f32[2,3,601] pad(f32[2,3,590] x, f32[] y), padding=0_0x0_0x4_7",
    "odd, turned": "f32[5,6,601] transpose(f32[6,5,601] x), dimensions={1,0,2}",
    "odd, spread": "f32[3,5,700] broadcast(f32[3,700] x), dimensions={0,2}",
}


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("name", STREAMED)
@pytest.mark.parametrize("offset", [0, 4, 16, 60])
def test_results_past_the_caches(name: str, offset: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As results too big for the caches are written, wherever they start."""
    monkeypatch.setattr(kernel_frame, "_STREAMED", 0)
    module = mlirhlo.parse(STREAMED[name])
    assert name == "narrow" or "nontemporal = true" in str(loops_of(module))
    rng = np.random.default_rng(0)
    shapes: list[Any] = [p.shape for p in module.hlo.entry.parameters]
    arguments = [draw(rng, str(s).split("[")[0], s.dimensions) for s in shapes]
    agrees(STREAMED[name], arguments, offset=offset)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.sampled_from(["f32", "s32", "u32", "f64", "s64", "bf16", "u8"]),
    st.sampled_from([1, 3, 8, 9, 15, 16, 17, 31, 32, 33]),
    st.sampled_from(["s32", "u32", "u8", "s64"]),
    st.sampled_from([1, 16, 64, 75]),
)
def test_any_look_up_in_a_small_table(type_: str, size: int, index: str, count: int) -> None:
    """Tables that registers hold, with indices on both sides of all they have."""
    text = (
        f"ENTRY e {{\n  x = {type_}[{size}] parameter(0)\n  i = {index}[{count}] parameter(1)\n"
        f"  ROOT r = {type_}[{count}] gather(x, i), offset_dims={{}}, collapsed_slice_dims={{0}}, "
        "start_index_map={0}, index_vector_dim=1, slice_sizes={1}\n}\n"
    )
    rng = np.random.default_rng(size)
    places = rng.integers(0 if index[0] == "u" else -3, size + 3, count).astype(
        {"s32": np.int32, "u32": np.uint32, "u8": np.uint8, "s64": np.int64}[index]
    )
    if index != "u8":
        info = np.iinfo(places.dtype)
        places[-1:] = info.max
        places[:1] = info.min
    agrees(text, [draw(rng, type_, (size,)), places])


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(("size", "looks_up"), [(5, True), (32, True), (33, False)])
def test_tables_that_registers_hold_are_not_gathered(size: int, looks_up: bool) -> None:
    if not current().has("avx512f"):
        pytest.skip("lanes are not picked by numbers here")
    text = (
        f"f32[64] gather(f32[{size}] x, s32[64] i), offset_dims={{}}, collapsed_slice_dims={{0}}, "
        "start_index_map={0}, index_vector_dim=1, slice_sizes={1}"
    )
    assert ("vector.gather" not in str(loops_of(mlirhlo.parse(text)))) == looks_up


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("has_slow_gathers", [False, True])
def test_gathers_go_lane_by_lane_where_that_is_faster(has_slow_gathers: bool) -> None:
    text = """HloModule m
ENTRY e {
  x = f32[4096] parameter(0)
  i = s32[64,1] parameter(1)
  ROOT g = f32[64] gather(x, i), offset_dims={}, collapsed_slice_dims={0},
      start_index_map={0}, index_vector_dim=1, slice_sizes={1}
}
"""
    with using(replace(AVX512, has_slow_gathers=has_slow_gathers)):
        loops = lower(mlirhlo.parse(text).op).loops
        dialect = str(convert_to_llvm(loops))
    assert ("llvm.intr.masked.gather" in dialect) == (not has_slow_gathers)
