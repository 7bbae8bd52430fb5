"""A large constant takes memory by its bytes, in every format, not by its characters or tokens."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from program_shapes import SHAPES
from xdsl.dialects.builtin import ModuleOp

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo import syntax
from mlirhlo.formats import load, to_bytes
from mlirhlo.formats.hlo_text import PrintOptions, parse_module
from mlirhlo.rewrites.hlo_to_stablehlo import convert_to_stablehlo
from mlirhlo.rewrites.stablehlo_to_hlo import convert_to_hlo

COUNT = 1 << 16


def constant(form: str, count: int = COUNT) -> tuple[ModuleOp, str]:
    module = parse_module(SHAPES["large_constant"](count))
    stablehlo = form.removeprefix("stablehlo-")
    return (module, form) if stablehlo == form else (convert_to_stablehlo(module), stablehlo)


@pytest.mark.parametrize(
    "form",
    ["hlo", "mlir", "mlir-generic", "mlirbc", "pb", "stablehlo-mlir", "stablehlo-mlir-generic"],
)
def test_peak(form: str) -> None:
    module, emit = constant(form)
    to_bytes(module, emit)  # imports what it needs
    tracemalloc.start()
    try:
        data = to_bytes(module, emit, options=PrintOptions(large_constants=True))
        _, writing = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        load(data)
        _, reading = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    size = max(len(data), 4 * COUNT)
    assert writing < 12 * size + (16 << 20)
    assert reading - before < 8 * size + (16 << 20)


LISTED = """func.func @main() -> tensor<COUNTxTYPE> {
  %0 = stablehlo.constant dense<[VALUES]> : tensor<COUNTxTYPE>
  return %0 : tensor<COUNTxTYPE>
}
"""


def listed(element_type: str, value: str, count: int) -> bytes:
    values = ", ".join(value.replace("#", str(number)) for number in range(count))
    return (
        LISTED.replace("COUNT", str(count))
        .replace("TYPE", element_type)
        .replace("VALUES", values)
        .encode()
    )


def texts(form: str) -> bytes:
    if form == "list":
        return listed("f32", "#.5", 1 << 17)
    module, emit = constant(form, 1 << 17)
    return to_bytes(module, emit, options=PrintOptions(large_constants=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    "form", ["hlo", "mlir", "mlir-generic", "stablehlo-mlir", "stablehlo-mlir-generic", "list"]
)
def test_reading_text_takes_three_times_its_bytes(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(syntax, "WINDOW", 1 << 13)
    path = tmp_path / "large"
    path.write_bytes(texts(form))
    load(to_bytes(constant(form.replace("list", "stablehlo-mlir"))[0], "mlir"))  # imports
    tracemalloc.start()
    try:
        load(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * path.stat().st_size + (1 << 20)


@pytest.mark.parametrize(
    ("element_type", "value"),
    [
        ("f32", "#.5"),
        ("i16", "-#"),
        ("i4", "-1"),
        ("i1", "true"),
        ("complex<f32>", "(#.5, -#.25)"),
        ("bf16", "#.0"),
    ],
)
def test_windows_are_read_as_one(
    element_type: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = listed(element_type, value, 300)
    whole = to_bytes(load(text).module, "mlir", options=PrintOptions(large_constants=True))
    hlo = to_bytes(
        convert_to_hlo(load(text).module), "hlo", options=PrintOptions(large_constants=True)
    )
    for size in (1, 7, 64, 1000):
        monkeypatch.setattr(syntax, "WINDOW", size)
        again = to_bytes(load(text).module, "mlir", options=PrintOptions(large_constants=True))
        assert again == whole
        module = load(hlo).module
        assert to_bytes(module, "hlo", options=PrintOptions(large_constants=True)) == hlo


@pytest.mark.parametrize(
    "body",
    ["", "[]", "[1.0,2.0", "1.0,2.0]", "[1.0,,2.0]", "[,1.0,2.0]", "[1.0,2.0,]", "[[1.0],2.0]"],
)
def test_what_is_no_literal_is_refused_in_any_window(
    body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = LISTED.replace("[VALUES]", body).replace("COUNT", "3").replace("TYPE", "f32").encode()
    for size in (1, 3, 1000):
        monkeypatch.setattr(syntax, "WINDOW", size)
        with pytest.raises(HloError) as caught:
            load(text)
        assert caught.value.code == "HLO0036", size
