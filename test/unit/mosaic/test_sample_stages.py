"""Every stage of every sample kernel: it prints, reads back, verifies and computes the same; dumps of
the real compiler go on from where they stop.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import SHARED, needs_shared, sample_rows
from xdsl.dialects.builtin import ModuleOp

import mlirhlo
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import CustomCallOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.formats.mosaic import print_kernel
from mlirhlo.interp.custom_calls.options import options_of
from mlirhlo.mosaic.custom_call import aliases_of
from mlirhlo.mosaic.decode import config_of, read_kernel
from mlirhlo.mosaic.interpreter import Kernel
from mlirhlo.mosaic.pipeline import STAGES, run_pipeline
from mlirhlo.mosaic.verifier import verify_kernel

pytestmark = [needs_shared, pytest.mark.slow]

SAMPLES = SHARED / "reference" / "mosaic_samples"
NAMES = sorted(path.stem for path in (SAMPLES / "stablehlo").glob("*.mlir"))
ALL = ["original", *(f"post-{stage.name}" for stage in STAGES)]
DEVICES = {"ring": 4}
LONG = {"flash": 3, "matmul": 2}
"""Kernels whose stages are run in several tests."""


@cache
def call_of(name: str) -> Any:
    program = mlirhlo.load(str(SAMPLES / "stablehlo" / f"{name}.mlir"))
    calls: Any = HloModule(program.op).instructions_of(CustomCallOp)
    return next(call for call in calls if call.custom_call_target == "tpu_custom_call")


def kernel_of(name: str) -> ModuleOp:
    return read_kernel(config_of(options_of(call_of(name)), name).body, name)


@cache
def operands_of(name: str) -> list[list[Any]]:
    """Random operands of each device."""
    generator = np.random.default_rng(0)
    devices: list[list[Any]] = []
    for _ in range(DEVICES.get(name, 1)):
        given: list[Any] = []
        for shape in call_of(name).input_shapes:
            dims, dtype = shape.dimensions, shape.element_type.dtype
            small = generator.integers(0, 3, dims) if dtype.kind == "i" else None
            given.append((generator.normal(size=dims) if small is None else small).astype(dtype))
        devices.append(given)
    return devices


def run(name: str, module: ModuleOp) -> list[Any]:
    call = call_of(name)
    shape = call.shape
    parts = shape.elements if isinstance(shape, TupleShape) else (shape,)
    outputs = [
        (part.dimensions, part.element_type.dtype) for part in parts if isinstance(part, ArrayShape)
    ]
    kernel = Kernel(module, config_of(options_of(call), name).internal_scratch_in_bytes)
    found = kernel.run_on(operands_of(name), outputs, aliases=aliases_of(call))
    return [np.asarray(array, np.float64) for device in found for array in device]


def same(found: list[Any], wanted: list[Any], what: str) -> None:
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-2, atol=1e-3, err_msg=what)


@pytest.mark.parametrize(
    ("name", "part", "parts"),
    sample_rows(((n, part, LONG.get(n, 1)) for n in NAMES for part in range(LONG.get(n, 1))), 4),
)
def test_every_stage(name: str, part: int, parts: int) -> None:
    module = kernel_of(name)
    expected = run(name, module.clone())
    seen: list[str] = []
    before = [""]

    def observe(stage: ModuleOp, title: str, number: int) -> None:
        text = print_kernel(stage)
        # Stages that change nothing need no second run.
        if text != before[0]:
            before[0] = text
            again = read_kernel(text.encode(), title)
            verify_kernel(again)
            assert print_kernel(again) == text, title
            if number % parts == part:
                same(run(name, again), expected, title)
        assert number == len(seen) + 1
        seen.append(title)

    run_pipeline(module, observe=observe)
    assert seen == ALL


DUMPS = {
    "layernorm": "layernorm",
    "matmul": "matmul",
    "manual_dma_selected": "dma",
    "ring_remote_dma_selected": "ring",
}
GO_ON = (1, 5, 12, 14)
"""Stages that a dump goes on from, where the folder has it whole."""


def whole_dumps(folder: str) -> list[tuple[int, Path]]:
    """Stages of the TensorCore before LLO, whose text was not cut."""
    found: list[tuple[int, Path]] = []
    for path in sorted((SAMPLES / "dumps" / folder).glob("*-00*")):
        number = int(path.name.split("-")[1])
        if 1 <= number <= 18 and "... cut:" not in path.read_text()[-200:]:
            found.append((number, path))
    return found


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("folder", DUMPS)
def test_dumps_of_the_real_compiler_go_on(folder: str) -> None:
    name = DUMPS[folder]
    expected = run(name, kernel_of(name))
    before = ""
    done = 0
    for number, path in whole_dumps(folder):
        text = path.read_text()
        if text == before:
            continue
        before = text
        module = read_kernel(text.encode(), path.name)
        same(run(name, module.clone()), expected, path.name)
        if number in GO_ON:
            stage = "original" if number == 1 else STAGES[number - 2].name
            run_pipeline(module, start_after=stage)
            same(run(name, module), expected, f"{path.name}, gone on with")
        done += 1
    assert done >= 3
