"""Creation, manipulation, indexing, folding, searching and sorting: as numpy, eager and under jit."""

# A traced function is written out even where it is one call.
# ruff: noqa: PLW0108
from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hn

import mlirhlo
import mlirhlo.numpy as hnp
from mlirhlo.analysis.verifier import verify_module

DTYPES = [
    np.dtype(name)
    for name in (
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float32", "float64", "complex64", "complex128",
    )
]  # fmt: skip
REAL = [d for d in DTYPES if d.kind != "c"]
SHAPES = hn.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
CASES = settings(max_examples=40, deadline=None)


def elements(dtype: np.dtype[Any]) -> st.SearchStrategy[Any]:
    """Small values, so that sums are exact."""
    if dtype.kind == "b":
        return st.booleans()
    if dtype.kind == "u":
        return st.integers(0, 5)
    if dtype.kind == "i":
        return st.integers(-4, 5)
    halves = st.integers(-8, 8).map(lambda n: n / 2)
    return st.builds(complex, halves, halves) if dtype.kind == "c" else halves


def arrays(dtypes: list[np.dtype[Any]] = DTYPES, shapes: Any = SHAPES) -> st.SearchStrategy[Any]:
    return st.sampled_from(dtypes).flatmap(lambda d: hn.arrays(d, shapes, elements=elements(d)))


def agree(function: Callable[..., Any], want: Any, *arguments: Any) -> None:
    """The function gives `want` for the arguments, outside of jit and inside, as a valid module."""
    jitted = mlirhlo.jit(function, platform="interpreter")
    assert not verify_module(jitted.lower(*arguments).op)
    for got in (function(*map(hnp.asarray, arguments)), jitted(*arguments)):
        pairs = zip(got, want, strict=True) if isinstance(want, (tuple, list)) else [(got, want)]
        for one, other in pairs:
            one, other = np.asarray(one), np.asarray(other)
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            if other.dtype.kind in "fc":
                eps = float(np.finfo(other.dtype).eps)
                np.testing.assert_allclose(one, other, rtol=64 * eps, atol=64 * eps)
            else:
                np.testing.assert_array_equal(one, other)


@st.composite
def with_axis(draw: Any, dtypes: list[np.dtype[Any]] = DTYPES) -> Any:
    x = draw(arrays(dtypes, hn.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4)))
    return x, draw(st.integers(-x.ndim, x.ndim - 1))


@st.composite
def with_axes(draw: Any, dtypes: list[np.dtype[Any]] = DTYPES) -> Any:
    x = draw(arrays(dtypes))
    axes = draw(st.none() | st.sets(st.sampled_from(range(x.ndim))).map(tuple)) if x.ndim else None
    return x, axes, draw(st.booleans())


# ------------------------------------------------------------------ manipulation


@CASES
@given(with_axis(), st.integers(-5, 5))
def test_roll_flip_repeat(case: Any, shift: int) -> None:
    x, axis = case
    agree(lambda x: hnp.roll(x, shift, axis=axis), np.roll(x, shift, axis), x)
    agree(lambda x: hnp.roll(x, shift), np.roll(x, shift), x)
    agree(lambda x: hnp.flip(x, axis=axis), np.flip(x, axis), x)
    agree(lambda x: hnp.flip(x), np.flip(x), x)
    agree(lambda x: hnp.repeat(x, abs(shift), axis=axis), np.repeat(x, abs(shift), axis), x)
    counts = np.arange(x.shape[axis]) % 3
    agree(lambda x: hnp.repeat(x, counts, axis=axis), np.repeat(x, counts, axis), x)


@CASES
@given(with_axis(), st.data())
def test_concat_stack_unstack(case: Any, data: Any) -> None:
    x, axis = case
    y = x[..., :1].astype(data.draw(st.sampled_from(DTYPES))) if x.dtype.kind != "c" else x[..., :1]
    place = x.ndim - 1
    want = np.concat([x, y], axis=place)
    agree(lambda x, y: hnp.concat([x, y], axis=place), want, x, y)
    agree(lambda x, y: hnp.concat([x, y], axis=None), np.concat([x, y], axis=None), x, y)
    agree(lambda x: hnp.stack([x, x, x], axis=axis), np.stack([x, x, x], axis=axis), x)
    agree(lambda x: list(hnp.unstack(x, axis=axis)), list(np.unstack(x, axis=axis)), x)


@CASES
@given(arrays(), st.data())
def test_shapes(x: Any, data: Any) -> None:
    order = data.draw(st.permutations(range(x.ndim)))
    agree(lambda x: hnp.permute_dims(x, tuple(order)), np.permute_dims(x, order), x)
    if x.ndim:
        agree(lambda x: hnp.moveaxis(x, 0, -1), np.moveaxis(x, 0, -1), x)
        agree(lambda x: hnp.moveaxis(x, tuple(order), tuple(range(x.ndim))),
              np.moveaxis(x, order, range(x.ndim)), x)  # fmt: skip
    place = data.draw(st.integers(-x.ndim - 1, x.ndim))
    agree(lambda x: hnp.expand_dims(x, axis=place), np.expand_dims(x, place), x)
    agree(lambda x: hnp.squeeze(hnp.expand_dims(x, axis=place), place), x, x)
    agree(lambda x: hnp.reshape(x, (x.size,)), x.reshape(x.size), x)
    wide = (2, 3, *x.shape)
    agree(lambda x: hnp.broadcast_to(x, wide), np.broadcast_to(x, wide), x)
    times = tuple(data.draw(st.lists(st.integers(0, 3), max_size=3)))
    agree(lambda x: hnp.tile(x, times), np.tile(x, times), x)


@CASES
@given(arrays(), st.sampled_from(DTYPES))
def test_astype(x: Any, dtype: Any) -> None:
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        with pytest.raises(mlirhlo.diagnostics.HloError, match="HLO0625"):
            hnp.astype(hnp.asarray(x), dtype)
        with pytest.warns(np.exceptions.ComplexWarning):
            got = hnp.asarray(hnp.asarray(x), dtype=dtype)
        want = hnp.astype(hnp.asarray(x.real), dtype)
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want), strict=True)
        return
    if dtype.kind == "u":
        x = np.abs(x).astype(x.dtype) if x.dtype.kind != "b" else x
    agree(lambda x: hnp.astype(x, dtype), x.astype(dtype), x)


# ------------------------------------------------------------------ indexing


@st.composite
def basic_key(draw: Any, shape: tuple[int, ...]) -> Any:
    parts: list[Any] = []
    for size in shape[: draw(st.integers(0, len(shape)))]:
        if size and draw(st.booleans()):
            parts.append(draw(st.integers(-size, size - 1)))
        else:
            ends = st.none() | st.integers(-size - 2, size + 2)
            step = draw(st.none() | st.sampled_from([1, 2, 3, -1, -2]))
            parts.append(slice(draw(ends), draw(ends), step))
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), None)
    if draw(st.booleans()):
        used = sum(part is not None for part in parts)
        if used == len(shape) or draw(st.booleans()):
            parts.append(Ellipsis)
    return tuple(parts)


@settings(max_examples=150, deadline=None)
@given(arrays(), st.data())
def test_basic_indexing(x: Any, data: Any) -> None:
    key = data.draw(basic_key(x.shape))
    agree(lambda x: x[key], x[key], x)
    value = np.ones(x[key].shape, x.dtype)
    value.reshape(-1)[::2] = 0
    for filler in (value, np.ones((), x.dtype), 1):

        def put(x: Any, filler: Any = filler) -> Any:
            y = hnp.asarray(x, copy=True)
            y[key] = filler
            return y

        want = x.copy()
        want[key] = filler
        before = x.copy()
        agree(put, want, x)
        np.testing.assert_array_equal(x, before)


@st.composite
def advanced_key(draw: Any, shape: tuple[int, ...]) -> Any:
    parts: list[Any] = []
    common = draw(hn.array_shapes(min_dims=0, max_dims=2, min_side=1, max_side=3))
    for size in shape[: draw(st.integers(1, len(shape)))]:
        kind = draw(st.sampled_from(["array", "slice", "integer"]))
        if kind == "array":
            sides = draw(st.sampled_from([common, (1,) * len(common), ()]))
            parts.append(draw(hn.arrays(np.int64, sides, elements=st.integers(-size, size - 1))))
        elif kind == "slice":
            parts.append(slice(None, None, draw(st.sampled_from([1, 2, -1]))))
        else:
            parts.append(draw(st.integers(-size, size - 1)))
    return tuple(parts)


@settings(max_examples=150, deadline=None)
@given(arrays(shapes=hn.array_shapes(max_dims=4, max_side=4)), st.data())
def test_advanced_indexing(x: Any, data: Any) -> None:
    key = data.draw(advanced_key(x.shape))
    agree(lambda x: x[key], x[key], x)

    def put(x: Any) -> Any:
        y = hnp.asarray(x, copy=True)
        y[key] = 1
        return y

    want = x.copy()
    want[key] = 1
    agree(put, want, x)


@CASES
@given(arrays(shapes=hn.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)), st.data())
def test_masks(x: Any, data: Any) -> None:
    mask = data.draw(hn.arrays(np.bool_, x.shape))
    a, m = hnp.asarray(x), hnp.asarray(mask)
    np.testing.assert_array_equal(np.asarray(a[m]), x[mask])

    def put(x: Any, mask: Any) -> Any:
        y = hnp.asarray(x, copy=True)
        y[mask] = 1
        return y

    want = x.copy()
    want[mask] = 1
    agree(put, want, x, mask)
    if x.ndim:
        a[m] = hnp.asarray(x[mask][::-1])
        want = x.copy()
        want[mask] = x[mask][::-1]
        np.testing.assert_array_equal(np.asarray(a), want)


@CASES
@given(with_axis(), st.data())
def test_take(case: Any, data: Any) -> None:
    x, axis = case
    size = x.shape[axis]
    count = data.draw(st.integers(0, 4)) if size else 0
    places = np.array([data.draw(st.integers(-size, size - 1)) for _ in range(count)], np.int64)
    agree(lambda x, i: hnp.take(x, i, axis=axis), np.take(x, places, axis), x, places)
    if size:
        shape = list(x.shape)
        shape[axis] = 2
        along = data.draw(hn.arrays(np.int64, tuple(shape), elements=st.integers(-size, size - 1)))
        want = np.take_along_axis(x, along, axis)
        agree(lambda x, i: hnp.take_along_axis(x, i, axis=axis), want, x, along)


def test_masks_of_parts_and_those_that_do_not_fit() -> None:
    x = np.arange(24).reshape(2, 3, 4)
    a = hnp.asarray(x)
    rows, columns = np.array([True, False]), np.array([[True, False, True, False]] * 3)
    for key in (
        rows, (0, columns), (..., columns), (..., columns[0]), (rows, ..., 1), (rows, None, 2),
        np.zeros((2, 0), bool), np.array(True), np.array(False), (slice(None), [True, False, True]),
    ):  # fmt: skip
        np.testing.assert_array_equal(np.asarray(a[key]), x[key])
        if not isinstance(key, np.ndarray) or key.ndim:
            want, got = x.copy(), hnp.asarray(x, copy=True)
            want[key] = -1
            got[key] = -1
            np.testing.assert_array_equal(np.asarray(got), want)
    for wrong in (np.ones(3, bool), np.ones((2, 2), bool), np.ones((2, 3, 4, 1), bool)):
        with pytest.raises(IndexError, match="HLO0627"):
            a[wrong]


def test_a_traced_integer_indexes() -> None:
    x = np.arange(12.0).reshape(4, 3)

    def change(x: Any, i: Any) -> Any:
        y = hnp.asarray(x, copy=True)
        y[i] = x[i - 1] * 10
        return y

    want = x.copy()
    want[2] = x[1] * 10
    np.testing.assert_array_equal(np.asarray(mlirhlo.jit(change)(x, 2)), want)
    np.testing.assert_array_equal(np.asarray(mlirhlo.jit(lambda x, i: x[i])(x, -1)), x[-1])


# ------------------------------------------------------------------ folding

FOLDS = ("sum", "prod", "all", "any", "max", "min", "mean", "std", "var", "count_nonzero")


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("name", FOLDS)
@CASES
@given(with_axes())
def test_folds(name: str, case: Any) -> None:
    x, axes, keep = case
    if name in ("max", "min") and (x.size == 0 or x.dtype.kind in "bc"):
        return
    function = getattr(hnp, name)
    with np.errstate(all="ignore"):
        if name in ("mean", "std", "var"):
            if x.size == 0:
                return
            want = getattr(np, name)(x, axis=axes, keepdims=keep)
            if axes == ():
                want = np.asarray(want).astype(want.dtype)
        else:
            want = getattr(np, name)(x, axis=axes, keepdims=keep)
    want = np.asarray(want)
    agree(lambda x: function(x, axis=axes, keepdims=keep), want, x)


@CASES
@given(with_axis(), st.booleans())
def test_accumulations(case: Any, initial: bool) -> None:
    x, axis = case
    for name in ("cumulative_sum", "cumulative_prod"):
        want = getattr(np, name)(x, axis=axis, include_initial=initial)
        function = getattr(hnp, name)
        agree(lambda x, f=function: f(x, axis=axis, include_initial=initial), want, x)


@CASES
@given(with_axis([d for d in DTYPES if d.kind != "b"]), st.integers(0, 3))
def test_diff(case: Any, n: int) -> None:
    x, axis = case
    agree(lambda x: hnp.diff(x, axis=axis, n=n), np.diff(x, n, axis), x)
    if x.shape[axis]:
        first = np.take(x, [0], axis)
        want = np.diff(x, axis=axis, prepend=first, append=first)
        agree(lambda x, f: hnp.diff(x, axis=axis, prepend=f, append=f), want, x, first)


# ------------------------------------------------------------------ searching and sorting


def spiced(x: Any) -> Any:
    """Floats with NaN, infinities and both zeros among them."""
    if x.dtype.kind == "f" and x.size > 3:
        x.reshape(-1)[:4] = [np.nan, -0.0, np.inf, 0.0]
    return x


@CASES
@given(with_axis(REAL), st.booleans())
def test_sorting(case: Any, keep: bool) -> None:
    x, axis = case
    x = spiced(x)
    agree(lambda x: hnp.sort(x, axis=axis), np.sort(x, axis, stable=True), x)
    agree(lambda x: hnp.argsort(x, axis=axis), np.argsort(x, axis, stable=True), x)
    down = hnp.argsort(hnp.asarray(x), axis=axis, descending=True)
    sorted_down = hnp.sort(hnp.asarray(x), axis=axis, descending=True)
    np.testing.assert_array_equal(np.take_along_axis(x, np.asarray(down), axis), sorted_down)
    np.testing.assert_array_equal(np.flip(np.asarray(sorted_down), axis), np.sort(x, axis))
    if x.dtype.kind != "b" and x.shape[axis]:
        for name in ("argmax", "argmin"):
            want = np.asarray(getattr(np, name)(x, axis=axis, keepdims=keep))
            function = getattr(hnp, name)
            agree(lambda x, f=function: f(x, axis=axis, keepdims=keep), want, x)
            if x.size:
                want = np.asarray(getattr(np, name)(x, keepdims=keep))
                agree(lambda x, f=function: f(x, keepdims=keep), want, x)


@CASES
@given(
    arrays([d for d in REAL if d.kind != "b"], hn.array_shapes(max_dims=1, max_side=9)),
    st.sampled_from(["left", "right"]),
    st.data(),
)
def test_searchsorted(x: Any, side: Any, data: Any) -> None:
    x = np.sort(spiced(x))
    values = data.draw(hn.arrays(x.dtype, (2, 3), elements=elements(x.dtype)))
    want = np.searchsorted(x, values, side)
    agree(lambda x, v: hnp.searchsorted(x, v, side=side), want, x, values)
    mixed = np.random.default_rng(0).permutation(x)
    sorter = np.argsort(mixed)
    agree(lambda x, v, s: hnp.searchsorted(x, v, side=side, sorter=s), want, mixed, values, sorter)


@CASES
@given(arrays())
def test_sets_and_nonzero(x: Any) -> None:
    for name in ("unique_all", "unique_counts", "unique_inverse"):
        got, want = getattr(hnp, name)(hnp.asarray(x)), getattr(np, name)(x)
        assert got._fields == want._fields
        for one, other in zip(got, want, strict=True):
            np.testing.assert_array_equal(np.asarray(one), other, strict=True)
    np.testing.assert_array_equal(np.asarray(hnp.unique_values(hnp.asarray(x))), np.unique(x))
    if x.ndim:
        for one, other in zip(hnp.nonzero(hnp.asarray(x)), np.nonzero(x), strict=True):
            np.testing.assert_array_equal(np.asarray(one), other)


# ------------------------------------------------------------------ creation


@CASES
@given(st.integers(-9, 9), st.integers(-9, 9), st.sampled_from([1, 2, 3, -1, -2]))
def test_arange(start: int, stop: int, step: int) -> None:
    np.testing.assert_array_equal(
        np.asarray(hnp.arange(start, stop, step)), np.arange(start, stop, step)
    )
    for scale in (0.5, 0.1):
        got, want = hnp.arange(start * scale, stop, step), np.arange(start * scale, stop, step)
        assert got.shape == want.shape
        np.testing.assert_allclose(np.asarray(got), want)
    for dtype in (np.dtype("int8"), np.dtype("float32")):
        got, want = (
            hnp.arange(start, stop, step, dtype=dtype),
            np.arange(start, stop, step, dtype=cast(Any, dtype)),
        )
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(np.asarray(got), want)


@CASES
@given(st.integers(-5, 5), st.integers(-5, 5), st.integers(0, 9), st.booleans())
def test_linspace(start: int, stop: int, count: int, endpoint: bool) -> None:
    for dtype in ("float32", "float64", "complex128", None):
        got = hnp.linspace(start, stop, count, dtype=dtype, endpoint=endpoint)
        want = np.linspace(start, stop, count, dtype=dtype, endpoint=endpoint)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6, atol=1e-6)
    if count > 1 and endpoint:
        assert float(hnp.linspace(start, stop, count)[-1]) == stop


def test_creation() -> None:
    for rows, columns, k in itertools.product((0, 2, 3), (0, 2, 4), (-2, 0, 1)):
        np.testing.assert_array_equal(hnp.eye(rows, columns, k=k), np.eye(rows, columns, k=k))
        x = np.arange(rows * columns * 2).reshape(2, rows, columns)
        agree(lambda x, k=k: hnp.tril(x, k=k), np.tril(x, k), x)
        agree(lambda x, k=k: hnp.triu(x, k=k), np.triu(x, k), x)
    for dtype in DTYPES:
        for name in ("zeros", "ones", "empty"):
            got = getattr(hnp, name)((2, 3), dtype=dtype)
            assert (got.dtype, got.shape) == (dtype, (2, 3))
        got = hnp.full((2,), 1, dtype=dtype)
        np.testing.assert_array_equal(np.asarray(got), np.full((2,), 1, dtype))
        assert hnp.full_like(got, 1).dtype == dtype
    for indexing in ("xy", "ij"):
        a, b, c = np.arange(2), np.arange(3), np.arange(4)
        agree(
            lambda a, b, c, i=indexing: list(hnp.meshgrid(a, b, c, indexing=i)),
            list(np.meshgrid(a, b, c, indexing=indexing)),
            a, b, c,
        )  # fmt: skip


def test_asarray() -> None:
    for given_ in (True, 1, 1.5, 2j, [1, 2], [[1.0, 2], [3, 4]], [], np.arange(3), range(4)):
        got, want = hnp.asarray(given_), np.asarray(given_)
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(np.asarray(got), want)
    source = np.arange(3)
    kept = hnp.asarray(source)
    source[0] = 9
    assert kept.tolist() == [0, 1, 2]
    assert np.from_dlpack(kept).tolist() == [0, 1, 2]
    fixed = hnp.broadcast_to(hnp.asarray(1.0), (3,))
    for version in (None, (0, 0), (1, 0)):  # before 1.0 nobody can be told read-only
        assert fixed.__dlpack__(max_version=version) is not None
    assert hnp.from_dlpack(np.arange(3.0)).tolist() == [0, 1, 2]
    stacked = mlirhlo.jit(lambda a, b: hnp.asarray([[a, b], [b, a]]))(1.0, 2.0)
    assert stacked.tolist() == [[1, 2], [2, 1]]
    with pytest.raises(ValueError, match="HLO0625"):
        hnp.asarray([1, 2], copy=False)
    with pytest.raises(TypeError, match="HLO0625"):
        hnp.asarray("text")


# ------------------------------------------------------------------ types


def test_types() -> None:
    for a, b in itertools.product(DTYPES, DTYPES):
        assert hnp.result_type(a, b) == np.result_type(a, b)
    assert hnp.result_type(hnp.ones(1, dtype="float32"), 1.0) == np.float32
    assert hnp.can_cast("int8", "int16")
    assert not hnp.can_cast("int16", "int8")
    assert not hnp.can_cast("int8", "float64")
    assert hnp.can_cast("float32", "complex64")
    assert hnp.finfo(hnp.complex64).eps == np.finfo("float32").eps
    assert hnp.iinfo("uint8").max == 255
    for kind in ("bool", "signed integer", "unsigned integer", "integral", "real floating",
                 "complex floating", "numeric"):  # fmt: skip
        for dtype in DTYPES:
            assert hnp.isdtype(dtype, kind) == np.isdtype(dtype, kind)
    assert hnp.isdtype(hnp.int8, ("bool", hnp.int8))
    info = hnp.__array_namespace_info__()
    assert info.default_dtypes()["real floating"] == hnp.float64
    assert info.dtypes(kind="real floating") == {"float32": hnp.float32, "float64": hnp.float64}
