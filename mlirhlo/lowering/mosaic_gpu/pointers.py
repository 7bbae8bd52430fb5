"""Pointers into shared memory: what descriptors of buffers are in kernels that JAX writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import MemRefType, i32, i64
from xdsl.ir import Operation, SSAValue

from mlirhlo.lowering.builder import INDEX
from mlirhlo.lowering.mosaic_gpu.places import Place
from mlirhlo.lowering.mosaic_gpu.shared import OPERATION
from mlirhlo.lowering.mosaic_gpu.writer import Writer, unfit
from mlirhlo.mosaic.attributes import integers_of

_BARRIERS = 227 * 1024 // 8
"""Words of 64 bits that shared memory has."""


def place_of(w: Writer, value: SSAValue) -> Place:
    """The barriers that a reference or a pointer stands for."""
    return as_place(w, w.values[value])


def as_place(w: Writer, found: Any) -> Place:
    """`place_of`, of what a value has become."""
    if isinstance(found, Place):
        return found
    b = w.b
    offset = b.subi(b.cast(arith.TruncIOp, found, i32), w.base)
    number = b.cast_index(b.shrui(offset, b.constant(3, i32)), INDEX)
    buffer = w.shared_view(0, i64)
    return Place("smem", (_BARRIERS,), i64, 8, (number,), (), (), buffer)


def _address(w: Writer, place: Place) -> SSAValue:
    """Of its first element, in 64 bits."""
    b = w.b
    start = place.linear((0,) * len(place.kept), b)
    address = w.address(b.add(b.mul(start, place.bytes), place.offset))
    return b.cast(arith.ExtUIOp, address, i64)


def _cast(w: Writer, op: Operation) -> Sequence[Any]:
    """A reference and its descriptor are one; a pointer to a barrier is one."""
    return [w.values[op.operands[0]]]


def _part(w: Writer, op: Operation) -> Sequence[Any]:
    """Of a descriptor: the pointer points to the first element, so that the offset behind it is 0."""
    place = w.values[op.operands[0]]
    position = integers_of(op, "position")
    if not isinstance(place, Place) or place.space != "smem" or position not in ((0,), (1,), (2,)):
        raise unfit(f"llvm.extractvalue of {op.operands[0].type}")
    return [w.b.constant(0, i64) if position == (2,) else _address(w, place)]


def _pointer(w: Writer, op: Operation) -> Sequence[Any]:
    """Between pointers and their 64 bits, which stand for them."""
    found = w.values[op.operands[0]]
    return [_address(w, found) if isinstance(found, Place) else found]


def _moved(w: Writer, op: Operation) -> Sequence[Any]:
    base, *dynamic = (w.values[v] for v in op.operands)
    base = _address(w, base) if isinstance(base, Place) else base
    element: Any = op.properties["elem_type"]
    (at,) = integers_of(op, "rawConstantIndices") or (0,)
    b = w.b
    number = b.cast_index(dynamic[0], INDEX) if dynamic else at
    return [b.addi(base, b.cast_index(b.index(b.mul(number, element.width.data // 8)), i64))]


def _integer(name: str) -> Callable[[Writer, Operation], Sequence[Any]]:
    def write(w: Writer, op: Operation) -> Sequence[Any]:
        x, y = (w.values[v] for v in op.operands)
        return [getattr(w.b, name)(x, y)]

    return write


def _same_memory(w: Writer, op: Operation) -> Sequence[Any]:
    if not isinstance(op.results[0].type, MemRefType):
        raise unfit(f"{op.name} to {op.results[0].type}")
    return [w.values[op.operands[0]]]


OPERATIONS: Mapping[str, OPERATION] = {
    "builtin.unrealized_conversion_cast": _cast,
    "llvm.add": _integer("addi"),
    "llvm.extractvalue": _part,
    "llvm.getelementptr": _moved,
    "llvm.inttoptr": _pointer,
    "llvm.mul": _integer("muli"),
    "llvm.ptrtoint": _pointer,
    "memref.cast": _same_memory,
}
"""What writes each operation."""
