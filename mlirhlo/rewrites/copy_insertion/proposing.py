"""Copies proposed at every place where values that share a buffer meet, but where there is one already."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from xdsl.ir import Operation

from mlirhlo.analysis.dataflow import ShapeIndex
from mlirhlo.analysis.proposed_copies import (
    READERS,
    PartReaders,
    Place,
    ProposedCopies,
    own_copy,
)
from mlirhlo.analysis.single_values import SingleValues, single_values
from mlirhlo.dialects.hlo.attributes.aliasing import InputOutputAlias
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import ConditionalOp, CopyOp, WhileOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import leaves, subshape
from mlirhlo.rewrites.copy_insertion.buffers import Sharing, is_array


def propose_copies(module: HloModule, places: Sharing) -> SingleValues:
    """Values with copies around loops, at the ends of branches, before writes in place, of aliased results."""
    if not places.any():
        return single_values(module)
    proposals = _Proposals()
    # What changes is told by the values as they are.
    plain = single_values(module) if places.loops or places.conditionals else None
    if plain is not None:
        for loop in places.loops:
            proposals.around_loop(loop, _changing(loop, plain), plain)
        for conditional in places.conditionals:
            proposals.at_ends_of_branches(conditional, plain)
    for op, pairs in places.in_place:
        if not op.opcode.name.endswith("-done"):
            for number, index, _ in pairs:
                proposals.of_operand(op, number, index)
    proposals.of_aliased_results(module, places)
    return single_values(module, proposals.found)


def _changing(op: WhileOp, values: SingleValues) -> list[ShapeIndex]:
    """Elements of a loop's state that its body changes."""
    init = cast(Instruction, op.inputs[0].owner)
    return [
        index
        for index, _ in leaves(op.shape)
        if is_array((op, index)) and values.at(op, index) != values.at(init, index)
    ]


class _Proposals:
    def __init__(self) -> None:
        self.found = ProposedCopies()
        self._taken: set[CopyOp | None] = set()
        """Copies of the module that stand for a proposed one."""
        self._readers = PartReaders()

    def _at(self, place: Place, after: CopyOp | None = None) -> CopyOp:
        """The copy at a place: one that is there, if it is nobody else's and may run after that other one."""
        copy = own_copy(place, self._readers)
        may_wait = (
            after is None
            or after in self.found.places
            or (copy is not None and after.is_before_in_block(copy))
        )
        if copy is not None and copy not in self._taken and may_wait:
            self._taken.add(copy)
        elif (copy := self.found.at(place.reader, place.number).get(place.part)) is None:
            copy = self.found.propose(place)
        if after is not None:
            self.found.wait(copy, after)
        return copy

    def _pairs(
        self, end: Operation, parts: Iterable[tuple[ShapeIndex, Instruction, ShapeIndex]]
    ) -> None:
        """Of parts of parameters for their readers, and of the results over them, which are copied after them."""
        parts = tuple(parts)
        # A copy between a parameter and a result is the result's.
        at_end = {
            own_copy(Place(end, 0, result), self._readers) for result, _, _ in parts
        } - self._taken
        self._taken |= at_end
        first = {
            result: self._at(Place(parameter, READERS, index)) for result, parameter, index in parts
        }
        self._taken -= at_end
        # In this order they will stand.
        for result in sorted(first):
            self._at(Place(end, 0, result), first[result])

    def around_loop(self, op: WhileOp, wanted: list[ShapeIndex], values: SingleValues) -> None:
        """Of the first state, and in the body of the state and the next one."""
        for index in wanted:
            self._at(Place(op, 0, index))
        body = values.computations[op.body]
        parameter = body.parameters[0]
        self._pairs(body.terminator, ((index, parameter, index) for index in wanted))

    def at_ends_of_branches(self, op: ConditionalOp, values: SingleValues) -> None:
        """Of the results of branches, where they differ."""
        for index, _ in leaves(op.shape):
            if is_array((op, index)) and values.at(op, index) == (op, index):
                for name in op.called_computations:
                    self._at(Place(values.computations[name].terminator, 0, index))

    def of_operand(self, op: Instruction, number: int, index: ShapeIndex) -> None:
        """Of what is written over."""
        owner = cast(Instruction, op.inputs[number].owner)
        for inner, _ in leaves(subshape(owner.shape, index)):
            if is_array((owner, (*index, *inner))):
                self._at(Place(op, number, (*index, *inner)))

    def of_aliased_results(self, module: HloModule, places: Sharing) -> None:
        """Of parameters that are given away, and of the results that take their place."""
        if not places.aliases:
            return
        entry = module.entry
        by_parameter: dict[int, list[InputOutputAlias]] = {}
        for alias in places.aliases:
            by_parameter.setdefault(alias.parameter_number, []).append(alias)
        parts = [
            (alias.output_index, parameter, alias.parameter_index)
            for parameter in entry.parameters
            for alias in by_parameter.get(parameter.parameter_number, ())
        ]
        self._pairs(entry.terminator, parts)
