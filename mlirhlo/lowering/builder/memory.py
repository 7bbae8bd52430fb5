"""Vectors and memory."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects import memref
from xdsl.dialects import vector as xvector
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    BFloat16Type,
    BoolAttr,
    IntegerAttr,
    IntegerType,
    MemRefType,
    UnitAttr,
    i1,
)
from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects import vector
from mlirhlo.dialects.interned import integer32, integer64, integers32, integers64
from mlirhlo.dialects.memref import PrefetchOp
from mlirhlo.dialects.quick import append, create_op
from mlirhlo.dialects.x86 import DotI8Op, DotI16Op
from mlirhlo.dialects.x86vector import DotBF16Op
from mlirhlo.lowering.builder.arithmetic import ArithmeticBuilder
from mlirhlo.lowering.builder.types import (
    EXACT,
    INDEX,
    REASSOCIATE,
    Index,
    element_of,
    lanes_of,
    part_of,
    vector_of,
)

_STREAMING = IntegerAttr(1, i1)
_NO, _YES = BoolAttr.from_bool(False), BoolAttr.from_bool(True)
_MOVED: dict[str, Attribute] = {
    "static_offsets": integers64(DYNAMIC_INDEX),
    "static_sizes": integers64(DYNAMIC_INDEX),
    "static_strides": integers64(1),
    "operandSegmentSizes": integers32(1, 1, 1, 0),
}


@functools.lru_cache(maxsize=1024)
def _combining(kind: str) -> xvector.CombiningKindAttr:
    return xvector.CombiningKindAttr(xvector.CombiningKindFlag(kind))


class MemoryBuilder(ArithmeticBuilder):
    """Lanes, loads and stores."""

    def broadcast(self, x: SSAValue, lanes: int) -> SSAValue:
        """A scalar in every lane."""
        return self.emit(xvector.BroadcastOp, (x,), vector_of(x.type, lanes))

    def steps(self, lanes: int) -> SSAValue:
        """`[0, 1, 2, …]` of index."""
        return self.emit(vector.StepOp, (), vector_of(INDEX, lanes))

    def mask(self, count: SSAValue, lanes: int) -> SSAValue:
        """Set in the lanes below `count`."""
        return self.emit(xvector.CreateMaskOp, (count,), vector_of(i1, lanes))

    def reduce(self, kind: str, x: SSAValue) -> SSAValue:
        """All lanes combined, in any order: `add`, `mul`, `maxsi`, `maximumf`, …"""
        properties: dict[str, Attribute] = {
            "kind": _combining(kind),
            "fastmath": EXACT if isinstance(element_of(x.type), IntegerType) else REASSOCIATE,
        }
        return self.emit(xvector.ReductionOp, (x,), element_of(x.type), properties)

    def dot_bf16(self, total: SSAValue, x: SSAValue, y: SSAValue) -> SSAValue:
        """`total + x * y` of pairs of bf16, given as their bits, in f32."""
        lanes = lanes_of(total.type)
        pairs = vector_of(BFloat16Type(), 2 * lanes)
        factors = [self.emit(xvector.BitcastOp, (v,), pairs) for v in (x, y)]
        return self.emit(DotBF16Op, (total, *factors), total.type)

    def dot_bytes(
        self, total: SSAValue, x: SSAValue, y: SSAValue, x_signed: bool, y_signed: bool
    ) -> SSAValue:
        """`total + x * y` of fours of bytes, given as their bits, in 32 bits."""
        if x_signed and not y_signed:
            x, y, x_signed, y_signed = y, x, y_signed, x_signed
        fours = vector_of(IntegerType(8), 4 * lanes_of(total.type))
        factors = [self.emit(xvector.BitcastOp, (v,), fours) for v in (x, y)]
        signs = (("isZextA", x_signed), ("isZextB", y_signed))
        properties: dict[str, Attribute] = {name: UnitAttr() for name, is_ in signs if not is_}
        return self.emit(DotI8Op, (total, *factors), total.type, properties)

    def dot_words(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """`x * y` of pairs of signed 16-bit numbers, given as their bits, in 32 bits."""
        pairs = vector_of(IntegerType(16), 2 * lanes_of(x.type))
        factors = [self.emit(xvector.BitcastOp, (v,), pairs) for v in (x, y)]
        return self.emit(DotI16Op, factors, x.type)

    def extract(self, x: SSAValue, lane: int) -> SSAValue:
        """One lane."""
        return self.emit(
            xvector.ExtractOp,
            (x,),
            element_of(x.type),
            {"static_position": integers64(lane)},
        )

    def insert(self, x: SSAValue, vector: SSAValue, lane: int) -> SSAValue:
        """A vector with another number in one lane."""
        properties: dict[str, Attribute] = {"static_position": integers64(lane)}
        return self.emit(xvector.InsertOp, (x, vector), vector.type, properties)

    def shuffle(self, x: SSAValue, y: SSAValue, lanes: Sequence[int]) -> SSAValue:
        """Lanes picked out of `x` and, counted on, `y`."""
        return self.emit(
            xvector.ShuffleOp,
            (x, y),
            vector_of(element_of(x.type), len(lanes)),
            {"mask": integers64(*lanes)},
        )

    def load(self, source: SSAValue, indices: Sequence[Index]) -> SSAValue:
        """One element."""
        element = cast("MemRefType[Any]", source.type).element_type
        return self.emit(memref.LoadOp, [source, *map(self.index, indices)], element)

    def store(self, value: SSAValue, target: SSAValue, indices: Sequence[Index]) -> None:
        """Stores one element."""
        self.effect(memref.StoreOp, [value, target, *map(self.index, indices)])

    def moved(self, source: SSAValue, start: Index) -> SSAValue:
        """A buffer of one dimension and any size from an element on; of one type, so that loops carry it."""
        element = cast("MemRefType[Any]", source.type).element_type
        return self.emit(
            memref.SubviewOp,
            [source, self.index(start), self.index(1)],
            part_of(element),
            dict(_MOVED),
        )

    def vector_load(
        self,
        source: SSAValue,
        indices: Sequence[Index],
        lanes: int,
        mask: SSAValue | None = None,
        *,
        alignment: int = 0,
    ) -> SSAValue:
        """Neighbours along the last dimension; lanes whose mask is not set are zero.

        `alignment`: bytes that the first one's address is a multiple of, where that is known of no less than all.
        """
        element = cast("MemRefType[Any]", source.type).element_type
        type_ = vector_of(element, lanes)
        operands = [source, *map(self.index, indices)]
        if mask is None:
            aligned: dict[str, Attribute] = {"alignment": integer64(alignment)} if alignment else {}
            op = create_op(xvector.LoadOp, operands, (type_,), attributes=aligned)
            append(self.block, op)
            return op.results[0]
        return self.emit(xvector.MaskedLoadOp, [*operands, mask, self.constant(0, type_)], type_)

    def vector_store(
        self,
        value: SSAValue,
        target: SSAValue,
        indices: Sequence[Index],
        mask: SSAValue | None = None,
        *,
        streaming: bool = False,
    ) -> None:
        """Stores neighbours along the last dimension; `streaming` ones go past the caches."""
        operands = [target, *map(self.index, indices)]
        if mask is None:
            properties: dict[str, Attribute] = {"nontemporal": _STREAMING} if streaming else {}
            self.effect(xvector.StoreOp, [value, *operands], properties)
        else:
            self.effect(xvector.MaskedStoreOp, [*operands, mask, value])

    def prefetch(self, source: SSAValue, indices: Sequence[Index], *, locality: int = 3) -> None:
        """Asks for an element to come into the caches: 3 all of them, 2 all but the first."""
        properties: dict[str, Attribute] = {
            "isWrite": _NO,
            "localityHint": integer32(locality),
            "isDataCache": _YES,
        }
        self.effect(PrefetchOp, [source, *map(self.index, indices)], properties)

    def until_aligned(self, buffer: SSAValue, size_bytes: int) -> SSAValue:
        """Bytes from the start of a buffer to a multiple of a power of two."""
        address = self.emit(memref.ExtractAlignedPointerAsIndexOp, [buffer], INDEX)
        negative = self.subi(self.constant(0, INDEX), address)
        return self.andi(negative, self.constant(size_bytes - 1, INDEX))

    def is_aligned(self, buffer: SSAValue, size_bytes: int) -> SSAValue:
        """Whether a buffer starts at a multiple of a power of two."""
        address = self.emit(memref.ExtractAlignedPointerAsIndexOp, [buffer], INDEX)
        rest = self.andi(address, self.constant(size_bytes - 1, INDEX))
        return self.cmpi("eq", rest, self.constant(0, INDEX))

    def gather(
        self,
        source: SSAValue,
        indices: Sequence[Index],
        offsets: SSAValue,
        mask: SSAValue | None = None,
    ) -> SSAValue:
        """Elements at `indices` moved by `offsets` along the last dimension."""
        element = cast("MemRefType[Any]", source.type).element_type
        lanes = lanes_of(offsets.type)
        type_ = vector_of(element, lanes)
        mask = mask or self.constant(1, vector_of(i1, lanes))
        operands = [source, *map(self.index, indices), offsets, mask, self.constant(0, type_)]
        return self.emit(vector.GatherOp, operands, type_)
