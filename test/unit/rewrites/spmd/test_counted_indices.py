"""Gathers and scatters whose indices count along a dimension: `x[arange(n), i]`."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from mlirhlo.debug.fuzz.partitioning import LONG, compare
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import GatherOp, ScatterOp
from mlirhlo.formats.hlo_text import parse_module, print_module
from mlirhlo.rewrites.spmd.counted_indices import counted

ADD = "add { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT r = f32[] add(p, q) }\n"
CUT, OTHER, WHOLE = "{devices=[4,1]<=[4]}", "{devices=[1,4]<=[4]}", "{replicated}"

ROWS = {
    "iota": "rows = s32[8,1] iota(), iota_dimension=0",
    "iota of one dimension": """one = s32[8] iota(), iota_dimension=0
        rows = s32[8,1] reshape(one)""",
    "broadcast": """one = s32[8] iota(), iota_dimension=0
        rows = s32[8,1] broadcast(one), dimensions={0}""",
    "converted": """one = s8[8,1] iota(), iota_dimension=0
        rows = s32[8,1] convert(one)""",
    "made non-negative": """one = s32[8,1] iota(), iota_dimension=0
        zero = s32[] constant(0)
        zeros = s32[8,1] broadcast(zero), dimensions={}
        n = s32[] constant(8)
        ns = s32[8,1] broadcast(n), dimensions={}
        less = pred[8,1] compare(one, zeros), direction=LT
        back = s32[8,1] add(one, ns)
        rows = s32[8,1] select(less, back, one)""",
}
"""Lines that make the numbers of all rows."""

OTHERS = {
    "from one": """zero = s32[8,1] iota(), iota_dimension=0
        one = s32[] constant(1)
        ones = s32[8,1] broadcast(one), dimensions={}
        rows = s32[8,1] add(zero, ones)""",
    "along the vector": "rows = s32[8,1] iota(), iota_dimension=1",
}

GATHER = """{rows}
    both = s32[8,2] concatenate({order}), dimensions={{1}}
    ROOT g = f32[8] gather(x, both), offset_dims={{}}, collapsed_slice_dims={{0,1}}, start_index_map={{{map}}},
      index_vector_dim=1, slice_sizes={{1,1}}, sharding={out}"""
SCATTER = """{rows}
    both = s32[8,2] concatenate({order}), dimensions={{1}}
    u = f32[8] parameter(2), sharding={update}
    ROOT g = f32[8,6] scatter(x, both, u), update_window_dims={{}}, inserted_window_dims={{0,1}},
      scatter_dims_to_operand_dims={{{map}}}, index_vector_dim=1, to_apply=add, sharding={out}"""


def module(kind: str, rows: str, swapped: bool, cuts: tuple[str, str, str], size: int = 8) -> str:
    """`x[rows, i]`, or a scatter into those places."""
    flat = "{devices=[4]<=[4]}"
    body = (GATHER if kind == "gather" else SCATTER).format(
        rows=rows,
        order="i, rows" if swapped else "rows, i",
        map="1,0" if swapped else "0,1",
        out=(flat if cuts[2] == CUT else WHOLE) if kind == "gather" else cuts[2],
        update=flat if cuts[1] == CUT else WHOLE,
    )
    if kind == "scatter":
        body = body.replace("f32[8,6] scatter", f"f32[{size},6] scatter")
    return f"""HloModule m, num_partitions=4
    {ADD}
    ENTRY e {{
    x = f32[{size},6] parameter(0), sharding={cuts[0]}
    i = s32[8,1] parameter(1), sharding={cuts[1]}
    {body}
    }}"""


def inputs(kind: str, size: int = 8) -> list[np.ndarray]:
    random = np.random.default_rng(3)
    found = [
        random.standard_normal((size, 6)).astype(np.float32),
        random.integers(-1, 8, (8, 1)).astype(np.int32),
    ]
    update = random.standard_normal(8).astype(np.float32)
    return [*found, update] if kind == "scatter" else found


def collectives(parts: ModuleOp) -> list[str]:
    text = print_module(parts, LONG)
    return re.findall(r" (all-\w+|collective-permute|reduce-scatter)\(", text)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("kind", ["gather", "scatter"])
def test_rows_that_are_cut_alike_stay_where_they_are(kind: str, rows: str, swapped: bool) -> None:
    text = module(kind, ROWS[rows], swapped, (CUT, CUT, CUT))
    assert collectives(compare(text, 4, inputs(kind))) == []


@pytest.mark.parametrize(
    ("kind", "cuts"),
    [
        (kind, cuts)
        for kind, results in (("gather", (CUT, WHOLE)), ("scatter", (CUT, OTHER, WHOLE)))
        for cuts in itertools.product((CUT, OTHER, WHOLE), (CUT, WHOLE), results)
    ],
)
def test_any_shardings(kind: str, cuts: tuple[str, str, str]) -> None:
    compare(module(kind, ROWS["iota"], False, cuts), 4, inputs(kind))


@pytest.mark.parametrize("kind", ["gather", "scatter"])
@pytest.mark.parametrize("rows", ["from one", "along the vector"])
def test_other_rows_stay_indices(kind: str, rows: str) -> None:
    check_stays(kind, OTHERS[rows], 8)


@pytest.mark.parametrize("kind", ["gather", "scatter"])
def test_more_rows_than_indices_stay_indices(kind: str) -> None:
    check_stays(kind, ROWS["iota"], 12)


def check_stays(kind: str, rows: str, size: int) -> None:
    text = module(kind, rows, False, (CUT, CUT, CUT), size)
    found = HloModule(parse_module(text)).instructions_of(GatherOp, ScatterOp)
    assert [counted(op) for op in found if isinstance(op, GatherOp | ScatterOp)] == [()]
    compare(text, 4, inputs(kind, size))
