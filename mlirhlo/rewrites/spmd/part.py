"""Values of a partitioned program: what one device has of an array, and how to have it elsewhere.

`Part` is a local value with the placement of the whole array. `reshard` brings it to another placement
by the cheapest collectives: a cut more is a slice, one less an all-gather, a cut that moves from one
dimension to another an all-to-all, another order of devices a collective-permute; sums that are still
spread over devices end in a reduce-scatter where the target is cut along the same devices, else in an
all-reduce. Source: reference of the passes, "SPMD partitioner", reshard.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import groupby
from math import prod
from operator import itemgetter
from typing import TypeAlias

from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape
from mlirhlo.rewrites.spmd.emit import Emitter, Estimate, Value, array_of
from mlirhlo.rewrites.spmd.grid import Axes, Placement, whole


@dataclass(slots=True, eq=False)
class Part:
    """What a device has of an array. Tiles at the end may be part padding, of any value."""

    value: Value
    shape: ArrayShape
    """Of the whole array."""
    placement: Placement
    partial: Axes = ()
    """Axes along which devices hold parts of a sum (or what `combine` says) still to be made."""
    combine: str = ""
    """Computation that joins those parts."""
    known: list[Part] = field(default_factory=list["Part"])
    """The same array at other placements, made before."""

    @property
    def is_even(self) -> bool:
        """Whether no tile holds padding."""
        return all(n % self.placement.tiles(d) == 0 for d, n in enumerate(self.shape.dimensions))

    def at(self, value: Value, placement: Placement) -> Part:
        """The same array with another local value elsewhere."""
        return Part(value, self.shape, placement)


@dataclass(frozen=True, slots=True, eq=False)
class Opaque:
    """A token or another value that is no array: what an asynchronous instruction hands to its end."""

    value: Value
    shape: Shape
    manual: frozenset[int] = frozenset()
    """Axes along which it is manual."""


Tree: TypeAlias = "Part | Opaque | tuple[Tree, ...]"
"""What an instruction gives: a part, or a tuple of such, which is only made where it is needed."""


def reshard(part: Part, target: Placement, emit: Estimate) -> Part:
    """The array of `part` at `target`; remembered, so that it is made once."""
    target = replace(target, manual=part.placement.manual)
    if target.unreduced:
        return _left_open(part, target, emit)
    if not part.partial and part.placement.dims == target.dims and _same_grid(part, target):
        return part
    for other in part.known:
        if other.placement.dims == target.dims and other.placement.grid == target.grid:
            return other
    sources = [part, *part.known]
    best = sources[0]
    if len(sources) > 1:
        costs: list[float] = []
        for source in sources:
            trial = Estimate(emit.module)
            _move(source, target, trial)
            costs.append(trial.cost)
        best = sources[costs.index(min(costs))]
    made = _move(best, target, emit)
    if isinstance(emit, Emitter):
        part.known.append(made)
    return made


def placed(value: Value, shape: ArrayShape, placement: Placement, emit: Estimate) -> Part:
    """The part of an array that is there already: along unreduced axes a part of its sum."""
    axes = tuple(sorted(placement.unreduced))
    return Part(value, shape, placement.reduced, axes, _sum_of(shape, emit) if axes else "")


def _sum_of(shape: ArrayShape, emit: Estimate) -> str:
    """Name of the addition of an array's elements."""
    opcode = "or" if shape.element_type.name == "pred" else "add"
    return emit.module.binary(opcode, shape.element_type) if isinstance(emit, Emitter) else "+"


def _left_open(part: Part, target: Placement, emit: Estimate) -> Part:
    """A sum over the unreduced axes of the target: the one that is open there, else the array on the first devices
    along these axes and zeros on the others."""
    closed, combine = target.reduced, _sum_of(part.shape, emit)
    is_there = part.placement.dims == closed.dims and part.placement.grid == closed.grid
    kept = tuple(a for a in part.partial if a in target.unreduced)
    if kept and is_there and part.combine == combine:
        rest = tuple(a for a in part.partial if a not in kept)
        found = _move(replace(part, partial=rest, known=[]), closed, emit)
    else:
        kept, found = (), reshard(part, closed, emit)
    value = found.value
    more = tuple(a for a in sorted(target.unreduced) if a not in kept)
    if more:
        number = emit.coordinate(target.grid, more)
        first = emit.compare(number, emit.constant(0, array_of(number).element_type), "EQ")
        value = emit.select(first, value, emit.constant(0, part.shape.element_type))
    return placed(value, part.shape, target, emit)


def cost_of(part: Part, target: Placement, emit: Estimate) -> float:
    """What `reshard` would cost."""
    trial = Estimate(emit.module)
    reshard(part, target, trial)
    return trial.cost


def _same_grid(part: Part, target: Placement) -> bool:
    return part.placement.grid == target.grid or target.is_whole


def mask(part: Part, dim: int, fill: Value, emit: Estimate) -> Part:
    """The same part with `fill` in the padding of one dimension."""
    axes = part.placement.dims[dim]
    n, t = part.shape.dimensions[dim], array_of(part.value).dimensions[dim]
    if part.placement.tiles(dim) * t == n:
        return part
    sizes = array_of(part.value).dimensions
    here = emit.iota(sizes, dim, emit.coordinate(part.placement.grid, axes, t))
    limit = emit.broadcast(emit.constant(n, array_of(here).element_type), array_of(here))
    inside = emit.compare(here, limit, "LT")
    return part.at(emit.select(inside, part.value, fill), part.placement)


# ---------------------------------------------------------------- moving


def _move(part: Part, target: Placement, emit: Estimate) -> Part:
    found = _finish_sums(part, target, emit) if part.partial else part
    if not _same_grid(found, target):
        found = _other_grid(found, target, emit)
        if found.placement.grid != target.grid:
            return found
    while found.placement.dims != target.dims:
        for step in (_permute, _slice, _exchange, _rebalance, _reorder, _gather):
            moved = step(found, target, emit)
            if moved is not None:
                found = moved
                break
    return found


def _common(a: Axes, b: Axes) -> int:
    count = 0
    while count < min(len(a), len(b)) and a[count] == b[count]:
        count += 1
    return count


def tile_of(part: Part, dim: int, axes: Axes) -> int:
    """Size of a tile of one dimension along `axes`."""
    return -(-part.shape.dimensions[dim] // part.placement.grid.product(axes))


def can_cut(part: Part, dim: int, axes: Axes) -> bool:
    """Whether tiles along `axes` more are parts of the tiles there are."""
    here = part.placement.dims[dim]
    k = part.placement.grid.product(axes)
    return not here or tile_of(part, dim, (*here, *axes)) * k == tile_of(part, dim, here)


def _leads_to(part: Part, dim: int, axes: Axes, wanted: Axes) -> bool:
    """Whether the tiles that are wanted are parts of those that a cut along `axes` makes."""
    after = (*part.placement.dims[dim], *axes)
    more = part.placement.grid.product(wanted[len(after) :])
    return tile_of(part, dim, wanted) * more == tile_of(part, dim, after)


def can_join(part: Part, dim: int, keep: int) -> bool:
    """Whether tiles along the first `keep` axes are made of the tiles there are."""
    here = part.placement.dims[dim]
    k = part.placement.grid.product(here[keep:])
    return keep == 0 or tile_of(part, dim, here) * k == tile_of(part, dim, here[:keep])


def _padded(part: Part, dim: int, axes: Axes, emit: Estimate) -> Value:
    """The local value, filled up so that it falls into equal tiles along `axes`."""
    k = part.placement.grid.product(axes)
    tile = tile_of(part, dim, (*part.placement.dims[dim], *axes))
    return emit.pad(part.value, dim, 0, k * tile - array_of(part.value).dimensions[dim])


def _cut(part: Part, dim: int, axes: Axes, emit: Estimate) -> Part:
    """One more cut of a dimension: each device keeps its tile."""
    here = (*part.placement.dims[dim], *axes)
    tile = tile_of(part, dim, here)
    value = _padded(part, dim, axes, emit)
    start = emit.coordinate(part.placement.grid, axes, tile)
    placement = part.placement.with_dim(dim, here)
    return replace(
        part, value=emit.dynamic_slice(value, dim, start, tile), placement=placement, known=[]
    )


def _joined(part: Part, dim: int, value: Value, emit: Estimate) -> Value:
    """Without the padding that the last tiles brought in, when they are all there."""
    n = part.shape.dimensions[dim]
    return emit.slice(value, dim, 0, n)


def _slice(part: Part, target: Placement, emit: Estimate) -> Part | None:
    for dim, wanted in enumerate(target.dims):
        here = part.placement.dims[dim]
        if len(wanted) > len(here) and wanted[: len(here)] == here:
            free = wanted[len(here) :]
            taken = [a in part.placement.used for a in free]
            free = free[: taken.index(True)] if True in taken else free
            if free and can_cut(part, dim, free) and _leads_to(part, dim, free, wanted):
                return _cut(part, dim, free, emit)
    return None


def _exchange(part: Part, target: Placement, emit: Estimate) -> Part | None:
    """An all-to-all: the minor axes of one dimension become the minor ones of another."""
    for source, here in enumerate(part.placement.dims):
        keep = _common(here, target.dims[source])
        for dim, wanted in enumerate(target.dims):
            start = part.placement.dims[dim]
            if dim == source or wanted[: len(start)] != start:
                continue
            more = wanted[len(start) :]
            for cut in range(keep, len(here)):
                axes = here[cut:]
                if more[: len(axes)] != axes or not can_cut(part, dim, axes):
                    continue
                if can_join(part, source, cut) and _leads_to(part, dim, axes, wanted):
                    return _all_to_all(part, source, cut, dim, emit)
    return None


def _all_to_all(part: Part, source: int, keep: int, dim: int, emit: Estimate) -> Part:
    grid = part.placement.grid
    axes = part.placement.dims[source][keep:]
    k = grid.product(axes)
    value = _padded(part, dim, axes, emit)
    sizes = list(array_of(value).dimensions)
    split = [*sizes[:dim], k, sizes[dim] // k, *sizes[dim + 1 :]]
    value = emit.all_to_all(emit.reshape(value, split), grid, axes, dim)
    # The rows from the other devices are major to the dimension they now join.
    at = source if source < dim else source + 1
    order = [d for d in range(len(split)) if d != dim]
    order.insert(order.index(at), dim)
    value = emit.transpose(value, order)
    sizes[dim] //= k
    sizes[source] *= k
    value = emit.reshape(value, sizes)
    placement = part.placement.with_dim(source, part.placement.dims[source][:keep])
    placement = placement.with_dim(dim, (*placement.dims[dim], *axes))
    if keep == 0:
        value = _joined(part, source, value, emit)
    return part.at(value, placement)


def _rebalance(part: Part, target: Placement, emit: Estimate) -> Part | None:
    """An all-to-all that makes as many tiles in each dimension as the target has; whose they are is then
    a matter of a collective-permute.
    """
    here = part.placement
    counts = [(here.tiles(d), target.tiles(d)) for d in range(len(target.dims))]
    uneven = [d for d, (a, b) in enumerate(counts) if a != b]
    if len(uneven) != 2 or prod(a for a, _ in counts) != prod(b for _, b in counts):
        return None
    source, dim = sorted(uneven, key=lambda d: counts[d][1] - counts[d][0])
    for cut in range(len(here.dims[source])):
        axes = here.dims[source][cut:]
        if here.grid.product(here.dims[source][:cut]) != counts[source][1]:
            continue
        if can_join(part, source, cut) and can_cut(part, dim, axes):
            return _all_to_all(part, source, cut, dim, emit)
    return None


def _permute(part: Part, target: Placement, emit: Estimate) -> Part | None:
    """A collective-permute, when the tiles are the same and only other devices have them."""
    if any(part.placement.tiles(d) != target.tiles(d) for d in range(len(target.dims))):
        return None
    return _permuted(part, target, emit)


def _permuted(part: Part, target: Placement, emit: Estimate) -> Part:
    holders: dict[tuple[int, ...], list[int]] = {}
    for device, tile in enumerate(_tiles_by_device(part.placement)):
        holders.setdefault(tile, []).append(device)
    wants = _tiles_by_device(target)
    pairs: list[tuple[int, int]] = []
    for device, tile in enumerate(wants):  # first those that have their tile already
        if device in holders[tile]:
            holders[tile].remove(device)
            pairs.append((device, device))
    placed = {device for _, device in pairs}
    for device, tile in enumerate(wants):
        if device not in placed:
            pairs.append((holders[tile].pop(0), device))
    return part.at(emit.permute(part.value, pairs), target)


def _tiles_by_device(placement: Placement) -> list[tuple[int, ...]]:
    columns = [placement.grid.coordinates(axes) for axes in placement.dims]
    manual = placement.grid.coordinates(tuple(sorted(placement.manual)))
    return list(zip(*columns, manual, strict=True))


def _reorder(part: Part, target: Placement, emit: Estimate) -> Part | None:
    """Another order of the same axes in a dimension, so that what the target keeps comes first."""
    for dim, wanted in enumerate(target.dims):
        here = part.placement.dims[dim]
        kept = tuple(a for a in wanted if a in here)
        if not kept or here[: len(kept)] == kept:
            continue
        if wanted[: len(kept)] != kept:
            # Axes that are missing in front: cut by them first, as the minor ones.
            missing = tuple(a for a in wanted if a not in here)
            is_free = not any(a in part.placement.used for a in missing)
            if not is_free or not can_cut(part, dim, missing):
                continue
            if any(a not in wanted for a in here):
                continue
            return _cut(part, dim, missing, emit)
        rest = tuple(a for a in here if a not in kept)
        return _permuted(part, part.placement.with_dim(dim, (*kept, *rest)), emit)
    return None


def _gather(part: Part, target: Placement, emit: Estimate) -> Part | None:
    """An all-gather of the axes that the target does not have, of the smallest piece first."""
    for dim, wanted in enumerate(target.dims):
        here = part.placement.dims[dim]
        if here == wanted:
            continue
        keep = _common(here, wanted)
        if keep == len(here) and can_cut(part, dim, wanted[keep:]):
            continue  # a slice, as soon as no other dimension is cut along these axes
        if keep == len(here) or not can_join(part, dim, keep):
            keep = 0
        return _all_gather(part, dim, keep, emit)
    return None


def _all_gather(part: Part, dim: int, keep: int, emit: Estimate) -> Part:
    here = part.placement.dims[dim]
    value = emit.all_gather(part.value, part.placement.grid, here[keep:], dim)
    if keep == 0:
        value = _joined(part, dim, value, emit)
    return part.at(value, part.placement.with_dim(dim, here[:keep]))


def _other_grid(part: Part, target: Placement, emit: Estimate) -> Part:
    """The same tiles on another grid, where that can say them; else the whole array."""
    same = _same_counts(part.placement, target)
    if same is not None:
        return _permuted(part, same, emit)
    for dim in range(len(target.dims)):
        if part.placement.dims[dim]:
            part = _all_gather(part, dim, 0, emit)
    return part.at(part.value, whole(target.grid, len(target.dims), part.placement.manual))


def _same_counts(here: Placement, target: Placement) -> Placement | None:
    """A placement on the target's grid with as many tiles as there are, near to the target."""
    if here.manual:
        return None
    grid = target.grid
    free = list(grid.axes)
    dims: list[Axes] = []
    for dim, wanted in enumerate(target.dims):
        count, taken = here.tiles(dim), list[int]()
        for axis in (*wanted, *free):
            size = grid.product(taken)
            if axis in free and count % (size * grid.sizes[axis]) == 0 and size < count:
                taken.append(axis)
                free.remove(axis)
        if grid.product(taken) != count:
            return None
        dims.append(tuple(taken))
    return Placement(grid, tuple(dims))


def _finish_sums(part: Part, target: Placement, emit: Estimate) -> Part:
    """Makes the sums that are spread over devices, on as little data as the target allows."""
    grid = part.placement.grid
    left: Axes = part.partial
    if target.grid == grid:
        for dim, wanted in enumerate(target.dims):
            here = part.placement.dims[dim]
            if wanted[: len(here)] != here:
                continue
            more = wanted[len(here) :]
            for is_sum, run in groupby([(a in left, a) for a in more], key=itemgetter(0)):
                axes = tuple(a for _, a in run)
                if part.placement.used & set(axes) or not can_cut(part, dim, axes):
                    break
                if not is_sum:
                    part = _cut(part, dim, axes, emit)
                    continue
                value = _padded(part, dim, axes, emit)
                value = emit.reduce_scatter(value, grid, axes, dim, part.combine)
                left = tuple(a for a in left if a not in axes)
                placement = part.placement.with_dim(dim, (*part.placement.dims[dim], *axes))
                part = replace(part, value=value, placement=placement, partial=left, known=[])
    if left:
        return part.at(emit.all_reduce(part.value, grid, left, part.combine), part.placement)
    return part.at(part.value, part.placement)
