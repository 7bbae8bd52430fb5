"""Reading of shardings, and the attribute that holds one. Values are in `sharding_values`.

Source of the syntax: HLO text, "Shardings".
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.irdl import irdl_attr_definition

from mlirhlo.dialects.hlo.attributes.annotations import Metadata, read_metadata
from mlirhlo.dialects.hlo.attributes.base import TextAttr
from mlirhlo.dialects.hlo.attributes.devices import (
    MOST_DEVICES,
    Iota,
    TileAssignment,
    read_tiles,
)
from mlirhlo.dialects.hlo.attributes.mesh import (
    AxisRef,
    Mesh,
    at_mesh,
    check_disjoint,
    read_axis,
    read_mesh,
)
from mlirhlo.dialects.hlo.attributes.sharding_values import (
    MANUAL,
    REPLICATED,
    SUBGROUP_ORDER,
    UNKNOWN,
    UNREDUCED,
    WHOLE,
    DimensionSharding,
    NamedSharding,
    ShardGroup,
    Sharding,
    ShardingKind,
    partial_tile,
    subgrouped,
    tiled,
)
from mlirhlo.dialects.hlo.syntax import Cursor, SyntaxProblem

__all__ = [
    "MANUAL",
    "REPLICATED",
    "UNKNOWN",
    "UNREDUCED",
    "DimensionSharding",
    "NamedSharding",
    "ShardGroup",
    "Sharding",
    "ShardingAttr",
    "ShardingKind",
    "partial_tile",
    "read_sharding",
    "subgrouped",
    "tiled",
]

_WORDS = {
    k.value: k
    for k in (
        ShardingKind.REPLICATED,
        ShardingKind.MANUAL,
        ShardingKind.UNKNOWN,
        ShardingKind.UNREDUCED,
        ShardingKind.MAXIMAL,
    )
}


def read_sharding(cursor: Cursor) -> Sharding:
    """Reads `{…}`: one sharding or a tuple of them. Raises `SyntaxProblem`."""
    start = cursor.skip()
    cursor.expect("{")
    if cursor.peek("{") or cursor.peek("}"):
        cursor.position = start
        return Sharding.tuple_of(cursor.items("{", "}", lambda: _read_single(cursor)))
    cursor.position = start
    return _read_single(cursor)


def _read_single(cursor: Cursor) -> Sharding:
    start = cursor.skip()
    cursor.expect("{")
    if at_mesh(cursor):
        return _read_named(cursor, start)
    kind: ShardingKind | None = None
    device: int | None = None
    tiles: TileAssignment | None = None
    replicate, kinds = False, None
    group: ShardGroup | None = None
    metadata: tuple[Metadata, ...] = ()
    while not cursor.accept("}"):
        at = cursor.skip()
        word = cursor.peek_word()
        if word is None:
            raise cursor.problem("unexpected token")
        cursor.word()
        if word in _WORDS:
            if kind is not None:
                raise SyntaxProblem(
                    at, f"a sharding cannot be both {kind.value} and {word}", len(word)
                )
            kind = _WORDS[word]
        elif word == "last_tile_dim_replicate":
            replicate = True
        elif word in ("shard_as", "shard_like"):
            group = ShardGroup(cursor.integer(), word == "shard_like")
        elif word == "device":
            cursor.expect("=")
            device = cursor.integer()
        elif word == "devices":
            cursor.expect("=")
            tiles = read_tiles(cursor)
        elif word == "last_tile_dims":
            cursor.expect("=")
            kinds = cursor.items("{", "}", lambda: _read_subgroup(cursor))
        elif word == "metadata":
            cursor.expect("=")
            metadata = _read_metadata_list(cursor)
        else:
            raise SyntaxProblem(at, f"unexpected word in a sharding: {word!r}", len(word))
    found = _build(cursor, start, kind, device, tiles, replicate, kinds)
    if group is not None or metadata:
        found = replace(found, shard_group=group, metadata=metadata)
    return found


def _read_subgroup(cursor: Cursor) -> ShardingKind:
    at = cursor.skip()
    word = cursor.word("manual, replicated, maximal or unreduced")
    kind = _WORDS.get(word)
    if kind not in SUBGROUP_ORDER:
        raise SyntaxProblem(
            at, f"expects manual, replicated, maximal or unreduced, found {word!r}", len(word)
        )
    return kind


def _read_metadata_list(cursor: Cursor) -> tuple[Metadata, ...]:
    start = cursor.skip()
    cursor.expect("{")
    is_list = cursor.peek("{")
    cursor.position = start
    if is_list:
        return cursor.items("{", "}", lambda: read_metadata(cursor))
    return (read_metadata(cursor),)


def _build(
    cursor: Cursor,
    start: int,
    kind: ShardingKind | None,
    device: int | None,
    tiles: TileAssignment | None,
    replicate: bool,
    kinds: tuple[ShardingKind, ...] | None,
) -> Sharding:
    def wrong(message: str) -> SyntaxProblem:
        return SyntaxProblem(start, message, cursor.position - start)

    if kind is ShardingKind.MAXIMAL:
        if device is None or tiles is not None:
            raise wrong("maximal shardings should have exactly one device assigned")
        return Sharding.maximal(device)
    if kind is not None:
        if device is not None or tiles is not None:
            raise wrong(f"{kind.value} shardings should not have any devices assigned")
        return UNKNOWN if kind is ShardingKind.UNKNOWN else WHOLE[kind]
    if tiles is None or device is not None:
        raise wrong("non-maximal shardings must have a tile assignment list including dimensions")
    if not isinstance(tiles.order, Iota) and tiles.size < 2:
        raise wrong("non-maximal shardings must have more than one device assigned")
    if tiles.size > MOST_DEVICES:
        raise wrong(f"a sharding over {tiles.size} devices is too large")
    if replicate:
        return partial_tile(tiles)
    if kinds:
        if len(kinds) > len(tiles.dimensions):
            raise wrong(f"{len(kinds)} last_tile_dims for a grid of rank {len(tiles.dimensions)}")
        return subgrouped(tiles, kinds)
    return tiled(tiles)


def _read_named(cursor: Cursor, start: int) -> Sharding:
    mesh = read_mesh(cursor)
    dimensions: tuple[DimensionSharding, ...] = ()
    lists: dict[str, tuple[AxisRef, ...]] = {}
    metadata: tuple[Metadata, ...] = ()
    reduction_op = ""

    def axis() -> AxisRef:
        return read_axis(cursor, mesh)

    has_dimensions = False
    if mesh.maximal_device is None:
        cursor.accept(",")  # XLA reads meshes with and without it, and prints it
        has_dimensions = cursor.peek("[")
        if has_dimensions:
            dimensions = cursor.items("[", "]", lambda: _read_dimension(cursor, mesh))
        elif (word := cursor.peek_word()) in ("replicated", "manual", "unreduced"):
            cursor.word()
            if word != "replicated":
                lists[word] = tuple(map(AxisRef, mesh.names))
        else:
            raise cursor.problem("expects a list of dimensions, replicated, manual or unreduced")
    while not cursor.accept("}"):
        cursor.expect(",")
        at = cursor.skip()
        key = cursor.word("an attribute name")
        cursor.expect("=")
        if key == "metadata":
            metadata = _read_metadata_list(cursor)
        elif key == "reduction_op":
            reduction_op = cursor.word()
        elif key in ("replicated", "unreduced", "manual") and has_dimensions:
            if key in lists:
                raise SyntaxProblem(at, f"attribute {key} already exists", len(key))
            lists[key] = cursor.items("{", "}", axis)
        else:
            raise SyntaxProblem(
                at,
                f'unexpected attribute "{key}". '
                "Allowed attributes: manual, metadata, replicated, unreduced",
                len(key),
            )
    named = NamedSharding(
        mesh,
        dimensions,
        lists.get("replicated", ()),
        lists.get("unreduced", ()),
        lists.get("manual", ()),
        reduction_op,
    )
    axes = [a for dim in dimensions for a in dim.axes]
    check_disjoint(cursor, start, mesh, [*axes, *named.replicated, *named.unreduced, *named.manual])
    return Sharding(ShardingKind.NAMED, named=named, metadata=metadata)


def _read_dimension(cursor: Cursor, mesh: Mesh) -> DimensionSharding:
    axes: list[AxisRef] = []
    cursor.expect("{")
    while not cursor.accept("}"):
        if axes:
            cursor.expect(",")
        if cursor.accept("?"):
            cursor.expect("}")
            return DimensionSharding(tuple(axes), is_closed=False)
        axes.append(read_axis(cursor, mesh))
    return DimensionSharding(tuple(axes))


@irdl_attr_definition
class ShardingAttr(TextAttr[Sharding]):
    """A `Sharding`."""

    name = "hlo.sharding"
    read = read_sharding
