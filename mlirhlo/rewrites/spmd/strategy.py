"""The cheapest way to do an instruction: which axes cut which of its factors.

Candidates come from where the operands are and where the result is wanted: each in turn says first, the
others fill in what is free; variants leave a factor whole or move the axes of one that must be whole to
another (the all-to-all around a sort). Every candidate is tried on an `Estimate`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from mlirhlo.rewrites.spmd.emit import Estimate
from mlirhlo.rewrites.spmd.factors import Dims, Factors, gathered, spread
from mlirhlo.rewrites.spmd.grid import Axes, Grid, Placement
from mlirhlo.rewrites.spmd.part import Part, reshard
from mlirhlo.rewrites.spmd.tiles.local import SHIFTING, Leaf, Work, perform

Cuts = dict[int, Axes]
MOST_CANDIDATES = 48
"""Candidates tried for one instruction."""

Tensor = tuple[Dims, Placement]


def cheapest(works: Sequence[Work], targets: Sequence[Placement | None]) -> list[Leaf]:
    """Does one of `works`, the same instruction seen differently, the cheapest way; its results are
    brought to `targets` (None: left where they come).
    """
    candidates: list[Work] = []
    for work in works:
        fixed = set(work.factors.whole)
        if work.op.opcode.name not in SHIFTING:
            fixed |= work.factors.shifted
        cuts = _candidates(work, targets, fixed)
        candidates += [replace(work, cuts=each) for each in cuts]
    best = candidates[0]
    if len(candidates) > 1:
        costs = [_cost(work, targets) for work in candidates]
        best = candidates[costs.index(min(costs))]
    best = replace(best, target=targets[0] if len(targets) == 1 else None)
    return _at_targets(perform(best), targets, best.emit)


def _at_targets(
    results: Sequence[Leaf], targets: Sequence[Placement | None], emit: Estimate
) -> list[Leaf]:
    return [
        reshard(r, t, emit) if isinstance(r, Part) and t is not None else r
        for r, t in zip(results, targets, strict=True)
    ]


def _cost(work: Work, targets: Sequence[Placement | None]) -> float:
    trial = Estimate(work.emit.module)
    results = perform(replace(work, emit=trial))
    for part in _at_targets(results, targets, trial):
        if isinstance(part, Part) and part.partial:
            # The sum must be made some day, at best by a reduce-scatter.
            finish = Estimate(work.emit.module)
            finish.all_reduce(part.value, work.grid, part.partial, "")
            trial.bytes += finish.bytes / 2
    return trial.cost


def _tensors(work: Work, targets: Sequence[Placement | None]) -> list[Tensor]:
    found: list[Tensor] = []
    for dims, part in zip(work.factors.operands, work.operands, strict=True):
        if isinstance(part, Part) and part.placement.grid == work.grid and dims:
            found.append((dims, part.placement))
            found += [(dims, known.placement) for known in part.known]
    for dims, target in zip(work.factors.results, targets, strict=True):
        if target is not None and target.grid == work.grid and dims:
            found.insert(0, (dims, target))
    return [t for t in found if not t[1].is_whole and len(t[0]) == len(t[1].dims)]


def _candidates(work: Work, targets: Sequence[Placement | None], fixed: set[int]) -> Iterator[Cuts]:
    tensors = _tensors(work, targets)
    seen: set[tuple[tuple[int, Axes], ...]] = set()

    def fresh(cuts: Cuts) -> Iterator[Cuts]:
        cuts = _consistent(cuts, work.factors, work.grid)
        key = tuple(sorted(cuts.items()))
        if key not in seen and len(seen) < MOST_CANDIDATES:
            seen.add(key)
            yield cuts

    first: list[Cuts] = []
    for k in range(len(tensors)):
        order = [tensors[k], *tensors[:k], *tensors[k + 1 :]]
        for found in fresh(_joined(order, work.factors, fixed, work.grid)):
            first.append(found)
            yield found
    yield from fresh({})
    for base in first:
        for factor in base:
            yield from fresh({f: a for f, a in base.items() if f != factor})
    for dims, placement in tensors:
        yield from fresh(_joined([(dims, placement)], work.factors, fixed, work.grid))
    for moved in _moved(tensors, work.factors, fixed, work.grid):
        yield from fresh(moved)


def _joined(order: Sequence[Tensor], factors: Factors, fixed: set[int], grid: Grid) -> Cuts:
    """What the tensors say, each as far as those before it leave room."""
    cuts: Cuts = {}
    for dims, placement in order:
        for dim, axes in zip(dims, placement.dims, strict=True):
            for factor, wanted in spread(axes, dim, factors.sizes, grid).items():
                have = cuts.get(factor, ())
                if factor in fixed or wanted[: len(have)] != have:
                    continue
                taken = {a for f, own in cuts.items() if f != factor for a in own}
                free: list[int] = []
                for axis in wanted:
                    if axis in taken:
                        break
                    free.append(axis)
                if free:
                    cuts[factor] = tuple(free)
    return cuts


def _consistent(cuts: Cuts, factors: Factors, grid: Grid) -> Cuts:
    """As much of `cuts` as every operand and result can have: a minor factor of a dimension is cut only
    where the factors major to it are cut to the end.
    """
    while True:
        kept = dict(cuts)
        for dims in (*factors.operands, *factors.results):
            for dim in dims:
                if len(dim) == 1:
                    continue
                axes = gathered(dim, kept, factors.sizes, grid)
                able = spread(axes, dim, factors.sizes, grid)
                for factor in dim:
                    if factor in kept:
                        kept[factor] = able.get(factor, ())
        kept = {f: a for f, a in kept.items() if a}
        if kept == cuts:
            return kept
        cuts = kept


def _moved(
    tensors: Sequence[Tensor], factors: Factors, fixed: set[int], grid: Grid
) -> Iterator[Cuts]:
    """Axes of factors that must be whole, put on others that divide."""
    for k in range(len(tensors)):
        base = _joined([tensors[k], *tensors[:k], *tensors[k + 1 :]], factors, fixed, grid)
        dims, placement = tensors[k]
        loose: list[int] = []
        for dim, axes in zip(dims, placement.dims, strict=True):
            if any(f in fixed or f in factors.reduced for f in dim):
                loose += [a for a in axes if all(a not in own for own in base.values())]
        if not loose:
            continue
        for factor, size in enumerate(factors.sizes):
            if factor in fixed or factor in factors.reduced or factor in factors.shifted:
                continue
            have = base.get(factor, ())
            if size % grid.product((*have, *loose)) == 0:
                yield {**base, factor: (*have, *loose)}


def common_grid(operands: Sequence[Leaf], targets: Sequence[Placement | None], main: Grid) -> Grid:
    """The grid to do an instruction on."""
    for target in targets:
        if target is not None and not target.is_whole:
            return target.grid
    for part in operands:
        if isinstance(part, Part) and not part.placement.is_whole:
            return part.placement.grid
    return main


def manual_of(operands: Sequence[Leaf]) -> frozenset[int]:
    """Axes that are manual in any operand."""
    sets = [p.placement.manual if isinstance(p, Part) else p.manual for p in operands]
    return frozenset[int]().union(*sets)
