"""Two reductions over devices, joined by what they reduce with, as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.ops import (
    AllReduceOp,
    ConvertOp,
    DynamicSliceOp,
    PadOp,
    ReduceScatterOp,
    ReshapeOp,
    SliceOp,
)
from mlirhlo.dialects.hlo.ops.base import Binary, Instruction
from mlirhlo.rewrites.algsimp.arithmetic.convert import holds
from mlirhlo.rewrites.algsimp.common import element
from mlirhlo.rewrites.collectives.common import Surroundings, key_of, reduction_of
from mlirhlo.rewrites.collectives.simplifiers import Simplifier, array_of, is_single
from mlirhlo.rewrites.computations import binary_computation
from mlirhlo.rewrites.rules import Rewriter
from mlirhlo.rewrites.spmd.reducers import is_identity


@dataclass(frozen=True, slots=True)
class _Side:
    """An operand of what joins two: a collective, and the moves that its result went through."""

    collective: Instruction
    moves: Sequence[Instruction]

    @property
    def converts(self) -> Sequence[ConvertOp]:
        """Those of the moves that change the element type."""
        return [op for op in self.moves if isinstance(op, ConvertOp)]

    def moved(self) -> list[Instruction]:
        """The moves, of what is reduced; none where there are none."""
        made: list[Instruction] = []
        for op in self.moves:
            first = made[-1] if made else self.collective.inputs[0]
            made.append(
                make(op.opcode.name, (first, *op.inputs[1:]), op.shape, dict(op.properties))
            )
        return made


def _is_read_by(value: SSAValue, reader: Instruction) -> bool:
    """Whether nothing else reads the value."""
    return all(use.operation is reader for use in value.uses)


@dataclass(frozen=True)
class _Reassociate(Simplifier):
    exact = False
    collective: ClassVar[type[Instruction]]

    def may_follow(self, move: Instruction, opcode: str) -> bool:
        """Whether a reduction with `opcode` may come after a move instead of before it."""
        del move, opcode
        return False

    def _side(self, op: Binary, value: SSAValue) -> _Side | None:
        moves: list[Instruction] = []
        reader: Instruction = op
        while isinstance(made := value.owner, Instruction) and _is_read_by(value, reader):
            if isinstance(made, self.collective):
                return _Side(made, moves[::-1]) if is_single(made) else None
            if made.control_predecessors or not self.may_follow(made, op.opcode.name):
                return None
            moves.append(made)
            value, reader = made.inputs[0], made
        return None

    def rewrite(self, op: Instruction, around: Surroundings) -> bool:
        """op(f(collective(x)), g(collective(y))) => collective(op(f(x), g(y))), f and g moves of data"""
        result = array_of(op)
        if not isinstance(op, Binary) or op.control_predecessors or result is None:
            return False
        a, b = self._side(op, op.lhs), self._side(op, op.rhs)
        if a is None or b is None:
            return False
        if not _may_join(op, a.collective, b.collective, around):
            return False
        if len({element(c.operand) for c in (*a.converts, *b.converts)}) > 1:
            return False
        if not (a.moves or b.moves):
            result = array_of(a.collective.inputs[0])
            if result is None or result.dimensions != _dimensions(b.collective.inputs[0]):
                return False
        collectives = dict.fromkeys((a.collective, b.collective))
        if result.element_count > sum(_count(one.inputs[0]) for one in collectives):
            return False  # padding made more of them
        x = a.moved()
        y = x if a.collective is b.collective else b.moved()
        made = [*x, *(y if y is not x else ())]
        operands = [side[-1] if side else s.collective.inputs[0] for side, s in ((x, a), (y, b))]
        joined = make(op.opcode.name, operands, result)
        properties = dict(a.collective.properties)
        if a.converts or b.converts:
            type_ = result.element_type
            properties["to_apply"] = binary_computation(op, op.opcode.name, type_)
        outer = make(a.collective.opcode.name, (joined,), op.shape, properties)
        rewriter = Rewriter(op)
        rewriter.replace(op, (*made, joined, outer))
        for old in dict.fromkeys((*a.moves[::-1], *b.moves[::-1], *collectives)):
            rewriter.erase(old)
        return True


def _may_join(op: Binary, a: Instruction, b: Instruction, around: Surroundings) -> bool:
    """Whether two collectives reduce alike, with `op`."""
    alike = key_of(a, around) == key_of(b, around)
    return alike and op.opcode.name == reduction_of(a, around)


def _dimensions(value: SSAValue) -> tuple[int, ...] | None:
    shape = array_of(value)
    return None if shape is None else shape.dimensions


def _count(value: SSAValue) -> int:
    shape = array_of(value)
    return 0 if shape is None else shape.element_count


@dataclass(frozen=True)
class AllReduceReassociatePass(_Reassociate):
    """Makes of two all-reduces, joined by what they reduce with, one.

    Before and after:

        %s = f32[8] add(all-reduce(%x), all-reduce(%y))   =>   %s = f32[8] all-reduce(add(%x, %y))

    Both have the same devices and reduction, and no other user; reshapes, slices and pads with what
    the reduction leaves alone may stand between, where no more is reduced than before. Keeps: values
    but for their rounding. Source: XLA's pass of this name.
    """

    name = "all-reduce-reassociate"
    collective: ClassVar[type[Instruction]] = AllReduceOp

    reassociate_converted_all_reduce: bool = False
    """Reduces in a wider type, where both results are converted to it."""

    def may_follow(self, move: Instruction, opcode: str) -> bool:
        """Moves of elements; pads with the identity; with the option, exact conversions."""
        shape = array_of(move)
        if shape is None:
            return False
        if isinstance(move, ConvertOp):
            wide = self.reassociate_converted_all_reduce
            return wide and holds(shape.element_type, element(move.operand))
        if isinstance(move, PadOp):
            return is_identity(move.inputs[1], opcode, shape.element_type)
        return isinstance(move, ReshapeOp | SliceOp)

    def rewrite(self, op: Instruction, around: Surroundings) -> bool:
        """As for all, and of one slice of both: op(f(all-reduce(x)), f(all-reduce(y))) => f(…)"""
        if not isinstance(op, Binary):
            return False
        a, b = op.lhs.owner, op.rhs.owner
        if not (isinstance(a, DynamicSliceOp) and isinstance(b, DynamicSliceOp)) or a is b:
            return super().rewrite(op, around)
        if a.inputs[1:] != b.inputs[1:] or op.control_predecessors:
            return False
        if a.input_shapes[0] != b.input_shapes[0] or a.shape != b.shape:
            return False
        x, y = a.inputs[0].owner, b.inputs[0].owner
        values = (op.lhs, op.rhs, a.inputs[0], b.inputs[0])
        if not all(v.has_one_use() for v in values) or a.control_predecessors:
            return False
        if not isinstance(x, AllReduceOp) or not isinstance(y, AllReduceOp):
            return False
        if not (is_single(x) and is_single(y)) or b.control_predecessors:
            return False
        if not _may_join(op, x, y, around):
            return False
        joined = make(op.opcode.name, (x.inputs[0], y.inputs[0]), x.shape)
        reduced = make("all-reduce", (joined,), x.shape, dict(x.properties))
        cut = make("dynamic-slice", (reduced, *a.inputs[1:]), op.shape, dict(a.properties))
        rewriter = Rewriter(op)
        rewriter.replace(op, (joined, reduced, cut))
        for old in (a, b, x, y):
            rewriter.erase(old)
        return True


@dataclass(frozen=True)
class ReduceScatterReassociatePass(_Reassociate):
    """Makes of two reduce-scatters, joined by what they reduce with, one.

    Before and after:

        %s = f32[2] add(reduce-scatter(%x), reduce-scatter(%y))   =>   %s = f32[2] reduce-scatter(add(%x, %y))

    Keeps: values but for their rounding. Source: XLA's pass of this name.
    """

    name = "reduce-scatter-reassociate"
    collective: ClassVar[type[Instruction]] = ReduceScatterOp
