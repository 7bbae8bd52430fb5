"""Shapes of products: dot, ragged-dot, scaled-dot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlirhlo.analysis.shape_inference.base import (
    Given,
    checks,
    dimension,
    fits,
    higher_precision,
    infers,
    listed,
    plain,
)
from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, array


@dataclass(frozen=True, slots=True)
class _Numbers:
    """Batch and contracting dimensions of one side."""

    batch: tuple[int, ...]
    contracting: tuple[int, ...]

    def free(self, rank: int, *others: int) -> list[int]:
        """Dimensions that are neither, in order, without `others`."""
        taken = {*self.batch, *self.contracting, *others}
        return [dim for dim in range(rank) if dim not in taken]


def _numbers(given: Given, lhs: ArrayShape, rhs: ArrayShape) -> tuple[_Numbers, _Numbers]:
    """Dimension numbers of both sides, checked (constraints 2 to 5)."""
    a = _Numbers(given.ints("lhs_batch_dims"), given.ints("lhs_contracting_dims"))
    b = _Numbers(given.ints("rhs_batch_dims"), given.ints("rhs_contracting_dims"))
    shown = f"Cannot infer shape for dot operation: {plain(lhs)} <dot> {plain(rhs)}."
    for side, numbers, shape in (("lhs", a, lhs), ("rhs", b, rhs)):
        every = (*numbers.batch, *numbers.contracting)
        key = f"{side}_contracting_dims"
        for number in every:
            if not 0 <= number < shape.rank:  # c2
                raise given.error(
                    2,
                    f"A dimension number is out of range in Dot: {number} is none of {plain(shape)}.",
                    attribute=key if number in numbers.contracting else f"{side}_batch_dims",
                )
        if len(set(every)) != len(every):  # c2
            raise given.error(
                2, f"A dimension number is not unique in Dot: {listed(every)}.", attribute=key
            )
    for what, key, mine, yours, number in (
        ("contracting", "contracting_dims", a.contracting, b.contracting, 3),
        ("batch", "batch_dims", a.batch, b.batch, 4),
    ):
        if len(mine) != len(yours):  # c3, c4
            raise given.error(
                number,
                f"{shown} Must specify the same number of {what} dimensions for lhs and rhs.",
                attribute=f"rhs_{key}",
            )
        for x, y in zip(mine, yours, strict=True):
            if not fits(lhs.dimensions[x], rhs.dimensions[y]):  # c3, c4
                raise given.error(
                    number,
                    f"{shown} {what.capitalize()} dimension sizes are not compatible.",
                    attribute=f"rhs_{key}",
                    help=f"lhs dimension {x} has size {lhs.dimensions[x]}, rhs dimension {y} has"
                    f" size {rhs.dimensions[y]}",
                )
    return a, b


def element_type(given: Given, lhs: ArrayShape, rhs: ArrayShape) -> PrimitiveType:
    """The declared element type if there is one, for products may be kept in any type; else the
    higher of the operands'."""
    if isinstance(given.shape, ArrayShape):
        return given.shape.element_type
    return higher_precision(lhs.element_type, rhs.element_type)


_DOT = {
    "c1": "the operands are arrays",
    "c2": "dimension numbers name dimensions of their operand, each once",
    "c3": "there are as many contracting dimensions on both sides, of equal sizes",
    "c4": "there are as many batch dimensions on both sides, of equal sizes",
}


@infers("dot", **_DOT)
def dot(given: Given) -> Shape:
    """Batch dimensions, free ones of the left side, free ones of the right side."""
    return _dot(given, given.array(0, "lhs of dot"), given.array(1, "rhs of dot"))


def _dot(given: Given, lhs: ArrayShape, rhs: ArrayShape) -> Shape:
    a, b = _numbers(given, lhs, rhs)
    dims = [dimension(lhs, dim) for dim in (*a.batch, *a.free(lhs.rank))]
    dims += [dimension(rhs, dim) for dim in b.free(rhs.rank)]
    type_ = element_type(given, lhs, rhs)
    return array(type_, [d[0] for d in dims], [d[1] for d in dims])


@checks("dot", c5="there are two operands, and more only with block scaling or sparsity")
def check_dot(given: Given) -> None:
    """The number of operands, which the table leaves open."""
    if len(given.operands) > 2 and "block_scaling_config" not in given.properties:  # dot_c5
        raise given.error(
            5, f"expects 2 operands, but has {len(given.operands)} operands", operand=2
        )


@infers("scaled-dot", **_DOT)
def scaled_dot(given: Given) -> Shape:
    """As a dot of operands 0 and 2."""
    return _dot(given, given.array(0, "lhs of dot"), given.array(2, "rhs of dot"))


@checks(
    "scaled-dot",
    c5="a scale is a scalar, or has its operand's rank",
    c6="each size of an operand is a multiple of its scale's",
)
def check_scaled_dot(given: Given) -> None:
    """Whether the scales fit the operands."""
    for operand, scale in ((0, 1), (2, 3)):
        x, s = given.array(operand, "operand of scaled-dot"), given.array(scale, "scale")
        if s.is_scalar:
            continue
        if s.rank != x.rank:  # scaled-dot_c5
            raise given.error(
                5,
                f"the scale {plain(s)} must be a scalar or have the rank of {plain(x)}",
                operand=scale,
            )
        for dim, (size, scaled) in enumerate(zip(x.dimensions, s.dimensions, strict=True)):
            if not fits(size, scaled) and (scaled == 0 or size % scaled):  # scaled-dot_c6
                raise given.error(
                    6,
                    f"dimension {dim}: size {size} of {plain(x)} is not a multiple of {scaled},"
                    f" the size of the scale {plain(s)}",
                    operand=scale,
                )


@infers(
    "ragged-dot",
    **_DOT,
    c5="there is exactly one ragged dimension, and it is the left side's",
    c6="rhs_group_dims names one dimension when a free dimension is ragged, else none",
    c7="the group dimension is a free dimension of the right side",
    c8="group_sizes has one size for each group, for each index of the dimensions before the ragged one",
    c9="the group dimension has one index for each group",
)
def ragged_dot(given: Given) -> Shape:
    """As a dot without the group dimension; a ragged contracting dimension puts the groups in front."""
    lhs = given.array(0, "lhs of ragged-dot")
    rhs = given.array(1, "rhs of ragged-dot")
    groups = given.array(2, "group_sizes of ragged-dot")
    shown = f"Cannot infer shape for ragged dot operation: {plain(lhs)} <ragged_dot> {plain(rhs)}."
    a, b = _numbers(given, lhs, rhs)
    ragged = given.ints("lhs_ragged_dims")
    if len(ragged) != 1:  # ragged-dot_c5
        raise given.error(
            5,
            f"{shown} There must be exactly one ragged dimension in the lhs.",
            attribute="lhs_ragged_dims",
        )
    if not 0 <= ragged[0] < lhs.rank:  # ragged-dot_c5
        raise given.error(
            5,
            f"{shown} lhs ragged dimension {ragged[0]} is out of range [0, {lhs.rank})",
            attribute="lhs_ragged_dims",
        )
    group_dims = given.ints("rhs_group_dims")
    prefix: Sequence[int]
    if ragged[0] in a.batch:
        prefix = a.batch[: a.batch.index(ragged[0])]
    elif ragged[0] in a.contracting:
        prefix = (*a.batch, *a.contracting[: a.contracting.index(ragged[0])])
    else:
        free = a.free(lhs.rank)
        prefix = (*a.batch, *free[: free.index(ragged[0])])
    is_free = ragged[0] not in (*a.batch, *a.contracting)
    _check_groups(given, shown, rhs, b, is_free)
    _check_group_sizes(given, shown, groups, [lhs.dimensions[d] for d in prefix])
    count = dimension(groups, groups.rank - 1)
    if is_free and not fits(rhs.dimensions[group_dims[0]], count[0]):  # ragged-dot_c9
        raise given.error(
            9,
            f"{shown} rhs group dimension is expected to have size={count[0]}, got"
            f" {rhs.dimensions[group_dims[0]]}",
            operand=1,
        )
    dims = [count] if ragged[0] in a.contracting else []
    dims += [dimension(lhs, dim) for dim in (*a.batch, *a.free(lhs.rank))]
    dims += [dimension(rhs, dim) for dim in b.free(rhs.rank, *group_dims)]
    type_ = element_type(given, lhs, rhs)
    return array(type_, [d[0] for d in dims], [d[1] for d in dims])


def _check_groups(
    given: Given, shown: str, rhs: ArrayShape, numbers: _Numbers, is_free: bool
) -> None:
    group_dims = given.ints("rhs_group_dims")
    if len(group_dims) != int(is_free):  # ragged-dot_c6
        rule = (
            "exactly one group dimension in the rhs when the lhs ragged dimension is non-contracting"
            if is_free
            else "zero group dimensions in the rhs when the ragged dimension is batch or contracting"
        )
        raise given.error(6, f"{shown} There must be {rule}.", attribute="rhs_group_dims")
    if not is_free:
        return
    if not 0 <= group_dims[0] < rhs.rank:  # ragged-dot_c7
        raise given.error(
            7,
            f"{shown} rhs group dimension {group_dims[0]} is out of range [0, {rhs.rank})",
            attribute="rhs_group_dims",
        )
    if group_dims[0] in (*numbers.batch, *numbers.contracting):  # ragged-dot_c7
        raise given.error(
            7,
            f"{shown} rhs group dimension cannot be a batch or contracting dimension",
            attribute="rhs_group_dims",
        )


def _check_group_sizes(given: Given, shown: str, groups: ArrayShape, prefix: Sequence[int]) -> None:
    if groups.rank == 1:
        return
    if groups.rank != len(prefix) + 1:  # ragged-dot_c8
        raise given.error(
            8,
            f"{shown} expected group_sizes to have rank {len(prefix) + 1}, got {groups.rank}",
            operand=2,
        )
    if groups.dimensions[:-1] != tuple(prefix):  # ragged-dot_c8
        wanted = listed([*prefix, groups.dimensions[-1]])
        raise given.error(
            8,
            f"{shown} group_sizes is expected to have shape [{wanted}], got"
            f" [{listed(groups.dimensions)}]",
            operand=2,
        )
