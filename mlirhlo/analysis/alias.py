"""Which values must share memory: loops' state, branches' results, updates in place, aliased results.

Source: behaviour of XLA's `HloAliasAnalysis`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from mlirhlo.analysis.dataflow import (
    Dataflow,
    Position,
    ShapeIndex,
    Value,
    dataflow,
    in_place_pairs,
)
from mlirhlo.dialects.hlo.attributes.aliasing import InputOutputAliases
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops.base import Instruction


@dataclass(frozen=True, slots=True)
class Aliases:
    """Buffers of one module: sets of values that must share memory."""

    dataflow: Dataflow
    buffers: tuple[tuple[Value, ...], ...]
    """In the order of their first value in the module."""
    buffer_of: Mapping[Value, int]

    def at(self, op: Instruction, index: ShapeIndex = ()) -> tuple[int, ...]:
        """Numbers of the buffers that may stand at a position; one, but at tuples' own tables."""
        return tuple(sorted({self.buffer_of[v] for v in self.dataflow.at(op, index)}))

    def must_alias(self, one: Position, other: Position) -> bool:
        """Whether two positions always hold the same memory."""
        here = self.at(*one)
        return len(here) == 1 and here == self.at(*other)

    def may_alias(self, one: Position, other: Position) -> bool:
        """Whether two positions may hold the same memory."""
        return not set(self.at(*one)).isdisjoint(self.at(*other))


@dataclass(slots=True)
class _Union:
    parents: dict[Value, Value] = field(default_factory=dict[Value, Value])

    def find(self, value: Value) -> Value:
        root = value
        while (parent := self.parents.get(root, root)) != root:
            root = parent
        while value != root:
            following = self.parents.get(value, root)
            self.parents[value] = root
            value = following
        return root

    def join(self, one: Value, other: Value) -> None:
        one, other = self.find(one), self.find(other)
        if one != other:
            self.parents[other] = one


def aliases(module: HloModule) -> Aliases:
    """Buffers of `module` as it is now."""
    flow = dataflow(module)
    union = _Union()
    for values in flow.sets.values():
        first, *others = values
        for value in others:
            union.join(first, value)
    for computation in flow.computations.values():
        for op in computation.instructions:
            for number, at, index in in_place_pairs(op, flow.computations):
                _join(flow, union, (cast(Instruction, op.inputs[number].owner), at), (op, index))
    entry = module.entry
    found = module.get("input_output_alias")
    if found is not None:
        pairs = cast(InputOutputAliases, getattr(found, "data"))  # noqa: B009  # an xDSL Data attribute
        for alias in pairs.entries:
            parameter = entry.parameters[alias.parameter_number]
            _join(
                flow,
                union,
                (parameter, alias.parameter_index),
                (entry.root, alias.output_index),
            )
    numbers: dict[Value, int] = {}
    buffers: list[list[Value]] = []
    buffer_of: dict[Value, int] = {}
    for value in flow.positions:
        number = numbers.setdefault(union.find(value), len(buffers))
        if number == len(buffers):
            buffers.append([])
        buffers[number].append(value)
        buffer_of[value] = number
    return Aliases(flow, tuple(map(tuple, buffers)), buffer_of)


def _join(flow: Dataflow, union: _Union, one: Position, other: Position) -> None:
    first = next(iter(flow.sets[one]), None)
    second = next(iter(flow.sets[other]), None)
    if first is not None and second is not None:
        union.join(first, second)
