"""Which values have to share a buffer, in single-value form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from mlirhlo.analysis.dataflow import WRITING_IN_PLACE, Value, in_place_pairs
from mlirhlo.analysis.single_values import SingleValues
from mlirhlo.dialects.hlo.module import HloModule, holder
from mlirhlo.dialects.hlo.ops import ConstantOp, ParameterOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape, subshape


def is_array(value: Value) -> bool:
    """Whether the value has memory: tokens have none."""
    op, index = value
    return isinstance(subshape(op.shape, index), ArrayShape)


def is_leaf(value: Value) -> bool:
    """Whether the position is of no tuple."""
    op, index = value
    return not isinstance(subshape(op.shape, index), TupleShape)


def ties(module: HloModule, values: SingleValues) -> Iterator[tuple[Value, Value]]:
    """Pairs of values that must be in one buffer."""
    for value, joined in values.joins.items():
        for other in joined:
            yield value, other
    for op in in_place(module, values):
        for number, index, result in in_place_pairs(op, values.computations):
            operand = cast(Instruction, op.inputs[number].owner)
            if is_leaf((operand, index)) and is_leaf((op, result)):
                yield values.at(operand, index), values.at(op, result)
    aliases = module.input_output_alias
    if aliases is None:
        return
    root, parameters = module.entry.root, module.entry.parameters
    for alias in aliases.entries:
        parameter = parameters[alias.parameter_number]
        if is_leaf((parameter, alias.parameter_index)) and is_leaf((root, alias.output_index)):
            yield values.at(parameter, alias.parameter_index), values.at(root, alias.output_index)


def in_place(module: HloModule, values: SingleValues) -> list[Instruction]:
    """Instructions that may write over operands, in computations that run as a whole."""
    run = frozenset(values.run)
    return [op for op in module.candidates(*WRITING_IN_PLACE) if holder(op) in run]


def given_away(module: HloModule) -> set[Value]:
    """Parts of entry parameters that results may be written over."""
    aliases = module.input_output_alias
    if aliases is None:
        return set()
    parameters = module.entry.parameters
    return {
        (parameters[alias.parameter_number], alias.parameter_index) for alias in aliases.entries
    }


@dataclass(slots=True)
class Buffer:
    """Values that share memory."""

    values: list[Value]
    is_read_only: bool = False


class Buffers:
    """Values by buffer; each has one of its own until it is tied to another."""

    def __init__(self, module: HloModule, values: SingleValues) -> None:
        """Of `module` as it is now."""
        self._of: dict[Value, Buffer] = {}
        self._entry, self._given = module.entry, given_away(module)
        for one, other in ties(module, values):
            if is_array(one) and is_array(other):
                self.merge(self.of(one), self.of(other))

    def of(self, value: Value) -> Buffer:
        """The buffer that a value is in."""
        found = self._of.get(value)
        if found is None:
            found = self._of[value] = Buffer([value], self._is_read_only(value))
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
        one.values += other.values
        one.is_read_only |= other.is_read_only
        for value in other.values:
            self._of[value] = one
        return one

    @property
    def makers(self) -> set[Instruction]:
        """Instructions that define the values asked about so far."""
        return {op for op, _ in self._of}
