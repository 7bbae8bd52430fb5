"""`memref`: loads, stores, buffers within buffers, globals."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, cast

from xdsl.dialects import llvm as xllvm
from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    IntegerAttr,
    MemRefType,
    i1,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation

from mlirhlo.dialects.interned import UNIT, integer64
from mlirhlo.dialects.memref import PrefetchOp
from mlirhlo.dialects.quick import create_op, operands_of
from mlirhlo.lowering.loops_to_llvm.arith import intrinsic
from mlirhlo.lowering.loops_to_llvm.convert import (
    Handler,
    Lowering,
    no_lowering,
)
from mlirhlo.lowering.loops_to_llvm.indices import POINTER
from mlirhlo.lowering.runtime_symbols import STOP

_DEFAULT_ALIGNMENT = IntegerAttr(64, i64)
_NOT_ATOMIC = IntegerAttr(0, i64)
_PREFETCHED = ("isWrite", "localityHint", "isDataCache")


def access(to: Lowering, op: Operation, element: Attribute) -> dict[str, Attribute]:
    """Properties of a load or store of `element`: aligned to it, streaming when the op says so."""
    size = to.byte_size(element)
    properties: dict[str, Attribute] = {
        "alignment": integer64(size),
        "ordering": _NOT_ATOMIC,
    }
    streaming = op.properties.get("nontemporal")
    if streaming is not None and cast("IntegerAttr[Any]", streaming).value.data:
        properties["nontemporal"] = UNIT
        # A streaming store of a vector has to be aligned to the whole of it.
        if (
            vector := next((o.type for o in operands_of(op) if hasattr(o.type, "shape")), None)
        ) is not None:
            properties["alignment"] = integer64(size * prod(cast(Any, vector).get_shape()))
    return properties


MONOTONIC = integer64(2)


def _load(to: Lowering, op: memref.LoadOp) -> None:
    base, *indices = operands_of(op)
    (result,) = op.results
    address = to.address(base, indices)
    properties = access(to, op, result.type)
    properties.pop("nontemporal", None)
    if isinstance(base.owner, memref.GetGlobalOp) and base.owner.name_.string_value() == STOP:
        properties["ordering"] = MONOTONIC  # read again in every round
    to.values[result] = to.emit(xllvm.LoadOp, [address], to.convert(result.type), properties)


def _store(to: Lowering, op: memref.StoreOp) -> None:
    value, base, *indices = operands_of(op)
    address = to.address(base, indices)
    to.emit(xllvm.StoreOp, [to.values[value], address], None, access(to, op, value.type))


def _alloca(to: Lowering, op: memref.AllocaOp) -> None:
    type_ = cast("MemRefType[Any]", op.memref.type)
    if DYNAMIC_INDEX in type_.get_shape():
        raise no_lowering(op, " of a size that is not known")
    count = to.constant(prod(type_.get_shape()))
    made = create_op(
        xllvm.AllocaOp,
        [count],
        [POINTER],
        {
            "elem_type": to.convert(type_.element_type),
            "alignment": op.alignment or _DEFAULT_ALIGNMENT,
        },
    )
    to.entry.add_op(made)
    to.values[op.memref] = made.results[0]


def _view(to: Lowering, op: memref.ViewOp) -> None:
    source, byte_shift, *_ = operands_of(op)  # sizes come last
    (result,) = op.results
    to.values[result] = to.offset(to.values[source], to.values[byte_shift], i8)


def _subview(to: Lowering, op: memref.SubviewOp) -> None:
    source, *dynamic = operands_of(op)  # offsets come first
    starts = cast("DenseArrayBase[Any]", op.properties["static_offsets"]).get_values()
    numbers = iter(dynamic)
    offsets = [
        to.times(to.values[next(numbers)] if start == DYNAMIC_INDEX else to.constant(start), stride)
        for start, stride in zip(starts, to.strides_of(source), strict=True)
    ]
    (total, *rest) = offsets or [to.constant(0)]
    for offset in rest:
        total = to.add(total, offset)
    element = cast("MemRefType[Any]", source.type).element_type
    (result,) = op.results
    to.values[result] = to.offset(to.values[source], total, element)


def _reinterpret_cast(to: Lowering, op: memref.ReinterpretCastOp) -> None:
    source = cast("MemRefType[Any]", op.source.type)
    (start,) = op.static_offsets.get_values()
    value = to.values[op.offsets[0]] if start == DYNAMIC_INDEX else to.constant(start)
    to.values[op.result] = to.offset(to.values[op.source], value, source.element_type)


def _same(to: Lowering, op: Operation) -> None:
    """Another shape or layout of the same memory."""
    to.values[op.results[0]] = to.values[op.operands[0]]


def _address(to: Lowering, op: Operation) -> None:
    address = to.emit(xllvm.PtrToIntOp, [to.values[op.operands[0]]], to.index)
    to.values[op.results[0]] = address


def _prefetch(to: Lowering, op: PrefetchOp) -> None:
    base, *indices = operands_of(op)
    given = [cast(Any, op.properties[name]) for name in _PREFETCHED]
    words = [abs(cast(int, a.value.data)) for a in given]  # true is -1
    operands = [to.address(base, indices), *(to.constant(w, i32) for w in words)]
    intrinsic(to, "llvm.prefetch", operands, None)


def _get_global(to: Lowering, op: memref.GetGlobalOp) -> None:
    made = create_op(xllvm.AddressOfOp, (), [POINTER], {"global_name": op.name_})
    to.entry.add_op(made)
    to.values[op.memref] = made.results[0]


def _copy(to: Lowering, op: memref.CopyOp) -> None:
    """Between contiguous buffers of one type; they may be the same."""
    type_ = cast("MemRefType[Any]", op.source.type)
    size = prod(type_.get_shape()) * to.byte_size(type_.element_type)
    operands = [
        to.values[op.destination],
        to.values[op.source],
        to.constant(size),
        to.constant(0, i1),
    ]
    intrinsic(to, "llvm.memmove", operands, None)


HANDLERS: Mapping[str, Handler] = cast(
    "Mapping[str, Handler]",
    {
        "memref.load": _load,
        "memref.store": _store,
        "memref.alloca": _alloca,
        "memref.copy": _copy,
        "memref.view": _view,
        "memref.subview": _subview,
        "memref.reinterpret_cast": _reinterpret_cast,
        "memref.cast": _same,
        "memref.collapse_shape": _same,
        "memref.expand_shape": _same,
        "memref.memory_space_cast": _same,
        "memref.extract_aligned_pointer_as_index": _address,
        "memref.get_global": _get_global,
        "memref.prefetch": _prefetch,
    },
)
