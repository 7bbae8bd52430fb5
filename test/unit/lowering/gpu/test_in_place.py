"""Results written over operands: loops without copies, and the same values as the interpreter's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirhlo
from mlirhlo.lowering.plan.steps import Copy, Kernel, Repeat, Step, While, all_steps

pytest.importorskip("llvmlite")

BODY = """HloModule loop
b {{ p = (s32[], f32[8,4], f32[4]) parameter(0)  i = s32[] get-tuple-element(p), index=0
  k = f32[8,4] get-tuple-element(p), index=1  x = f32[4] get-tuple-element(p), index=2
  one = s32[] constant(1)  n = s32[] add(i, one)  y = f32[4] add(x, x)  z = s32[] constant(0)
  {update}
  ROOT r = (s32[], f32[8,4], f32[4]) tuple(n, u, y) }}
c {{ p = (s32[], f32[8,4], f32[4]) parameter(0)  i = s32[] get-tuple-element(p), index=0
  k = s32[] constant({rounds})  ROOT r = pred[] compare(i, k), direction={direction} }}
ENTRY e {{ k = f32[8,4] parameter(0)  x = f32[4] parameter(1)  z = s32[] constant(0)
  t = (s32[], f32[8,4], f32[4]) tuple(z, k, x)  w = (s32[], f32[8,4], f32[4]) while(t), condition=c, body=b
  ROOT y = f32[8,4] get-tuple-element(w), index=1 }}
"""
WRITTEN = "v = f32[1,4] reshape(y)  u = f32[8,4] dynamic-update-slice(k, v, i, z)"
UPDATES = {
    "row": WRITTEN,
    "row that is read": "o = f32[1,4] dynamic-slice(k, i, z), dynamic_slice_sizes={1,4}  v = f32[1,4] reshape(y)"
    "  s = f32[1,4] add(o, v)  u = f32[8,4] dynamic-update-slice(k, s, i, z)",
    "all": "v = f32[8,4] broadcast(y), dimensions={1}  u = f32[8,4] add(k, v)",
    # Each row is made of another one, which the update must not have changed by then.
    "reversed": "v = f32[8,4] reverse(k), dimensions={0}  u = f32[8,4] add(k, v)",
    "next row": "o = f32[7,4] slice(k), slice={[1:8], [0:4]}  u = f32[8,4] dynamic-update-slice(k, o, z, z)",
    "row of another": "j = s32[] subtract(i, one)  o = f32[1,4] dynamic-slice(k, j, z), dynamic_slice_sizes={1,4}"
    "  u = f32[8,4] dynamic-update-slice(k, o, i, z)",
    "index out of it": "f = f32[1,1] slice(k), slice={[0:1], [0:1]}  g = f32[] reshape(f)  j = s32[] convert(g)"
    "  v = f32[1,4] reshape(y)  u = f32[8,4] dynamic-update-slice(k, v, j, z)",
}
FREE = ("row", "row that is read", "row of another", "all")
"""Those that need no copy in the loop."""
SCATTER = "a { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }\n"


def loop(update: str, rounds: int = 5, direction: str = "LT") -> str:
    text = UPDATES.get(update, update)
    return BODY.format(update=text, rounds=rounds, direction=direction)


def run(text: str, *arguments: Any) -> Any:
    """The plan's steps, when results and findings are right."""
    module = mlirhlo.parse(text)
    compiled: Any = mlirhlo.compile(module, "gpu")
    got, want = compiled(*arguments), module(*arguments)
    for x, y in zip(*(v if isinstance(v, tuple) else (v,) for v in (got, want)), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6)
    assert not compiled.findings
    return compiled.program.plan.steps


def inner(steps: list[Step]) -> list[Step]:
    (found,) = (step for step in steps if isinstance(step, While | Repeat))
    return found.body


def arrays() -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    return rng.integers(0, 8, (8, 4)).astype(np.float32), np.arange(4, dtype=np.float32)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("update", UPDATES)
def test_loop_state(update: str) -> None:
    steps = run(loop(update), *arrays())
    copies = [step for step in inner(steps) if isinstance(step, Copy)]
    assert update not in FREE or not copies


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("sizes", [(64, 32), (16, 16), (33, 7)], ids=str)
def test_broadcast_rows_are_added_in_place(sizes: tuple[int, int]) -> None:
    rows, columns = sizes
    text = loop("all").replace("8,4", f"{rows},{columns}").replace("f32[4]", f"f32[{columns}]")
    start = np.random.default_rng(3).integers(0, 8, sizes).astype(np.float32)
    steps = run(text, start, np.arange(columns, dtype=np.float32))
    assert not [step for step in inner(steps) if isinstance(step, Copy)]


def test_trip_counts() -> None:
    known = run(loop("row"), *arrays())
    (repeat,) = (step for step in known if isinstance(step, Repeat))
    assert repeat.rounds == 5
    assert not any(isinstance(step, While) for step in all_steps(known))
    assert not any(isinstance(step, Repeat) for step in run(loop("row", rounds=0), *arrays()))
    open_end = (
        loop("row")
        .replace(
            "k = s32[] constant(5)",
            "s = f32[4] get-tuple-element(p), index=2"
            "  t = f32[1] slice(s), slice={[1:2]}  q = f32[] reshape(t)  k = s32[] convert(q)"
            "  m = s32[] constant(9)",
        )
        .replace("compare(i, k)", "compare(k, m)")
    )
    assert any(isinstance(step, While) for step in run(open_end, *arrays()))


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    ("root", "copies"),
    [
        ("r = f32[9] scatter(x, i, u)", 1),
        ("y = f32[9] multiply(x, x)  r = f32[9] scatter(y, i, u)", 0),
        # What is still read is kept.
        ("y = f32[9] multiply(x, x)  w = f32[9] scatter(y, i, u)ATTRS  r = f32[9] add(w, y)", 1),
    ],
)  # fmt: skip
def test_scatter(root: str, copies: int) -> None:
    attributes = (
        ", update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0},"
        " index_vector_dim=1, to_apply=a"
    )
    text = root.replace("ATTRS", attributes)
    *before, last = text.rsplit("r = ", 1)
    last += "" if "ATTRS" in root else attributes
    module = (
        SCATTER
        + "ENTRY e { x = f32[9] parameter(0)  i = s32[4,1] parameter(1)  u = f32[4] parameter(2)"
        f"  {before[0]}  ROOT r = {last} }}"
    )
    indices = np.array([[1], [8], [3], [1]], np.int32)
    x, u = np.arange(9, dtype=np.float32), np.arange(4, dtype=np.float32)
    steps = run("HloModule m\n" + module, x, indices, u)
    assert sum(isinstance(step, Copy) for step in steps) <= copies


def test_donated_parameters() -> None:
    text = (
        "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }\n"
        "ENTRY e { x = f32[8,4] parameter(0)  v = f32[1,4] parameter(1)  i = s32[] parameter(2)  z = s32[] constant(0)"
        "  ROOT r = f32[8,4] dynamic-update-slice(x, v, i, z) }"
    )
    steps = run(text, np.ones((8, 4), np.float32), np.zeros((1, 4), np.float32), np.int32(3))
    assert [type(step) for step in steps] == [Kernel]


def test_sort_over_its_operand() -> None:
    text = (
        "less { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT c = pred[] compare(a, b), direction=LT }\n"
        "ENTRY e { x = s32[3,700] parameter(0)  y = s32[3,700] negate(x)"
        "  ROOT r = s32[3,700] sort(y), dimensions={1}, to_apply=less }"
    )
    x = np.random.default_rng(0).integers(-99, 99, (3, 700)).astype(np.int32)
    steps = run("HloModule m\n" + text, x)
    assert steps[0].writes[0] is steps[1].reads[0]
    assert steps[1].reads[0] is steps[1].writes[0]
