"""A kernel of loops under construction: elements of what a structured op reads, and where its results go.

    %v = structured.map ins(%x) maps [(d0, d1) -> (d1, d0)]      a view: read where the op reads
    %r = structured.sort ins(%v) …                               the op that becomes loops
    %t = structured.map ins(%r) maps [(d0, d1) -> (d1, d0)]      a view: written where the op writes

Maps before the op are computed where it reads them. Maps behind it, of one array each, are computed where it writes;
they may permute dimensions.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import prod
from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from mlirhlo.diagnostics import HloError, error
from mlirhlo.dialects.hlo.ops import ConstantOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.interned import UNIT
from mlirhlo.dialects.structured import IndexOp, KernelOp, MapOp, ReturnOp, StructuredOp, sizes_of
from mlirhlo.dialects.structured.base import passes_through, yielded
from mlirhlo.lowering.builder import NOALIAS, FunctionBuilder
from mlirhlo.lowering.hlo_to_loops.array_kernel import flat, start_as
from mlirhlo.lowering.hlo_to_loops.elemental import Elements
from mlirhlo.lowering.hlo_to_loops.elements import Value, buffer_type
from mlirhlo.lowering.hlo_to_loops.loop_kernels import store
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places


def array(value: SSAValue) -> ArrayShape:
    """The shape of a value of a kernel: row-major."""
    return cast(ArrayShape, shape_of(value.type))


def no_loops(op: Operation, reason: str) -> HloError:
    """The error for an op that does not become loops."""
    return error("HLO0432", f"`{op.name}` has no lowering to loops: {reason}")


@dataclass(frozen=True, slots=True)
class _Target:
    """A buffer that a result is written to."""

    buffer: SSAValue
    shape: ArrayShape
    order: tuple[int | None, ...]
    """For each dimension of the buffer the dimension of the result that it is; None where both have one element."""
    bodies: Sequence[Region] = ()
    """What is computed of elements before they are written, the first one first."""

    def indices(self, place: Sequence[Coordinate]) -> list[Coordinate]:
        """Where an element of the result stands in the buffer."""
        return [Coordinate(0) if dim is None else place[dim] for dim in self.order]


class LoopKernel:
    """The function of a kernel that computes `op`: buffers of the kernel's arguments, then of what it returns."""

    def __init__(self, kernel: KernelOp, op: StructuredOp) -> None:
        """Raises `HloError` HLO0432 where a map behind the op reads other arrays or indices."""
        returned = kernel.results_returned
        types = [buffer_type(array(v)) for v in (*kernel.block.args, *returned)]
        self.b = FunctionBuilder(
            kernel.kernel_name, types, argument_attributes=[{NOALIAS: UNIT} for _ in types]
        )
        count = len(kernel.block.args)
        self._buffers: dict[SSAValue, SSAValue] = dict(
            zip(kernel.block.args, self.b.arguments, strict=False)
        )
        self._targets: dict[SSAValue, list[_Target]] = {result: [] for result in op.results}
        for value, buffer in zip(returned, self.b.arguments[count:], strict=True):
            result, order, bodies = _source_of(value, op)
            self._targets[result].append(_Target(buffer, array(value), order, bodies))

    def finish(self) -> FuncOp:
        """The function."""
        return self.b.finish()

    @contextmanager
    def nest(self, sizes: Sequence[int]) -> Generator[list[Coordinate]]:
        """Loops over `sizes`, the last one inside; gives the indices."""
        with ExitStack() as stack:
            yield [Coordinate(stack.enter_context(self.b.loop(0, n))) for n in sizes]

    # Reading

    def read(self, value: SSAValue, place: Sequence[Coordinate], places: Places) -> Value:
        """An element of an operand, or a vector of elements. Raises `HloError` HLO0432."""
        buffer = self._buffers.get(value)
        if buffer is not None:
            return places.load(buffer, array(value), place)
        owner = value.owner
        if isinstance(owner, MapOp):
            arguments = [
                self.read(v, mapped(places, m, place), places)
                for v, m in zip(owner.inputs, owner.index_maps, strict=True)
            ]
            return inlined(places, owner.body, arguments, place)[0]
        if isinstance(owner, ConstantOp) and not sizes_of(value):
            return Elements(places, {}).at(value, ())
        raise no_loops(cast(Operation, owner), "what reads it becomes loops of its own")

    # Writing

    def write(
        self,
        result: SSAValue,
        place: Sequence[Coordinate],
        value: Value,
        lanes: int = 0,
        mask: SSAValue | None = None,
    ) -> None:
        """Stores an element of a result, or neighbours along a dimension that `is_minor`."""
        places = Places(self.b, lanes, mask)
        for target in self._targets[result]:
            indices, element = [c.base for c in target.indices(place)], value
            for body in target.bodies:
                (element,) = inlined(places, body, [element])
            store(self.b, target.buffer, indices, element, target.shape, lanes, mask)

    def written(self, result: SSAValue, place: Sequence[Coordinate], places: Places) -> Value:
        """An element of a result that was written before. Raises `HloError` HLO0432 where it was converted."""
        target = self._targets[result][0]
        if target.bodies:
            raise no_loops(cast(Operation, result.owner), "what it gives is read again")
        return places.load(target.buffer, target.shape, target.indices(place))

    def start_as(self, operand: SSAValue, result: SSAValue) -> None:
        """The result begins as an operand of its shape: copied at once, unless both are one buffer, where buffers
        have the same order."""
        source, target = self._buffers.get(operand), self._own_buffer(result)
        if isinstance(source, BlockArgument) and isinstance(target, BlockArgument):
            start_as(self.b, source.index, target.index)
            return
        with self.nest(sizes_of(operand)) as place:
            self.write(result, place, self.read(operand, place, Places(self.b, 0)))

    def row_major(self, result: SSAValue) -> SSAValue | None:
        """The buffer of a result as one dimension; None unless it has one, in row-major order."""
        buffer = self._own_buffer(result)
        return None if buffer is None else flat(self.b, buffer)

    def _own_buffer(self, result: SSAValue) -> SSAValue | None:
        """The only buffer of a result, where its elements stand as computed, in row-major order."""
        targets = self._targets[result]
        own = tuple(range(len(sizes_of(result))))
        if len(targets) != 1 or targets[0].order != own or targets[0].bodies:
            return None
        return targets[0].buffer


def is_minor(value: SSAValue, dim: int) -> bool:
    """Whether neighbours along a dimension of what an op reads or computes are neighbours in the kernel's buffers."""
    if isinstance(value, BlockArgument):
        return _is_last(value, dim)
    if isinstance(value.owner, MapOp):
        (map_, *more), owner = value.owner.index_maps, value.owner
        at = [n for n, r in enumerate(map_.results) if r == AffineExpr.dimension(dim)]
        return not more and len(at) == 1 and is_minor(owner.inputs[0], at[0])
    return all(_is_minor_behind(value, dim, use.operation) for use in value.uses)


def _is_minor_behind(value: SSAValue, dim: int, user: Operation) -> bool:
    if isinstance(user, ReturnOp):
        return _is_last(value, dim)
    expr = user.index_maps[0].results[dim] if isinstance(user, MapOp) else None
    result = user.results[0]
    if isinstance(expr, AffineDimExpr):
        return all(_is_minor_behind(result, expr.position, use.operation) for use in result.uses)
    return isinstance(expr, AffineConstantExpr)


def _is_last(value: SSAValue, dim: int) -> bool:
    return prod(sizes_of(value)[dim + 1 :]) == 1


def memory_order(value: SSAValue) -> tuple[int, ...]:
    """The dimensions of what an op reads, in the order of the kernel's buffer; in their own where maps compute it."""
    own = tuple(range(len(sizes_of(value))))
    owner = value.owner
    if not isinstance(owner, MapOp) or len(owner.inputs) != 1:
        return own
    (map_,) = owner.index_maps
    exprs = [map_.results[dim] for dim in memory_order(owner.inputs[0])]
    order = [r.position for r in exprs if isinstance(r, AffineDimExpr)]
    return (*(dim for dim in own if dim not in order), *order)


def _source_of(
    value: SSAValue, op: StructuredOp
) -> tuple[SSAValue, tuple[int | None, ...], list[Region]]:
    """The result of `op` that a value is computed from element by element, how dimensions are permuted, and how
    elements are computed."""
    bodies: list[Region] = []
    order: list[int | None] = list(range(len(sizes_of(value))))
    while value.owner is not op:
        owner = value.owner
        if not isinstance(owner, MapOp) or len(owner.inputs) != 1:
            raise no_loops(cast(Operation, owner), "it reads what becomes loops of its own")
        (map_,) = owner.index_maps
        dims = [r.position if isinstance(r, AffineDimExpr) else None for r in map_.results]
        named = [d for d in dims if d is not None]
        missing = set(range(map_.num_dims)) - set(named)
        sizes, read = sizes_of(value), sizes_of(owner.inputs[0])
        is_permutation = (
            not any(isinstance(inner, IndexOp) for inner in owner.body.block.ops)
            and len(set(named)) == len(named)
            and all(sizes[d] == 1 for d in missing)
            and all(d is not None or size == 1 for d, size in zip(dims, read, strict=True))
        )
        if not is_permutation:
            raise no_loops(owner, "it computes what `" + op.name + "` gives")
        order = [dims.index(at) if at is not None and at in named else None for at in order]
        if not passes_through(owner.body):
            bodies.insert(0, owner.body)
        value = owner.inputs[0]
    return value, tuple(order), bodies


def inlined(
    places: Places, body: Region, arguments: Sequence[Value], place: Sequence[Coordinate] = ()
) -> list[Value]:
    """What a body yields for such arguments, at indices of its iteration space."""
    e = Elements(places, {})
    for argument, value in zip(body.block.args, arguments, strict=True):
        e.know(argument, (), value)
    *ops, _ = body.block.ops
    for op in ops:
        (result,) = op.results
        if isinstance(op, IndexOp):
            number = _index(places, place[op.dimension])
            type_ = cast("TensorType[Attribute]", result.type).element_type
            e.know(result, (), (places.b.cast_index(number, type_),))
        else:
            e.at(result, ())
    return [e.at(value, ()) for value in yielded(body)]


def _index(places: Places, c: Coordinate) -> SSAValue:
    return places.vector(c) if places.lanes else places.b.index(c.base)


def mapped(places: Places, map_: AffineMap, place: Sequence[Coordinate]) -> list[Coordinate]:
    """The indices that a map gives for those of an iteration space, none of which is negative."""
    return [_evaluated(places, expr, place) for expr in map_.results]


def _evaluated(places: Places, expr: AffineExpr, place: Sequence[Coordinate]) -> Coordinate:
    match expr:
        case AffineDimExpr():
            return place[expr.position]
        case AffineConstantExpr():
            return Coordinate(expr.value)
        case AffineBinaryOpExpr():
            lhs = _evaluated(places, expr.lhs, place)
            rhs = _evaluated(places, expr.rhs, place)
            if expr.kind is AffineBinaryOpKind.Add:
                return places.sum(lhs, rhs)
            number = cast(int, rhs.base)
            if expr.kind is AffineBinaryOpKind.Mul:
                return places.scaled(lhs, number)
            quotient, remainder = places.divided(lhs, number)
            return remainder if expr.kind is AffineBinaryOpKind.Mod else quotient
        case _:
            raise AssertionError(f"maps of kernels hold no {expr}")
