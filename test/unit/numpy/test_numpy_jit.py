"""`jit`: structures, static arguments, what the module says, recompilation, control flow, errors."""

# A traced function is written out even where it is one call.
# ruff: noqa: PLW0108
from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import mlirhlo
import mlirhlo.numpy as hnp
from mlirhlo.analysis.verifier import verify_module
from mlirhlo.diagnostics import HloError
from mlirhlo.numpy import eager


@dataclass
class State:
    weights: Any
    step: Any


class Pair(NamedTuple):
    first: Any
    second: Any


def lines(jitted: Any, *arguments: Any) -> list[str]:
    lowered = jitted.lower(*arguments)
    assert not verify_module(lowered.op)
    text: str = lowered.as_text()
    return text.splitlines()


def test_the_module_says_where_it_comes_from() -> None:
    def scale_shift(x: Any, params: Any) -> Any:
        return x * params["w"] + params["b"][0]

    found = lines(mlirhlo.jit(scale_shift), np.ones(3), {"w": np.ones(3), "b": [np.ones(())]})
    assert found[0].startswith("HloModule jit_scale_shift, entry_computation_layout={")
    text = "\n".join(found)
    assert (
        r"""params__b___0_.1 = f64[] parameter(1), metadata={op_name="params[\'b\'][0]"}""" in text
    )
    line = scale_shift.__code__.co_firstlineno + 1
    multiply = next(one for one in found if " multiply(" in one)
    assert 'op_name="jit(scale_shift)/multiply"' in multiply
    assert f'source_file="{__file__}" source_line={line}' in multiply


def test_text_comes_back() -> None:
    jitted = mlirhlo.jit(lambda x: hnp.sum(hnp.sort(x)[::-1] * hnp.arange(4)))
    x = np.array([3.0, 1, 2, 5])
    for form in ("hlo", "mlir"):
        module = mlirhlo.parse(jitted.lower(x).as_text(form))
        assert module(x) == pytest.approx(float(jitted(x)))


def test_structures() -> None:
    def step(state: Any, pair: Any, extra: Any = None) -> Any:
        new = State(state.weights + pair.first, state.step + 1)
        return {"state": new, "list": [pair.second, (extra,)], "none": None}

    found = mlirhlo.jit(step)(State(np.ones(2), 3), Pair(np.ones(2), 2.0))
    assert isinstance(found["state"], State)
    assert found["state"].weights.tolist() == [2, 2]
    assert int(found["state"].step) == 4
    assert float(found["list"][0]) == 2
    assert found["list"][1] == (None,)
    assert found["none"] is None
    assert mlirhlo.jit(lambda: hnp.ones(2))().tolist() == [1, 1]
    assert mlirhlo.jit(lambda x: x)(np.arange(2)).tolist() == [0, 1]
    assert mlirhlo.jit(lambda x: (x, x))(1.0)[1].dtype == hnp.float64
    assert mlirhlo.jit(lambda *xs, **named: xs[1] + named["a"])(1, 2, a=3).tolist() == 5


@pytest.mark.parametrize("wrong", [3, "name", int])
def test_what_is_no_function(wrong: object) -> None:
    with pytest.raises(TypeError, match=r"HLO0623.*expects a function of Python's"):
        mlirhlo.jit(wrong)


@pytest.mark.parametrize("wrong", ["0", None, [0.5], {"x": 1}])
def test_numbers_of_arguments_are_whole(wrong: object) -> None:
    with pytest.raises(TypeError, match=r"HLO0623.*static_argnums is a number or several"):
        mlirhlo.jit(lambda x: x, static_argnums=wrong)


def test_static_arguments_and_names() -> None:
    calls: list[str] = []

    @mlirhlo.jit(static_argnums=(1,), static_argnames="mode")
    def power(x: Any, n: int, *, mode: str = "up") -> Any:
        """Doc."""
        calls.append(mode)
        for _ in range(n):
            x = x * 2 if mode == "up" else x / 2
        return x

    assert float(power(1.0, 3)) == 8
    assert float(power(1.0, n=3)) == 8
    assert float(power(1.0, 2, mode="down")) == 0.25
    assert (calls, power.cache_size()) == (["up", "down"], 2)
    assert power.__doc__ == "Doc."
    with pytest.raises(ValueError, match="HLO0623"):
        power(1.0, [3])
    for options in ({"static_argnums": 3}, {"static_argnames": "y"}, {"platform": "tpu"}):
        with pytest.raises(ValueError, match="HLO0623"):
            mlirhlo.jit(lambda x: x, **options)


def test_donation() -> None:
    def both(x: Any, y: Any) -> Any:
        return x + 1, hnp.sum(y)

    found = lines(mlirhlo.jit(both, donate_argnums=(0, 1)), np.ones(3), np.ones(4))
    assert "input_output_alias={ {0}: (0, {}, may-alias) }" in found[0]
    assert "buffer_donor={ (1, {}) }" in found[0]
    single = lines(mlirhlo.jit(lambda x: x + 1, donate_argnums=0), np.ones(3))
    assert "input_output_alias={ {}: (0, {}, may-alias) }" in single[0]


def test_recompilation_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def f(x: Any, n: int = 0) -> Any:
        return x + n

    jitted = mlirhlo.jit(f, static_argnames="n")
    with caplog.at_level(logging.INFO, "mlirhlo.jit"):
        jitted(np.ones(3))
        jitted(np.ones(3))
        jitted(np.ones(4))
        jitted(np.ones(4, "float32"))
        jitted(np.ones(4), n=2)
        jitted(np.ones(5))
    messages = [record.getMessage() for record in caplog.records]
    assert messages[0] == "Compiling f for [x: f64[3]]: first call"
    assert messages[1].startswith(
        "Compiling f for [x: f64[4]]: new shape of x, f64[4] instead of f64[3]; 1 known"
    )
    assert "new type of x, f32[4] instead of f64[4]" in messages[2]
    assert "new static n=2 instead of None" in messages[3]
    assert "every new shape compiles" in messages[4]
    assert [record.levelname for record in caplog.records] == ["INFO"] * 4 + ["WARNING"]


def test_python_scalars_promote_as_outside() -> None:
    x = np.ones(2, "float32")
    assert mlirhlo.jit(lambda x, s: x * s)(x, 2.0).dtype == np.float32
    assert mlirhlo.jit(lambda x, s: x * (s + 1))(x, 2).dtype == np.float32
    assert mlirhlo.jit(lambda x, s: x * hnp.sqrt(s))(x, 2.0).dtype == np.float32
    assert mlirhlo.jit(lambda s: s)(2.0).dtype == np.float64


def test_numpys_own_functions() -> None:
    x = np.array([0.25, 1.0])
    jitted = mlirhlo.jit(lambda x: np.sin(x) + np.power(x, 2))
    np.testing.assert_allclose(np.asarray(jitted(x)), np.sin(x) + x**2)
    with pytest.raises(TypeError, match=r"HLO0628.*numpy\.cbrt does not compile"):
        mlirhlo.jit(lambda x: np.cbrt(x))(x)
    with pytest.raises(TypeError, match="HLO0620"):
        mlirhlo.jit(lambda x: np.linalg.norm(x))(x)


def test_jit_inside_of_jit_and_constants() -> None:
    inner = mlirhlo.jit(lambda x: x * 2)
    table = np.arange(3.0)
    outer = mlirhlo.jit(lambda x: inner(x) + hnp.asarray(table))
    assert outer(np.ones(3)).tolist() == [2, 3, 4]
    assert inner.cache_size() == 0


def test_arguments_are_safe() -> None:
    """Results never share memory with what the caller may change, nor change it."""
    x = np.zeros(3)
    same = mlirhlo.jit(lambda x: x)(x)
    x[0] = 5
    assert same.tolist() == [0, 0, 0]

    def change(y: Any) -> Any:
        y[0] = 7
        return y

    given = hnp.asarray(x)
    assert mlirhlo.jit(change)(given).tolist() == [7, 0, 0]
    assert given.tolist() == [5, 0, 0]


def test_compiled() -> None:
    compiled = mlirhlo.jit(lambda x: x + 1).lower(np.ones(3)).compile()
    assert compiled.as_text().startswith("HloModule jit__lambda_")
    assert compiled(np.zeros(3)).tolist() == [1, 1, 1]
    with pytest.raises(TypeError, match=r"HLO0623.*compiled for \[f64\[3\]\], called with"):
        compiled(np.zeros(4))
    named = mlirhlo.jit(lambda x, n, y: x[n] + y, static_argnames="n")
    assert float(named.lower(np.ones(3), 2, 5.0).compile()(np.ones(3), y=1)) == 2


def test_eager_results_are_cached_by_shape() -> None:
    eager.CACHE.clear()
    for _ in range(3):
        for size in (2, 3):
            hnp.tanh(hnp.asarray(np.ones(size)))
    assert len(eager.CACHE) == 2


# ------------------------------------------------------------------ control flow


def loop(x: Any, n: Any) -> Any:
    total = hnp.sum(x)

    def body(i: Any, state: Any) -> Any:
        a, b = state["a"], state["b"]
        return {"a": a + total * i, "b": hnp.cond(a > 3, lambda v: v * 2, lambda v: v - total, b)}

    return hnp.fori_loop(0, n, body, {"a": hnp.asarray(0.0), "b": x})


def test_loops_agree_inside_and_outside() -> None:
    x = np.arange(3.0)
    for n in (0, 1, 5):
        inside, outside = mlirhlo.jit(loop)(x, n), loop(hnp.asarray(x), n)
        for key in "ab":
            np.testing.assert_allclose(np.asarray(inside[key]), np.asarray(outside[key]))


def test_loops_are_loops() -> None:
    text = "\n".join(lines(mlirhlo.jit(loop), np.arange(3.0), 5))
    assert " while(" in text
    assert " conditional(" in text


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("count", [0, 1, 4])
def test_scan(reverse: bool, count: int) -> None:
    def f(start: Any, xs: Any) -> Any:
        scale = start * 2
        return hnp.scan(
            lambda c, x: (c + x["a"], {"y": c * scale, "z": x["b"]}), start, xs, reverse=reverse
        )

    xs = {"a": np.arange(1.0, count + 1), "b": np.arange(count * 2).reshape(count, 2)}
    carry, want = 1.0, []
    for a in xs["a"][::-1] if reverse else xs["a"]:
        want.append(carry * 2.0)
        carry += a
    want = want[::-1] if reverse else want
    for last, ys in (
        mlirhlo.jit(f)(1.0, xs),
        f(hnp.asarray(1.0), {k: hnp.asarray(v) for k, v in xs.items()}),
    ):
        assert float(last) == carry
        np.testing.assert_array_equal(np.asarray(ys["y"]), np.array(want))
        np.testing.assert_array_equal(np.asarray(ys["z"]), xs["b"])


def test_scan_without_inputs() -> None:
    last, ys = mlirhlo.jit(lambda x: hnp.scan(lambda c, _: (c * 2, c), x, length=3))(1.0)
    assert (float(last), ys.tolist()) == (8, [1, 2, 4])


def test_nested_loops_capture_from_all_around() -> None:
    def f(x: Any, y: Any) -> Any:
        def outer(i: Any, s: Any) -> Any:
            return hnp.while_loop(
                lambda t: hnp.all(t < y + i),
                lambda t: hnp.cond(i > 1, lambda: t + x, lambda: t + 1),
                s,
            )

        return hnp.fori_loop(0, 4, outer, hnp.zeros(2))

    got = mlirhlo.jit(f)(2.0, 5.0)
    assert not verify_module(mlirhlo.jit(f).lower(2.0, 5.0).op)
    np.testing.assert_array_equal(
        np.asarray(got), np.asarray(f(hnp.asarray(2.0), hnp.asarray(5.0)))
    )


# ------------------------------------------------------------------ errors

LEAKED: list[Any] = []


def _if(x: Any) -> Any:
    return x if x > 0 else -x


def _leak(x: Any) -> Any:
    LEAKED.append(x * 2)
    return x


def _use_leaked(x: Any) -> Any:
    mlirhlo.jit(_leak)(x)
    return LEAKED[-1] + 1


def _change_outer(x: Any) -> Any:
    outer = hnp.zeros(3)

    def f(x: Any) -> Any:
        outer[0] = x
        return x

    return mlirhlo.jit(f)(x)


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (mlirhlo.jit(_if), "HLO0620"),
        (mlirhlo.jit(lambda x: hnp.zeros(int(x))), "HLO0620"),
        (mlirhlo.jit(lambda x: hnp.arange(x)), "HLO0620"),
        (mlirhlo.jit(lambda x: range(x)), "HLO0626"),
        (mlirhlo.jit(lambda x: hnp.stack([x, x])[hnp.stack([x, x]) > 0]), "HLO0621"),
        (mlirhlo.jit(lambda x: hnp.unique_values(x)), "HLO0621"),
        (mlirhlo.jit(lambda x: hnp.repeat(x, hnp.astype(x, "int64"))), "HLO0621"),
        (_use_leaked, "HLO0622"),
        (_change_outer, "HLO0622"),
        (mlirhlo.jit(lambda x: "text"), "HLO0623"),
        (lambda x: mlirhlo.jit(lambda y: y)("text"), "HLO0623"),
        (mlirhlo.jit(lambda x: hnp.cond(x > 0, lambda: x, lambda: 1)), "HLO0624"),
        (mlirhlo.jit(lambda x: hnp.fori_loop(0, 3, lambda i, s: s / 2, hnp.asarray(1))), "HLO0624"),
        (mlirhlo.jit(lambda x: hnp.while_loop(lambda s: s, lambda s: s, x)), "HLO0624"),
        (mlirhlo.jit(lambda x: hnp.scan(lambda c, y: (c, y), x, x)), "HLO0624"),
        (mlirhlo.jit(lambda x: hnp.bitwise_invert(x)), "HLO0625"),
        (lambda x: hnp.sin(hnp.asarray(True)), "HLO0625"),
        (lambda x: hnp.add(hnp.asarray([1], dtype="int8"), 300), "HLO0625"),
        (lambda x: hnp.add([1], 2), "HLO0625"),
        (lambda x: hnp.zeros(2) + hnp.zeros(3), "HLO0626"),
        (lambda x: hnp.sum(hnp.zeros(2), axis=1), "HLO0626"),
        (lambda x: hnp.reshape(hnp.zeros(4), (3, -1)), "HLO0626"),
        (lambda x: hnp.zeros(2)[2], "HLO0627"),
        (lambda x: hnp.zeros(2)[0, 0], "HLO0627"),
        (lambda x: hnp.zeros(2)["a"], "HLO0627"),
        (lambda x: hnp.zeros(2)[1.0], "HLO0627"),
    ],
)
def test_errors_are_at_the_users_line(function: Callable[[Any], Any], code: str) -> None:
    with pytest.raises(HloError) as caught:
        function(2.0)
    assert caught.value.code == code
    place = caught.value.diagnostics[0].place
    assert place is not None
    assert place.file == __file__
    assert place.source_line


def test_the_caret_is_under_the_expression() -> None:
    with pytest.raises(TypeError) as caught:
        mlirhlo.jit(_if)(1.0)
    text = str(caught.value).splitlines()
    assert text[1] == "    return x if x > 0 else -x"
    assert text[2] == "                ^~~~~"
    assert "where(" in text[3]
