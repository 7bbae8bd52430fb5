"""What each opcode asks of the layouts of its operands and results.

Three things: operands that have to be laid out as a result is (`Tie`), pairs of layouts with which nothing
moves (`Hint`), and operands or results in a layout of their own (`Pin`).
Source: reference of the passes, "LayoutAssignment"; behaviour of XLA's pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias, cast

from mlirhlo.dialects.hlo.attributes.base import bool_of
from mlirhlo.dialects.hlo.ops import BroadcastOp, CustomCallOp, ReduceOp, TransposeOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape, leaves, subshape
from mlirhlo.dialects.hlo.table import CONTROL_FLOW, HANDS_ON, Calls, Layouts, opcodes
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.rewrites.layout_assignment import moves
from mlirhlo.rewrites.layout_assignment.moves import Order

ShapeIndex: TypeAlias = tuple[int, ...]
Move: TypeAlias = Callable[[Order], Order | None]


_KEEPING = opcodes(lambda row: row.elementwise or row.layouts is Layouts.ALIKE)
"""Opcodes whose operands and results of one rank are laid out alike."""

_ONE_LAYOUT = opcodes(lambda row: row.calls in (Calls.ELEMENTS, Calls.SCAN) and not row.collective)
"""Of opcodes with several results, those whose results of one rank have one layout."""

_LIBRARY = opcodes(lambda row: row.library)
"""Opcodes that a CPU's libraries compute on row-major arrays."""

_AS_THEY_ARE = opcodes(lambda row: row.layouts is Layouts.FIXED or row.is_asynchronous)
"""Opcodes whose layouts a compiler or a host has chosen."""


@dataclass(frozen=True, slots=True)
class Tie:
    """Operand `number` has to be laid out as the result at `index`."""

    number: int
    index: ShapeIndex = ()


@dataclass(frozen=True, slots=True)
class Hint:
    """Layouts of operand `number` and the result at `index` with which nothing moves."""

    number: int
    index: ShapeIndex
    forward: Move | None
    """From the operand's to the result's."""
    backward: Move | None
    strength: int = 1
    """1 where the instruction moves elements otherwise; 2 where it reads them in another order."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A layout for the part at `index` of operand `number`, or of the result."""

    number: int | None
    index: ShapeIndex
    order: Order


Relation: TypeAlias = Tie | Hint | Pin


def relations(op: Instruction, *, row_major_libraries: bool) -> Iterator[Relation]:
    """What `op` asks; nothing where instructions hand values on or call."""
    name = op.opcode.name
    if name in HANDS_ON or name in CONTROL_FLOW:
        return
    if _is_fixed(op):
        yield from _as_it_is(op)
    elif name == "custom-call" or (row_major_libraries and name in _LIBRARY):
        yield from _row_major(op)
    elif name == "copy":
        yield Hint(0, (), _same, _same)
    elif isinstance(op, TransposeOp):
        yield _transpose(op.dimensions)
    elif name in ("reshape", "dynamic-reshape"):
        yield _reshape(op)
    elif isinstance(op, BroadcastOp):
        yield _broadcast(op.dimensions)
    elif isinstance(op, ReduceOp):
        yield from _reduce(op)
    elif name in _KEEPING:
        yield from _keeping(op)


def has_one_layout(op: Instruction) -> bool:
    """Whether the results of one rank of `op` are laid out alike."""
    return op.opcode.name in _ONE_LAYOUT


def is_pinned(
    op: Instruction, number: int | None, index: ShapeIndex, *, row_major_libraries: bool
) -> bool:
    """Whether `relations` has a `Pin` for this part of operand `number`, or of the result."""
    if _is_fixed(op):
        shape = op.shape if number is None else shape_of(op.inputs[number].type)
        if number is not None and isinstance(op, CustomCallOp):
            shape = (op.operand_layout_constraints or op.input_shapes)[number]
        part = subshape(shape, index)
        return isinstance(part, ArrayShape) and part.layout is not None
    name = op.opcode.name
    return name == "custom-call" or (row_major_libraries and name in _LIBRARY)


def _is_fixed(op: Instruction) -> bool:
    name = op.opcode.name
    if name in _AS_THEY_ARE:
        return True
    if isinstance(op, CustomCallOp):
        return op.operand_layout_constraints is not None
    return bool_of(op.properties.get("constrain_layout"))


def _as_it_is(op: Instruction) -> Iterator[Pin]:
    shapes: tuple[Shape, ...] = op.input_shapes
    if isinstance(op, CustomCallOp) and op.operand_layout_constraints is not None:
        shapes = op.operand_layout_constraints
    for number, shape in enumerate(shapes):
        for index, part in leaves(shape):
            if isinstance(part, ArrayShape) and part.layout is not None:
                yield Pin(number, index, part.layout.minor_to_major)
    for index, part in leaves(op.shape):
        if isinstance(part, ArrayShape) and part.layout is not None:
            yield Pin(None, index, part.layout.minor_to_major)


def _row_major(op: Instruction) -> Iterator[Pin]:
    for number, shape in enumerate((*op.input_shapes, op.shape)):
        at = number if number < len(op.input_shapes) else None
        for index, part in leaves(shape):
            if isinstance(part, ArrayShape):
                yield Pin(at, index, moves.descending(part.rank))


def _same(order: Order) -> Order:
    return order


def _transpose(dimensions: tuple[int, ...]) -> Hint:
    return Hint(
        0,
        (),
        lambda order: moves.unpermuted(order, dimensions),
        lambda order: moves.permuted(order, dimensions),
    )


def _reshape(op: Instruction) -> Hint:
    source, result = cast(ArrayShape, op.input_shapes[0]), cast(ArrayShape, op.shape)
    sizes, target = source.dimensions, result.dimensions
    return Hint(
        0,
        (),
        lambda order: moves.reshaped(order, sizes, target),
        lambda order: moves.reshaped(order, target, sizes),
    )


def _broadcast(dimensions: tuple[int, ...]) -> Hint:
    return Hint(0, (), None, lambda order: moves.kept(order, dimensions), 2)


def _reduce(op: ReduceOp) -> Iterator[Relation]:
    shapes = op.input_shapes
    count = len(shapes) // 2
    left = tuple(d for d in range(_rank(shapes[0])) if d not in op.dimensions)
    first = (0,) if isinstance(op.shape, TupleShape) else ()
    for number in range(count):
        yield Hint(number, first, lambda order: moves.kept(order, left), None, 2)


def _keeping(op: Instruction) -> Iterator[Tie]:
    result = op.shape
    if isinstance(result, ArrayShape):
        rank = result.rank
        for number, shape in enumerate(op.input_shapes if rank > 1 else ()):
            if isinstance(shape, ArrayShape) and shape.rank == rank:
                yield Tie(number, ())
        return
    together = has_one_layout(op)
    for number, shape in enumerate(op.input_shapes):
        for index, part in leaves(result):
            if _rank(shape) == _rank(part) > 1 and (together or index == (number,)):
                yield Tie(number, index)
                break


def _rank(shape: Shape) -> int:
    return shape.rank if isinstance(shape, ArrayShape) else 0
