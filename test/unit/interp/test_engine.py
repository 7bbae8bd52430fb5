"""The engine: inputs and results, calls, hooks, errors."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from mlirhlo.diagnostics import HloError
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp import Interpreter, evaluate, run_module
from mlirhlo.interp.registry import MEANINGS, PREPARED

SCALE = """HloModule scale
ENTRY main {
  x = f32[3] parameter(0)
  two = f32[] constant(2)
  twos = f32[3] broadcast(two), dimensions={}
  ROOT y = f32[3] multiply(x, twos)
}
"""


def run(text: str, *inputs: Any, **options: Any) -> list[np.ndarray]:
    return run_module(parse_module(text, "m.hlo"), inputs, check=True, **options)


def code_of(text: str, *inputs: Any) -> str:
    with pytest.raises(HloError) as caught:
        run(text, *inputs)
    return caught.value.code


def test_runs_on_lists_scalars_and_arrays() -> None:
    assert run(SCALE, [1, 2, 3])[0].tolist() == [2, 4, 6]
    assert run(SCALE, np.arange(3.0))[0].dtype == np.float32


class OnlyDlpack:
    """An array of another library."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def test_takes_and_gives_dlpack() -> None:
    (result,) = run(SCALE, OnlyDlpack(np.array([1, 2, 3], np.float32)))
    assert np.from_dlpack(result).tolist() == [2, 4, 6]


@pytest.mark.parametrize(
    ("inputs", "code"),
    [
        ([], "HLO0302"),
        ([[1, 2, 3], [1]], "HLO0302"),
        ([np.zeros(4, np.float32)], "HLO0303"),
        ([np.zeros(3, np.int32)], "HLO0303"),
        ([object()], "HLO0303"),
    ],
)
def test_inputs_that_do_not_fit(inputs: Sequence[Any], code: str) -> None:
    assert code_of(SCALE, *inputs) == code


def test_integers_must_fit() -> None:
    text = "HloModule m\nENTRY e {\n  p = s8[2] parameter(0)\n  ROOT n = s8[2] negate(p)\n}\n"
    assert run(text, np.array([1, -2]))[0].tolist() == [-1, 2]
    assert code_of(text, np.array([1, 200])) == "HLO0303"


TUPLES = """HloModule m
ENTRY e {
  p = (f32[2], (s32[], pred[])) parameter(0)
  a = f32[2] get-tuple-element(p), index=0
  b = (s32[], pred[]) get-tuple-element(p), index=1
  ROOT t = ((s32[], pred[]), f32[2]) tuple(b, a)
}
"""


def test_tuples_nested_or_flat() -> None:
    for inputs in ([([1, 2], (3, True))], [[1, 2], 3, True]):
        out = run(TUPLES, *inputs)
        assert [o.tolist() for o in out] == [3, True, [1, 2]]


def test_hook_sees_every_instruction_in_order() -> None:
    seen: list[tuple[str | None, int, Any]] = []

    def hook(op: Any, inputs: Sequence[Any], result: Any) -> None:
        seen.append((op.instruction_name, len(inputs), result))

    run(SCALE, [1, 2, 3], hook=hook)
    assert [(name, count) for name, count, _ in seen] == [
        ("x", 0),
        ("two", 0),
        ("twos", 1),
        ("y", 2),
    ]
    assert seen[-1][2].tolist() == [2, 4, 6]


COUNT = """HloModule count
below {
  s = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5000)
  ROOT r = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  t = s32[] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  u = s32[] add(t, i)
  ROOT r = (s32[], s32[]) tuple(j, u)
}
ENTRY e {
  z = s32[] constant(0)
  s = (s32[], s32[]) tuple(z, z)
  w = (s32[], s32[]) while(s), condition=below, body=body
  ROOT r = s32[] get-tuple-element(w), index=1
}
"""


def test_loops() -> None:
    assert run(COUNT)[0] == 4999 * 5000 // 2


@pytest.mark.parametrize(("index", "want"), [(0, -3.0), (1, 9.0), (2, 4.0), (-1, 4.0), (7, 4.0)])
def test_conditional_clamps_to_the_last_branch(index: int, want: float) -> None:
    text = """HloModule m
a {
  p = f32[] parameter(0)
  ROOT r = f32[] negate(p)
}
b {
  p = f32[] parameter(0)
  ROOT r = f32[] multiply(p, p)
}
c {
  p = f32[] parameter(0)
  one = f32[] constant(1)
  ROOT r = f32[] add(p, one)
}
ENTRY e {
  i = s32[] parameter(0)
  x = f32[] constant(3)
  ROOT r = f32[] conditional(i, x, x, x), branch_computations={a, b, c}
}
"""
    assert run(text, index)[0] == want


@pytest.mark.slow
def test_deep_call_chains_need_no_recursion() -> None:
    depth = 3000
    parts = ["HloModule deep", "level_0 {\n  p = f32[] parameter(0)\n  ROOT r = f32[] negate(p)\n}"]
    for level in range(1, depth):
        parts.append(
            f"level_{level} {{\n  p = f32[] parameter(0)\n"
            f"  ROOT r = f32[] call(p), to_apply=level_{level - 1}\n}}"
        )
    parts.append(
        f"ENTRY e {{\n  p = f32[] parameter(0)\n  ROOT r = f32[] call(p), to_apply=level_{depth - 1}\n}}"
    )
    assert run("\n".join(parts) + "\n", 2.0)[0] == -2.0


def test_circular_calls_end() -> None:
    module = parse_module(
        "HloModule m\nc {\n  p = f32[] parameter(0)\n  ROOT r = f32[] negate(p)\n}\n"
        "d {\n  p = f32[] parameter(0)\n  ROOT r = f32[] call(p), to_apply=c\n}\n"
        "ENTRY e {\n  p = f32[] parameter(0)\n  ROOT r = f32[] call(p), to_apply=d\n}\n"
    )
    from mlirhlo.dialects.hlo.attributes.base import symbol
    from mlirhlo.dialects.hlo.module import HloModule

    HloModule(module).by_name()["d"].root.properties["to_apply"] = symbol("d")
    with pytest.raises(HloError, match="HLO0304"):
        run_module(module, [1.0])


def test_elided_constants_are_refused_with_the_way_to_dump_them() -> None:
    text = (
        "HloModule m\nENTRY e {\n  c = f32[16] constant({...})\n  ROOT n = f32[16] negate(c)\n}\n"
    )
    with pytest.raises(HloError) as caught:
        run(text)
    assert caught.value.code == "HLO0301"
    assert "m.hlo:3:" in str(caught.value)
    assert "--xla_dump_large_constants" in str(caught.value)


def test_elided_constants_that_nothing_reads_do_not_matter() -> None:
    text = """
        unused { c = f32[3] constant({...})  ROOT r = f32[3] negate(c) }
        ENTRY e {
          x = f32[3] parameter(0)
          c = f32[3] constant({...})
          t = (f32[3], f32[3]) tuple(x, c)
          ROOT r = f32[3] negate(x)
        }"""
    (result,) = run(text, [1, 2, 3])
    np.testing.assert_array_equal(result, [-1, -2, -3])


def test_names_the_first_instruction_without_meaning(monkeypatch: pytest.MonkeyPatch) -> None:
    run(SCALE, [1, 2, 3])
    monkeypatch.delitem(MEANINGS, "multiply")
    monkeypatch.delitem(PREPARED, "multiply")
    with pytest.raises(HloError) as caught:
        run(SCALE, [1, 2, 3])
    assert caught.value.code == "HLO0300"
    assert "%y" in str(caught.value)
    assert "m.hlo:6:" in str(caught.value)


def test_wrong_declarations_are_found_when_checked() -> None:
    module = parse_module(SCALE)
    from mlirhlo.dialects.hlo.module import HloModule
    from mlirhlo.dialects.hlo.shapes import parse_shape
    from mlirhlo.dialects.hlo.types import type_of

    HloModule(module).entry.root.results[0]._type = type_of(parse_shape("f32[4]"))
    assert run_module(module, [[1, 2, 3]])[0].shape == (3,)
    with pytest.raises(HloError, match="HLO0305"):
        run_module(module, [[1, 2, 3]], check=True)


def test_operands_that_do_not_fit_each_other() -> None:
    text = (
        "HloModule m\nENTRY e {\n  a = f32[3] parameter(0)\n  b = f32[2] parameter(1)\n"
        "  ROOT r = f32[5] concatenate(a, b), dimensions={0}\n}\n"
    )
    module = parse_module(text)
    from mlirhlo.dialects.hlo.attributes.base import integers
    from mlirhlo.dialects.hlo.module import HloModule

    HloModule(module).entry.root.properties["dimensions"] = integers((3,))
    with pytest.raises(HloError, match=r"HLO0102.*concatenate_c3"):
        run_module(module, [[1, 2, 3], [4, 5]])


def test_evaluates_one_instruction() -> None:
    from mlirhlo.dialects.hlo.module import HloModule

    root = HloModule(parse_module(SCALE)).entry.root
    value = evaluate(root, [np.array([1, 2, 3], np.float32), np.full(3, 5, np.float32)])
    assert isinstance(value, np.ndarray)
    assert value.tolist() == [5, 10, 15]


def test_one_interpreter_may_run_in_many_threads() -> None:
    interpreter = Interpreter(parse_module(SCALE))
    results: dict[int, Any] = {}

    def work(number: int) -> None:
        results[number] = interpreter.run([[number] * 3])

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(results[n].tolist() == [2 * n] * 3 for n in range(8))


def test_reducers_that_are_no_plain_arithmetic_run_once_an_element() -> None:
    text = """HloModule m
double {
  p = f32[] parameter(0)
  ROOT r = f32[] add(p, p)
}
same {
  p = f32[] parameter(0)
  ROOT r = f32[] copy(p)
}
f {
  p = f32[] parameter(0)
  z = f32[] constant(0)
  c = pred[] compare(p, z), direction=LT
  ROOT r = f32[] conditional(c, p, p), true_computation=double, false_computation=same
}
ENTRY e {
  x = f32[2,2] parameter(0)
  ROOT m = f32[2,2] map(x), dimensions={0,1}, to_apply=f
}
"""
    assert run(text, [[1, -1], [-2, 2]])[0].tolist() == [[1, -2], [-4, 2]]
