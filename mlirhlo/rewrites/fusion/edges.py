"""Where concatenates and pads have their edges, along the dimensions of what is computed from them."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from xdsl.ir import SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.structured import AssembleOp, MapOp
from mlirhlo.dialects.structured.base import StructuredOp
from mlirhlo.dialects.structured.dense import DYNAMIC

Place: TypeAlias = "tuple[tuple[int, int] | None, ...]"
"""For each dimension the dimension of the results that it runs along, and what is added to its index."""

MOST_REGIONS = 12
"""As many as loops are cut into where edges cross: more are not worth the code, and one dimension alone is cut."""


@dataclass(slots=True)
class Edges:
    """Of computations whose results have one shape."""

    cuts: list[set[int]]
    """For each dimension, the indices at which it begins and ends, and edges; some may lie outside."""
    all_known: bool = True
    """Whether all edges run along dimensions of the results."""

    @staticmethod
    def of(outputs: Sequence[SSAValue], ends: Container[SSAValue]) -> Edges:
        """Edges between `outputs` and the values where the computation begins. Linear in the places at
        which instructions are computed."""
        sizes = _sizes(outputs[0])
        edges = Edges([{0, size} for size in sizes])
        whole: Place = tuple((d, 0) for d in range(len(sizes)))
        seen: set[tuple[SSAValue, Place]] = set()
        stack = [(v, whole) for v in outputs]
        while stack:
            value, place = stack.pop()
            if (value, place) in seen or value in ends:
                continue
            seen.add((value, place))
            stack += edges._operands(value, place)
        return edges

    def _cut(self, along: tuple[int, int] | None, index: int) -> None:
        if along is None:
            self.all_known = False
        else:
            self.cuts[along[0]].add(index - along[1])

    def _operands(self, value: SSAValue, place: Place) -> list[tuple[SSAValue, Place]]:
        """Operands of an instruction and their places; adds its edges."""
        op: Any = value.owner
        if isinstance(op, StructuredOp):
            return self._structured_operands(op, place)
        name = op.opcode.name

        def moved(d: int, by: int) -> tuple[int, int] | None:
            along = place[d]
            return None if along is None else (along[0], along[1] + by)

        if name == "broadcast":
            pairs = zip(cast("tuple[int, ...]", op.dimensions), _sizes(op.operand), strict=True)
            return [(op.operand, tuple(place[d] if n != 1 else None for d, n in pairs))]
        if name == "transpose":
            source: list[tuple[int, int] | None] = [None] * len(place)
            for at, d in enumerate(cast("tuple[int, ...]", op.dimensions)):
                source[d] = place[at]
            return [(op.operand, tuple(source))]
        if name == "slice":
            parts = op.slices.dimensions
            return [
                (
                    op.operand,
                    tuple(
                        moved(d, p.start) if p.stride == 1 else None for d, p in enumerate(parts)
                    ),
                )
            ]
        if name == "concatenate":
            (along,) = cast("tuple[int, ...]", op.dimensions)
            found: list[tuple[SSAValue, Place]] = []
            start = 0
            for operand in op.inputs:
                self._cut(place[along], start)
                found.append((operand, (*place[:along], moved(along, -start), *place[along + 1 :])))
                start += _sizes(operand)[along]
            return found
        if name == "pad":
            inner: list[tuple[int, int] | None] = []
            edges = zip(op.padding.dimensions, _sizes(op.operand), strict=True)
            for d, (edge, size) in enumerate(edges):
                if edge.interior:
                    self.all_known = False
                    inner.append(None)
                    continue
                if edge.low or edge.high:
                    self._cut(place[d], edge.low)
                    self._cut(place[d], edge.low + size)
                inner.append(moved(d, -edge.low))
            return [(op.operand, tuple(inner))]
        if op.opcode.elementwise or name == "copy":
            return [(v, place if _sizes(v) else ()) for v in op.inputs]
        return [(v, (None,) * len(_sizes(v))) for v in op.inputs]

    def _structured_operands(self, op: StructuredOp, place: Place) -> list[tuple[SSAValue, Place]]:
        def along(expr: AffineExpr) -> tuple[int, int] | None:
            match expr:
                case AffineDimExpr():
                    return place[expr.position]
                case AffineBinaryOpExpr(
                    AffineBinaryOpKind.Add, AffineDimExpr(d), AffineConstantExpr(by)
                ):
                    found = place[d]
                    return None if found is None else (found[0], found[1] + by)
                case _:
                    return None

        if isinstance(op, MapOp):
            rows = zip(op.inputs, op.index_maps, strict=True)
            return [(v, tuple(map(along, m.results))) for v, m in rows]
        if isinstance(op, AssembleOp):
            pieces = zip(op.pieces, op.piece_offsets, op.piece_strides, strict=True)
            return [
                (v, self._piece(_sizes(v), _sizes(op.output), row, steps, place))
                for v, row, steps in pieces
            ]
        return [(v, (None,) * len(_sizes(v))) for v in op.operands]

    def _piece(
        self,
        sizes: Sequence[int],
        whole: Sequence[int],
        offsets: Sequence[int],
        strides: Sequence[int],
        place: Place,
    ) -> Place:
        """The place in a piece of an assembled array; adds its edges."""
        found: list[tuple[int, int] | None] = []
        rows = zip(place, sizes, whole, offsets, strides, strict=True)
        for along, size, all_, offset, stride in rows:
            if offset == DYNAMIC or stride != 1:
                self.all_known = False
                found.append(None)
                continue
            if (offset, size) != (0, all_):
                self._cut(along, offset)
                self._cut(along, offset + size)
            found.append(None if along is None else (along[0], along[1] - offset))
        return tuple(found)


def _sizes(value: SSAValue) -> tuple[int, ...]:
    """Dimensions of a value's (first) array."""
    shape = shape_of(value.type)
    part = shape.elements[0] if isinstance(shape, TupleShape) else shape
    return cast(ArrayShape, part).dimensions
