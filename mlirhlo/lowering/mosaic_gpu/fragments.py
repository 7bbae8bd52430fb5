"""How a warp group holds values: which layout each has, and which elements a lane has in which register."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Block, Operation, SSAValue

from mlirhlo.dialects.mosaic_gpu import values
from mlirhlo.dialects.mosaic_gpu.attributes import TiledLayoutAttr
from mlirhlo.mosaic.attributes import integers_of

TILE, ROW, COLUMN, FLAT, SPLAT = "tile", "row", "column", "flat", "splat"
NATIVE = "native"
"""A row for each lane, as tensor memory has them."""
_ROWS, _COLUMNS, _LANES = 64, 8, 128


def squeezed(type_: Any) -> tuple[int, ...]:
    """The sizes of a vector, without those of one."""
    sizes = type_.get_shape() if isinstance(type_, VectorType) else ()
    return tuple(size for size in sizes if size != 1)


def squeezed_vector(value: SSAValue) -> bool:
    """Whether it is a vector that has other sizes than one."""
    return bool(squeezed(value.type))


@dataclass(slots=True)
class Fragment:
    """A value: the registers of a lane."""

    shape: tuple[int, ...]
    """Without dimensions of one."""
    layout: str
    registers: list[SSAValue]
    element: Any


def offsets(layout: str, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """What the registers of lane 0 hold; other lanes hold as much further on. Flat ones are numbered."""
    match layout:
        case "tile":
            return values.elements_of(values.WGMMA, shape)[0]
        case "row":
            return values.elements_of(values.WGMMA_ROW, shape)[0]
        case "column":
            return values.elements_of(values.WGMMA_COL, shape)[0]
        case "native":
            return tuple((0, column) for column in range(shape[1]))
        case "flat":
            return tuple((i,) for i in range(0, prod(shape), _LANES))
        case _:
            return ((),)


def fits(layout: str, shape: tuple[int, ...]) -> bool:
    """Whether a value of that shape can be held so."""
    match layout:
        case "tile":
            return len(shape) == 2 and not shape[0] % _ROWS and not shape[1] % _COLUMNS
        case "row":
            return len(shape) == 1 and not shape[0] % _ROWS
        case "column":
            return len(shape) == 1 and not shape[0] % _COLUMNS
        case "native":
            return len(shape) == 2 and shape[0] == _LANES
        case "flat":
            return not prod(shape) % _LANES
        case _:
            return True


class Layouts:
    """Chooses a layout for every value: those that meet in arithmetic have one."""

    def __init__(self, body: Block) -> None:
        self._parent: dict[SSAValue, SSAValue] = {}
        self._wanted: dict[SSAValue, str] = {}
        anchors: list[tuple[SSAValue, str]] = []
        for op in body.walk():
            self._join(op)
            anchors += _anchors(op)
        for value, layout in anchors:
            self._wanted.setdefault(self._root(value), layout)

    def of(self, value: SSAValue) -> str | None:
        """The layout of a value; None where none fits."""
        shape = squeezed(value.type)
        if not shape:
            return SPLAT
        wanted = self._wanted.get(self._root(value))
        if wanted is not None and fits(wanted, shape):
            return wanted
        return next((one for one in (TILE, FLAT, COLUMN) if fits(one, shape)), None)

    def _root(self, value: SSAValue) -> SSAValue:
        while value in self._parent:
            value = self._parent[value]
        return value

    def _unite(self, values_: Sequence[SSAValue]) -> None:
        shaped = [v for v in values_ if squeezed(v.type)]
        for one, other in pairwise(shaped):
            a, b = self._root(one), self._root(other)
            if a is not b and squeezed(one.type) == squeezed(other.type):
                self._parent[a] = b

    def _join(self, op: Operation) -> None:
        name = op.name
        if name.startswith(("arith.", "math.")):
            self._unite([*op.operands, *op.results])
        elif name == "mosaic_gpu.optimization_barrier":
            for pair in zip(op.operands, op.results, strict=True):
                self._unite(pair)
        elif name == "vector.shape_cast" or (
            name in ("vector.broadcast", "mosaic_gpu.broadcast_in_dim")
            and squeezed(op.operands[0].type)
        ):
            self._unite([op.operands[0], op.results[0]])
        elif name == "scf.for":
            block = op.regions[0].blocks[0]
            last: Any = block.last_op
            for row in zip(op.operands[3:], block.args[1:], last.operands, op.results, strict=True):
                self._unite(row)
        elif name in ("scf.if", "scf.index_switch") and op.results:
            ends: list[Any] = [region.blocks[0].last_op for region in op.regions]
            for row in zip(op.results, *(end.operands for end in ends), strict=True):
                self._unite(row)


def spread_of(op: Operation) -> tuple[int, ...]:
    """For the dimensions of a broadcast's operand that are not one: their numbers among the result's."""
    source, target = (v.type for v in (op.operands[0], op.results[0]))
    if not isinstance(source, VectorType) or not isinstance(target, VectorType):
        return ()
    before, after = list(source.get_shape()), list(target.get_shape())
    lead = len(after) - len(before)
    dims = integers_of(op, "broadcast_dimensions") or range(lead, len(after))
    kept = [dim for dim, size in enumerate(after) if size != 1]
    return tuple(kept.index(dim) for dim, size in zip(dims, before, strict=True) if size != 1)


def reduced_dims(op: Operation) -> tuple[int, ...]:
    """The dimensions that a reduction takes, numbered without those of one."""
    type_: Any = op.operands[0].type
    kept = [dim for dim, size in enumerate(type_.get_shape()) if size != 1]
    return tuple(kept.index(d) for d in integers_of(op, "reduction_dims") or () if d in kept)


def _anchors(op: Operation) -> list[tuple[SSAValue, str]]:
    """Layouts that an operation asks for."""
    if op.name in ("mosaic_gpu.async_load_tmem", "mosaic_gpu.async_store_tmem"):
        return [(v, NATIVE) for v in (*op.operands, *op.results) if squeezed_vector(v)]
    if op.name == "vector.multi_reduction":
        source = squeezed(op.operands[0].type)
        dims = reduced_dims(op)
        if len(source) == 2 and len(dims) == 1 and fits(TILE, source):
            return [(op.results[0], ROW if dims == (1,) else COLUMN)]
    if op.name in ("vector.broadcast", "mosaic_gpu.broadcast_in_dim"):
        dims, target = spread_of(op), squeezed(op.results[0].type)
        if len(dims) == 1 and len(target) == 2 and fits(TILE, target):
            return [(op.operands[0], ROW if dims == (0,) else COLUMN)]
    if op.name == "mosaic_gpu.layout_cast":
        layout = op.properties.get("new_layout")
        if isinstance(layout, TiledLayoutAttr):
            known = {values.WGMMA: TILE, values.WGMMA_ROW: ROW, values.WGMMA_COL: COLUMN}
            if layout.data in known:
                return [(op.results[0], known[layout.data])]
        return [(op.results[0], FLAT)]
    return []
