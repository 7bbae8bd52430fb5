"""Kernels of running folds (reduce-windows from the first element, or to the last) against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from unit.lowering.kernel_support import compiled_agrees, draw, reducer

import mlirhlo
from mlirhlo.dialects.structured import ScanOp
from mlirhlo.lowering.loops.scan import Scan
from mlirhlo.lowering.structured import to_structured

pytest.importorskip("llvmlite")

SIZES = [((3, 70), 1), ((3, 16), 1), ((40, 32), 0), ((5, 9, 3), 1), ((33,), 0)]


def window(sizes: tuple[int, ...], along: int, *, is_reverse: bool) -> str:
    """One that reaches back to the first element of a dimension, or on to the last."""
    windows = "x".join(str(n) if d == along else "1" for d, n in enumerate(sizes))
    size = sizes[along]
    edge = f"0_{size - 1}" if is_reverse else f"{size - 1}_0"
    edges = "x".join(edge if d == along else "0_0" for d in range(len(sizes)))
    return f"window={{size={windows} pad={edges}}}"


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("type_", ["f32", "f64", "s32", "u8", "bf16"])
@pytest.mark.parametrize("word", ["add", "maximum"])
@pytest.mark.parametrize("is_reverse", [False, True])
@pytest.mark.parametrize(("sizes", "along"), SIZES)
def test_scans(type_: str, word: str, is_reverse: bool, sizes: tuple[int, ...], along: int) -> None:
    shape = f"{type_}[{','.join(map(str, sizes))}]"
    text = reducer("f", type_, word) + (
        f"ENTRY e {{\n  x = {shape} parameter(0)\n  i = {type_}[] parameter(1)\n"
        f"  ROOT r = {shape} reduce-window(x, i), "
        f"{window(sizes, along, is_reverse=is_reverse)}, to_apply=f\n}}\n"
    )
    rng = np.random.default_rng(0)
    tolerance = {"f32": 1e-5, "f64": 1e-13, "bf16": 1e-2}.get(type_, 0.0)
    compiled_agrees(text, [draw(rng, type_, sizes), draw(rng, type_, ())], tolerance=tolerance)


LOG_OF_SUMS = """f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  m = f32[] maximum(a, b)
  d = f32[] subtract(a, b)
  o = pred[] compare(d, d), direction=NE
  s = f32[] add(a, b)
  n = f32[] abs(d)
  g = f32[] negate(n)
  e = f32[] exponential(g)
  l = f32[] log-plus-one(e)
  t = f32[] add(m, l)
  ROOT r = f32[] select(o, s, t)
}
"""
RECURRENCE = """f {
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  u = f32[] parameter(2)
  v = f32[] parameter(3)
  pu = f32[] multiply(p, u)
  uq = f32[] multiply(u, q)
  w = f32[] add(uq, v)
  ROOT r = (f32[], f32[]) tuple(pu, w)
}
"""
"""Associative among finite numbers."""
LAST = """f {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  z = s32[] constant(0)
  o = pred[] compare(b, z), direction=EQ
  ROOT r = s32[] select(o, a, b)
}
"""
"""Associative, but the order of its operands matters."""
DECAY = """f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  h = f32[] constant(0.5)
  s = f32[] multiply(a, h)
  ROOT r = f32[] add(s, b)
}
"""
"""Not associative."""
DAMPED = """f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  o = f32[] constant(1)
  q = f32[] multiply(a, a)
  w = f32[] add(o, q)
  d = f32[] divide(b, w)
  ROOT r = f32[] add(a, d)
}
"""
"""Not associative, although 0 changes nothing."""
GREATEST_WITH_PLACE = """f {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  ge = pred[] compare(a, b), direction=GE
  v = f32[] select(ge, a, b)
  k = s32[] select(ge, i, j)
  ROOT r = (f32[], s32[]) tuple(v, k)
}
"""
FIRST = """f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  z = f32[] constant(0)
  o = pred[] compare(a, z), direction=EQ
  ROOT r = f32[] select(o, b, a)
}
"""
"""The first that is not zero: associative, and the order of its operands matters."""
REDUCERS = {
    "logarithms of sums": (LOG_OF_SUMS, ("f32",), ("-inf",)),
    "logarithms of sums, from something": (LOG_OF_SUMS, ("f32",), ("1.5",)),
    "a recurrence": (RECURRENCE, ("f32", "f32"), ("1", "0")),
    "a recurrence, from something": (RECURRENCE, ("f32", "f32"), ("1", "3")),
    "the last that is not zero": (LAST, ("s32",), ("0",)),
    "decay": (DECAY, ("f32",), ("0",)),
    "damped": (DAMPED, ("f32",), ("0",)),
    "the greatest with its place": (GREATEST_WITH_PLACE, ("f32", "s32"), ("-inf", "0")),
}


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("name", REDUCERS)
@pytest.mark.parametrize("is_reverse", [False, True])
@pytest.mark.parametrize(("sizes", "along"), SIZES)
def test_scans_by_any_computation(
    name: str,
    is_reverse: bool,
    sizes: tuple[int, ...],
    along: int,
) -> None:
    computation, types, starts = REDUCERS[name]
    shapes = [f"{t}[{','.join(map(str, sizes))}]" for t in types]
    result = shapes[0] if len(shapes) == 1 else f"({', '.join(shapes)})"
    lines = [f"  x{n} = {shape} parameter({n})\n" for n, shape in enumerate(shapes)]
    lines += [
        f"  i{n} = {t}[] constant({start})\n"
        for n, (t, start) in enumerate(zip(types, starts, strict=True))
    ]
    names = [f"{letter}{n}" for letter in "xi" for n in range(len(types))]
    text = computation + (
        f"ENTRY e {{\n{''.join(lines)}  ROOT r = {result} reduce-window({', '.join(names)}), "
        f"{window(sizes, along, is_reverse=is_reverse)}, to_apply=f\n}}\n"
    )
    rng = np.random.default_rng(0)
    arguments = [draw(rng, t, sizes) for t in types]
    compiled_agrees(text, arguments, tolerance=1e-5)
    if is_reverse and name not in ("logarithms of sums", "the last that is not zero"):
        return  # initial values that count stand in front of windows, not behind them
    module = mlirhlo.parse(text)
    kernel = to_structured(module.hlo.entry.root, module.hlo.by_name(), "kernel")
    (scan,) = (op for op in kernel.block.ops if isinstance(op, ScanOp))
    is_cut = name.startswith(("logarithms", "the last"))
    is_last = along == len(sizes) - 1
    vectors = "across" if sizes == (40, 32) else "elements"
    assert Scan().kind(scan) == ("along" if is_cut and is_last else vectors)


def test_starts_of_equal_scans_stay_apart() -> None:
    """A reverse scan depends on whether what it starts from changes nothing."""
    lines = [
        f"  a{n} = f32[40] reduce-window(x, i{n}), {window((40,), 0, is_reverse=True)}, to_apply=f\n"
        for n in range(2)
    ]
    text = FIRST + (
        f"ENTRY e {{\n  x = f32[40] parameter(0)\n  i0 = f32[] constant(0)\n  i1 = f32[] constant(2)\n{''.join(lines)}"
        "  ROOT r = (f32[40], f32[40]) tuple(a0, a1)\n}\n"
    )
    compiled_agrees(text, [draw(np.random.default_rng(0), "f32", (40,))], tolerance=1e-5)


STEPS = """f {
  a = f32[SIZES] parameter(0)
  c = f32[SIZES] parameter(1)
  h = f32[] constant(0.5)
  b = f32[SIZES] broadcast(h), dimensions={}
  d = f32[SIZES] multiply(c, b)
  s = f32[SIZES] add(a, d)
  n = f32[SIZES] negate(s)
  ROOT t = (f32[SIZES], f32[SIZES]) tuple(n, s)
}
"""
"""A state that decays, and its negative as the output."""
SUMS = """f {
  a = f32[SIZES] parameter(0)
  c = f32[SIZES] parameter(1)
  s = f32[SIZES] add(c, a)
  ROOT t = (f32[SIZES], f32[SIZES]) tuple(s, s)
}
"""


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("step", ["STEPS", "SUMS"])
@pytest.mark.parametrize("is_reverse", [False, True])
@pytest.mark.parametrize(("sizes", "along"), SIZES)
def test_scan_instructions(step: str, is_reverse: bool, sizes: tuple[int, ...], along: int) -> None:
    """The instruction `scan`: outputs and the last state."""
    rest = [n for d, n in enumerate(sizes) if d != along]
    shape, state = (f"f32[{','.join(map(str, n))}]" for n in (sizes, rest))
    associative = str(step == "SUMS").lower()
    text = {"STEPS": STEPS, "SUMS": SUMS}[step].replace("f32[SIZES]", state) + (
        f"ENTRY e {{\n  x = {shape} parameter(0)\n  i = {state} parameter(1)\n"
        f"  ROOT r = ({shape}, {state}) scan(x, i), dimensions={{{along}}},"
        f" is_reverse={str(is_reverse).lower()}, is_associative={associative}, num_carries=1, to_apply=f\n}}\n"
    )
    rng = np.random.default_rng(0)
    arguments = [draw(rng, "f32", sizes), draw(rng, "f32", tuple(rest))]
    compiled_agrees(text, arguments, tolerance=1e-5)
