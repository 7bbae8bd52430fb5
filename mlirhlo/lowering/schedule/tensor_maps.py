"""Factors of contractions that a tensor map describes, so that one thread's copies bring whole tiles of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mlirhlo.dialects.structured import sizes_of
from mlirhlo.lowering.gpu.affine import simplified
from mlirhlo.lowering.schedule.attributes import element_of
from mlirhlo.lowering.schedule.factor_reads import FactorRead, plain_read
from mlirhlo.lowering.schedule.matrix_products import MatrixProduct

LINE, TERM, OTHER = "line", "term", "other"
_MAX_RANK = 5
_ALIGNMENT = 16


@dataclass(frozen=True, slots=True)
class MappedDimension:
    """One dimension of a tensor map."""

    kind: str
    """What its index is: that of a line, of a term, or (`OTHER`) that of the dimension of the source."""
    source_dim: int
    """The slowest dimension of the source that is part of it."""
    size: int
    stride: int
    """Elements."""
    offset: int
    """Less than the index of the line or term."""


@dataclass(frozen=True, slots=True)
class MappedFactor:
    """The dimensions of a factor, from the fastest on."""

    read: FactorRead
    dimensions: tuple[MappedDimension, ...]

    @property
    def across(self) -> bool:
        """Whether terms of a line stand beside each other."""
        return self.dimensions[0].kind == TERM


def mapped_factor(product: MatrixProduct, side: int) -> MappedFactor | None:
    """The tensor map of a factor; None where lines or terms are not one dimension of memory each."""
    read = plain_read(product.op, side)
    if read is None:
        return None
    dimensions = _dimensions(product, side, read)
    if dimensions is None or not 2 <= len(dimensions) <= _MAX_RANK:
        return None
    size = element_of(read.source).byte_size
    is_aligned = all(d.stride * size % _ALIGNMENT == 0 for d in dimensions[1:])
    kinds = [d.kind for d in dimensions]
    is_tiled = kinds[0] != OTHER and kinds.count(LINE) == kinds.count(TERM) == 1
    if not is_aligned or not is_tiled:
        return None
    # What is no term has to lie outside, where copies fill in zeros.
    (terms,) = (d for d in dimensions if d.kind == TERM)
    is_filled = terms.size + terms.offset <= product.size(product.terms)
    return MappedFactor(read, dimensions) if is_filled else None


def _dimensions(
    product: MatrixProduct, side: int, read: FactorRead
) -> tuple[MappedDimension, ...] | None:
    space = product.op.space
    groups = {
        dim: (kind, at)
        for kind, dims in ((LINE, product.lines(side)), (TERM, product.terms))
        for at, dim in enumerate(d for d in dims if space[d] > 1)
    }
    found: list[MappedDimension] = []
    first = 0
    """Position in its group of the slowest index of the last dimension."""
    stride = 1
    used: list[int] = []
    for source_dim, (expr, size) in reversed(
        list(enumerate(zip(read.map.results, sizes_of(read.source), strict=True)))
    ):
        total = simplified(expr, space)
        offset = read.offsets[source_dim] - total.constant
        kind, position, dim = OTHER, 0, None
        if total.terms:
            ((atom, factor), *more) = total.terms
            if more or factor != 1 or atom.of is not None or atom.number in used:
                return None
            dim = atom.number
            used.append(dim)
            kind, position = groups.get(dim, (OTHER, 0))
        last = found[-1] if found else None
        is_whole = dim is not None and size == space[dim] and offset == 0
        if (
            last is not None
            and last.kind == kind != OTHER
            and position == first - 1
            and offset == 0
            and last.offset == 0
            and last.stride * last.size == stride
        ):
            found[-1] = replace(last, source_dim=source_dim, size=last.size * size)
        elif size > 1 or kind != OTHER:
            found.append(MappedDimension(kind, source_dim, size, stride, offset))
        # A slower index of the group follows where this one runs through all of its dimension.
        first = position if is_whole else -1
        stride *= size
    return tuple(found) if set(groups) <= set(used) else None
