"""Each opcode on tiles: every cut of its operands and result, even and uneven, gives what it gives whole."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import numpy as np
import pytest
from support import SEED, sample

from mlirhlo.debug.fuzz import partitioning as spmd

ADD = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}\n"
MAX = ADD.replace("add", "maximum").replace("maximum {", "max {")
LESS = (
    "less {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
    "  ROOT r = pred[] compare(a, b), direction=LT\n}\n"
)
ARGMAX = """argmax {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  g = pred[] compare(a, b), direction=GE
  x = f32[] select(g, a, b)
  k = s32[] select(g, i, j)
  ROOT r = (f32[], s32[]) tuple(x, k)
}
"""
SHARDINGS = {
    0: ["{replicated}"],
    1: [
        "{replicated}",
        "{devices=[4]<=[4]}",
        "{devices=[2,2]<=[2,2]T(1,0) last_tile_dim_replicate}",
    ],
    2: [
        "{replicated}",
        "{devices=[4,1]<=[4]}",
        "{devices=[1,4]<=[4]}",
        "{devices=[2,2]<=[4]}",
        "{devices=[2,1,2]<=[4] last_tile_dim_replicate}",
        "{devices=[2,2]3,1,0,2}",
    ],
    3: [
        "{devices=[4,1,1]<=[4]}",
        "{devices=[1,2,2]<=[4]}",
        "{devices=[2,1,2]<=[2,2]T(1,0)}",
        "{devices=[1,1,4]<=[4]}",
    ],
    4: [
        "{devices=[2,2,1,1]<=[4]}",
        "{devices=[1,4,1,1]<=[4]}",
        "{devices=[1,2,2,1]<=[4]}",
        "{devices=[1,1,1,4]<=[4]}",
        "{devices=[2,1,1,2]<=[4]}",
    ],
}
"""By rank; four devices, in the orders that meshes give and in one that no mesh gives."""

CASES: dict[str, tuple[str, ...]] = {
    "elementwise": ("x: f32[8,6]", "y: f32[8,6]", "f32[8,6] add(x, y)"),
    "elementwise uneven": ("x: f32[7,5]", "y: f32[7,5]", "f32[7,5] multiply(x, y)"),
    "select": ("p: pred[6,5]", "x: f32[6,5]", "y: f32[6,5]", "f32[6,5] select(p, x, y)"),
    "scalar clamp": ("a: f32[]", "x: f32[5,6]", "b: f32[]", "f32[5,6] clamp(a, x, b)"),
    "convert": ("x: f32[6,8]", "s32[6,8] convert(x)"),
    "broadcast": ("x: f32[6]", "f32[6,4] broadcast(x), dimensions={0}"),
    "broadcast inner": ("x: f32[5]", "f32[4,5] broadcast(x), dimensions={1}"),
    "transpose": ("x: f32[8,6]", "f32[6,8] transpose(x), dimensions={1,0}"),
    "reshape split": ("x: f32[8,6]", "f32[2,4,6] reshape(x)"),
    "reshape join": ("x: f32[4,2,3]", "f32[8,3] reshape(x)"),
    "reshape mixed": ("x: f32[6,4]", "f32[3,8] reshape(x)"),
    "reshape flat": ("x: f32[4,6]", "f32[24] reshape(x)"),
    "reshape ones": ("x: f32[6]", "f32[1,6] reshape(x)"),
    "reduce": ("x: f32[8,6]", "f32[8] reduce(x, zero), dimensions={1}, to_apply=add"),
    "reduce uneven": ("x: f32[7,5]", "f32[5] reduce(x, zero), dimensions={0}, to_apply=add"),
    "reduce init": ("x: f32[7,5]", "f32[7] reduce(x, three), dimensions={1}, to_apply=add"),
    "reduce max": ("x: f32[7,6]", "f32[] reduce(x, low), dimensions={0,1}, to_apply=max"),
    "dot": ("x: f32[8,6]", "y: f32[6,4]", "f32[8,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    "dot uneven": ("x: f32[5,7]", "y: f32[7,3]", "f32[5,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    "dot vector": ("x: f32[6]", "y: f32[6,5]", "f32[5] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
    "slice": ("x: f32[9,6]", "f32[5,6] slice(x), slice={[2:7], [0:6]}"),
    "slice strided": ("x: f32[13,6]", "f32[4,3] slice(x), slice={[1:12:3], [1:6:2]}"),
    "slice one": ("x: f32[7,6]", "f32[1,3] slice(x), slice={[4:5], [1:4]}"),
    "pad": ("x: f32[6,5]", "f32[9,4] pad(x, three), padding=1_2x-1_0"),
    "pad interior": ("x: f32[4,5]", "f32[8,6] pad(x, three), padding=1_0_1x0_1"),
    "concatenate": ("x: f32[3,4]", "y: f32[5,4]", "f32[8,4] concatenate(x, y), dimensions={0}"),
    "concatenate three": ("x: f32[4,3]", "y: f32[4,2]", "z: f32[4,6]", "f32[4,11] concatenate(x, y, z), dimensions={1}"),
    "reverse": ("x: f32[8,5]", "f32[8,5] reverse(x), dimensions={0,1}"),
    "iota": ("f32[7,6] iota(), iota_dimension=0",),
    "iota s32": ("s32[4,6] iota(), iota_dimension=1",),
    "constant": ("f32[2,4] constant({{1,2,3,4},{5,6,7,8}})",),
    "constant splat": ("f32[2,4] constant({{3,3,3,3},{3,3,3,3}})",),
    "sort": ("x: f32[8,6]", "f32[8,6] sort(x), dimensions={0}, to_apply=less"),
    "map": ("x: f32[8,6]", "y: f32[8,6]", "f32[8,6] map(x, y), dimensions={0,1}, to_apply=add"),
    "dynamic-slice": ("x: f32[8,6]", "i: s32[]", "f32[3,6] dynamic-slice(x, i, none), dynamic_slice_sizes={3,6}"),
    "dynamic-slice uneven": ("x: f32[7,6]", "i: s32[]", "f32[1,2] dynamic-slice(x, i, i), dynamic_slice_sizes={1,2}"),
    "dynamic-update-slice": ("x: f32[8,6]", "u: f32[3,6]", "i: s32[]", "f32[8,6] dynamic-update-slice(x, u, i, none)"),
    "dynamic-update-slice uneven": ("x: f32[7,6]", "u: f32[2,2]", "i: s32[]", "f32[7,6] dynamic-update-slice(x, u, i, i)"),
    "gather rows": ("x: f32[9,4]", "k: s32[6,1]", "f32[6,4] gather(x, k), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}"),
    "gather points": ("x: f32[7,5]", "k: s32[6,2]", "f32[6] gather(x, k), offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,1}"),
    "gather vector": ("x: f32[7,4]", "k: s32[6]", "f32[6,4] gather(x, k), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}"),
    "gather windows": ("x: f32[7,6]", "k: s32[4,1]", "f32[4,2,6] gather(x, k), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1, slice_sizes={2,6}"),
    "scatter add": ("x: f32[9,4]", "k: s32[6,1]", "u: f32[6,4]", "f32[9,4] scatter(x, k, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add"),
    "scatter max": ("x: f32[6,5]", "k: s32[8,2]", "u: f32[8]", "f32[6,5] scatter(x, k, u), update_window_dims={}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, to_apply=max"),
    "reduce-window": ("x: f32[8,6]", "f32[8,6] reduce-window(x, zero), window={size=3x1 pad=1_1x0_0}, to_apply=add"),
    "reduce-window strided": ("x: f32[9,7]", "f32[4,3] reduce-window(x, low), window={size=3x2 stride=2x2}, to_apply=max"),
    "convolution": ("x: f32[2,8,6,4]", "w: f32[3,3,4,5]", "f32[2,8,6,5] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"),
    "convolution strided": ("x: f32[2,9,7,3]", "w: f32[3,2,3,4]", "f32[2,5,3,4] convolution(x, w), window={size=3x2 stride=2x2 pad=1_1x0_0}, dim_labels=b01f_01io->b01f"),
    "convolution grouped": ("x: f32[2,4,4,8]", "w: f32[3,3,2,4]", "f32[2,4,4,4] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=4"),
    "convolution dilated": ("x: f32[2,6,4,4]", "w: f32[3,3,4,4]", "f32[2,9,2,4] convolution(x, w), window={size=3x3 pad=1_1x1_1 lhs_dilate=2x1 rhs_dilate=2x2}, dim_labels=b01f_01io->b01f"),
    "select-and-scatter": ("x: f32[8,6]", "s: f32[4,6]", "f32[8,6] select-and-scatter(x, s, zero), window={size=2x1 stride=2x1}, select=less, scatter=add"),
    "fft": ("x: c64[6,8]", "c64[6,8] fft(x), fft_type=FFT, fft_length={8}"),
    "cholesky": ("x: f32[4,1,1]", "f32[4,1,1] cholesky(x), lower=true"),
    "bitcast-convert": ("x: f32[6,4]", "s16[6,4,2] bitcast-convert(x)"),
}  # fmt: skip

PRELUDE = "  zero = f32[] constant(0)\n  three = f32[] constant(3)\n  low = f32[] constant(-inf)\n  none = s32[] constant(0)\n"


def rank(shape: str) -> int:
    inside = shape[shape.index("[") + 1 : shape.index("]")]
    return len(inside.split(",")) if inside else 0


def programs(lines: tuple[str, ...]) -> Iterator[tuple[str, list[str]]]:
    """The instruction with every operand and the result at each sharding of a few, mixed."""
    *parameters, last = lines
    shapes = [line.split(": ")[1] for line in parameters]
    shape = last.split(" ")[0]
    choices = [SHARDINGS[rank(s)] for s in (*shapes, shape)]
    random = np.random.default_rng([SEED, len(last), len(lines)])
    every = list(itertools.product(*choices))
    picked = random.choice(len(every), size=min(len(every), 14), replace=False)
    for pick in sorted(picked):
        text = "HloModule m, num_partitions=4\n" + ADD + MAX + LESS + ARGMAX + "ENTRY main {\n"
        for k, line in enumerate(parameters):
            name = line.split(": ")[0]
            text += f"  {name} = {shapes[k]} parameter({k}), sharding={every[pick][k]}\n"
        text += f"{PRELUDE}  ROOT r = {last}, sharding={every[pick][-1]}\n}}\n"
        yield text, shapes


def values(shape: str, random: np.random.Generator, *, indices: bool) -> np.ndarray:
    kind = shape[: shape.index("[")]
    sizes = tuple(int(n) for n in re.findall(r"\d+", shape[shape.index("[") :]))
    if kind == "pred":
        return random.integers(0, 2, sizes).astype(bool)
    if kind == "s32":
        return random.integers(-2 if indices else 0, 9, sizes).astype(np.int32)
    if kind == "c64":
        return (random.normal(size=sizes) + 1j * random.normal(size=sizes)).astype(np.complex64)
    return np.abs(random.normal(size=sizes)).astype(np.float32) + 0.5


@pytest.mark.parametrize("name", sample(CASES, 4))
def test_on_tiles(name: str) -> None:
    random = np.random.default_rng(SEED)
    for text, shapes in programs(CASES[name]):
        inputs = [values(s, random, indices=True) for s in shapes]
        try:
            spmd.compare(text, 4, inputs)
        except AssertionError as problem:
            raise AssertionError(f"{problem}\n{text}") from problem
