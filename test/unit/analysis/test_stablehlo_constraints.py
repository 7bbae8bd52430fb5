"""Every numbered constraint of StableHLO and CHLO: found when broken, and by MLIR too."""

from __future__ import annotations

import pytest
from support import CORPUS
from unit.analysis.stablehlo_broken import ACCEPTED_BY_MLIR, BROKEN, UNCHECKED
from unit.analysis.stablehlo_mlir import refusals
from unit.analysis.stablehlo_programs import VALID, Broken, program

from mlirhlo.analysis.stablehlo import CONSTRAINTS, verify_module
from mlirhlo.diagnostics import Diagnostic
from mlirhlo.formats.stablehlo import parse_module


def found_in(text: str) -> list[Diagnostic]:
    return verify_module(parse_module(text))


def test_every_constraint_has_a_broken_program() -> None:
    broken = {case.constraint for case in BROKEN} | {"sdy.data_flow_edge_c1"}
    assert broken | set(UNCHECKED) == set(CONSTRAINTS)
    assert not broken & set(UNCHECKED)


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.constraint)
def test_broken_constraint_is_found(case: Broken) -> None:
    first = found_in(program(case.text))[0]
    assert first.message.endswith(f"[{case.constraint}]"), first.message
    assert first.notes[0][0] == f"{case.constraint}: {CONSTRAINTS[case.constraint]}"
    assert first.place is not None
    assert first.place.line > 1


def test_an_edge_is_the_only_use_of_its_input() -> None:
    text = """func.func @f(%x: tensor<8xf32>) {
      %0 = sdy.data_flow_edge %x : tensor<8xf32>
      %1 = stablehlo.negate %x : tensor<8xf32>
      return
    }"""
    assert found_in(text)[0].message.endswith("the input has 2 uses [sdy.data_flow_edge_c1]")
    assert not found_in(text.replace("negate %x", "negate %0"))


@pytest.mark.parametrize("name", VALID)
def test_sound_program_is_accepted(name: str) -> None:
    assert not found_in(program(VALID[name]))


@pytest.mark.slow
@pytest.mark.oracle
def test_mlir_refuses_what_is_refused_and_accepts_what_is_accepted() -> None:
    """Quantized types are left out: the dialect `quant` is not part of jaxlib."""
    pytest.importorskip("jax")
    sound = [program(text) for text in VALID.values() if "!quant" not in text]
    assert not any(refusals(sound))
    broken = [case for case in BROKEN if "!quant" not in case.text]
    said = refusals([program(case.text) for case in broken])
    accepted = {case.constraint for case, words in zip(broken, said, strict=True) if not words}
    assert accepted == set(ACCEPTED_BY_MLIR)


@pytest.mark.slow
def test_corpus_is_sound() -> None:
    paths = sorted(CORPUS.glob("programs/*/*.stablehlo.mlir"))
    if not paths:
        pytest.skip("the corpus is not there")
    for path in paths:
        found = verify_module(parse_module(path.read_text(), str(path)))
        assert not found, f"{path}: {found[0]}"
