"""Modules as clusters around custom calls without machine code, against the interpreter."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import mlirhlo
from mlirhlo.diagnostics import HloError
from mlirhlo.runtime.partition import ClusteredExecutable

CALLS: list[str] = []


def halve(op: Any, inputs: Any, frame: Any) -> Any:
    CALLS.append("half")
    return inputs[0] * np.float32(0.5)


def pair(op: Any, inputs: Any, frame: Any) -> Any:
    CALLS.append("pair")
    return (inputs[0] + inputs[1], inputs[0] - inputs[1])


mlirhlo.register_custom_call("test_partition_half", halve)
mlirhlo.register_custom_call("test_partition_pair", pair)

HALF = 'custom_call_target="test_partition_half"'
PAIR = 'custom_call_target="test_partition_pair"'


def module(*lines: str) -> str:
    body = "\n".join(f"  {line}" for line in lines)
    return f"HloModule m\n\nENTRY main {{\n  x = f32[3,4] parameter(0)\n  y = f32[3,4] parameter(1)\n{body}\n}}\n"


AROUND = module(
    "a = f32[3,4] sine(x)",
    "b = f32[3,4] multiply(a, y)",
    f"c = f32[3,4] custom-call(b), {HALF}",
    "d = f32[3,4] add(c, a)",
    "ROOT e = f32[3,4] cosine(d)",
)


def compiled(text: str) -> ClusteredExecutable:
    executable = mlirhlo.compile(mlirhlo.parse(text), clusters=True)
    assert isinstance(executable, ClusteredExecutable)
    return executable


def arrays(seed: int = 0) -> list[Any]:
    draw = np.random.default_rng(seed)
    return [draw.standard_normal((3, 4)).astype(np.float32) for _ in range(2)]


def flat(value: Any) -> list[Any]:
    return [leaf for part in value for leaf in flat(part)] if isinstance(value, tuple) else [value]


def agrees(text: str, executable: Any) -> None:
    inputs = arrays()
    ours = flat(executable(*inputs))
    theirs = flat(mlirhlo.parse(text).run(*inputs))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_one_call_each_side() -> None:
    executable = compiled(AROUND)
    assert executable.parts == ("cluster_0", "custom-call test_partition_half", "cluster_1")
    agrees(AROUND, executable)
    assert not executable.callbacks


def test_what_does_not_depend_joins_one_cluster() -> None:
    text = module(
        f"c = f32[3,4] custom-call(x), {HALF}",
        "a = f32[3,4] sine(y)",
        "b = f32[3,4] cosine(a)",
        "ROOT r = f32[3,4] add(b, c)",
    )
    executable = compiled(text)
    assert sorted(executable.parts) == ["cluster_0", "custom-call test_partition_half"]
    agrees(text, executable)


def test_tuples_and_calls_in_a_row() -> None:
    text = module(
        "t = (f32[3,4], f32[3,4]) custom-call(x, y), " + PAIR,
        "s = f32[3,4] get-tuple-element(t), index=0",
        f"h = f32[3,4] custom-call(s), {HALF}",
        "d = f32[3,4] get-tuple-element(t), index=1",
        "ROOT r = (f32[3,4], f32[3,4], f32[3,4]) tuple(h, d, x)",
    )
    agrees(text, compiled(text))


@pytest.mark.parametrize(
    "last",
    [f"ROOT r = f32[3,4] custom-call(x), {HALF}", "ROOT r = f32[3,4] add(x, y)"],
    ids=["call", "code"],
)
def test_only_a_call_or_only_code(last: str) -> None:
    executable = mlirhlo.compile(mlirhlo.parse(module(last)), clusters=True)
    assert isinstance(executable, ClusteredExecutable) == ("custom-call" in last)
    agrees(module(last), executable)


def test_effects_keep_their_order() -> None:
    text = module(
        f"c = f32[3,4] custom-call(x), {HALF}, custom_call_has_side_effect=true",
        f"d = (f32[3,4], f32[3,4]) custom-call(x, y), {PAIR}, custom_call_has_side_effect=true",
        "s = f32[3,4] get-tuple-element(d), index=0",
        "ROOT r = f32[3,4] add(s, c)",
    )
    executable = compiled(text)
    CALLS.clear()
    executable(*arrays())
    assert CALLS == ["half", "pair"]


def test_a_call_inside_a_loop_stays_a_callback() -> None:
    text = f"""HloModule m

body {{
  p = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  v = f32[2] get-tuple-element(p), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  w = f32[2] custom-call(v), {HALF}
  ROOT t = (s32[], f32[2]) tuple(n, w)
}}

condition {{
  p = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  three = s32[] constant(3)
  ROOT r = pred[] compare(i, three), direction=LT
}}

ENTRY main {{
  v = f32[2] parameter(0)
  zero = s32[] constant(0)
  u = f32[2] custom-call(v), {HALF}
  t = (s32[], f32[2]) tuple(zero, u)
  w = (s32[], f32[2]) while(t), condition=condition, body=body
  ROOT r = f32[2] get-tuple-element(w), index=1
}}
"""
    executable = compiled(text)
    np.testing.assert_array_equal(executable(np.full(2, 16, np.float32)), [1, 1])
    assert sum(executable.callbacks.values()) == 3


def test_wrong_arguments() -> None:
    with pytest.raises(HloError, match="HLO0303"):
        compiled(AROUND)(np.ones((3, 4), np.float32))
    with pytest.raises(HloError, match="HLO0508"):
        mlirhlo.compile(mlirhlo.parse(AROUND), devices=2, clusters=True)  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize("seed", range(12))
def test_random_modules(seed: int) -> None:
    draw = random.Random(seed)
    names, lines = ["x", "y"], list[str]()
    for number in range(9):
        operand = draw.choice(names)
        kind = draw.choice(["sine", "cosine", "add", "constant", "call"])
        call = {
            "add": f"add({operand}, {draw.choice(names)})",
            "constant": "constant({...})".replace("{...}", "{" + ",".join(["{1,2,3,4}"] * 3) + "}"),
            "call": f"custom-call({operand}), {HALF}",
        }.get(kind, f"{kind}({operand})")
        lines.append(f"v{number} = f32[3,4] {call}")
        names.append(f"v{number}")
    lines.append(f"ROOT r = (f32[3,4], f32[3,4]) tuple({names[-1]}, {draw.choice(names)})")
    text = module(*lines)
    agrees(text, mlirhlo.compile(mlirhlo.parse(text), clusters=True))
