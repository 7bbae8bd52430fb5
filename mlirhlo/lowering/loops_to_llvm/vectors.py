"""`vector`: one LLVM vector for each vector of one dimension."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, cast

from xdsl.dialects import arith
from xdsl.dialects import llvm as xllvm
from xdsl.dialects import vector as xvector
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    BFloat16Type,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    Float16Type,
    IntegerAttr,
    IntegerType,
    VectorType,
    i8,
    i16,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects import llvm, vector
from mlirhlo.dialects.hlo.attributes.base import ints
from mlirhlo.dialects.interned import UNIT, integer32, integers32
from mlirhlo.dialects.quick import operands_of
from mlirhlo.lowering.builder.types import vector_of
from mlirhlo.lowering.loops_to_llvm.arith import flags_of, intrinsic
from mlirhlo.lowering.loops_to_llvm.convert import LESS, Handler, Lowering, no_lowering
from mlirhlo.lowering.loops_to_llvm.memory import MONOTONIC, access
from mlirhlo.lowering.target import current

_DYNAMIC = DenseArrayBase.from_list(i32, [xllvm.GEP_USE_SSA_VAL])
_EXACT = xllvm.FastMathAttr(None)
_NO_WRAP_FLAGS = IntegerAttr(0, i32)
_HALVES = (BFloat16Type, Float16Type)


@functools.lru_cache(maxsize=1024)
def _zeros(count: int) -> DenseArrayBase[Any]:
    return integers32(*[0] * count)


def _element(value: SSAValue) -> Attribute:
    return cast("VectorType[Attribute]", value.type).element_type


def _lanes(type_: Attribute) -> int:
    (size,) = cast("VectorType[Attribute]", type_).get_shape()
    return size


def _load(to: Lowering, op: xvector.LoadOp) -> None:
    base, *indices = operands_of(op)
    (result,) = op.results
    _contiguous(to, op, base)
    address = to.address(base, indices)
    properties = access(to, op, _element(result))
    properties.pop("nontemporal", None)
    to.values[result] = to.emit(xllvm.LoadOp, [address], result.type, properties)


def _store(to: Lowering, op: xvector.StoreOp) -> None:
    value, base, *indices = operands_of(op)
    _contiguous(to, op, base)
    address = to.address(base, indices)
    properties = access(to, op, _element(value))
    to.emit(xllvm.StoreOp, [to.values[value], address], None, properties)


def _contiguous(to: Lowering, op: Operation, base: SSAValue) -> None:
    found = to.strides_of(base)
    if found and found[-1] != 1:
        raise no_lowering(op, " where neighbours are not next to each other: use vector.gather")


def _alignment(element: Attribute) -> IntegerAttr[IntegerType]:
    return integer32(cast(int, cast(Any, element).size))


def _masked_load(to: Lowering, op: xvector.MaskedLoadOp) -> None:
    base, *indices, mask, rest = operands_of(op)
    _contiguous(to, op, base)
    (result,) = op.results
    loaded = to.emit(
        llvm.MaskedLoadOp,
        [to.address(base, indices), to.values[mask], _bits(to, to.values[rest])],
        _as_bits(result.type),
        {"alignment": _alignment(_element(result))},
    )
    to.values[result] = _from_bits(to, loaded, result.type)


def _as_bits(type_: Attribute) -> Attribute:
    """The type in which masked lanes of a vector are moved: LLVM selects no masked moves of 16-bit
    floats when it takes them apart, and ends the process."""
    element = cast("VectorType[Attribute]", type_).element_type
    return vector_of(i16, _lanes(type_)) if isinstance(element, _HALVES) else type_


def _bits(to: Lowering, value: SSAValue) -> SSAValue:
    type_ = _as_bits(value.type)
    return value if type_ is value.type else to.emit(xllvm.BitcastOp, [value], type_)


def _from_bits(to: Lowering, value: SSAValue, type_: Attribute) -> SSAValue:
    return value if value.type == type_ else to.emit(xllvm.BitcastOp, [value], type_)


def _masked_store(to: Lowering, op: xvector.MaskedStoreOp) -> None:
    base, *indices, mask, value = operands_of(op)
    _contiguous(to, op, base)
    stored = _bits(to, to.values[value])
    address = to.address(base, indices)
    made = mask.owner
    if isinstance(made, xvector.CreateMaskOp) and to.known.get(to.values[made.operands[0]]) == 1:
        # LLVM 22 makes a store of four bytes of one lane of a vector that was narrowed to two.
        first = to.emit(llvm.ExtractElementOp, [stored, to.constant(0)], _element(stored))
        to.emit(xllvm.StoreOp, [first, address], None, access(to, op, _element(stored)))
        return
    to.emit(
        llvm.MaskedStoreOp,
        [stored, address, to.values[mask]],
        None,
        {"alignment": _alignment(_element(value))},
    )


def _addresses(
    to: Lowering, base: SSAValue, indices: Sequence[SSAValue], offsets: SSAValue
) -> SSAValue:
    """A vector of pointers: offsets count elements of the last dimension."""
    type_ = cast(Any, base.type)
    start = to.address(base, indices)
    lanes = to.values[offsets]
    found = to.strides_of(base)
    stride = found[-1] if found else 1
    if stride != 1:
        factor = _splat(to, to.constant(stride), lanes.type)
        lanes = to.emit(xllvm.MulOp, [lanes, factor], lanes.type, {"overflowFlags": _NO_WRAP_FLAGS})
    return to.emit(
        llvm.GEPOp,
        [start, lanes],
        VectorType(start.type, cast(Any, lanes.type).shape),
        {
            "elem_type": type_.element_type,
            "rawConstantIndices": _DYNAMIC,
            "noWrapFlags": _NO_WRAP_FLAGS,
            "inbounds": UNIT,
        },
    )


def _gather(to: Lowering, op: vector.GatherOp) -> None:
    if current().has_slow_gathers and _is_all_ones(op.mask):
        to.values[op.result] = _gathered_one_by_one(to, op)
        return
    addresses = _addresses(to, op.base, op.indices, op.offsets)
    gathered = to.emit(
        llvm.MaskedGatherOp,
        [addresses, to.values[op.mask], _bits(to, to.values[op.pass_thru])],
        _as_bits(op.result.type),
        {"alignment": _alignment(_element(op.result))},
    )
    to.values[op.result] = _from_bits(to, gathered, op.result.type)


def _is_all_ones(mask: SSAValue) -> bool:
    made = mask.owner
    value = made.properties.get("value") if isinstance(made, arith.ConstantOp) else None
    return isinstance(value, DenseIntOrFPElementsAttr) and all(value.get_values())


def _gathered_one_by_one(to: Lowering, op: vector.GatherOp) -> SSAValue:
    """The lanes' offsets go through memory, from where each is an operand of a load: as narrow as they were."""
    element, offsets = _element(op.result), op.offsets
    if isinstance(offsets.owner, arith.IndexCastOp):
        offsets = offsets.owner.input
    width = cast(int, cast(Any, to.convert(_element(offsets))).bitwidth)
    start, count = to.address(op.base, op.indices), _lanes(op.result.type)
    stride = (to.strides_of(op.base) or [1])[-1]
    scratch, narrow = to.scratch(width // 8 * count), to.values[offsets]
    to.emit(xllvm.StoreOp, [narrow, scratch], None, access(to, op, _element(narrow)))
    result = to.poison(op.result.type)
    for lane in range(count):
        stored = to.offset(scratch, to.constant(width // 8 * lane), i8)
        properties = {**access(to, op, _element(narrow)), "ordering": MONOTONIC}
        offset = to.emit(xllvm.LoadOp, [stored], _element(narrow), properties)
        if offset.type != to.index:
            offset = to.emit(xllvm.SExtOp, [offset], to.index)
        address = to.moved(start, [to.times(offset, stride)], element)
        value = to.emit(xllvm.LoadOp, [address], element, access(to, op, element))
        operands = (result, value, to.constant(lane))
        result = to.emit(xllvm.InsertElementOp, operands, op.result.type)
    return result


def _scatter(to: Lowering, op: vector.ScatterOp) -> None:
    addresses = _addresses(to, op.base, op.indices, op.offsets)
    to.emit(
        llvm.MaskedScatterOp,
        [_bits(to, to.values[op.value]), addresses, to.values[op.mask]],
        None,
        {"alignment": _alignment(_element(op.value))},
    )


def _splat(to: Lowering, value: SSAValue, type_: Attribute) -> SSAValue:
    """All lanes are `value`."""
    empty = to.poison(type_)
    first = to.emit(xllvm.InsertElementOp, (empty, value, to.constant(0)), type_)
    return to.emit(xllvm.ShuffleVectorOp, (first, empty), type_, {"mask": _zeros(_lanes(type_))})


def _broadcast(to: Lowering, op: Operation) -> None:
    (source,), (result,) = operands_of(op), op.results
    value = to.values[source]
    same = isinstance(source.type, VectorType)
    to.values[result] = value if same else _splat(to, value, to.convert(result.type))


def _step(to: Lowering, op: vector.StepOp) -> None:
    to.values[op.result] = intrinsic(to, "llvm.stepvector", [], to.convert(op.result.type))


def _create_mask(to: Lowering, op: xvector.CreateMaskOp) -> None:
    """Lane l is set when l is below the operand."""
    (size,) = op.mask_dim_sizes
    result = op.mask_vector
    # The comparison has as many bits as fit a vector; sizes beyond it saturate.
    lanes = _lanes(result.type)
    type_ = vector_of(i32, lanes)
    most = to.constant(lanes)
    least = intrinsic(to, "llvm.smin", [to.values[size], most], to.index)
    count = least if to.index is i32 else to.truncate(least, i32)
    steps = intrinsic(to, "llvm.stepvector", [], type_)
    to.values[result] = to.emit(
        xllvm.ICmpOp, [steps, _splat(to, count, type_)], result.type, {"predicate": LESS}
    )


def _position(to: Lowering, op: Any) -> SSAValue:
    (static,) = ints(op.properties["static_position"])
    if static == DYNAMIC_INDEX:
        return to.values[op.dynamic_position[0]]
    return to.constant(static)


def _extract(to: Lowering, op: xvector.ExtractOp) -> None:
    to.values[op.result] = to.emit(
        llvm.ExtractElementOp, [to.values[op.vector], _position(to, op)], to.convert(op.result.type)
    )


def _insert(to: Lowering, op: xvector.InsertOp) -> None:
    to.values[op.result] = to.emit(
        xllvm.InsertElementOp,
        [to.values[op.dest], to.values[op.source], _position(to, op)],
        to.convert(op.result.type),
    )


def _shuffle(to: Lowering, op: xvector.ShuffleOp) -> None:
    mask = integers32(*ints(op.properties["mask"]))
    (result,) = op.results
    operands = [to.values[o] for o in operands_of(op)]
    type_ = moved_as = to.convert(result.type)
    is_bf16 = type(cast("VectorType[Attribute]", type_).element_type) is BFloat16Type
    if is_bf16:
        moved_as = vector_of(i32, _lanes(type_))
        operands = [_wide(to, value) for value in operands]
    found = to.emit(xllvm.ShuffleVectorOp, operands, moved_as, {"mask": mask})
    if is_bf16:
        found = to.truncate(found, vector_of(i16, _lanes(type_)))
        found = to.emit(xllvm.BitcastOp, (found,), type_)
    to.values[result] = found


def _wide(to: Lowering, value: SSAValue) -> SSAValue:
    """The bits of bf16 in i32: LLVM 22 has no instruction for halves of a `<16 x bfloat>` that change places
    ("Cannot select: v16bf16 = X86ISD::VPERM2X128"), and makes that of a shuffle of i16 too."""
    lanes = _lanes(value.type)
    bits = to.emit(xllvm.BitcastOp, (value,), vector_of(i16, lanes))
    return to.emit(xllvm.ZExtOp, (bits,), vector_of(i32, lanes))


def _bitcast(to: Lowering, op: xvector.BitcastOp) -> None:
    to.values[op.result] = to.emit(xllvm.BitcastOp, [to.values[op.source]], op.result.type)


def _fma(to: Lowering, op: xvector.FMAOp) -> None:
    (result,) = op.results
    to.values[result] = to.emit(
        xllvm.FMAOp,
        [to.values[o] for o in operands_of(op)],
        result.type,
        {"fastmathFlags": _EXACT},
    )


_REDUCTIONS = {
    "add": ("add", "fadd"),
    "mul": ("mul", "fmul"),
    "minui": ("umin", None),
    "minsi": ("smin", None),
    "maxui": ("umax", None),
    "maxsi": ("smax", None),
    "and": ("and", None),
    "or": ("or", None),
    "xor": ("xor", None),
    "minnumf": (None, "fmin"),
    "maxnumf": (None, "fmax"),
    "minimumf": (None, "fminimum"),
    "maximumf": (None, "fmaximum"),
}


def _reduction(to: Lowering, op: xvector.ReductionOp) -> None:
    """Lanes are added in a tree: the op says so by `reassoc`; without it, in order."""
    integer = isinstance(op.dest.type, IntegerType)
    kind = str(op.kind.data)
    name = _REDUCTIONS[kind][0 if integer else 1]
    if name is None or op.acc is not None:
        raise no_lowering(op, f" of kind {kind} here")
    operands = [to.values[op.vector]]
    flags = flags_of(op)
    if name in ("fadd", "fmul"):
        start = 0.0 if name == "fadd" else 1.0
        if name == "fadd":
            start = -0.0
        operands.insert(0, _float_constant(to, start, op.dest.type))
    to.values[op.dest] = intrinsic(to, f"llvm.vector.reduce.{name}", operands, op.dest.type, flags)


def _float_constant(to: Lowering, value: float, type_: Attribute) -> SSAValue:
    from xdsl.dialects.builtin import FloatAttr

    return to.emit(xllvm.ConstantOp, (), type_, {"value": FloatAttr(value, cast(Any, type_))})


HANDLERS: Mapping[str, Handler] = cast(
    "Mapping[str, Handler]",
    {
        "vector.load": _load,
        "vector.store": _store,
        "vector.maskedload": _masked_load,
        "vector.maskedstore": _masked_store,
        "vector.gather": _gather,
        "vector.scatter": _scatter,
        "vector.broadcast": _broadcast,
        "vector.step": _step,
        "vector.create_mask": _create_mask,
        "vector.extract": _extract,
        "vector.insert": _insert,
        "vector.shuffle": _shuffle,
        "vector.bitcast": _bitcast,
        "vector.fma": _fma,
        "vector.reduction": _reduction,
    },
)
