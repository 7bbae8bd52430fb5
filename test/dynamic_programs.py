"""Programs on arrays of dynamic size, and the same in a branch and carried through a loop."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mlirhlo.interp.registry import DynamicArray

FUNCTIONS = """
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
max { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] maximum(a, b) }
odd { a = f32[] parameter(0)
  b = f32[] parameter(1)
  two = f32[] constant(2)
  t = f32[] multiply(a, two)
  ROOT r = f32[] subtract(t, b) }
second { a = f32[] parameter(0)
  ROOT b = f32[] parameter(1) }
best { a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  p = pred[] compare(a, b), direction=GE
  v = f32[] select(p, a, b)
  k = s32[] select(p, i, j)
  ROOT r = (f32[], s32[]) tuple(v, k) }
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT }
less2 { a = f32[] parameter(0)
  b = f32[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  ROOT r = pred[] compare(b, a), direction=LT }
cond { s = (s32[], f32[<=6]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  three = s32[] constant(3)
  ROOT r = pred[] compare(i, three), direction=LT }
body { s = (s32[], f32[<=6]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[<=6] get-tuple-element(s), index=1
  y = f32[<=6] negate(x)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = (s32[], f32[<=6]) tuple(j, y) }
shorten { s = (s32[], f32[<=6]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[<=6] get-tuple-element(s), index=1
  one = s32[] constant(1)
  size = s32[] get-dimension-size(x), dimensions={0}
  less = s32[] subtract(size, one)
  y = f32[<=6] set-dimension-size(x, less), dimensions={0}
  j = s32[] add(i, one)
  ROOT r = (s32[], f32[<=6]) tuple(j, y) }
double { x = f32[<=6] parameter(0)
  ROOT y = f32[<=6] add(x, x) }
shorter { x = f32[<=6] parameter(0)
  one = s32[] constant(1)
  ROOT y = f32[<=6] set-dimension-size(x, one), dimensions={0} }
"""

V = "v = f32[<=6] set-dimension-size(x, n), dimensions={0}"
"""`x: f32[6]`, `n` of its elements in use."""
M = (
    "h = f32[<=4,3] set-dimension-size(x, n), dimensions={0}\n"
    "v = f32[<=4,<=3] set-dimension-size(h, m), dimensions={1}"
)
"""`x: f32[4,3]`, `n` rows and `m` columns in use."""
SUM = "z = f32[] constant(0)\nROOT r = f32[] reduce({}), dimensions={{{}}}, to_apply=add"

ONE: Mapping[str, str] = {
    "elementwise": "a = f32[<=6] abs(v)\nROOT r = f32[<=6] add(a, v)",
    "not_alike": "w = f32[<=6] set-dimension-size(x, m), dimensions={0}\nROOT r = f32[<=6] subtract(v, w)",
    "three_not_alike": "w = f32[<=6] set-dimension-size(x, m), dimensions={0}\n"
    "one = s32[] constant(1)\nu = f32[<=6] set-dimension-size(x, one), dimensions={0}\n"
    "ROOT r = f32[<=6] clamp(u, v, w)",
    "push": "c = f32[1] constant({8})\np = f32[<=6] dynamic-update-slice(v, c, n)\n"
    "one = s32[] constant(1)\nsix = s32[] constant(6)\nnext = s32[] add(n, one)\n"
    "k = s32[] minimum(next, six)\nROOT r = f32[<=6] set-dimension-size(p, k), dimensions={0}",
    "loop_from_static": "i = s32[] constant(0)\nt = (s32[], f32[6]) tuple(i, x)\n"
    "w = (s32[], f32[6]) while(t), condition=cond, body=shorten\n"
    "ROOT r = f32[<=6] get-tuple-element(w), index=1",
    "size": "a = f32[<=6] abs(v)\nROOT s = s32[] get-dimension-size(a), dimensions={0}",
    "size_of_static": "ROOT s = s32[] get-dimension-size(x), dimensions={0}",
    "sum": SUM.format("v, z", 0),
    "sum_from_five": "z = f32[] constant(5)\nROOT r = f32[] reduce(v, z), dimensions={0}, to_apply=add",
    "highest": "z = f32[] constant(2)\nROOT r = f32[] reduce(v, z), dimensions={0}, to_apply=max",
    "odd_function": "z = f32[] constant(5)\nROOT r = f32[] reduce(v, z), dimensions={0}, to_apply=odd",
    "last": "z = f32[] constant(5)\nROOT r = f32[] reduce(v, z), dimensions={0}, to_apply=second",
    "place_of_highest": "i = s32[6] iota(), iota_dimension=0\n"
    "j = s32[<=6] set-dimension-size(i, n), dimensions={0}\nz = f32[] constant(-9)\nk = s32[] constant(0)\n"
    "ROOT r = (f32[], s32[]) reduce(v, j, z, k), dimensions={0}, to_apply=best",
    "broadcast": "b = f32[<=6,2] broadcast(v), dimensions={0}\n" + SUM.format("b, z", "0,1"),
    "pad": "z = f32[] constant(7)\nROOT p = f32[<=18] pad(v, z), padding=1_6_1",
    "pad_negative": "z = f32[] constant(7)\nROOT p = f32[<=5] pad(v, z), padding=1_-2",
    "concatenate": "w = f32[<=6] set-dimension-size(x, m), dimensions={0}\n"
    "c = f32[2] constant({8, 9})\nROOT r = f32[<=14] concatenate(v, c, w), dimensions={0}",
    "reverse": "ROOT r = f32[<=6] reverse(v), dimensions={0}",
    "split": "six = f32[<=6] set-dimension-size(x, m2), dimensions={0}\n"
    "ROOT r = f32[2,<=3] reshape(six)",
    "split_front": "six = f32[<=6] set-dimension-size(x, m2), dimensions={0}\n"
    "ROOT r = f32[<=3,2] reshape(six)",
    "dot": "ROOT r = f32[] dot(v, v), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
    "dot_not_alike": "w = f32[<=6] set-dimension-size(x, m), dimensions={0}\n"
    "ROOT r = f32[] dot(v, w), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
    "dot_with_static": "c = f32[6] constant({1, 2, 3, 4, 5, inf})\n"
    "ROOT r = f32[] dot(v, c), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
    "outer": "d = f32[<=6,<=6] dot(v, v), lhs_contracting_dims={}, rhs_contracting_dims={}\n"
    + SUM.format("d, z", "0,1"),
    "sort": "ROOT r = f32[<=6] sort(v), dimensions={0}, to_apply=less",
    "sort_two": "i = s32[6] iota(), iota_dimension=0\n"
    "j = s32[<=6] set-dimension-size(i, n), dimensions={0}\n"
    "s = (f32[<=6], s32[<=6]) sort(v, j), dimensions={0}, is_stable=true, to_apply=less2\n"
    "ROOT r = s32[<=6] get-tuple-element(s), index=1",
    "window": "z = f32[] constant(0)\nROOT r = f32[<=3] reduce-window(v, z), "
    "window={size=3 stride=2 pad=1_1}, to_apply=add",
    "window_dilated": "z = f32[] constant(1)\nROOT r = f32[<=9] reduce-window(v, z), "
    "window={size=2 pad=0_1 lhs_dilate=2 rhs_dilate=3}, to_apply=max",
    "cumulative": "z = f32[] constant(0)\nROOT r = f32[<=6] reduce-window(v, z), "
    "window={size=6 pad=5_0}, to_apply=add",
    "dynamic_slice": "t = s32[] constant(4)\ns = f32[1] dynamic-slice(v, t), dynamic_slice_sizes={1}\n"
    "ROOT r = f32[] reshape(s)",
    "dynamic_slice_whole": "t = s32[] constant(4)\nROOT r = f32[<=6] dynamic-slice(v, t), dynamic_slice_sizes={6}",
    "update": "t = s32[] constant(4)\nc = f32[1] constant({8})\n"
    "ROOT r = f32[<=6] dynamic-update-slice(v, c, t)",
    "gather": "i = u8[3] constant({0, 4, 250})\nROOT r = f32[3] gather(v, i), offset_dims={}, "
    "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}",
    "gather_dynamic_places": "i = s32[6] constant({0, 4, 2, 5, -1, 1})\n"
    "j = s32[<=6] set-dimension-size(i, m), dimensions={0}\n"
    "ROOT r = f32[<=6] gather(v, j), offset_dims={}, "
    "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}",
    "scatter": "i = s32[4] constant({0, 4, 1, -1})\nu = f32[4] constant({10, 20, 30, 40})\n"
    "ROOT r = f32[<=6] scatter(v, i, u), update_window_dims={}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
    "scatter_windows": "i = s32[3,1] constant({{0}, {4}, {1}})\nu = f32[3,2] constant({{1, 2}, {3, 4}, {5, 6}})\n"
    "ROOT r = f32[<=6] scatter(v, i, u), update_window_dims={1}, inserted_window_dims={}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
    "scatter_some": "i = s32[6] constant({0, 4, 2, 5, -1, 1})\n"
    "j = s32[<=6] set-dimension-size(i, n), dimensions={0}\n"
    "ROOT r = f32[6] scatter(x, j, v), update_window_dims={}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
    "loop": "i = s32[] constant(0)\nt = (s32[], f32[<=6]) tuple(i, v)\n"
    "w = (s32[], f32[<=6]) while(t), condition=cond, body=body\n"
    "ROOT r = f32[<=6] get-tuple-element(w), index=1",
    "call": "c = f32[<=6] call(v), to_apply=double\n" + SUM.format("c, z", 0),
    "conditional": "one = s32[] constant(1)\np = pred[] compare(n, one), direction=GT\n"
    "c = f32[<=6] conditional(p, v, v), true_computation=shorter, false_computation=double\n"
    + SUM.format("c, z", 0),
    "barrier": "i = s32[] constant(0)\nt = (s32[], f32[<=6]) tuple(i, v)\n"
    "b = (s32[], f32[<=6]) opt-barrier(t)\nROOT r = f32[<=6] get-tuple-element(b), index=1",
    "tuple": "ROOT t = ((f32[<=6], s32[]), f32[<=6]) tuple(u, v)",
    "transforms": "c = c64[<=6] convert(v)\ni = c64[<=6,2] broadcast(c), dimensions={0}\n"
    "f = c64[<=6,2] fft(i), fft_type=FFT, fft_length={2}\nROOT r = f32[<=6,2] real(f)",
    "factors": "p = f32[<=6] multiply(v, v)\nc = f32[<=6,1,1] broadcast(p), dimensions={0}\n"
    "l = f32[<=6,1,1] cholesky(c), lower=true\nROOT r = f32[<=6,1,1] triangular-solve(l, c), left_side=true, "
    "lower=true, unit_diagonal=true, transpose_a=NO_TRANSPOSE",
    "largest": "c = f32[<=6,5] broadcast(v), dimensions={0}\n"
    "ROOT t = (f32[<=6,2], s32[<=6,2]) topk(c), k=2, largest=true",
    "map": "ROOT r = f32[<=6] map(v, v), dimensions={0}, to_apply=odd",
}
TWO: Mapping[str, str] = {
    "transpose": "t = f32[<=3,<=4] transpose(v), dimensions={1,0}\nROOT r = f32[<=3,<=4] abs(t)",
    "rows": "z = f32[] constant(0)\nROOT r = f32[<=4] reduce(v, z), dimensions={1}, to_apply=add",
    "join": "ROOT r = f32[<=12] reshape(v)",
    "slice": "s = f32[<=4,2] slice(h), slice={[0:4], [1:3]}\nROOT r = f32[<=4,2] abs(s)",
    "slice_whole": "ROOT s = f32[<=4,<=3] slice(v), slice={[0:4], [0:3]}",
    "dynamic_reshape": "ROOT r = f32[<=3,<=4] dynamic-reshape(v, m, n)",
    "dynamic_reshape_of_equal_bounds": "z = f32[] constant(0)\np = f32[4,4] pad(x, z), padding=0_0x0_1\n"
    "a = f32[<=4,4] set-dimension-size(p, n), dimensions={0}\n"
    "b = f32[<=4,<=4] set-dimension-size(a, m), dimensions={1}\n"
    "ROOT r = f32[<=4,<=4] dynamic-reshape(b, m, n)",
    "keeps_apart": "ROOT r = f32[<=4,1,<=3] reshape(v)",
    "matrix_product": "t = f32[<=3,<=4] transpose(v), dimensions={1,0}\n"
    "ROOT r = f32[<=4,<=4] dot(v, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "convolution": "a = f32[<=4,<=3,1] reshape(v)\nk = f32[2,1,2] constant({{{1, 2}}, {{3, 4}}})\n"
    "ROOT r = f32[<=4,<=4,2] convolution(a, k), window={size=2 pad=1_1}, dim_labels=b0f_0io->b0f",
    "convolution_of_features": "a = f32[<=4,1,<=3] reshape(v)\n"
    "k = f32[1,3,2] constant({{{1, 2}, {3, 4}, {5, 6}}})\n"
    "l = f32[1,<=3,2] set-dimension-size(k, m), dimensions={1}\n"
    "ROOT r = f32[<=4,1,2] convolution(a, l), window={size=1}, dim_labels=b0f_0io->b0f",
    "update_of_part": "w = f32[4,3] constant({{1, 1, 1}, {2, 2, 2}, {3, 3, 3}, {4, 4, 4}})\n"
    "a = s32[] constant(3)\nROOT r = f32[4,3] dynamic-update-slice(w, v, a, a)",
    "gather_rows": "i = s32[2,1] constant({{0}, {3}})\nROOT r = f32[2,<=3] gather(h, i), offset_dims={1}, "
    "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}",
    "sort_rows": "ROOT r = f32[<=4,<=3] sort(v), dimensions={1}, to_apply=less",
}

UNORDERED = {"odd_function", "last"}
"""Those whose results depend on the order in which a reduction combines elements."""


def texts() -> list[tuple[str, str, tuple[int, ...]]]:
    """Names, instructions and the shape of `x`."""
    found: list[tuple[str, str, tuple[int, ...]]] = []
    for name, body in ONE.items():
        extra = (
            "two = s32[] constant(2)\nhalf = s32[] divide(n, two)\nm2 = s32[] multiply(half, two)\n"
        )
        more = "u = (f32[<=6], s32[]) tuple(v, n)\n" if name == "tuple" else ""
        found.append((name, f"{V}\n{extra}{more}{body}", (6,)))
    found += [(name, f"{M}\n{body}", (4, 3)) for name, body in TWO.items()]
    return found


def module(body: str, sizes: Sequence[int]) -> str:
    """The program of some instructions."""
    shape = ",".join(map(str, sizes))
    lines = "\n".join(f"  {line}" for line in body.split("\n"))
    parameters = (
        f"  x = f32[{shape}] parameter(0)\n  n = s32[] parameter(1)\n  m = s32[] parameter(2)\n"
    )
    return f"HloModule m\n{FUNCTIONS}\nENTRY e {{\n{parameters}{lines}\n}}\n"


def valid(value: Any) -> Any:
    """The elements in use."""
    if isinstance(value, tuple):
        return tuple(valid(part) for part in value)
    return value.valid if isinstance(value, DynamicArray) else np.asarray(value)


def same(a: Any, b: Any) -> bool:
    """Whether two results are equal bit by bit."""
    if isinstance(a, tuple):
        return all(same(x, y) for x, y in zip(a, b, strict=True))
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def in_branch(body: str, sizes: Sequence[int]) -> str:
    """The program in both branches of a conditional, the second one with a smaller size."""
    shape, result = ",".join(map(str, sizes)), _root(body)[1]
    state = f"(f32[{shape}], s32[], s32[])"
    branches = "".join(
        f"{name} {{\n  a0 = {state} parameter(0)\n  x = f32[{shape}] get-tuple-element(a0), index=0\n"
        "  n = s32[] get-tuple-element(a0), index=1\n  m = s32[] get-tuple-element(a0), index=2\n"
        f"{_indented(body)}\n}}\n"
        for name in ("even", "uneven")
    )
    return f"""HloModule m
{FUNCTIONS}{branches}ENTRY e {{
  x = f32[{shape}] parameter(0)
  n = s32[] parameter(1)
  m = s32[] parameter(2)
  one = s32[] constant(1)
  less = s32[] subtract(n, one)
  least = s32[] maximum(less, one)
  a = {state} tuple(x, n, m)
  b = {state} tuple(x, least, m)
  two = s32[] constant(2)
  rest = s32[] remainder(n, two)
  zero = s32[] constant(0)
  p = pred[] compare(rest, zero), direction=EQ
  ROOT r = {result} conditional(p, a, b), true_computation=even, false_computation=uneven
}}
"""


def in_loop(body: str, sizes: Sequence[int]) -> str:
    """Two rounds of the program, each with a smaller size; `v` is the last result where that has its type."""
    shape, (root, result) = ",".join(map(str, sizes)), _root(body)
    is_carried = result == "f32[<=6]" and V in body
    state = f"(s32[], {result}, f32[{shape}], s32[], s32[])"
    plain = body.replace("ROOT ", "")
    inner = plain.replace(V, "v = f32[<=6] get-tuple-element(s_), index=1") if is_carried else plain
    return f"""HloModule m
{FUNCTIONS}more_ {{
  s_ = {state} parameter(0)
  i_ = s32[] get-tuple-element(s_), index=0
  two_ = s32[] constant(2)
  ROOT c_ = pred[] compare(i_, two_), direction=LT
}}
round_ {{
  s_ = {state} parameter(0)
  i_ = s32[] get-tuple-element(s_), index=0
  x = f32[{shape}] get-tuple-element(s_), index=2
  n_ = s32[] get-tuple-element(s_), index=3
  m = s32[] get-tuple-element(s_), index=4
  one_ = s32[] constant(1)
  less_ = s32[] subtract(n_, one_)
  n = s32[] maximum(less_, one_)
{_indented(inner)}
  j_ = s32[] add(i_, one_)
  ROOT t_ = {state} tuple(j_, {root}, x, n, m)
}}
ENTRY e {{
  x = f32[{shape}] parameter(0)
  n = s32[] parameter(1)
  m = s32[] parameter(2)
  zero_ = s32[] constant(0)
{_indented(V if is_carried else plain)}
  t_ = {state} tuple(zero_, {"v" if is_carried else root}, x, n, m)
  w_ = {state} while(t_), condition=more_, body=round_
  ROOT r_ = {result} get-tuple-element(w_), index=1
}}
"""


def _root(body: str) -> tuple[str, str]:
    match = re.match(r"ROOT (\w+) = (\(\(.*?\).*?\)|\(.*?\)|\S+) ", body.split("\n")[-1])
    assert match is not None
    return match[1], match[2]


def _indented(body: str) -> str:
    return "\n".join(f"  {line}" for line in body.split("\n"))
