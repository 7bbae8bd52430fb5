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
    round_ as round,
)
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

matmul = dot
absolute = abs
mod = remainder
divide = true_divide
inf = np.inf
nan = np.nan
pi = np.pi

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
    "any",
    "arctan2",
    "argmax",
    "argmin",
    "bfloat16",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "bool_",
    "broadcast_to",
    "ceil",
    "clip",
    "concatenate",
    "cos",
    "cumsum",
    "divide",
    "dot",
    "equal",
    "exp",
    "exp2",
    "expand_dims",
    "expm1",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e5m2",
    "float32",
    "floor",
    "floor_divide",
    "full",
    "full_like",
    "greater",
    "greater_equal",
    "inf",
    "int4",
    "int8",
    "int16",
    "int32",
    "invert",
    "isfinite",
    "isnan",
    "left_shift",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "matmul",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mod",
    "multiply",
    "nan",
    "negative",
    "not_equal",
    "ones",
    "ones_like",
    "pi",
    "power",
    "reciprocal",
    "remainder",
    "reshape",
    "right_shift",
    "roll",
    "round",
    "sign",
    "sin",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "subtract",
    "sum",
    "swapaxes",
    "take_along_axis",
    "tan",
    "tanh",
    "tile",
    "transpose",
    "true_divide",
    "trunc",
    "uint4",
    "uint8",
    "uint16",
    "uint32",
    "where",
    "zeros",
    "zeros_like",
]
