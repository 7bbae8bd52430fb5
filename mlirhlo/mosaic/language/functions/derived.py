"""Functions of numpy and `jax.lax` that are made of others."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import index as as_index
from typing import Any

import ml_dtypes
import numpy as np

from mlirhlo.mosaic.language.control import fori_loop
from mlirhlo.mosaic.language.elements import (
    BOOL,
    F32,
    I32,
    DType,
    DTypeLike,
    as_dtype,
    kind_of,
    promoted,
    weak,
)
from mlirhlo.mosaic.language.faults import bad_index, bad_shape, bad_spec, bad_type
from mlirhlo.mosaic.language.functions.arithmetic import (
    abs_,
    binary,
    bitcast_convert_type,
    bitwise_xor,
    broadcast_to,
    cast,
    cast_bool,
    equal,
    erf,
    exp,
    expm1,
    from_bool,
    isnan,
    less,
    log,
    log1p,
    logical_or,
    maximum,
    minimum,
    negative,
    power,
    sqrt,
    square,
    true_divide,
    where,
)
from mlirhlo.mosaic.language.functions.reductions import max_, min_, sum_
from mlirhlo.mosaic.language.functions.shapes import (
    broadcasted_iota,
    concatenate,
    expand_dims,
    full,
    normal_axis,
    reshape,
    strided_slice,
    transpose,
)
from mlirhlo.mosaic.language.value import ON_NUMPY, ArrayLike, Value, as_value, is_float

# Values of what Python has, and types.


def asarray(x: ArrayLike, dtype: DTypeLike = None) -> Value:
    """A number, or an array of one number everywhere, as a value of the kernel."""
    kind = None if dtype is None else as_dtype(dtype)
    value = as_value(x, kind)
    return value if kind is None else cast(value, kind)


_CATEGORIES: dict[Any, str] = {
    np.floating: "f",
    np.inexact: "f",
    np.signedinteger: "i",
    np.unsignedinteger: "u",
    np.integer: "iu",
    np.number: "fiu",
    np.bool_: "b",
    np.generic: "fiub",
}


def issubdtype(arg1: DTypeLike, arg2: Any) -> bool:
    """Whether an element type is, or is of the kind `arg2`: `jnp.floating`, `jnp.integer`, …"""
    dtype = as_dtype(arg1)
    kinds = _CATEGORIES.get(arg2)
    return dtype == as_dtype(arg2) if kinds is None else kind_of(dtype) in kinds


def result_type(*args: Any) -> DType:
    """The element type that operands, or types, have together, as JAX has it: numbers take that of the others."""
    found: DType | None = None
    numbers: list[Any] = []
    for arg in args:
        if isinstance(arg, bool | int | float) and not isinstance(arg, np.generic):
            numbers.append(arg)
            continue
        one = as_dtype(arg if isinstance(arg, type) else getattr(arg, "dtype", arg))
        found = one if found is None else promoted(found, one)
    for number in numbers:
        found = weak(number, found) if found is not None else as_value_dtype(number)
    if found is None:
        raise bad_type("result_type of nothing", "give it an operand or an element type")
    return found


def as_value_dtype(number: bool | float) -> DType:
    """The element type of a number alone."""
    return BOOL if isinstance(number, bool) else I32 if isinstance(number, int) else F32


def unstack(x: ArrayLike, axis: int = 0) -> list[Value]:
    """The parts along a dimension, without it."""
    value = as_value(x)
    dim = normal_axis(axis, value.ndim)
    before = (slice(None),) * dim
    return [value[(*before, at)] for at in range(value.shape[dim])]


def shape_of(x: Any) -> tuple[int, ...]:
    """The sizes of a value or a reference; none of a number."""
    found: tuple[int, ...] = getattr(x, "shape", ())
    return found


# Elementwise.


def _half_power(x: Value) -> Value:
    """Half of e to the |x|, which overflows where that does."""
    root = exp(abs_(x) * 0.5)
    return (0.5 * root) * root


def sinh(x: ArrayLike) -> Value:
    """The hyperbolic sine of floats."""
    value = as_value(x)
    half, away = _half_power(value), expm1(value)  # the latter is right near zero
    big = copysign(half - 0.25 / half, value)
    return where(less(abs_(value), 1.0), (away + true_divide(away, away + 1.0)) * 0.5, big)


def cosh(x: ArrayLike) -> Value:
    """The hyperbolic cosine of floats."""
    half = _half_power(as_value(x))
    return half + 0.25 / half


_ERFC = (
    2.326819970068386e-2, -1.387039388740657e-1, 3.687424674597105e-1,
    -5.824733027278666e-1, 6.210004621745983e-1, -4.944515323274145e-1,
    3.404879937665872e-1, -2.741127028184656e-1, 5.638259427386472e-1,
)  # fmt: skip
_ERFC_FAR = (
    -1.047766399936249e1, 1.297719955372516e1, -7.495518717768503, 2.921019019210786,
    -1.015265279202700, 4.218463358204948e-1, -2.820767439740514e-1, 5.641895067754075e-1,
)  # fmt: skip


def erfc(x: ArrayLike) -> Value:
    """1 - erf(x), small results as right as others: by Cephes' polynomials in 1/x² beyond 1 and 2."""
    value = as_value(x)
    size = maximum(abs_(value), 1.0)
    inverse = true_divide(1.0, size)
    y = square(inverse)
    factor = where(less(size, 2.0), _polynomial(y, _ERFC), _polynomial(y, _ERFC_FAR))
    tail = exp(negative(square(size))) * inverse * factor
    far = where(less(value, 0.0), 2.0 - tail, tail)
    return where(less(abs_(value), 1.0), 1.0 - erf(value), far)


def _polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    result: Any = coefficients[0]
    for number in coefficients[1:]:
        result = result * x + number
    return as_value(result)


def log10(x: ArrayLike) -> Value:
    """The logarithm to base 10."""
    return log(x) * (1 / math.log(10))


def logaddexp(x: ArrayLike, y: ArrayLike) -> Value:
    """log(e to the x + e to the y)."""
    one, other = as_value(x), as_value(y)
    found = maximum(one, other) + log1p(exp(negative(abs_(one - other))))
    # Infinities of one sign have no difference, and their sum is the result.
    return where(isnan(one - other), one + other, found)


def hypot(x: ArrayLike, y: ArrayLike) -> Value:
    """The square root of x² + y², also where the squares overflow."""
    one, other = abs_(x), abs_(y)
    most = maximum(one, other)
    ratio = true_divide(minimum(one, other), where(equal(most, 0), 1, most))
    found = most * sqrt(square(ratio) + 1.0)
    return where(logical_or(isinf(one), isinf(other)), np.inf, found)


def isinf(x: ArrayLike) -> Value:
    """Whether floats are infinite."""
    return equal(abs_(x), np.inf)


def copysign(x: ArrayLike, y: ArrayLike) -> Value:
    """The size of x with the sign of y, which zeros and NaNs have too."""
    size = abs_(x)
    bits = bitcast_convert_type(cast(as_value(y), F32), I32)
    return where(less(bits, 0), negative(size), size)


def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Value:
    """With numbers for NaN and infinities: for those the greatest and least of the type, if none are given."""
    del copy
    value = as_value(x)
    if not is_float(value):
        return value
    most = float(ml_dtypes.finfo(value.dtype).max)
    high, low = most if posinf is None else posinf, -most if neginf is None else neginf
    found = where(equal(value, np.inf), high, where(equal(value, -np.inf), low, value))
    return where(isnan(value), nan, found)


def logical_xor(x: ArrayLike, y: ArrayLike) -> Value:
    """Whether one of two is not zero."""
    return bitwise_xor(cast_bool(as_value(x)), cast_bool(as_value(y)))


def integer_pow(x: ArrayLike, y: int) -> Value:
    """x to a whole power."""
    return power(x, y)


def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Value:
    """Bits moved to the right; the sign stays."""
    value = as_value(x)
    if kind_of(value.dtype) != "i":
        raise bad_type(f"an arithmetic shift of {value.dtype.name}", "cast to int32 before")
    return binary("right_shift", value, y)


def convert_element_type(x: ArrayLike, new_dtype: DTypeLike) -> Value:
    """As elements of another type."""
    return cast(as_value(x), as_dtype(new_dtype))


astype = convert_element_type


def identity(x: Any) -> Any:
    """x: kernels have no gradients, and no operation is moved across another's effects."""
    return x


# Reductions.


def ptp(x: ArrayLike, axis: Any = None, *, keepdims: bool = False) -> Value:
    """The greatest element minus the least."""
    return max_(x, axis, keepdims=keepdims) - min_(x, axis, keepdims=keepdims)


def count_nonzero(x: ArrayLike, axis: Any = None, *, keepdims: bool = False) -> Value:
    """How many elements are not zero, as i32; there are few enough for f32 to count them."""
    ones = cast(from_bool(cast_bool(as_value(x)), I32), F32)
    return cast(sum_(ones, axis, keepdims=keepdims), I32)


def along(function: Callable[..., Value]) -> Callable[[ArrayLike, Sequence[int]], Value]:
    """A reduction as `jax.lax` has it, along axes."""

    def reduce(operand: ArrayLike, axes: Sequence[int]) -> Value:
        return function(operand, tuple(axes))

    reduce.__doc__ = function.__doc__
    return reduce


# Shapes.


def arange(start: int, stop: int | None = None, step: int = 1, dtype: DTypeLike = I32) -> Value:
    """Equally spaced numbers that Python knows."""
    first, end = (0, start) if stop is None else (start, stop)
    count = len(range(as_index(first), as_index(end), as_index(step)))
    if not count:
        raise bad_shape(f"arange({first}, {end}, {step}) has no elements")
    line = reshape(broadcasted_iota(I32, (1, count), 1), (count,))
    return cast(line * step + first, as_dtype(dtype))


def moveaxis(x: ArrayLike, source: Any, destination: Any) -> Value:
    """With a dimension, or several, at other places."""
    value = as_value(x)
    pair: list[list[int]] = [
        [normal_axis(dim, value.ndim) for dim in (dims if isinstance(dims, Sequence) else [dims])]
        for dims in (source, destination)
    ]
    order = [dim for dim in range(value.ndim) if dim not in pair[0]]
    for goal, dim in sorted(zip(pair[1], pair[0], strict=True)):
        order.insert(goal, dim)
    return transpose(value, order)


def ravel(x: ArrayLike) -> Value:
    """All elements in one dimension."""
    return reshape(x, (-1,))


def repeat(
    x: ArrayLike,
    repeats: int,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
) -> Value:
    """Each part along a dimension so often, one after the other; each element for None."""
    del total_repeat_length  # one number of repeats says it
    value = as_value(x) if axis is not None else ravel(x)
    axis = 0 if axis is None else axis
    dim, count = normal_axis(axis, value.ndim), as_index(repeats)
    shape = list(value.shape)
    spread = broadcast_to(
        expand_dims(value, dim + 1), (*shape[: dim + 1], count, *shape[dim + 1 :])
    )
    shape[dim] *= count
    return reshape(spread, shape)


def pad(
    x: ArrayLike, pad_width: Any, mode: str = "constant", *, constant_values: ArrayLike = 0
) -> Value:
    """With a number around: `pad_width` is (before, after) for each dimension, or for all.

    Raises `HloError` HLO0721 for negative widths, HLO0726 for other modes.
    """
    if mode != "constant":
        raise bad_spec(f"padding by mode={mode!r}", "concatenate the parts that are to be repeated")
    value = as_value(x)
    widths = np.broadcast_to(np.asarray(pad_width), (value.ndim, 2))
    for dim, (before, after) in enumerate(widths.tolist()):
        if before < 0 or after < 0:
            raise bad_shape(f"padding of {min(before, after)} elements", "take a slice instead")
        front, back = (
            [full((*value.shape[:dim], n, *value.shape[dim + 1 :]), constant_values, value.dtype)]
            if n
            else []
            for n in (before, after)
        )
        value = concatenate([*front, value, *back], dim) if front or back else value
    return value


def lax_pad(
    operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[tuple[int, int, int]]
) -> Value:
    """As `jax.lax.pad`, without padding between elements."""
    if any(interior for _, _, interior in padding_config):
        raise bad_shape("padding between elements", "place the parts with concatenate")
    return pad(
        operand, [(low, high) for low, high, _ in padding_config], constant_values=padding_value
    )


def select(
    condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: Any = 0
) -> Value:
    """Elements of the choice whose condition is the first to hold."""
    if len(condlist) != len(choicelist) or not condlist:
        raise bad_shape(f"{len(condlist)} conditions for {len(choicelist)} choices")
    found: Any = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        found = where(condition, choice, found)
    return as_value(found)


def broadcast(operand: ArrayLike, sizes: Sequence[int]) -> Value:
    """Repeated along new dimensions in front."""
    value = as_value(operand)
    return broadcast_to(value, (*sizes, *value.shape))


def broadcast_in_dim(
    operand: ArrayLike, shape: Sequence[int], broadcast_dimensions: Sequence[int]
) -> Value:
    """With its dimensions at those places of a shape, repeated along the others."""
    value = as_value(operand)
    sizes = [1] * len(shape)
    for dim, size in zip(broadcast_dimensions, value.shape, strict=True):
        sizes[dim] = size
    return broadcast_to(reshape(value, sizes) if value.shape else value, tuple(shape))


def slice_(
    operand: ArrayLike,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Value:
    """The box between two corners that Python knows."""
    if strides is not None and any(stride != 1 for stride in strides):
        raise bad_index("a slice of a value has no steps", "load with pl.ds(start, size, stride)")
    sizes = [end - start for start, end in zip(start_indices, limit_indices, strict=True)]
    return strided_slice(as_value(operand), list(start_indices), sizes)


def slice_in_dim(
    operand: ArrayLike,
    start_index: int | None,
    limit_index: int | None,
    stride: int = 1,
    axis: int = 0,
) -> Value:
    """A part of one dimension; None is its beginning or its end."""
    value = as_value(operand)
    dim = normal_axis(axis, value.ndim)
    size = value.shape[dim]
    starts, ends, steps = [0] * value.ndim, list(value.shape), [1] * value.ndim
    starts[dim], ends[dim], _ = slice(start_index, limit_index).indices(size)
    steps[dim] = stride
    return slice_(value, starts, ends, steps)


def einshape(equation: str, value: ArrayLike, **sizes: int) -> Value:
    """Dimensions split, reordered and merged: `einshape("a(bc)->(ab)c", x, b=8)`."""
    found = as_value(value)
    left, arrow, right = equation.replace(" ", "").partition("->")
    groups, after = _groups(left), _groups(right)
    names = [name for group in groups for name in group]
    if not arrow or sorted(names) != sorted(name for group in after for name in group):
        raise bad_shape(f"{equation!r} has not the same names on both sides of ->")
    if len(groups) != found.ndim or len(set(names)) != len(names):
        raise bad_shape(f"{equation!r} for a value of shape {list(found.shape)}")
    known = dict(sizes)
    for group, size in zip(groups, found.shape, strict=True):
        open_ = [name for name in group if name not in known]
        rest = math.prod(known[name] for name in group if name in known)
        if len(open_) > 1 or not rest or size % rest or (not open_ and size != rest):
            raise bad_shape(
                f"{equation!r}: {size} elements are not ({' '.join(group)})",
                "give the sizes of all names of a group but one: einshape(…, b=8)",
            )
        known.update(dict.fromkeys(open_, size // rest))
    split = reshape(found, [known[name] for name in names])
    order = [names.index(name) for group in after for name in group]
    merged = [math.prod(known[name] for name in group) for group in after]
    return reshape(transpose(split, order), merged)


def _groups(side: str) -> list[list[str]]:
    """`a(bc)` as [[a], [b, c]]."""
    groups: list[list[str]] = []
    is_open = False
    for sign in side:
        if sign in "()":
            if (sign == "(") == is_open:
                raise bad_shape(f"brackets of {side!r} do not match")
            is_open = sign == "("
            if is_open:
                groups.append([])
        elif is_open:
            groups[-1].append(sign)
        else:
            groups.append([sign])
    return groups


def scan(
    f: Callable[..., Any],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, None]:
    """A loop that carries a value. What `f` is given and gives beside it is None."""
    del reverse  # of nothing
    if xs is not None or length is None:
        raise bad_index(
            "scan over arrays: values are not indexed by what is known when the kernel runs",
            "keep them in references, and index those in fori_loop",
        )

    def step(_: Any, carry: Any) -> Any:
        after, given = f(carry, None)
        if given is not None:
            raise bad_index("a scan gives no array of results", "store them to a reference")
        return after

    return fori_loop(0, length, step, init, unroll=unroll), None


ON_NUMPY.update(
    {
        np.sinh: sinh,
        np.cosh: cosh,
        np.log10: log10,
        np.logaddexp: logaddexp,
        np.hypot: hypot,
        np.isinf: isinf,
        np.copysign: copysign,
        np.logical_xor: logical_xor,
        np.ptp: ptp,
        np.count_nonzero: count_nonzero,
        np.moveaxis: moveaxis,
        np.ravel: ravel,
        np.repeat: repeat,
    }
)
