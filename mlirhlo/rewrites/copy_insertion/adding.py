"""Copies at every place where values that share a buffer meet; the removal drops the needless ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import cast

from xdsl.ir import Operation, SSAValue

from mlirhlo.analysis.dataflow import WRITING_IN_PLACE, ShapeIndex, in_place_pairs
from mlirhlo.analysis.single_values import SingleValues
from mlirhlo.dialects.hlo.attributes.aliasing import InputOutputAlias
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.module import HloModule, holder
from mlirhlo.dialects.hlo.ops import ConditionalOp, ParameterOp, WhileOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.shapes import leaves, subshape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.rewrites.copy_insertion.buffers import Buffers, is_array
from mlirhlo.rewrites.tuple_parts import insert_before, replace_parts, set_operand

Copies = dict[ShapeIndex, Instruction]
"""Copies of parts of a value."""


def add_copies(module: HloModule, values: SingleValues) -> set[Instruction]:
    """Copies around loops, branches, writes in place and aliased results; all that were added."""
    added: set[Instruction] = set()
    # What changes is known before anything does: a body's parameter may be the state of a loop inside.
    loops = [(op, _changing(op, values)) for op in module.candidates(WhileOp)]
    others = module.candidates(ConditionalOp, *WRITING_IN_PLACE)
    run = frozenset(values.run)
    for loop, wanted in loops:
        if wanted and holder(loop) in run:
            _around_loop(cast(WhileOp, loop), wanted, values, added)
    for op in others:
        if holder(op) not in run:
            continue
        if isinstance(op, ConditionalOp):
            _at_ends_of_branches(op, values, added)
        elif not op.opcode.name.endswith("-done"):
            _before_write(op, values, added)
    _of_aliased_results(module, added)
    return added


def _changing(op: Instruction, values: SingleValues) -> list[ShapeIndex]:
    """Elements of a loop's state that its body changes."""
    init = cast(Instruction, op.inputs[0].owner)
    return [
        index
        for index, _ in leaves(op.shape)
        if is_array((op, index)) and values.at(op, index) != values.at(init, index)
    ]


def _copied(
    value: SSAValue,
    wanted: Collection[ShapeIndex],
    place: Operation,
    added: set[Instruction],
    after: Mapping[ShapeIndex, Instruction] | None = None,
) -> tuple[SSAValue, Copies]:
    """`value` with copies of the wanted parts, and those; each runs after the one of `after`."""
    made: Copies = {}

    def part(index: ShapeIndex, old: SSAValue) -> SSAValue:
        first = [after[index]] if after else []
        copy = make("copy", [old], shape_of(old.type), control_predecessors=first)
        insert_before(place, copy)
        made[index] = copy
        added.add(copy)
        return copy.output

    return replace_parts(value, wanted, place, part), made


def _copy_for_readers(
    op: Instruction, wanted: Collection[ShapeIndex], added: set[Instruction]
) -> Copies:
    """Lets all readers of a parameter read copies of its wanted parts."""
    uses = tuple(op.output.uses)
    place = op.next_op
    while isinstance(place, ParameterOp):
        place = place.next_op
    assert place is not None
    value, copies = _copied(op.output, wanted, place, added)
    for use in uses:
        user = use.operation
        if not isinstance(user, Instruction) or use.index < len(user.inputs):
            user.operands[use.index] = value
    return copies


def _copy_root(
    computation: ComputationOp,
    wanted: Collection[ShapeIndex],
    added: set[Instruction],
    after: Mapping[ShapeIndex, Instruction] | None = None,
) -> None:
    end = computation.terminator
    value, _ = _copied(end.root, wanted, end, added, after)
    set_operand(end, 0, value)


def _around_loop(
    op: WhileOp,
    wanted: Collection[ShapeIndex],
    values: SingleValues,
    added: set[Instruction],
) -> None:
    """The first state, and in the body the state and the next one, of the wanted elements."""
    value, _ = _copied(op.inputs[0], wanted, op, added)
    set_operand(op, 0, value)
    body = values.computations[op.body]
    copies = _copy_for_readers(body.parameters[0], wanted, added)
    _copy_root(body, wanted, added, copies)


def _at_ends_of_branches(op: ConditionalOp, values: SingleValues, added: set[Instruction]) -> None:
    """The results of branches, where they differ."""
    wanted = [
        index
        for index, _ in leaves(op.shape)
        if is_array((op, index)) and values.at(op, index) == (op, index)
    ]
    if wanted:
        for name in op.called_computations:
            _copy_root(values.computations[name], wanted, added)


def _before_write(op: Instruction, values: SingleValues, added: set[Instruction]) -> None:
    """Operands that are written over."""
    wanted: dict[int, set[ShapeIndex]] = {}
    for number, index, _ in in_place_pairs(op, values.computations):
        owner = cast(Instruction, op.inputs[number].owner)
        wanted.setdefault(number, set()).update(
            (*index, *inner)
            for inner, _ in leaves(subshape(owner.shape, index))
            if is_array((owner, (*index, *inner)))
        )
    for number, indices in wanted.items():
        value, _ = _copied(op.inputs[number], indices, op, added)
        set_operand(op, number, value)


def _of_aliased_results(module: HloModule, added: set[Instruction]) -> None:
    """Parameters that are given away, and the results that take their place."""
    found = module.input_output_alias
    if found is None or not found.entries:
        return
    entry = module.entry
    by_parameter: dict[int, list[InputOutputAlias]] = {}
    for alias in found.entries:
        by_parameter.setdefault(alias.parameter_number, []).append(alias)
    after: Copies = {}
    for parameter in entry.parameters:
        own = by_parameter.get(parameter.parameter_number)
        if own:
            copies = _copy_for_readers(parameter, {e.parameter_index for e in own}, added)
            after.update((e.output_index, copies[e.parameter_index]) for e in own)
    _copy_root(entry, list(after), added, after)


def add_copies_of_results(module: HloModule, values: SingleValues) -> int:
    """Copies of results that are constants, parameters, or the buffer of another result; how many."""
    entry = module.entry
    aliased = (
        {e.output_index for e in found.entries} if (found := module.input_output_alias) else ()
    )
    buffers = Buffers(module, values)
    seen: dict[int, ShapeIndex] = {}
    wanted: set[ShapeIndex] = set()
    for index, _ in leaves(entry.root.shape):
        if not is_array((entry.root, index)):
            continue
        value = values.at(entry.root, index)
        buffer = buffers.of(value)
        if buffer.is_read_only:
            wanted.add(index)
            continue
        first = seen.setdefault(id(buffer), index)
        if first != index:
            # The one that has to be over a parameter stays there.
            wanted.add(first if index in aliased and first not in aliased else index)
    if wanted:
        _copy_root(entry, wanted, set())
    return len(wanted)
