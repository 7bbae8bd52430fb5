"""Which buffers share memory, and which copies stay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

import mlirhlo
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.lowering.cpu.pipeline import optimize
from mlirhlo.lowering.cpu.planner import plan_module
from mlirhlo.lowering.plan.plan import Plan
from mlirhlo.lowering.plan.sharing import share_buffers
from mlirhlo.lowering.plan.steps import Branch, Buffer, Copy, Kernel, Repeat, Slice, Step, While

pytest.importorskip("llvmlite")


def flat(steps: Sequence[Step]) -> Iterator[Step]:
    for step in steps:
        yield step
        match step:
            case While():
                yield from flat([*step.condition, *step.body])
            case Branch():
                for branch in step.branches:
                    yield from flat(branch)
            case _:
                pass


def planned(text: str) -> Plan:
    return plan_module(mlirhlo.parse(text).op)


def copies(text: str) -> int:
    return sum(isinstance(step, Copy) for step in flat(planned(text).steps))


def agrees(text: str, *arguments: object) -> None:
    module = mlirhlo.parse(text)
    actual, expected = mlirhlo.compile(module)(*arguments), module(*arguments)
    actual, expected = ((v if isinstance(v, tuple) else (v,)) for v in (actual, expected))
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(e), rtol=1e-5)


LOOP = """HloModule loop
cond {{
  s = (s32[], f32[64], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT c = pred[] compare(i, n), direction=LT
}}
body {{
  s = (s32[], f32[64], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[64] get-tuple-element(s), index=1
  b = f32[64] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
{body}
}}
ENTRY e {{
  x = f32[64] parameter(0)
  y = f32[64] parameter(1)
  zero = s32[] constant(0)
  s = (s32[], f32[64], f32[64]) tuple(zero, x, y)
  w = (s32[], f32[64], f32[64]) while(s), condition=cond, body=body
  p = f32[64] get-tuple-element(w), index=1
  q = f32[64] get-tuple-element(w), index=2
  ROOT r = f32[64] add(p, q)
}}
"""


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    ("body", "inside"),
    [
        # Each new value is written over the old one.
        ("  c = f32[64] add(a, b)\n  ROOT r = (s32[], f32[64], f32[64]) tuple(j, c, b)", 0),
        # The old `a` is read after the new one is made.
        (
            "\n".join(
                [
                    "  c = f32[64] add(a, b)",
                    "  d = f32[64] multiply(a, c)",
                    "  ROOT r = (s32[], f32[64], f32[64]) tuple(j, c, d)",
                ]
            ),
            1,
        ),
        # The two change places: through a third.
        ("  ROOT r = (s32[], f32[64], f32[64]) tuple(j, b, a)", 4),
        # The reverse needs all of the old value.
        (
            "  c = f32[64] reverse(a), dimensions={{0}}\n"
            "  ROOT r = (s32[], f32[64], f32[64]) tuple(j, c, b)".replace("{{", "{").replace(
                "}}", "}"
            ),
            1,
        ),
    ],
)
def test_copies_in_a_loop(body: str, inside: int) -> None:
    text = LOOP.format(body=body)
    (loop,) = [s for s in planned(text).steps if isinstance(s, While)]
    assert sum(isinstance(step, Copy) for step in loop.body) <= inside
    assert not any(isinstance(step, Copy) for step in loop.condition)
    agrees(text, *np.random.default_rng(0).random((2, 64), np.float32))


def test_what_a_loop_only_reads_is_not_copied() -> None:
    text = LOOP.format(
        body="  c = f32[64] add(a, b)\n  ROOT r = (s32[], f32[64], f32[64]) tuple(j, c, b)"
    )
    # `x` and the counter start from what must not be written; `y` is read where it is.
    assert copies(text) == 2
    plan = planned(text)
    assert plan.arena_size <= 64 * 4


def test_a_chain_is_computed_in_one_place() -> None:
    lines = [f"  x{n + 1} = f32[1024] {op}(x{n})" for n, op in enumerate(["sine", "cosine"] * 9)]
    calls = "\n".join(lines)
    plan = planned(
        f"ENTRY e {{\n  x0 = f32[1024] parameter(0)\n{calls}\n}}".replace("x18 =", "ROOT x18 =")
    )
    assert plan.arena_size == 0
    assert all(s.writes[0] is plan.results[0].home for s in plan.steps if isinstance(s, Kernel))


def test_parameters_and_constants_are_never_written() -> None:
    text = """ENTRY e {
  x = f32[3] parameter(0)
  c = f32[3] constant({1, 2, 3})
  n = f32[3] negate(x)
  m = f32[3] negate(c)
  ROOT r = (f32[3], f32[3], f32[3], f32[3]) tuple(x, c, n, m)
}"""
    x = np.arange(3, dtype=np.float32)
    agrees(text, x)
    np.testing.assert_array_equal(x, np.arange(3))
    for step in planned(text).steps:
        target = step.target if isinstance(step, Copy) else step.writes[0]  # type: ignore[union-attr]
        assert target.result is not None


def test_branches_write_their_result_where_it_goes() -> None:
    text = """HloModule choice
yes { x = f32[8] parameter(0) ROOT n = f32[8] negate(x) }
no { x = f32[8] parameter(0) a = f32[8] abs(x) ROOT s = f32[8] multiply(a, x) }
ENTRY e {
  p = pred[] parameter(0)
  x = f32[8] parameter(1)
  ROOT c = f32[8] conditional(p, x, x), true_computation=yes, false_computation=no
}"""
    assert copies(text) == 0
    for test in (True, False):
        agrees(text, np.bool_(test), np.arange(-4, 4, dtype=np.float32))


def test_a_value_that_two_results_want_is_copied_once() -> None:
    text = """ENTRY e {
  x = f32[8] parameter(0)
  n = f32[8] negate(x)
  ROOT r = (f32[8], f32[8]) tuple(n, n)
}"""
    assert copies(text) == 1
    agrees(text, np.arange(8, dtype=np.float32))


UPDATES = """HloModule updates
cond {{
  s = (s32[], f32[64,33]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT c = pred[] compare(i, n), direction=LT
}}
fused {{
  a = f32[64,33] parameter(0)
  i = s32[] parameter(1)
  zero = s32[] parameter(2)
{update}
  ROOT u = f32[64,33] dynamic-update-slice(a, w, i, zero)
}}
body {{
  s = (s32[], f32[64,33]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[64,33] get-tuple-element(s), index=1
  one = s32[] constant(1)
  zero = s32[] constant(0)
  j = s32[] add(i, one)
  u = f32[64,33] fusion(a, i, zero), kind=kLoop, calls=fused
  ROOT r = (s32[], f32[64,33]) tuple(j, u)
}}
ENTRY e {{
  x = f32[64,33] parameter(0)
  zero = s32[] constant(0)
  s = (s32[], f32[64,33]) tuple(zero, x)
  w = (s32[], f32[64,33]) while(s), condition=cond, body=body
  ROOT p = f32[64,33] get-tuple-element(w), index=1
}}
"""


def sliced(starts: str) -> str:
    return f"  d = f32[2,33] dynamic-slice(a, {starts}), dynamic_slice_sizes={{2,33}}\n"


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    "update",
    [
        "  c = f32[] constant(2)\n  w = f32[2,33] broadcast(c), dimensions={}",
        # What is written was read at the same place.
        sliced("i, zero") + "  w = f32[2,33] sine(d)",
        # One row is written from another: all of it is computed first.
        sliced("zero, i") + "  w = f32[2,33] sine(d)",
        sliced("i, zero") + "  w = f32[2,33] reverse(d), dimensions={1}",
    ],
)
def test_updates_of_a_loop_are_written_in_place(update: str) -> None:
    text = UPDATES.format(update=update)
    plan = planned(text)
    (loop,) = [s for s in plan.steps if isinstance(s, While)]
    assert not [s for s in flat(loop.body) if isinstance(s, Copy) and s.source.size > 100]
    assert plan.arena_size < 64 * 33 * 4
    agrees(text, np.random.default_rng(0).random((64, 33), np.float32))


def test_slices_of_what_one_kernel_wrote_are_read_there() -> None:
    text = """HloModule m
body {
  s = (s32[], f32[8,64], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8,64] get-tuple-element(s), index=1
  t = f32[64] get-tuple-element(s), index=2
  zero = s32[] constant(0)
  one = s32[] constant(1)
  d = f32[1,64] dynamic-slice(x, i, zero), dynamic_slice_sizes={1,64}
  r = f32[64] reshape(d)
  v = f32[64] reverse(r), dimensions={0}
  a = f32[64] add(t, v)
  j = s32[] add(i, one)
  ROOT n = (s32[], f32[8,64], f32[64]) tuple(j, x, a)
}
cond {
  s = (s32[], f32[8,64], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(8)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY e {
  p = f32[8,64] parameter(0)
  x = f32[8,64] sine(p)
  zero = s32[] constant(0)
  z = f32[] constant(0)
  t = f32[64] broadcast(z), dimensions={}
  s = (s32[], f32[8,64], f32[64]) tuple(zero, x, t)
  w = (s32[], f32[8,64], f32[64]) while(s), condition=cond, body=body
  ROOT r = f32[64] get-tuple-element(w), index=2
}
"""
    (loop,) = [s for s in planned(text).steps if isinstance(s, While)]
    assert [s for s in flat(loop.body) if isinstance(s, Slice)]
    agrees(text, np.random.default_rng(0).random((8, 64), np.float32))


def test_an_update_of_a_parameter_copies_it() -> None:
    text = (
        "f32[5,70] dynamic-update-slice(f32[5,70] x, f32[2,40] u, s32[] i, s32[] j)",
        "c64[5,70] dynamic-update-slice(c64[5,70] x, c64[2,40] u, u8[] i, u8[] j)",
        "f32[5,70]{0,1} dynamic-update-slice(f32[5,70]{0,1} x, f32[2,40] u, s32[] i, s32[] j)",
        "pred[] dynamic-update-slice(pred[] x, pred[] u)",
        "s8[3] dynamic-update-slice(s8[3] x, s8[0] u, s32[] i)",
    )
    rng = np.random.default_rng(0)
    for line in text:
        module = mlirhlo.parse(line)
        arguments: list[np.ndarray[tuple[int, ...], np.dtype[np.generic]]] = []
        for parameter in module.hlo.entry.parameters:
            shape = parameter.shape
            numbers = rng.integers(0, 9, shape.dimensions)  # type: ignore[union-attr]
            arguments.append(np.asarray(numbers, shape.element_type.dtype))  # type: ignore[union-attr]
        before = arguments[0].copy()
        np.testing.assert_array_equal(mlirhlo.compile(module)(*arguments), module(*arguments))
        np.testing.assert_array_equal(before, arguments[0])


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    ("after", "inside"),
    [
        # The sums are added to the old value where it is.
        ("add(a, d)", 0),
        ("multiply(d, a)", 0),
        # Another element of the old value, or the old value as a factor, has to be there still.
        ("add(d, t)", 1),
        ("add(d, d)", 1),
    ],
)
@pytest.mark.parametrize("rows", [3, 40])
def test_a_product_is_added_to_where_it_stands(after: str, inside: int, rows: int) -> None:
    square = f"f32[{rows},{rows}]"
    text = (
        LOOP.format(
            body=f"""  t = f32[64] transpose(a), dimensions={{1,0}}
  d = f32[64] dot({"a" if after == "add(d, d)" else "b"}, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  c = f32[64] {after}
  ROOT r = (s32[], f32[64], f32[64]) tuple(j, c, b)"""
        )
        .replace("f32[64]", square)
        .replace("constant(5)", "constant(9)")
    )
    plan = plan_module(optimize(mlirhlo.parse(text).op))
    (loop,) = [s for s in plan.steps if isinstance(s, While)]
    assert sum(isinstance(step, Copy) for step in loop.body) <= inside
    agrees(text, *np.random.default_rng(0).random((2, rows, rows), np.float32))


def test_what_may_share_with_an_operand_shares_with_no_other() -> None:
    """A kernel may write over its small operand, which has another size: not over its state."""
    large, small = (ArrayShape(PRIMITIVE_TYPES["f32"], (n,)) for n in (8, 2))
    start, given = Buffer(large, 32, parameter=0), Buffer(small, 8, parameter=1)
    state, new, copy = Buffer(large, 32), Buffer(large, 32), Buffer(small, 8)
    result = Buffer(large, 32, result=0)
    body: list[Step] = [Kernel("k", [state, copy], [new]), Copy(new, state)]
    steps: list[Step] = [
        Copy(given, copy),
        Copy(start, state),
        Repeat(3, body),
        Copy(state, result),
    ]
    shared = share_buffers(steps, {"k": ((1, 2),)}, [result])
    (loop,) = (step for step in shared if isinstance(step, Repeat))
    kernel = loop.body[0]
    assert isinstance(kernel, Kernel)
    assert kernel.writes[0] is not kernel.reads[0]
