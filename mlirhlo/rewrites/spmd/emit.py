"""Writing the instructions of one device, and the same without writing, to know what they cost.

`Emitter` puts instructions into a block. `Estimate` has the same methods, puts nothing anywhere and adds
up costs: a strategy is tried by running its code on an estimate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import Attribute, Block, SSAValue

from mlirhlo.dialects.hlo import element_types as et
from mlirhlo.dialects.hlo.attributes.base import TRUE, integer, integers, string, symbol
from mlirhlo.dialects.hlo.attributes.dimensions import (
    Padding,
    PaddingAttr,
    PaddingDimension,
    Slice,
    SliceAttr,
    SliceDimension,
)
from mlirhlo.dialects.hlo.attributes.groups import ReplicaGroupsAttr
from mlirhlo.dialects.hlo.attributes.kinds import IntegerListsAttr
from mlirhlo.dialects.hlo.build import append, close, make
from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr
from mlirhlo.dialects.hlo.names import NameUniquer
from mlirhlo.dialects.hlo.ops import ComputationOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape, default_layout
from mlirhlo.dialects.hlo.table import OPCODES, opcodes
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.rewrites.spmd.grid import Axes, Grid

BYTES_MOVED_IN_MEMORY = 1 / 64
"""Cost of a byte written to a device's memory, where one sent to another device costs 1."""
FLOP = 1 / 2048
"""Cost of an operation of a dot or convolution: as many as the time of one byte sent allows."""


@dataclass(frozen=True, slots=True, eq=False)
class Ghost:
    """A value that an estimate pretends to have."""

    shape: Shape


Value: TypeAlias = SSAValue | Ghost


def shape_of_value(value: Value) -> Shape:
    """Shape of a real or a pretended value."""
    return value.shape if isinstance(value, Ghost) else shape_of(value.type)


def array_of(value: Value) -> ArrayShape:
    """Shape of an array."""
    shape = shape_of_value(value)
    assert isinstance(shape, ArrayShape)
    return shape


def sized(shape: ArrayShape, sizes: Sequence[int]) -> ArrayShape:
    """Elements of the same type in another array of the same or default layout."""
    sizes = tuple(sizes)
    layout = shape.layout if len(sizes) == shape.rank else default_layout(len(sizes))
    return ArrayShape(shape.element_type, sizes, (), layout)


def dense(type_: PrimitiveType, sizes: Sequence[int]) -> ArrayShape:
    """An array in the default layout."""
    return ArrayShape(type_, tuple(sizes), (), default_layout(len(sizes)))


@dataclass(slots=True)
class Computations:
    """The computations that partitioning adds to a module, and its channels."""

    replicas: int
    partitions: int
    names: NameUniquer
    channel: int
    """The last channel id in use."""
    added: list[ComputationOp] = field(default_factory=list[ComputationOp])
    _binary: dict[tuple[str, PrimitiveType], str] = field(
        default_factory=dict[tuple[str, PrimitiveType], str]
    )

    def binary(self, opcode: str, type_: PrimitiveType) -> str:
        """Name of the computation `opcode` of two scalars."""
        name = self._binary.get((opcode, type_))
        if name is None:
            block, scalar = Block(), ArrayShape(type_, ())
            parameters = [
                make("parameter", (), scalar, {"parameter_number": integer(n)}) for n in range(2)
            ]
            root = make(opcode, parameters, scalar)
            for op in (*parameters, root):
                append(block, op)
            name = self._binary[opcode, type_] = self.names.unique(f"{opcode}_{type_.name}")
            self.added.append(close(name, block, root.output))
        return name


class Estimate:
    """Adds up what instructions cost; values are ghosts."""

    def __init__(self, module: Computations) -> None:
        """`module`: told of nothing."""
        self.module: Computations = module
        self.bytes: float = 0.0
        """Bytes one device sends, in the usual ring or pairwise algorithms."""
        self.work: float = 0.0
        """Everything else, in bytes sent that take as long."""

    @property
    def cost(self) -> float:
        """Both together."""
        return self.bytes + self.work

    # -------------------------------------------------------------- the only two that write

    def make(
        self,
        opcode: str,
        operands: Sequence[Value],
        shape: Shape,
        properties: Mapping[str, Attribute] | None = None,
    ) -> Value:
        """An instruction."""
        del properties
        self._count(opcode, operands, shape)
        return Ghost(shape)

    def like(
        self,
        op: Instruction,
        operands: Sequence[Value],
        shape: Shape,
        properties: Mapping[str, Attribute],
    ) -> Value:
        """`op` on other operands, with other properties."""
        return self.make(op.opcode.name, operands, shape, properties)

    def _count(self, opcode: str, operands: Sequence[Value], shape: Shape) -> None:
        if not OPCODES[opcode].free and opcode != "reshape":
            self.work += BYTES_MOVED_IN_MEMORY * _bytes(shape)
        if OPCODES[opcode].contracts:
            # The extent that is summed over: |lhs| |rhs| / |result| is its square, batches aside.
            sizes = [array_of(v).element_count for v in operands[:2]]
            result = shape.element_count if isinstance(shape, ArrayShape) else 1
            self.work += FLOP * 2 * math.sqrt(math.prod(sizes) * max(result, 1))

    # -------------------------------------------------------------- collectives

    def all_reduce(self, value: Value, grid: Grid, axes: Axes, to_apply: str) -> Value:
        """Sum (or what `to_apply` says) over `axes`."""
        k = grid.product(axes)
        self.bytes += 2 * (k - 1) / k * _bytes(array_of(value))
        return self.make("all-reduce", (value,), array_of(value), self._group(grid, axes, to_apply))

    def all_gather(self, value: Value, grid: Grid, axes: Axes, dim: int) -> Value:
        """The tiles along `axes` one after the other."""
        k, shape = grid.product(axes), array_of(value)
        self.bytes += (k - 1) * _bytes(shape)
        sizes = [n * k if d == dim else n for d, n in enumerate(shape.dimensions)]
        properties = {**self._group(grid, axes), "dimensions": integers((dim,))}
        return self.make("all-gather", (value,), sized(shape, sizes), properties)

    def reduce_scatter(
        self, value: Value, grid: Grid, axes: Axes, dim: int, to_apply: str
    ) -> Value:
        """This device's tile of the sum over `axes`."""
        k, shape = grid.product(axes), array_of(value)
        self.bytes += (k - 1) / k * _bytes(shape)
        sizes = [n // k if d == dim else n for d, n in enumerate(shape.dimensions)]
        properties = {**self._group(grid, axes, to_apply), "dimensions": integers((dim,))}
        return self.make("reduce-scatter", (value,), sized(shape, sizes), properties)

    def all_to_all(self, value: Value, grid: Grid, axes: Axes, dim: int) -> Value:
        """Row i along `dim` goes to device i of `axes`; `dim` is as long as there are devices."""
        k, shape = grid.product(axes), array_of(value)
        self.bytes += (k - 1) / k * _bytes(shape)
        properties = {
            "replica_groups": ReplicaGroupsAttr(grid.groups(axes)),
            "dimensions": integers((dim,)),
            "channel_id": self._channel(),
        }
        return self.make("all-to-all", (value,), shape, properties)

    def permute(self, value: Value, pairs: Sequence[tuple[int, int]]) -> Value:
        """Values go from source to target partitions; zeros where no pair ends."""
        if all(a == b for a, b in pairs) and len(pairs) == self.module.partitions:
            return value
        shape = array_of(value)
        moving = sum(a != b for a, b in pairs)
        self.bytes += _bytes(shape) * moving / self.module.partitions
        properties = {
            "channel_id": self._channel(),
            "source_target_pairs": IntegerListsAttr.of(tuple(sorted(pairs))),
        }
        return self.make("collective-permute", (value,), shape, properties)

    def _group(self, grid: Grid, axes: Axes, to_apply: str | None = None) -> dict[str, Attribute]:
        found: dict[str, Attribute] = {
            "channel_id": self._channel(),
            "replica_groups": ReplicaGroupsAttr(grid.groups(axes, self.module.replicas)),
            "use_global_device_ids": TRUE,
        }
        if to_apply is not None:
            found["to_apply"] = symbol(to_apply)
        return found

    def _channel(self) -> Attribute:
        return integer(1)

    # -------------------------------------------------------------- local instructions

    def constant(self, values: Any, type_: PrimitiveType) -> Value:
        """A constant."""
        array = np.asarray(values).astype(type_.dtype)
        shape = dense(type_, array.shape)
        literal = LiteralAttr(Literal.from_array(shape, array))
        return self.make("constant", (), shape, {"literal": literal})

    def table(self, numbers: Sequence[int]) -> Value:
        """The s32[] that stands at this partition's place in `numbers`."""
        if len(set(numbers)) == 1:
            return self.constant(numbers[0], et.S32)
        if tuple(numbers) == tuple(range(len(numbers))):
            return self.make("convert", (self.partition_id(),), dense(et.S32, ()))
        rows = self.constant(numbers, et.S32)
        row = self.make(
            "dynamic-slice",
            (rows, self.partition_id()),
            dense(et.S32, (1,)),
            {"dynamic_slice_sizes": integers((1,))},
        )
        return self.make("reshape", (row,), dense(et.S32, ()))

    def partition_id(self) -> Value:
        """This partition's number, u32[]."""
        return self.make("partition-id", (), dense(et.U32, ()))

    def broadcast(self, value: Value, shape: ArrayShape, dims: Sequence[int] = ()) -> Value:
        """A broadcast to `shape`."""
        return self.make("broadcast", (value,), shape, {"dimensions": integers(tuple(dims))})

    def slice(self, value: Value, dim: int, start: int, limit: int, stride: int = 1) -> Value:
        """A slice in one dimension; the value itself where it is all of it."""
        shape = array_of(value)
        if (start, limit, stride) == (0, shape.dimensions[dim], 1):
            return value
        bounds = [SliceDimension(0, n) for n in shape.dimensions]
        bounds[dim] = SliceDimension(start, limit, stride)
        sizes = [-(-(b.limit - b.start) // b.stride) for b in bounds]
        return self.make(
            "slice", (value,), sized(shape, sizes), {"slice": SliceAttr(Slice(tuple(bounds)))}
        )

    def pad(self, value: Value, dim: int, low: int, high: int, fill: Value | None = None) -> Value:
        """Edges filled with `fill` (zero) in one dimension; the value itself without any."""
        if not low and not high:
            return value
        shape = array_of(value)
        edges = [PaddingDimension() for _ in shape.dimensions]
        edges[dim] = PaddingDimension(low, high)
        sizes = list(shape.dimensions)
        sizes[dim] += low + high
        if fill is None:
            fill = self.constant(0, shape.element_type)
        padding = PaddingAttr(Padding(tuple(edges)))
        return self.make("pad", (value, fill), sized(shape, sizes), {"padding": padding})

    def dynamic_slice(self, value: Value, dim: int, start: Value, size: int) -> Value:
        """`size` elements from `start` (s32[]) in one dimension."""
        shape = array_of(value)
        zero = self.constant(0, et.S32)
        sizes = [size if d == dim else n for d, n in enumerate(shape.dimensions)]
        starts = [start if d == dim else zero for d in range(shape.rank)]
        properties = {"dynamic_slice_sizes": integers(tuple(sizes))}
        return self.make("dynamic-slice", (value, *starts), sized(shape, sizes), properties)

    def reshape(self, value: Value, sizes: Sequence[int]) -> Value:
        """A reshape; the value itself when it has these sizes."""
        shape = array_of(value)
        if shape.dimensions == tuple(sizes):
            return value
        return self.make("reshape", (value,), dense(shape.element_type, sizes))

    def transpose(self, value: Value, permutation: Sequence[int]) -> Value:
        """A transpose; the value itself for the identity."""
        shape = array_of(value)
        if list(permutation) == sorted(permutation):
            return value
        sizes = [shape.dimensions[d] for d in permutation]
        properties = {"dimensions": integers(tuple(permutation))}
        return self.make("transpose", (value,), dense(shape.element_type, sizes), properties)

    def binary(self, opcode: str, a: Value, b: Value) -> Value:
        """An elementwise instruction of two values of one shape."""
        return self.make(opcode, (a, b), shape_of_value(a))

    def compare(self, a: Value, b: Value, direction: str) -> Value:
        """pred array of `a direction b`."""
        shape = dense(et.PRED, array_of(a).dimensions)
        return self.make("compare", (a, b), shape, {"direction": string(direction)})

    def select(self, pred: Value, a: Value, b: Value) -> Value:
        """`pred ? a : b`; a scalar `pred` or `b` is broadcast."""
        shape = array_of(a)
        flat = dense(shape.element_type, shape.dimensions)
        if array_of(pred).rank != shape.rank:
            pred = self.broadcast(pred, dense(et.PRED, shape.dimensions))
        if array_of(b).rank != shape.rank:
            b = self.broadcast(b, flat)
        return self.make("select", (pred, a, b), shape)

    def iota(self, sizes: Sequence[int], dim: int, start: Value | None = None) -> Value:
        """s32 numbers from `start` along a dimension."""
        shape = dense(et.S32, sizes)
        found = self.make("iota", (), shape, {"iota_dimension": integer(dim)})
        return found if start is None else self.binary("add", found, self.broadcast(start, shape))

    def coordinate(self, grid: Grid, axes: Axes, scale: int = 1) -> Value:
        """`scale` times the number of this device's tile along `axes`, s32[]."""
        return self.table([scale * c for c in grid.coordinates(axes)])

    def elements(self, value: Value) -> tuple[Value, ...]:
        """The elements of a tuple."""
        shape = shape_of_value(value)
        assert isinstance(shape, TupleShape)
        return tuple(
            self.make("get-tuple-element", (value,), element, {"index": integer(k)})
            for k, element in enumerate(shape.elements)
        )


class Emitter(Estimate):
    """Puts instructions at the end of a block."""

    def __init__(self, module: Computations, block: Block) -> None:
        """Instructions made while `origin` is set take its metadata."""
        super().__init__(module)
        self.block: Block = block
        self.origin: Instruction | None = None
        self._known: dict[object, SSAValue] = {}

    def make(
        self,
        opcode: str,
        operands: Sequence[Value],
        shape: Shape,
        properties: Mapping[str, Attribute] | None = None,
    ) -> Value:
        """An instruction at the end of the block; constants and numbers of devices once each."""
        own = dict(properties or {})
        values = [v for v in operands if isinstance(v, SSAValue)]
        key = _key(opcode, values, shape, own)
        once = opcode in _ONCE or opcode in COLLECTIVES
        once = once or (opcode == "dynamic-slice" and array_of(values[0]).rank == 1)
        if once and key in self._known:
            return self._known[key]
        op = make(opcode, values, shape, own)
        if self.origin is not None and "metadata" in self.origin.properties:
            op.properties["metadata"] = self.origin.properties["metadata"]
        append(self.block, op)
        if once:
            self._known[key] = op.output
        return op.output

    def like(
        self,
        op: Instruction,
        operands: Sequence[Value],
        shape: Shape,
        properties: Mapping[str, Attribute],
    ) -> Value:
        """`op` on other operands under its name."""
        values = [v for v in operands if isinstance(v, SSAValue)]
        left_out = ("sharding", "proto_id", "proto_rest", "control_predecessors")
        own = {k: v for k, v in properties.items() if k not in left_out}
        key = _key(op.opcode.name, values, shape, own)
        if op.opcode.name in COLLECTIVES:
            if key in self._known:
                return self._known[key]
            if "channel_id" in own:
                own["channel_id"] = self._channel()
        made = make(op.opcode.name, values, shape, own, name=op.instruction_name)
        append(self.block, made)
        if op.opcode.name in COLLECTIVES:
            self._known[key] = made.output
        return made.output

    def _channel(self) -> Attribute:
        self.module.channel += 1
        return integer(self.module.channel)


_ONCE = opcodes(lambda row: row.is_trivial) | {"partition-id", "convert"}
COLLECTIVES = opcodes(lambda row: row.communicates and not row.is_asynchronous)
"""Twice the same of these (their channels aside) is made once."""


def _key(
    opcode: str, values: Sequence[SSAValue], shape: Shape, properties: Mapping[str, Attribute]
) -> object:
    left_out = ("channel_id", "metadata", "frontend_attributes")
    own = tuple((k, v) for k, v in properties.items() if k not in left_out)
    return (opcode, shape, tuple(values), own)


def _bytes(shape: Shape) -> int:
    if isinstance(shape, TupleShape):
        return sum(map(_bytes, shape.elements))
    return shape.byte_size if isinstance(shape, ArrayShape) else 0
