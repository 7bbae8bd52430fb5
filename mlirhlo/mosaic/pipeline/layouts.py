"""Layouts that operations state, those of values, and those that several can have."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from xdsl.ir import BlockArgument, OpResult

from mlirhlo.dialects.tpu.values import LANES, SUBLANES, VectorLayout
from mlirhlo.mosaic.attributes import name_of
from mlirhlo.mosaic.pipeline.building import is_vector
from mlirhlo.mosaic.target.tiling import element_name, shape_in, width_in_bits

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation, SSAValue

Layout = VectorLayout | None

CASTS = (
    "tpu.extf",
    "tpu.truncf",
    "tpu.sitofp",
    "tpu.uitofp",
    "tpu.fptosi",
    "tpu.fptoui",
    "arith.extsi",
    "arith.extui",
    "arith.trunci",
)
"""Operations that give elements another type."""


def layouts_of(op: Operation, name: str) -> list[Layout]:
    """The layouts an operation states under `in_layout` or `out_layout`; none without any."""
    stated: Any = op.attributes.get(name)
    return [item.data for item in stated.data] if stated is not None else []


def layout_of(value: SSAValue) -> Layout:
    """The layout a value has where it is made; that of a block argument is what is assumed of it."""
    if not is_vector(value.type):
        return None
    if isinstance(value, OpResult):
        stated = layouts_of(value.op, "out_layout")
        if value.index < len(stated):
            return stated[value.index]
    elif isinstance(value, BlockArgument):
        for use in value.uses:
            if name_of(use.operation) == "tpu.assume_layout":
                stated = layouts_of(use.operation, "out_layout")
                if stated:
                    return stated[0]
    return native(value.type)


def native(type_: Attribute, bits: int | None = None) -> VectorLayout:
    """The plain layout: whole registers, no offsets, rank one as a row."""
    width = width_in_bits(element_name(type_)) if bits is None else bits
    implicit = {0: (-2, -1), 1: (-2,)}.get(len(shape_in(type_)), ())
    return VectorLayout(width, (0, 0), native_tiling(width), implicit)


def native_tiling(bits: int) -> tuple[int, int]:
    """The tile that is a whole register."""
    return SUBLANES * (32 // bits), LANES


def unreplicated(layout: VectorLayout) -> VectorLayout:
    """The layout with zero for what is the same everywhere."""
    first, second = layout.offsets
    return replace(layout, offsets=(first or 0, second or 0))


def joined(left: VectorLayout, right: VectorLayout, shape: tuple[int, ...]) -> Layout:
    """A layout that vectors in either one have already; None where there is none."""
    if left.generalizes(right, shape):
        return right
    if right.generalizes(left, shape):
        return left
    same = (left.bits, left.tiling, left.implicit) == (right.bits, right.tiling, right.implicit)
    pairs = list(zip(left.offsets, right.offsets, strict=True))
    if not same or any(a is not None and b is not None and a != b for a, b in pairs):
        return None
    first, second = (b if a is None else a for a, b in pairs)
    return replace(left, offsets=(first, second))
