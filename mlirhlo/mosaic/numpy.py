"""numpy's functions on the values of a kernel; on arrays, outside of one. The names are those of `jax.numpy`."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from mlirhlo.mosaic.language.functions.arithmetic import (
    abs_ as abs,
)
from mlirhlo.mosaic.language.functions.arithmetic import (
    add,
    arctan2,
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    ceil,
    clip,
    cos,
    equal,
    exp,
    exp2,
    expm1,
    floor,
    floor_divide,
    greater,
    greater_equal,
    invert,
    isfinite,
    isnan,
    left_shift,
    less,
    less_equal,
    log,
    log1p,
    log2,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    multiply,
    negative,
    not_equal,
    power,
    reciprocal,
    remainder,
    right_shift,
    sign,
    sin,
    sqrt,
    square,
    subtract,
    tan,
    tanh,
    true_divide,
    trunc,
    where,
)
from mlirhlo.mosaic.language.functions.arithmetic import (
    population_count as bitwise_count,
)
from mlirhlo.mosaic.language.functions.arithmetic import (
    power as pow,
)
from mlirhlo.mosaic.language.functions.arithmetic import (
    round_ as rint,
)
from mlirhlo.mosaic.language.functions.coordinates import diag, diagonal, gradient, meshgrid
from mlirhlo.mosaic.language.functions.derived import (
    arange,
    asarray,
    astype,
    copysign,
    cosh,
    count_nonzero,
    hypot,
    isinf,
    issubdtype,
    log10,
    logaddexp,
    logical_xor,
    moveaxis,
    nan_to_num,
    pad,
    ptp,
    ravel,
    repeat,
    result_type,
    select,
    sinh,
    unstack,
)
from mlirhlo.mosaic.language.functions.derived import (
    shape_of as shape,
)
from mlirhlo.mosaic.language.functions.einsum import einsum
from mlirhlo.mosaic.language.functions.elementary import (
    allclose,
    append,
    around,
    array_equal,
    degrees,
    diff,
    float_power,
    fmax,
    fmin,
    fmod,
    heaviside,
    isclose,
    isin,
    isneginf,
    isposinf,
    ldexp,
    logaddexp2,
    modf,
    nextafter,
    positive,
    radians,
    signbit,
    sinc,
)
from mlirhlo.mosaic.language.functions.elementary import around as round
from mlirhlo.mosaic.language.functions.elementary import divmod_ as divmod
from mlirhlo.mosaic.language.functions.joins import (
    array_split,
    atleast_1d,
    atleast_2d,
    atleast_3d,
    block,
    broadcast_arrays,
    column_stack,
    dsplit,
    dstack,
    eye,
    hsplit,
    hstack,
    identity,
    indices,
    inner,
    kron,
    matrix_transpose,
    matvec,
    outer,
    rollaxis,
    tensordot,
    trace,
    trapezoid,
    tri,
    tril,
    triu,
    vdot,
    vecdot,
    vecmat,
    vsplit,
    vstack,
)
from mlirhlo.mosaic.language.functions.lacking import lacking
from mlirhlo.mosaic.language.functions.nans import (
    average,
    nanargmax,
    nanargmin,
    nanmax,
    nanmean,
    nanmin,
    nanstd,
    nansum,
    nanvar,
    std,
    var,
)
from mlirhlo.mosaic.language.functions.products import dot
from mlirhlo.mosaic.language.functions.reductions import (
    all_ as all,
)
from mlirhlo.mosaic.language.functions.reductions import (
    any_ as any,
)
from mlirhlo.mosaic.language.functions.reductions import (
    argmax,
    argmin,
    cumsum,
    mean,
)
from mlirhlo.mosaic.language.functions.reductions import (
    max_ as max,
)
from mlirhlo.mosaic.language.functions.reductions import (
    min_ as min,
)
from mlirhlo.mosaic.language.functions.reductions import (
    sum_ as sum,
)
from mlirhlo.mosaic.language.functions.shapes import (
    _broadcast_to as broadcast_to,  # pyright: ignore[reportPrivateUsage]
)
from mlirhlo.mosaic.language.functions.shapes import (
    concatenate,
    expand_dims,
    full,
    full_like,
    ones,
    ones_like,
    reshape,
    roll,
    split,
    squeeze,
    stack,
    swapaxes,
    take_along_axis,
    tile,
    transpose,
    zeros,
    zeros_like,
)
from mlirhlo.mosaic.language.outside.helpers import empty, empty_like
from mlirhlo.mosaic.language.outside.hosted import hosted, of_numpy
from mlirhlo.mosaic.language.outside.mapping import vectorize
from mlirhlo.mosaic.language.scalar_types import scalar_type
from mlirhlo.mosaic.language.value import Array as ndarray  # noqa: N813  (numpy's name)

array = asarray
matmul = dot
absolute = abs
mod = remainder
divide = true_divide
permute_dims = transpose
concat = concatenate
amax = max
amin = min
rad2deg, deg2rad = degrees, radians
fabs = abs
atan2 = arctan2
bitwise_not = invert
bitwise_invert = invert
bitwise_left_shift = left_shift
bitwise_right_shift = right_shift
copy = conj = conjugate = real = positive
promote_types = result_type
newaxis = None
e = np.e
inf = np.inf
nan = np.nan
pi = np.pi

dtype = np.dtype
finfo, iinfo = ml_dtypes.finfo, ml_dtypes.iinfo
inexact, floating, integer, number = np.inexact, np.floating, np.integer, np.number
bool = np.bool_  # noqa: A001  (numpy's name)
s_, index_exp = np.s_, np.index_exp
broadcast_shapes = np.broadcast_shapes
signedinteger, unsignedinteger = np.signedinteger, np.unsignedinteger
bool_ = np.bool_
int8, int16, int32 = scalar_type(np.int8), scalar_type(np.int16), scalar_type(np.int32)
uint8, uint16, uint32 = scalar_type(np.uint8), scalar_type(np.uint16), scalar_type(np.uint32)
float32 = scalar_type(np.float32)
float16 = scalar_type(np.float16)
bfloat16 = scalar_type(ml_dtypes.bfloat16)
int4 = scalar_type(ml_dtypes.int4)
uint4 = scalar_type(ml_dtypes.uint4)
float8_e4m3fn = scalar_type(ml_dtypes.float8_e4m3fn)
float8_e5m2 = scalar_type(ml_dtypes.float8_e5m2)
float8_e4m3b11fnuz = scalar_type(ml_dtypes.float8_e4m3b11fnuz)

__all__ = [
    "abs",
    "absolute",
    "add",
    "all",
    "allclose",
    "amax",
    "amin",
    "any",
    "append",
    "arange",
    "arctan2",
    "argmax",
    "argmin",
    "around",
    "array",
    "array_equal",
    "array_split",
    "asarray",
    "astype",
    "atan2",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "average",
    "bfloat16",
    "bitwise_and",
    "bitwise_count",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "block",
    "bool",
    "bool_",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "ceil",
    "clip",
    "column_stack",
    "concat",
    "concatenate",
    "conj",
    "conjugate",
    "copy",
    "copysign",
    "cos",
    "cosh",
    "count_nonzero",
    "cumsum",
    "deg2rad",
    "degrees",
    "diag",
    "diagonal",
    "diff",
    "divide",
    "divmod",
    "dot",
    "dsplit",
    "dstack",
    "dtype",
    "e",
    "einsum",
    "empty",
    "empty_like",
    "equal",
    "exp",
    "exp2",
    "expand_dims",
    "expm1",
    "eye",
    "fabs",
    "finfo",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e5m2",
    "float16",
    "float32",
    "float_power",
    "floating",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "full",
    "full_like",
    "gradient",
    "greater",
    "greater_equal",
    "heaviside",
    "hsplit",
    "hstack",
    "hypot",
    "identity",
    "iinfo",
    "index_exp",
    "indices",
    "inexact",
    "inf",
    "inner",
    "int4",
    "int8",
    "int16",
    "int32",
    "integer",
    "invert",
    "isclose",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "issubdtype",
    "kron",
    "ldexp",
    "left_shift",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "matmul",
    "matrix_transpose",
    "matvec",
    "max",
    "maximum",
    "mean",
    "meshgrid",
    "min",
    "minimum",
    "mod",
    "modf",
    "moveaxis",
    "multiply",
    "nan",
    "nan_to_num",
    "nanargmax",
    "nanargmin",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanstd",
    "nansum",
    "nanvar",
    "ndarray",
    "negative",
    "newaxis",
    "nextafter",
    "not_equal",
    "number",
    "ones",
    "ones_like",
    "outer",
    "pad",
    "permute_dims",
    "pi",
    "positive",
    "pow",
    "power",
    "promote_types",
    "ptp",
    "rad2deg",
    "radians",
    "ravel",
    "real",
    "reciprocal",
    "remainder",
    "repeat",
    "reshape",
    "result_type",
    "right_shift",
    "rint",
    "roll",
    "rollaxis",
    "round",
    "s_",
    "select",
    "shape",
    "sign",
    "signbit",
    "signedinteger",
    "sin",
    "sinc",
    "sinh",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "subtract",
    "sum",
    "swapaxes",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "trace",
    "transpose",
    "trapezoid",
    "tri",
    "tril",
    "triu",
    "true_divide",
    "trunc",
    "uint4",
    "uint8",
    "uint16",
    "uint32",
    "unsignedinteger",
    "unstack",
    "var",
    "vdot",
    "vecdot",
    "vecmat",
    "vectorize",
    "vsplit",
    "vstack",
    "where",
    "zeros",
    "zeros_like",
]

# Around kernels, the same names are numpy's functions on arrays, which has more.
globals().update(hosted(__all__, globals(), of_numpy))

__getattr__ = lacking(__name__, __all__, of_numpy)
