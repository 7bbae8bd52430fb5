"""Reduces of large products and reduces, block by block: the values are those of the whole."""

from __future__ import annotations

import numpy as np
import pytest

import mlirhlo
from mlirhlo.analysis.verifier import verify_module
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import WhileOp
from mlirhlo.rewrites.passes import Trace
from mlirhlo.rewrites.reductions.reduce_in_blocks import ReduceInBlocksPass

REDUCERS = """
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] maximum(a, b) }
pick { x = f32[] parameter(0)  i = s32[] parameter(1)  y = f32[] parameter(2)  j = s32[] parameter(3)
  above = pred[] compare(x, y), direction=GE  v = f32[] select(above, x, y)  n = s32[] select(above, i, j)
  ROOT t = (f32[], s32[]) tuple(v, n) }
"""

HEAD = """  x = f32[50,3] parameter(0)
  y = f32[40,3] parameter(1)
  zero = f32[] constant(0)
  two = f32[] constant(2)
  least = f32[] constant(-inf)
"""
SQUARES = """  bx = f32[50,40,3] broadcast(x), dimensions={0,2}
  by = f32[50,40,3] broadcast(y), dimensions={1,2}
  d = f32[50,40,3] subtract(bx, by)
  q = f32[50,40,3] multiply(d, d)
  p = f32[50,40] reduce(q, zero), dimensions={2}, to_apply=add
"""
PRODUCT = "  p = f32[50,40] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n"

ENDS = {
    "rows": "ROOT r = f32[50] reduce(p, zero), dimensions={1}, to_apply=add",
    "columns": "ROOT r = f32[40] reduce(p, least), dimensions={0}, to_apply=max",
    "all": "ROOT r = f32[] reduce(p, two), dimensions={0,1}, to_apply=add",
    "functions": "n = f32[50,40] negate(p)\n  e = f32[50,40] exponential(n)\n"
    "  ROOT r = f32[50] reduce(e, two), dimensions={1}, to_apply=add",
    "bias": "b = f32[50] reduce(x, zero), dimensions={1}, to_apply=add\n"
    "  s = f32[50,40] broadcast(b), dimensions={0}\n  e = f32[50,40] add(p, s)\n"
    "  ROOT r = f32[50] reduce(e, least), dimensions={1}, to_apply=max",
    "turned": "t = f32[40,50] transpose(p), dimensions={1,0}\n"
    "  ROOT r = f32[50] reduce(t, least), dimensions={0}, to_apply=max",
    "mask": "i = s32[50,40] iota(), iota_dimension=0\n  j = s32[50,40] iota(), iota_dimension=1\n"
    "  c = pred[50,40] compare(i, j), direction=LT\n  z = f32[50,40] broadcast(zero), dimensions={}\n"
    "  e = f32[50,40] select(c, p, z)\n  ROOT r = f32[50] reduce(e, zero), dimensions={1}, to_apply=add",
    "greatest": "i = s32[50,40] iota(), iota_dimension=1\n  none = s32[] constant(-1)\n"
    "  ROOT r = (f32[50], s32[50]) reduce(p, i, least, none), dimensions={1}, to_apply=pick",
    "twice": "a = f32[50] reduce(p, zero), dimensions={1}, to_apply=add\n"
    "  ROOT r = f32[] reduce(a, zero), dimensions={0}, to_apply=add",
}


def blocks(text: str, **options: int) -> tuple[mlirhlo.Module, bool]:
    module = mlirhlo.parse(text)
    settings = {"least_bytes": 1000, "block_bytes": 1, "least_rows": 16, **options}
    changed = ReduceInBlocksPass(**settings).run(HloModule(module.op), Trace())
    assert not verify_module(module.op)
    return module, changed


def leaves(value: object) -> list[np.ndarray]:
    return [np.asarray(v) for v in value] if isinstance(value, tuple) else [np.asarray(value)]


@pytest.mark.parametrize("source", [SQUARES, PRODUCT], ids=["reduce", "product"])
@pytest.mark.parametrize("end", ENDS)
def test_blocks_give_the_values_of_the_whole(source: str, end: str) -> None:
    text = f"HloModule m\n{REDUCERS}\nENTRY e {{\n{HEAD}{source}  {ENDS[end]}\n}}"
    module, changed = blocks(text)
    assert changed
    assert any(isinstance(op, WhileOp) for op in module.hlo.instructions)
    draw = np.random.default_rng(1)
    x, y = (draw.standard_normal((n, 3)).astype(np.float32) for n in (50, 40))
    got, want = module(x, y), mlirhlo.parse(text)(x, y)
    for g, w in zip(leaves(got), leaves(want), strict=True):
        np.testing.assert_allclose(g, w, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("source", "end"),
    [
        (
            PRODUCT,
            "s = f32[50] reduce(p, zero), dimensions={1}, to_apply=add\n  ROOT r = (f32[50], f32[50,40]) tuple(s, p)",
        ),
        ("  p = f32[50,40] parameter(2)\n", ENDS["rows"]),
        (
            PRODUCT,
            "ROOT r = (f32[], s32[]) reduce(p, i, least, none), dimensions={0,1}, to_apply=pick",
        ),
    ],
    ids=["read elsewhere", "in memory", "reducer without neutral element"],
)
def test_what_stands_in_memory_anyway_is_left(source: str, end: str) -> None:
    more = "  i = s32[50,40] iota(), iota_dimension=1\n  none = s32[] constant(-1)\n"
    _, changed = blocks(f"HloModule m\n{REDUCERS}\nENTRY e {{\n{HEAD}{source}{more}  {end}\n}}")
    assert not changed


def test_the_arena_holds_blocks_alone() -> None:
    big = PRODUCT.replace("50", "3000").replace("40", "2000")
    head = HEAD.replace("50", "3000").replace("40", "2000")
    end = ENDS["functions"].replace("50", "3000").replace("40", "2000")
    executable = mlirhlo.compile(
        mlirhlo.parse(f"HloModule m\n{REDUCERS}\nENTRY e {{\n{head}{big}  {end}\n}}")
    )
    assert executable.memory.temporaries < 3000 * 2000 * 4 / 2
    draw = np.random.default_rng(1)
    x, y = (draw.standard_normal((n, 3)).astype(np.float32) for n in (3000, 2000))
    np.testing.assert_allclose(executable(x, y), 2 + np.exp(-(x @ y.T)).sum(1), rtol=1e-3)
