"""Whole modules as machine code, against the interpreter: tuples, loops, branches, calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirhlo
from mlirhlo.lowering.cpu.compiler import lower
from mlirhlo.lowering.cpu.emit import MAIN
from mlirhlo.runtime.executable import Executable
from mlirhlo.runtime.jit import Library, compile_object
from mlirhlo.runtime.threads import externals

pytest.importorskip("llvmlite")


def compiled(module: mlirhlo.Module) -> Executable:
    stages = lower(module.op)
    stages.loops.verify()
    stages.llvm.verify()
    return Executable(
        stages.plan, Library([compile_object(stages.text)], [MAIN], externals(stages.text)), MAIN
    )


def same(actual: Any, expected: Any) -> bool:
    if isinstance(expected, tuple):
        return len(actual) == len(expected) and all(map(same, actual, expected))
    return np.array_equal(np.asarray(actual), np.asarray(expected), equal_nan=True)


LOOP = """HloModule loop
condition {
  s = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(ROUNDS)
  ROOT c = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8] get-tuple-element(s), index=1
  y = f32[8] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  z = f32[8] add(x, y)
  ROOT t = (s32[], f32[8], f32[8]) tuple(j, y, z)
}
ENTRY e {
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[8], f32[8]) tuple(zero, x, y)
  w = (s32[], f32[8], f32[8]) while(t), condition=condition, body=body
  r = f32[8] get-tuple-element(w), index=2
  ROOT all = (f32[8], (s32[], f32[8], f32[8]), f32[8]) tuple(r, w, x)
}
"""


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("rounds", [0, 1, 7])
def test_a_loop_swaps_its_state(rounds: int) -> None:
    """The body's second result is the third part of its state: copies happen as if at once."""
    module = mlirhlo.parse(LOOP.replace("ROUNDS", str(rounds)))
    x, y = np.arange(8, dtype="f4"), np.ones(8, "f4")
    assert same(compiled(module)(x, y), module(x, y))


SWITCH = """HloModule switch
twice { x = f32[3] parameter(0)
  ROOT r = f32[3] add(x, x) }
negated { x = f32[3] parameter(0)
  ROOT r = f32[3] negate(x) }
itself { ROOT x = f32[3] parameter(0) }
ENTRY e {
  i = s32[] parameter(0)
  x = f32[3] parameter(1)
  ROOT r = f32[3] conditional(i, x, x, x), branch_computations={twice, negated, itself}
}
"""


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("index", [-1, 0, 1, 2, 3])
def test_a_switch_takes_the_last_branch_out_of_range(index: int) -> None:
    module = mlirhlo.parse(SWITCH)
    x = np.array([1, 2, 3], "f4")
    assert same(compiled(module)(np.int32(index), x), module(np.int32(index), x))


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("test", [False, True])
def test_a_pred_picks_a_branch(test: bool) -> None:
    module = mlirhlo.parse(
        SWITCH.replace("i = s32[]", "i = pred[]").replace(
            "conditional(i, x, x, x), branch_computations={twice, negated, itself}",
            "conditional(i, x, x), true_computation=twice, false_computation=negated",
        )
    )
    x = np.array([1, 2, 3], "f4")
    assert same(compiled(module)(np.bool_(test), x), module(np.bool_(test), x))


def test_equal_fusions_share_a_kernel() -> None:
    module = mlirhlo.parse("""HloModule shared
f { p = f32[9] parameter(0)
  ROOT r = f32[9] multiply(p, p) }
g { q = f32[9] parameter(0)
  ROOT s = f32[9] multiply(q, q), metadata={op_name="other"} }
ENTRY e {
  x = f32[9] parameter(0)
  a = f32[9] fusion(x), kind=kLoop, calls=f
  ROOT b = f32[9] fusion(a), kind=kLoop, calls=g
}
""")
    x = np.arange(9, dtype="f4")
    assert len(lower(module.op).plan.kernels) == 1
    assert same(compiled(module)(x), x**4)


def test_a_kernel_is_shared_with_the_first_of_several_of_its_shape() -> None:
    module = mlirhlo.parse("""HloModule shared
f { p = f32[9] parameter(0)
  ROOT r = f32[9] multiply(p, p) }
g { p = f32[9] parameter(0)
  ROOT r = f32[9] add(p, p) }
h { p = f32[9] parameter(0)
  ROOT r = f32[9] multiply(p, p) }
ENTRY e {
  x = f32[9] parameter(0)
  a = f32[9] fusion(x), kind=kLoop, calls=f
  b = f32[9] fusion(a), kind=kLoop, calls=g
  c = f32[9] fusion(b), kind=kLoop, calls=h
  ROOT d = f32[9] fusion(c), kind=kLoop, calls=g
}
""")
    lowered = lower(module.op, wanted=lambda name: name not in ("defuser", "fusion"))
    assert len(lowered.plan.kernels) == 2
    x = np.arange(9, dtype="f4")
    assert same(compiled(module)(x), module(x))


def test_temporaries_share_memory() -> None:
    lines = ["  x0 = f32[1024] parameter(0)"]
    for n in range(20):  # the barriers keep it from being one kernel
        lines += [
            f"  b{n} = f32[1024] opt-barrier(x{n})",
            f"  x{n + 1} = f32[1024] negate(b{n})",
        ]
    module = mlirhlo.parse(
        "ENTRY e {\n" + "\n".join(lines) + "\n  ROOT r = f32[1024] abs(x20)\n}\n"
    )
    assert lower(module.op).plan.arena_size <= 2 * 4096
    x = np.arange(1024, dtype="f4")
    assert same(compiled(module)(x), x)


def test_a_parameter_is_returned_as_a_copy() -> None:
    module = mlirhlo.parse("ENTRY e { ROOT x = f32[4] parameter(0) }")
    x = np.arange(4, dtype="f4")
    result = compiled(module)(x)
    assert same(result, x)
    assert not np.shares_memory(result, x)


def test_kernels_of_one_operand_twice_are_not_shared() -> None:
    module = mlirhlo.parse("""HloModule twice
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  a = f32[4] multiply(x, x)
  b = f32[4] multiply(x, y)
  ROOT r = (f32[4], f32[4]) tuple(a, b)
}
""")
    x, y = np.arange(4, dtype="f4"), np.full(4, 7, "f4")
    assert same(compiled(module)(x, y), module(x, y))


def test_results_have_their_own_shape_in_shared_memory() -> None:
    module = mlirhlo.parse("""HloModule reshaped
ENTRY e {
  x = f32[2,3] parameter(0)
  a = f32[6] reshape(x)
  s = f32[2,3] add(x, x)
  b = f32[3,2] reshape(s)
  c = f32[3,2]{0,1} bitcast(s)
  ROOT r = (f32[6], f32[3,2], f32[3,2]{0,1}) tuple(a, b, c)
}
""")
    x = np.arange(6, dtype="f4").reshape(2, 3)
    actual, expected = compiled(module)(x), module(x)
    assert same(actual, expected)
    assert [a.shape for a in actual] == [e.shape for e in expected]


def test_asynchronous_copies_and_dependencies_are_their_operands() -> None:
    module = mlirhlo.parse("""HloModule asynchronous
ENTRY e {
  x = f32[6] parameter(0)
  s = f32[6] add(x, x)
  c = (f32[6]{0:S(1)}, f32[6], u32[]) copy-start(s)
  d = f32[6]{0:S(1)} copy-done(c)
  t = token[] after-all()
  a = f32[6]{0:S(1)} add-dependency(d, t)
  ROOT r = f32[6] multiply(a, x)
}
""")
    x = np.arange(6, dtype="f4")
    assert same(compiled(module)(x), module(x))


def test_a_reshape_of_equal_sizes_in_another_layout_moves_elements() -> None:
    module = mlirhlo.parse("""HloModule layouts
ENTRY e {
  x = f32[3,3]{0,1} parameter(0)
  ROOT r = f32[9]{0} reshape(x)
}
""")
    x = np.arange(9, dtype="f4").reshape(3, 3)
    assert same(compiled(module)(x), module(x))


def test_a_callee_lays_out_its_parameters_and_result_itself() -> None:
    module = mlirhlo.parse("""HloModule layouts
callee {
  p = f32[3,3]{1,0} parameter(0)
  ROOT r = f32[3,3]{1,0} add(p, p)
}
ENTRY e {
  x = f32[3,3]{0,1} parameter(0)
  ROOT c = f32[3,3]{0,1} call(x), to_apply=callee
}
""")
    x = np.arange(9, dtype="f4").reshape(3, 3)
    assert same(compiled(module)(x), module(x))


LAYOUTS = """HloModule layouts
condition {
  s = (s32[], f32[2,3]{0,1}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[2,3]{1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[2,3]{1,0} get-tuple-element(s), index=1
  k = f32[2,3]{1,0} constant({{1, 2, 3}, {4, 5, 6}})
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[2,3]{0,1} add(x, k)
  ROOT t = (s32[], f32[2,3]{0,1}) tuple(j, y)
}
turned {
  x = f32[2,3]{0,1} parameter(0)
  ROOT r = f32[2,3]{0,1} negate(x)
}
kept { ROOT x = f32[2,3]{1,0} parameter(0) }
ENTRY e {
  p = pred[] parameter(0)
  x = f32[2,3]{0,1} parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[2,3]{0,1}) tuple(zero, x)
  w = (s32[], f32[2,3]{1,0}) while(t), condition=condition, body=body
  y = f32[2,3]{1,0} get-tuple-element(w), index=1
  ROOT r = f32[2,3]{1,0} conditional(p, y, y), true_computation=turned, false_computation=kept
}
"""


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("test", [False, True])
def test_loops_and_branches_lay_values_out_anew(test: bool) -> None:
    """Before layouts are assigned, those of callers and callees need not agree."""
    module = mlirhlo.parse(LAYOUTS)
    x = np.arange(6, dtype="f4").reshape(2, 3)
    assert same(compiled(module)(np.bool_(test), x), module(np.bool_(test), x))
