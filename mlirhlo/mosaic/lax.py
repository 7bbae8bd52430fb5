"""Loops, branches and what else kernels compute with. The names are those of `jax.lax`."""

from __future__ import annotations

from mlirhlo.mosaic.language.arithmetic import (
    clz,
    div,
    erf,
    exp,
    logistic,
    population_count,
    reciprocal,
    rem,
    rsqrt,
    shift_right_logical,
    sign,
    square,
)
from mlirhlo.mosaic.language.arithmetic import maximum as max
from mlirhlo.mosaic.language.arithmetic import minimum as min
from mlirhlo.mosaic.language.casts import bitcast_convert_type
from mlirhlo.mosaic.language.control import cond, fori_loop, switch, while_loop
from mlirhlo.mosaic.language.dma import axis_index, axis_size
from mlirhlo.mosaic.language.products import Precision, dot, dot_general
from mlirhlo.mosaic.language.reductions import cumsum
from mlirhlo.mosaic.language.shapes import broadcasted_iota, select_n

__all__ = [
    "Precision",
    "axis_index",
    "axis_size",
    "bitcast_convert_type",
    "broadcasted_iota",
    "clz",
    "cond",
    "cumsum",
    "div",
    "dot",
    "dot_general",
    "erf",
    "exp",
    "fori_loop",
    "logistic",
    "max",
    "min",
    "population_count",
    "reciprocal",
    "rem",
    "rsqrt",
    "select_n",
    "shift_right_logical",
    "sign",
    "square",
    "switch",
    "while_loop",
]
