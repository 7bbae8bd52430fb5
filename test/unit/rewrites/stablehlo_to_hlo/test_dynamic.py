"""Dynamic ops whose sizes the program itself tells: converted without being asked to refine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlirhlo.diagnostics import HloError
from mlirhlo.formats.hlo_text import print_module as print_hlo
from mlirhlo.formats.stablehlo import parse_module
from mlirhlo.interp.engine import Interpreter
from mlirhlo.rewrites.stablehlo_to_hlo import convert_to_hlo

X = np.arange(6, dtype=np.float32)
I1 = "tensor<1xi32>"


def run(arguments: str, result: str, body: str, *values: Any) -> Any:
    text = f"func.func @main({arguments}) -> {result} {{\n{body}\nreturn %r : {result}\n}}"
    return Interpreter(convert_to_hlo(parse_module(text))).run(values)


def test_reshape_to_sizes_of_a_constant() -> None:
    body = """
    %c = stablehlo.constant dense<[2, 3]> : tensor<2xi32>
    %r = stablehlo.dynamic_reshape %x, %c : (tensor<6xf32>, tensor<2xi32>) -> tensor<?x?xf32>"""
    found = run("%x: tensor<6xf32>", "tensor<?x?xf32>", body, X)
    np.testing.assert_array_equal(found, X.reshape(2, 3))


def test_broadcast_to_a_computed_size() -> None:
    body = f"""
    %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<6xf32>) -> tensor<i32>
    %two = stablehlo.constant dense<2> : tensor<i32>
    %m = stablehlo.multiply %n, %two : tensor<i32>
    %s = stablehlo.reshape %m : (tensor<i32>) -> {I1}
    %v = stablehlo.constant dense<4.0> : tensor<f32>
    %0 = stablehlo.dynamic_broadcast_in_dim %v, %s, dims = [] : (tensor<f32>, {I1}) -> tensor<?xf32>
    %r = stablehlo.add %0, %0 : tensor<?xf32>"""
    found = run("%x: tensor<6xf32>", "tensor<?xf32>", body, X)
    np.testing.assert_array_equal(found, np.full(12, 8, np.float32))


def test_pad() -> None:
    body = f"""
    %low = stablehlo.constant dense<1> : {I1}
    %high = stablehlo.constant dense<-2> : {I1}
    %in = stablehlo.constant dense<1> : {I1}
    %v = stablehlo.constant dense<9.0> : tensor<f32>
    %r = stablehlo.dynamic_pad %x, %v, %low, %high, %in
      : (tensor<6xf32>, tensor<f32>, {I1}, {I1}, {I1}) -> tensor<10xf32>"""
    found = run("%x: tensor<6xf32>", "tensor<10xf32>", body, X)
    np.testing.assert_array_equal(found, [9, 0, 9, 1, 9, 2, 9, 3, 9, 4])


def test_iota() -> None:
    body = """
    %c = stablehlo.constant dense<5> : tensor<1xi64>
    %r = stablehlo.dynamic_iota %c, dim = 0 : (tensor<1xi64>) -> tensor<?xi32>"""
    np.testing.assert_array_equal(run("", "tensor<?xi32>", body), np.arange(5))


def test_slice_from_where_running_tells() -> None:
    body = f"""
    %one = stablehlo.constant dense<1> : {I1}
    %r = stablehlo.real_dynamic_slice %x, %s, %e, %one
      : (tensor<6xf32>, {I1}, {I1}, {I1}) -> tensor<3xf32>"""
    arguments = f"%x: tensor<6xf32>, %s: {I1}, %e: {I1}"
    start, end = np.array([2], np.int32), np.array([5], np.int32)
    found = run(arguments, "tensor<3xf32>", body, X, start, end)
    np.testing.assert_array_equal(found, X[2:5])


def test_sizes_go_into_functions() -> None:
    text = f"""
    func.func private @fill(%n: {I1}) -> tensor<?xf32> {{
      %v = stablehlo.constant dense<3.0> : tensor<f32>
      %r = stablehlo.dynamic_broadcast_in_dim %v, %n, dims = [] : (tensor<f32>, {I1}) -> tensor<?xf32>
      return %r : tensor<?xf32>
    }}
    func.func @main() -> (tensor<?xf32>, tensor<?xf32>) {{
      %a = stablehlo.constant dense<2> : {I1}
      %b = stablehlo.constant dense<4> : {I1}
      %0 = call @fill(%a) : ({I1}) -> tensor<?xf32>
      %1 = call @fill(%b) : ({I1}) -> tensor<?xf32>
      return %0, %1 : tensor<?xf32>, tensor<?xf32>
    }}"""
    found: Any = Interpreter(convert_to_hlo(parse_module(text))).run([])
    assert [part.shape for part in found] == [(2,), (4,)]


def test_bounded_sizes_stay_bounded() -> None:
    bounded = "tensor<?xf32, #stablehlo.bounds<6>>"
    text = f"""
    func.func @main(%x: tensor<6xf32>, %n: tensor<i32>) -> ({bounded}, tensor<?xi32>) {{
      %0 = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<6xf32>, tensor<i32>) -> {bounded}
      %c = stablehlo.constant dense<5> : tensor<1xi64>
      %1 = stablehlo.dynamic_iota %c, dim = 0 : (tensor<1xi64>) -> tensor<?xi32>
      return %0, %1 : {bounded}, tensor<?xi32>
    }}"""
    printed = print_hlo(convert_to_hlo(parse_module(text)))
    assert "->(f32[<=6]{0}, s32[5]{0})" in printed


def test_what_only_running_tells_is_refused() -> None:
    body = f"""
    %r = stablehlo.dynamic_iota %n, dim = 0 : ({I1}) -> tensor<?xi32>"""
    with pytest.raises(HloError) as caught:
        run(f"%n: {I1}", "tensor<?xi32>", body, np.array([3], np.int32))
    assert caught.value.diagnostics[0].code == "HLO0420"
