"""A dot or convolution by its axes.

    result[b, r, c] = sum over d of lhs[b, r, d] * rhs[b, d, c]

`b` (batch), `r` (rows), `c` (columns) and `d` (depth) each stand for any number of axes: the loops that
an element takes. Every dimension of an operand is an affine function of axes, which says dots of any
dimension numbers and convolutions of any window alike: nothing is transposed, padded or reshaped first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.lowering.hlo_to_loops.contractions.arithmetic import Arithmetic
from mlirhlo.lowering.hlo_to_loops.elements import physical_dimensions, physical_order


@dataclass(frozen=True, slots=True)
class Index:
    """One dimension of an operand: `offset + sum of factor * axis`.

    With a `dilation` the operand's elements stand that far apart in what is indexed, zeros between
    them; with `is_checked`, zeros are read outside of it.
    """

    terms: tuple[tuple[int, int], ...] = ()
    """Axes by number, and their factors."""
    offset: int = 0
    dilation: int = 1
    is_checked: bool = False


@dataclass(frozen=True)
class Factor:
    """An operand: an HLO value, and how axes index it."""

    value: SSAValue
    shape: ArrayShape
    indices: tuple[Index, ...]
    is_buffer: bool
    """Whether it stands in memory; else its elements are computed when they are packed."""
    is_packed: bool = False
    """Whether it is packed in any case, by its dimensions, so that axes may merge whatever lies between them."""

    @property
    def is_linear(self) -> bool:
        """Whether an element's place in memory is an affine function of the axes."""
        return (
            self.is_buffer
            and not self.is_packed
            and not any(i.is_checked or i.dilation > 1 for i in self.indices)
        )

    def strides(self) -> tuple[int, dict[int, int]]:
        """Offset, and elements in memory from one round of an axis to the next, where it is linear."""
        sizes, order = physical_dimensions(self.shape), physical_order(self.shape)
        offset, found, stride = 0, dict[int, int](), 1
        for size, dim in zip(reversed(sizes), reversed(order), strict=True):
            index = self.indices[dim]
            offset += index.offset * stride
            for axis, factor in index.terms:
                found[axis] = found.get(axis, 0) + factor * stride
            stride *= size
        return offset, found


@dataclass(frozen=True)
class Contraction:
    """Axes by number, those of each kind from the outermost to the innermost, and what they index."""

    arithmetic: Arithmetic
    sizes: Sequence[int]
    """Of the axes."""
    batch: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    depth: tuple[int, ...]
    lhs: Factor
    rhs: Factor
    result: Factor
    """What is stored; its value is the instruction's."""
    algorithm: str = "unset"
    order: Sequence[int] = ()
    """Dimensions of the instruction in the order of those of `result`; none: the same."""
    origins: Mapping[int, tuple[int, ...]] = field(default_factory=dict[int, "tuple[int, ...]"])
    """Axes that a merged axis stands for, the innermost last."""
    rhs_in_units: bool = False
    """Whether the right operand is an array of units: its depth counts groups, not elements."""

    def count(self, axes: Sequence[int]) -> int:
        """Rounds of the loops over axes."""
        return prod(self.sizes[a] for a in axes)

    @property
    def factors(self) -> tuple[Factor, ...]:
        """Operands and result."""
        return (self.lhs, self.rhs, self.result)

    def swapped(self) -> Contraction:
        """The same result by `result^T = rhs^T * lhs^T`."""
        a = self.arithmetic
        turned = replace(a, lhs=a.rhs, rhs=a.lhs)
        return replace(
            self,
            arithmetic=turned,
            rows=self.columns,
            columns=self.rows,
            lhs=self.rhs,
            rhs=self.lhs,
        )


def uses(factor: Factor, axis: int) -> bool:
    """Whether an axis moves through an operand."""
    return any(a == axis for index in factor.indices for a, _ in index.terms)


def oriented(c: Contraction) -> Contraction:
    """Columns are what neighbours in the result's memory differ by, where that can be."""
    if c.rhs_in_units:
        return c
    _, strides = c.result.strides()
    inner = [a for a in sorted(strides, key=lambda a: strides[a]) if c.sizes[a] > 1]
    if inner and inner[0] in c.rows:
        return c.swapped()
    if not c.count(c.columns) > 1 and c.count(c.rows) > 1 and inner and inner[0] in c.rows:
        return c.swapped()
    return c


def windowed(c: Contraction) -> Contraction | None:
    """With rows along one line of the left operand, the others in the batch, and the depth along its
    memory: what `window_step` is for; None where there is no such line."""
    found = replace(
        c,
        batch=(*c.batch, *c.rows[:-1]),
        rows=c.rows[-1:],
        depth=tuple(a for a in _depth_order(c) if c.sizes[a] != 1),
    )
    return found if window_step(found) else None


def merged(c: Contraction, lanes: int, *, depth: bool = True) -> Contraction:
    """Neighbouring axes become one where all operands in memory walk them as one.

    The columns come out as one axis at most; what of them does not merge joins the batch. `depth`:
    whether axes of the depth may merge.
    """
    sizes = list(c.sizes)
    origins = dict(c.origins)
    linear = [(f, f.strides()[1]) for f in c.factors if f.is_linear]
    computed = [f for f in c.factors if not f.is_linear]

    def joins(outer: int, inner: int, kind: str) -> bool:
        for _, strides in linear:
            if strides.get(outer, 0) != strides.get(inner, 0) * sizes[inner]:
                return False
        for factor in computed:
            both = [a for o in (outer, inner) for a in origins.get(o, (o,)) if uses(factor, a)]
            if len(both) < 2 or (factor.is_packed and kind == "columns"):
                continue
            # Places in it are found by dividing, which lanes must not do: of the depth, those of whole units.
            step = lanes * c.arithmetic.group if kind == "depth" else lanes
            if kind == "rows" or sizes[inner] % step == 0:
                continue
            if kind == "columns" or factor is c.lhs:
                return False
        return True

    def merge(axes: tuple[int, ...], kind: str) -> tuple[int, ...]:
        kept = [a for a in axes if sizes[a] != 1]
        done: list[int] = []
        while kept:
            inner = kept.pop()
            while kept and joins(kept[-1], inner, kind):
                outer = kept.pop()
                new = len(sizes)
                sizes.append(sizes[outer] * sizes[inner])
                origins[new] = (*origins.get(outer, (outer,)), *origins.get(inner, (inner,)))
                for _, strides in linear:
                    if inner in strides:
                        strides[new] = strides[inner]
                inner = new
            done.append(inner)
        return tuple(reversed(done))

    # Sums of nothing are zero whatever the other axes.
    empty = tuple(a for a in c.depth if sizes[a] == 0)[:1]
    columns = merge(_by_stride(c, c.columns), "columns")
    batch = merge((*c.batch, *columns[:-1]), "batch")
    return replace(
        c,
        sizes=sizes,
        origins=origins,
        batch=batch,
        rows=merge(_by_stride(c, c.rows), "rows"),
        columns=columns[-1:],
        depth=empty or (merge(_depth_order(c), "depth") if depth else c.depth),
    )


MIN_PACKED_ROWS = 33
"""Rows for which packing a right operand pays."""


def with_packed_columns(c: Contraction) -> Contraction:
    """With a right operand that is packed, where other axes lie between those of its columns in memory.

    They are one axis then, as in the result; else all but the innermost would be batches of narrow matrices, and
    the left operand would be packed for each.
    """
    columns = [a for a in _by_stride(c, c.columns) if c.sizes[a] != 1]
    if len(columns) < 2 or c.count(c.rows) < MIN_PACKED_ROWS or not c.rhs.is_linear:
        return c
    *_, outer, inner = columns
    in_operand, in_result = (
        s.get(outer, 0) == s.get(inner, 0) * c.sizes[inner]
        for _, s in (c.rhs.strides(), c.result.strides())
    )
    if in_operand or not in_result:
        return c
    return replace(c, rhs=replace(c.rhs, is_packed=True))


def window_step(c: Contraction) -> int:
    """Elements from a row to the next in a left operand whose rows' stretches of memory overlap; else 0.

    That is a window that moves along the innermost dimension: the rows, one axis, and the inner depth
    move through it, and nothing else does.
    """
    if not c.lhs.is_buffer or len(c.rows) != 1 or not c.depth or c.sizes[c.depth[-1]] == 0:
        return 0
    row, inner = c.rows[-1], c.depth[-1]
    order = [d for d in physical_order(c.lhs.shape) if c.lhs.shape.dimensions[d] != 1]
    if not order:
        return 0
    index = c.lhs.indices[order[-1]]
    terms = dict(index.terms)
    step = terms.get(row, 0)
    moves = [i for i in c.lhs.indices if any(a in (row, inner) for a, _ in i.terms)]
    alone = len(moves) == 1 and len(index.terms) == 2 and index.dilation == 1
    is_window = alone and terms.get(inner, 0) == 1 and 0 < step < c.sizes[inner]
    return step if is_window else 0


def separated(
    c: Contraction, runs_along_depth: Callable[[Factor, Contraction], bool]
) -> Contraction:
    """Rows as one axis when the left operand's memory runs along them: the others join the batch."""
    if len(c.rows) <= 1 or runs_along_depth(c.lhs, c):
        return c
    return replace(c, batch=(*c.batch, *c.rows[:-1]), rows=c.rows[-1:])


def _by_stride(c: Contraction, axes: tuple[int, ...]) -> tuple[int, ...]:
    """Axes of the result in the order of its memory."""
    _, strides = c.result.strides()
    return tuple(sorted(axes, key=lambda a: -strides.get(a, 0)))


def _depth_order(c: Contraction) -> tuple[int, ...]:
    """Depth axes in the order of the left operand's memory, where one is in memory, else the right's.

    Sums may be made in any order of the depth, as long as it is the same for both operands.
    """
    ranks = [_memory_rank(f) for f in (c.lhs, c.rhs)]
    first = ranks[0] if c.lhs.is_buffer or not c.rhs.is_buffer else ranks[1]
    return tuple(sorted(c.depth, key=lambda a: first.get(a, 0)))


def _memory_rank(factor: Factor) -> dict[int, int]:
    """How far inside of the operand's memory each axis moves."""
    found: dict[int, int] = {}
    for at, dim in enumerate(physical_order(factor.shape)):
        for axis, _ in factor.indices[dim].terms:
            found[axis] = 2 * at + (0 if len(factor.indices[dim].terms) == 1 else 1)
    return found
