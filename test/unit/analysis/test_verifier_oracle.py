"""What our verifier refuses, XLA's refuses too: the invalid files, put into a running compilation.

XLA verifies a module that a transformation hands back. Each case becomes dead code of such a
module, its parameters custom calls.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

import oracle
import pytest
from support import ROOT

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

FILES = sorted((ROOT / "test" / "lit" / "dialects" / "hlo").glob("invalid_*.hlo"))

STRICTER = {
    "all-reduce-start_c2", "all-reduce_c2", "batch-norm-inference_c7",
    "bitcast_c1", "bitcast_c2", "broadcast_c6", "compare_c5", "convolution_c2", "gather_c17",
    "gather_c18", "map_c4", "mulhi_c5", "ragged-all-to-all_c2", "reduce-scatter_c4", "reshape_c4",
    "rng-bit-generator_c3", "scan_c6", "scan_c7", "scan_c8", "scan_c9", "scatter_c16",
    "scatter_c17", "scatter_c18", "topk_c3",
}  # fmt: skip
"""Constraints that XLA's verifier lets pass, though what breaks them means nothing."""

_PARAMETER = re.compile(r"^  (p\d+) = (.*) parameter\(\d+\).*$", re.MULTILINE)


def as_dead_code(piece: str) -> str:
    """A module `jit_f` that takes and gives f32[4], with the case as dead code."""
    lines = [line for line in piece.splitlines() if not line.strip().startswith("//")]
    helpers, entry = "\n".join(lines).split("ENTRY e {")
    entry = _PARAMETER.sub(r'  \1 = \2 custom-call(), custom_call_target="\1"', entry)
    body = entry.rstrip().removesuffix("}").replace("ROOT r =", "r =")
    return (
        f"HloModule jit_f\n{helpers}ENTRY main {{\n  q = f32[4] parameter(0)\n{body}\n"
        "  ROOT z = f32[4] negate(q)\n}\n"
    )


def verdict(text: str) -> str:
    """`accepted`, or raises what XLA says."""
    jax: Any = importlib.import_module("jax")
    stages: Any = importlib.import_module("jax.extend.xla")
    stage = stages.PipelineStage.PRE_SCHEDULER
    hlo = oracle.xla()

    def swap(data: bytes) -> bytes | None:
        if hlo.HloModule.from_serialized_hlo_module_proto(data).name != "jit_f":
            return None
        return hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()

    def f(x: Any) -> Any:
        return x * 5

    stages.register_hlo_module_transformation(swap, name="case", stage=stage, platforms="cpu")
    try:
        jax.jit(f).lower(jax.ShapeDtypeStruct((4,), "float32")).compile()
    finally:
        stages.clear_hlo_module_transformation("case", stage, platforms="cpu")
        jax.clear_caches()
    return "accepted"


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.name)
def test_xla_refuses_too(file: Any) -> None:
    pieces = re.split(r"^// -----\n", file.read_text(), flags=re.MULTILINE)
    cases = {
        found[1]: as_dead_code(piece)
        for piece in pieces
        if (found := re.search(r"\[([a-z0-9_-]+_c\d+)\]\}\}", piece)) and "HloModule" not in piece
    }
    answers = oracle.ask(list(cases.values()), verdict)
    accepted = {c for c, a in zip(cases, answers, strict=True) if a == "accepted"}
    assert accepted - STRICTER == set()
