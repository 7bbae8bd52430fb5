"""Which values have to share a buffer, in single-value form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from mlirhlo.analysis.dataflow import WRITING_IN_PLACE, ShapeIndex, Value, in_place_pairs
from mlirhlo.analysis.live_ranges import LiveRanges
from mlirhlo.analysis.single_values import SingleValues
from mlirhlo.dialects.hlo.attributes.aliasing import InputOutputAlias
from mlirhlo.dialects.hlo.module import HloModule, holder
from mlirhlo.dialects.hlo.ops import (
    ConditionalOp,
    ConstantOp,
    DynamicUpdateSliceOp,
    FusionOp,
    ParameterOp,
    ScatterOp,
    WhileOp,
)
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape, subshape
from mlirhlo.rewrites.copy_insertion.buffer import Buffer

Pairs: TypeAlias = "tuple[tuple[int, ShapeIndex, ShapeIndex], ...]"
"""Of an instruction: number of an operand, index in it and in the result, which are in one buffer."""


def is_array(value: Value) -> bool:
    """Whether the value has memory: tokens have none."""
    op, index = value
    return isinstance(subshape(op.shape, index), ArrayShape)


def is_leaf(value: Value) -> bool:
    """Whether the position is of no tuple."""
    op, index = value
    return not isinstance(subshape(op.shape, index), TupleShape)


@dataclass(frozen=True, slots=True)
class Sharing:
    """Where a module says that values share a buffer; in computations that run as a whole."""

    loops: Sequence[WhileOp]
    conditionals: Sequence[ConditionalOp]
    in_place: Sequence[tuple[Instruction, Pairs]]
    """Instructions that write over operands."""
    aliases: Sequence[InputOutputAlias]
    """Of results and parameters that are no tuples."""

    def any(self) -> bool:
        """Whether there is such a place."""
        return bool(self.loops or self.conditionals or self.in_place or self.aliases)


def sharing(module: HloModule) -> Sharing:
    """Of the module as it is now."""
    fused = module.known(HloModule.fused_computations)

    def of_class(kind: type[Instruction]) -> list[Instruction]:
        return [op for op in module.candidates(kind) if holder(op).computation_name not in fused]

    aliases = module.input_output_alias
    entries: tuple[InputOutputAlias, ...] = ()
    if aliases is not None and aliases.entries:
        root, parameters = module.entry.root, module.entry.parameters
        entries = tuple(
            alias
            for alias in aliases.entries
            if is_leaf((parameters[alias.parameter_number], alias.parameter_index))
            and is_leaf((root, alias.output_index))
        )
    return Sharing(
        cast("list[WhileOp]", of_class(WhileOp)),
        cast("list[ConditionalOp]", of_class(ConditionalOp)),
        _in_place(module, fused),
        entries,
    )


def _in_place(module: HloModule, fused: frozenset[str]) -> list[tuple[Instruction, Pairs]]:
    computations = module.known(HloModule.by_name)
    updating = {
        holder(op).computation_name for op in module.candidates(DynamicUpdateSliceOp, ScatterOp)
    }
    found: list[tuple[Instruction, Pairs]] = []
    for op in module.candidates(*WRITING_IN_PLACE):
        # Most fusions write nothing in place: that can be told from the classes in them.
        if type(op) is FusionOp and "output_to_operand_aliasing" not in op.properties:
            if not updating or op.calls not in updating:
                continue
        if holder(op).computation_name not in fused:
            if pairs := in_place_pairs(op, computations):
                found.append((op, pairs))
    return found


class Buffers:
    """Values by buffer; each has one of its own until it is tied to another."""

    def __init__(self, module: HloModule, places: Sharing, values: SingleValues) -> None:
        """Of `module` with the copies proposed."""
        self._of: dict[Value, Buffer] = {}
        self._entry = module.entry
        parameters = self._entry.parameters if places.aliases else ()
        self._given = {
            (parameters[alias.parameter_number], alias.parameter_index) for alias in places.aliases
        }
        for one, other in self._ties(places, values):
            if is_array(one) and is_array(other):
                self.merge(self.of(one), self.of(other))

    def _ties(self, places: Sharing, values: SingleValues) -> Iterator[tuple[Value, Value]]:
        """Pairs of values that must be in one buffer."""
        for value, joined in values.joins.items():
            for other in joined:
                yield value, other
        for op, pairs in places.in_place:
            for number, index, result in pairs:
                operand = cast(Instruction, op.inputs[number].owner)
                if is_leaf((operand, index)) and is_leaf((op, result)):
                    yield values.read_by(op, number, index), values.at(op, result)
        parameters = self._entry.parameters if places.aliases else ()
        for alias in places.aliases:
            parameter = parameters[alias.parameter_number]
            given_back = values.read_by(self._entry.terminator, 0, alias.output_index)
            yield values.at(parameter, alias.parameter_index), given_back

    def of(self, value: Value) -> Buffer:
        """The buffer that a value is in."""
        found = self._of.get(value)
        if found is None:
            found = self._of[value] = Buffer(value, self._is_read_only(value))
        return found

    def _is_read_only(self, value: Value) -> bool:
        """Whether nothing may be written there: constants, and parameters that are not given away."""
        op = value[0]
        if isinstance(op, ConstantOp):
            return True
        is_parameter = isinstance(op, ParameterOp) and op.parent_op() is self._entry
        return is_parameter and value not in self._given

    def merge(self, one: Buffer, other: Buffer) -> Buffer:
        """Puts two buffers into one, which is returned."""
        if one is other:
            return one
        if len(one.values) < len(other.values):
            one, other = other, one
        one.add_all(other)
        for value in other.values:
            self._of[value] = one
        return one

    def put_in_order(self, ranges: LiveRanges) -> None:
        """Sorts every buffer's values by the time they are written."""
        line = ranges.ordering.timeline()
        for buffer in {id(buffer): buffer for buffer in self._of.values()}.values():
            buffer.put_in_order(line, ranges)

    @property
    def makers(self) -> set[Instruction]:
        """Instructions that define the values asked about so far."""
        return {op for op, _ in self._of}
