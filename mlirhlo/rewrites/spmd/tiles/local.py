"""One device's part of an instruction, once it is known along which axes each factor is cut.

A handler brings the operands to that cut, writes the instruction on tiles and says where the results are.
Most opcodes need none of their own; the others are in `local_*`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from xdsl.ir import Attribute

from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.rewrites.spmd.emit import Estimate, Value, shape_of_value, sized
from mlirhlo.rewrites.spmd.factors import Dims, Factors, gathered, leaves
from mlirhlo.rewrites.spmd.grid import Axes, Grid, Placement
from mlirhlo.rewrites.spmd.part import Opaque, Part, mask, reshard

Leaf: TypeAlias = Part | Opaque


@dataclass(frozen=True, slots=True)
class Windows:
    """When a collective around a dot is taken apart, see `windowed_einsum`."""

    threshold_mib: int | None = None
    """Size from which on an array is not made; None: always made."""
    is_unrolled: bool = False
    is_bidirectional: bool = False
    faster: bool = False
    skip_users: bool = False
    for_all_gather: bool = True
    for_reduce_scatter: bool = True


@dataclass(slots=True)
class Work:
    """An instruction to be done on tiles."""

    op: Instruction
    operands: Sequence[Leaf]
    factors: Factors
    cuts: Mapping[int, Axes]
    """Axes that cut each factor; factors that are not named are whole."""
    grid: Grid
    manual: frozenset[int]
    computations: Mapping[str, ComputationOp]
    emit: Estimate
    windows: Windows = Windows()
    target: Placement | None = None
    """Where the result is brought to afterwards."""

    def placement(self, dims: Dims) -> Placement:
        """Where an array of these factors is."""
        axes = tuple(gathered(d, dict(self.cuts), self.factors.sizes, self.grid) for d in dims)
        return Placement(self.grid, axes, self.manual)

    def part(self, index: int) -> Part:
        """Operand `index`, an array, brought to its place."""
        operand = self.operands[index]
        assert isinstance(operand, Part)
        return reshard(operand, self.placement(self.factors.operands[index]), self.emit)

    def value(self, index: int) -> Value:
        """What the device has of operand `index`, brought to its place."""
        operand = self.operands[index]
        return operand.value if isinstance(operand, Opaque) else self.part(index).value

    def cleared(self, index: int) -> Part:
        """Operand `index` at its place, with zeros for the padding that would be summed."""
        part = self.part(index)
        zero = self.emit.constant(0, part.shape.element_type)
        for dim, factors in enumerate(self.factors.operands[index]):
            if set(factors) & self.factors.reduced:
                part = mask(part, dim, zero, self.emit)
        return part

    def axes(self, factors: Sequence[int]) -> Axes:
        """Axes of a dimension made of `factors`."""
        return gathered(factors, dict(self.cuts), self.factors.sizes, self.grid)

    @property
    def partial(self) -> Axes:
        """Axes that cut what is summed over."""
        return tuple(a for f in sorted(self.factors.reduced) for a in self.cuts.get(f, ()))

    def local_shape(self, shape: Shape, dims: Dims) -> Shape:
        """Shape of a tile."""
        if not isinstance(shape, ArrayShape) or not dims or shape.is_dynamic:
            return shape
        return sized(shape, self.placement(dims).local(shape.dimensions))

    def local_result(self) -> Shape:
        """Shape of the tiles of the result; a tuple as flat as it is."""
        shape = self.op.shape
        if isinstance(shape, TupleShape):
            results = list(self.factors.results)
            return _localised(shape, results, self)
        return self.local_shape(shape, self.factors.results[0])

    def parts(self, value: Value, combine: str = "") -> list[Leaf]:
        """The results, from a value of `local_result()`."""
        return self.parts_of(_leaf_values(value, self.emit), combine)

    def parts_of(self, values: Sequence[Value], combine: str = "") -> list[Leaf]:
        """The results, from the local value of each leaf."""
        found: list[Leaf] = []
        shapes = leaves(self.op.shape)
        for value, shape, dims in zip(values, shapes, self.factors.results, strict=True):
            if not isinstance(shape, ArrayShape):
                found.append(Opaque(value, shape))
                continue
            partial = self.partial if combine else ()
            found.append(Part(value, shape, self.placement(dims), partial, combine))
        return found


def _localised(shape: Shape, results: list[Dims], work: Work) -> Shape:
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(_localised(e, results, work) for e in shape.elements))
    return work.local_shape(shape, results.pop(0))


def _leaf_values(value: Value, emit: Estimate) -> list[Value]:
    if isinstance(shape_of_value(value), TupleShape):
        return [leaf for e in emit.elements(value) for leaf in _leaf_values(e, emit)]
    return [value]


Handler: TypeAlias = Callable[[Work], list[Leaf]]
HANDLERS: dict[str, Handler] = {}
SHIFTING: set[str] = set()
"""Opcodes whose handlers fetch borders, so that shifted factors may be cut."""


def handles(*opcodes: str, shifts: bool = False) -> Callable[[Handler], Handler]:
    """Decorator: the function is the handler of `opcodes`."""

    def define(handler: Handler) -> Handler:
        for opcode in opcodes:
            HANDLERS[opcode] = handler
            if shifts:
                SHIFTING.add(opcode)
        return handler

    return define


def perform(work: Work) -> list[Leaf]:
    """The results of an instruction, written to `work.emit`."""
    return HANDLERS.get(work.op.opcode.name, plain)(work)


def plain(work: Work, properties: Mapping[str, Attribute] | None = None) -> list[Leaf]:
    """The same opcode on tiles."""
    operands = [work.value(k) for k in range(len(work.operands))]
    own = work.op.properties if properties is None else properties
    return work.parts(work.emit.like(work.op, operands, work.local_result(), own))


def with_cuts(work: Work, without: set[int]) -> Work:
    """The same work with some factors whole."""
    return replace(work, cuts={f: a for f, a in work.cuts.items() if f not in without})
