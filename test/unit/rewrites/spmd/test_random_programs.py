"""Programs of several instructions with shardings here and there: partitioned, they compute the same."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unit.rewrites.spmd.test_opcodes import ADD, ARGMAX, LESS, MAX, PRELUDE

from mlirhlo.debug.fuzz import partitioning as spmd

Shape = tuple[int, ...]
SIZES = st.sampled_from((2, 3, 4, 5, 6, 8))


def sharding(draw: st.DrawFn, shape: Shape) -> str:
    """A sharding over four devices of an array of this rank: tiles in some dimensions, in some order."""
    tiles = [1] * len(shape)
    left = 4
    for _ in range(2):
        if shape and left > 1 and draw(st.booleans()):
            tiles[draw(st.integers(0, len(shape) - 1))] *= 2
            left //= 2
    if math.prod(tiles) == 1:
        return "{replicated}"
    order = draw(st.sampled_from(("<=[4]", "<=[2,2]T(1,0)", "3,1,0,2")))
    if math.prod(tiles) == 4:
        return f"{{devices=[{','.join(map(str, tiles))}]{order}}}"
    grid = ",".join(map(str, (*tiles, 2)))
    return f"{{devices=[{grid}]{order} last_tile_dim_replicate}}"


def text_of(shape: Shape) -> str:
    return f"f32[{','.join(map(str, shape))}]"


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, list[Shape]]:
    """A few parameters, instructions of any of them, and a tuple of some."""
    lines: list[str] = []
    values: list[tuple[str, Shape]] = []
    parameters: list[Shape] = []

    def add(shape: Shape, line: str) -> None:
        name = f"v{len(values)}"
        mark = f", sharding={sharding(draw, shape)}" if draw(st.integers(0, 3)) == 0 else ""
        lines.append(f"  {name} = {text_of(shape)} {line}{mark}")
        values.append((name, shape))

    for number in range(draw(st.integers(1, 3))):
        shape = tuple(draw(st.lists(SIZES, min_size=1, max_size=3)))
        parameters.append(shape)
        place = sharding(draw, shape)
        lines.append(f"  v{number} = {text_of(shape)} parameter({number}), sharding={place}")
        values.append((f"v{number}", shape))
    for _ in range(draw(st.integers(2, 7))):
        name, shape = values[draw(st.integers(0, len(values) - 1))]
        dim = draw(st.integers(0, len(shape) - 1)) if shape else 0
        same = [n for n, s in values if s == shape]
        match draw(st.integers(0, 11)):
            case 0:
                other = same[draw(st.integers(0, len(same) - 1))]
                opcode = draw(st.sampled_from(("add", "multiply", "maximum", "subtract")))
                add(shape, f"{opcode}({name}, {other})")
            case 1:
                add(shape, f"tanh({name})")
            case 2 if shape:
                kept = tuple(n for d, n in enumerate(shape) if d != dim)
                init, by = draw(st.sampled_from((("zero", "add"), ("low", "max"))))
                add(kept, f"reduce({name}, {init}), dimensions={{{dim}}}, to_apply={by}")
            case 3 if len(shape) < 3:
                new = (*shape[:dim], draw(SIZES), *shape[dim:])
                kept = ",".join(str(d) for d in range(len(new)) if d != dim)
                add(new, f"broadcast({name}), dimensions={{{kept}}}")
            case 4 if len(shape) > 1:
                order = draw(st.permutations(range(len(shape))))
                moved = tuple(shape[d] for d in order)
                add(moved, f"transpose({name}), dimensions={{{','.join(map(str, order))}}}")
            case 5:
                flat = math.prod(shape)
                first = draw(st.sampled_from([n for n in range(1, flat + 1) if flat % n == 0]))
                add((first, flat // first), f"reshape({name})")
            case 6 if shape and shape[dim] > 1:
                start = draw(st.integers(0, shape[dim] - 1))
                bounds = [f"[0:{n}]" for n in shape]
                bounds[dim] = f"[{start}:{shape[dim]}]"
                cut = (*shape[:dim], shape[dim] - start, *shape[dim + 1 :])
                add(cut, f"slice({name}), slice={{{', '.join(bounds)}}}")
            case 7 if shape:
                low, high = draw(st.integers(0, 2)), draw(st.integers(0, 2))
                edges = ["0_0"] * len(shape)
                edges[dim] = f"{low}_{high}"
                wide = (*shape[:dim], shape[dim] + low + high, *shape[dim + 1 :])
                add(wide, f"pad({name}, three), padding={'x'.join(edges)}")
            case 8 if shape:
                others = [(n, s) for n, s in values if len(s) == len(shape)]
                other, its = others[draw(st.integers(0, len(others) - 1))]
                if all(a == b for d, (a, b) in enumerate(zip(shape, its, strict=True)) if d != dim):
                    long = (*shape[:dim], shape[dim] + its[dim], *shape[dim + 1 :])
                    add(long, f"concatenate({name}, {other}), dimensions={{{dim}}}")
            case 9 if 0 < len(shape) < 3:
                fits = [
                    (n, s, d)
                    for n, s in values
                    for d in range(len(s))
                    if s[d] == shape[dim] and len(s) + len(shape) < 6
                ]
                other, its, at = fits[draw(st.integers(0, len(fits) - 1))]
                free = [n for d, n in enumerate(shape) if d != dim]
                free += [n for d, n in enumerate(its) if d != at]
                dims = f"lhs_contracting_dims={{{dim}}}, rhs_contracting_dims={{{at}}}"
                add(tuple(free), f"dot({name}, {other}), {dims}")
            case 10 if shape:
                add(shape, f"reverse({name}), dimensions={{{dim}}}")
            case 11 if shape:
                add(shape, f"sort({name}), dimensions={{{dim}}}, to_apply=less")
            case _:
                add(shape, f"negate({name})")
    roots = values[-2:]
    shapes = ", ".join(text_of(s) for _, s in roots)
    places = ", ".join(sharding(draw, s) for _, s in roots)
    lines.append(
        f"  ROOT r = ({shapes}) tuple({', '.join(n for n, _ in roots)}), sharding={{{places}}}"
    )
    head = "HloModule m, num_partitions=4\n" + ADD + MAX + LESS + "ENTRY main {\n" + PRELUDE
    return head + "\n".join(lines) + "\n}\n", parameters


def inputs_of(shapes: list[Shape]) -> list[np.ndarray]:
    random = np.random.default_rng(len(shapes))
    return [random.normal(size=s).astype(np.float32) for s in shapes]


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_computes_the_same(program: tuple[str, list[Shape]]) -> None:
    text, shapes = program
    spmd.compare(text, 4, inputs_of(shapes), bound=1e-4)


LOOP = """body {
  s = (s32[], f32[8,6], f32[6]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[8,6] get-tuple-element(s), index=1
  w = f32[6] get-tuple-element(s), index=2
  zero = f32[] constant(0)
  m = f32[6] reduce(x, zero), dimensions={0}, to_apply=add
  b = f32[8,6] broadcast(w), dimensions={1}
  y = f32[8,6] add(x, b)
  ROOT r = (s32[], f32[8,6], f32[6]) tuple(j, y, m)
}

cond {
  s = (s32[], f32[8,6], f32[6]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT r = pred[] compare(i, n), direction=LT
}

"""
BRANCHES = """first {
  x = f32[8,6] parameter(0)
  ROOT r = f32[8,6] negate(x)
}

second {
  x = f32[8,6] parameter(0)
  zero = f32[] constant(0)
  s = f32[6] reduce(x, zero), dimensions={0}, to_apply=add
  ROOT r = f32[8,6] broadcast(s), dimensions={1}
}

called {
  x = f32[8,6] parameter(0)
  t = f32[6,8] transpose(x), dimensions={1,0}
  ROOT r = (f32[6,8], f32[8,6]) tuple(t, x)
}

"""
PLACES = ("{devices=[4,1]<=[4]}", "{devices=[1,4]<=[4]}", "{devices=[2,2]<=[4]}", "{replicated}")
BODIES = {
    "while": """  start = s32[] constant(0)
  w = f32[6] reduce(x, zero), dimensions={0}, to_apply=add
  t = (s32[], f32[8,6], f32[6]) tuple(start, x, w)
  l = (s32[], f32[8,6], f32[6]) while(t), condition=cond, body=body
  ROOT r = f32[8,6] get-tuple-element(l), index=1""",
    "conditional": """  c = f32[] constant(1)
  s = f32[] reduce(x, zero), dimensions={0,1}, to_apply=add
  p = pred[] compare(s, c), direction=LT
  ROOT r = f32[8,6] conditional(p, x, x), true_computation=first, false_computation=second""",
    "switch": """  k = s32[] constant(1)
  ROOT r = f32[8,6] conditional(k, x, x), branch_computations={first, second}""",
    "call": """  c = (f32[6,8], f32[8,6]) call(x), to_apply=called
  a = f32[6,8] get-tuple-element(c), index=0
  b = f32[8,6] get-tuple-element(c), index=1
  t = f32[8,6] transpose(a), dimensions={1,0}
  ROOT r = f32[8,6] add(t, b)""",
    "barrier": """  y = f32[8,6] tanh(x)
  t = (f32[8,6], f32[8,6]) tuple(x, y)
  o = (f32[8,6], f32[8,6]) opt-barrier(t)
  a = f32[8,6] get-tuple-element(o), index=0
  b = f32[8,6] get-tuple-element(o), index=1
  ROOT r = f32[8,6] add(a, b)""",
    "argmax": """  i = s32[8,6] iota(), iota_dimension=1
  k = s32[] constant(0)
  m = (f32[8], s32[8]) reduce(x, i, low, k), dimensions={1}, to_apply=argmax
  v = f32[8] get-tuple-element(m), index=0
  n = s32[8] get-tuple-element(m), index=1
  f = f32[8] convert(n)
  s = f32[8] add(v, f)
  ROOT r = f32[8,6] broadcast(s), dimensions={0}""",
    "constraint": """  y = f32[8,6] tanh(x)
  s = f32[8,6] custom-call(y), custom_call_target="Sharding", sharding={devices=[1,2,2]<=[4] last_tile_dim_replicate}
  ROOT r = f32[8,6] add(s, x)""",
    "manual": """  s = f32[8,6] custom-call(x), custom_call_target="Sharding", sharding={devices=[4,1]<=[4]}
  l = f32[2,6] custom-call(s), custom_call_target="SPMDFullToShardShape", sharding={manual}
  a = f32[2,6] all-reduce(l), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add
  g = f32[2,6] add(a, l)
  m = f32[2,6] custom-call(g), custom_call_target="Sharding", sharding={manual}
  o = f32[8,6] custom-call(m), custom_call_target="SPMDShardToFullShape", sharding={devices=[4,1]<=[4]}
  ROOT r = f32[8,6] negate(o)""",
    "manual subgroup": """  s = f32[8,6] custom-call(x), custom_call_target="Sharding", sharding={devices=[2,2]<=[4]}
  l = f32[4,6] custom-call(s), custom_call_target="SPMDFullToShardShape", sharding={devices=[1,2,2]<=[2,2]T(1,0) last_tile_dims={manual}}
  a = f32[4,6] all-reduce(l), channel_id=1, replica_groups={{0,2},{1,3}}, use_global_device_ids=true, to_apply=add
  d = f32[4] reduce(a, zero), dimensions={1}, to_apply=add
  b = f32[4,6] broadcast(d), dimensions={0}
  g = f32[4,6] add(b, l)
  m = f32[4,6] custom-call(g), custom_call_target="Sharding", sharding={devices=[1,2,2]<=[2,2]T(1,0) last_tile_dims={manual}}
  ROOT o = f32[8,6] custom-call(m), custom_call_target="SPMDShardToFullShape", sharding={devices=[2,2]<=[4]}""",
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies(name: str) -> None:
    for before in ("sharding-propagation", ""):
        for place in PLACES:
            text = "HloModule m, num_partitions=4\n" + ADD + MAX + ARGMAX + LOOP + BRANCHES
            text += f"ENTRY main {{\n  x = f32[8,6] parameter(0), sharding={place}\n{PRELUDE}"
            lines = BODIES[name]
            lines += "\n}\n" if "sharding={dev" in lines[-40:] else f", sharding={place}\n}}\n"
            spmd.compare(text + lines, 4, inputs_of([(8, 6)]), before=before, bound=1e-4)
