"""Ops that move, choose and reduce elements, for every element type: converted, run, held to numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from mlirhlo.dialects.hlo.element_types import BY_MLIR, Kind
from mlirhlo.formats.stablehlo import parse_module
from mlirhlo.interp.engine import Interpreter
from mlirhlo.rewrites.stablehlo_to_hlo import convert_to_hlo

Array = Any
TYPES = {str(mlir): primitive for mlir, primitive in BY_MLIR.items() if primitive.is_array}


def tensor(type_: str, *sizes: int) -> str:
    return f"tensor<{''.join(f'{size}x' for size in sizes)}{type_}>"


def array(type_: str, *sizes: int, seed: int = 0) -> Array:
    """Small numbers that every type has, with signs where it has signs."""
    primitive = TYPES[type_]
    rng = np.random.default_rng(seed)
    low = -1 if primitive.kind in (Kind.SIGNED, Kind.FLOAT, Kind.COMPLEX) else 0
    if primitive.name == "f8e8m0fnu":
        return (2.0 ** rng.integers(0, 3, sizes)).astype(primitive.dtype)
    return rng.integers(low, 2, sizes).astype(np.float64).astype(primitive.dtype)


def run(given: Sequence[str], result: str, body: str, *values: Array) -> Array:
    arguments = ", ".join(f"%a{i}: {t}" for i, t in enumerate(given))
    text = f"func.func @main({arguments}) -> {result} {{\n{body}\nreturn %r : {result}\n}}"
    return Interpreter(convert_to_hlo(parse_module(text))).run(values)


def same(found: Array, want: Array) -> None:
    assert found.dtype == want.dtype
    assert found.shape == want.shape
    assert found.tobytes() == np.ascontiguousarray(want).tobytes()


@pytest.mark.parametrize("t", TYPES)
def test_moves(t: str) -> None:
    a, b, v = array(t, 3, 4), array(t, 3, 4, seed=1), array(t, seed=2)
    whole, scalar = tensor(t, 3, 4), tensor(t)
    turned = tensor(t, 4, 3)
    same(
        run(
            [whole],
            turned,
            f"%r = stablehlo.transpose %a0, dims = [1, 0] : ({whole}) -> {turned}",
            a,
        ),
        a.T,
    )
    part = tensor(t, 2, 2)
    same(
        run([whole], part, f"%r = stablehlo.slice %a0 [1:3, 0:4:2] : ({whole}) -> {part}", a),
        a[1:3, 0:4:2],
    )
    both = tensor(t, 6, 4)
    body = f"%r = stablehlo.concatenate %a0, %a1, dim = 0 : ({whole}, {whole}) -> {both}"
    same(run([whole, whole], both, body, a, b), np.concatenate([a, b]))
    padded = np.full((4, 8), v[()], a.dtype)
    padded[1:4, 0:7:2] = a
    wide = tensor(t, 4, 8)
    body = (
        "%r = stablehlo.pad %a0, %a1, low = [1, 0], high = [0, 1], interior = [0, 1] :"
        f" ({whole}, {scalar}) -> {wide}"
    )
    same(run([whole, scalar], wide, body, a, v), padded)


@pytest.mark.parametrize("t", TYPES)
def test_indexing(t: str) -> None:
    a, b = array(t, 3, 4), array(t, 2, 4, seed=1)
    whole, rows, scalar = tensor(t, 3, 4), tensor(t, 2, 4), tensor(t)
    indices = np.array([[2], [0]], np.int32)
    body = f"""%r = "stablehlo.gather"(%a0, %a1) <{{
      dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0],
        start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>
    }}> : ({whole}, tensor<2x1xi32>) -> {rows}"""
    same(run([whole, "tensor<2x1xi32>"], rows, body, a, indices), a[[2, 0]])
    body = f"""%r = "stablehlo.scatter"(%a0, %a1, %a2) <{{
      scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
        inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>
    }}> ({{
    ^bb0(%x: {scalar}, %y: {scalar}):
      stablehlo.return %y : {scalar}
    }}) : ({whole}, tensor<2x1xi32>, {rows}) -> {whole}"""
    want = a.copy()
    want[[2, 0]] = b
    same(run([whole, "tensor<2x1xi32>", rows], whole, body, a, indices, b), want)


@pytest.mark.parametrize("t", TYPES)
def test_control(t: str) -> None:
    a, b = array(t, 3, 4), array(t, 3, 4, seed=1)
    whole = tensor(t, 3, 4)
    pred = np.random.default_rng(3).integers(0, 2, (3, 4)).astype(bool)
    body = f"%r = stablehlo.select %a0, %a1, %a2 : tensor<3x4xi1>, {whole}"
    same(run(["tensor<3x4xi1>", whole, whole], whole, body, pred, a, b), np.where(pred, a, b))
    body = f"""
    %c = stablehlo.constant dense<0> : tensor<i32>
    %n = stablehlo.constant dense<3> : tensor<i32>
    %o = stablehlo.constant dense<1> : tensor<i32>
    %r, %k = stablehlo.while(%x = %a0, %i = %c) : {whole}, tensor<i32>
    cond {{
      %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }} do {{
      %j = stablehlo.add %i, %o : tensor<i32>
      %y = stablehlo.reverse %x, dims = [0] : {whole}
      stablehlo.return %y, %j : {whole}, tensor<i32>
    }}"""
    same(run([whole], whole, body, a), a[::-1])


@pytest.mark.parametrize("t", [t for t in TYPES if TYPES[t].kind is not Kind.COMPLEX])
def test_order(t: str) -> None:
    a = array(t, 3, 4)
    whole, scalar, row = tensor(t, 3, 4), tensor(t), tensor(t, 4)
    numbers = a.astype(np.float64)
    body = (
        "%r = stablehlo.reduce(%a0 init: %a1) applies stablehlo.maximum across dimensions = [0] :"
    )
    types = f" ({whole}, {scalar}) -> {row}"
    same(
        run([whole, scalar], row, body + types, a, a[0, 0]),
        numbers.max(0, initial=numbers[0, 0]).astype(a.dtype),
    )
    body = f"""%r = "stablehlo.sort"(%a0) <{{dimension = 1 : i64, is_stable = true}}> ({{
    ^bb0(%x: {scalar}, %y: {scalar}):
      %p = stablehlo.compare LT, %x, %y : ({scalar}, {scalar}) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }}) : ({whole}) -> {whole}"""
    same(run([whole], whole, body, a), np.sort(numbers, 1).astype(a.dtype))
