"""Ops of Shardy that a partitioner leaves behind: converted, and what they compute unchanged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlirhlo.formats.hlo_text import print_module as print_hlo
from mlirhlo.formats.stablehlo import parse_module
from mlirhlo.interp.engine import Interpreter
from mlirhlo.rewrites.stablehlo_to_hlo import convert_to_hlo

X = np.arange(64, dtype=np.float32).reshape(8, 8)
T = "tensor<8x8xf32>"


def program(body: str, results: str = T) -> str:
    mesh = 'sdy.mesh @mesh = <["x"=2, "y"=4]>'
    return f"module {{ {mesh}\nfunc.func @main(%x: {T}) -> {results} {{\n{body}\n}} }}"


@pytest.mark.parametrize(
    "op",
    [
        'sdy.reshard %x <@mesh, [{}, {"y"}]>',
        'sdy.all_gather [{"x"}, {}] %x out_sharding=<@mesh, [{}, {"y"}]>',
        'sdy.all_slice [{}, {"y"}] %x out_sharding=<@mesh, [{}, {"y"}]>',
        'sdy.all_reduce {"x"} %x out_sharding=<@mesh, [{}, {"y"}]>',
        'sdy.all_to_all [{"y"}: 0->1] %x out_sharding=<@mesh, [{}, {"y"}]>',
        'sdy.collective_permute %x out_sharding=<@mesh, [{}, {"y"}]>',
    ],
)
def test_moves_are_copies_with_the_new_sharding(op: str) -> None:
    module = convert_to_hlo(parse_module(program(f"%r = {op} : {T}\nreturn %r : {T}")))
    text = print_hlo(module)
    (line,) = (line for line in text.splitlines() if " copy(" in line)
    assert "sharding={devices=[1,4,2]" in line
    assert 'xla.sdy.sharding="#sdy.sharding_per_value<[<@mesh, [{}, {\\"y\\"}]>]>"' in line
    np.testing.assert_array_equal(Interpreter(module).run([X]), X)


def test_edges_are_dropped() -> None:
    body = f'%r = sdy.data_flow_edge %x sharding=<@mesh, [{{"x"}}, {{}}]> : {T}\nreturn %r : {T}'
    module = convert_to_hlo(parse_module(program(body)))
    assert [op.name for op in module.walk()].count("hlo.parameter") == 1
    np.testing.assert_array_equal(Interpreter(module).run([X]), X)


def test_constants() -> None:
    body = f"%c = sdy.constant dense<2.0> : {T}\n%r = stablehlo.add %x, %c : {T}\nreturn %r : {T}"
    np.testing.assert_array_equal(
        Interpreter(convert_to_hlo(parse_module(program(body)))).run([X]), X + 2
    )


def test_named_computations_are_called() -> None:
    body = f"""
    %r:2 = sdy.named_computation<"twice">(%x) (%a: {T}) {{
      %0 = stablehlo.add %a, %a : {T}
      sdy.return %0, %a : {T}, {T}
    }} : ({T}) -> ({T}, {T})
    %s = sdy.named_computation<"once">(%r#0) in_shardings=[<@mesh, [{{"x"}}, {{}}]>] (%a: {T}) {{
      %0 = stablehlo.negate %a : {T}
      sdy.return %0 : {T}
    }} : ({T}) -> {T}
    return %s, %r#1 : {T}, {T}"""
    module = convert_to_hlo(parse_module(program(body, f"({T}, {T})")))
    text = print_hlo(module)
    assert "%twice." in text
    assert "%once." in text
    found: Any = Interpreter(module).run([X])
    first, second = found
    np.testing.assert_array_equal(first, -2 * X)
    np.testing.assert_array_equal(second, X)
