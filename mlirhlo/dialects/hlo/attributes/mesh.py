"""Meshes of devices and references to their axes; shared by named shardings and replica groups.

Source of the syntax: HLO text, "Named (mesh/axis) shardings".
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from mlirhlo.dialects.hlo.attributes.devices import (
    MOST_DEVICES,
    Iota,
    Order,
    TileAssignment,
    read_iota_dimensions,
)
from mlirhlo.dialects.hlo.syntax import Cursor, SyntaxProblem


def quote_axis(name: str) -> str:
    """An axis name as XLA prints it: in single quotes, otherwise as it is."""
    return "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"


@dataclass(frozen=True, slots=True)
class Mesh:
    """`mesh['x'=2,'y'=4], device_ids=([4,2]T(1,0))`, or `maximal_mesh[device_id=3]`."""

    axes: tuple[tuple[str, int], ...]
    """Names and sizes, major first."""
    order: Order | None = None
    """Devices in the order of the axes; None = 0, 1, 2, …"""
    maximal_device: int | None = None
    """The only device of a maximal mesh, which has no axes."""

    @property
    def size(self) -> int:
        """Number of devices."""
        return math.prod(size for _, size in self.axes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Axis sizes."""
        return tuple(size for _, size in self.axes)

    @property
    def names(self) -> tuple[str, ...]:
        """Axis names."""
        return tuple(name for name, _ in self.axes)

    @property
    def tiles(self) -> TileAssignment:
        """The devices as a grid of the axes."""
        return TileAssignment(
            self.sizes, Iota.of((self.size,)) if self.order is None else self.order
        )

    def __str__(self) -> str:
        if self.maximal_device is not None:
            return f"maximal_mesh[device_id={self.maximal_device}]"
        text = "mesh[" + ",".join(f"{quote_axis(n)}={s}" for n, s in self.axes) + "]"
        if isinstance(self.order, Iota):
            return f"{text}, device_ids=({self.order})"
        if self.order is not None:
            return f"{text}, device_ids=({','.join(map(str, self.order))})"
        return text


@dataclass(frozen=True, slots=True)
class AxisRef:
    """`'x'`, or the part `'x':(pre_size)size` of an axis."""

    name: str
    pre_size: int = 0
    """Product of the sizes of the parts more major than this one; 0 = the whole axis."""
    size: int = 0

    def __str__(self) -> str:
        text = quote_axis(self.name)
        return f"{text}:({self.pre_size}){self.size}" if self.pre_size else text

    def size_in(self, mesh: Mesh) -> int:
        """Number of devices along it."""
        return self.size if self.pre_size else dict(mesh.axes)[self.name]


def grid_by_axes(mesh: Mesh, groups: Sequence[Sequence[AxisRef]]) -> tuple[TileAssignment, int]:
    """The mesh as a grid with one dimension for each group of axes and, last, one for all that no
    group names; with the size of that last dimension.
    """
    cuts = {name: {1, size} for name, size in mesh.axes}
    for axis in (axis for group in groups for axis in group):
        if axis.pre_size:
            cuts[axis.name] |= {axis.pre_size, axis.pre_size * axis.size}
    sizes: list[int] = []
    place: dict[tuple[str, int], int] = {}
    spans: dict[str, list[int]] = {}
    for name, _ in mesh.axes:
        bounds = spans[name] = sorted(cuts[name])
        for low, high in itertools.pairwise(bounds):
            place[name, low] = len(sizes)
            sizes.append(high // low)
    permutation: list[int] = []
    dimensions: list[int] = []
    for group in groups:
        pieces: list[int] = []
        for axis in group:
            low = axis.pre_size or 1
            high = low * axis.size_in(mesh)
            pieces += [place[axis.name, p] for p in spans[axis.name] if low <= p < high]
        permutation += pieces
        dimensions.append(math.prod(sizes[p] for p in pieces))
    taken = set(permutation)
    rest = [p for p in range(len(sizes)) if p not in taken]
    last = math.prod(sizes[p] for p in rest)
    grid = mesh.tiles.reshape(sizes or (1,))
    if sizes:
        grid = grid.transpose([*permutation, *rest])
    return grid.reshape((*dimensions, last)), last


# ---------------------------------------------------------------- reading


def at_mesh(cursor: Cursor) -> bool:
    """Whether a mesh comes next."""
    return cursor.peek("mesh[") or cursor.peek("maximal_mesh[")


def _read_axis_name(cursor: Cursor) -> str:
    if cursor.peek("'") or cursor.peek('"'):
        return cursor.string()
    if cursor.peek_word() is None:
        raise cursor.problem("expects string")
    return cursor.word()  # bare names were printed in early 2026


def read_mesh(cursor: Cursor) -> Mesh:
    """Reads a mesh and its `device_ids`. Raises `SyntaxProblem`."""
    if cursor.accept("maximal_mesh["):
        cursor.expect("device_id")
        cursor.expect("=")
        device = cursor.integer()
        cursor.expect("]")
        return Mesh((), None, device)
    start = cursor.skip()
    cursor.expect("mesh")

    def axis() -> tuple[str, int]:
        name = _read_axis_name(cursor)
        cursor.expect("=")
        at = cursor.skip()
        size = cursor.integer()
        if size < 1:
            raise SyntaxProblem(
                at, f"the size of mesh axis '{name}' must be positive, found {size}"
            )
        return name, size

    mesh = Mesh(cursor.items("[", "]", axis))
    if len(set(mesh.names)) != len(mesh.axes):
        raise SyntaxProblem(start, "a mesh axis is named twice", cursor.position - start)
    before = cursor.position
    if cursor.accept(",") and cursor.peek_word() == "device_ids":
        cursor.word()
        cursor.expect("=")
        return _with_devices(cursor, mesh)
    cursor.position = before
    return mesh


def _with_devices(cursor: Cursor, mesh: Mesh) -> Mesh:
    start = cursor.skip()
    order: Order
    cursor.expect("(")
    if cursor.peek("["):
        order = Iota.of(*read_iota_dimensions(cursor))
        cursor.expect(")")
        count = order.size
    else:
        devices = [cursor.integer()]
        while not cursor.accept(")"):
            cursor.expect(",")
            devices.append(cursor.integer())
        order, count = tuple(devices), len(devices)
    if count != mesh.size:
        raise SyntaxProblem(
            start,
            f"device_ids names {count} devices for a mesh of {mesh.size}",
            cursor.position - start,
        )
    if isinstance(order, Iota) and order.is_identity:
        return mesh
    if order == tuple(range(count)):
        return mesh
    return Mesh(mesh.axes, order)


def read_axis(cursor: Cursor, mesh: Mesh) -> AxisRef:
    """Reads `'x'` or `'x':(1)2`; the axis must be one of `mesh`. Raises `SyntaxProblem`."""
    start = cursor.skip()
    name = _read_axis_name(cursor)
    whole = dict(mesh.axes).get(name)
    if whole is None:
        raise SyntaxProblem(
            start, f"axis '{name}' is not an axis of the mesh", cursor.position - start
        )
    if not cursor.accept(":"):
        return AxisRef(name)
    cursor.expect("(")
    pre_size = cursor.integer()
    cursor.expect(")")
    size = cursor.integer()
    if pre_size < 1 or size < 2 or size >= whole or whole % (pre_size * size):
        raise SyntaxProblem(
            start,
            f"sub-axis '{name}':({pre_size}){size} does not divide axis '{name}' of size {whole}",
            cursor.position - start,
        )
    return AxisRef(name, pre_size, size)


def check_disjoint(cursor: Cursor, start: int, mesh: Mesh, axes: Sequence[AxisRef]) -> None:
    """Raises `SyntaxProblem` when two references share a part of an axis, or when the parts of an
    axis cut it at sizes that do not divide each other.
    """
    spans: dict[str, list[tuple[int, int]]] = {}
    for axis in axes:
        low = axis.pre_size or 1
        spans.setdefault(axis.name, []).append((low, low * axis.size_in(mesh)))
    for name, parts in spans.items():
        parts.sort()
        bounds = sorted({bound for part in parts for bound in part})
        overlap = any(a[1] > b[0] for a, b in itertools.pairwise(parts))
        if overlap or any(b % a for a, b in itertools.pairwise(bounds)):
            raise SyntaxProblem(
                start, f"axis '{name}' is used twice, or its parts overlap", cursor.position - start
            )
    if mesh.size > MOST_DEVICES:
        raise SyntaxProblem(start, f"a mesh of {mesh.size} devices is too large")
