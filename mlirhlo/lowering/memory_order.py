"""The order of an array's dimensions in memory, and its bytes.

Nothing else of the lowering is needed to call code, and this imports none of it.
"""

from __future__ import annotations

from math import prod

from mlirhlo.dialects.hlo.shapes import ArrayShape


def physical_dimensions(shape: ArrayShape) -> tuple[int, ...]:
    """Dimensions in the order of memory, most major first."""
    if shape.layout is None:
        return shape.dimensions
    return tuple([shape.dimensions[d] for d in physical_order(shape)])


def physical_order(shape: ArrayShape) -> tuple[int, ...]:
    """Logical dimensions in the order of memory, most major first."""
    if shape.layout is None:
        return tuple(range(shape.rank))
    return tuple(reversed(shape.layout.minor_to_major))


def byte_size(shape: ArrayShape) -> int:
    """Bytes of an array in memory."""
    return prod(shape.dimensions) * shape.element_type.byte_size
