"""Rules of ATen's operations against numpy, and gradients against what they belong to; without PyTorch."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirhlo
from mlirhlo.diagnostics import HloError
from mlirhlo.integrations.torch.aten import RULES, Call
from mlirhlo.numpy import dtypes as dt

CALL = Call([dt.float64], dt.float64)


def run(name: str, *args: Any, call: Call = CALL, **kwargs: Any) -> Any:
    """The results of a rule: arrays among the arguments are traced, all else is as it stands."""
    arrays = [a for a in args if isinstance(a, np.ndarray)]

    def function(*traced: Any) -> Any:
        waiting = iter(traced)
        given = [next(waiting) if isinstance(a, np.ndarray) else a for a in args]
        result = RULES[name](call, *given, **kwargs)
        return [r for r in result if r is not None] if isinstance(result, list) else result

    found = mlirhlo.jit(function)(*arrays)
    parts = found if isinstance(found, (list, tuple)) else [found]
    values = [np.asarray(part) for part in parts]
    return values if isinstance(found, (list, tuple)) else values[0]


def random(rng: np.random.Generator, *shape: int) -> np.ndarray[Any, Any]:
    return rng.standard_normal(shape)


def inner(a: Any, b: Any) -> float:
    return float((a * b).sum())


@pytest.mark.parametrize("seed", range(6))
def test_gradients_of_convolutions_are_their_adjoints(seed: int) -> None:
    """A convolution is linear in each operand: `<conv(x, w), g> = <x, dx> = <w, dw>`, however it is strided."""
    rng = np.random.default_rng(seed)
    rank, groups = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    transposed = bool(seed % 2)
    stride, padding, dilation, kernel = (
        [int(n) for n in rng.integers(low, high, rank)]
        for low, high in ((1, 3), (0, 3), (1, 3), (1, 4))
    )
    extra = [
        int(rng.integers(0, max(s, d))) if transposed else 0
        for s, d in zip(stride, dilation, strict=True)
    ]
    inside, outside = 2 * groups, 3 * groups
    sizes = [2 * p + d * (k - 1) + 5 for p, d, k in zip(padding, dilation, kernel, strict=True)]
    x = random(rng, 2, inside, *sizes)
    first, second = (inside, outside // groups) if transposed else (outside, inside // groups)
    w = random(rng, first, second, *kernel)
    settings = (stride, padding, dilation, transposed, extra, groups)
    y = run("convolution.default", x, w, None, *settings)
    assert y.shape[:2] == (2, outside)
    g = random(rng, *y.shape)
    dx, dw, db = run(
        "convolution_backward.default", g, x, w, [outside], *settings, [True, True, True]
    )
    assert dx.shape == x.shape
    assert dw.shape == w.shape
    np.testing.assert_allclose([inner(x, dx), inner(w, dw)], inner(y, g), rtol=1e-9)
    np.testing.assert_allclose(db, g.sum(axis=(0, *range(2, g.ndim))), rtol=1e-9)


@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize("include", [False, True])
def test_gradients_of_averages_are_their_adjoints(ceil: bool, include: bool) -> None:
    rng = np.random.default_rng(3)
    x = random(rng, 2, 3, 7, 9)
    settings = ([3, 2], [2, 3], [1, 0], ceil, include, None)
    y = run("avg_pool2d.default", x, *settings)
    g = random(rng, *y.shape)
    dx = run("avg_pool2d_backward.default", g, x, *settings)
    np.testing.assert_allclose(inner(x, dx), inner(y, g), rtol=1e-9)
    ones = run("avg_pool2d.default", np.ones_like(x), *settings)
    assert ones.max() <= 1
    assert include or (ones == 1).all()


@pytest.mark.parametrize(
    "kernel, stride, padding, dilation", [(3, 2, 1, 1), (2, 2, 0, 1), (2, 1, 1, 3)]
)
def test_maxima_of_windows_and_where_they_are(
    kernel: int, stride: int, padding: int, dilation: int
) -> None:
    rng = np.random.default_rng(4)
    x = rng.integers(-4, 4, (2, 2, 8, 7)).astype(float)  # some are equal
    x[0, 0, 3, 3] = np.nan
    settings = ([kernel] * 2, [stride] * 2, [padding] * 2, [dilation] * 2, False)
    y, at = run("max_pool2d_with_indices.default", x, *settings)
    padded = np.pad(
        x, [(0, 0), (0, 0), (padding, padding), (padding, padding)], constant_values=-np.inf
    )
    for i, j in itertools.product(*map(range, y.shape[2:])):
        window = padded[:, :, i * stride :, j * stride :][
            :, :, : dilation * kernel : dilation, : dilation * kernel : dilation
        ]
        np.testing.assert_array_equal(y[:, :, i, j], window.max(axis=(2, 3)))
    taken = np.take_along_axis(x.reshape(2, 2, -1), at.reshape(2, 2, -1), axis=2).reshape(y.shape)
    np.testing.assert_array_equal(taken, y)
    g = random(rng, *y.shape)
    dx = run("max_pool2d_with_indices_backward.default", g, x, *settings, at)
    expected = np.zeros((4, 56))
    for row in range(4):
        np.add.at(expected[row], at.reshape(4, -1)[row], g.reshape(4, -1)[row])
    np.testing.assert_allclose(dx.reshape(4, 56), expected, rtol=1e-9)


RESAMPLED: dict[str, Callable[[Any, list[int]], tuple[list[Any], list[Any]]]] = {
    "upsample_nearest2d": lambda x, n: ([x, n], [n, list(x.shape)]),
    "upsample_bilinear2d": lambda x, n: ([x, n, False], [n, list(x.shape), False]),
    "_adaptive_avg_pool2d": lambda x, n: ([x, n], [x]),
}


@pytest.mark.parametrize("name", RESAMPLED)
@pytest.mark.parametrize("size", [[8, 6], [3, 7], [1, 1]])
def test_gradients_of_resampling_are_their_adjoints(name: str, size: list[int]) -> None:
    rng = np.random.default_rng(5)
    x = random(rng, 1, 2, 4, 3)
    forward, backward = RESAMPLED[name](x, size)
    y = run(f"{name}.default", *forward)
    assert y.shape == (1, 2, *size)
    g = random(rng, *y.shape)
    dx = run(f"{name}_backward.default", g, *backward)
    np.testing.assert_allclose(inner(x, dx), inner(y, g), rtol=1e-9)
    ones = run(f"{name}.default", np.ones_like(x), *forward[1:])
    np.testing.assert_allclose(ones, 1, rtol=1e-12)


@pytest.mark.parametrize("mode", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_scattered_folds(mode: str, include_self: bool) -> None:
    rng = np.random.default_rng(6)
    x, source = random(rng, 5, 3), random(rng, 6, 3)
    index = rng.integers(0, 4, (6, 3))
    found = run("scatter_reduce.two", x, 0, index, source, mode, include_self=include_self)
    fold = {"sum": np.sum, "mean": np.mean, "prod": np.prod, "amax": np.max, "amin": np.min}[mode]
    for i, j in itertools.product(range(5), range(3)):
        parts = source[index[:, j] == i, j]
        expected = fold([*([x[i, j]] if include_self else []), *parts]) if len(parts) else x[i, j]
        np.testing.assert_allclose(found[i, j], expected, rtol=1e-12)


def test_advanced_indices_read_and_write_as_numpy() -> None:
    rng = np.random.default_rng(7)
    x = random(rng, 4, 5, 6)
    i, j = rng.integers(-4, 4, (3, 1)), rng.integers(-5, 5, (1, 2))
    for parts in ([i, None, j], [i, j], [None, i, j], [None, None, j]):
        key = tuple(slice(None) if p is None else p for p in parts)
        arrays = [p for p in parts if p is not None]

        def read(x: Any, *given: Any, parts: Any = parts) -> Any:
            waiting = iter(given)
            return RULES["index.Tensor"](
                CALL, x, [None if p is None else next(waiting) for p in parts]
            )

        np.testing.assert_array_equal(np.asarray(mlirhlo.jit(read)(x, *arrays)), x[key])
        values = random(rng, *x[key].shape)

        def write(x: Any, values: Any, *given: Any, parts: Any = parts) -> Any:
            waiting = iter(given)
            indices = [None if p is None else next(waiting) for p in parts]
            return RULES["index_put.default"](CALL, x, indices, values, True)

        expected = x.copy()
        np.add.at(expected, key, values)
        found = np.asarray(mlirhlo.jit(write)(x, values, *arrays))
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_masks_write_one_value_and_nothing_else() -> None:
    x, mask = np.arange(6.0).reshape(2, 3), np.array([[True, False, True], [False, True, False]])

    def write(x: Any, mask: Any, values: Any) -> Any:
        return RULES["index_put.default"](CALL, x, [mask], values)

    found = np.asarray(mlirhlo.jit(write)(x, mask, np.array([9.0])))
    np.testing.assert_array_equal(found, np.where(mask, 9.0, x))
    with pytest.raises(HloError, match="HLO0612"):
        mlirhlo.jit(write)(x, mask, np.ones(3))
    with pytest.raises(HloError, match="HLO0612"):
        mlirhlo.jit(lambda x, mask: RULES["index.Tensor"](CALL, x, [mask]))(x, mask)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_views_of_memory(order: tuple[int, int]) -> None:
    stored = np.arange(24.0)
    x = stored.reshape(4, 6).transpose(order)
    call = Call([dt.float64], dt.float64, tuple(n // 8 for n in x.strides))
    found = run("as_strided.default", np.ascontiguousarray(x), [3, 4], [2, 5], 1, call=call)
    expected = np.lib.stride_tricks.as_strided(stored[1:], (3, 4), (16, 40))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("step", [1, 2, 3])
def test_slices_written(step: int) -> None:
    x, expected = np.arange(20.0).reshape(4, 5), np.arange(20.0).reshape(4, 5)
    source = -np.ones_like(x[:, 1:5:step])
    expected[:, 1:5:step] = source
    found = run("slice_scatter.default", x, source, 1, 1, 5, step)
    np.testing.assert_array_equal(found, expected)
