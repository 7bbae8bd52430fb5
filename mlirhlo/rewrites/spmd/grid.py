"""The devices as a grid of small axes, and placements of arrays on it.

Every sharding of HLO cuts the dimensions of an array along axes of a grid of devices. `Grid` has the
finest axes there are, of prime sizes, so that any two shardings made from one mesh are lists of the same
axes: resharding adds, drops, moves or swaps axes, and nothing else. Shardings that no common grid can
say (`[2,3]<=[6]` beside `[3,2]<=[6]`, lists of devices in odd orders) get a grid of their own.
Source: HLO text, "Shardings"; reference of the passes, "Partitioning".
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.attributes.devices import Iota, TileAssignment
from mlirhlo.dialects.hlo.attributes.groups import IotaGroups, ReplicaGroups
from mlirhlo.dialects.hlo.attributes.sharding import (
    MANUAL,
    REPLICATED,
    Sharding,
    ShardingKind,
    partial_tile,
    subgrouped,
)

Axes = tuple[int, ...]
"""Numbers of axes of a grid, major first."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Devices row-major along axes of prime sizes."""

    sizes: tuple[int, ...]
    devices: tuple[int, ...]
    """The device at each place."""

    @property
    def count(self) -> int:
        """Number of devices."""
        return len(self.devices)

    @property
    def axes(self) -> Axes:
        """All of them."""
        return tuple(range(len(self.sizes)))

    def product(self, axes: Iterable[int]) -> int:
        """Devices along `axes`."""
        return math.prod(self.sizes[a] for a in axes)

    def tiles(self, groups: Sequence[Axes]) -> TileAssignment:
        """A grid of one dimension for each group of axes; every axis must be in one group."""
        is_plain = self.devices == tuple(range(self.count))
        order = Iota.of((self.count,)) if is_plain else self.devices
        flat = [axis for group in groups for axis in group]
        tiles = TileAssignment(self.sizes or (1,), order)
        if flat:
            tiles = tiles.transpose(flat)
        return tiles.reshape([self.product(group) for group in groups])

    def rest(self, axes: Iterable[int]) -> Axes:
        """The axes that are not in `axes`."""
        taken = set(axes)
        return tuple(a for a in self.axes if a not in taken)

    def groups(self, axes: Axes, replicas: int = 1) -> ReplicaGroups:
        """Devices that differ along `axes` alone, in the order of the axes; for each replica."""
        tiles = self.tiles((self.rest(axes), axes))
        outer, inner = tiles.dimensions
        if isinstance(tiles.order, Iota) and replicas == 1:
            return ReplicaGroups(IotaGroups(outer, inner, tiles.order))
        ids = tiles.ids()
        return ReplicaGroups.of(
            [r * self.count + d for d in ids[k : k + inner]]
            for r in range(replicas)
            for k in range(0, len(ids), inner)
        )

    def coordinates(self, axes: Axes) -> tuple[int, ...]:
        """Number of the tile along `axes` that each device has, by device."""
        found = [0] * self.count
        for place, device in enumerate(self.devices):
            number = 0
            for axis in axes:
                stride = math.prod(self.sizes[axis + 1 :])
                number = number * self.sizes[axis] + place // stride % self.sizes[axis]
            found[device] = number
        return tuple(found)

    def express(self, tiles: TileAssignment) -> tuple[Axes, ...] | None:
        """The axes that make up each dimension of `tiles`; None when this grid cannot say it."""
        if tiles.size != self.count:
            return None
        strides = {math.prod(self.sizes[a + 1 :]): a for a in self.axes}
        places = {device: place for place, device in enumerate(self.devices)}
        ids = [places.get(d, -1) for d in tiles.ids()]
        minor_first: list[int] = []
        block = 1
        while block < len(ids):
            axis = strides.get(ids[block] - ids[0])
            if axis is None or axis in minor_first:
                return None
            minor_first.append(axis)
            block *= self.sizes[axis]
        flat = minor_first[::-1]
        groups: list[Axes] = []
        for size in tiles.dimensions:
            taken: list[int] = []
            while self.product(taken) < size and flat:
                taken.append(flat.pop(0))
            if self.product(taken) != size:
                return None
            groups.append(tuple(taken))
        return tuple(groups) if self.tiles(groups).ids() == tiles.ids() else None


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the parts of an array are: for each dimension the axes that cut it, major first."""

    grid: Grid
    dims: tuple[Axes, ...]
    manual: frozenset[int] = field(default=frozenset())
    """Axes along which the program itself says what each device does."""
    unreduced: frozenset[int] = field(default=frozenset())
    """Axes along which devices hold parts of a sum that is left open."""

    @property
    def reduced(self) -> Placement:
        """The same cuts, with all sums made."""
        return replace(self, unreduced=frozenset()) if self.unreduced else self

    def tiles(self, dim: int) -> int:
        """Number of tiles along a dimension."""
        return self.grid.product(self.dims[dim])

    @property
    def used(self) -> frozenset[int]:
        """Axes that cut some dimension."""
        return frozenset(a for axes in self.dims for a in axes)

    @property
    def is_whole(self) -> bool:
        """Whether every device has the whole array."""
        return not any(self.dims)

    def local(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Sizes of a tile of an array of `sizes`; the last tiles may be part padding."""
        return tuple(-(-n // self.tiles(d)) for d, n in enumerate(sizes))

    def with_dim(self, dim: int, axes: Axes) -> Placement:
        """Another cut of one dimension."""
        return replace(self, dims=(*self.dims[:dim], axes, *self.dims[dim + 1 :]))

    def to_sharding(self) -> Sharding:
        """As HLO writes it."""
        manual, unreduced = tuple(sorted(self.manual)), tuple(sorted(self.unreduced))
        if self.is_whole and not unreduced:
            if not manual:
                return REPLICATED
            if len(manual) == len(self.grid.sizes):
                return MANUAL
        rest = self.grid.rest((*self.used, *manual, *unreduced))
        tiles = self.grid.tiles((*self.dims, manual, unreduced, rest))
        if not manual and not unreduced:
            return partial_tile(tiles.reshape((*tiles.dimensions[:-3], tiles.dimensions[-1])))
        kinds = (ShardingKind.MANUAL, ShardingKind.UNREDUCED, ShardingKind.REPLICATED)
        return subgrouped(tiles, kinds)


def whole(grid: Grid, rank: int, manual: frozenset[int] = frozenset()) -> Placement:
    """Every device has all of an array of so many dimensions."""
    return Placement(grid, ((),) * rank, manual)


@lru_cache(maxsize=1024)
def _primes(size: int) -> tuple[int, ...]:
    found: list[int] = []
    factor = 2
    while size > 1:
        while size % factor == 0:
            found.append(factor)
            size //= factor
        factor += 1
    return tuple(found)


class Grids:
    """The grid of a module, chosen so that it can say as many of its shardings as possible."""

    def __init__(self, count: int, shardings: Iterable[Sharding]) -> None:
        """`shardings`: the module's, tuples taken apart; the first ones count most."""
        cuts = {1, count}
        lists: list[Sharding] = []
        for sharding in (s.to_v2() for s in shardings):
            tiles = sharding.tiles
            if tiles is None or tiles.size != count:
                continue
            if not isinstance(tiles.order, Iota):
                lists.append(sharding)
                continue
            wanted = {math.prod(tiles.order.reshape[k:]) for k in range(len(tiles.order.reshape))}
            if tiles.order.is_identity:
                wanted |= {math.prod(tiles.dimensions[k:]) for k in range(len(tiles.dimensions))}
            if _is_chain(sorted(cuts | wanted)):
                cuts |= wanted
        ordered = sorted(cuts, reverse=True)
        sizes = [p for k, low in enumerate(ordered[1:]) for p in _primes(ordered[k] // low)]
        self.main: Grid = Grid(tuple(sizes), tuple(range(count)))
        if lists and len(cuts) == 2:
            self.main = _of_lists(count, lists)
        self._others: dict[TileAssignment, Grid] = {}

    def placement(self, sharding: Sharding | None, rank: int) -> Placement:
        """Where a sharding puts an array. Raises `HloError` HLO0480 for one that cannot be partitioned."""
        if sharding is None:
            return whole(self.main, rank)
        sharding = sharding.to_v2()
        tiles = sharding.tiles
        if sharding.kind is ShardingKind.MANUAL:
            return whole(self.main, rank, frozenset(self.main.axes))
        if sharding.kind is not ShardingKind.TILED or tiles is None:
            if sharding.kind is ShardingKind.UNREDUCED:
                return replace(whole(self.main, rank), unreduced=frozenset(self.main.axes))
            if sharding.device is not None and sharding.device >= self.main.count:
                raise _unfit(sharding, f"is on none of the {self.main.count} partitions")
            return whole(self.main, rank)
        if len(sharding.data_tiles) != rank:
            raise _unfit(sharding, f"does not fit an array of rank {rank}")
        if sorted(tiles.ids()) != list(range(self.main.count)):
            raise _unfit(sharding, f"does not name each of the {self.main.count} partitions once")
        grid, groups = self.main, _express(self.main, sharding, tiles)
        if groups is None:
            sizes = tuple(p for size in tiles.dimensions for p in _primes(size))
            grid = self._others.setdefault(tiles, Grid(sizes, tiles.ids()))
            groups = grid.express(tiles)
            assert groups is not None
        return _placed(grid, groups, sharding, rank)

    @staticmethod
    def on(grid: Grid, placement: Placement) -> Placement | None:
        """The same placement on another grid; None when that cannot say it."""
        sharding, rank = placement.to_sharding(), len(placement.dims)
        if placement.grid == grid:
            return placement
        if sharding.tiles is None:
            every, none = frozenset(grid.axes), frozenset[int]()
            found = whole(grid, rank, every if placement.manual else none)
            return replace(found, unreduced=every if placement.unreduced else none)
        groups = _express(grid, sharding, sharding.tiles)
        return None if groups is None else _placed(grid, groups, sharding, rank)


def _placed(grid: Grid, groups: tuple[Axes, ...], sharding: Sharding, rank: int) -> Placement:
    kinds: dict[ShardingKind, Axes] = {}
    for group, kind in zip(groups[rank:], sharding.subgroups, strict=False):
        kinds[kind] = (*kinds.get(kind, ()), *group)
    manual, unreduced = (
        frozenset(kinds.get(kind, ())) for kind in (ShardingKind.MANUAL, ShardingKind.UNREDUCED)
    )
    return Placement(grid, groups[:rank], manual, unreduced)


def _express(grid: Grid, sharding: Sharding, tiles: TileAssignment) -> tuple[Axes, ...] | None:
    found = grid.express(tiles)
    is_plain = ShardingKind.REPLICATED not in sharding.subgroups[-1:]
    if found is not None or (is_plain and not sharding.replicate_on_last_tile_dim):
        return found
    # Devices of a replication group may stand in any order.
    *data, copies = tiles.dimensions
    ids = tiles.ids()
    starts = TileAssignment((*data, 1), ids[::copies])
    for axes in _subsets(grid, copies):
        rest = grid.rest(axes)
        firsts = grid.tiles((rest, axes)).sorted_groups(copies).ids()[::copies]
        groups = Grid(tuple(grid.sizes[a] for a in rest), firsts).express(starts)
        if groups is not None:
            named = [tuple(rest[a] for a in group) for group in groups[:-1]]
            if grid.tiles((*named, axes)).sorted_groups(copies).ids() == ids:
                return (*named, axes)
    return None


def _of_lists(count: int, shardings: Sequence[Sharding]) -> Grid:
    """The grid of shardings that list their devices, as a mesh in an order of its own does: an axis is a digit of
    tiles' numbers that cuts all that the axes before it leave together into equal parts.
    """
    places: list[Axes] = [()] * count
    sizes: list[int] = []
    for sharding in shardings:
        tiles = sharding.tiles
        if tiles is None or sorted(tiles.ids()) != list(range(count)):
            continue
        copies = sharding.replicate_on_last_tile_dim or sharding.subgroups[-1:] == (
            ShardingKind.REPLICATED,
        )
        factors = [
            p for size in tiles.dimensions[: len(tiles.dimensions) - copies] for p in _primes(size)
        ]
        grid = Grid((*factors, count // math.prod(factors)), tiles.ids())
        for axis, size in enumerate(factors):
            digits = grid.coordinates((axis,))
            found = [(*place, digit) for place, digit in zip(places, digits, strict=True)]
            members = Counter(found)
            if len(members) == math.prod(sizes) * size and len(set(members.values())) == 1:
                places = found
                sizes.append(size)
    devices = sorted(range(count), key=lambda device: (places[device], device))
    return Grid((*sizes, *_primes(count // math.prod(sizes))), tuple(devices))


def _subsets(grid: Grid, product: int) -> Iterable[Axes]:
    """Sets of axes with so many devices along them."""

    def grow(start: int, taken: Axes) -> Iterable[Axes]:
        size = grid.product(taken)
        if size == product:
            yield taken
        elif size < product:
            for axis in range(start, len(grid.sizes)):
                yield from grow(axis + 1, (*taken, axis))

    return grow(0, ())


def _is_chain(cuts: Sequence[int]) -> bool:
    return all(cuts[k + 1] % cuts[k] == 0 for k in range(len(cuts) - 1))


def _unfit(sharding: Sharding, what: str) -> Exception:
    return error(
        "HLO0480",
        f"the sharding {sharding.to_text(metadata=False)} {what}",
        help="every partition has one place in a sharding, or the value is replicated; see --explain HLO0480",
    )
