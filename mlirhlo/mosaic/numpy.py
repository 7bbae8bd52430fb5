"""numpy's functions on the values of a kernel. The names are those of `jax.numpy`."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from mlirhlo.mosaic.language.arithmetic import (
    abs_ as abs,
)
from mlirhlo.mosaic.language.arithmetic import (
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
from mlirhlo.mosaic.language.arithmetic import (
    power as pow,
)
from mlirhlo.mosaic.language.arithmetic import (
    round_ as round,
)
from mlirhlo.mosaic.language.derived import (
    arange,
    asarray,
    astype,
    copysign,
    cosh,
    count_nonzero,
    hstack,
    hypot,
    isinf,
    issubdtype,
    log10,
    logaddexp,
    logical_xor,
    moveaxis,
    nan_to_num,
    outer,
    pad,
    ptp,
    ravel,
    repeat,
    select,
    sinh,
    std,
    tril,
    triu,
    unstack,
    var,
    vstack,
)
from mlirhlo.mosaic.language.derived import (
    shape_of as shape,
)
from mlirhlo.mosaic.language.einsum import einsum
from mlirhlo.mosaic.language.lacking import lacking
from mlirhlo.mosaic.language.products import dot
from mlirhlo.mosaic.language.reductions import (
    all_ as all,
)
from mlirhlo.mosaic.language.reductions import (
    any_ as any,
)
from mlirhlo.mosaic.language.reductions import (
    argmax,
    argmin,
    cumsum,
    mean,
)
from mlirhlo.mosaic.language.reductions import (
    max_ as max,
)
from mlirhlo.mosaic.language.reductions import (
    min_ as min,
)
from mlirhlo.mosaic.language.reductions import (
    sum_ as sum,
)
from mlirhlo.mosaic.language.shapes import (
    _broadcast_to as broadcast_to,  # pyright: ignore[reportPrivateUsage]
)
from mlirhlo.mosaic.language.shapes import (
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

array = asarray
matmul = dot
absolute = abs
mod = remainder
divide = true_divide
permute_dims = transpose
concat = concatenate
amax = max
amin = min
rint = round
fabs = abs
atan2 = arctan2
bitwise_not = invert
bitwise_invert = invert
bitwise_left_shift = left_shift
bitwise_right_shift = right_shift
newaxis = None
inf = np.inf
nan = np.nan
pi = np.pi

dtype = np.dtype
finfo, iinfo = ml_dtypes.finfo, ml_dtypes.iinfo
floating, integer, number = np.floating, np.integer, np.number
signedinteger, unsignedinteger = np.signedinteger, np.unsignedinteger
bool_ = np.bool_
int8, int16, int32 = np.int8, np.int16, np.int32
uint8, uint16, uint32 = np.uint8, np.uint16, np.uint32
float32 = np.float32
bfloat16 = ml_dtypes.bfloat16
int4 = ml_dtypes.int4
uint4 = ml_dtypes.uint4
float8_e4m3fn = ml_dtypes.float8_e4m3fn
float8_e5m2 = ml_dtypes.float8_e5m2
float8_e4m3b11fnuz = ml_dtypes.float8_e4m3b11fnuz

__all__ = [
    "abs",
    "absolute",
    "add",
    "all",
    "amax",
    "amin",
    "any",
    "arange",
    "arctan2",
    "argmax",
    "argmin",
    "array",
    "asarray",
    "astype",
    "atan2",
    "bfloat16",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "bool_",
    "broadcast_to",
    "ceil",
    "clip",
    "concat",
    "concatenate",
    "copysign",
    "cos",
    "cosh",
    "count_nonzero",
    "cumsum",
    "divide",
    "dot",
    "dtype",
    "einsum",
    "equal",
    "exp",
    "exp2",
    "expand_dims",
    "expm1",
    "fabs",
    "finfo",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e5m2",
    "float32",
    "floating",
    "floor",
    "floor_divide",
    "full",
    "full_like",
    "greater",
    "greater_equal",
    "hstack",
    "hypot",
    "iinfo",
    "inf",
    "int4",
    "int8",
    "int16",
    "int32",
    "integer",
    "invert",
    "isfinite",
    "isinf",
    "isnan",
    "issubdtype",
    "left_shift",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "matmul",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mod",
    "moveaxis",
    "multiply",
    "nan",
    "nan_to_num",
    "negative",
    "newaxis",
    "not_equal",
    "number",
    "ones",
    "ones_like",
    "outer",
    "pad",
    "permute_dims",
    "pi",
    "pow",
    "power",
    "ptp",
    "ravel",
    "reciprocal",
    "remainder",
    "repeat",
    "reshape",
    "right_shift",
    "rint",
    "roll",
    "round",
    "select",
    "shape",
    "sign",
    "signedinteger",
    "sin",
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
    "tile",
    "transpose",
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
    "vstack",
    "where",
    "zeros",
    "zeros_like",
]

__getattr__ = lacking(__name__, __all__)
