"""Loops, branches and what else kernels compute with. The names are those of `jax.lax`."""

from __future__ import annotations

from mlirhlo.mosaic.language.control import fori_loop, switch, while_loop
from mlirhlo.mosaic.language.dma import axis_index, axis_size
from mlirhlo.mosaic.language.elements import DTypeLike
from mlirhlo.mosaic.language.functions.arithmetic import abs_ as abs
from mlirhlo.mosaic.language.functions.arithmetic import (
    add,
    bitcast_convert_type,
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    ceil,
    clz,
    cos,
    div,
    erf,
    exp,
    exp2,
    expm1,
    floor,
    log,
    log1p,
    logistic,
    population_count,
    reciprocal,
    rem,
    rsqrt,
    shift_right_logical,
    sign,
    sin,
    sqrt,
    square,
    tan,
    tanh,
)
from mlirhlo.mosaic.language.functions.arithmetic import arctan2 as atan2
from mlirhlo.mosaic.language.functions.arithmetic import equal as eq
from mlirhlo.mosaic.language.functions.arithmetic import greater as gt
from mlirhlo.mosaic.language.functions.arithmetic import greater_equal as ge
from mlirhlo.mosaic.language.functions.arithmetic import invert as bitwise_not
from mlirhlo.mosaic.language.functions.arithmetic import isfinite as is_finite
from mlirhlo.mosaic.language.functions.arithmetic import left_shift as shift_left
from mlirhlo.mosaic.language.functions.arithmetic import less as lt
from mlirhlo.mosaic.language.functions.arithmetic import less_equal as le
from mlirhlo.mosaic.language.functions.arithmetic import maximum as max
from mlirhlo.mosaic.language.functions.arithmetic import minimum as min
from mlirhlo.mosaic.language.functions.arithmetic import multiply as mul
from mlirhlo.mosaic.language.functions.arithmetic import negative as neg
from mlirhlo.mosaic.language.functions.arithmetic import not_equal as ne
from mlirhlo.mosaic.language.functions.arithmetic import power as pow
from mlirhlo.mosaic.language.functions.arithmetic import subtract as sub
from mlirhlo.mosaic.language.functions.derived import (
    along,
    broadcast,
    broadcast_in_dim,
    convert_element_type,
    cosh,
    erfc,
    identity,
    integer_pow,
    scan,
    shift_right_arithmetic,
    sinh,
    slice_in_dim,
    unstack,
)
from mlirhlo.mosaic.language.functions.derived import arange as _arange
from mlirhlo.mosaic.language.functions.derived import lax_pad as pad
from mlirhlo.mosaic.language.functions.derived import slice_ as slice
from mlirhlo.mosaic.language.functions.elementary import nextafter
from mlirhlo.mosaic.language.functions.lacking import lacking
from mlirhlo.mosaic.language.functions.lax_forms import (
    RoundingMethod,
    argmax,
    argmin,
    batch_matmul,
    broadcast_like,
    broadcast_to_rank,
    clamp,
    collapse,
    concatenate,
    cond,
    cumsum,
    dot,
    expand_dims,
    full_like,
    index_in_dim,
    reshape,
    round,
    select,
    split,
    squeeze,
    tile,
    transpose,
)
from mlirhlo.mosaic.language.functions.products import Precision, dot_general
from mlirhlo.mosaic.language.functions.random import erf_inv
from mlirhlo.mosaic.language.functions.ranking import top_k
from mlirhlo.mosaic.language.functions.reductions import all_, any_, max_, min_, sum_
from mlirhlo.mosaic.language.functions.shapes import broadcasted_iota, full, select_n, stack
from mlirhlo.mosaic.language.outside.helpers import empty
from mlirhlo.mosaic.language.outside.host import ON_ARRAYS
from mlirhlo.mosaic.language.outside.hosted import hosted
from mlirhlo.mosaic.language.value import Value

reduce_max, reduce_min, reduce_sum = along(max_), along(min_), along(sum_)
reduce_and, reduce_or = along(all_), along(any_)
stop_gradient = optimization_barrier = identity


def iota(dtype: DTypeLike, size: int) -> Value:
    """0 … size - 1."""
    return _arange(0, size, dtype=dtype)


__all__ = [
    "Precision",
    "RoundingMethod",
    "abs",
    "add",
    "argmax",
    "argmin",
    "atan2",
    "axis_index",
    "axis_size",
    "batch_matmul",
    "bitcast_convert_type",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "broadcast",
    "broadcast_in_dim",
    "broadcast_like",
    "broadcast_to_rank",
    "broadcasted_iota",
    "ceil",
    "clamp",
    "clz",
    "collapse",
    "concatenate",
    "cond",
    "convert_element_type",
    "cos",
    "cosh",
    "cumsum",
    "div",
    "dot",
    "dot_general",
    "empty",
    "eq",
    "erf",
    "erf_inv",
    "erfc",
    "exp",
    "exp2",
    "expand_dims",
    "expm1",
    "floor",
    "fori_loop",
    "full",
    "full_like",
    "ge",
    "gt",
    "index_in_dim",
    "integer_pow",
    "iota",
    "is_finite",
    "le",
    "log",
    "log1p",
    "logistic",
    "lt",
    "max",
    "min",
    "mul",
    "ne",
    "neg",
    "nextafter",
    "optimization_barrier",
    "pad",
    "population_count",
    "pow",
    "reciprocal",
    "reduce_and",
    "reduce_max",
    "reduce_min",
    "reduce_or",
    "reduce_sum",
    "rem",
    "reshape",
    "round",
    "rsqrt",
    "scan",
    "select",
    "select_n",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "sign",
    "sin",
    "sinh",
    "slice",
    "slice_in_dim",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "stop_gradient",
    "sub",
    "switch",
    "tan",
    "tanh",
    "tile",
    "top_k",
    "transpose",
    "unstack",
    "while_loop",
]

# Around kernels, the same names are functions on arrays.
globals().update(hosted(__all__, globals(), ON_ARRAYS.get))

__getattr__ = lacking(__name__, __all__, ON_ARRAYS.get)
