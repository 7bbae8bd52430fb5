"""Meshes and axes of StableHLO and Shardy as HLO's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Operation

from mlirhlo.dialects.hlo.attributes.mesh import AxisRef, Mesh
from mlirhlo.rewrites.stablehlo_to_hlo.attributes import numbers_of
from mlirhlo.rewrites.stablehlo_to_hlo.problems import problem


def named_mesh(name: str, module: ModuleOp, at: Operation) -> Mesh:
    """The mesh a symbol means. Raises `HloError` HLO0424 when there is none."""
    for op in module.ops:
        if op.name == "sdy.mesh":
            symbol = op.properties.get("sym_name")
            if isinstance(symbol, StringAttr) and symbol.data == name:
                return _of_sdy(cast(Any, op.properties["mesh"]).data)
    raise problem("HLO0424", at, f"there is no mesh @{name}", f"define sdy.mesh @{name}")


def hlo_mesh(found: Attribute, module: ModuleOp, at: Operation) -> Mesh:
    """A mesh attribute, or a reference to one."""
    if isinstance(found, SymbolRefAttr):
        return named_mesh(found.root_reference.data, module, at)
    data = cast(Any, found).data
    if found.name == "sdy.mesh":
        return _of_sdy(data)
    ids = () if data.device_ids is None else numbers_of(data.device_ids)
    return _mesh(tuple((a.axis, a.size) for a in data.axes), ids)


def _of_sdy(mesh: Any) -> Mesh:
    if not mesh.axes and len(mesh.device_ids) == 1:
        return Mesh((), maximal_device=int(mesh.device_ids[0]))
    return _mesh(tuple((a.name, a.size) for a in mesh.axes), tuple(mesh.device_ids))


def _mesh(axes: tuple[tuple[str, int], ...], ids: tuple[int, ...]) -> Mesh:
    if not ids or list(ids) == list(range(len(ids))):
        return Mesh(axes)
    return Mesh(axes, ids)


def hlo_axes(axes: Sequence[Any]) -> tuple[AxisRef, ...]:
    """References to axes, of StableHLO (attributes) or of Shardy (values)."""
    found: list[AxisRef] = []
    for one in axes:
        axis = getattr(one, "data", one)
        name = getattr(axis, "axis", None) or axis.name
        sub = axis.sub_axis_info
        found.append(AxisRef(name) if sub is None else AxisRef(name, sub.pre_size, sub.size))
    return tuple(found)
