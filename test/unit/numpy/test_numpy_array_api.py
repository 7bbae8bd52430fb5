"""The namespace as strangers use it: hypothesis' strategies for any array API library."""

from __future__ import annotations

import inspect
import warnings
from typing import Any, cast

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.errors import HypothesisWarning
from hypothesis.extra.array_api import make_strategies_namespace

import mlirhlo
import mlirhlo.numpy as hnp

with warnings.catch_warnings():
    warnings.simplefilter("ignore", HypothesisWarning)
    xps: Any = make_strategies_namespace(cast(Any, hnp), api_version="2024.12")

NAMES = """
abs acos acosh add all any arange argmax argmin argsort asarray asin asinh astype atan atan2 atanh
bitwise_and bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor bool
broadcast_arrays broadcast_to can_cast ceil clip complex128 complex64 concat conj copysign cos cosh
count_nonzero cumulative_prod cumulative_sum diff divide e empty empty_like equal exp expand_dims expm1
eye finfo flip float32 float64 floor floor_divide from_dlpack full full_like greater greater_equal hypot
iinfo imag inf int16 int32 int64 int8 isdtype isfinite isinf isnan less less_equal linspace log log10
log1p log2 logaddexp logical_and logical_not logical_or logical_xor matmul matrix_transpose max maximum
mean meshgrid min minimum moveaxis multiply nan negative newaxis nextafter nonzero not_equal ones
ones_like permute_dims pi positive pow prod real reciprocal remainder repeat reshape result_type roll
round searchsorted sign signbit sin sinh sort sqrt square squeeze stack std subtract sum take
take_along_axis tan tanh tensordot tile tril triu trunc uint16 uint32 uint64 uint8 unique_all
unique_counts unique_inverse unique_values unstack var vecdot where zeros zeros_like
"""
LINALG = """
cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_rank
matrix_transpose outer pinv qr slogdet solve svd svdvals tensordot trace vecdot vector_norm
"""
FFT = """
fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftfreq rfftfreq fftshift ifftshift
"""
METHODS = """
abs add and array_namespace bool complex dlpack dlpack_device eq float floordiv ge getitem gt index int
invert le lshift lt matmul mod mul ne neg or pos pow radd rand rfloordiv rlshift rmatmul rmod rmul ror
rpow rrshift rshift rsub rtruediv rxor setitem sub truediv xor
"""


def test_every_name_of_the_standard() -> None:
    for names, space in ((NAMES, hnp), (LINALG, hnp.linalg), (FFT, hnp.fft)):
        missing = [name for name in names.split() if not hasattr(space, name)]
        assert not missing
    assert not [name for name in METHODS.split() if not hasattr(hnp.Array, f"__{name}__")]
    for name in ("dtype", "device", "mT", "ndim", "shape", "size", "T", "to_device"):
        assert hasattr(hnp.Array, name)
    assert set(NAMES.split()) <= {*hnp.__all__, "newaxis"}


def test_functions_say_what_they_do() -> None:
    for space in (hnp, hnp.linalg, hnp.fft):
        for name in space.__all__:
            found = getattr(space, name)
            if inspect.isfunction(found):
                assert found.__doc__, name
                assert inspect.signature(found).parameters is not None


SHAPES = xps.array_shapes(min_dims=0, max_dims=3, max_side=4)
NUMERIC = xps.numeric_dtypes()


@settings(max_examples=50, deadline=None)
@given(xps.arrays(xps.scalar_dtypes(), SHAPES))
def test_arrays_of_hypothesis(x: Any) -> None:
    assert isinstance(x, hnp.Array)
    assert hnp.asarray(x, copy=True).shape == x.shape
    assert x.__array_namespace__() is hnp
    assert x.device == hnp.__array_namespace_info__().default_device()
    assert bool(hnp.all((x == x) | hnp.isnan(x)))


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_broadcasting_and_promotion(data: Any) -> None:
    shapes = data.draw(xps.mutually_broadcastable_shapes(2, max_dims=3, max_side=3))
    types = st.sampled_from([hnp.float32, hnp.float64]) | st.sampled_from([hnp.int8, hnp.int64])
    a, b = (data.draw(xps.arrays(data.draw(types), shape)) for shape in shapes.input_shapes)
    for function in (hnp.add, hnp.multiply, hnp.maximum):
        got = function(a, b)
        assert got.shape == shapes.result_shape
        assert got.dtype == hnp.result_type(a, b)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_indices_of_hypothesis(data: Any) -> None:
    x = data.draw(xps.arrays(hnp.int64, xps.array_shapes(min_dims=1, max_dims=4, max_side=4)))
    key = data.draw(xps.indices(x.shape, allow_newaxis=True))
    want = np.asarray(x)[key]
    np.testing.assert_array_equal(np.asarray(x[key]), want)
    np.testing.assert_array_equal(
        np.asarray(mlirhlo.jit(lambda x: x[key], platform="interpreter")(x)), want
    )


@settings(max_examples=40, deadline=None)
@given(xps.arrays(NUMERIC, ()))
def test_scalars_of_rank_0(x: Any) -> None:
    value = np.asarray(x).item()
    assert bool(x) == bool(value)
    if hnp.isdtype(x.dtype, "integral"):
        assert (int(x), x.__index__(), float(x)) == (value, value, float(value))
    if hnp.isdtype(x.dtype, "real floating"):
        assert float(x) == value or value != value
    assert complex(x) == value or value != value
