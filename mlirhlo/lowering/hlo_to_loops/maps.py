"""Elements of structured ops: what a map's body computes of elements that index maps say where to read.

A value of a body is computed at the position of its iteration space that it depends on: what reads a row alone is the
same for all columns, and computed in front of the loop over them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.ir import Block
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from mlirhlo.dialects.hlo.element_types import BY_MLIR
from mlirhlo.dialects.structured import AssembleOp, GatherOp, IndexOp, MapOp, sizes_of
from mlirhlo.dialects.structured.base import yielded
from mlirhlo.dialects.structured.bodies import dependences
from mlirhlo.dialects.structured.dense import DYNAMIC
from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.hlo_to_loops.elemental import Elements, Place, emits_structured
from mlirhlo.lowering.hlo_to_loops.elements import Value
from mlirhlo.lowering.hlo_to_loops.movement import (
    Piece,
    Start,
    assembled,
    index_element,
    looked_up,
    start_index,
)
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places

_LONG = 32
"""Ops of a body that are computed in its order, and not one for the other's sake."""


@emits_structured(MapOp)
def _mapped(e: Elements, op: MapOp, number: int, position: Place) -> Value:
    results = yielded(op.body)
    if op not in e.dependences:
        e.dependences.update(dependences(op))
    ops = list(op.body.block.ops)
    if len(ops) > _LONG:
        for inner in ops[:-1]:
            e.at(inner.results[0], position)
    return e.at(results[number], position)


@emits_structured(Block)
def _argument(e: Elements, block: Block, number: int, position: Place) -> Value:
    op = cast(MapOp, block.parent_op())
    return e.at(op.inputs[number], mapped(e.places, op.index_maps[number], position))


@emits_structured(IndexOp)
def _index(e: Elements, op: IndexOp, number: int, position: Place) -> Value:
    del number
    return index_element(e, position[op.dimension], BY_MLIR[op.result.type.element_type])


@emits_structured(AssembleOp)
def _assembled(e: Elements, op: AssembleOp, number: int, position: Place) -> Value:
    del number
    sizes, indices = sizes_of(op.output), iter(op.indices)
    pieces: list[Piece] = []
    rows = zip(op.pieces, op.piece_offsets, op.piece_strides, strict=True)
    for value, offsets, strides in rows:
        starts: list[Index] = [
            start_index(e, next(indices), whole - size) if offset == DYNAMIC else offset
            for offset, size, whole in zip(offsets, sizes_of(value), sizes, strict=True)
        ]
        pieces.append(Piece(value, starts, strides))
    return assembled(e, pieces, op.fill, sizes, position)


@emits_structured(GatherOp)
def _gathered(e: Elements, op: GatherOp, number: int, position: Place) -> Value:
    del number
    rows = zip(op.indexed, op.indices, op.index_maps, op.largest, strict=True)
    starts = [
        Start(dim, indices, mapped(e.places, map_, position), most)
        for dim, indices, map_, most in rows
    ]
    return looked_up(e, op.source, mapped(e.places, op.offset_map, position), starts)


def mapped(places: Places, map_: AffineMap, position: Sequence[Coordinate]) -> list[Coordinate]:
    """The indices that a map gives for those of an iteration space."""
    return [
        position[expr.position]
        if isinstance(expr, AffineDimExpr)
        else _evaluated(places, expr, position)
        for expr in map_.results
    ]


def _evaluated(places: Places, expr: AffineExpr, position: Sequence[Coordinate]) -> Coordinate:
    match expr:
        case AffineDimExpr():
            return position[expr.position]
        case AffineConstantExpr():
            number = expr.value
            return Coordinate(number, within=(number, number + 1) if number else None)
        case AffineBinaryOpExpr(
            AffineBinaryOpKind.Add,
            AffineBinaryOpExpr(AffineBinaryOpKind.Mul, index, AffineConstantExpr(-1)),
            AffineConstantExpr(last),
        ):
            return places.reversed(_evaluated(places, index, position), last + 1)
        case AffineBinaryOpExpr(rhs=AffineConstantExpr(value=number)):
            lhs = _evaluated(places, expr.lhs, position)
            if expr.kind is AffineBinaryOpKind.Add:
                return places.shifted(lhs, number)
            if expr.kind is AffineBinaryOpKind.Mul:
                return places.scaled(lhs, number)
            quotient, remainder = places.divided(lhs, number)
            return remainder if expr.kind is AffineBinaryOpKind.Mod else quotient
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Add):
            return places.sum(
                _evaluated(places, expr.lhs, position), _evaluated(places, expr.rhs, position)
            )
        case _:
            raise AssertionError(f"maps of kernels hold no {expr}")
