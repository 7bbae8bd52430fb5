"""Shardings: how a value is spread over devices. Tiles (V1, V2), meshes and axes (V3), tuples.

Source: HLO text, "Shardings". A `Sharding` is always in the canonical form that XLA prints; make
tiled ones with `tiled`, `partial_tile` or `subgrouped`, which normalise as XLA does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from mlirhlo.dialects.hlo.attributes.annotations import Metadata
from mlirhlo.dialects.hlo.attributes.devices import (
    TileAssignment,
)
from mlirhlo.dialects.hlo.attributes.mesh import (
    AxisRef,
    Mesh,
    grid_by_axes,
)


class ShardingKind(Enum):
    """What a sharding, or a subgroup of its devices, does; the word of HLO text."""

    REPLICATED = "replicated"
    MAXIMAL = "maximal"
    """One device has the whole value."""
    TUPLE = "tuple"
    TILED = "tiled"
    """OTHER in protos."""
    MANUAL = "manual"
    UNKNOWN = "unknown"
    UNREDUCED = "unreduced"
    NAMED = "named"


SUBGROUP_ORDER = (
    ShardingKind.MAXIMAL,
    ShardingKind.MANUAL,
    ShardingKind.UNREDUCED,
    ShardingKind.REPLICATED,
)
"""Canonical order of subgroups; replicated ones stand last."""


@dataclass(frozen=True, slots=True)
class DimensionSharding:
    """`{'x', 'y':(1)2, ?}`: the mesh axes along which one dimension is cut."""

    axes: tuple[AxisRef, ...] = ()
    is_closed: bool = True
    """False: propagation may cut the dimension further (`?`)."""

    def __str__(self) -> str:
        parts = [*map(str, self.axes), *([] if self.is_closed else ["?"])]
        return "{" + ", ".join(parts) + "}"


@dataclass(frozen=True, slots=True)
class NamedSharding:
    """`mesh['x'=2,'y'=4], [{'x'}, {'y':(1)2, ?}], replicated={'y':(2)2}`, without outer braces."""

    mesh: Mesh
    dimensions: tuple[DimensionSharding, ...] = ()
    replicated: tuple[AxisRef, ...] = ()
    unreduced: tuple[AxisRef, ...] = ()
    manual: tuple[AxisRef, ...] = ()
    reduction_op: str = ""
    """How unreduced parts combine (`MAX`, `MIN`; empty = sum); only newer protos have it."""

    @property
    def word(self) -> str | None:
        """`replicated`, `manual` or `unreduced` when that is all of the mesh; else None."""
        if self.dimensions or self.mesh.maximal_device is not None:
            return None
        if not (self.replicated or self.unreduced or self.manual):
            return "replicated"
        whole = tuple(map(AxisRef, self.mesh.names))
        for word in ("manual", "unreduced"):
            other = self.unreduced if word == "manual" else self.manual
            if getattr(self, word) == whole and not other and not self.replicated:
                return word
        return None

    def __str__(self) -> str:
        parts = [str(self.mesh)]
        if self.word is not None:
            parts.append(self.word)
        elif self.mesh.maximal_device is None:
            parts.append("[" + ", ".join(map(str, self.dimensions)) + "]")
            for key in ("replicated", "unreduced", "manual"):
                axes: tuple[AxisRef, ...] = getattr(self, key)
                if axes:
                    parts.append(f"{key}={{{', '.join(map(str, axes))}}}")
        if self.reduction_op:
            parts.append(f"reduction_op={self.reduction_op}")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class ShardGroup:
    """`shard_as 3` or `shard_like 3`: values of one group get the same sharding."""

    id: int
    is_like: bool = False

    def __str__(self) -> str:
        return f"{'shard_like' if self.is_like else 'shard_as'} {self.id}"


@dataclass(frozen=True, slots=True)
class Sharding:
    """One sharding; `str()` gives XLA's text with metadata, `to_text(metadata=False)` without."""

    kind: ShardingKind
    tiles: TileAssignment | None = None
    """Of tiled shardings; of maximal ones the grid `[1]` with the device."""
    replicate_on_last_tile_dim: bool = False
    subgroups: tuple[ShardingKind, ...] = ()
    """Kinds of the last grid dimensions."""
    elements: tuple[Sharding, ...] = ()
    """Of a tuple: one sharding a leaf."""
    named: NamedSharding | None = None
    shard_group: ShardGroup | None = None
    metadata: tuple[Metadata, ...] = ()

    @staticmethod
    def tuple_of(elements: Sequence[Sharding]) -> Sharding:
        """A tuple sharding."""
        return Sharding(ShardingKind.TUPLE, elements=tuple(elements))

    @staticmethod
    def maximal(device: int) -> Sharding:
        """Everything on one device."""
        return Sharding(ShardingKind.MAXIMAL, TileAssignment((1,), (device,)))

    @staticmethod
    def of_mesh(named: NamedSharding) -> Sharding:
        """A sharding by mesh axes."""
        return Sharding(ShardingKind.NAMED, named=named)

    @property
    def device(self) -> int | None:
        """The one device of a maximal sharding; None for others."""
        if self.named is not None:
            return self.named.mesh.maximal_device
        if self.kind is ShardingKind.MAXIMAL and self.tiles is not None:
            return self.tiles.ids()[0]
        return None

    @property
    def data_tiles(self) -> tuple[int, ...]:
        """Number of tiles along every dimension of the value; `()` when it is not tiled."""
        if self.tiles is None or self.kind is not ShardingKind.TILED:
            return ()
        extra = len(self.subgroups) + self.replicate_on_last_tile_dim
        return self.tiles.dimensions[: len(self.tiles.dimensions) - extra]

    # -------------------------------------------------------------- meaning

    def to_v2(self) -> Sharding:
        """The same sharding by tiles instead of mesh axes; others are returned as they are."""
        if self.kind is ShardingKind.TUPLE:
            return replace(self, elements=tuple(e.to_v2() for e in self.elements))
        named = self.named
        if named is None:
            return self
        if named.mesh.maximal_device is not None:
            found = Sharding.maximal(named.mesh.maximal_device)
        else:
            extra = [
                (kind, axes)
                for kind, axes in (
                    (ShardingKind.MANUAL, named.manual),
                    (ShardingKind.UNREDUCED, named.unreduced),
                )
                if axes
            ]
            groups = [dim.axes for dim in named.dimensions] + [axes for _, axes in extra]
            grid, copies = grid_by_axes(named.mesh, groups)
            kinds = [kind for kind, _ in extra]
            if copies > 1 or not kinds:
                kinds.append(ShardingKind.REPLICATED)
            else:
                grid = grid.reshape(grid.dimensions[:-1])
            found = subgrouped(grid, kinds)
        return replace(found, shard_group=self.shard_group, metadata=self.metadata)

    def tile_sizes(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Sizes of one (full) tile of an array of `sizes`: sizes over tiles, rounded up."""
        tiles = self.to_v2().data_tiles
        if not tiles:
            return tuple(sizes)
        return tuple(-(-size // count) for size, count in zip(sizes, tiles, strict=True))

    def tile_of_device(self, device: int) -> tuple[int, ...] | None:
        """Grid position of a device's tile; None when the device has none.

        `()` for shardings that are not tiled and give the device the whole value.
        """
        sharding = self.to_v2()
        if sharding.tiles is None:
            return ()
        try:
            place = sharding.tiles.ids().index(device)
        except ValueError:
            return None
        if sharding.kind is ShardingKind.MAXIMAL:
            return ()
        position: list[int] = []
        for size in reversed(sharding.tiles.dimensions):
            place, index = divmod(place, size)
            position.insert(0, index)
        return tuple(position[: len(sharding.data_tiles)])

    def tile_bounds(self, sizes: Sequence[int], device: int) -> tuple[tuple[int, int], ...] | None:
        """Start and limit in every dimension of the part of an array that `device` has.

        The last tiles may be short or empty. None when the device has nothing.
        """
        position = self.tile_of_device(device)
        if position is None:
            return None
        if not position:
            return tuple((0, size) for size in sizes)
        tile = self.tile_sizes(sizes)
        return tuple(
            (min(index * part, size), min((index + 1) * part, size))
            for index, part, size in zip(position, tile, sizes, strict=True)
        )

    def expanded(self, leaf_count: int) -> Sharding:
        """The sharding of a tuple with so many leaves: a single sharding goes to every leaf."""
        if self.kind is ShardingKind.TUPLE:
            return self
        return Sharding.tuple_of([self] * leaf_count)

    # -------------------------------------------------------------- text

    def to_text(self, metadata: bool = True) -> str:
        """XLA's text, with or without metadata."""
        if self.kind is ShardingKind.TUPLE:
            parts = [
                (f"/*index={index}*/" if index and index % 5 == 0 else "")
                + element.to_text(metadata)
                for index, element in enumerate(self.elements)
            ]
            return "{" + ", ".join(parts) + "}"
        if self.named is not None:
            text = str(self.named)
            if metadata and self.metadata:
                text += f", metadata={{{', '.join(map(str, self.metadata))}}}"
            return "{" + text + "}"
        words = [self._head()]
        if self.replicate_on_last_tile_dim:
            words.append("last_tile_dim_replicate")
        if self.subgroups:
            words.append(f"last_tile_dims={{{', '.join(k.value for k in self.subgroups)}}}")
        if self.shard_group is not None:
            words.append(str(self.shard_group))
        if metadata and self.metadata:
            text = ", ".join(map(str, self.metadata))
            words.append(f"metadata={text}" if len(self.metadata) == 1 else f"metadata={{{text}}}")
        return "{" + " ".join(words) + "}"

    def _head(self) -> str:
        if self.kind is ShardingKind.MAXIMAL:
            return f"maximal device={self.device}"
        return f"devices={self.tiles}" if self.kind is ShardingKind.TILED else self.kind.value

    def __str__(self) -> str:
        return self.to_text()


REPLICATED = Sharding(ShardingKind.REPLICATED)
MANUAL = Sharding(ShardingKind.MANUAL)
UNKNOWN = Sharding(ShardingKind.UNKNOWN)
UNREDUCED = Sharding(ShardingKind.UNREDUCED)
WHOLE = {
    ShardingKind.REPLICATED: REPLICATED,
    ShardingKind.MANUAL: MANUAL,
    ShardingKind.UNREDUCED: UNREDUCED,
}
"""Shardings that a kind of subgroup collapses to."""

# ---------------------------------------------------------------- normal forms


def tiled(tiles: TileAssignment) -> Sharding:
    """Every dimension of the grid is a dimension of the value."""
    return Sharding(ShardingKind.TILED, tiles)


def partial_tile(tiles: TileAssignment) -> Sharding:
    """The last grid dimension replicates; devices of a replication group are sorted."""
    *data, copies = tiles.dimensions
    if math.prod(data) == 1:
        return REPLICATED
    if copies == 1:
        return tiled(tiles.reshape(data))
    return Sharding(
        ShardingKind.TILED, tiles.sorted_groups(copies), replicate_on_last_tile_dim=True
    )


def subgrouped(tiles: TileAssignment, kinds: Sequence[ShardingKind]) -> Sharding:
    """The last grid dimensions are subgroups of `kinds`: size 1 dropped, equal kinds merged, in
    canonical order, collapsed to one word where the value itself is not cut.
    """
    rank = len(tiles.dimensions) - len(kinds)
    data = tiles.dimensions[:rank]
    if not kinds:
        return tiled(tiles)
    if math.prod(data) == 1 and len(set(kinds)) == 1 and kinds[0] in WHOLE:
        return WHOLE[kinds[0]]
    members: dict[ShardingKind, list[int]] = {}
    for offset, kind in enumerate(kinds):
        if tiles.dimensions[rank + offset] != 1:
            members.setdefault(kind, []).append(rank + offset)
    order = sorted(members, key=SUBGROUP_ORDER.index)
    permutation = [*range(rank), *(dim for kind in order for dim in members[kind])]
    trivial = [dim for dim in range(len(tiles.dimensions)) if dim not in permutation]
    sizes = [math.prod(tiles.dimensions[dim] for dim in members[kind]) for kind in order]
    merged = tiles.transpose([*permutation, *trivial]).reshape((*data, *sizes))
    if not order:
        return tiled(merged) if data else REPLICATED
    if order == [ShardingKind.REPLICATED]:
        return partial_tile(merged)
    if math.prod(data) == 1 and order == [ShardingKind.MANUAL]:
        return MANUAL  # XLA does not collapse a lone `unreduced` here, only above
    if order[-1] is ShardingKind.REPLICATED:
        merged = merged.sorted_groups(sizes[-1])
    return Sharding(ShardingKind.TILED, merged, subgroups=tuple(order))
