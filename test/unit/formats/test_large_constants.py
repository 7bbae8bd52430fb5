"""A large constant takes memory by its bytes, in every format, not by its characters or tokens."""

from __future__ import annotations

import tracemalloc

import pytest
from program_shapes import SHAPES
from xdsl.dialects.builtin import ModuleOp

from mlirhlo.formats import load, to_bytes
from mlirhlo.formats.hlo_text import PrintOptions, parse_module
from mlirhlo.rewrites.hlo_to_stablehlo import convert_to_stablehlo

COUNT = 1 << 16


def constant(form: str) -> tuple[ModuleOp, str]:
    module = parse_module(SHAPES["large_constant"](COUNT))
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
