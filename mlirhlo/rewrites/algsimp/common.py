"""What the rules of `algsimp` share: asking about values, and putting new instructions in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, cast

from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from mlirhlo.analysis.neutral import neutral_elements
from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.attributes.dimensions import (
    Padding,
    PaddingAttr,
    PaddingDimension,
    Slice,
    SliceAttr,
    SliceDimension,
)
from mlirhlo.dialects.hlo.build import wait_for
from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr
from mlirhlo.dialects.hlo.ops import (
    BitcastOp,
    BroadcastOp,
    ComputationOp,
    ConstantOp,
    Instruction,
    ReduceOp,
    ReduceWindowOp,
    ReshapeOp,
    TransposeOp,
)
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, compatible, default_layout, leaves
from mlirhlo.dialects.hlo.table import Role, properties_of
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.rewrites.algsimp.options import AlgsimpOptions
from mlirhlo.rewrites.rules import Rewriter
from mlirhlo.rewrites.simplify.tuple_simplifier import hand_on

InstructionT = TypeVar("InstructionT", bound=Instruction)

_DEFAULTS = AlgsimpOptions.__new__(AlgsimpOptions)
"""All options off their class defaults: dataclass defaults are class attributes."""


def options_of(rewriter: Rewriter) -> AlgsimpOptions:
    """The pass's options; XLA's defaults where a rule runs alone."""
    given = rewriter.options
    return given if isinstance(given, AlgsimpOptions) else _DEFAULTS


# ---------------------------------------------------------------- asking


def array(value: SSAValue | Instruction) -> ArrayShape:
    """Shape of an array value; rules are only about arrays where they ask."""
    shape: Any = value.shape if isinstance(value, Instruction) else shape_of(value.type)
    found: ArrayShape = shape  # not `cast`, which is a call: asked for all the time
    return found


def element(value: SSAValue | Instruction) -> PrimitiveType:
    """Element type of an array value."""
    return array(value).element_type


def is_array(value: SSAValue | Instruction) -> bool:
    """Whether the value is an array, and no tuple or token."""
    shape = value.shape if isinstance(value, Instruction) else shape_of(value.type)
    return isinstance(shape, ArrayShape)


def is_integral(type_: PrimitiveType) -> bool:
    """Integer or pred."""
    return not (type_.is_float or type_.is_complex)


def same_array(a: SSAValue | Instruction, b: SSAValue | Instruction) -> bool:
    """Equal element types, sizes and dynamic marks; layouts aside."""
    x, y = array(a), array(b)
    return (
        x.element_type is y.element_type and x.dimensions == y.dimensions and x.dynamic == y.dynamic
    )


def has_one_user(value: SSAValue) -> bool:
    """Whether one operand, or the root, reads the value."""
    return value.has_one_use()


def made_by(value: SSAValue, cls: type[InstructionT]) -> InstructionT | None:
    """The instruction of class `cls` that makes `value`, or None."""
    owner = value.owner
    return owner if isinstance(owner, cls) else None


def literal_of(value: SSAValue) -> Literal | None:
    """Literal of a constant array whose value is known."""
    owner = value.owner
    if not isinstance(owner, ConstantOp):
        return None
    literal = owner.literal
    if literal is None or not isinstance(literal.shape, ArrayShape) or literal.is_elided:
        return None
    return literal


def is_constant(value: SSAValue) -> bool:
    """Whether a constant makes the value."""
    return isinstance(value.owner, ConstantOp)


def _splat(value: SSAValue) -> Literal | None:
    """Literal of a constant of equal elements, which makes the value or is broadcast to it."""
    owner = value.owner
    while type(owner) is BroadcastOp:
        owner = owner.operand.owner
    if type(owner) is not ConstantOp or (literal := literal_of(owner.output)) is None:
        return None
    return literal if literal.splat is not None else None


def splat_bytes(value: SSAValue) -> bytes | None:
    """The one element of an all-equal value: a constant, or any nest of broadcasts of one."""
    literal = _splat(value)
    return None if literal is None else literal.splat


def splat_of(value: SSAValue) -> Any:
    """The one number of an all-equal value as int, float, bool or complex; None otherwise."""
    constant = _splat(value)
    return None if constant is None else constant.item()


def is_all(value: SSAValue, number: complex) -> bool:
    """Whether every element is known to equal `number`; -0.0 equals 0."""
    found = splat_of(value)
    return found is not None and found == number


def starts_neutral(op: ReduceOp | ReduceWindowOp, reducer: ComputationOp | None) -> bool:
    """Whether the initial values are known to change no result, the sign of zeros aside."""
    elements = None if reducer is None else neutral_elements(reducer)
    if elements is None:
        return False
    starts = op.inputs[len(op.inputs) // 2 :]
    return all(is_all(v, element) for v, element in zip(starts, elements, strict=True))


def is_scalar_broadcast(value: SSAValue) -> BroadcastOp | None:
    """The broadcast of a scalar that makes the value, or None."""
    owner = value.owner
    if isinstance(owner, BroadcastOp) and not array(owner.operand).dimensions:
        return owner
    return None


_NOT_OWN = properties_of(Role.PROVENANCE, Role.PLACEMENT, Role.ORDER)


def own_properties(op: Instruction) -> dict[str, Attribute]:
    """Properties that say what an instruction computes, for another one that computes the same."""
    return {key: value for key, value in op.properties.items() if key not in _NOT_OWN}


# ---------------------------------------------------------------- putting in


def forward(op: Instruction, rewriter: Rewriter, value: SSAValue) -> None:
    """Lets `value` stand for `op`, if that is compatible; otherwise does nothing.

    Compatible: `op` waits for no other instruction, shapes are the same, dynamic dimensions too (layouts count
    where the pass is layout sensitive, and to bitcasts), sharding and frontend attributes stay.
    """
    if op.control_predecessors:
        return
    shape, new = op.shape, shape_of(value.type)
    if shape != new:
        if not compatible(shape, new) or _dynamic_marks(shape) != _dynamic_marks(new):
            return
        if options_of(rewriter).is_layout_sensitive or _is_read_in_place(op):
            return
    mine = op.properties.get("frontend_attributes")
    owner = value.owner
    assert isinstance(owner, Instruction)
    if mine is not None and mine != owner.properties.get("frontend_attributes"):
        return
    if not hand_on(op, value):
        return
    before = _owners(op)
    rewriter.replace_by_value(op, value)
    rewriter.erase_unread(*before)


def _dynamic_marks(shape: Shape) -> list[tuple[bool, ...]]:
    return [
        leaf.dynamic if isinstance(leaf, ArrayShape) and leaf.is_dynamic else ()
        for _, leaf in leaves(shape)
    ]


def _is_read_in_place(op: Instruction) -> bool:
    """Whether it matters to a reader where elements are."""
    return any(isinstance(use.operation, BitcastOp) for use in op.output.uses)


def _owners(op: Instruction) -> list[Operation]:
    return [value.op for value in op.inputs if type(value) is OpResult]


class Builder:
    """Collects the instructions of a right side, and at the end puts them where `op` stands."""

    __slots__ = ("made", "op", "rewriter")

    def __init__(self, op: Instruction, rewriter: Rewriter) -> None:
        self.op, self.rewriter = op, rewriter
        self.made: list[Instruction] = []

    def __call__(
        self,
        cls: type[InstructionT],
        *operands: SSAValue | Instruction,
        shape: Shape | None = None,
        **properties: Attribute,
    ) -> InstructionT:
        """A new instruction; its shape is inferred where none is given."""
        made = self.rewriter.build(cls, *operands, shape=shape, **properties)
        self.made.append(made)
        return made

    def like(
        self, cls: type[InstructionT], *operands: SSAValue | Instruction, **properties: Attribute
    ) -> InstructionT:
        """A new instruction with the result shape of what is replaced."""
        return self(cls, *operands, shape=self.op.shape, **properties)

    def on(self, cls: type[InstructionT], *operands: SSAValue | Instruction) -> InstructionT:
        """A new element-wise instruction with the shape of its first operand."""
        return self(cls, *operands, shape=array(operands[0]))

    def constant(self, literal: Literal) -> ConstantOp:
        """A constant."""
        return self(ConstantOp, shape=literal.shape, literal=LiteralAttr(literal))

    def scalar(self, type_: PrimitiveType, number: complex) -> ConstantOp:
        """A scalar constant; `number` is rounded to the type."""
        import numpy as np

        with np.errstate(all="ignore"):
            value = np.array(number).astype(type_.dtype)
        return self.constant(Literal.from_array(ArrayShape(type_, ()), value))

    def splat(self, shape: ArrayShape, number: complex) -> Instruction:
        """An array of equal numbers: a scalar constant, broadcast where the shape is no scalar."""
        return self.spread(self.scalar(shape.element_type, number), shape)

    def spread(self, scalar: SSAValue | Instruction, shape: ArrayShape) -> Instruction:
        """`scalar` broadcast to `shape`; itself where that is a scalar."""
        if not shape.dimensions:
            owner = scalar if isinstance(scalar, Instruction) else scalar.owner
            return cast(Instruction, owner)
        return self.broadcast(scalar, (), shape)

    def broadcast(
        self, value: SSAValue | Instruction, dims: Sequence[int], shape: Shape
    ) -> BroadcastOp:
        """A broadcast to `shape`."""
        return self(BroadcastOp, value, shape=shape, dimensions=integers(tuple(dims)))

    def reshape(self, value: SSAValue | Instruction, shape: Shape) -> ReshapeOp:
        """A reshape to `shape`."""
        return self(ReshapeOp, value, shape=shape)

    def transpose(self, value: SSAValue | Instruction, dims: Sequence[int]) -> TransposeOp:
        """A transpose in the default layout."""
        source = array(value)
        shape = sized(source, [source.dimensions[d] for d in dims])
        return self(TransposeOp, value, shape=shape, dimensions=integers(tuple(dims)))

    def done(self, result: Instruction | None = None) -> None:
        """Replaces; the result is `result`, or else the last instruction made.

        The result takes sharding, frontend attributes and control predecessors over.
        """
        op, last = self.op, result or self.made[-1]
        before = _owners(op)
        if last in self.made:
            for key in ("sharding", "frontend_attributes"):
                if key in op.properties and key not in last.properties:
                    last.properties[key] = op.properties[key]
            wait_for(last, op.control_predecessors)
            made = [m for m in self.made if m is not last]
            self.rewriter.replace(op, [*made, last])
        elif op.control_predecessors:
            for unused in reversed(self.made):
                unused.erase()
            return
        else:
            self.rewriter.replace(op, self.made, (last.output,))
        self.rewriter.erase_unread(*before)


def sized(shape: ArrayShape, sizes: Sequence[int]) -> ArrayShape:
    """A static array of other sizes in the default layout."""
    return ArrayShape(shape.element_type, tuple(sizes), (), default_layout(len(sizes)))


def typed(shape: ArrayShape, type_: PrimitiveType) -> ArrayShape:
    """The array shape with another element type."""
    return ArrayShape(type_, shape.dimensions, shape.dynamic, shape.layout)


def slices(parts: Sequence[tuple[int, int, int]]) -> SliceAttr:
    """The attribute of a slice, from (start, limit, stride) of each dimension."""
    return SliceAttr(Slice(tuple(SliceDimension(*part) for part in parts)))


def paddings(parts: Sequence[tuple[int, int, int]]) -> PaddingAttr:
    """The attribute of a pad, from (low, high, interior) of each dimension."""
    return PaddingAttr(Padding(tuple(PaddingDimension(*part) for part in parts)))
