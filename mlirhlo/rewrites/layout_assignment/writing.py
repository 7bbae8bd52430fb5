"""What was found goes into the module: types, and copies where an operand has another layout than it must."""

from __future__ import annotations

from dataclasses import replace

from xdsl.ir import Operation, SSAValue

from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.order import instruction_list
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape, default_layout, subshape
from mlirhlo.dialects.hlo.types import shape_of, type_of
from mlirhlo.rewrites.layout_assignment.moves import Order
from mlirhlo.rewrites.layout_assignment.problem import Problem, Use
from mlirhlo.rewrites.layout_assignment.relations import ShapeIndex
from mlirhlo.rewrites.simplify.tuple_parts import (
    inherit_from,
    insert_before,
    replace_parts,
    set_operand,
)


def write_layouts(problem: Problem) -> bool:
    """Writes the layouts found into the types of results; whether any is another one."""
    changed = False
    for computation in problem.run:
        for op in instruction_list(computation):
            shape = op.shape
            laid_out = _laid_out(shape, op, problem, ())
            if laid_out is shape:
                continue
            type_ = type_of(laid_out)
            if type_ != op.output.type:
                op.output._type = type_  # pyright: ignore[reportPrivateUsage]
                changed = True
    return changed


def add_copies(problem: Problem) -> int:
    """Lets every operand, and what computations give back, be laid out as it must; how many copies."""
    copies = _Copies(problem)
    for computation in problem.run:
        for op in instruction_list(computation):
            for number, value in enumerate(op.inputs):
                wished = copies.as_wished(value, (op, number), op)
                if wished is not value:
                    set_operand(op, number, wished)
        end = computation.terminator
        wished = copies.as_wished(end.root, (computation, 0), end)
        if wished is not end.root:
            set_operand(end, 0, wished)
    return copies.count


def _laid_out(shape: Shape, op: Instruction, problem: Problem, index: ShapeIndex) -> Shape:
    if isinstance(shape, TupleShape):
        parts = enumerate(shape.elements)
        return TupleShape(tuple(_laid_out(e, op, problem, (*index, at)) for at, e in parts))
    order = problem.order(op, index)
    if not isinstance(shape, ArrayShape) or order is None:
        return shape
    return _in_order(shape, order)


def _in_order(shape: ArrayShape, order: Order) -> ArrayShape:
    layout = shape.layout or default_layout(shape.rank)
    if layout.minor_to_major == order:
        return shape
    return shape.with_layout(replace(layout, minor_to_major=order))


class _Copies:
    """Copies to other layouts, each made once."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.count = 0
        self._made: dict[tuple[SSAValue, Order], SSAValue] = {}

    def as_wished(self, value: SSAValue, use: Use, place: Operation) -> SSAValue:
        """`value`, or what has copies of the parts that the use wants in another layout."""
        shape = shape_of(value.type)
        wanted: dict[ShapeIndex, Order] = {}
        for index, order in self.problem.wishes(use):
            part = subshape(shape, index)
            assert isinstance(part, ArrayShape)
            if (part.layout or default_layout(part.rank)).minor_to_major != order:
                wanted[index] = order
        if not wanted:
            return value
        return replace_parts(
            value, wanted, place, lambda index, old: self._copy(old, wanted[index])
        )

    def _copy(self, value: SSAValue, order: Order) -> SSAValue:
        made = self._made.get((value, order))
        if made is None:
            shape = shape_of(value.type)
            assert isinstance(shape, ArrayShape)
            copy = make("copy", [value], _in_order(shape, order))
            inherit_from(copy, value)
            owner = value.owner
            assert isinstance(owner, Operation)
            assert owner.next_op is not None
            made = self._made[value, order] = insert_before(owner.next_op, copy).output
            self.count += 1
        return made


def complete_header(module: HloModule) -> None:
    """Says in the header what layouts were found for what it had left open."""
    have = module.program_layout
    if any(_is_open(shape) for shape in (*have.parameters, have.result)):
        found = module.entry_signature
        parameters = tuple(map(_filled, have.parameters, found.parameters))
        module.set_program_layout(parameters, _filled(have.result, found.result))


def _is_open(shape: Shape) -> bool:
    if isinstance(shape, TupleShape):
        return any(map(_is_open, shape.elements))
    return isinstance(shape, ArrayShape) and shape.layout is None


def _filled(have: Shape, found: Shape) -> Shape:
    if isinstance(have, TupleShape) and isinstance(found, TupleShape):
        return TupleShape(tuple(map(_filled, have.elements, found.elements)))
    return found if _is_open(have) else have
