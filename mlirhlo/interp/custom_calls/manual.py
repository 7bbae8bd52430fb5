"""Modules before partitioning: custom calls at the borders of manual computations.

Such a module runs on every partition with global values; between `GlobalToLocalShape` and
`LocalToGlobalShape` (Shardy) or `SPMDFullToShardShape` and `SPMDShardToFullShape` (GSPMD) each
partition works on its own tile. Going in takes the partition's tile, going out gathers all tiles.
Source: Shardy's `manual_computation` and XLA's manual shardings.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.attributes.sharding import Sharding, ShardingKind
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.interp.custom_calls import computes, unfit
from mlirhlo.interp.registry import Array, Frame, Value

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.control_flow import CustomCallOp

Tile = Callable[[int, int], tuple[int, int]]
"""Number and count of the tile of a device along a dimension."""


# ---------------------------------------------------------------- Shardy


@dataclass(frozen=True, slots=True)
class SdyMesh:
    """`#sdy.mesh<["a"=4, "b"=2], device_ids=[…]>`."""

    axes: tuple[tuple[str, int], ...]
    devices: tuple[int, ...]

    def coordinates(self, device: int) -> dict[str, int]:
        """Places of a device along the axes. Raises `ValueError` for one outside of the mesh."""
        sizes = [size for _, size in self.axes]
        places = np.unravel_index(self.devices.index(device), sizes or (1,))
        return {name: int(place) for (name, _), place in zip(self.axes, places, strict=False)}


@dataclass(frozen=True, slots=True)
class SdySharding:
    """`<@mesh, [{"a"}, {"b":(1)2, ?}]>`: axes (name, pre-size, size; 0 = whole) by dimension."""

    mesh: SdyMesh
    dimensions: tuple[tuple[tuple[str, int, int], ...], ...]

    def tile(self, device: int, dim: int, manual: frozenset[str]) -> tuple[int, int]:
        """Number and count of the device's tile along `dim`, manual axes alone."""
        places, sizes = self.mesh.coordinates(device), dict(self.mesh.axes)
        index, count = 0, 1
        for name, before, size in self.dimensions[dim] if dim < len(self.dimensions) else ():
            if name not in manual:
                continue
            place, full = places[name], sizes[name]
            if size:
                place, full = place // (full // (before * size)) % size, size
            index, count = index * full + place, count * full
        return index, count


_AXIS = re.compile(r'"((?:[^"\\]|\\.)*)"(?::\((\d+)\)(\d+))?')
_MESH = re.compile(
    r'\[((?:\s*"[^"]*"\s*=\s*\d+\s*,?)*)\]\s*(?:,\s*device_ids\s*=\s*\[([\d,\s]*)\])?'
)


@lru_cache(maxsize=256)
def read_mesh(text: str) -> SdyMesh:
    """The mesh in `mesh<["a"=4], device_ids=[…]>`. Raises `ValueError`."""
    found = _MESH.search(text)
    if found is None:
        raise ValueError(text)
    axes = tuple((n, int(s)) for n, s in re.findall(r'"([^"]*)"\s*=\s*(\d+)', found[1]))
    count = math.prod(size for _, size in axes)
    listed = tuple(int(d) for d in re.findall(r"\d+", found[2] or ""))
    return SdyMesh(axes, listed or tuple(range(count)))


@lru_cache(maxsize=1024)
def read_shardings(text: str, meshes: tuple[tuple[str, SdyMesh], ...]) -> tuple[SdySharding, ...]:
    """The shardings in `#sdy.sharding_per_value<[<@mesh, […]>, …]>`. Raises `ValueError`."""
    known = dict(meshes)
    body = text[text.index("<") + 1 : text.rindex(">")].strip()
    items = list(_bracketed(body[1:-1])) if body.startswith("[") else [f"<{body}>"]
    result: list[SdySharding] = []
    for item in items:
        inner = item[1:-1].strip()
        if inner.startswith("@"):
            name = re.match(r'@"?([^",\s]+)"?', inner)
            mesh = known.get(name[1]) if name else None
            rest = inner[name.end() :] if name else ""
        else:
            end = _closing(inner, inner.index("<"))
            mesh, rest = read_mesh(inner[:end]), inner[end:]
        if mesh is None:
            raise ValueError(inner)
        start = rest.index("[")
        dims = rest[start + 1 : _closing(rest, start) - 1]
        axes = tuple(
            tuple((n, int(b or 0), int(s or 0)) for n, b, s in _AXIS.findall(part))
            for part in _bracketed(dims)
        )
        result.append(SdySharding(mesh, axes))
    return tuple(result)


_PAIRS = {"<": ">", "[": "]", "{": "}", "(": ")"}


def _closing(text: str, start: int) -> int:
    """Position after the bracket that closes the one at `start`. Raises `ValueError`."""
    depth, quoted = 0, False
    for position in range(start, len(text)):
        char = text[position]
        if char == '"':
            quoted = not quoted
        elif not quoted and char in _PAIRS:
            depth += 1
        elif not quoted and char in _PAIRS.values():
            depth -= 1
            if depth == 0:
                return position + 1
    raise ValueError(text)


def _bracketed(text: str) -> Iterator[str]:
    """The bracketed parts of a list."""
    position = 0
    while position < len(text):
        if text[position] in _PAIRS:
            end = _closing(text, position)
            yield text[position:end]
            position = end
        else:
            position += 1


def module_of(op: Instruction) -> HloModule | None:
    """The module that holds `op`."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, ModuleOp):
        parent = parent.parent_op()
    return None if parent is None else HloModule(parent)


def meshes_of(module: HloModule | None) -> tuple[tuple[str, SdyMesh], ...]:
    """Shardy's meshes in the module's frontend attributes."""
    attributes = None if module is None else module.frontend_attributes
    text = dict(attributes.entries).get("xla.sdy.meshes", "") if attributes is not None else ""
    text = text.replace('\\"', '"')
    found = re.findall(r'"?([\w.$-]+)"?\s*=\s*"?#sdy\.(mesh<[^>]*>)', text)
    return tuple((name, read_mesh(mesh)) for name, mesh in found)


def _sdy_tiles(op: CustomCallOp, key: str, frame: Frame) -> list[Tile]:
    attributes = op.frontend_attributes
    entries: Mapping[str, str] = dict(attributes.entries) if attributes is not None else {}
    manual = frozenset(name for name, _, _ in _AXIS.findall(entries.get("xla.sdy.manual_axes", "")))
    try:
        shardings = read_shardings(entries[key], meshes_of(module_of(op)))
    except (KeyError, ValueError):
        raise unfit(op, f"cannot read its {key}, or the mesh it names") from None

    def tile_of(sharding: SdySharding) -> Tile:
        if len(sharding.mesh.devices) > frame.machine.partitions:
            raise too_few(op, len(sharding.mesh.devices), frame)
        return lambda device, dim: sharding.tile(device, dim, manual)

    return [tile_of(sharding) for sharding in shardings]


def too_few(op: CustomCallOp, wanted: int, frame: Frame) -> Exception:
    """The error for a manual computation over more devices than there are."""
    return error(
        "HLO0353",
        f"custom-call %{op.instruction_name} ({op.custom_call_target}): its mesh has {wanted} devices, "
        f"the machine {frame.machine.partitions} partitions",
        help="run the module on as many partitions, or the module after partitioning",
    )


# ---------------------------------------------------------------- tiles


def _arrays(value: Value) -> tuple[Array, ...]:
    return cast("tuple[Array, ...]", value if isinstance(value, tuple) else (value,))


def _shapes(shape: Shape) -> tuple[ArrayShape, ...]:
    parts = shape.elements if isinstance(shape, TupleShape) else (shape,)
    return tuple(cast(ArrayShape, part) for part in parts)


def _region(
    whole: Sequence[int], part: Sequence[int], tile: Tile, device: int
) -> tuple[slice, ...]:
    region: list[slice] = []
    for dim, (size, piece) in enumerate(zip(whole, part, strict=True)):
        index, count = tile(device, dim)
        ratio = -(-size // piece) if piece else 1
        # Parts that are not manual are still whole: only the major ones count.
        index = (
            index // (count // ratio) if ratio and count % ratio == 0 and count > ratio else index
        )
        start = index * piece if ratio > 1 else 0
        region.append(slice(start, min(start + piece, size)))
    return tuple(region)


def _taken(array: Array, shape: ArrayShape, tile: Tile, device: int) -> Array:
    part = array[_region(array.shape, shape.dimensions, tile, device)]
    missing = [(0, n - m) for n, m in zip(shape.dimensions, part.shape, strict=True)]
    return np.pad(part, missing) if any(high for _, high in missing) else part


def _gathered(parts: Sequence[Array], shape: ArrayShape, tile: Tile) -> Array:
    result = np.zeros(shape.dimensions, parts[0].dtype)
    for device in reversed(range(len(parts))):
        part = parts[device]
        region = _region(shape.dimensions, part.shape, tile, device)
        result[region] = part[tuple(slice(0, r.stop - r.start) for r in region)]
    return result


def _enter(op: CustomCallOp, inputs: Sequence[Any], tiles: Sequence[Tile], frame: Frame) -> Value:
    results = tuple(
        _taken(array, shape, tile, frame.partition)
        for array, shape, tile in zip(inputs, _shapes(op.shape), tiles, strict=True)
    )
    return results if isinstance(op.shape, TupleShape) else results[0]


def _leave(op: CustomCallOp, inputs: Sequence[Any], tiles: Sequence[Tile], frame: Frame) -> Value:
    machine = frame.machine
    device = machine.device(frame.replica, frame.partition)
    members = tuple(machine.device(frame.replica, p) for p in range(machine.partitions))
    name = f"custom-call %{op.instruction_name} ({op.custom_call_target})"
    values = machine.exchange(device, ("manual", op), members, tuple(inputs), name)
    results = tuple(
        _gathered([_arrays(value)[k] for value in values], shape, tile)
        for k, (shape, tile) in enumerate(zip(_shapes(op.shape), tiles, strict=True))
    )
    return results if isinstance(op.shape, TupleShape) else results[0]


@computes("xla.sdy.GlobalToLocalShape")
def global_to_local(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """This partition's tiles of the operands."""
    return _enter(op, inputs, _sdy_tiles(op, "xla.sdy.in_shardings", frame), frame)


@computes("xla.sdy.LocalToGlobalShape")
def local_to_global(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """The arrays that all partitions' operands are tiles of."""
    return _leave(op, inputs, _sdy_tiles(op, "xla.sdy.out_shardings", frame), frame)


# ---------------------------------------------------------------- GSPMD


def _gspmd_tile(op: CustomCallOp, sharding: Sharding | None, frame: Frame) -> Tile:
    if sharding is None or sharding.kind is not ShardingKind.TILED or sharding.tiles is None:
        return lambda device, dim: (0, 1)
    grid = sharding.tiles.array
    if grid.size > frame.machine.partitions:
        raise too_few(op, int(grid.size), frame)
    places = {int(device): place for place, device in np.ndenumerate(grid)}
    return lambda device, dim: (int(places[device][dim]), int(grid.shape[dim]))


@computes("SPMDFullToShardShape")
def full_to_shard(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """This partition's tile, by the operand's sharding."""
    source = op.inputs[0].owner
    sharding = source.sharding if isinstance(source, Instruction) else None
    return _enter(op, inputs, [_gspmd_tile(op, sharding, frame)], frame)


@computes("SPMDShardToFullShape")
def shard_to_full(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """The array that all partitions' operands are tiles of, by the call's own sharding."""
    return _leave(op, inputs, [_gspmd_tile(op, op.sharding, frame)], frame)


def manual_partitions(module: HloModule) -> int:
    """How many partitions a module's manual computations are written for; 1 without any."""
    targets = {"xla.sdy.GlobalToLocalShape", "SPMDFullToShardShape"}
    for op in module.instructions:
        if op.opcode.name == "custom-call" and getattr(op, "custom_call_target", "") in targets:
            sizes = [len(mesh.devices) for _, mesh in meshes_of(module)]
            source = op.inputs[0].owner if op.inputs else None
            sharding = source.sharding if isinstance(source, Instruction) else None
            if sharding is not None and sharding.tiles is not None:
                sizes.append(int(sharding.tiles.array.size))
            return max(sizes, default=1)
    return 1
