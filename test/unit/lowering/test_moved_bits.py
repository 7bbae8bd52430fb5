"""What is only moved keeps its bits: subnormals, zeros with a sign, alone and in rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirhlo
from mlirhlo.dialects.hlo.shapes import ArrayShape

pytest.importorskip("llvmlite")

MOVES = {
    "broadcast": "ENTRY e { y = T[] parameter(0)  ROOT r = T[N] broadcast(y), dimensions={} }",
    "copy": "ENTRY e { x = T[N] parameter(0)  ROOT r = T[N] copy(x) }",
    "reverse": "ENTRY e { x = T[N] parameter(0)  ROOT r = T[N] reverse(x), dimensions={0} }",
    "transpose": "ENTRY e { x = T[N,3] parameter(0)  ROOT r = T[3,N] transpose(x), dimensions={1,0} }",
    "pad": "ENTRY e { x = T[N] parameter(0)  y = T[] parameter(1)  ROOT r = T[M] pad(x, y), padding=2_1 }",
    "pad nothing": "ENTRY e { x = T[0] parameter(0)  y = T[] parameter(1)  ROOT r = T[N] pad(x, y), padding=0_N }",
    "part": "ENTRY e { x = T[N] parameter(0)  i = s32[] parameter(1)"
    "  ROOT r = T[1] dynamic-slice(x, i), dynamic_slice_sizes={1} }",
    "update": "ENTRY e { x = T[N] parameter(0)  u = T[1] parameter(1)  i = s32[] parameter(2)"
    "  ROOT r = T[N] dynamic-update-slice(x, u, i) }",
    "choice": "ENTRY e { x = T[] parameter(0)  y = T[] parameter(1)  p = pred[] parameter(2)"
    "  ROOT r = T[] select(p, x, y) }",
    "sort": """
    less { a = s32[] parameter(0)  b = s32[] parameter(1)  c = T[] parameter(2)  d = T[] parameter(3)
      ROOT r = pred[] compare(a, b), direction=LT }
    ENTRY e { k = s32[N] parameter(0)  x = T[N] parameter(1)
      ROOT r = (s32[N], T[N]) sort(k, x), dimensions={0}, is_stable=true, to_apply=less }""",
    "loop": """
    more { s = (s32[], T[], T[N]) parameter(0)  i = s32[] get-tuple-element(s), index=0
      ROOT r = pred[] compare(i, s32[] constant(3)), direction=LT }
    round { s = (s32[], T[], T[N]) parameter(0)  i = s32[] get-tuple-element(s), index=0
      v = T[] get-tuple-element(s), index=1  x = T[N] get-tuple-element(s), index=2
      j = s32[] add(i, s32[] constant(1))
      part = T[1] dynamic-slice(x, i), dynamic_slice_sizes={1}  w = T[] reshape(part)
      y = T[N] dynamic-update-slice(x, T[1] reshape(v), i)
      ROOT r = (s32[], T[], T[N]) tuple(j, w, y) }
    ENTRY e { v = T[] parameter(0)  x = T[N] parameter(1)
      ROOT r = (s32[], T[], T[N]) while((s32[], T[], T[N]) tuple(s32[] constant(0), v, x)),
        condition=more, body=round }""",
}  # fmt: skip
PATTERNS = [0x0001, 0x8001, 0x007F, 0x8000, 0x3F80]
"""The upper bits of elements: subnormals of bf16, and of f32; those of f16 are other small numbers."""


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("element", ["bf16", "f16", "f32", "s4", "u4", "u2"])
@pytest.mark.parametrize("move", MOVES)
def test_bits(move: str, element: str) -> None:
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 5, 17, 40, 100):
        text = MOVES[move].replace("M]", f"{size + 3}]").replace("_N", f"_{size}")
        module = mlirhlo.parse(
            text.replace("[N", f"[{size}").replace("N]", f"{size}]").replace("T[", f"{element}[")
        )
        arguments = [_drawn(rng, p.shape) for p in module.hlo.entry.parameters]
        wanted, found = (
            run(*arguments) for run in (module, mlirhlo.compile(module, cached=False))
        )  # fmt: skip
        for a, b in zip(_arrays(wanted), _arrays(found), strict=True):
            assert a.tobytes() == b.tobytes(), (size, a, b)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("platform", ["cpu", "gpu"])
@pytest.mark.parametrize("element", ["s1", "s2", "s4", "u4"])
def test_the_high_bits_of_narrow_integers_are_zero(element: str, platform: str) -> None:
    """As in arrays of ml_dtypes, whose bytes are what `tobytes` and `view` show: of negative numbers, too."""
    results = ("reverse(x), dimensions={0}", "add(x, y)", "negate(x)", "convert(n)", "copy(x)")
    rows = "\n".join(f"  r{at} = T[20] {result}" for at, result in enumerate(results))
    module = mlirhlo.parse(
        f"""ENTRY e {{ x = T[20] parameter(0)  y = T[20] parameter(1)  n = s32[20] parameter(2)
{rows}
  ROOT r = ({", ".join(["T[20]"] * 5)}) tuple(r0, r1, r2, r3, r4) }}""".replace("T[", f"{element}[")
    )
    rng = np.random.default_rng(0)
    arguments = [_drawn(rng, p.shape) for p in module.hlo.entry.parameters]
    arguments[2] = np.arange(-10, 10, dtype=np.int32)
    compiled = mlirhlo.compile(module, platform, cached=False)
    for result, a, b in zip(results, module(*arguments), compiled(*arguments), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes(), result


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("element", ["u4", "s4", "u2"])
def test_narrow_integers_beside_padding_take_no_time(element: str) -> None:
    """LLVM 22 never ends with vectors of `u4` that are widened between two shuffles."""
    size = 300
    module = mlirhlo.parse(
        f"ENTRY e {{ x = {element}[3,{size},1] parameter(0)  y = {element}[] parameter(1)"
        f"  ROOT r = {element}[4,{size + 50},2] pad(x, y), padding=0_1x0_50x0_1 }}"
    )
    arguments = [_drawn(np.random.default_rng(0), p.shape) for p in module.hlo.entry.parameters]
    wanted, found = (
        np.asarray(run(*arguments)) for run in (module, mlirhlo.compile(module, cached=False))
    )
    assert wanted.tobytes() == found.tobytes()


def _drawn(rng: np.random.Generator, shape: Any) -> Any:
    assert isinstance(shape, ArrayShape)
    dtype = np.dtype(shape.element_type.dtype)
    if shape.element_type.bits < 8 and shape.element_type.is_integer:
        limit = 1 << shape.element_type.bits
        return rng.integers(0, limit, shape.dimensions, np.uint8).view(dtype)
    if dtype.kind in "ib":
        return np.zeros(shape.dimensions, dtype)
    bits = rng.choice(np.array(PATTERNS, np.uint32), shape.dimensions)
    bits = np.asarray(bits << 16 if dtype.itemsize == 4 else bits)
    return bits.astype(f"uint{8 * dtype.itemsize}").view(dtype)


def _arrays(value: Any) -> list[Any]:
    return [np.asarray(v) for v in (value if isinstance(value, tuple) else (value,))]
