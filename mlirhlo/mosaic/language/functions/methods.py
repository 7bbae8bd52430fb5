"""The functions that operators and methods of values are."""

from __future__ import annotations

from mlirhlo.mosaic.language.functions import (
    arithmetic,
    derived,
    elementary,
    nans,
    products,
    reductions,
    shapes,
)
from mlirhlo.mosaic.language.value import METHODS

METHODS.update(
    {
        "abs_": arithmetic.abs_,
        "binary": arithmetic.binary,
        "bitcast_convert_type": arithmetic.bitcast_convert_type,
        "cast": arithmetic.cast,
        "clip": arithmetic.clip,
        "equal": arithmetic.equal,
        "floor_divide": arithmetic.floor_divide,
        "greater": arithmetic.greater,
        "greater_equal": arithmetic.greater_equal,
        "invert": arithmetic.invert,
        "less": arithmetic.less,
        "less_equal": arithmetic.less_equal,
        "negative": arithmetic.negative,
        "not_equal": arithmetic.not_equal,
        "power": arithmetic.power,
        "remainder": arithmetic.remainder,
        "true_divide": arithmetic.true_divide,
        "repeat": derived.repeat,
        "around": elementary.around,
        "std": nans.std,
        "var": nans.var,
        "dot": products.dot,
        "all_": reductions.all_,
        "any_": reductions.any_,
        "argmax": reductions.argmax,
        "argmin": reductions.argmin,
        "cumsum": reductions.cumsum,
        "max_": reductions.max_,
        "mean": reductions.mean,
        "min_": reductions.min_,
        "sum_": reductions.sum_,
        "reshape": shapes.reshape,
        "sliced": shapes.sliced,
        "squeeze": shapes.squeeze,
        "swapaxes": shapes.swapaxes,
        "transpose": shapes.transpose,
    }
)
