"""Shardy's ops: both forms as MLIR prints them."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import ROOT

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.sdy.collectives import COLLECTIVES
from mlirhlo.dialects.sdy.ops import OPS
from mlirhlo.formats.stablehlo import parse_module, print_module

PROGRAMS = sorted((ROOT / "test" / "lit" / "dialects" / "sdy").glob("*.mlir"))


def _text(path: Path) -> str:
    """The program of a lit file: no commands, no lines of checks."""
    lines = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("//")]
    return "\n".join(lines) + "\n"


def test_every_op_has_a_program() -> None:
    texts = "".join(map(_text, PROGRAMS))
    missing = [op.name for op in (*OPS, *COLLECTIVES) if f"{op.name} " not in texts
               and f"{op.name}(" not in texts and f"{op.name}<" not in texts]  # fmt: skip
    assert not missing


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_both_forms_come_back(path: Path) -> None:
    pretty = print_module(parse_module(_text(path)))
    generic = print_module(parse_module(_text(path)), generic=True)
    assert print_module(parse_module(pretty)) == pretty
    assert print_module(parse_module(generic)) == pretty
    assert print_module(parse_module(pretty), generic=True) == generic


@pytest.mark.oracle
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_mlir_prints_the_same(path: Path) -> None:
    mlir = pytest.importorskip("jax._src.interpreters.mlir")
    from jaxlib.mlir import ir

    with mlir.make_ir_context():
        module = ir.Module.parse(_text(path))
        pretty = str(module)
        generic = module.operation.get_asm(print_generic_op_form=True)
    assert print_module(parse_module(_text(path))).rstrip() == pretty.rstrip()
    assert print_module(parse_module(_text(path)), generic=True).rstrip() == generic.rstrip()


@pytest.mark.parametrize(
    "line",
    [
        "sdy.mesh @m = <[]",
        'sdy.mesh @m = <["x"=0]>',
        "sdy.mesh @m",
        "sdy.sharding_group %x group_id=a : tensor<8xf32>",
        "%0 = sdy.propagation_barrier %x allowed_direction=SIDEWAYS : tensor<8xf32>",
        "%0 = sdy.sharding_constraint %x : tensor<8xf32>",
        "%0 = sdy.all_gather [] %x : tensor<8xf32>",
        "%0 = sdy.constant 3",
    ],
)
def test_broken_text_is_refused_with_its_place(line: str) -> None:
    with pytest.raises(HloError) as caught:
        parse_module(f"func.func @f(%x: tensor<8xf32>) {{\n  {line}\n  return\n}}\n")
    place = caught.value.diagnostics[0].place
    assert place is not None
    assert place.line >= 2
