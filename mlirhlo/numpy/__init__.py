"""The Python array API standard on HLO: eager arrays outside of `jit`, programs inside.

    >>> import mlirhlo
    >>> import mlirhlo.numpy as hnp
    >>> double_sum = mlirhlo.jit(lambda x: hnp.sum(x * 2))
    >>> double_sum(hnp.arange(4))
    Array(12)

Inside of `mlirhlo.jit` every function records HLO instructions; outside it runs at once, as a small
module of its own on the interpreter. Needs numpy alone.
"""

# The standard's names are those of Python's own functions.
# ruff: noqa: A004
from __future__ import annotations

import sys as _sys

from mlirhlo.numpy import fft as fft
from mlirhlo.numpy import linalg as linalg
from mlirhlo.numpy import operators as _operators
from mlirhlo.numpy.array import Array as Array
from mlirhlo.numpy.control_flow import cond, fori_loop, scan, while_loop
from mlirhlo.numpy.creation import (
    arange,
    asarray,
    empty,
    empty_like,
    eye,
    from_dlpack,
    full,
    full_like,
    linspace,
    meshgrid,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)
from mlirhlo.numpy.dtypes import (
    bfloat16,
    bool,
    can_cast,
    complex64,
    complex128,
    finfo,
    float16,
    float32,
    float64,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    isdtype,
    uint8,
    uint16,
    uint32,
    uint64,
)
from mlirhlo.numpy.elementwise import (
    abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    bitwise_invert,
    ceil,
    conj,
    cos,
    cosh,
    exp,
    expm1,
    floor,
    imag,
    isfinite,
    isinf,
    isnan,
    log,
    log1p,
    log2,
    log10,
    logical_not,
    negative,
    positive,
    real,
    reciprocal,
    round,
    sign,
    signbit,
    sin,
    sinh,
    sqrt,
    square,
    tan,
    tanh,
    trunc,
)
from mlirhlo.numpy.elementwise_binary import (
    add,
    atan2,
    bitwise_and,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    clip,
    copysign,
    divide,
    equal,
    floor_divide,
    greater,
    greater_equal,
    hypot,
    less,
    less_equal,
    logaddexp,
    logical_and,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    multiply,
    nextafter,
    not_equal,
    pow,
    remainder,
    subtract,
)
from mlirhlo.numpy.indexing import repeat, take, take_along_axis
from mlirhlo.numpy.info import SUPPORTED_VERSIONS as SUPPORTED_VERSIONS
from mlirhlo.numpy.info import e, inf, nan, newaxis, pi
from mlirhlo.numpy.info import namespace_info as __array_namespace_info__
from mlirhlo.numpy.linear_algebra import matmul, matrix_transpose, tensordot, vecdot
from mlirhlo.numpy.manipulation import (
    astype,
    broadcast_arrays,
    broadcast_to,
    concat,
    expand_dims,
    flip,
    moveaxis,
    permute_dims,
    reshape,
    result_type,
    roll,
    squeeze,
    stack,
    tile,
    unstack,
)
from mlirhlo.numpy.manipulation import shapes_broadcast as broadcast_shapes
from mlirhlo.numpy.searching import (
    argmax,
    argmin,
    argsort,
    isin,
    nonzero,
    searchsorted,
    sort,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
    where,
)
from mlirhlo.numpy.statistical import (
    all,
    any,
    count_nonzero,
    cumulative_prod,
    cumulative_sum,
    diff,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)

__array_api_version__ = "2024.12"

_operators.install(_sys.modules[__name__])

__all__ = [
    "Array", "__array_api_version__", "__array_namespace_info__", "abs", "acos", "acosh", "add",
    "all", "any", "arange", "argmax", "argmin", "argsort", "asarray", "asin", "asinh", "astype",
    "atan", "atan2", "atanh", "bfloat16", "bitwise_and", "bitwise_invert", "bitwise_left_shift",
    "bitwise_or", "bitwise_right_shift", "bitwise_xor", "bool", "broadcast_arrays", "broadcast_shapes", "broadcast_to",
    "can_cast", "ceil", "clip", "complex64", "complex128", "concat", "cond", "conj", "copysign",
    "cos", "cosh", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "divide", "e",
    "empty", "empty_like", "equal", "exp", "expand_dims", "expm1", "eye", "fft", "finfo", "flip",
    "float16", "float32", "float64", "floor", "floor_divide", "fori_loop", "from_dlpack", "full",
    "full_like", "greater", "greater_equal", "hypot", "iinfo", "imag", "inf", "int8", "int16",
    "int32", "int64", "isdtype", "isfinite", "isin", "isinf", "isnan", "less", "less_equal", "linalg",
    "linspace", "log", "log1p", "log2", "log10", "logaddexp", "logical_and", "logical_not",
    "logical_or", "logical_xor", "matmul", "matrix_transpose", "max", "maximum", "mean", "meshgrid",
    "min", "minimum", "moveaxis", "multiply", "nan", "negative", "newaxis", "nextafter", "nonzero",
    "not_equal", "ones", "ones_like", "permute_dims", "pi", "positive", "pow", "prod", "real",
    "reciprocal", "remainder", "repeat", "reshape", "result_type", "roll", "round", "scan",
    "searchsorted", "sign", "signbit", "sin", "sinh", "sort", "sqrt", "square", "squeeze", "stack",
    "std", "subtract", "sum", "take", "take_along_axis", "tan", "tanh", "tensordot", "tile", "tril",
    "triu", "trunc", "uint8", "uint16", "uint32", "uint64", "unique_all", "unique_counts",
    "unique_inverse", "unique_values", "unstack", "var", "vecdot", "where", "while_loop", "zeros",
    "zeros_like",
]  # fmt: skip
