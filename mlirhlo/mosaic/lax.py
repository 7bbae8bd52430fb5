"""Loops, branches and what else kernels compute with. The names are those of `jax.lax`."""

from __future__ import annotations

from mlirhlo.mosaic.language.arithmetic import abs_ as abs
from mlirhlo.mosaic.language.arithmetic import (
    add,
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
from mlirhlo.mosaic.language.arithmetic import arctan2 as atan2
from mlirhlo.mosaic.language.arithmetic import equal as eq
from mlirhlo.mosaic.language.arithmetic import greater as gt
from mlirhlo.mosaic.language.arithmetic import greater_equal as ge
from mlirhlo.mosaic.language.arithmetic import invert as bitwise_not
from mlirhlo.mosaic.language.arithmetic import isfinite as is_finite
from mlirhlo.mosaic.language.arithmetic import left_shift as shift_left
from mlirhlo.mosaic.language.arithmetic import less as lt
from mlirhlo.mosaic.language.arithmetic import less_equal as le
from mlirhlo.mosaic.language.arithmetic import maximum as max
from mlirhlo.mosaic.language.arithmetic import minimum as min
from mlirhlo.mosaic.language.arithmetic import multiply as mul
from mlirhlo.mosaic.language.arithmetic import negative as neg
from mlirhlo.mosaic.language.arithmetic import not_equal as ne
from mlirhlo.mosaic.language.arithmetic import power as pow
from mlirhlo.mosaic.language.arithmetic import subtract as sub
from mlirhlo.mosaic.language.arithmetic import where as select
from mlirhlo.mosaic.language.casts import bitcast_convert_type
from mlirhlo.mosaic.language.control import cond, fori_loop, switch, while_loop
from mlirhlo.mosaic.language.dma import axis_index, axis_size
from mlirhlo.mosaic.language.products import Precision, dot, dot_general
from mlirhlo.mosaic.language.reductions import cumsum
from mlirhlo.mosaic.language.shapes import (
    broadcasted_iota,
    concatenate,
    expand_dims,
    reshape,
    select_n,
    squeeze,
    transpose,
)

__all__ = [
    "Precision",
    "abs",
    "add",
    "atan2",
    "axis_index",
    "axis_size",
    "bitcast_convert_type",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "broadcasted_iota",
    "ceil",
    "clz",
    "concatenate",
    "cond",
    "cos",
    "cumsum",
    "div",
    "dot",
    "dot_general",
    "eq",
    "erf",
    "exp",
    "exp2",
    "expand_dims",
    "expm1",
    "floor",
    "fori_loop",
    "ge",
    "gt",
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
    "population_count",
    "pow",
    "reciprocal",
    "rem",
    "reshape",
    "rsqrt",
    "select",
    "select_n",
    "shift_left",
    "shift_right_logical",
    "sign",
    "sin",
    "sqrt",
    "square",
    "squeeze",
    "sub",
    "switch",
    "tan",
    "tanh",
    "transpose",
    "while_loop",
]
