"""Narrow elements in words."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from mlirhlo.mosaic.attributes import attribute_of, integer_of
from mlirhlo.mosaic.fast.writer import Val, Writer, has_no_program, type_of
from mlirhlo.mosaic.target.tiling import width_in_bits


def in_rows(w: Writer, x: Val, shape: Sequence[int], element: str) -> Val:
    """The same bits; rows of narrow elements are side by side in a word, even ones in its low half."""
    shape = tuple(shape)
    if shape == x.shape:
        return w.bits(x, shape, element)
    *lead, rows, lanes = x.shape
    rank = len(shape)
    turned = [*range(rank - 1), rank, rank - 1]
    if shape[-2] > rows:
        count = shape[-2] // rows
        parts = w.bits(x, (*lead, rows, lanes, count), element)
        split = (*lead, rows, count, lanes)
        return w.reshape(w.op("transpose", [parts], split, element, f"dims = {turned}"), shape)
    count = rows // shape[-2]
    parts = w.reshape(x, (*lead, shape[-2], count, lanes))
    split = (*lead, shape[-2], lanes, count)
    together = w.op("transpose", [parts], split, x.element, f"dims = {turned}")
    return w.bits(together, shape, element)


def _bitcast(w: Writer, op: Operation, values: list[Val]) -> Val:
    return in_rows(w, values[0], *type_of(op.results[0].type))


def _narrow(op: Operation, name: str) -> str:
    """The narrow element type that an operation states: bf16 or an integer."""
    found = str(attribute_of(op, name))
    if found[0] != "i" and found != "bf16":
        raise has_no_program(op, f"of {found}")
    return found


def _pack(w: Writer, op: Operation, values: list[Val]) -> Val:
    """Sources made narrow, the first one in the lowest bits."""
    narrow, (shape, word) = _narrow(op, "target_type"), type_of(op.results[0].type)
    width = width_in_bits(narrow)
    found: Val | None = None
    for number, value in enumerate(values):
        if narrow == "bf16":
            bits = w.convert(w.bits(w.convert(value, narrow), shape, "ui16"), "ui32")
            bits = w.bits(bits, shape, word)
        else:
            bits = w.like("and", value, w.constant((1 << width) - 1, word, shape))
        if number:
            bits = w.like("shift_left", bits, w.constant(number * width, word, shape))
        found = bits if found is None else w.like("or", found, bits)
    assert found is not None
    return found


def _unpack(w: Writer, op: Operation, values: list[Val]) -> Val:
    """The narrow element at a place of each word, made wide."""
    (x,) = values
    narrow, (shape, wide) = _narrow(op, "source_type"), type_of(op.results[0].type)
    width, whole = width_in_bits(narrow), width_in_bits(x.element)
    above = w.constant(whole - (integer_of(op, "index") + 1) * width, x.element, shape)
    left = w.like("shift_left", x, above)
    low = w.constant(whole - width, x.element, shape)
    if narrow != "bf16":
        return w.convert(w.like("shift_right_arithmetic", left, low), wide)
    right = w.like("shift_right_logical", left, low)
    halves = w.convert(w.bits(right, shape, "ui32"), "ui16")
    return w.convert(w.bits(halves, shape, narrow), wide)


_MANTISSAS = {"bf16": 7, "f8E5M2": 2, "f8E4M3FN": 3, "f8E4M3B11FNUZ": 3}
"""Bits behind the point of narrow floats."""


def _stochastic(w: Writer, op: Operation, values: list[Val]) -> Val:
    """f32 to a narrower float: random bits are added to those that are dropped."""
    x, noise = values
    _, narrow = type_of(op.results[0].type)
    if narrow not in _MANTISSAS:
        raise has_no_program(op, f"to {narrow}")
    dropped = (1 << (23 - _MANTISSAS[narrow])) - 1
    words = w.bits(x, x.shape, "i32")
    low = w.like("and", noise, w.constant(dropped, "i32", x.shape))
    moved = w.like("and", w.like("add", words, low), w.constant(~dropped, "i32", x.shape))
    above = w.constant(0x7F800000, "i32", x.shape)  # the exponent of what is not finite
    finite = w.compare("NE", w.like("and", words, above), above)
    return w.convert(w.bits(w.select(finite, moved, words), x.shape, "f32"), narrow)


TABLE = {
    "tpu.bitcast": _bitcast,
    "tpu.pack_elementwise": _pack,
    "tpu.stochastic_convert": _stochastic,
    "tpu.unpack_elementwise": _unpack,
}
"""By operation, what writes its one result."""
