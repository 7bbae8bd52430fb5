"""What stages print is MLIR: MLIR, xDSL's tools and this project read it, and it gives the same machine code."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from readers_of_stages import (
    StageTexts,
    fault_of_reader,
    fault_of_xdsl,
    faults_of_mlir,
    stage_texts,
)
from support import CORPUS, DATA, sample

from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.lowering import target as targets

pytest.importorskip("llvmlite")

_OWN = sorted((DATA / "programs").glob("*/*.hlo"))
_ALL = sorted({p.stem: p for p in [*CORPUS.glob("programs/*/*.hlo"), *_OWN]}.values())
PROGRAMS = [p for p in _ALL if p.stem == p.parent.name and not p.stem.startswith("big_")]
"""Programs as they were before optimisation."""


def _texts(path: Path) -> StageTexts:
    return stage_texts(parse_module(path.read_text()))


@pytest.mark.slow
@pytest.mark.parametrize("path", sample(PROGRAMS, 40), ids=lambda p: p.stem)
def test_xdsl_reads_programs_and_they_come_back(path: Path) -> None:
    texts = _texts(path)
    for stage, text in texts.by_stage.items():
        assert fault_of_xdsl(text) == ""
        assert fault_of_reader(texts, stage) == ""


@pytest.mark.oracle
@pytest.mark.parametrize("path", sample(PROGRAMS, 12), ids=lambda p: p.stem)
def test_mlir_reads_programs(path: Path) -> None:
    pytest.importorskip("jaxlib")
    assert faults_of_mlir(_texts(path)) == ["", "", ""]


TARGETS = {
    "generic": targets.GENERIC,
    "avx2": targets.AVX2,
    "avxvnni": replace(targets.AVX2, features=targets.AVX2.features | {"avxvnni"}),
    "avx512vnni": replace(targets.AVX512, features=targets.AVX512.features | {"avx512vnni"}),
    "avx512bf16": replace(targets.AVX512, features=targets.AVX512.features | {"avx512bf16"}),
    "amx": replace(
        targets.AVX512, features=targets.AVX512.features | {"amx-tile", "amx-bf16", "amx-int8"}
    ),
}
INSTRUCTIONS = """
HloModule instructions

largest { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT m = f32[] maximum(a, b) }

ENTRY e {
  x = bf16[64,128] parameter(0)
  y = bf16[128,64] parameter(1)
  d = f32[64,64] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  i = s8[64,128] parameter(2)
  j = s8[128,64] parameter(3)
  k = s32[64,64] dot(i, j), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  least = f32[] constant(-inf)
  m = f32[64] reduce(d, least), dimensions={1}, to_apply=largest
  special = f32[4] constant({nan, -0, inf, 3e9})
  zeros = f32[4] constant({-0, 0, -0, 0})
  s = f32[4] add(special, zeros)
  wide = f32[64] exponential(m)
  back = bf16[64] convert(wide)
  i4 = s32[200] iota(), iota_dimension=0
  g = f32[200] gather(m, i4), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1,
    slice_sizes={1}
  ROOT r = (f32[64,64], s32[64,64], f32[4], bf16[64], f32[200]) tuple(d, k, s, back, g)
}
"""


@cache
def _on(target: str) -> StageTexts:
    with targets.using(TARGETS[target]):
        return stage_texts(parse_module(INSTRUCTIONS))


@pytest.mark.one_case_in(2)
@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_xdsl_reads_what_processors_have(target: str) -> None:
    texts = _on(target)
    for stage, text in texts.by_stage.items():
        assert fault_of_xdsl(text) == ""
        with targets.using(TARGETS[target]):
            assert fault_of_reader(texts, stage) == ""


@pytest.mark.one_case_in(2)
@pytest.mark.oracle
@pytest.mark.parametrize("target", TARGETS)
def test_mlir_reads_what_processors_have(target: str) -> None:
    pytest.importorskip("jaxlib")
    assert faults_of_mlir(_on(target)) == ["", "", ""]
