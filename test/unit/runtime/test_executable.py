"""Calls of compiled modules: the built-in function, the Python function behind it, and their borders."""

from __future__ import annotations

import gc
import importlib
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlirhlo
from mlirhlo.diagnostics import HloError
from mlirhlo.runtime import calls
from mlirhlo.runtime.executable import Executable

pytest.importorskip("llvmlite")

ADD = "f32[2,3] add(f32[2,3] x, f32[2,3] y)"

TWO = """HloModule two
ENTRY e {
  x = f32[2,3] parameter(0)
  n = s32[] parameter(1)
  a = f32[2,3] add(x, x)
  m = s32[] negate(n)
  ROOT r = (f32[2,3], s32[]) tuple(a, m)
}
"""

CHAIN = """HloModule chain
ENTRY e {
  x = f32[4000] parameter(0)
  a = f32[4000] add(x, x)
  r = f32[4000] reverse(a), dimensions={0}
  b = f32[4000] multiply(r, a)
  ROOT s = f32[4000] reverse(b), dimensions={0}
}
"""


@pytest.fixture(autouse=True)
def _no_cache(  # pyright: ignore[reportUnusedFunction]
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLIRHLO_CACHE_DIR", "off")


@pytest.fixture(params=["built-in", "ctypes"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With the built-in function, and as on a Python that has another build."""
    if request.param == "ctypes":
        monkeypatch.setattr(calls, "_caller", lambda: None)
    return str(request.param)


def compiled(text: str) -> Executable:
    return mlirhlo.compile(mlirhlo.parse(text))


def is_built_in(executable: Executable) -> bool:
    return type(executable.__call__) is type(len)


X = np.arange(6, dtype="f4").reshape(2, 3)


def test_this_python_has_the_built_in_function() -> None:
    """CPython with its lock, and NumPy 2: what the tests run on."""
    assert calls._caller() is not None  # pyright: ignore[reportPrivateUsage]
    assert is_built_in(compiled(ADD))


@pytest.mark.parametrize(
    "argument",
    [
        X,
        X.astype("f8"),
        X.astype(">f4"),
        np.asfortranarray(X),
        np.repeat(X, 2, 1)[:, ::2],
        X.tolist(),
        np.frombuffer(b"\0" + X.tobytes(), "u1")[1:].view("f4").reshape(2, 3),
    ],
    ids=["fits", "f64", "big-endian", "column-major", "strided", "list", "misaligned"],
)
def test_whatever_is_given(argument: Any, way: str) -> None:
    executable = compiled(ADD)
    assert is_built_in(executable) == (way == "built-in")
    np.testing.assert_array_equal(executable(argument, X), X + X)
    np.testing.assert_array_equal(executable(X, argument), X + X)
    out = np.zeros_like(X)
    assert executable(X, argument, out=out) is out
    np.testing.assert_array_equal(out, X + X)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X,), "expects 2 arguments, got 1"),
        ((X, X, X), "expects 2 arguments, got 3"),
        ((X, X.T), r"parameter 1: expects f32\[2,3\]"),
        ((X, X[None]), r"parameter 1: expects f32\[2,3\]"),
        ((X, X.astype("i4")), "expects elements of f32"),
        ((X, "x"), "cannot make an array"),
    ],
)
def test_what_does_not_fit(arguments: tuple[Any, ...], message: str, way: str) -> None:
    with pytest.raises(HloError, match=message) as caught:
        compiled(ADD)(*arguments)
    assert caught.value.code == "HLO0303"


SCALED = """HloModule scaled, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY e {
  x = f32[4000] parameter(0)
  s = f32[] parameter(1)
  b = f32[4000] broadcast(s), dimensions={}
  ROOT r = f32[4000] multiply(x, b)
}
"""


@pytest.mark.parametrize(
    "number",
    [1.5, 3, True, np.float32(1.5), np.float64(0.1), np.float64(1e300), np.float16(2), 2**30],
    ids=repr,
)
def test_numbers_beside_arrays_copy_no_array(number: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A number becomes an array; all else goes to machine code as it is, `out` and what lies over it too."""
    executable = compiled(SCALED)

    def run(*_: object) -> None:
        raise AssertionError("arrays are converted")

    monkeypatch.setattr("mlirhlo.runtime.arguments.GeneralCall.run", run)
    x = np.arange(4000, dtype="f4")
    with np.errstate(all="ignore"):
        expected = x * np.asarray(number).astype("f4")
        np.testing.assert_array_equal(executable(x, number), expected)
        assert executable(x, number, out=x) is x
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("s8[3] negate(s8[3] x)", [1, -2, 3]),
        ("bf16[2,2] add(bf16[2,2] x, x)", [[1, 2.5], [3, 4]]),
        ("pred[2] not(pred[2] x)", [True, False]),
        ("c64[1] negate(c64[1] x)", [1 + 2j]),
    ],
)
def test_lists_of_any_type(text: str, values: Any, way: str) -> None:
    executable = compiled(text)
    dtype = executable(values).dtype
    np.testing.assert_array_equal(executable(values), executable(np.asarray(values, dtype)))


@pytest.mark.parametrize(
    ("text", "argument", "message"),
    [
        ("s8[] negate(s8[] x)", np.int64(1000), "do not fit s8"),
        ("s32[] negate(s32[] x)", np.float32(1), "expects elements of s32"),
        ("s8[] negate(s8[] x)", 2**70, "cannot make an array of s8"),
        ("f32[2] negate(f32[2] x)", [1.0], r"expects f32\[2\], got f32\[1\]"),
        ("f32[2] negate(f32[2] x)", [[1.0], 2.0], "cannot make an array"),
    ],
)
def test_numbers_that_do_not_fit(text: str, argument: Any, message: str, way: str) -> None:
    with pytest.raises(HloError, match=message) as caught:
        compiled(text)(argument)
    assert caught.value.code == "HLO0303"


def read_only() -> np.ndarray[Any, Any]:
    array = X.copy()
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (X.astype("f8"), r"out 0: expects an array for f32\[2,3\], got float64\[2,3\]"),
        (X.T, r"got float32\[3,2\]"),
        (read_only(), "must not be written"),
        ([1.0], "got a float"),
        ((X, X), "expects 1 arrays, got 2"),
    ],
)
def test_results_that_do_not_fit(out: Any, message: str, way: str) -> None:
    with pytest.raises(HloError, match=message) as caught:
        compiled(ADD)(X, X, out=out)
    assert caught.value.code == "HLO0303"


def test_unknown_names_are_pythons_to_refuse(way: str) -> None:
    with pytest.raises(TypeError, match="other"):
        compiled(ADD)(X, X, other=1)  # pyright: ignore[reportCallIssue]


def test_several_results(way: str) -> None:
    executable = compiled(TWO)
    n = np.array(5, "i4")
    for number in (n, 5, np.int32(5)):
        doubled, negated = executable(X, number)
        np.testing.assert_array_equal(doubled, X + X)
        assert negated.shape == ()
        assert negated == -5
        out = (np.zeros_like(X), np.zeros((), "i4"))
        assert executable(X, number, out=out) is out
        np.testing.assert_array_equal(out[0], X + X)
        assert out[1] == -5


def test_results_over_arguments(way: str) -> None:
    """Kernels may read after they wrote, so that such results are made elsewhere and copied."""
    executable = compiled(CHAIN)
    memory = np.arange(8000, dtype="f4")
    for start in (0, 1, 3999, 4000):
        x = memory[:4000].copy()
        expected = executable(x)
        work = memory.copy()
        out = work[start : start + 4000]
        executable(work[:4000], out=out)
        np.testing.assert_array_equal(out, expected)
    pair = compiled(TWO.replace("s32[]", "f32[2,3]"))
    x = X.copy()
    with_itself = (x, np.zeros_like(x))
    pair(x, X, out=with_itself)
    np.testing.assert_array_equal(with_itself, [X + X, -X])


def test_dlpack_is_taken_by_pointer() -> None:
    class Foreign:
        def __dlpack__(self, **options: Any) -> Any:
            return X.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return X.__dlpack_device__()

    np.testing.assert_array_equal(compiled(ADD)(Foreign(), Foreign()), X + X)


def test_other_layouts_and_nested_tuples() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[2,3]{0,1} parameter(0)
  a = f32[2,3]{0,1} add(x, x)
  t = (f32[2,3]{0,1}) tuple(x)
  ROOT r = ((f32[2,3]{0,1}), f32[2,3]{0,1}) tuple(t, a)
}
"""
    executable = compiled(text)
    (same,), doubled = executable(X)
    np.testing.assert_array_equal(same, X)
    np.testing.assert_array_equal(doubled, X + X)
    out = ((np.zeros_like(X),), np.zeros_like(X))
    assert executable(X, out=out) is out
    np.testing.assert_array_equal(out[1], X + X)


def test_other_layouts_are_called_directly() -> None:
    """Arrays whose strides are the layout's are taken, made and written as they are."""
    executable = compiled("""
ENTRY e {
  x = f32[3,1,5]{0,2,1} parameter(0)
  t = f32[5,3,1]{1,0,2} transpose(x), dimensions={2,0,1}
  y = f32[3,1,5]{0,1,2} negate(x)
  ROOT r = (f32[5,3,1]{1,0,2}, f32[3,1,5]{0,1,2}) tuple(t, y)
}
""")
    x = np.arange(15, dtype="f4").reshape(5, 3).T[:, None]
    out = (np.zeros((5, 3, 1), "f4"), np.zeros((1, 5, 3), "f4").transpose(2, 0, 1))
    for argument, given in ((x, None), (x.copy(), None), (x, out)):
        results = executable(argument) if given is None else executable(argument, out=given)
        np.testing.assert_array_equal(results[0], x.transpose(2, 0, 1))
        np.testing.assert_array_equal(results[1], -x)
    results = executable(x)
    if calls._caller() is not None:  # pyright: ignore[reportPrivateUsage]
        assert all(r.flags.owndata and r.flags.writeable for r in results)
        assert [r.strides for r in results] == [(12, 4, 60), (4, 12, 12)]


def test_arrays_without_elements() -> None:
    empty = np.zeros((0, 3), "f4")
    assert compiled(ADD.replace("2,3", "0,3"))(empty, empty).shape == (0, 3)


def test_nothing_leaks() -> None:
    executable = compiled(TWO)
    n, dtype = np.array(5, "i4"), np.dtype("f4")
    out = (np.zeros_like(X), np.zeros((), "i4"))
    for arguments in ((X, n), (X, 5)):
        executable(*arguments)
        executable(*arguments, out=out)
    before = [sys.getrefcount(o) for o in (X, n, dtype, out, *out)]
    for _ in range(1000):
        executable(X, n)
        executable(X, n, out=out)
        executable(X, 5)
    after = [sys.getrefcount(o) for o in (X, n, dtype, out, *out)]
    assert max(abs(a - b) for a, b in zip(before, after, strict=True)) < 50


def test_the_function_outlives_the_executable() -> None:
    function = compiled(ADD).__call__
    gc.collect()
    np.testing.assert_array_equal(function(X, X), X + X)


def test_threads_have_arenas_of_their_own(way: str) -> None:
    executable = compiled(CHAIN)
    assert executable.temp_bytes
    wrong: list[int] = []

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).normal(size=4000).astype("f4")
        expected = (x + x) * (x + x)[::-1]
        for _ in range(200):
            if not np.array_equal(executable(x), expected):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_big_arenas_are_recycled() -> None:
    text = CHAIN.replace("4000", str(3 << 20))
    executable = compiled(text)
    x = np.ones(3 << 20, "f4")
    for _ in range(3):
        assert (executable(x) == 4).all()
    assert executable.temp_bytes >= 12 << 20


def test_large_results_lie_in_recycled_memory() -> None:
    executable = compiled(
        "ENTRY e { x = f32[1048576] parameter(0) ROOT y = f32[1048576] negate(x) }"
    )
    x = np.arange(1 << 20, dtype=np.float32)
    first = executable(x)
    address = first.ctypes.data
    kept = first[5:9]
    del first
    other = executable(x)
    assert other.ctypes.data != address  # a view keeps it
    np.testing.assert_array_equal(kept, -x[5:9])
    del kept
    again = executable(x)
    np.testing.assert_array_equal(again, -x)
    assert again.ctypes.data % 64 == 0
    if calls._caller() is not None:  # pyright: ignore[reportPrivateUsage]
        assert again.ctypes.data == address
        assert again.base is None
        again.resize(1 << 21)  # NumPy asks for more of the same memory
        np.testing.assert_array_equal(again[: 1 << 20], -x)
        assert not again[1 << 20 :].any()
    # Arrays of others are not touched by it.
    assert np.empty(1 << 20, np.float32).flags.owndata


@pytest.mark.parametrize("count", [1024, 1025, 5000, 40_000, 200_000, 300_000])
def test_results_of_a_page_lie_at_pages(count: int) -> None:
    """Through the fast call and the other, however many are alive; freed ones come back."""
    executable = compiled(f"ENTRY e {{ x = s32[{count}] parameter(0) ROOT y = negate(x) }}")
    x = np.arange(count, dtype=np.int32)
    slow = executable([*map(int, x)])
    results = [slow, *(executable(x) for _ in range(20))]
    assert len({r.ctypes.data for r in results}) == len(results)
    for result in results:
        np.testing.assert_array_equal(result, -x)
        assert result.flags.owndata
        assert result.flags.writeable
        if sys.platform == "linux" and (
            result is slow or calls._caller() is not None  # pyright: ignore[reportPrivateUsage]
        ):
            assert result.ctypes.data % 4096 == 0
    # Arrays of others are not touched by it.
    handler_of = importlib.import_module("numpy._core.multiarray").get_handler_name
    assert handler_of(np.empty(count, np.int32)) == "default_allocator"


def test_results_may_outlive_everything() -> None:
    """The memory's code is there when the interpreter frees its last arrays."""
    code = (
        "import builtins, numpy, mlirhlo\n"
        "f = mlirhlo.compile(mlirhlo.parse('f32[1048576] negate(f32[1048576] x)'))\n"
        "builtins.last = [f(numpy.ones(1 << 20, 'f4'))]\n"
        "builtins.last.append(builtins.last)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
