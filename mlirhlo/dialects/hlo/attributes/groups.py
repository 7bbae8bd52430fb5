"""Replica groups in the three forms of HLO text; the form is kept.

Source of the syntax: HLO text, "Attribute value syntaxes".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.irdl import irdl_attr_definition

from mlirhlo.dialects.hlo.attributes.base import TextAttr
from mlirhlo.dialects.hlo.attributes.devices import MOST_DEVICES, Iota, read_iota_dimensions
from mlirhlo.dialects.hlo.attributes.mesh import (
    AxisRef,
    Mesh,
    at_mesh,
    check_disjoint,
    grid_by_axes,
    read_axis,
    read_mesh,
)
from mlirhlo.dialects.hlo.syntax import Cursor, SyntaxProblem

Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class IotaGroups:
    """`[2,4]<=[4,2]T(1,0)`: so many groups of so many devices, filled from an iota."""

    group_count: int
    group_size: int
    iota: Iota

    def __str__(self) -> str:
        return f"[{self.group_count},{self.group_size}]<={self.iota}"


@dataclass(frozen=True, slots=True)
class MeshGroups:
    """`mesh['x'=2,'y'=2] {'x'}`: devices that differ only along these axes are a group."""

    mesh: Mesh
    axes: tuple[AxisRef, ...]

    def __str__(self) -> str:
        return f"{self.mesh} {{{','.join(map(str, self.axes))}}}"


@dataclass(frozen=True, slots=True)
class ReplicaGroups:
    """Which devices a collective joins. No group at all means: all devices are one group."""

    form: Groups | IotaGroups | MeshGroups = ()

    @staticmethod
    def of(groups: Iterable[Iterable[int]]) -> ReplicaGroups:
        """From explicit lists."""
        return ReplicaGroups(tuple(tuple(group) for group in groups))

    def groups(self) -> Groups:
        """Every group's devices, in order."""
        match self.form:
            case IotaGroups(group_count=count, group_size=size, iota=iota):
                ids = iota.ids()
                return tuple(ids[k * size : (k + 1) * size] for k in range(count))
            case MeshGroups(mesh=mesh, axes=axes):
                grid, _ = grid_by_axes(mesh, [axes])
                size, count = grid.dimensions
                ids = grid.transpose((1, 0)).ids()
                return tuple(ids[k * size : (k + 1) * size] for k in range(count))
            case groups:
                return groups

    @property
    def group_count(self) -> int:
        """Number of groups."""
        return self.form.group_count if isinstance(self.form, IotaGroups) else len(self.groups())

    @property
    def group_size(self) -> int | None:
        """Devices in every group; None when there is no group or they differ."""
        if isinstance(self.form, IotaGroups):
            return self.form.group_size
        sizes = {len(group) for group in self.groups()}
        return sizes.pop() if len(sizes) == 1 else None

    def expanded(self) -> ReplicaGroups:
        """The same groups as explicit lists."""
        return ReplicaGroups(self.groups())

    def __str__(self) -> str:
        if isinstance(self.form, tuple):
            return "{" + ",".join("{" + ",".join(map(str, g)) + "}" for g in self.form) + "}"
        return str(self.form)


def read_replica_groups(cursor: Cursor) -> ReplicaGroups:
    """Reads any of the three forms. Raises `SyntaxProblem`."""
    if cursor.peek("["):
        return ReplicaGroups(_read_iota(cursor))
    if at_mesh(cursor):
        return ReplicaGroups(_read_mesh_groups(cursor))
    return ReplicaGroups(cursor.items("{", "}", cursor.integers))


def _read_iota(cursor: Cursor) -> IotaGroups:
    start = cursor.skip()
    grid = cursor.integers("[", "]")
    if len(grid) != 2 or min(grid) < 0:
        raise SyntaxProblem(
            start, "replica groups have two dimensions, [groups,devices]", cursor.position - start
        )
    cursor.expect("<=")
    iota = Iota.of(*read_iota_dimensions(cursor))
    if grid[0] * grid[1] != iota.size or iota.size > MOST_DEVICES:
        raise SyntaxProblem(
            start,
            f"{grid[0]} groups of {grid[1]} devices cannot be made of {iota.size} devices",
            cursor.position - start,
        )
    return IotaGroups(grid[0], grid[1], iota)


def _read_mesh_groups(cursor: Cursor) -> MeshGroups:
    start = cursor.skip()
    mesh = read_mesh(cursor)
    cursor.accept(",")
    axes = cursor.items("{", "}", lambda: read_axis(cursor, mesh))
    check_disjoint(cursor, start, mesh, axes)
    size = 1
    for axis in axes:
        size *= axis.size_in(mesh)
    if size < 2:
        raise SyntaxProblem(
            start,
            f"MeshAxesReplicaGroupList must have more than one device per group, but got {size}",
            cursor.position - start,
        )
    return MeshGroups(mesh, axes)


@irdl_attr_definition
class ReplicaGroupsAttr(TextAttr[ReplicaGroups]):
    """A `ReplicaGroups`."""

    name = "hlo.replica_groups"
    read = read_replica_groups
