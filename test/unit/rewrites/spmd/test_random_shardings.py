"""Instructions of every opcode with random shardings: partitioned, they compute the same."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest
from support import SEED

from mlirhlo.debug.fuzz import partitioning as spmd
from mlirhlo.debug.fuzz.generators.choices import Seeded
from mlirhlo.debug.fuzz.generators.sharded import OPCODES, program
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.rewrites.spmd.shifting_rules import variants_of

CASES = 1
"""Of each opcode; `hlo-fuzz` makes more."""


@pytest.mark.slow
def test_every_opcode_computes_the_same() -> None:
    for number, opcode in enumerate(OPCODES * CASES):
        case = program(Seeded(SEED * 1000 + number), opcode)
        if spmd.refusal(case.text, case.inputs) is None:
            try:
                spmd.compare(
                    case.text, case.partitions, case.inputs, before=case.propagation, floor=case.off
                )
            except Exception as problem:
                raise AssertionError(f"{opcode} ({number}): {problem}\n{case.text}") from problem


def test_what_an_operand_is_cut_along_the_result_is_too() -> None:
    """A factor that no result has is summed over, or whole: else a device's part would count as the whole."""
    for number, opcode in enumerate(OPCODES * CASES):
        case = program(Seeded(SEED * 2000 + number), opcode)
        for op in HloModule(parse_module(case.text)).entry.instructions:
            for factors in variants_of(op):
                results = {f for dims in factors.results for dim in dims for f in dim}
                operands = {f for dims in factors.operands for dim in dims for f in dim}
                lost = operands - results - factors.reduced - factors.whole
                assert not lost, f"{op.instruction_name} of\n{case.text}"


ROWS = """HloModule rows, num_partitions=4

ENTRY main {{
  x = f32[8,4] parameter(0), sharding={{{place}}}
  last = f32[1,4] slice(x), slice={{[7:8], [0:4]}}
  a = f32[4] reshape(last)
  two = f32[] constant(2)
  twos = f32[4] broadcast(two), dimensions={{}}
  b = f32[4] multiply(a, twos)
  first = f32[1,4] slice(x), slice={{[0:1], [0:4]}}
  c = f32[4] reshape(first)
  ROOT r = f32[4] add(b, c)
}}
"""


@pytest.mark.parametrize("place", ["devices=[4,1]<=[4]", "devices=[2,2]<=[4]", "maximal device=2"])
def test_rows_behind_reshapes(place: str) -> None:
    x = np.arange(32, dtype=np.float32).reshape(8, 4)
    spmd.compare(ROWS.format(place=place), 4, [x])


KINDS = {
    "a gather of row 0, which no index names": (
        "x = f32[4,3] parameter(0), sharding={devices=[4,1]<=[4]}",
        "k = s32[2] parameter(1)",
        (
            "f32[2] gather(x, k), offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={1}, "
            "index_vector_dim=1, slice_sizes={1,1}"
        ),
    ),
    "a scatter into row 0, which no index names": (
        "x = f32[4,3] parameter(0), sharding={devices=[4,1]<=[4]}",
        "k = s32[2] parameter(1)",
        "u = f32[2] parameter(2)",
        (
            "f32[4,3] scatter(x, k, u), update_window_dims={}, inserted_window_dims={0,1}, "
            "scatter_dims_to_operand_dims={1}, index_vector_dim=1, to_apply=add"
        ),
    ),
    "a value of one partition": (
        "x = f32[4,3] parameter(0), sharding={maximal device=3}",
        "f32[4,3] negate(x)",
    ),
    "a slice of nothing": (
        "x = f32[5,4] parameter(0), sharding={devices=[1,4]<=[4]}",
        "f32[5,0] slice(x), slice={[0:5], [1:1:2]}",
    ),
    "a concatenation with nothing": (
        "x = f32[5,4] parameter(0), sharding={devices=[4,1]<=[4]}",
        "y = f32[0,4] parameter(1), sharding={devices=[4,1]<=[4]}",
        "f32[5,4] concatenate(x, y), dimensions={0}",
    ),
    "a region of a mesh in an order of its own": (
        "x = f32[4,2] parameter(0), sharding={devices=[4,1]1,0,3,2}",
        (
            'l = f32[2,2] custom-call(x), custom_call_target="SPMDFullToShardShape", '
            "sharding={devices=[2,1,2]1,3,0,2 last_tile_dims={manual}}"
        ),
        "t = f32[2,2] negate(l), sharding={devices=[2,1,2]1,3,0,2 last_tile_dims={manual}}",
        (
            'f32[4,2] custom-call(t), custom_call_target="SPMDShardToFullShape", '
            "sharding={devices=[4,1]1,0,3,2}"
        ),
    ),
    "a tuple inside a region": (
        "x = f32[4,2] parameter(0), sharding={devices=[2,2]<=[4]}",
        (
            'l = f32[2,2] custom-call(x), custom_call_target="SPMDFullToShardShape", '
            "sharding={devices=[1,2,2]<=[2,2]T(1,0) last_tile_dims={manual}}"
        ),
        (
            "s = (f32[2,2], f32[2,2]) collective-permute-start(l), channel_id=1, "
            "source_target_pairs={{0,2},{2,0},{1,3},{3,1}}"
        ),
        "d = f32[2,2] collective-permute-done(s)",
        (
            'm = f32[2,2] custom-call(d), custom_call_target="Sharding", '
            "sharding={devices=[1,2,2]<=[2,2]T(1,0) last_tile_dims={manual}}"
        ),
        (
            'f32[4,2] custom-call(m), custom_call_target="SPMDShardToFullShape", '
            "sharding={devices=[2,2]<=[4]}"
        ),
    ),
    "an asynchronous pair": (
        "x = f32[4,2] parameter(0), sharding={devices=[4,1]<=[4]}",
        "s = ((f32[4,2]), f32[4,2], u32[]) async-start(x), calls=inner",
        "u = ((f32[4,2]), f32[4,2], u32[]) async-update(s)",
        "f32[4,2] async-done(u)",
    ),
    "the sign of a zero": (
        "x = f32[8,1] parameter(0), sharding={devices=[4,1]<=[4]}",
        "zero = f32[1,1] slice(x), slice={[0:1], [0:1]}",
        "one = f32[1,1] constant({{1}})",
        "f32[1,1] divide(one, zero)",
    ),
}
INNER = "inner {\n  p = f32[4,2] parameter(0)\n  ROOT n = f32[4,2] negate(p)\n}\n"
ADD = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}\n"


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("place", ["", ", sharding={devices=[2,2]<=[4]}"])
@pytest.mark.parametrize("before", ["", "sharding-propagation"])
def test_kinds(name: str, place: str, before: str) -> None:
    *lines, last = KINDS[name]
    is_zero = name == "the sign of a zero"
    if "sharding=" in last:
        place = ""
    if place and last.split(" ")[0].count(",") != 1:
        place = ", sharding={devices=[4]<=[4]}"
    body = "\n  ".join([*lines, f"ROOT r = {last}{place}"])
    text = f"HloModule m, num_partitions=4\n\n{ADD}{INNER}\nENTRY main {{\n  {body}\n}}\n"
    inputs: list[np.ndarray] = []
    for parameter in HloModule(parse_module(text)).entry.parameters:
        shape = cast("ArrayShape", parameter.shape)
        values = np.arange(shape.element_count, dtype=shape.element_type.dtype)
        inputs.append(
            -values.reshape(shape.dimensions) if is_zero else values.reshape(shape.dimensions)
        )
    spmd.compare(text, 4, inputs, before=before, floor=0)
