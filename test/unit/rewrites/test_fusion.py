"""Fusion on random programs: results bit for bit, valid, the same every time, nothing expensive twice."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlirhlo.analysis.verifier import verify_module
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import FusionOp
from mlirhlo.formats.hlo_text import parse_module, print_module
from mlirhlo.interp import run_module
from mlirhlo.rewrites.fusion import MultiOutputFusionPass, running
from mlirhlo.rewrites.fusion.merging import Bodies, Meetings
from mlirhlo.rewrites.passes import Trace
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline

ROWS, COLUMNS = 8, 16
SHAPES = {"full": f"f32[{ROWS},{COLUMNS}]", "row": f"f32[{ROWS}]", "column": f"f32[{COLUMNS}]"}
REDUCERS = """sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
most {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b)
}
"""
PIPELINES = (
    "fusion",
    "fusion{multi-output=true}",
    "fusion,multi_output_fusion",
    "priority-fusion",
    "multi_output_fusion",
    "fusion{multi-output=true},defuser",
    "fusion{moves=true}",
    "fusion{multi-output=true moves=true}",
    "priority-fusion{moves=true}",
)
EXPENSIVE = ("tanh", "exponential")


@st.composite
def programs(draw: st.DrawFn) -> str:
    """A program of elementwise instructions, reduces of rows and columns, spreads, moves, products."""
    kinds = {"full": ["x", "y"], "row": ["r"], "column": ["c"]}
    lines: list[str] = []

    def add(kind: str, text: str) -> None:
        name = f"v{len(lines)}"
        lines.append(f"  {name} = {SHAPES[kind]} {text}")
        kinds[kind].append(name)

    def pick(kind: str) -> str:
        # Values made lately are read more often, so that chains come about.
        names = kinds[kind]
        return draw(st.sampled_from([*names, *names[-3:]]))

    for _ in range(draw(st.integers(3, 24))):
        kind = draw(st.sampled_from(("full", "full", "full", "row", "column")))
        what = draw(st.integers(0, 9))
        if what <= 2:
            opcode = draw(st.sampled_from(("add", "multiply", "subtract", "maximum")))
            add(kind, f"{opcode}({pick(kind)}, {pick(kind)})")
        elif what <= 4:
            add(kind, f"{draw(st.sampled_from(('negate', 'abs', *EXPENSIVE)))}({pick(kind)})")
        elif what <= 6 and kind != "full":
            dimension = 1 if kind == "row" else 0
            reducer = draw(st.sampled_from(("sum", "most")))
            text = f"reduce({pick('full')}, zero), dimensions={{{dimension}}}, to_apply={reducer}"
            add(kind, text)
        elif what <= 7:
            source = draw(st.sampled_from(("row", "column")))
            dimension = 0 if source == "row" else 1
            add("full", f"broadcast({pick(source)}), dimensions={{{dimension}}}")
        elif what == 8:
            lines += moved(f"v{len(lines)}", pick("full"), pick("column"), draw(st.integers(0, 4)))
            kinds["full"].append(lines[-1].split()[0])
        else:
            numbers = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
            add("full", f"dot({pick('full')}, w), {numbers}")
    names = [n for names in kinds.values() for n in names]
    results = draw(st.lists(st.sampled_from(names), min_size=1, max_size=6, unique=True))
    shapes = [next(SHAPES[k] for k, v in kinds.items() if n in v) for n in results]
    body = "\n".join(lines)
    return f"""HloModule random
{REDUCERS}ENTRY e {{
  x = {SHAPES["full"]} parameter(0)
  y = {SHAPES["full"]} parameter(1)
  r = {SHAPES["row"]} parameter(2)
  c = {SHAPES["column"]} parameter(3)
  w = f32[{COLUMNS},{COLUMNS}] parameter(4)
  zero = f32[] constant(0)
{body}
  ROOT t = ({", ".join(shapes)}) tuple({", ".join(results)})
}}
"""


def moved(name: str, full: str, column: str, how: int) -> list[str]:
    """Instructions that move the elements of an array; the last has its shape."""
    shape = SHAPES["full"]
    match how:
        case 0:
            return [f"  {name} = {shape} reverse({full}), dimensions={{1}}"]
        case 1:
            return [
                f"  {name}_a = f32[{ROWS},5] slice({full}), slice={{[0:{ROWS}], [0:5]}}",
                (
                    f"  {name}_b = f32[{ROWS},{COLUMNS - 5}] slice({full}), "
                    f"slice={{[0:{ROWS}], [5:{COLUMNS}]}}"
                ),
                f"  {name} = {shape} concatenate({name}_b, {name}_a), dimensions={{1}}",
            ]
        case 2:
            return [
                f"  {name}_a = f32[{COLUMNS},{ROWS}] reshape({full})",
                f"  {name} = {shape} transpose({name}_a), dimensions={{1,0}}",
            ]
        case 3:
            return [
                f"  {name}_a = f32[1,{COLUMNS}] reshape({column})",
                f"  {name}_b = s32[] constant(3)",
                f"  {name}_c = s32[] add({name}_b, {name}_b)",
                f"  {name} = {shape} dynamic-update-slice({full}, {name}_a, {name}_c, {name}_b)",
            ]
        case _:
            return [
                f"  {name}_a = s32[{ROWS}] iota(), iota_dimension=0",
                f"  {name}_b = s32[{ROWS}] multiply({name}_a, {name}_a)",
                (
                    f"  {name} = {shape} gather({full}, {name}_b), offset_dims={{1}}, "
                    "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
                    f"slice_sizes={{1,{COLUMNS}}}"
                ),
            ]


def inputs() -> list[object]:
    rng = np.random.default_rng(3)
    sizes = [(ROWS, COLUMNS), (ROWS, COLUMNS), (ROWS,), (COLUMNS,), (COLUMNS, COLUMNS)]
    return [rng.standard_normal(size).astype("f4") for size in sizes]


def expensive(module: HloModule) -> Counter[str]:
    return Counter(
        op.opcode.name for op in module.instructions if op.opcode.name in (*EXPENSIVE, "dot")
    )


@pytest.mark.one_case_in(2)
@pytest.mark.slow
@pytest.mark.parametrize("pipeline", PIPELINES)
@given(text=programs())
@settings(max_examples=20, deadline=None)
def test_random_programs_compute_the_same(pipeline: str, text: str) -> None:
    module = parse_module(text)
    run_pipeline(module, parse_pipeline("dce"))
    before = expensive(HloModule(module))
    expected = [np.asarray(a) for a in run_module(module, inputs())]
    run_pipeline(module, parse_pipeline(pipeline))
    assert verify_module(module) == []
    assert expensive(HloModule(module)) == before
    for a, b in zip(run_module(module, inputs()), expected, strict=True):
        assert np.asarray(a).tobytes() == b.tobytes()
    # With remarks, all instructions are considered; without, those that fusing could be about.
    again = parse_module(text)
    run_pipeline(again, parse_pipeline(f"dce,{pipeline}"), trace=Trace(remarks=[]))
    assert print_module(again) == print_module(module)
    run_pipeline(module, parse_pipeline(pipeline))
    run_pipeline(again, parse_pipeline(pipeline), trace=Trace(remarks=[]))
    assert print_module(again) == print_module(module)


BEFORE_MERGING = (
    "dce",
    "dce,fusion{multi-output=true},cse,dce",
    "dce,priority-fusion,cse,dce",
    "dce,priority-fusion,multi_output_fusion,cse,dce",
    "dce,fusion,multi_output_fusion,dce,fusion,dce",
)


def merged(text: str, *, columns: bool = True) -> tuple[bool, bool]:
    """Whether two kernels seem to meet, and whether planning merges any."""
    module = HloModule(parse_module(text), {}, {})
    meets = False
    for computation in running(module):
        meets |= Meetings(module, Bodies.of(module), computation, columns=columns).any()
    return meets, MultiOutputFusionPass(columns=columns).run(module, Trace(remarks=[]))


@pytest.mark.one_case_in(2)
@pytest.mark.slow
@pytest.mark.parametrize("columns", [True, False])
@pytest.mark.parametrize("pipeline", BEFORE_MERGING)
@given(text=programs())
@settings(max_examples=20, deadline=None)
def test_who_is_merged_meets(pipeline: str, columns: bool, text: str) -> None:
    module = parse_module(text)
    run_pipeline(module, parse_pipeline(pipeline))
    meets, changed = merged(print_module(module), columns=columns)
    assert meets or not changed


OWN_PARTS = {
    "loop": """f {
  p = f32[8,16] parameter(0)
  a = f32[8,16] negate(p)
  b = f32[8,16] tanh(a)
  ROOT t = (f32[8,16], f32[8,16]) tuple(a, b)
}""",
    "rows": """f {
  p = f32[8,16] parameter(0)
  a = f32[8,16] negate(p)
  z = f32[] constant(0)
  s = f32[8] reduce(a, z), dimensions={1}, to_apply=sum
  w = f32[8,16] broadcast(s), dimensions={0}
  b = f32[8,16] subtract(a, w)
  ROOT t = (f32[8,16], f32[8,16]) tuple(a, b)
}""",
    "columns": """f {
  p = f32[8,16] parameter(0)
  a = f32[8,16] negate(p)
  z = f32[] constant(0)
  b = f32[16] reduce(a, z), dimensions={0}, to_apply=sum
  ROOT t = (f32[8,16], f32[16]) tuple(a, b)
}""",
    "broadcast": """f {
  p = f32[8,16] parameter(0)
  z = f32[] constant(0)
  r = f32[8] reduce(p, z), dimensions={1}, to_apply=sum
  ROOT a = f32[8,16] broadcast(r), dimensions={0}
}""",
}


def part_read(body: str) -> str:
    """What a fusion gives, or its first part, read by a kernel that may not run beside it, and given."""
    last = "f32[16]" if "b = f32[16]" in body else "f32[8,16]"
    several = "tuple" in body
    shape = f"(f32[8,16], {last})" if several else "f32[8,16]"
    first = "get-tuple-element(f1), index=0" if several else "copy(f1)"
    return f"""HloModule own
{REDUCERS}{body}
g {{
  p = f32[8,16] parameter(0)
  q = f32[8,16] parameter(1)
  ROOT n = f32[8,16] add(p, q)
}}
ENTRY e {{
  x = f32[8,16] parameter(0)
  w = f32[16,16] parameter(1)
  f1 = {shape} fusion(x), kind=kLoop, calls=f
  a1 = f32[8,16] {first}
  d = f32[8,16] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  g1 = f32[8,16] fusion({"a1" if several else "f1"}, d), kind=kLoop, calls=g
  ROOT t = (f32[8,16], f32[8,16]) tuple(a1, g1)
}}
"""


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("kind", sorted(OWN_PARTS))
def test_what_a_fusion_writes_itself_meets_nobody(kind: str) -> None:
    assert merged(part_read(OWN_PARTS[kind])) == (False, False)


def test_what_a_fusion_does_not_read_itself_meets_its_readers() -> None:
    body = OWN_PARTS["loop"].replace("tanh(a)", "tanh(p)")
    assert merged(part_read(body)) == (True, True)


def test_columns_that_are_alone_meet_nobody_of_theirs() -> None:
    meets, changed = merged(part_read(OWN_PARTS["columns"]), columns=False)
    assert meets
    assert not changed


def chain(length: int) -> str:
    """A chain that is too long for one fusion."""
    lines = ["  x0 = f32[8] parameter(0)"]
    lines += [f"  x{n + 1} = f32[8] add(x{n}, x{max(n - 3, 0)})" for n in range(length)]
    return "ENTRY e {\n" + "\n".join(lines) + f"\n  ROOT r = f32[8] negate(x{length})\n}}\n"


def test_a_fusion_has_a_size() -> None:
    module = parse_module(chain(1000))
    before = np.asarray(run_module(module, [np.full(8, 1e-30, "f4")])[0])
    run_pipeline(module, parse_pipeline("fusion{multi-output=true}"))
    fusions = [op for op in HloModule(module).instructions if isinstance(op, FusionOp)]
    assert 2 < len(fusions) < 100
    after = np.asarray(run_module(module, [np.full(8, 1e-30, "f4")])[0])
    assert before.tobytes() == after.tobytes()
