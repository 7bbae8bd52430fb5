"""`default-layouts`: dimensions stand in memory as they are numbered, where nobody chose otherwise."""
# pyright: reportPrivateUsage=false

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects.hlo.build import create
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import (
    BitcastOp,
    CopyOp,
    CustomCallOp,
    GetTupleElementOp,
    ParameterOp,
    TransposeOp,
)
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.shapes import (
    ArrayShape,
    Shape,
    TupleShape,
    default_layout,
    leaves,
    subshape,
)
from mlirhlo.dialects.hlo.table import HANDS_ON
from mlirhlo.dialects.hlo.types import shape_of, type_of
from mlirhlo.dialects.quick import put_operand
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.simplify.tuple_parts import insert_before, replace_parts, set_operand


@dataclass(frozen=True)
class DefaultLayoutsPass(HloPass):
    """Gives arrays of a program without assigned layouts the default order of dimensions.

    Before and after:

        %t = f32[3,2]{0,1} transpose(%x), dimensions={1,0}
            =>   %t = f32[3,2]{1,0} transpose(%x), dimensions={1,0}

    Front ends write some layouts that mean nothing. The entry's parameters and result keep theirs, and
    so do operands and results of custom calls: copies stand between, but for results that are transposed last.
    Scheduled modules and those with bitcasts, whose layouts a compiler has chosen, keep theirs; only `add-dependency`,
    `domain` and `opt-barrier` of an array in another layout than their own read a copy of it.
    """

    name = "default-layouts"

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Changes the types; whether any was another."""
        del trace
        if not has_layouts(module):
            return False
        if module.is_scheduled or module.candidates(BitcastOp):
            return _copy_what_is_handed_on(module)
        before = _written(module)
        result = module.program_layout.result
        for computation in module.computations:
            is_entry = computation.is_entry is not None
            _change(computation, keep_parameters=is_entry)
            if is_entry:
                _give(computation, _with_layouts(result, computation.root.shape))
        # Results that are transposed last may have been given back what they had.
        return _written(module) != before


def _copy_what_is_handed_on(module: HloModule) -> bool:
    """Copies arrays whose layout is not that of the instruction that hands them on; whether there were any."""
    changed = False
    for op in tuple(module.instructions):
        if op.opcode.name in HANDS_ON and isinstance(op.shape, ArrayShape):
            shape = op.input_shapes[0]
            if isinstance(shape, ArrayShape) and shape.layout != op.shape.layout:
                op.operands[0] = _moved(
                    op.inputs[0], type_of(shape.with_layout(op.shape.layout)), op
                )
                changed = True
    return changed


def has_layouts(module: HloModule) -> bool:
    """Whether any array has its dimensions in another order than the default."""
    return any(
        leaf.layout is not None and leaf.layout.minor_to_major != tuple(range(leaf.rank))[::-1]
        for type_ in module.known(HloModule.result_types)
        for _, leaf in leaves(shape_of(type_))
        if isinstance(leaf, ArrayShape)
    )


def _written(module: HloModule) -> list[tuple[type[Instruction], Attribute, tuple[int, ...]]]:
    """Classes, types and places of operands of all instructions."""
    listed = list(module.instructions)
    places: dict[SSAValue, int] = {op.output: place for place, op in enumerate(listed)}
    return [(type(op), op.output.type, tuple([places[v] for v in op.operands])) for op in listed]


def _change(computation: ComputationOp, *, keep_parameters: bool) -> None:
    fixed: set[SSAValue] = set()
    for op in tuple(computation.instructions):
        if isinstance(op, CustomCallOp):
            _restore_operands(op)
        is_fixed = isinstance(op, CustomCallOp) or (keep_parameters and isinstance(op, ParameterOp))
        if not is_fixed and not (_takes_a_part(op) and op.inputs[0] in fixed):
            op.output._type = _default(op.output.type)
            continue
        fixed.add(op.output)
        if isinstance(op.shape, ArrayShape):
            _copy_for_readers(op)


def _takes_a_part(op: Instruction) -> bool:
    """Whether the result is a part of the first operand, as it lies there."""
    return isinstance(op, GetTupleElementOp) or op.opcode.name.endswith("-done")


@functools.lru_cache(maxsize=1 << 12)
def _default(type_: Attribute) -> Attribute:
    return type_of(in_default_order(shape_of(type_)))


def in_default_order(shape: Shape) -> Shape:
    """The shape with its arrays in memory as their dimensions are numbered."""
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(map(in_default_order, shape.elements)))
    if not isinstance(shape, ArrayShape) or shape.layout is None:
        return shape
    order = default_layout(shape.rank).minor_to_major
    return shape.with_layout(replace(shape.layout, minor_to_major=order))


def _restore_operands(op: CustomCallOp) -> None:
    """Lets a custom call read its operands in the layouts that it asks for."""
    wanted = op.operand_layout_constraints
    if wanted is None:
        return
    for number, (value, shape) in enumerate(zip(op.inputs, wanted, strict=False)):
        type_ = type_of(shape)
        if isinstance(shape, ArrayShape) and type_ != value.type:
            put_operand(op, number, _moved(value, type_, op))


def _copy_for_readers(op: Instruction) -> None:
    """Lets the users of `op` read it in the default layout."""
    type_ = _default(op.output.type)
    readers = [use for use in op.output.uses if not isinstance(use.operation, CopyOp)]
    if type_ == op.output.type or not readers:
        return
    copy = create(CopyOp, [op.output], type_, {})
    block = op.parent
    assert block is not None
    block.insert_op_after(copy, op)
    for use in readers:
        user = use.operation
        if not isinstance(user, Instruction) or use.index < len(user.inputs):
            put_operand(user, use.index, copy.output)


def _give(computation: ComputationOp, shape: Shape) -> None:
    """Lets the root have a shape of other layouts."""
    value = _as(computation.root.output, shape, computation.terminator)
    if value is not computation.root.output:
        set_operand(computation.terminator, 0, value)


def _as(value: SSAValue, shape: Shape, before: Operation) -> SSAValue:
    have = shape_of(value.type)
    wanted = {
        index: part
        for index, part in leaves(shape)
        if isinstance(part, ArrayShape) and type_of(part) != type_of(subshape(have, index))
    }

    def part(index: tuple[int, ...], old: SSAValue) -> SSAValue:
        return _moved(old, type_of(wanted[index]), before)

    return replace_parts(value, wanted, before, part)


def _moved(value: SSAValue, type_: Attribute, before: Operation) -> SSAValue:
    """The array in another layout, for one reader."""
    if isinstance(value.owner, CopyOp | TransposeOp) and value.has_one_use():
        # It moves elements anyway, and may put them where they have to be.
        value._type = type_
        return value
    return insert_before(before, create(CopyOp, [value], type_, {})).output


def _with_layouts(wanted: Shape, have: Shape) -> Shape:
    """The shape `have` with the layouts of `wanted`, where it has any."""
    if isinstance(wanted, TupleShape) and isinstance(have, TupleShape):
        pairs = zip(wanted.elements, have.elements, strict=True)
        return TupleShape(tuple(_with_layouts(w, h) for w, h in pairs))
    if isinstance(wanted, ArrayShape) and isinstance(have, ArrayShape) and wanted.layout:
        return have.with_layout(wanted.layout)
    return have
