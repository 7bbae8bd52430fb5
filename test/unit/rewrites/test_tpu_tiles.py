"""Tiles of arrays on TPUs: as XLA:TPU's, on every array, and none the wiser for what is computed."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support import CORPUS, needs_shared
from unit.rewrites.random_layouts import Layouts

from mlirhlo.analysis.verifier import verify_module
from mlirhlo.dialects.hlo import HloModule
from mlirhlo.dialects.hlo.shapes import ArrayShape, leaves, parse_shape
from mlirhlo.formats.hlo_text import parse_module, print_module
from mlirhlo.interp import run_module
from mlirhlo.interp.fake_data import make_fake_arguments
from mlirhlo.rewrites.layout_assignment import LayoutAssignmentPass
from mlirhlo.rewrites.layout_assignment.tiles import tiles_of
from mlirhlo.rewrites.passes import Trace


def shape_of(text: str) -> ArrayShape:
    shape = parse_shape(text)
    assert isinstance(shape, ArrayShape)
    return shape


@pytest.mark.parametrize(
    "text",
    [
        "f32[]{:T(128)}",
        "pred[]{:T(512)}",
        "f32[5]{0:T(128)}",
        "s32[1024]{0:T(1024)}",
        "f32[5000]{0:T(1024)}",
        "bf16[5]{0:T(256)(128)(2,1)}",
        "u8[7]{0:T(512)(128)(4,1)}",
        "f32[3,400]{1,0:T(4,128)}",
        "f32[3,400]{0,1:T(8,128)}",
        "f32[1,7]{1,0:T(1,128)}",
        "bf16[1,7]{1,0:T(2,128)(2,1)}",
        "pred[2,5,9]{2,1,0:T(8,128)(4,1)}",
        "f32[6,0]{1,0:T(8,128)}",
    ],
)
def test_tiles(text: str) -> None:
    shape = shape_of(text)
    assert shape.layout is not None
    assert tiles_of(shape) == shape.layout.tiles


@needs_shared
def test_tiles_of_xla() -> None:
    """Of every array in a tile in what XLA:TPU made of the corpus."""
    texts: set[str] = set()
    for file in CORPUS.rglob("*.tpu.after_opt.hlo"):
        texts |= set(re.findall(r"\b\w+\[[\d,]*\]\{[\d,]*:T\([^}]*\}", file.read_text()))
    assert len(texts) > 500
    wrong: list[str] = []
    for text in texts:
        shape = shape_of(text)
        if shape.layout is None or tiles_of(shape) != shape.layout.tiles:
            wrong.append(text)
    assert not wrong


@pytest.mark.parametrize("start", range(0, 60, 20))
def test_random_modules(start: int) -> None:
    for seed in range(start, start + 20):
        text = Layouts(seed).text
        module = parse_module(text)
        arguments = list(make_fake_arguments(module, 1))
        wanted = run_module(module, arguments)
        tiled = LayoutAssignmentPass(target="tpu")
        assert tiled.run(HloModule(module), Trace())
        assert verify_module(module) == [], text
        view = HloModule(module)
        header = view.program_layout
        for shape in (*(op.shape for op in view.instructions), *header.parameters, header.result):
            for _, leaf in leaves(shape):
                assert not isinstance(leaf, ArrayShape) or leaf.layout
                if isinstance(leaf, ArrayShape) and leaf.layout is not None:
                    assert leaf.layout.tiles == tiles_of(leaf), print_module(module)
        assert not tiled.run(HloModule(module), Trace()), text
        for a, b in zip(wanted, run_module(module, arguments, check=True), strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b), text)
