"""Vectors that go in and out of regions: each becomes its registers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ArrayAttr
from xdsl.rewriter import Rewriter

from mlirhlo.dialects.tpu.attributes import VectorLayoutAttr
from mlirhlo.mosaic.pipeline.building import build, insert, is_vector
from mlirhlo.mosaic.pipeline.layouts import layout_of
from mlirhlo.mosaic.pipeline.registers.shapes import part_of
from mlirhlo.mosaic.pipeline.registers.state import Registers, grid_of, register_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Attribute, Block, Operation, SSAValue


def has_vectors(values: Sequence[SSAValue]) -> bool:
    """Whether any of the values is a vector."""
    return any(is_vector(value.type) for value in values)


def expanded(op: Operation, state: Registers) -> list[SSAValue]:
    """The operands of a loop, a branch or a terminator, with the registers of vectors."""
    operands: list[SSAValue] = []
    for at, value in enumerate(op.operands):
        if is_vector(value.type):
            operands += part_of(op, state, at).registers
        else:
            operands.append(value)
    return operands


def types_of(values: Sequence[SSAValue], op: Operation) -> list[Attribute]:
    """The types of values, with those of registers for vectors."""
    found: list[Attribute] = []
    for value in values:
        layout = layout_of(value)
        if layout is None:
            found.append(value.type)
        else:
            count = grid_of(layout, value.type, op).count
            found += [register_type(layout, value.type)] * count
    return found


def end(op: Operation, state: Registers) -> None:
    """The terminator of a region gives registers."""
    if has_vectors(op.operands):
        op.operands = expanded(op, state)


def with_regions(op: Operation, state: Registers) -> Operation:
    """An operation that takes, carries and gives registers; what stands in it comes later."""
    arguments = [a for region in op.regions for block in region.blocks for a in block.args]
    if not has_vectors((*op.operands, *op.results, *arguments)):
        return op
    regions = [op.detach_region(region) for region in list(op.regions)]
    new = type(op).create(
        operands=expanded(op, state),
        result_types=types_of(op.results, op),
        properties=op.properties,
        attributes=op.attributes,
        regions=regions,
    )
    for region in regions:
        for block in region.blocks:
            _carry(block, state, op)
    insert(new, op)
    values: list[SSAValue] = []
    at = 0
    for result in op.results:
        count, layout = len(types_of((result,), op)), layout_of(result)
        registers = list(new.results[at : at + count])
        at += count
        if layout is not None:
            values.append(state.rolled(registers, result.type, layout))
        else:
            values += registers
    for result, value in zip(op.results, values, strict=True):
        value.name_hint = result.name_hint
        result.replace_all_uses_with(value)
    Rewriter.erase_op(op)
    return new


def _carry(block: Block, state: Registers, op: Operation) -> None:
    """The arguments of a block are registers, put together at its beginning."""
    first = block.first_op
    assert first is not None
    for argument in list(block.args):
        type_, layout = argument.type, layout_of(argument)
        if layout is None:
            continue
        made: list[SSAValue] = []
        for register in types_of((argument,), op):
            new = block.insert_arg(register, argument.index)
            new.name_hint = argument.name_hint
            made.append(new)
        rolled = build("tpu.roll_vectors", made, (type_,))
        rolled.attributes["out_layout"] = ArrayAttr([VectorLayoutAttr(layout)])
        insert(rolled, first)
        state.known[rolled.results[0]] = made
        argument.replace_all_uses_with(rolled.results[0])
        block.erase_arg(argument)
