"""Kernels that are no loop over elements of their results: their arrays, read and written at places.

Places are in logical dimensions, whatever the layouts. With lanes, a place stands for neighbours.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from math import prod
from typing import Any, cast

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import DenseArrayBase, MemRefType, UnitAttr, i32, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.lowering.builder import INDEX, FunctionBuilder, Index
from mlirhlo.lowering.hlo_to_loops.elemental import Elements
from mlirhlo.lowering.hlo_to_loops.elements import Value, buffer_type, physical_order
from mlirhlo.lowering.hlo_to_loops.kernel_frame import LINE_BYTES, are_far
from mlirhlo.lowering.hlo_to_loops.loop_kernels import store
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places
from mlirhlo.lowering.target import current

_PARTS_BYTES = 1 << 28
"""Most memory of the parts of a loop beyond the first few."""
_FEW_PARTS = 16
_PART_BYTES = 1 << 16
"""Of a large array that is copied, at once."""
_PARTS_AHEAD = 16
"""What part of that lies between what is asked for and what is copied."""
_BYTES_A_NS = 15
"""That are copied, about."""


class ArrayKernel:
    """A kernel under construction: buffers of the operands, then of the results."""

    def __init__(self, name: str, op: Instruction, results: int | None = None) -> None:
        """`results`: how many of the result's arrays, all unless given. Raises `HloError` HLO0432 for
        operands that are not arrays."""
        self.op = op
        self.operands = [_array(s, op) for s in op.input_shapes]
        parts = op.shape.elements if isinstance(op.shape, TupleShape) else (op.shape,)
        self.results = [_array(s, op) for s in parts[:results]]
        types = [buffer_type(s) for s in (*self.operands, *self.results)]
        self.b = FunctionBuilder(
            name, types, argument_attributes=[{"llvm.noalias": UnitAttr()} for _ in types]
        )
        self.arguments = self.b.arguments

    def finish(self) -> FuncOp:
        """The function."""
        return self.b.finish()

    @property
    def elements(self) -> Elements:
        """For computations of scalars (`inline`) in the current block."""
        return Elements(Places(self.b, 0), {})

    def read(self, number: int, place: Sequence[Coordinate], places: Places) -> Value:
        """An element of an argument: an operand or, counted on, a result."""
        return places.load(self.arguments[number], self.shape(number), place)

    def write(
        self,
        number: int,
        place: Sequence[Coordinate],
        value: Value,
        lanes: int = 0,
        mask: SSAValue | None = None,
    ) -> None:
        """Stores an element of an argument."""
        shape = self.shape(number)
        indices = [place[d].base for d in physical_order(shape)]
        store(self.b, self.arguments[number], indices, value, shape, lanes, mask)

    def shape(self, number: int) -> ArrayShape:
        """Shape of an argument."""
        count = len(self.operands)
        return self.operands[number] if number < count else self.results[number - count]

    def start_as(self, operand: int, result: int) -> None:
        """The result begins as the operand: copied, unless both are one buffer."""
        start_as(self.b, operand, len(self.operands) + result)

    def flat(self, number: int) -> SSAValue:
        """An argument as one dimension, in the order of memory."""
        return flat(self.b, self.arguments[number])

    @contextmanager
    def nest(self, sizes: Sequence[int]) -> Generator[list[Coordinate]]:
        """Loops over `sizes`, the last one inside; gives the place."""
        with ExitStack() as stack:
            yield [Coordinate(stack.enter_context(self.b.loop(0, n))) for n in sizes]

    @contextmanager
    def each(
        self, sizes: Sequence[int], buffers: Sequence[tuple[int, Attribute]], work: float
    ) -> Generator[tuple[list[Coordinate], list[SSAValue]]]:
        """A loop over places in `sizes`, in parallel parts; gives a place, and memory of the part.

        `buffers`: lengths and element types. `work`: nanoseconds of all of it.
        """
        chunk = chunk_of(prod(sizes), buffers)
        with in_chunks(self.b, sizes, buffers, chunk, work) as found:
            yield found

    def view(
        self, memory: SSAValue, offset_bytes: Index, sizes: Sequence[int], element: Attribute
    ) -> SSAValue:
        """A part of bytes of memory as a buffer."""
        return view(self.b, memory, offset_bytes, sizes, element)


def chunk_of(count: int, buffers: Sequence[tuple[int, Attribute]]) -> int:
    """How many of `count` rounds one part of a parallel loop takes, where each part has `buffers` of its own."""
    most = max(_FEW_PARTS, _PARTS_BYTES // max(sum(_bytes_of(buffers)), 1))
    return -(-count // max(1, min(count, current().parts, most)))


def _bytes_of(buffers: Sequence[tuple[int, Attribute]]) -> list[int]:
    return [-(-n * cast(Any, t).size // 64) * 64 for n, t in buffers]


@contextmanager
def in_chunks(
    b: FunctionBuilder,
    sizes: Sequence[int],
    buffers: Sequence[tuple[int, Attribute]],
    chunk: int,
    work: float,
) -> Generator[tuple[list[Coordinate], list[SSAValue]]]:
    """A loop over the indices of `sizes` in row-major order, `chunk` of them in each part of a parallel loop;
    gives indices, and buffers of the part, whose lengths and element types are `buffers`.

    `work`: estimated nanoseconds of all of it.
    """
    count, bytes_ = prod(sizes), _bytes_of(buffers)
    parts = -(-count // chunk)
    memory = b.workspace(sum(bytes_) * parts) if buffers else None
    with b.parallel(parts, work=work) as part:
        first = b.mul(part, chunk)
        end = b.integer(arith.MinSIOp, b.index(b.add(first, chunk)), b.constant(count, INDEX))
        offset = b.mul(part, sum(bytes_))
        views: list[SSAValue] = []
        for size, (length, type_) in zip(bytes_, buffers, strict=True):
            assert memory is not None
            views.append(view(b, memory, offset, [length], type_))
            offset = b.add(offset, size)
        with b.loop(first, end) as number:
            yield Places(b, 0).unlinear(Coordinate(number), sizes), views


def view(
    b: FunctionBuilder,
    memory: SSAValue,
    offset_bytes: Index,
    sizes: Sequence[int],
    element: Attribute,
) -> SSAValue:
    """A part of bytes of memory as a buffer."""
    type_ = MemRefType(element, list(sizes))
    return b.emit(memref.ViewOp, [memory, b.index(offset_bytes)], type_)


def start_as(b: FunctionBuilder, operand: int, result: int) -> None:
    """An argument begins as another one: copied, unless both are one buffer."""
    source, target = b.arguments[operand], b.arguments[result]
    b.may_share(operand, result)
    addresses = [
        b.emit(memref.ExtractAlignedPointerAsIndexOp, [v], INDEX) for v in (source, target)
    ]

    def at_once() -> None:
        b.effect(memref.CopyOp, [source, target])

    type_ = cast("MemRefType[Any]", source.type)
    bytes_ = prod(type_.get_shape()) * type_.element_type.size
    with b.if_(b.cmpi("ne", *addresses)):
        if not are_far(bytes_):
            at_once()
            return
        with b.if_(b.is_aligned(target, LINE_BYTES), at_once):
            _copy_in_parts(b, source, target)


def _copy_in_parts(b: FunctionBuilder, source: SSAValue, target: SSAValue) -> None:
    """In parallel, past the caches; the target begins with a line."""
    size = cast("MemRefType[Any]", source.type).element_type.size
    source, target = flat(b, source), flat(b, target)
    (count,) = cast("MemRefType[Any]", source.type).get_shape()
    lanes, part = LINE_BYTES // size, _PART_BYTES // size

    def vectors(low: Index, high: Index) -> None:
        with b.loop(low, high, lanes) as i:
            b.prefetch(source, [b.add(i, part // _PARTS_AHEAD)], locality=0)
            b.vector_store(b.vector_load(source, [i], lanes), target, [i], streaming=True)

    with b.parallel(count // part, work=count * size / _BYTES_A_NS) as number:
        low = b.mul(number, part)
        vectors(low, b.add(low, part))
    vectors(count - count % part, count - count % lanes)
    with b.loop(count - count % lanes, count) as i:
        b.store(b.load(source, [i]), target, [i])


def flat(b: FunctionBuilder, source: SSAValue) -> SSAValue:
    """A buffer as one dimension, in the order of memory."""
    type_ = cast("MemRefType[Attribute]", source.type)
    count = prod(type_.get_shape())
    statics = {"static_offsets": 0, "static_sizes": count, "static_strides": 1}
    return b.emit(
        memref.ReinterpretCastOp,
        [source],
        MemRefType(type_.element_type, [count]),
        {
            **{key: DenseArrayBase.from_list(i64, [n]) for key, n in statics.items()},
            "operandSegmentSizes": DenseArrayBase.from_list(i32, [1, 0, 0, 0]),
        },
    )


def _array(shape: Shape, op: Instruction) -> ArrayShape:
    if not isinstance(shape, ArrayShape):
        raise error("HLO0432", f"`{op.opcode.name}` of {shape} has no lowering to loops")
    return shape


def is_minor(shape: ArrayShape, dim: int) -> bool:
    """Whether neighbours along a dimension are neighbours in memory."""
    order = physical_order(shape)
    after = order[order.index(dim) + 1 :]
    return prod(shape.dimensions[d] for d in after) == 1


def bytes_of(shape: Shape) -> int:
    """Bytes of an array."""
    array = cast(ArrayShape, shape)
    return array.element_count * array.element_type.byte_size
