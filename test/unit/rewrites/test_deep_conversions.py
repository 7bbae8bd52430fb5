"""Programs nested deeper than Python's stack are converted to StableHLO and back, or refused with a code."""

from __future__ import annotations

import pytest
from program_shapes import SHAPES
from xdsl.dialects.builtin import ModuleOp

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.quick import REGION_DEPTH_HELP
from mlirhlo.formats import load, stablehlo, to_bytes
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.rewrites.hlo_to_stablehlo import convert_to_stablehlo
from mlirhlo.rewrites.stablehlo_to_hlo import convert_to_hlo

STABLEHLO = ("mlir", "mlir-generic", "mlirbc", "artifact")


def program(form: str, levels: int) -> ModuleOp:
    each = {
        "nested_calls": 3,
        "nested_fusions": 3,
        "nested_maps": 3,
        "nested_reducers": 6,
        "nested_conditionals": 5,
    }
    return parse_module(SHAPES[form](each.get(form, 8) * levels))


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("form", ["nested_calls", "nested_fusions"])
def test_functions_nest_as_deep_as_they_like(form: str) -> None:
    module = program(form, 600)
    again = convert_to_hlo(convert_to_stablehlo(module))
    assert len(list(again.ops)) == len(list(module.ops))


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("emit", STABLEHLO)
@pytest.mark.parametrize("form", ["nested_whiles", "nested_reducers"])
def test_what_is_written_is_read(form: str, emit: str) -> None:
    convert_to_hlo(load(to_bytes(convert_to_stablehlo(program(form, 76)), emit)).module)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("levels", [82, 2000])
@pytest.mark.parametrize(
    "form", ["nested_whiles", "nested_conditionals", "nested_maps", "nested_reducers"]
)
def test_regions_in_regions_are_refused_before_they_are_made(form: str, levels: int) -> None:
    with pytest.raises(HloError, match="nested deeper than 80") as caught:
        convert_to_stablehlo(program(form, levels))
    assert caught.value.code == "HLO0033"
    assert caught.value.diagnostics[0].help == REGION_DEPTH_HELP


@pytest.mark.parametrize("levels", [85, 120, 3000])
def test_text_in_too_many_regions_says_how_deep_they_nest(levels: int) -> None:
    before = '%r = "stablehlo.if"(%p) ({\n' * levels
    after = "stablehlo.return %x : tensor<f32> }, { stablehlo.return %x : tensor<f32> })"
    text = f"func.func @main(%x: tensor<f32>, %p: tensor<i1>) -> tensor<f32> {{\n{before}{after}"
    with pytest.raises(HloError, match="nested deeper than") as caught:
        stablehlo.parse_module(text)
    assert caught.value.code == "HLO0033"
    assert caught.value.diagnostics[0].help == REGION_DEPTH_HELP


def test_deep_calls_are_named_as_shallow_ones() -> None:
    text = to_bytes(convert_to_stablehlo(program("nested_calls", 200)), "mlir").decode()
    order = [line.split("@")[1].split("(")[0] for line in text.splitlines() if "func.func" in line]
    assert order == [f"fn{n}" for n in range(200)] + ["main"]
