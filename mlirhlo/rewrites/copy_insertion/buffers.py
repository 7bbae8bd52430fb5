"""Which values have to share a buffer, in single-value form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from mlirhlo.analysis.dataflow import Value, in_place_pairs
from mlirhlo.analysis.single_values import SingleValues
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import ConstantOp, ParameterOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, subshape


def is_array(value: Value) -> bool:
    """Whether the value has memory: tokens have none."""
    op, index = value
    return isinstance(subshape(op.shape, index), ArrayShape)


def ties(module: HloModule, values: SingleValues) -> Iterator[tuple[Value, Value]]:
    """Pairs of values that must be in one buffer."""
    value_of = values.value_of
    for value, joined in values.joins.items():
        for other in joined:
            yield value, other
    for computation in values.run:
        for op in computation.instructions:
            for number, index, result in in_place_pairs(op, values.computations):
                operand = cast(Instruction, op.inputs[number].owner)
                if (operand, index) in value_of and (op, result) in value_of:
                    yield value_of[operand, index], value_of[op, result]
    entry = module.entry
    aliases, parameters = module.input_output_alias, entry.parameters
    for alias in aliases.entries if aliases is not None else ():
        parameter = parameters[alias.parameter_number]
        given = value_of.get((parameter, alias.parameter_index))
        made = value_of.get((entry.root, alias.output_index))
        if given is not None and made is not None:
            yield given, made


def given_away(module: HloModule) -> set[Value]:
    """Parts of entry parameters that results may be written over."""
    aliases = module.input_output_alias
    parameters = module.entry.parameters
    return {
        (parameters[alias.parameter_number], alias.parameter_index)
        for alias in (aliases.entries if aliases is not None else ())
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
