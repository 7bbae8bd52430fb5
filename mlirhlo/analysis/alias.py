"""Which values must share memory: loops' state, branches' results, updates in place, aliased results.

Source: behaviour of XLA's `HloAliasAnalysis`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from mlirhlo.analysis.dataflow import (
    Position,
    ShapeIndex,
    Sources,
    Value,
    in_place_pairs,
    sources,
)
from mlirhlo.dialects.hlo.attributes.aliasing import InputOutputAliases
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops.base import Instruction


@dataclass(frozen=True, slots=True)
class Aliases:
    """Buffers of one module: sets of values that must share memory."""

    sources: Sources
    buffers: tuple[tuple[Value, ...], ...]
    """In the order of their first value in the module."""
    positions: tuple[tuple[Position, ...], ...]
    """Where the values of each buffer stand."""
    buffer_of: Mapping[Position, int]

    def at(self, op: Instruction, index: ShapeIndex = ()) -> int:
        """Number of the buffer at a position."""
        return self.buffer_of[op, index]

    def share(self, one: Position, other: Position) -> bool:
        """Whether two positions always hold the same memory; else they never do."""
        return self.buffer_of[one] == self.buffer_of[other]


@dataclass(slots=True)
class _Union:
    parents: dict[Position, Position] = field(default_factory=dict[Position, Position])

    def find(self, position: Position) -> Position:
        root, parents = position, self.parents
        while (parent := parents.get(root)) is not None:
            root = parent
        while (parent := parents.get(position)) is not None:
            if parent is root:
                break
            parents[position] = root
            position = parent
        return root

    def join(self, one: Position, other: Position) -> None:
        one, other = self.find(one), self.find(other)
        if one != other:
            self.parents[other] = one


def aliases(module: HloModule) -> Aliases:
    """Buffers of `module` as it is now."""
    flow = sources(module)
    union = _Union()
    # Values that may stand at one position share memory, so positions do with those that they come from.
    for position, found in flow.of.items():
        for source in found:
            union.join(source, position)
    for computation in flow.computations.values():
        for op in computation.instructions:
            for number, at, index in in_place_pairs(op, flow.computations):
                union.join((cast(Instruction, op.inputs[number].owner), at), (op, index))
    entry = module.entry
    given = module.get("input_output_alias")
    if given is not None:
        pairs = cast(InputOutputAliases, getattr(given, "data"))  # noqa: B009  # an xDSL Data attribute
        for alias in pairs.entries:
            parameter = entry.parameters[alias.parameter_number]
            union.join((parameter, alias.parameter_index), (entry.root, alias.output_index))
    numbers: dict[Position, int] = {}
    buffers: list[list[Value]] = []
    for value in flow.values:
        number = numbers.setdefault(union.find(value), len(buffers))
        if number == len(buffers):
            buffers.append([])
        buffers[number].append(value)
    positions: list[list[Position]] = [[] for _ in buffers]
    buffer_of: dict[Position, int] = {}
    for position in flow.of:
        reached = numbers.get(union.find(position))
        if reached is not None:  # what no value reaches has none
            buffer_of[position] = reached
            positions[reached].append(position)
    return Aliases(flow, tuple(map(tuple, buffers)), tuple(map(tuple, positions)), buffer_of)
