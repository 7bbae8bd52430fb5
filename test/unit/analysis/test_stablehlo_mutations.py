"""Sound programs with sizes, elements and numbers exchanged: MLIR and we judge alike."""

from __future__ import annotations

import os
import random
import re

import pytest
from unit.analysis.stablehlo_broken import ACCEPTED_BY_MLIR
from unit.analysis.stablehlo_mlir import refusals
from unit.analysis.stablehlo_programs import VALID, program

from mlirhlo.analysis.stablehlo import verify_module
from mlirhlo.diagnostics import HloError
from mlirhlo.formats.stablehlo import parse_module

COUNT = int(os.environ.get("MLIRHLO_DIFFERENTIAL", "6")) * 100
SEED = int(os.environ.get("MLIRHLO_SEED", "20240"))

STRICTER = {
    **ACCEPTED_BY_MLIR,
    "all_gather_c6": "MLIR asks for a multiple, whatever the size of a group",
    "reduce_scatter_c8": "MLIR asks for a multiple, whatever the size of a group",
    **{
        f"batch_norm_{op}_{number}": "MLIR compares sizes of the first vector with the features only"
        for op in ("grad", "inference", "training")
        for number in ("c3", "c4", "c5", "c6")
    },
    "bitcast_convert_c1": "MLIR compares as many sizes as the shorter shape has",
    "rng_bit_generator_c1": "MLIR compares shapes only",
    **dict.fromkeys(
        ("reduce_c2", "reduce_window_c3", "select_and_scatter_c1", "select_and_scatter_c3"),
        "MLIR asks only that initial values promote to what the body takes",
    ),
    "dynamic_pad_c4": "MLIR compares the result of constant paddings only",
    "reduce_c7": "MLIR gives all results the sizes of the first input, unknown ones too",
    "dynamic_iota_o1": "MLIR takes i1",
    "scatter_i2": "MLIR takes i1 for an index",
    "dynamic_pad_c1": "MLIR does not infer the result",
    "dynamic_gather_c22": "MLIR lets the result be of any size that the slice does not say",
    "chlo.broadcast_select_c1": "MLIR takes the result's element type",
    "real_dynamic_slice_c1": "MLIR does not compare where sizes are unknown",
}
"""Constraints of the specification that MLIR's verifier does not hold, or not wholly, and why."""

_ELEMENTS = ("f32", "f64", "i32", "i1", "ui32", "f16", "complex<f32>", "i64", "bf16", "ui8")
_SIZE = re.compile(r"(?<=[<x])(?:\d+|\?)(?=x)")
_ELEMENT = re.compile(r"(?<=[x<])(?:f32|f64|i32|i1|ui32|complex<f32>|i64|ui64)(?=>)")
_NUMBER = re.compile(r"(?<=[\[ ])-?\d+(?=[,\]>]| :)")
_SHAPE = re.compile(r"(?<=tensor<)(?:[\d?]+x)*")


def _mutated(text: str, chance: random.Random) -> str:
    for _ in range(chance.choice((1, 1, 2, 3))):
        pattern, options = chance.choice(
            (
                (_SIZE, ("0", "1", "2", "3", "4", "5", "6", "8", "?", "?")),
                (_SIZE, ("1", "2", "3", "4", "?")),
                (_ELEMENT, _ELEMENTS),
                (_NUMBER, ("-1", "0", "1", "2", "3", "4")),
                (_NUMBER, ("0", "1", "2", "3")),
                (_SHAPE, ("", "2x", "2x3x", "?x3x4x")),
            )
        )
        places = list(pattern.finditer(text))
        if places:
            place = chance.choice(places)
            text = text[: place.start()] + chance.choice(options) + text[place.end() :]
    return text


def _judged(text: str) -> str:
    """What we say of a program: empty where it is sound."""
    try:
        found = verify_module(parse_module(text))
    except HloError as problem:
        return problem.diagnostics[0].message
    return found[0].message if found else ""


@pytest.mark.slow
@pytest.mark.oracle
def test_mlir_judges_mutations_alike() -> None:
    pytest.importorskip("jax")
    chance = random.Random(SEED)
    # CHLO's broadcasts are one rule and would be a third of all programs.
    names = [n for n in VALID if "!quant" not in VALID[n] and not n.startswith("chlo.broadcast_")]
    texts = [program(_mutated(VALID[chance.choice(names)], chance)) for _ in range(COUNT)]
    sound = 0
    for text, said in zip(texts, refusals(texts), strict=True):
        ours = _judged(text)
        sound += not ours
        if not ours:
            assert not said, f"{said}\n{text}"
        elif not said:
            constraint = ours.rpartition("[")[2].rstrip("]")
            assert constraint in STRICTER, f"{ours}\n{text}"
    assert sound > COUNT // 10


_ATTRIBUTE = re.compile(r"\w+ = (?=[#\d\[\"@a-z])")
_OTHERS = (
    '"a"', "1 : i32", "array<i64>", "array<i64: 0>", "dense<0> : tensor<2xi64>", "[1, 2]", "true",
    "unit", "@x", "{a = 1 : i32}", "1.0 : f32", "#stablehlo<precision DEFAULT>", "-1 : i64",
    "array<i64: 9223372036854775807, 1, 2>", "9223372036854775807 : i64",
)  # fmt: skip


def _end(text: str, start: int) -> int:
    """Where the attribute at `start` ends."""
    depth = 0
    for at in range(start, len(text)):
        if text[at] in "<([{":
            depth += 1
        elif text[at] in ">)]}" and text[at - 1] != "-":
            depth -= 1
        if depth < 0 or (depth == 0 and text[at] == ","):
            return at
    return len(text)


def test_attributes_of_any_kind_are_judged() -> None:
    """Text that is well formed but makes no sense is refused, by the reader or by the verifier."""
    chance = random.Random(SEED)
    judged = 0
    for _ in range(COUNT):
        text = VALID[chance.choice(list(VALID))]
        places = list(_ATTRIBUTE.finditer(text))
        if places:
            at = chance.choice(places).end()
            judged += bool(
                _judged(program(text[:at] + chance.choice(_OTHERS) + text[_end(text, at) :]))
            )
    assert judged > COUNT // 4
