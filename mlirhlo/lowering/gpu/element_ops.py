"""Elements of the results of each structured op that is computed element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects.hlo.element_types import BY_MLIR
from mlirhlo.dialects.structured import (
    AssembleOp,
    ContractOp,
    FoldOp,
    GatherOp,
    MapOp,
    sizes_of,
)
from mlirhlo.dialects.structured.base import yielded
from mlirhlo.dialects.structured.dense import DYNAMIC
from mlirhlo.lowering.builder import INDEX, Index
from mlirhlo.lowering.gpu.elements import ElementBuilder, Indices, array, emits
from mlirhlo.lowering.hlo_to_loops.elements import Value
from mlirhlo.lowering.hlo_to_loops.elementwise_convert import convert
from mlirhlo.lowering.hlo_to_loops.folds import product_sum, zero_element
from mlirhlo.lowering.schedule.group_ranges import GroupRange, group_range_of


@emits(MapOp)
def _map(e: ElementBuilder, op: MapOp, at: Indices) -> Sequence[Value]:
    return e.body(op.body, mapped_inputs(e, op, at), at)


def mapped_inputs(
    e: ElementBuilder, op: MapOp | FoldOp | ContractOp, at: Sequence[Index]
) -> list[Value]:
    """The elements of an op's inputs at indices of its iteration space."""
    space = op.space
    return [
        e.at(value, e.mapped(map_, at, space))
        for value, map_ in zip(op.inputs, op.index_maps, strict=True)
    ]


def factor_inputs(
    e: ElementBuilder, op: ContractOp, at: Sequence[Index], needed: Sequence[int]
) -> list[Value | None]:
    """The elements of the inputs of these numbers; None for others."""
    maps = op.index_maps
    return [
        e.at(value, e.mapped(maps[number], at, op.space)) if number in needed else None
        for number, value in enumerate(op.inputs)
    ]


def initial(e: ElementBuilder, op: FoldOp) -> list[Value]:
    """The first state of a fold."""
    return [e.at(value, ()) for value in op.inits]


def fold_step(
    e: ElementBuilder, op: FoldOp, at: Sequence[Index], state: Sequence[Value] | None
) -> list[Value]:
    """The state after the elements at indices of the iteration space; those elements for no state before."""
    made = e.body(op.body, mapped_inputs(e, op, at), at)
    if op.guarded is None:
        return made if state is None else e.body(op.combiner, [*state, *made])
    assert state is not None
    *values, (guard,) = made
    return e.choose(guard, lambda: e.body(op.combiner, [*state, *values]), lambda: state)


@emits(FoldOp)
def _fold(e: ElementBuilder, op: FoldOp, at: Indices) -> Sequence[Value]:
    return e.folded(
        op.folded, initial(e, op), lambda dims, state: fold_step(e, op, (*at, *dims), state)
    )


@emits(ContractOp)
def _contract(e: ElementBuilder, op: ContractOp, at: Indices) -> Sequence[Value]:
    accumulator = BY_MLIR[op.accumulator]
    first, second = (BY_MLIR[cast("Attribute", v.type.element_type)] for v in yielded(op.body))  # type: ignore[attr-defined]
    zero = zero_element(e.elements(), accumulator)

    def step(dims: Indices, state: Sequence[Value]) -> Sequence[Value]:
        lhs, rhs = e.body(op.body, mapped_inputs(e, op, (*at, *dims)), (*at, *dims))
        x, y = convert(e.b, lhs, first, accumulator), convert(e.b, rhs, second, accumulator)
        return [product_sum(e.elements(), state[0], x, y, accumulator)]

    groups = group_range_of(op)
    if groups is not None and groups.group == len(at) and groups.position < len(at):
        (total,) = _in_its_group(e, op, at, groups, [zero], step)
    else:
        (total,) = e.folded(op.contracted, [zero], step)
    return [convert(e.b, total, accumulator, array(op.output).element_type)]


def _in_its_group(
    e: ElementBuilder,
    op: ContractOp,
    at: Indices,
    groups: GroupRange,
    zero: Sequence[Value],
    step: Callable[[Indices, Sequence[Value]], Sequence[Value]],
) -> list[Value]:
    """A sum over groups, of which those are passed over that the element is not in."""
    first, *rest = op.contracted

    def group(dims: Indices, state: Sequence[Value]) -> Sequence[Value]:
        here = (*at, *dims, *[0] * len(rest))
        arguments = factor_inputs(e, op, here, groups.inputs)
        ((inside,),) = e.values(op.body, arguments, here, [groups.inside])
        return e.choose(
            inside,
            lambda: e.folded(rest, state, lambda more, now: step((*dims, *more), now)),
            lambda: state,
        )

    return e.folded([first], zero, group)


def clamped_index(e: ElementBuilder, value: SSAValue, at: Sequence[Index], limit: int) -> Index:
    """An element of an index operand, clamped to `0 … limit`."""
    from xdsl.dialects import arith

    b = e.b
    index = index_of(e, value, at)
    low = b.integer(arith.MaxSIOp, index, b.constant(0, INDEX))
    return b.integer(arith.MinSIOp, low, b.constant(limit, INDEX))


def index_of(e: ElementBuilder, value: SSAValue, at: Sequence[Index]) -> SSAValue:
    """An element of an index operand as an index; wide ones saturate."""
    from xdsl.dialects import arith

    b = e.b
    element = array(value).element_type
    (number,) = e.at(value, at)
    if element.bits > 32 or (element.bits == 32 and not element.is_signed):
        # The index type may have 32 bits.
        most = b.constant((1 << 31) - 1, number.type)
        if element.is_signed:
            number = b.integer(arith.MaxSIOp, number, b.constant(-1, number.type))
            number = b.integer(arith.MinSIOp, number, most)
        else:
            number = b.integer(arith.MinUIOp, number, most)
    return b.cast_index(number, INDEX, signed=element.is_signed)


@emits(GatherOp)
def _gather(e: ElementBuilder, op: GatherOp, at: Indices) -> Sequence[Value]:
    b, space = e.b, op.space
    indices = list(e.mapped(op.offset_map, at, space))
    rows = zip(op.indices, op.index_maps, op.indexed, op.largest, strict=True)
    for value, map_, dim, limit in rows:
        start = clamped_index(e, value, e.mapped(map_, at, space), limit)
        indices[dim] = b.add(start, indices[dim])
    return [e.at(op.source, indices)]


@emits(AssembleOp)
def _assemble(e: ElementBuilder, op: AssembleOp, at: Indices) -> Sequence[Value]:
    """The last piece that holds the element, else the fill."""
    rows: list[tuple[SSAValue, list[Index], tuple[int, ...]]] = []
    dynamic = iter(op.indices)
    whole = sizes_of(op.output)
    for piece, offsets, strides in zip(op.pieces, op.piece_offsets, op.piece_strides, strict=True):
        starts: list[Index] = [
            clamped_index(e, next(dynamic), (), size - part) if offset == DYNAMIC else offset
            for offset, size, part in zip(offsets, whole, sizes_of(piece), strict=True)
        ]
        rows.append((piece, starts, strides))
    return _pieces(e, op, rows, at)


def _pieces(
    e: ElementBuilder,
    op: AssembleOp,
    rows: Sequence[tuple[SSAValue, list[Index], tuple[int, ...]]],
    at: Indices,
) -> Sequence[Value]:
    if not rows:
        if op.fill is None:
            return [zero_element(e.elements(), array(op.output).element_type)]
        return [e.at(op.fill, ())]
    *before, (piece, starts, strides) = rows
    b = e.b
    sizes = sizes_of(piece)
    if 0 in sizes:
        return _pieces(e, op, before, at)
    inside: SSAValue | None = None
    indices: list[Index] = []
    for index, start, stride, size, whole in zip(
        at, starts, strides, sizes, sizes_of(op.output), strict=True
    ):
        local = b.sub(index, start)
        if not (start == 0 and (size - 1) * stride + 1 >= whole and stride == 1):
            tests = [b.cmpi("ult", b.index(local), b.index((size - 1) * stride + 1))]
            if stride > 1:
                tests.append(b.cmpi("eq", b.index(b.rem(local, stride)), b.index(0)))
            for test in tests:
                inside = test if inside is None else b.andi(inside, test)
        indices.append(b.div(local, stride))
    if inside is None:
        return [e.at(piece, indices)]
    return e.choose(inside, lambda: [e.at(piece, indices)], lambda: _pieces(e, op, before, at))
