"""Numbers in memory that are read, changed and written at once, by instructions of the device or by compare and swap;
and what threads of a warp say to each other.

    memref.generic_atomic_rmw  =>  old = load atomic
                                   do { new = body(old); (old, done) = cmpxchg(address, old, new) } while (!done)

LLVM expands what the device has no instruction for in the same way, but begins with a load that is not atomic.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from xdsl.dialects import llvm as xllvm
from xdsl.dialects import memref
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType, VectorType, i1, i32, i64
from xdsl.ir import Attribute, SSAValue

from mlirhlo.diagnostics import error
from mlirhlo.dialects import llvm
from mlirhlo.dialects.interned import UNIT, integer64, string
from mlirhlo.dialects.memref import GenericAtomicRMWOp
from mlirhlo.dialects.nvvm import AddPairOp, MatchSyncOp, NanosleepOp, SyncWarpOp
from mlirhlo.dialects.quick import operands_of
from mlirhlo.lowering.loops_to_llvm.arith import intrinsic
from mlirhlo.lowering.loops_to_llvm.convert import Handler, Lowering

ATOMIC_KINDS = (
    *("addf", "addi", "assign", "maximumf", "maxs", "maxu", "minimumf", "mins", "minu", "mulf"),
    *("muli", "ori", "andi", "maxnumf", "minnumf", "xori"),
)
"""By the numbers of MLIR's `AtomicRMWKind`."""
_OPERATIONS = {
    "addf": "fadd", "addi": "add", "andi": "and", "assign": "xchg", "maxs": "max",
    "maxu": "umax", "mins": "min", "minu": "umin", "ori": "or", "xori": "xor",
}  # fmt: skip
_MONOTONIC = integer64(2)
_DEVICE = string("device")
NO_TAIL_CALL = xllvm.TailCallKindAttr(xllvm.TailCallKind.NONE)
_NO_OVERFLOW: dict[str, Attribute] = {"overflowFlags": IntegerAttr(0, i32)}


def _atomic(to: Lowering, op: memref.AtomicRMWOp) -> None:
    kind = ATOMIC_KINDS[op.kind.value.data]
    if kind not in _OPERATIONS:
        raise error("HLO0804", f"`{op.name}` of kind `{kind}` has no lowering to NVVM")
    number = llvm.ATOMIC_OPERATIONS.index(_OPERATIONS[kind])
    properties: dict[str, Attribute] = {
        "bin_op": integer64(number),
        "ordering": _MONOTONIC,
        "syncscope": _DEVICE,
    }
    operands = [to.address(op.memref, op.indices), to.values[op.value]]
    to.values[op.result] = to.emit(llvm.AtomicRMWOp, operands, operands[1].type, properties)


def _generic(to: Lowering, op: GenericAtomicRMWOp) -> None:
    type_ = to.convert(op.result.type)
    bits = cast(int, cast(Any, type_).bitwidth)
    own, word = IntegerType(bits), IntegerType(max(bits, 32))
    address, shift = to.address(op.memref, op.indices), None
    if bits < 32:
        address, shift = _word_around(to, address)
    properties: dict[str, Attribute] = {
        "ordering": _MONOTONIC,
        "alignment": integer64(word.width.data // 8),
        "syncscope": _DEVICE,
    }
    first = to.emit(xllvm.LoadOp, [address], word, properties)
    head, done = to.add_block([word]), to.add_block()
    to.jump(head, [first])
    to.enter(head)
    held = head.args[0]
    part = held if shift is None else to.truncate(_shifted(to, xllvm.LShrOp, held, shift), own)
    current = part if own == type_ else to.emit(xllvm.BitcastOp, [part], type_)
    (argument,) = op.body.block.args
    to.values[argument] = current
    to.ops(op.body.block)
    last = op.body.block.last_op
    assert last is not None
    new = to.values[operands_of(last)[0]]
    new = new if own == type_ else to.emit(xllvm.BitcastOp, [new], own)
    if shift is not None:
        mask = _shifted(to, xllvm.ShlOp, to.constant((1 << bits) - 1, word), shift)
        kept = to.emit(
            xllvm.AndOp, [held, to.emit(xllvm.XOrOp, [mask, to.constant(-1, word)], word)], word
        )
        moved = _shifted(to, xllvm.ShlOp, to.emit(xllvm.ZExtOp, [new], word), shift)
        new = to.emit(xllvm.OrOp, [kept, moved], word)
    orders: dict[str, Attribute] = {
        "success_ordering": _MONOTONIC,
        "failure_ordering": _MONOTONIC,
        "syncscope": _DEVICE,
    }
    pair = xllvm.LLVMStructType.from_type_list([word, i1])
    swapped = to.emit(llvm.AtomicCmpXchgOp, [address, held, new], pair, orders)
    found, is_done = (
        to.emit(
            xllvm.ExtractValueOp, [swapped], t, {"position": DenseArrayBase.from_list(i64, [at])}
        )
        for at, t in enumerate((word, i1))
    )
    to.branch(is_done, done, head, [], [found])
    to.leave(done)
    to.values[op.result] = current


def _word_around(to: Lowering, address: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The address of the word that an element is in, and how many bits it is shifted there."""
    number = to.emit(xllvm.PtrToIntOp, [address], i64)
    start = to.emit(xllvm.AndOp, [number, to.constant(-4, i64)], i64)
    inside = to.truncate(to.emit(xllvm.AndOp, [number, to.constant(3, i64)], i64), i32)
    shift = _shifted(to, xllvm.ShlOp, inside, to.constant(3, i32))
    return to.emit(xllvm.IntToPtrOp, [start], address.type), shift


def _shifted(to: Lowering, cls: type[Any], value: SSAValue, by: SSAValue) -> SSAValue:
    flags = _NO_OVERFLOW if cls is xllvm.ShlOp else {}
    return to.emit(cls, [value, by], value.type, flags)


def _sleep(to: Lowering, op: NanosleepOp) -> None:
    intrinsic(to, "llvm.nvvm.nanosleep", [to.constant(op.duration.value.data, i32)], None)


def _add_pair(to: Lowering, op: AddPairOp) -> None:
    """LLVM would swap words in a loop."""
    type_ = cast("VectorType[Attribute]", op.value.type).element_type
    text = f"red.relaxed.gpu.global.add.noftz.{type_}x2 [$0], $1;"
    value = to.emit(xllvm.BitcastOp, [to.values[op.value]], i32)
    properties: dict[str, Attribute] = {
        "asm_string": string(text),
        "constraints": string("l,r,~{memory}"),
        "has_side_effects": UNIT,
        "tail_call_kind": NO_TAIL_CALL,
    }
    to.emit(xllvm.InlineAsmOp, [to.address(op.target, op.indices), value], None, properties)


def _sync_warp(to: Lowering, op: SyncWarpOp) -> None:
    intrinsic(to, "llvm.nvvm.bar.warp.sync", [to.values[op.mask]], None)


def _match(to: Lowering, op: MatchSyncOp) -> None:
    operands = [to.values[op.thread_mask], to.values[op.val]]
    to.values[op.res] = intrinsic(to, "llvm.nvvm.match.any.sync.i32", operands, i32)


def _end(to: Lowering, op: Any) -> None:
    """Read by the op around it."""
    del to, op


HANDLERS: Mapping[str, Handler] = cast(
    "Mapping[str, Handler]",
    {
        "memref.atomic_rmw": _atomic,
        "memref.atomic_yield": _end,
        "memref.generic_atomic_rmw": _generic,
        "nvvm.bar.warp.sync": _sync_warp,
        "nvvm.match.sync": _match,
        "nvvm.nanosleep": _sleep,
        "nvvm.red.add.pair": _add_pair,
    },
)
