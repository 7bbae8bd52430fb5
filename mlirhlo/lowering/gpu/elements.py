"""One element of any value of a structured kernel, as code of one thread.

`ElementBuilder.at(value, indices)` emits what computes it, through as many ops as it takes to come to buffers. What was
emitted for the same indices in the same block, or in one around it, is used again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, cast

from xdsl.dialects import scf
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.element_types import S32, S64, PrimitiveType
from mlirhlo.dialects.hlo.ops import ConstantOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.quick import append, create_op, new_block, region_of
from mlirhlo.dialects.structured import (
    IndexOp,
)
from mlirhlo.dialects.structured.base import yielded
from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.gpu.affine import Sum, emitted, results_of
from mlirhlo.lowering.gpu.builder import KernelBuilder
from mlirhlo.lowering.hlo_to_loops.elemental import Elements
from mlirhlo.lowering.hlo_to_loops.elements import Value, memory_type, to_register
from mlirhlo.lowering.hlo_to_loops.movement import splat_constant
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places
from mlirhlo.lowering.schedule.reads import minor_dimension

Indices: TypeAlias = "tuple[Index, ...]"


Emitter: TypeAlias = "Callable[[ElementBuilder, Any, Indices], Sequence[Value]]"
_EMITTERS: dict[type[Operation], Emitter] = {}


def emits(cls: type[Operation]) -> Callable[[Emitter], Emitter]:
    """Decorator: the function emits elements of the results of an op at the same indices; see `element_ops`."""

    def register(function: Emitter) -> Emitter:
        _EMITTERS[cls] = function
        return function

    return register


def array(value: SSAValue) -> ArrayShape:
    """Shape of a value."""
    return cast(ArrayShape, shape_of(value.type))


class ElementBuilder:
    """Emits elements of values of one kernel at the end of the builder's current block."""

    def __init__(self, b: KernelBuilder, buffers: Mapping[SSAValue, SSAValue]) -> None:
        self.b = b
        self.buffers = dict(buffers)
        """Memrefs of the values that stand in memory."""
        self._scopes: list[dict[object, Sequence[Value]]] = [{}]
        self._sums: dict[tuple[AffineMap, tuple[int, ...]], tuple[Sum, ...]] = {}
        self._linear: dict[tuple[Indices, tuple[int, ...]], Index] = {}
        self._staged: dict[SSAValue, tuple[SSAValue, Index]] = {}

    # Scopes

    @contextmanager
    def scope(self) -> Generator[None]:
        """What is emitted here is not used after it: the body of a loop or a branch."""
        self._scopes.append({})
        yield
        self._scopes.pop()

    def _known(self, key: object) -> Sequence[Value] | None:
        for scope in reversed(self._scopes):
            if (values := scope.get(key)) is not None:
                return values
        return None

    def know(self, op: Operation, indices: Sequence[Index], values: Sequence[Value]) -> None:
        """Says what the elements of all results of an op are at some indices."""
        self._scopes[-1][op, tuple(indices)] = values

    def know_read(self, value: SSAValue, indices: Sequence[Index], element: Value) -> None:
        """Says what an element of a value in memory is."""
        self._scopes[-1][value, tuple(indices)] = [element]

    def know_linear(self, indices: Sequence[Index], sizes: Sequence[int], linear: Index) -> None:
        """Says what the row-major index is of indices in an array of these sizes."""
        self._linear[tuple(indices), tuple(sizes)] = linear

    def linear_of(self, indices: Sequence[Index], sizes: Sequence[int]) -> Index | None:
        """The row-major index, if it is known."""
        return self._linear.get((tuple(indices), tuple(sizes)))

    def unlinear(self, linear: Index, sizes: Sequence[int]) -> Indices:
        """The indices that have a row-major index in an array of these sizes."""
        found = Places(self.b, 0).unlinear(Coordinate(linear), sizes)
        indices = tuple(0 if n == 1 else c.base for c, n in zip(found, sizes, strict=True))
        self.know_linear(indices, sizes, linear)
        return indices

    def neighbours(self, number: Index, count: int, sizes: Sequence[int]) -> list[Indices]:
        """The indices of a group of `count` neighbours along the minor dimension, by the number of the group."""
        if count == 1:
            return [self.unlinear(number, sizes)]
        # The index is a product, so that it is known to be a multiple.
        dim = minor_dimension(sizes)
        groups = (*sizes[:dim], sizes[dim] // count, *sizes[dim + 1 :])
        indices = self.unlinear(number, groups)
        start = self.b.index(self.b.mul(indices[dim], count))
        first = (*indices[:dim], start, *indices[dim + 1 :])
        self.know_linear(first, sizes, self.b.mul(number, count))
        return [self.beside(first, lane, sizes) for lane in range(count)]

    def beside(self, indices: Indices, lane: int, sizes: Sequence[int]) -> Indices:
        """The neighbour `lane` elements on along the minor dimension."""
        if not lane:
            return indices
        dim = minor_dimension(sizes)
        moved = (*indices[:dim], self.b.add(indices[dim], lane), *indices[dim + 1 :])
        linear = self.linear_of(indices, sizes)
        if linear is not None:
            self.know_linear(moved, sizes, self.b.add(linear, lane))
        return moved

    # Elements

    def at(self, value: SSAValue, indices: Sequence[Index]) -> Value:
        """The element of a value at some indices. Raises `HloError` HLO0802 for an op that is not computed element
        by element."""
        at = tuple(indices)
        if (buffer := self.buffers.get(value)) is not None:
            return self._load(value, buffer, at)
        owner = value.owner
        assert isinstance(owner, Operation)
        if isinstance(owner, ConstantOp):
            return self._constant(owner, at)
        found = self._known((owner, at))
        if found is None:
            emit = _EMITTERS.get(type(owner))
            if emit is None:
                raise error("HLO0802", f"`{owner.name}` is not computed element by element")
            found = emit(self, owner, at)
            self._scopes[-1][owner, at] = found
        return found[owner.results.index(value)]

    def mapped(
        self, map_: AffineMap, dims: Sequence[Index], space: Sequence[int]
    ) -> tuple[Index, ...]:
        """A map's results at indices of a space."""
        key = (map_, tuple(space))
        sums = self._sums.get(key)
        if sums is None:
            sums = self._sums[key] = results_of(map_, space)
        return tuple(
            self._once(total, tuple(dims)) if total.terms else total.constant for total in sums
        )

    def _once(self, total: Sum, dims: Indices) -> Index:
        """A sum at indices, one value wherever it is asked for: equal indices stay equal."""
        if len(total.terms) == 1 and total.constant == 0:
            ((atom, factor),) = total.terms
            if atom.of is None and factor == 1:
                return dims[atom.number]
        key = (total, dims)
        found = self._known(key)
        if found is None:
            found = [(self.b.index(emitted(self.b, total, dims)),)]
            self._scopes[-1][key] = found
        return found[0][0]

    def _load(self, value: SSAValue, buffer: SSAValue, at: Indices) -> Value:
        key = (value, at)
        found = self._known(key)
        if found is None:
            found = self._scopes[-1][key] = [self._loaded(value, buffer, at)]
        return found[0]

    def stage(self, value: SSAValue, buffer: SSAValue, first: Index) -> None:
        """Says that elements of a value, from that of a row-major index on, are in a buffer too, which is read."""
        self._staged[value] = buffer, first

    def _loaded(self, value: SSAValue, buffer: SSAValue, at: Indices) -> Value:
        b, shape = self.b, array(value)
        linear = self._linear.get((at, shape.dimensions))
        if (staged := self._staged.get(value)) is not None:
            if linear is None:
                linear = Places(b, 0).linear([Coordinate(i) for i in at], shape.dimensions).base
            return load_at(b, staged[0], b.sub(linear, staged[1]), shape.element_type)
        if linear is None:
            return Places(b, 0).load(buffer, shape, [Coordinate(i) for i in at])
        return load_at(b, b.flat(buffer), linear, shape.element_type)

    def _constant(self, op: ConstantOp, at: Indices) -> Value:
        """A number, or an element of a table of numbers as they stand in memory."""
        literal = op.literal
        assert literal is not None
        b, shape = self.b, array(op.output)
        element = shape.element_type
        numbers = cast(Any, literal.array.reshape(-1))
        if numbers.tobytes() == numbers[:1].tobytes() * len(numbers):
            return splat_constant(self.elements(), numbers[0], element)
        linear = Places(b, 0).linear([Coordinate(i) for i in at], shape.dimensions).base
        parts = (numbers.real, numbers.imag) if element.is_complex else (numbers,)
        type_ = memory_type(element)
        is_float = element.is_complex or (element.is_float and element.bits >= 16)
        tables = [
            [float(n) for n in part] if is_float else [int(n) for n in _bits(part)]
            for part in parts
        ]
        return tuple(
            to_register(b, b.load(b.table(table, type_), [linear]), element) for table in tables
        )

    # Bodies

    def elements(self) -> Elements:
        """For scalar instructions in the current block."""
        return Elements(Places(self.b, 0), {})

    def body(
        self, region: Region, arguments: Sequence[Value], dims: Sequence[Index] = ()
    ) -> list[Value]:
        """What a body yields of these elements."""
        return self.values(region, arguments, dims, yielded(region))

    def values(
        self,
        region: Region,
        arguments: Sequence[Value | None],
        dims: Sequence[Index],
        results: Sequence[SSAValue],
    ) -> list[Value]:
        """Some values of a body; the arguments that they are not computed from may be None."""
        e = self.elements()
        for argument, value in zip(region.block.args, arguments, strict=True):
            if value is not None:
                e.know(argument, (), value)
        for op in region.block.ops:
            if isinstance(op, IndexOp):
                e.know(op.result, (), self._index(op, dims))
            elif op is not region.block.last_op and None not in arguments:
                e.at(op.results[0], ())
        return [e.at(v, ()) for v in results]

    def _index(self, op: IndexOp, dims: Sequence[Index]) -> Value:
        element = array(op.result).element_type
        type_ = S32.mlir if element is S32 else S64.mlir
        assert type_ is not None
        return (self.b.cast_index(self.b.index(dims[op.dimension]), type_),)

    # Control flow

    def choose(
        self,
        condition: SSAValue,
        then: Callable[[], Sequence[Value]],
        otherwise: Callable[[], Sequence[Value]],
    ) -> list[Value]:
        """The values of one of two branches, of the same types."""
        b = self.b
        outer = b.block
        blocks = [new_block(), new_block()]
        shapes: list[int] = []
        types: list[Attribute] = []
        for block, make in zip(blocks, (then, otherwise), strict=True):
            b.block = block
            with self.scope():
                values = make()
            shapes = [len(v) for v in values]
            parts = [part for v in values for part in v]
            types = [part.type for part in parts]
            append(b.block, create_op(scf.YieldOp, parts))
        b.block = outer
        regions = [region_of(block) for block in blocks]
        op = create_op(scf.IfOp, [condition], types, regions=regions)
        append(outer, op)
        return regrouped(op.results, shapes)

    def folded(
        self,
        sizes: Sequence[int],
        initial: Sequence[Value],
        step: Callable[[Indices, Sequence[Value]], Sequence[Value]],
    ) -> list[Value]:
        """A state carried through all indices of `sizes` in row-major order, by one thread."""
        b = self.b
        shapes = [len(v) for v in initial]

        def nest(done: Indices, state: Sequence[Value]) -> Sequence[Value]:
            if len(done) == len(sizes):
                return step(done, state)
            parts = [part for v in state for part in v]
            with b.loop(0, sizes[len(done)], 1, parts, nonempty=True) as loop, self.scope():
                index = (*done, loop.index)
                after = nest(index, regrouped(loop.carried, shapes))
                loop.carry(*(part for v in after for part in v))
            return regrouped(loop.results, shapes)

        return list(nest((), initial)) if 0 not in sizes else list(initial)


def load_at(b: KernelBuilder, line: SSAValue, index: Index, element: PrimitiveType) -> Value:
    """The element of an index in a buffer of one dimension; the parts of complex numbers lie beside each other."""
    parts = 1 + element.is_complex
    places = [b.add(b.mul(index, parts), part) for part in range(parts)]
    return tuple(to_register(b, b.load(line, [place]), element) for place in places)


def _bits(numbers: Any) -> Any:
    """Integers, or the bits of floats that no register holds as such."""
    import numpy as np

    return numbers if numbers.dtype.kind in "biu" else numbers.view(np.int8)


def regrouped(parts: Sequence[SSAValue], counts: Sequence[int]) -> list[Value]:
    """Parts of elements as elements again."""
    rest = iter(parts)
    return [tuple(next(rest) for _ in range(count)) for count in counts]
