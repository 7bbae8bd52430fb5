"""Rules of reshapes and transposes that stand one after the other, or over what makes them cheap."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.base import integer, integers
from mlirhlo.dialects.hlo.ops import (
    AddOp,
    ConcatenateOp,
    DynamicUpdateSliceOp,
    Instruction,
    IotaOp,
    MultiplyOp,
    ReshapeOp,
    RngOp,
    SliceOp,
    TransposeOp,
)
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    element,
    forward,
    has_one_user,
    made_by,
    own_properties,
    sized,
    slices,
)
from mlirhlo.rewrites.algsimp.movement.broadcast import LI
from mlirhlo.rewrites.algsimp.movement.physical import groups
from mlirhlo.rewrites.rules import Rewriter, rule

_LONGEST = 8
"""How many movements are looked through."""


def _wide(sizes: Sequence[int]) -> list[int]:
    """Dimensions that are not of size 1."""
    return [d for d, n in enumerate(sizes) if n != 1]


@rule(ReshapeOp, TransposeOp, reads=(ReshapeOp, TransposeOp))
def movements_undone(op: ReshapeOp | TransposeOp, rewriter: Rewriter) -> None:
    """transpose(reshape(transpose(x))) => x, ones moving only, all else back where it was"""
    order = [array(op).dimensions[d] for d in _wide(array(op).dimensions)]
    places = list(range(len(order)))
    here: Instruction = op
    for step in range(_LONGEST):
        if not isinstance(here, (ReshapeOp, TransposeOp)) or (step and here.control_predecessors):
            return
        source, result = array(here.operand), array(here)
        if source.is_dynamic or result.is_dynamic:
            return
        if isinstance(here, TransposeOp):
            wide = _wide(source.dimensions)
            moved = [wide.index(d) for d in here.dimensions if source.dimensions[d] != 1]
            places = [moved[p] for p in places]
        elif [n for n in source.dimensions if n != 1] != [n for n in result.dimensions if n != 1]:
            return
        if step and places == sorted(places) and source.dimensions == array(op).dimensions:
            forward(op, rewriter, here.operand)
            return
        owner = here.operand.owner
        if not isinstance(owner, Instruction):
            return
        here = owner


@rule(ReshapeOp, needs=("enable_hoist_transpose_of_reshape", *LI), reads=(TransposeOp,))
def reshape_of_transpose_of_reshape(op: ReshapeOp, rewriter: Rewriter) -> None:
    """reshape(transpose(reshape(x))) => transpose(reshape(x)), what is merged moving as one"""
    turned = made_by(op.operand, TransposeOp)
    inner = None if turned is None else made_by(turned.operand, ReshapeOp)
    if turned is None or inner is None or any(array(v).is_dynamic for v in (op, turned, inner)):
        return
    sizes = array(op).dimensions
    parts = groups(array(turned).dimensions, sizes)
    if parts is None or 1 in sizes or all(len(a) == 1 for a, _ in parts):
        return
    wide = _wide(array(inner).dimensions)
    before: list[list[int]] = []
    for merged, result in parts:
        if len(result) != 1:
            return
        numbers = [wide.index(turned.dimensions[d]) for d in merged]
        if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
            return
        before.append(numbers)
    order = sorted(range(len(before)), key=before.__getitem__)
    b = Builder(op, rewriter)
    flat = b.reshape(inner.operand, sized(array(op), [sizes[k] for k in order]))
    b.like(TransposeOp, flat, dimensions=integers(tuple(order.index(k) for k in range(len(order)))))
    b.done()


@rule(ReshapeOp, needs=LI, reads=(IotaOp,))
def reshape_that_splits_iota(op: ReshapeOp, rewriter: Rewriter) -> None:
    """reshape(iota) => iota * (n * m) + iota * n + …, its dimension split; integers"""
    iota = made_by(op.operand, IotaOp)
    if iota is None or not element(op).is_integer or any(array(v).is_dynamic for v in (op, iota)):
        return
    parts = groups(array(iota).dimensions, array(op).dimensions) or []
    found = [b for a, b in parts if a == [iota.iota_dimension]]
    if not found or len(found[0]) < 2:
        return
    # A scale that the type has no number for would wrap as the elements of the iota do.
    b = Builder(op, rewriter)
    total: Instruction | None = None
    scale = 1
    for dim in reversed(found[0]):
        part: Instruction = b.like(IotaOp, iota_dimension=integer(dim))
        if scale > 1:
            wrapped = scale % (1 << element(op).bits)
            if element(op).is_signed and wrapped >> (element(op).bits - 1):
                wrapped -= 1 << element(op).bits
            part = b.like(MultiplyOp, part, b.splat(array(op), wrapped))
        total = part if total is None else b.like(AddOp, part, total)
        scale *= array(op).dimensions[dim]
    b.done(total)


@rule(ReshapeOp, needs=LI, reads=(DynamicUpdateSliceOp,))
def reshape_of_update(op: ReshapeOp, rewriter: Rewriter) -> None:
    """reshape(dus(x, u, i)) => dus(reshape(x), reshape(u), i), ones inserted or removed"""
    update = made_by(op.operand, DynamicUpdateSliceOp)
    if update is None or not has_one_user(op.operand) or update.control_predecessors:
        return
    whole, part, *starts = update.inputs
    outer, source = array(op), array(whole)
    if outer.is_dynamic or source.is_dynamic or len(starts) != source.rank or not starts:
        return
    if array(part).is_dynamic or "sharding" in op.properties or "sharding" in update.properties:
        return
    wide = _wide(source.dimensions)
    if [source.dimensions[d] for d in wide] != [n for n in outer.dimensions if n != 1]:
        return
    places = iter(wide)
    kept = [None if n == 1 else next(places) for n in outer.dimensions]
    b = Builder(op, rewriter)
    zero = b.scalar(element(starts[0]), 0).output if None in kept else None
    new = [zero if place is None else starts[place] for place in kept]
    sizes = [1 if place is None else array(part).dimensions[place] for place in kept]
    if not array(part).element_count:
        for unused in reversed(b.made):
            unused.erase()
        return
    b.like(
        DynamicUpdateSliceOp,
        b.reshape(whole, sized(outer, outer.dimensions)),
        b.reshape(part, sized(outer, sizes)),
        *(start for start in new if start is not None),
    )
    b.done()


@rule(ReshapeOp, TransposeOp, needs=LI, contract="rounding", reads=(RngOp,))
def movement_of_random_numbers(op: ReshapeOp | TransposeOp, rewriter: Rewriter) -> None:
    """reshape(rng(a, b)) => rng(a, b), of the new shape: as random, in another order; as well transpose"""
    inner = made_by(op.operand, RngOp)
    if inner is None or not has_one_user(op.operand) or inner.control_predecessors:
        return
    if array(op).is_dynamic:
        return
    b = Builder(op, rewriter)
    b.like(RngOp, *inner.inputs, **own_properties(inner))
    b.done()


_MOST_CHUNKS = 5
"""More slices than that are no cheaper than a transpose."""


@rule(
    ReshapeOp, needs=("rewrite_reshape_transpose_as_slice_concatenate", *LI), reads=(TransposeOp,)
)
def space_to_depth(op: ReshapeOp, rewriter: Rewriter) -> None:
    """reshape(transpose(reshape(x))) => concat(slice(x), …), few parts of one dimension into another"""
    turned = made_by(op.operand, TransposeOp)
    inner = None if turned is None else made_by(turned.operand, ReshapeOp)
    if turned is None or inner is None or any(array(v).is_dynamic for v in (op, turned, inner)):
        return
    source, split, result = array(inner.operand), array(inner), array(op)
    if 1 in split.dimensions or 1 in source.dimensions or result.rank != source.rank:
        return
    found = _chunked(source.dimensions, split.dimensions)
    if found is None or turned.dimensions == tuple(range(split.rank)):
        return
    dim, outer = found
    for chunk in (outer, outer + 1):
        count = split.dimensions[chunk]
        order = list(turned.dimensions)
        place = order.index(chunk)
        if count > _MOST_CHUNKS or place + 1 == len(order):
            continue
        others = [d for d in order if d != chunk]
        into = order[place + 1]
        if others != sorted(others) or into in (outer, outer + 1):
            continue
        joined = others.index(into)
        sizes = [split.dimensions[d] for d in others]
        sizes[joined] *= count
        if tuple(sizes) == result.dimensions:
            _joined_slices(op, rewriter, inner.operand, dim, count, chunk == outer, joined)
            return


def _chunked(sizes: Sequence[int], split: Sequence[int]) -> tuple[int, int] | None:
    """The dimension that a reshape splits in two, and the first of the two; None = another reshape."""
    parts = groups(sizes, split) or []
    found = [(a, b) for a, b in parts if len(a) != 1 or len(b) != 1]
    if len(found) != 1 or len(found[0][0]) != 1 or len(found[0][1]) != 2:
        return None
    return found[0][0][0], found[0][1][0]


def _joined_slices(
    op: ReshapeOp,
    rewriter: Rewriter,
    value: SSAValue,
    dim: int,
    count: int,
    whole: bool,
    joined: int,
) -> None:
    """The `count` parts of dimension `dim` (`whole`: runs, else every count-th) along `joined`."""
    sizes = list(array(value).dimensions)
    size = sizes[dim] // count
    b = Builder(op, rewriter)
    parts: list[Instruction] = []
    for k in range(count):
        bounds = [(0, n, 1) for n in sizes]
        bounds[dim] = (k * size, (k + 1) * size, 1) if whole else (k, sizes[dim], count)
        shape = sized(array(op), [size if d == dim else n for d, n in enumerate(sizes)])
        parts.append(b(SliceOp, value, shape=shape, slice=slices(bounds)))
    b.like(ConcatenateOp, *parts, dimensions=integers((joined,)))
    b.done()


RULES = (
    movements_undone,
    movement_of_random_numbers,
    reshape_of_transpose_of_reshape,
    reshape_that_splits_iota,
    reshape_of_update,
    space_to_depth,
)
