"""`arith` and the part of `math` that is one instruction; both on scalars and vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from xdsl.dialects import llvm as xllvm
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import (
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    IntegerType,
    VectorType,
    i1,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects import llvm
from mlirhlo.dialects.interned import integers32, string
from mlirhlo.dialects.quick import operands_of
from mlirhlo.lowering.loops_to_llvm.convert import Handler, Lowering

_NO_OVERFLOW = IntegerAttr(0, i32)
_NO_FLAGS = xllvm.FastMathAttr(None)
_NO_BUNDLES = DenseArrayBase.from_list(i32, ())
_MOST_FLAGS = 256
_FLAGS: dict[int, tuple[Attribute, xllvm.FastMathAttr]] = {}
"""By the identity of what stands beside it."""


def flags_of(op: Operation) -> xllvm.FastMathAttr:
    """The llvm dialect's form of an op's fast-math flags."""
    given = op.properties.get("fastmath")
    if given is None:
        return _NO_FLAGS
    found = _FLAGS.get(id(given))
    if found is None:
        if len(_FLAGS) >= _MOST_FLAGS:
            _FLAGS.clear()
        flags = xllvm.FastMathAttr(list(cast(FastMathFlagsAttr, given).data))
        found = _FLAGS[id(given)] = given, flags
    return found[1]


def _integer(cls: type[Operation]) -> Handler:
    def lower(to: Lowering, op: Operation) -> None:
        operands = [to.values[o] for o in operands_of(op)]
        (result,) = op.results
        if type(result.type) is IndexType:
            if cls is xllvm.AddOp:
                to.values[result] = to.add(*operands)
                return
            if cls is xllvm.SubOp and (known := to.known.get(operands[1])) is not None:
                to.values[result] = to.add(operands[0], to.constant(-known))
                return
            if cls is xllvm.MulOp:
                for value, other in (operands, operands[::-1]):
                    known = to.known.get(other)
                    if known is not None:
                        to.values[result] = to.times(value, known)
                        return
        to.values[result] = to.emit(
            cls, operands, to.convert(result.type), {"overflowFlags": _NO_OVERFLOW}
        )

    return lower


def _plain(cls: type[Operation]) -> Handler:
    def lower(to: Lowering, op: Operation) -> None:
        (result,) = op.results
        operands = [to.values[o] for o in operands_of(op)]
        to.values[result] = to.emit(cls, operands, to.convert(result.type))

    return lower


def _unsigned(cls: type[Operation], by_power: type[Operation]) -> Handler:
    """Quotients and remainders; by powers of two they are shifts, and bits kept."""

    def lower(to: Lowering, op: Operation) -> None:
        (result,) = op.results
        value, divisor = (to.values[o] for o in operands_of(op))
        number, made = to.known.get(divisor, 0), cls
        if number > 0 and number & (number - 1) == 0:
            shift = number.bit_length() - 1 if by_power is xllvm.LShrOp else number - 1
            made, divisor = by_power, to.constant(shift)
        to.values[result] = to.emit(made, (value, divisor), to.convert(result.type))

    return lower


def _float(cls: type[Operation]) -> Handler:
    def lower(to: Lowering, op: Operation) -> None:
        (result,) = op.results
        operands = [to.values[o] for o in operands_of(op)]
        to.values[result] = to.emit(cls, operands, result.type, {"fastmathFlags": flags_of(op)})

    return lower


def intrinsic(
    to: Lowering,
    name: str,
    operands: Sequence[SSAValue],
    result_type: Attribute | None,
    flags: xllvm.FastMathAttr = _NO_FLAGS,
) -> SSAValue:
    """A call of an LLVM intrinsic."""
    properties: dict[str, Attribute] = {
        "intrin": string(name),
        "fastmathFlags": flags,
        "op_bundle_sizes": _NO_BUNDLES,
        "operandSegmentSizes": integers32(len(operands), 0),
    }
    return to.emit(xllvm.CallIntrinsicOp, operands, result_type, properties)


def _intrinsic(name: str) -> Handler:
    def lower(to: Lowering, op: Operation) -> None:
        (result,) = op.results
        operands = [to.values[o] for o in operands_of(op)]
        to.values[result] = intrinsic(to, name, operands, to.convert(result.type), flags_of(op))

    return lower


def _intrinsic_of_zero(name: str) -> Handler:
    """Counts of zeros: of zero too they are defined."""

    def lower(to: Lowering, op: Operation) -> None:
        (result,) = op.results
        operands = [to.values[operands_of(op)[0]], to.constant(0, i1)]
        to.values[result] = intrinsic(to, name, operands, result.type)

    return lower


def _truncate(to: Lowering, op: Operation) -> None:
    (result,) = op.results
    to.values[result] = to.truncate(to.values[operands_of(op)[0]], result.type)


def _compare(cls: type[Operation]) -> Handler:
    def lower(to: Lowering, op: Operation) -> None:
        operands = [to.values[o] for o in operands_of(op)]
        properties: dict[str, Attribute] = {"predicate": op.properties["predicate"]}
        if cls is llvm.FCmpOp:
            properties["fastmathFlags"] = flags_of(op)
        (result,) = op.results
        to.values[result] = to.emit(cls, operands, result.type, properties)

    return lower


def _select(to: Lowering, op: Operation) -> None:
    (result,) = op.results
    operands = [to.values[o] for o in operands_of(op)]
    to.values[result] = to.emit(
        llvm.SelectOp, operands, to.convert(result.type), {"fastmathFlags": _NO_FLAGS}
    )


def _neg(to: Lowering, op: Operation) -> None:
    (result,) = op.results
    to.values[result] = to.emit(
        xllvm.FNegOp,
        [to.values[operands_of(op)[0]]],
        result.type,
        {"fastmathFlags": flags_of(op)},
    )


def _width(to: Lowering, type_: Attribute) -> int:
    """Bits of an integer, of the elements of a vector, and of index."""
    if isinstance(type_, VectorType):
        return _width(to, cast("VectorType[Attribute]", type_).element_type)
    integer = cast(Any, type_ if isinstance(type_, IntegerType) else to.index)
    return cast(int, integer.width.data)


def _index_cast(widen: type[Operation]) -> Handler:
    def lower(to: Lowering, op: Operation) -> None:
        (operand,), (result,) = op.operands, op.results
        value = to.values[operand]
        before, after = _width(to, operand.type), _width(to, result.type)
        type_ = to.convert(result.type)
        if before == after:
            to.values[result] = value
        elif before > after:
            to.values[result] = to.truncate(value, type_)
        else:
            to.values[result] = to.emit(widen, [value], type_)

    return lower


HANDLERS: Mapping[str, Handler] = {
    "arith.addi": _integer(xllvm.AddOp),
    "arith.subi": _integer(xllvm.SubOp),
    "arith.muli": _integer(xllvm.MulOp),
    "arith.shli": _integer(xllvm.ShlOp),
    "arith.divsi": _plain(xllvm.SDivOp),
    "arith.divui": _unsigned(xllvm.UDivOp, xllvm.LShrOp),
    "arith.remsi": _plain(xllvm.SRemOp),
    "arith.remui": _unsigned(xllvm.URemOp, xllvm.AndOp),
    "arith.andi": _plain(xllvm.AndOp),
    "arith.ori": _plain(xllvm.OrOp),
    "arith.xori": _plain(xllvm.XOrOp),
    "arith.shrsi": _plain(xllvm.AShrOp),
    "arith.shrui": _plain(xllvm.LShrOp),
    "arith.maxsi": _intrinsic("llvm.smax"),
    "arith.minsi": _intrinsic("llvm.smin"),
    "arith.maxui": _intrinsic("llvm.umax"),
    "arith.minui": _intrinsic("llvm.umin"),
    "arith.addf": _float(xllvm.FAddOp),
    "arith.subf": _float(xllvm.FSubOp),
    "arith.mulf": _float(xllvm.FMulOp),
    "arith.divf": _float(xllvm.FDivOp),
    "arith.remf": _float(xllvm.FRemOp),
    "arith.negf": _neg,
    "arith.maximumf": _intrinsic("llvm.maximum"),
    "arith.minimumf": _intrinsic("llvm.minimum"),
    "arith.maxnumf": _intrinsic("llvm.maxnum"),
    "arith.minnumf": _intrinsic("llvm.minnum"),
    "arith.cmpi": _compare(xllvm.ICmpOp),
    "arith.cmpf": _compare(llvm.FCmpOp),
    "arith.select": _select,
    "arith.extf": _plain(xllvm.FPExtOp),
    "arith.truncf": _plain(xllvm.FPTruncOp),
    "arith.extsi": _plain(xllvm.SExtOp),
    "arith.extui": _plain(xllvm.ZExtOp),
    "arith.trunci": _truncate,
    "arith.sitofp": _plain(xllvm.SIToFPOp),
    "arith.uitofp": _plain(llvm.UIToFPOp),
    "arith.fptosi": _plain(llvm.FPToSIOp),
    "arith.fptoui": _plain(llvm.FPToUIOp),
    "arith.bitcast": _plain(xllvm.BitcastOp),
    "arith.index_cast": _index_cast(xllvm.SExtOp),
    "arith.index_castui": _index_cast(xllvm.ZExtOp),
    "math.absf": _intrinsic("llvm.fabs"),
    "math.ceil": _intrinsic("llvm.ceil"),
    "math.copysign": _intrinsic("llvm.copysign"),
    "math.ctlz": _intrinsic_of_zero("llvm.ctlz"),
    "math.ctpop": _intrinsic("llvm.ctpop"),
    "math.cttz": _intrinsic_of_zero("llvm.cttz"),
    "math.floor": _intrinsic("llvm.floor"),
    "math.fma": _intrinsic("llvm.fma"),
    "math.round": _intrinsic("llvm.round"),
    "math.roundeven": _intrinsic("llvm.roundeven"),
    "math.sqrt": _intrinsic("llvm.sqrt"),
    "math.trunc": _intrinsic("llvm.trunc"),
}
