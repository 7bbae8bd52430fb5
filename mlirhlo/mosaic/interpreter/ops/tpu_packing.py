"""`tpu`: narrow elements packed into words, and stochastic rounding."""

# Lambdas that numpy takes have parameters of no stated type.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.mosaic.attributes import attribute_of, integer_of
from mlirhlo.mosaic.interpreter.bits import from_bits, to_bits
from mlirhlo.mosaic.interpreter.memory import dtype_in
from mlirhlo.mosaic.interpreter.numbers import is_float, width_of
from mlirhlo.mosaic.interpreter.problems import unfit
from mlirhlo.mosaic.interpreter.registry import Activation, Run, Scope, means

if TYPE_CHECKING:
    from xdsl.ir import Operation


def _type(op: Operation, name: str) -> np.dtype[Any]:
    found = attribute_of(op, name)
    if found is None:
        raise unfit(op, f"it has no {name}")
    return dtype_in(found)


@means("tpu.pack_elementwise")
def pack_elementwise(op: Operation, scope: Scope) -> Run:
    """The sources, made narrow, side by side in a word; the first one lowest."""
    narrow, word = _type(op, "target_type"), dtype_in(op.results[0].type)
    width = width_of(narrow)

    def run(frame: Activation, *sources: Any) -> Any:
        bits = np.zeros(sources[0].shape, np.uint64)
        for number, source in enumerate(sources):
            part = to_bits(source.astype(narrow)).astype(np.uint64)
            bits |= part << np.uint64(number * width)
        return from_bits(bits, word)

    return run


@means("tpu.unpack_elementwise")
def unpack_elementwise(op: Operation, scope: Scope) -> Run:
    """The narrow element at a place of each word, made wide."""
    narrow, wide = _type(op, "source_type"), dtype_in(op.results[0].type)
    shift = np.uint64(integer_of(op, "index") * width_of(narrow))
    mask = np.uint64((1 << width_of(narrow)) - 1)

    def run(frame: Activation, a: Any) -> Any:
        part = from_bits((to_bits(a).astype(np.uint64) >> shift) & mask, narrow)
        return part.astype(np.int32).astype(wide) if not is_float(narrow) else part.astype(wide)

    return run


def _rounded(a: Any, bits: Any, target: np.dtype[Any]) -> Any:
    """f32 to a narrower float: rounds away from zero as often as the dropped part says."""
    import ml_dtypes

    words = np.ascontiguousarray(a, np.float32).view(np.uint32)
    keep = ml_dtypes.finfo(target).nmant
    drop = np.uint32(23 - keep)
    noise = np.asarray(bits).view(np.uint32) & np.uint32((1 << int(drop)) - 1)
    moved = ((words + noise) >> drop) << drop
    whole = np.where(np.isfinite(a), moved, words).astype(np.uint32)
    return whole.view(np.float32).astype(target)


@means("tpu.stochastic_convert")
def stochastic_convert(op: Operation, scope: Scope) -> Run:
    """f32 to a narrower float with random bits."""
    target = dtype_in(op.results[0].type)
    return lambda frame, a, bits: _rounded(a, bits, target)


@means("tpu.stochastic_convert_elementwise")
def stochastic_convert_elementwise(op: Operation, scope: Scope) -> Run:
    """f32 to a narrower float with random bits; the result in the low bits of a word."""
    target, word = _type(op, "dst_type"), dtype_in(op.results[0].type)
    if not is_float(target):
        raise unfit(op, f"to {target}")
    return lambda frame, a, bits: from_bits(to_bits(_rounded(a, bits, target)), word)
