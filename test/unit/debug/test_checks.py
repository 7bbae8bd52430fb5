"""Tests written into StableHLO programs: their syntax, what they compare, how they fail."""

# ruff: noqa: E501  # programs are lines as MLIR writes them

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from support import run

import mlirhlo
from mlirhlo.debug.checks import run_checks
from mlirhlo.diagnostics import HloError
from mlirhlo.formats.stablehlo import parse_module, print_module
from mlirhlo.interp.closeness import almost_equal, equal, ulps

PROGRAM = """func.func @test() {
  %c = stablehlo.constant dense<[-2, 0, 2]> : tensor<3xi64>
  check.expect_eq %c, %c : tensor<3xi64>
  check.expect_eq_const %c, dense<[-2, 0, 2]> : tensor<3xi64>
  %f = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %e = stablehlo.exponential %f : tensor<2xf32>
  check.expect_almost_eq_const %e, dense<[2.71828, 7.38906]> : tensor<2xf32>
  check.expect_almost_eq %e, %e, tolerance = 0.5 : tensor<2xf32>
  check.expect_close %e, %e, max_ulp_difference = 3 : tensor<2xf32>, tensor<2xf32>
  "check.expect_close"(%e, %e) {max_ulp_difference = 4 : ui64} : (tensor<2xf32>, tensor<2xf32>) -> ()
  %p = interpreter.probe %f, probe_id = "p" : tensor<2xf32>
  check.expect_serialized_eq %p, probe_id = "p" : tensor<2xf32>
  stablehlo.custom_call @check.expect_close(%f, %p) {has_side_effect = true} : (tensor<2xf32>, tensor<2xf32>) -> ()
  func.return
}
"""


def test_both_forms_come_back() -> None:
    module = parse_module(PROGRAM)
    pretty = print_module(module)
    assert print_module(parse_module(pretty)) == pretty
    generic = print_module(module, generic=True)
    assert '"check.expect_eq"' in generic
    assert print_module(parse_module(generic)) == pretty


def test_checks_that_hold() -> None:
    made = run_checks(parse_module(PROGRAM))
    assert made.functions == ["test"]
    assert (made.passed, made.failures) == (8, [])


def test_a_check_that_fails_has_a_place() -> None:
    made = run_checks(
        parse_module(
            PROGRAM.replace(
                "dense<[-2, 0, 2]> : tensor<3xi64>\n  %f", "dense<[-2, 0, 3]> : tensor<3xi64>\n  %f"
            )
        )
    )
    (failure,) = made.failures
    assert failure.code == "HLO0360"
    assert "1 of 3 elements differ: [2] 2, expected 3" in failure.message
    assert failure.place is not None
    assert failure.place.line == 4


PROBES = """func.func @probes() {
  %one = stablehlo.constant dense<1> : tensor<i64>
  %two = stablehlo.constant dense<2> : tensor<i64>
  %a = interpreter.probe %one, probe_id = "p" : tensor<i64>
  %b = interpreter.probe %two, probe_id = "p" : tensor<i64>
  check.expect_serialized_eq %one, probe_id = "p" : tensor<i64>
  check.expect_serialized_eq %one, probe_id = "p", iter = 0 : tensor<i64>
  check.expect_serialized_eq %two, probe_id = "p", iter = 1 : tensor<i64>
  check.expect_serialized_eq %two, probe_id = "p", iteration = 2 : tensor<i64>
  func.return
}
"""


def test_probes_are_counted() -> None:
    made = run_checks(parse_module(PROBES))
    assert (made.passed, made.failures) == (4, [])
    wrong = run_checks(parse_module(PROBES.replace("iter = 1", "iter = 0")))
    assert "1 of 1 elements differ" in wrong.failures[0].message
    missing = run_checks(parse_module(PROBES.replace("iter = 1", "iter = 2")))
    assert "has seen 2 values, not 3" in missing.failures[0].message


RING = """func.func public @ring(%x: tensor<2xi32>) -> tensor<2xi32> {
  %0 = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0,1],[1,0]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 0, type = 0>}> : (tensor<2xi32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}
func.func @main() {
  %a = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %b = stablehlo.constant dense<[3, 4]> : tensor<2xi32>
  %r:2 = "interpreter.run_parallel"(%a, %b) {programs = PROGRAMS} : (tensor<2xi32>, tensor<2xi32>) -> (tensor<2xi32>, tensor<2xi32>)
  check.expect_eq_const %r#0, dense<[3, 4]> : tensor<2xi32>
  check.expect_eq %r#1, %a : tensor<2xi32>
  %s = stablehlo.add %r#0, %r#1 : tensor<2xi32>
  check.expect_eq_const %s, dense<[4, 6]> : tensor<2xi32>
  func.return
}
"""


def test_functions_run_on_a_grid_of_replicas() -> None:
    made = run_checks(parse_module(RING.replace("PROGRAMS", "[[@ring], [@ring]]")))
    assert (made.passed, made.failures) == (3, [])


def test_a_function_that_is_not_there() -> None:
    with pytest.raises(HloError, match="no function is called @wring"):
        run_checks(parse_module(RING.replace("PROGRAMS", "[[@ring], [@wring]]")))


INFEED = """func.func @queue() -> (tensor<2xi32>) {
  %0 = stablehlo.constant dense<[5, 6]> : tensor<2xi32>
  func.return %0 : tensor<2xi32>
}
func.func @reads(%t: !stablehlo.token) -> (tensor<2xi32>, !stablehlo.token) {
  %r:2 = "stablehlo.infeed"(%t) <{infeed_config = ""}> : (!stablehlo.token) -> (tensor<2xi32>, !stablehlo.token)
  func.return %r#0, %r#1 : tensor<2xi32>, !stablehlo.token
}
func.func @main() {
  %t = stablehlo.after_all : !stablehlo.token
  %r:2 = "interpreter.run_parallel"(%t) {infeed = [@queue], programs = [[@reads]]} : (!stablehlo.token) -> (tensor<2xi32>, !stablehlo.token)
  check.expect_eq_const %r#0, dense<[5, 6]> : tensor<2xi32>
  func.return
}
"""


def test_queues_feed_the_devices() -> None:
    made = run_checks(parse_module(INFEED))
    assert (made.passed, made.failures) == (1, [])


def test_the_tool_says_how_many_hold(tmp_path: Path) -> None:
    file = tmp_path / "test.mlir"
    file.write_text(PROGRAM)
    done = run("run_hlo_module", "--platform=Interpreter", "--reference_platform=", file)
    assert done.code == 0
    assert "@test: 8 of 8 checks hold" in done.err
    file.write_text(PROGRAM.replace("7.38906", "7.4"))
    done = run("run_hlo_module", "--platform=Interpreter", "--reference_platform=", file)
    assert done.code == 255
    assert "[1] 7.389056, expected 7.4" in done.err
    assert "7 of 8 checks hold" in done.err


CALLS = """HloModule calls
ENTRY e {
  x = f32[2] parameter(0)
  y = f32[2] parameter(1)
  c = () custom-call(x, y), custom_call_target="check.expect_eq", custom_call_has_side_effect=true
  ROOT r = f32[2] copy(x)
}
"""


def test_custom_calls_check_when_a_module_runs() -> None:
    module = mlirhlo.parse(CALLS)
    assert np.array_equal(module([1, 2], [1, 2]), [1, 2])
    with pytest.raises(HloError, match="1 of 2 elements differ"):
        module([1, 2], [1, 3])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_ulps_count_floats(dtype: type) -> None:
    """Neighbours are one apart, across zero and powers of two too."""
    one = np.array([1.0, -1.0, 0.0], dtype)
    bits = one.view(f"u{one.dtype.itemsize}")
    after = (bits + 5).view(dtype)
    assert ulps(one, after).tolist() == [5, 5, 5]
    smallest = np.array([1], bits.dtype).view(dtype)
    assert ulps(smallest, -smallest).tolist() == [2]
    assert ulps(np.array([0.0], dtype), np.array([-0.0], dtype)).tolist() == [0]
    nan = np.array([np.nan], dtype)
    assert ulps(nan, nan).tolist() == [0]
    assert ulps(nan, np.array([1.0], dtype))[0] > 2**60


def test_equality_is_of_bits_and_nearness_of_values() -> None:
    zero, minus = np.array([0.0], "f4"), np.array([-0.0], "f4")
    assert not equal(zero, minus).any()
    assert almost_equal(zero, minus).all()
    nan = np.array([np.nan + 0j, 1j], "c8")
    assert equal(nan, nan).all()
    inf = np.array([np.inf, -np.inf], "f4")
    assert almost_equal(inf, inf).all()
    assert not almost_equal(inf, -inf).any()
    assert not almost_equal(np.array([1e30], "f4"), inf[:1]).any()
