"""Shapes of clamp and select, whose operands may be scalars beside arrays."""

from __future__ import annotations

from dataclasses import replace

from mlirhlo.analysis.shape_inference.base import (
    Dimension,
    Given,
    dimension,
    higher_precision,
    infers,
    listed,
    most_specific,
    plain,
    same_sizes,
    same_type,
)
from mlirhlo.analysis.shape_inference.elementwise import ARRAYS
from mlirhlo.dialects.hlo.element_types import PRED
from mlirhlo.dialects.hlo.shapes import UNBOUNDED, ArrayShape, Layout, Shape


@infers(
    "clamp",
    c1=ARRAYS,
    c2="the three element types are equal, or floating point of any precision",
    c3="min and max are scalars or have the operand's sizes",
)
def clamp(given: Given) -> Shape:
    """The clamped operand's shape."""
    low = given.array(0, "clamp min")
    x = given.array(1, "clamp operand")
    high = given.array(2, "clamp max")
    shown = f"{plain(low)}, {plain(x)}, {plain(high)}"
    for index, limit in ((0, low), (2, high)):
        if not same_type(limit.element_type, x.element_type):  # clamp_c2
            raise given.error(2, f"Clamp with incompatible element types: {shown}.", operand=index)
        if not limit.is_scalar and not same_sizes(limit, x):  # clamp_c3
            raise given.error(3, f"Clamp with incompatible shapes: {shown}.", operand=index)
    if not (low.is_scalar or high.is_scalar or same_sizes(low, high)):  # clamp_c3
        raise given.error(3, f"Clamp with incompatible shapes: {shown}.", operand=2)
    return x


@infers(
    "select",
    c1=ARRAYS,
    c2="the two values have one element type (or floating point) and one size",
    c3="the predicate is of pred",
    c4="the predicate is a scalar or has the values' sizes",
)
def select(given: Given) -> Shape:
    """The values' shape."""
    predicate = given.array(0, "select pred")
    a = given.array(1, "select on-true")
    b = given.array(2, "select on-false")
    if not (same_type(a.element_type, b.element_type) and same_sizes(a, b)):  # select_c2
        raise given.error(
            2,
            f"Operands to select must be the same shape; got {plain(a)} and {plain(b)}.",
            operand=2,
        )
    if predicate.element_type is not PRED:  # select_c3
        raise given.error(
            3,
            f"Select's pred operand must have PRED element type; got {plain(predicate)}.",
            operand=0,
        )
    if not predicate.is_scalar and not (
        same_sizes(predicate, a) and same_sizes(predicate, b)
    ):  # select_c4
        raise given.error(
            4,
            "Operands to select and predicate must be the same shape; got"
            f" {listed([plain(a), plain(b), plain(predicate)])}.",
            operand=0,
        )
    whole = a if predicate.is_scalar else predicate
    sizes: list[Dimension] = []
    for dim in range(whole.rank):
        x, y = dimension(a, dim), dimension(b, dim)
        if UNBOUNDED in (x[0], y[0]):
            sizes.append(most_specific(x, y))
        else:
            size, dynamic = dimension(whole, dim)
            sizes.append((size, dynamic or x[1] or y[1]))
    flags = tuple(s[1] for s in sizes)
    return ArrayShape(
        higher_precision(a.element_type, b.element_type),
        tuple(s[0] for s in sizes),
        flags if any(flags) else (),
        _selected_layout(whole, a),
    )


def _selected_layout(whole: ArrayShape, value: ArrayShape) -> Layout | None:
    """Dimension order and tiles of the predicate (`whole`), element size of the values."""
    if whole is value or value.layout is None:
        return whole.layout
    bits = value.layout.element_size_bits
    layout = whole.layout or (Layout(tuple(reversed(range(whole.rank)))) if bits else None)
    return None if layout is None else replace(layout, element_size_bits=bits)
