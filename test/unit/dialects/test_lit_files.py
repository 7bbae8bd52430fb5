"""Every op of the stablehlo and chlo dialects has a lit file with all four parts."""

from __future__ import annotations

import re

import pytest
from support import ROOT

from mlirhlo.dialects.chlo.table import ROWS as CHLO
from mlirhlo.dialects.stablehlo.table import ROWS as STABLEHLO

LIT = ROOT / "test" / "lit"
OPS = (*STABLEHLO, *CHLO)
NOT_EXECUTED = {
    "stablehlo.unary_einsum",
}
"""Ops that have no HLO form, here and in XLA."""

NO_NUMBERS = {
    *("after_all", "async_done", "async_start", "create_token", "custom_call", "einsum"),
    *("outfeed", "partition_id", "replica_id", "return", "unary_einsum", "chlo.scan"),
}
"""Ops without numbered constraints; their faults are those of form and types."""


@pytest.mark.parametrize("op", OPS)
def test_an_op_has_a_file_with_all_parts(op: str) -> None:
    dialect, _, name = op.partition(".")
    text = (LIT / dialect / f"{name}.mlir").read_text()
    valid, *broken = text.split("\n// -----\n")
    word = re.escape(op)
    assert re.search(rf'^// CHECK(-NEXT)?: .*"?{word}\b', valid, re.MULTILINE), "its usual form"
    assert re.search(rf'^// GENERIC(-NEXT)?: .*"{word}"\(', valid, re.MULTILINE), "its generic form"
    assert broken, "a fault"
    for piece in broken:
        assert re.search(r"// expected-error @below \{\{.+\}\}$", piece, re.MULTILINE)
    numbered = re.escape(op.removeprefix("stablehlo."))
    has_number = re.search(rf"\[{numbered}_c\d+\]\}}\}}$", text, re.MULTILINE)
    assert bool(has_number) == (op.removeprefix("stablehlo.") not in NO_NUMBERS)
    if op in NOT_EXECUTED:
        assert "// Not executed: " in valid
        assert "run_hlo_module" not in valid
        return
    runs = valid.split("func.func @run() {")[1]
    assert "check.expect_" in runs
    assert op in valid.split("\nfunc.func", 2)[2], "the op itself runs"
    assert re.search(
        r"^// RUN: .*\| run_hlo_module --platform=Interpreter .*-$", valid, re.MULTILINE
    )


@pytest.mark.parametrize("dialect", ["stablehlo", "chlo"])
def test_every_file_is_of_an_op(dialect: str) -> None:
    files = {f"{dialect}.{path.stem}" for path in (LIT / dialect).glob("*.mlir")}
    assert files == {op for op in OPS if op.startswith(f"{dialect}.")}
