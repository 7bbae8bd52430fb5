"""Passes take twice as many calls, C functions counted, for twice as many instructions, not four times."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from program_shapes import SHAPES
from support import calls_of

from mlirhlo.dialects.quick import operands_of
from mlirhlo.dialects.wide_operands import WideOperands
from mlirhlo.formats import stablehlo
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.lowering.gpu.compiler import plan_gpu
from mlirhlo.lowering.gpu.devices import DEFAULT, device
from mlirhlo.rewrites.hlo_to_stablehlo import convert_to_stablehlo
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline

PARTITION = "sharding-propagation{num_partitions=2},spmd-partitioning{num_partitions=2}"


def many(count: int) -> str:
    """Kernels on their own that all read one constant, which is written again for each fourth one."""
    lines = ["  c = f32[] constant(2)"]
    for n in range(count):
        shape = f"f32[8,{n + 2}]"
        lines.append(f"  x{n} = {shape} parameter({n})")
        lines.append(f"  same{n} = f32[] constant(2)")
        source = "c" if n % 4 else f"same{n}"
        lines.append(f"  b{n} = {shape} broadcast({source}), dimensions={{}}")
        lines.append(f"  a{n} = {shape} add(x{n}, b{n})")
        lines.append(f"  t{n} = {shape} tanh(a{n})")
    shapes = ", ".join(f"f32[8,{n + 2}]" for n in range(count))
    names = ", ".join(f"t{n}" for n in range(count))
    return "\n".join(["ENTRY e {", *lines, f"  ROOT r = ({shapes}) tuple({names})", "}"])


def calls(pipeline: str, count: int, form: Callable[[int], str] = many) -> int:
    module = parse_module(form(count))
    return calls_of(lambda: run_pipeline(module, parse_pipeline(pipeline)))


@pytest.mark.parametrize("pipeline", ["cse", "fusion", "priority-fusion", "dce", "cse,fusion"])
def test_what_all_read_is_asked_about_once_a_reader(pipeline: str) -> None:
    calls(pipeline, 400)  # what is cached of shapes is there from now on
    assert calls(pipeline, 400) < 2.05 * calls(pipeline, 200)


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    ("pipeline", "form"),
    [
        ("copy-insertion", "updates"),
        ("copy-insertion", "whiles_in_a_row"),
        ("copy-insertion", "nested_whiles"),
        ("copy-insertion", "nested_conditionals"),
        ("copy-insertion", "wide_loop"),
        ("copy-insertion", "branches"),
        ("call-inliner", "nested_calls"),
        ("call-inliner", "computations"),
        ("flatten-call-graph", "nested_calls"),
        ("dce", "nested_fusions"),
        ("cse", "sharing_chain"),
        ("tuple-simplifier", "tuple_chain"),
        ("hlo-memory-scheduler", "chain"),
        ("map-inline", "nested_maps"),
        ("defuser", "nested_fusions"),
        ("algsimp", "concatenation"),
        ("algsimp", "nested_reducers"),
        ("bfloat16-propagation", "wide_loop"),
        ("slice-sinker", "runs"),
        ("all-reduce-reassociate", "runs"),
        ("reduce-scatter-reassociate", "runs"),
        (PARTITION, "wide_parameter"),
        (PARTITION, "nested_calls"),
    ],
)
def test_deep_and_wide_programs(pipeline: str, form: str) -> None:
    calls(pipeline, 400, SHAPES[form])
    assert calls(pipeline, 1600, SHAPES[form]) < 2.3 * calls(pipeline, 800, SHAPES[form])


@pytest.mark.parametrize(
    "pipeline", ["stablehlo-legalize-quant-to-math", "stablehlo-refine-shapes"]
)
@pytest.mark.parametrize("form", ["wide_parameter", "computations"])
def test_wide_programs_of_stablehlo(pipeline: str, form: str) -> None:
    def calls(count: int) -> int:
        module = convert_to_stablehlo(parse_module(SHAPES[form](count)))
        return calls_of(lambda: run_pipeline(module, parse_pipeline(pipeline)))

    calls(200)
    assert calls(800) < 2.3 * calls(400)


def test_results_that_passes_of_stablehlo_replace_are_not_all_copied_each_time() -> None:
    width = WideOperands.LEAST + 1
    add = "stablehlo.add %x, %zero : tensor<2xi32>"
    text = "\n".join(
        [
            f"func.func @main(%x: tensor<2xi32>) -> ({', '.join(['tensor<2xi32>'] * width)}) {{",
            "%zero = stablehlo.constant dense<0> : tensor<2xi32>",
            *(f"%y{n} = {add}" for n in range(width)),
            f"return {', '.join(f'%y{n}' for n in range(width))} :",
            f"{', '.join(['tensor<2xi32>'] * width)} }}",
        ]
    )
    module = stablehlo.parse_module(text)
    run_pipeline(module, parse_pipeline("stablehlo-target-independent-optimization"))
    (function,) = module.ops
    returned = operands_of(function.regions[0].block.ops.last)
    assert type(returned) is WideOperands
    assert set(returned) == {function.regions[0].block.args[0]}


@pytest.mark.sweep
@pytest.mark.parametrize("form", ["chain", "reduce_chain"])
def test_kernels_for_gpus(form: str) -> None:
    def calls(count: int) -> int:
        module = parse_module(SHAPES[form](count))
        return calls_of(lambda: plan_gpu(module, device(DEFAULT)))

    calls(20)
    assert calls(400) < 2.3 * calls(200)
