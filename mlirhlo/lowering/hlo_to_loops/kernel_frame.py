"""What every builder of a kernel begins with: its function, its buffers, the width of its vectors."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue

from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.control_flow import ConstantOp
from mlirhlo.dialects.hlo.table import Opcode
from mlirhlo.dialects.interned import UNIT
from mlirhlo.dialects.structured import MapOp
from mlirhlo.dialects.structured.bodies import dependences
from mlirhlo.lowering.builder import FunctionBuilder, Index
from mlirhlo.lowering.builder.types import NOALIAS
from mlirhlo.lowering.hlo_to_loops.elements import Value, buffer_type, to_memory
from mlirhlo.lowering.hlo_to_loops.loop_kernels import store
from mlirhlo.lowering.hlo_to_loops.merging import arrays_in, sizes_of
from mlirhlo.lowering.hlo_to_loops.places import Places
from mlirhlo.lowering.hlo_to_loops.work import estimated_ns
from mlirhlo.lowering.target import current

_VECTOR_BITS = 512
LINE_BYTES = 64
"""Bytes of a cache line."""
_STREAMED = 8
"""Results of so many times the second cache go past the caches: what reads them finds them gone anyway,
and lines need not be read before they are written."""
_AHEAD_BYTES = 1 << 12
"""How far in front of a loop operands that no cache holds are asked for, all of them together: more would
drive each other out of the places in the first cache that addresses of one page share."""
_Stored: TypeAlias = tuple[SSAValue, SSAValue, Sequence[Index]]
"""A vector, the buffer it goes to, and where."""


def are_far(bytes_: int) -> bool:
    """Whether an array of so many bytes is too big for the caches."""
    return bytes_ >= _STREAMED * current().l2_bytes


class Frame:
    """A kernel under construction: `name(operands…, outputs…)`."""

    def __init__(
        self,
        name: str,
        outputs: Sequence[SSAValue],
        operands: Sequence[SSAValue],
        lanes: int | None = None,
    ) -> None:
        """`lanes`: elements of a vector; as many as a register has of the widest type where None."""
        self.outputs, self.operands = outputs, operands
        shapes = [arrays_in(v)[0] for v in (*operands, *outputs)]
        self.b = FunctionBuilder(
            name,
            [buffer_type(s) for s in shapes],
            argument_attributes=[{NOALIAS: UNIT} for _ in shapes],
        )
        arguments = self.b.arguments
        self.buffers: dict[SSAValue, SSAValue] = dict(zip(operands, arguments, strict=False))
        self.targets: Sequence[SSAValue] = arguments[len(operands) :]
        self.lanes = vector_lanes(values_between(outputs, operands)) if lanes is None else lanes
        self.work = estimated_ns(outputs, self.buffers)
        """Estimated nanoseconds on one core."""
        self._waiting: dict[SSAValue, list[_Stored]] | None = None

    def streams(self, numbers: Iterable[int], first: int = 0) -> dict[int, SSAValue]:
        """For results too big for the caches, whether they may be written past them: a value of the
        current block, for `store`. Vectors start at index `first` of the last dimension."""
        return {
            number: self.b.is_aligned(self.targets[number], LINE_BYTES)
            for number in numbers
            if self.is_streamed(number)
            and first * self.byte_size(self.outputs[number]) % LINE_BYTES == 0
        }

    def is_streamed(self, number: int) -> bool:
        """Whether a result is too big for the caches, and has whole lines along its last dimension."""
        shape = arrays_in(self.outputs[number])[0]
        last = shape.dimensions[-1] if shape.rank > 1 else 0
        whole_lines = last * shape.element_type.byte_size % LINE_BYTES == 0
        return self.is_far(self.outputs[number]) and whole_lines

    def is_far(self, value: SSAValue) -> bool:
        """Whether an array is too big for the caches."""
        return are_far(arrays_in(value)[0].byte_size)

    def lead(self, number: int) -> tuple[SSAValue, dict[int, SSAValue]]:
        """Elements of a result in front of its first whole line, and `streams` for vectors from there."""
        bytes_ = self.byte_size(self.outputs[number])
        target = self.targets[number]
        lead = self.b.div(self.b.until_aligned(target, LINE_BYTES), bytes_)
        return self.b.index(lead), {number: self.b.is_aligned(target, bytes_)}

    def store(
        self,
        number: int,
        indices: Sequence[Index],
        value: Value,
        places: Places,
        stream: SSAValue | None = None,
    ) -> None:
        """Stores an element of a result, or a vector of them."""
        shape = arrays_in(self.outputs[number])[0]
        target = self.targets[number]
        element = shape.element_type
        line = places.lanes * element.byte_size == LINE_BYTES and not element.is_complex
        if stream is None or places.mask is not None or not line:
            store(self.b, target, indices, value, shape, places.lanes, places.mask)
            return
        memory = to_memory(self.b, value[0], element)
        waiting = self._waiting
        if waiting is None:
            self._store_streams(stream, [(memory, target, indices)])
        else:
            waiting.setdefault(stream, []).append((memory, target, indices))

    @contextmanager
    def stores_together(self) -> Generator[None]:
        """Asks once, at the end, whether stores go past the caches: in front of it nothing may read them."""
        waiting: dict[SSAValue, list[_Stored]] = {}
        self._waiting = waiting
        yield
        self._waiting = None
        for stream, stores in waiting.items():
            self._store_streams(stream, stores)

    def _store_streams(self, stream: SSAValue, stores: Sequence[_Stored]) -> None:
        def through_caches() -> None:
            for stored in stores:
                self.b.vector_store(*stored)

        with self.b.if_(stream, through_caches):
            for stored in stores:
                self.b.vector_store(*stored, streaming=True)

    def far_ahead(self, operands: Iterable[SSAValue]) -> Sequence[tuple[SSAValue, int]]:
        """Those that no cache holds, and how many elements in front of a loop each is asked for."""
        far = [v for v in operands if self.is_far(v)]
        bytes_ = _AHEAD_BYTES >> max(len(far) - 1, 0).bit_length()
        return [(v, bytes_ // self.byte_size(v)) for v in far]

    def is_beyond(self, value: SSAValue) -> bool:
        """Whether an array is larger than all caches: what is read of it once need not pass through them."""
        return arrays_in(value)[0].byte_size > current().l3_bytes

    def prefetch(self, operand: SSAValue, place: Sequence[Index], *, locality: int = 3) -> None:
        """Asks for the line of an element of an operand: 3 into all caches, 2 all but the first, 0 the
        first alone."""
        buffer = self.buffers[operand]
        rank = len(cast("MemRefType[Any]", buffer.type).get_shape())
        # Complex numbers have one dimension more, of their parts.
        self.b.prefetch(buffer, [*place, *[0] * (rank - len(place))], locality=locality)

    def byte_size(self, value: SSAValue) -> int:
        """Bytes of an element."""
        return arrays_in(value)[0].element_type.byte_size

    def memory(self, value: SSAValue) -> tuple[object, tuple[int, ...]]:
        """What a buffer has to be to hold a value."""
        type_ = buffer_type(arrays_in(value)[0])
        return type_.element_type, tuple(type_.get_shape())

    def sizes_and_bytes(self, value: SSAValue) -> tuple[tuple[int, ...], int]:
        """Dimensions, and bytes of an element."""
        return sizes_of(value), arrays_in(value)[0].element_type.byte_size


def values_between(outputs: Iterable[SSAValue], operands: Iterable[SSAValue]) -> list[SSAValue]:
    """All values on the way from outputs to operands, both included."""
    ends = set(operands)
    seen: dict[SSAValue, None] = {}
    stack = list(outputs)
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen[value] = None
        if value not in ends:
            op = cast(Operation, value.owner)
            stack += op.inputs if isinstance(op, Instruction) else op.operands
    return list(seen)


def vector_lanes(values: Iterable[SSAValue]) -> int:
    """Lanes of vectors that hold any of the values, where narrow floats are computed as f32."""
    widest = 8
    for value in values:
        op = value.owner
        moves = not isinstance(op, Instruction) or _moves(op.opcode)
        for shape in arrays_in(value):
            if shape.dimensions and (bits := _bits(shape.element_type, moves=moves)) > widest:
                widest = bits
        if isinstance(op, MapOp):
            widest = _widest_in_body(op, widest)
    return _VECTOR_BITS // widest


def _widest_in_body(op: MapOp, widest: int) -> int:
    """Bits of the widest number that a body computes for elements, where that is wider."""
    for inner in op.body.block.ops:
        if not isinstance(inner, Instruction) or isinstance(inner, ConstantOp):
            continue
        shape = arrays_in(inner.output)[0]
        bits = _bits(shape.element_type, moves=_moves(inner.opcode))
        if bits > widest and dependences(op).get(inner.output) != frozenset():
            widest = bits
    return widest


def _moves(row: Opcode) -> bool:
    """Whether it does no arithmetic: what it moves stays as narrow as it is."""
    return row.moves or row.free or row.name in ("bitcast-convert", "compare", "iota")


def _bits(element: PrimitiveType, *, moves: bool) -> int:
    if element.bits == 32:  # no complex number, and no narrow one
        return 32
    bits = element.real.bits
    return max(bits, 32) if (element.is_float or element.is_complex) and not moves else bits
