"""Shardings, meshes and device groups, to and from their messages.

Older forms of groups are read: field 49 of the instruction, and the iota form inside
CollectiveDeviceListProto. Source: HLO protobuf reference, "OpSharding".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from mlirhlo.dialects.hlo.attributes.annotations import Metadata
from mlirhlo.dialects.hlo.attributes.devices import MOST_DEVICES, Iota, Order, TileAssignment
from mlirhlo.dialects.hlo.attributes.groups import IotaGroups, MeshGroups, ReplicaGroups
from mlirhlo.dialects.hlo.attributes.mesh import AxisRef, Mesh
from mlirhlo.dialects.hlo.attributes.sharding import (
    DimensionSharding,
    NamedSharding,
    ShardGroup,
    Sharding,
    ShardingKind,
    partial_tile,
    subgrouped,
    tiled,
)
from mlirhlo.formats.proto.annotations import metadata_of
from mlirhlo.formats.proto.message import (
    DecodeProblem,
    bytes_field,
    number_field,
    numbers_field,
    text_field,
)
from mlirhlo.formats.proto.metadata_pb2 import OpMetadata
from mlirhlo.formats.proto.sharding_pb2 import (
    AxisRefProto,
    CollectiveDeviceListProto,
    IotaReplicaGroupListProto,
    MeshAxesReplicaGroupListProto,
    MeshProto,
    NamedShardingProto,
    OpSharding,
)

MetadataBytes = Callable[[Metadata], bytes]
"""Writes metadata; the encoder knows the module's payload table."""

_KINDS = (
    ShardingKind.REPLICATED,
    ShardingKind.MAXIMAL,
    ShardingKind.TUPLE,
    ShardingKind.TILED,
    ShardingKind.MANUAL,
    ShardingKind.UNKNOWN,
    ShardingKind.UNREDUCED,
)
"""In the order of OpSharding.Type."""

_SUBGROUPS = frozenset(
    {ShardingKind.REPLICATED, ShardingKind.MAXIMAL, ShardingKind.MANUAL, ShardingKind.UNREDUCED}
)
_REDUCTIONS = ("", "MAX", "MIN")


def _problem(message: str) -> DecodeProblem:
    return DecodeProblem("HLO0215", f"sharding: {message}")


def _kind(number: int) -> ShardingKind:
    if not 0 <= number < len(_KINDS):
        raise _problem(f"{number} is not a type")
    return _KINDS[number]


# Shardings --------------------------------------------------------------------------------


def decode_sharding(proto: OpSharding, payloads: Sequence[bytes] = ()) -> Sharding:
    """The sharding of a message. Raises `DecodeProblem` HLO0215."""
    if proto.HasField("named_sharding"):
        named = proto.named_sharding
        return Sharding(
            ShardingKind.NAMED,
            named=_decode_named(named),
            metadata=_metadata(named.metadata, payloads),
        )
    kind = _kind(proto.type)
    group = None
    if proto.is_shard_group:
        group = ShardGroup(proto.shard_group_id, proto.shard_group_type == OpSharding.LIKE)
    metadata = _metadata(proto.metadata, payloads)
    match kind:
        case ShardingKind.TUPLE:
            elements = tuple(decode_sharding(part, payloads) for part in proto.tuple_shardings)
            return Sharding(kind, elements=elements)
        case ShardingKind.MAXIMAL:
            if len(proto.tile_assignment_devices) > 1:
                raise _problem("a maximal sharding has exactly one device")
            # Device 0 as an iota of one was written for a while.
            device = proto.tile_assignment_devices[0] if proto.tile_assignment_devices else 0
            found = Sharding.maximal(device)
        case ShardingKind.TILED:
            found = _decode_tiled(proto)
        case _:
            found = Sharding(kind)
    if group is None and not metadata:
        return found
    return Sharding(
        found.kind,
        found.tiles,
        found.replicate_on_last_tile_dim,
        found.subgroups,
        shard_group=group,
        metadata=metadata,
    )


def _metadata(protos: Sequence[OpMetadata], payloads: Sequence[bytes]) -> tuple[Metadata, ...]:
    return tuple(metadata_of(proto, payloads, may_be_newer=True) for proto in protos)


def _decode_tiled(proto: OpSharding) -> Sharding:
    dimensions = tuple(proto.tile_assignment_dimensions)
    if not dimensions or any(size < 1 for size in dimensions):
        raise _problem("tile dimensions are positive")
    count = math.prod(dimensions)
    devices = tuple(proto.tile_assignment_devices)
    order: Order = devices
    given = len(devices)
    if proto.iota_reshape_dims:
        order = _iota(proto.iota_reshape_dims, proto.iota_transpose_perm)
        given = order.size
    if given != count or count > MOST_DEVICES:
        raise _problem(f"a grid of {count} tiles cannot take {given} devices")
    tiles = TileAssignment(dimensions, order)
    if proto.replicate_on_last_tile_dim:
        return partial_tile(tiles)
    kinds = [_kind(number) for number in proto.last_tile_dims]
    if not kinds:
        return tiled(tiles)
    if len(kinds) > len(dimensions) or not _SUBGROUPS.issuperset(kinds):
        raise _problem(f"{len(kinds)} last_tile_dims do not fit a grid of rank {len(dimensions)}")
    return subgrouped(tiles, kinds)


def _iota(reshape: Sequence[int], permutation: Sequence[int]) -> Iota:
    order = list(permutation) or list(range(len(reshape)))
    if any(size < 1 for size in reshape) or sorted(order) != list(range(len(reshape))):
        raise _problem(
            f"[{','.join(map(str, reshape))}]T({','.join(map(str, permutation))}) is no order of devices"
        )
    if math.prod(reshape) > MOST_DEVICES:
        raise _problem(f"{math.prod(reshape)} devices are too many")
    return Iota.of(list(reshape), order)


def sharding_bytes(sharding: Sharding, metadata_bytes: MetadataBytes) -> bytes:
    """A serialised OpSharding."""
    if sharding.named is not None:
        return bytes_field(14, _named_bytes(sharding, sharding.named, metadata_bytes))
    parts = [number_field(1, _KINDS.index(sharding.kind))]
    tiles = sharding.tiles
    if sharding.kind is ShardingKind.MAXIMAL:
        parts.append(numbers_field(4, tiles.ids() if tiles is not None else ()))
    elif tiles is not None:
        parts.append(numbers_field(3, tiles.dimensions))
        if not isinstance(tiles.order, Iota):
            parts.append(numbers_field(4, tiles.order))
    parts += [bytes_field(5, sharding_bytes(e, metadata_bytes)) for e in sharding.elements]
    parts.append(number_field(6, int(sharding.replicate_on_last_tile_dim)))
    parts += [bytes_field(7, metadata_bytes(metadata)) for metadata in sharding.metadata]
    parts.append(numbers_field(8, [_KINDS.index(kind) for kind in sharding.subgroups]))
    if tiles is not None and isinstance(tiles.order, Iota):
        parts.append(numbers_field(9, tiles.order.reshape))
        parts.append(numbers_field(10, tiles.order.permutation))
    if sharding.shard_group is not None:
        parts.append(number_field(11, 1))
        parts.append(number_field(12, sharding.shard_group.id))
        parts.append(number_field(13, int(sharding.shard_group.is_like)))
    return b"".join(parts)


def _decode_named(proto: NamedShardingProto) -> NamedSharding:
    mesh = decode_mesh(proto.mesh)

    def axes(found: Sequence[AxisRefProto]) -> tuple[AxisRef, ...]:
        return tuple(_decode_axis(axis, mesh) for axis in found)

    if not 0 <= proto.reduction_op < len(_REDUCTIONS):
        raise _problem(f"{int(proto.reduction_op)} is not a reduction")
    return NamedSharding(
        mesh,
        tuple(DimensionSharding(axes(dim.axes), dim.is_closed) for dim in proto.dim_shardings),
        axes(proto.replicated_axes),
        axes(proto.unreduced_axes),
        axes(proto.manual_axes),
        _REDUCTIONS[proto.reduction_op],
    )


def _named_bytes(sharding: Sharding, named: NamedSharding, metadata_bytes: MetadataBytes) -> bytes:
    index = {name: position for position, name in enumerate(named.mesh.names)}

    def axes(number: int, found: Sequence[AxisRef]) -> list[bytes]:
        return [bytes_field(number, _axis_bytes(axis, index)) for axis in found]

    parts = [bytes_field(2, mesh_bytes(named.mesh))]
    for dim in named.dimensions:
        closed = number_field(2, int(dim.is_closed))
        parts.append(bytes_field(3, b"".join(axes(1, dim.axes)) + closed))
    parts += axes(4, named.replicated)
    parts += axes(5, named.unreduced)
    parts += [bytes_field(6, metadata_bytes(metadata)) for metadata in sharding.metadata]
    parts += axes(7, named.manual)
    parts.append(number_field(8, _REDUCTIONS.index(named.reduction_op)))
    return b"".join(parts)


# Meshes -----------------------------------------------------------------------------------


def decode_mesh(proto: MeshProto) -> Mesh:
    """The mesh of a message. Raises `DecodeProblem` HLO0215."""
    if not proto.axes and len(proto.device_ids) == 1:
        return Mesh((), None, proto.device_ids[0])
    axes = tuple((axis.name, axis.size) for axis in proto.axes)
    if any(size < 1 for _, size in axes) or len({name for name, _ in axes}) != len(axes):
        raise _problem("a mesh needs axes of different names and positive sizes")
    devices = tuple(proto.device_ids)
    order: Order | None = devices or None
    given = len(devices) if devices else None
    if proto.HasField("iota_transform"):
        transform = proto.iota_transform
        order = _iota(transform.reshape_dims, transform.transpose_perm)
        given = order.size
    mesh = Mesh(axes, order)
    if (given is not None and given != mesh.size) or mesh.size > MOST_DEVICES:
        raise _problem(f"a mesh of {mesh.size} devices cannot take {given}")
    return mesh


def mesh_bytes(mesh: Mesh) -> bytes:
    """A serialised MeshProto."""
    parts = [bytes_field(1, text_field(1, n) + number_field(2, s)) for n, s in mesh.axes]
    if mesh.maximal_device is not None:
        parts.append(numbers_field(2, [mesh.maximal_device]))
    elif isinstance(mesh.order, Iota):
        transform = numbers_field(1, mesh.order.reshape) + numbers_field(2, mesh.order.permutation)
        parts.append(bytes_field(3, transform))
    elif mesh.order is not None:
        parts.append(numbers_field(2, mesh.order))
    return b"".join(parts)


def _decode_axis(proto: AxisRefProto, mesh: Mesh) -> AxisRef:
    if not 0 <= proto.mesh_axis_index < len(mesh.axes):
        raise _problem(f"axis {proto.mesh_axis_index} is not one of the mesh's {len(mesh.axes)}")
    name, whole = mesh.axes[proto.mesh_axis_index]
    if not proto.HasField("sub_axis_info"):
        return AxisRef(name)
    part = proto.sub_axis_info
    if part.pre_size < 1 or part.size < 1 or whole % (part.pre_size * part.size):
        raise _problem(f"'{name}':({part.pre_size}){part.size} does not divide an axis of {whole}")
    return AxisRef(name, part.pre_size, part.size)


def _axis_bytes(axis: AxisRef, index: dict[str, int]) -> bytes:
    part = b""
    if axis.pre_size:
        part = bytes_field(2, number_field(1, axis.pre_size) + number_field(2, axis.size))
    return number_field(1, index[axis.name]) + part


# Groups -----------------------------------------------------------------------------------

LISTS, IOTA, MESH = 87, 92, 93
"""Fields of the instruction that hold the three forms of device groups."""


def groups_of_lists(data: bytes) -> ReplicaGroups:
    """Groups of a serialised CollectiveDeviceListProto. Raises `DecodeProblem` HLO0215."""
    proto = CollectiveDeviceListProto.FromString(data)
    if proto.HasField("iota_replica_group_list"):
        return _groups_of_iota(proto.iota_replica_group_list)
    return ReplicaGroups.of(group.replica_ids for group in proto.replica_groups)


def groups_of_iota(data: bytes) -> ReplicaGroups:
    """Groups of a serialised IotaReplicaGroupListProto. Raises `DecodeProblem` HLO0215."""
    return _groups_of_iota(IotaReplicaGroupListProto.FromString(data))


def _groups_of_iota(proto: IotaReplicaGroupListProto) -> ReplicaGroups:
    count, size = proto.num_replica_groups, proto.num_devices_per_group
    iota = _iota(proto.iota_reshape_dims, proto.iota_transpose_perm)
    if count < 0 or size < 0 or count * size != iota.size:
        raise _problem(f"{count} groups of {size} cannot be made of {iota.size} devices")
    return ReplicaGroups(IotaGroups(count, size, iota))


def groups_of_mesh(data: bytes) -> ReplicaGroups:
    """Groups of a serialised MeshAxesReplicaGroupListProto. Raises `DecodeProblem` HLO0215."""
    proto = MeshAxesReplicaGroupListProto.FromString(data)
    mesh = decode_mesh(proto.mesh)
    return ReplicaGroups(MeshGroups(mesh, tuple(_decode_axis(axis, mesh) for axis in proto.axes)))


def groups_field(groups: ReplicaGroups) -> tuple[int, bytes]:
    """Number and payload of the instruction's field for these groups."""
    form = groups.form
    match form:
        case IotaGroups():
            data = number_field(1, form.group_count) + number_field(2, form.group_size)
            data += numbers_field(3, form.iota.reshape) + numbers_field(4, form.iota.permutation)
            return IOTA, data
        case MeshGroups():
            index = {name: position for position, name in enumerate(form.mesh.names)}
            axes = [bytes_field(2, _axis_bytes(axis, index)) for axis in form.axes]
            return MESH, bytes_field(1, mesh_bytes(form.mesh)) + b"".join(axes)
        case _:
            return LISTS, b"".join(bytes_field(1, numbers_field(1, group)) for group in form)
