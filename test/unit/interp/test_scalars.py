"""Element-wise ops on scalars give scalars: numpy likes to turn them into arrays of one element."""

from __future__ import annotations

import numpy as np
import pytest
from interp_support import run

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.table import ELEMENTWISE_ROWS, Opcode

TYPES = ("f32", "bf16", "f8e4m3fn", "c64", "s32", "u8", "s4", "pred")
ATTRIBUTES = {
    "compare": ", direction=LT",
    "reduce-precision": ", exponent_bits=5, mantissa_bits=3",
}
RESULTS = {"compare": "pred", "is-finite": "pred"}


def line(row: Opcode, name: str) -> tuple[str, list[str]]:
    """The instruction and the types of its parameters."""
    types = [name] * int(str(row.arity)) if isinstance(row.arity, int) else []
    if row.name == "select":
        types[0] = "pred"
    result = RESULTS.get(row.name, name)
    if row.name == "complex":
        result = "c64"
    if row.name in ("abs", "real", "imag") and name == "c64":
        result = "f32"
    if row.name == "convert":
        result = "f16"
    if row.name == "stochastic-convert":
        types, result = ["f32", "u32"], "f16"
    names = ", ".join(f"p{i}" for i in range(len(types)))
    return f"{result}[] {row.name}({names}){ATTRIBUTES.get(row.name, '')}", types


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("row", ELEMENTWISE_ROWS, ids=lambda row: row.name)
def test_scalars_stay_scalars(row: Opcode, name: str) -> None:
    from mlirhlo.analysis.verifier import verify_module
    from mlirhlo.formats.hlo_text import parse_module

    root, types = line(row, name)
    parameters = "".join(f"  p{i} = {t}[] parameter({i})\n" for i, t in enumerate(types))
    text = f"ENTRY e {{\n{parameters}  ROOT r = {root}\n}}\n"
    if verify_module(parse_module(text)):
        return  # not an element type of this opcode
    try:
        (out,) = run(text, *[1] * len(types))
    except HloError as problem:
        if problem.code == "HLO0307":
            return  # XLA's verifier lets it pass, but nothing computes it
        raise
    assert np.asarray(out).shape == ()


@pytest.mark.parametrize("name", ["f32", "bf16", "f64", "f8e5m2"])
@pytest.mark.parametrize("order", ["type=TOTALORDER", "order=TOTAL"])
def test_total_order_of_scalars(name: str, order: str) -> None:
    text = f"ENTRY e {{ x = {name}[] parameter(0)  ROOT r = pred[] compare(x, x), direction=GE, {order} }}"
    (out,) = run(text, float("nan"))
    assert out.shape == ()
    assert out
