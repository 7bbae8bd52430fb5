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
from mlirhlo.dialects.hlo.element_types import BY_MLIR, S32, S64, PrimitiveType
from mlirhlo.dialects.hlo.ops import ConstantOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.quick import append, create_op, new_block, region_of
from mlirhlo.dialects.structured import (
    AssembleOp,
    ContractOp,
    FoldOp,
    GatherOp,
    IndexOp,
    MapOp,
    sizes_of,
)
from mlirhlo.dialects.structured.base import yielded
from mlirhlo.dialects.structured.dense import DYNAMIC
from mlirhlo.lowering.builder import INDEX, Index
from mlirhlo.lowering.gpu.affine import Sum, emitted, results_of
from mlirhlo.lowering.gpu.builder import KernelBuilder
from mlirhlo.lowering.hlo_to_loops.elemental import Elements
from mlirhlo.lowering.hlo_to_loops.elements import Value, memory_type, to_register
from mlirhlo.lowering.hlo_to_loops.elementwise_convert import convert
from mlirhlo.lowering.hlo_to_loops.folds import product_sum, zero_element
from mlirhlo.lowering.hlo_to_loops.movement import splat_constant
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places
from mlirhlo.lowering.schedule.group_ranges import GroupRange, group_range_of
from mlirhlo.lowering.schedule.reads import minor_dimension

Indices: TypeAlias = "tuple[Index, ...]"


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

    def _loaded(self, value: SSAValue, buffer: SSAValue, at: Indices) -> Value:
        b, shape = self.b, array(value)
        linear = self._linear.get((at, shape.dimensions))
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


# ---------------------------------------------------------------- ops


def _map(e: ElementBuilder, op: MapOp, at: Indices) -> Sequence[Value]:
    return e.body(op.body, mapped_inputs(e, op, at), at)


def mapped_inputs(
    e: ElementBuilder, op: MapOp | FoldOp | ContractOp, at: Sequence[Index]
) -> list[Value]:
    """The elements of an op's inputs at indices of its iteration space."""
    space = op.space
    return [
        e.at(value, e.mapped(map_, at, space))
        for value, map_ in zip(op.inputs, op.index_maps, strict=True)
    ]


def factor_inputs(
    e: ElementBuilder, op: ContractOp, at: Sequence[Index], needed: Sequence[int]
) -> list[Value | None]:
    """The elements of the inputs of these numbers; None for others."""
    maps = op.index_maps
    return [
        e.at(value, e.mapped(maps[number], at, op.space)) if number in needed else None
        for number, value in enumerate(op.inputs)
    ]


def initial(e: ElementBuilder, op: FoldOp) -> list[Value]:
    """The first state of a fold."""
    return [e.at(value, ()) for value in op.inits]


def fold_step(
    e: ElementBuilder, op: FoldOp, at: Sequence[Index], state: Sequence[Value] | None
) -> list[Value]:
    """The state after the elements at indices of the iteration space; those elements for no state before."""
    made = e.body(op.body, mapped_inputs(e, op, at), at)
    if op.guarded is None:
        return made if state is None else e.body(op.combiner, [*state, *made])
    assert state is not None
    *values, (guard,) = made
    return e.choose(guard, lambda: e.body(op.combiner, [*state, *values]), lambda: state)


def _fold(e: ElementBuilder, op: FoldOp, at: Indices) -> Sequence[Value]:
    return e.folded(
        op.folded, initial(e, op), lambda dims, state: fold_step(e, op, (*at, *dims), state)
    )


def _contract(e: ElementBuilder, op: ContractOp, at: Indices) -> Sequence[Value]:
    accumulator = BY_MLIR[op.accumulator]
    first, second = (BY_MLIR[cast("Attribute", v.type.element_type)] for v in yielded(op.body))  # type: ignore[attr-defined]
    zero = zero_element(e.elements(), accumulator)

    def step(dims: Indices, state: Sequence[Value]) -> Sequence[Value]:
        lhs, rhs = e.body(op.body, mapped_inputs(e, op, (*at, *dims)), (*at, *dims))
        x, y = convert(e.b, lhs, first, accumulator), convert(e.b, rhs, second, accumulator)
        return [product_sum(e.elements(), state[0], x, y, accumulator)]

    groups = group_range_of(op)
    if groups is not None and groups.group == len(at) and groups.position < len(at):
        (total,) = _in_its_group(e, op, at, groups, [zero], step)
    else:
        (total,) = e.folded(op.contracted, [zero], step)
    return [convert(e.b, total, accumulator, array(op.output).element_type)]


def _in_its_group(
    e: ElementBuilder,
    op: ContractOp,
    at: Indices,
    groups: GroupRange,
    zero: Sequence[Value],
    step: Callable[[Indices, Sequence[Value]], Sequence[Value]],
) -> list[Value]:
    """A sum over groups, of which those are passed over that the element is not in."""
    first, *rest = op.contracted

    def group(dims: Indices, state: Sequence[Value]) -> Sequence[Value]:
        here = (*at, *dims, *[0] * len(rest))
        arguments = factor_inputs(e, op, here, groups.inputs)
        ((inside,),) = e.values(op.body, arguments, here, [groups.inside])
        return e.choose(
            inside,
            lambda: e.folded(rest, state, lambda more, now: step((*dims, *more), now)),
            lambda: state,
        )

    return e.folded([first], zero, group)


def clamped_index(e: ElementBuilder, value: SSAValue, at: Sequence[Index], limit: int) -> Index:
    """An element of an index operand, clamped to `0 … limit`."""
    from xdsl.dialects import arith

    b = e.b
    index = index_of(e, value, at)
    low = b.integer(arith.MaxSIOp, index, b.constant(0, INDEX))
    return b.integer(arith.MinSIOp, low, b.constant(limit, INDEX))


def index_of(e: ElementBuilder, value: SSAValue, at: Sequence[Index]) -> SSAValue:
    """An element of an index operand as an index; wide ones saturate."""
    from xdsl.dialects import arith

    b = e.b
    element = array(value).element_type
    (number,) = e.at(value, at)
    if element.bits > 32 or (element.bits == 32 and not element.is_signed):
        # The index type may have 32 bits.
        most = b.constant((1 << 31) - 1, number.type)
        if element.is_signed:
            number = b.integer(arith.MaxSIOp, number, b.constant(-1, number.type))
            number = b.integer(arith.MinSIOp, number, most)
        else:
            number = b.integer(arith.MinUIOp, number, most)
    return b.cast_index(number, INDEX, signed=element.is_signed)


def _gather(e: ElementBuilder, op: GatherOp, at: Indices) -> Sequence[Value]:
    b, space = e.b, op.space
    indices = list(e.mapped(op.offset_map, at, space))
    rows = zip(op.indices, op.index_maps, op.indexed, op.largest, strict=True)
    for value, map_, dim, limit in rows:
        start = clamped_index(e, value, e.mapped(map_, at, space), limit)
        indices[dim] = b.add(start, indices[dim])
    return [e.at(op.source, indices)]


def _assemble(e: ElementBuilder, op: AssembleOp, at: Indices) -> Sequence[Value]:
    """The last piece that holds the element, else the fill."""
    rows: list[tuple[SSAValue, list[Index], tuple[int, ...]]] = []
    dynamic = iter(op.indices)
    whole = sizes_of(op.output)
    for piece, offsets, strides in zip(op.pieces, op.piece_offsets, op.piece_strides, strict=True):
        starts: list[Index] = [
            clamped_index(e, next(dynamic), (), size - part) if offset == DYNAMIC else offset
            for offset, size, part in zip(offsets, whole, sizes_of(piece), strict=True)
        ]
        rows.append((piece, starts, strides))
    return _pieces(e, op, rows, at)


def _pieces(
    e: ElementBuilder,
    op: AssembleOp,
    rows: Sequence[tuple[SSAValue, list[Index], tuple[int, ...]]],
    at: Indices,
) -> Sequence[Value]:
    if not rows:
        if op.fill is None:
            return [zero_element(e.elements(), array(op.output).element_type)]
        return [e.at(op.fill, ())]
    *before, (piece, starts, strides) = rows
    b = e.b
    sizes = sizes_of(piece)
    if 0 in sizes:
        return _pieces(e, op, before, at)
    inside: SSAValue | None = None
    indices: list[Index] = []
    for index, start, stride, size, whole in zip(
        at, starts, strides, sizes, sizes_of(op.output), strict=True
    ):
        local = b.sub(index, start)
        if not (start == 0 and (size - 1) * stride + 1 >= whole and stride == 1):
            tests = [b.cmpi("ult", b.index(local), b.index((size - 1) * stride + 1))]
            if stride > 1:
                tests.append(b.cmpi("eq", b.index(b.rem(local, stride)), b.index(0)))
            for test in tests:
                inside = test if inside is None else b.andi(inside, test)
        indices.append(b.div(local, stride))
    if inside is None:
        return [e.at(piece, indices)]
    return e.choose(inside, lambda: [e.at(piece, indices)], lambda: _pieces(e, op, before, at))


_Emitter: TypeAlias = "Callable[[ElementBuilder, Operation, Indices], Sequence[Value]]"
_EMITTERS: Mapping[type[Operation], _Emitter] = cast(
    "Mapping[type[Operation], _Emitter]",
    {
        AssembleOp: _assemble,
        ContractOp: _contract,
        FoldOp: _fold,
        GatherOp: _gather,
        MapOp: _map,
    },
)
"""Ops that are computed element by element."""
